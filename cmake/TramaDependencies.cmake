# SPDX-License-Identifier: Apache-2.0
# The libraries that Trama links, found the same way in its build and in an installed tramaConfig.cmake.
# Reads TRAMA_WITH_MPI, TRAMA_WITH_CUDA and TRAMA_WITH_NCCL.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(TRAMA_STARPU REQUIRED QUIET IMPORTED_TARGET starpu-1.4>=1.4)
pkg_check_modules(TRAMA_HWLOC REQUIRED QUIET IMPORTED_TARGET hwloc>=2)
pkg_search_module(TRAMA_CBLAS REQUIRED QUIET IMPORTED_TARGET openblas cblas)
if(TRAMA_WITH_MPI)
    pkg_check_modules(TRAMA_STARPUMPI REQUIRED QUIET IMPORTED_TARGET starpumpi-1.4>=1.4)
    find_package(MPI REQUIRED QUIET COMPONENTS C)
endif()
if(TRAMA_WITH_CUDA)
    find_package(CUDAToolkit REQUIRED QUIET)
    set(TRAMA_CUDA_LIBRARIES CUDA::cublasLt CUDA::cudart)
    if(TRAMA_CUDA_STANDIN) # never installed
        set(TRAMA_CUDA_LIBRARIES $<BUILD_INTERFACE:trama_standin>)
    endif()
endif()
if(TRAMA_WITH_NCCL)
    find_package(NCCL REQUIRED QUIET)
endif()

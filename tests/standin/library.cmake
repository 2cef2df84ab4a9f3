# SPDX-License-Identifier: Apache-2.0
# The stand-ins as a library, trama_standin: what runs .cu files that a C++ compiler compiled with simt.h, and the
# functions of CUDA's run time, cuBLASLt and NCCL. In a program it must come before NVIDIA's libraries: it wins then.
include_guard(GLOBAL)
include(CheckLanguage)
check_language(CXX)
find_package(CUDAToolkit QUIET)
if(NOT CMAKE_CXX_COMPILER OR NOT CUDAToolkit_FOUND)
    return()
endif()
enable_language(CXX)

set(here "${CMAKE_CURRENT_LIST_DIR}")
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
separate_arguments(TRAMA_STANDIN_FLAGS NATIVE_COMMAND "${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${build_type}}")

# As C, and no operation is fused with another.
add_library(trama_standin_flags INTERFACE)
target_include_directories(trama_standin_flags INTERFACE "${here}")
target_include_directories(trama_standin_flags SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
target_compile_options(trama_standin_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${TRAMA_STANDIN_FLAGS}>
    $<$<COMPILE_LANGUAGE:CXX>:-std=gnu++17;-Wall;-Wno-unknown-pragmas;-Wno-unused-parameter;-ffp-contract=off;-ftls-model=initial-exec>)
target_link_options(trama_standin_flags INTERFACE ${TRAMA_STANDIN_FLAGS})

file(GLOB sources CONFIGURE_DEPENDS "${here}/*.cpp")
list(FILTER sources EXCLUDE REGEX "/test_[^/]*$")
find_path(TRAMA_STANDIN_NCCL nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
if(NOT TRAMA_STANDIN_NCCL)
    list(FILTER sources EXCLUDE REGEX "/(nccl|meeting)[.]cpp$")
endif()
add_library(trama_standin SHARED ${sources})
set_source_files_properties("${here}/simt.cpp" PROPERTIES COMPILE_OPTIONS -O2) # runs between any two steps of a thread
target_link_libraries(trama_standin PUBLIC trama_standin_flags Threads::Threads)

# All programs and libraries from here on find the stand-ins before NVIDIA's libraries, which StarPU brings along.
macro(trama_standin_first)
    set(CMAKE_BUILD_RPATH "$<TARGET_FILE_DIR:trama_standin>")
    add_link_options(LINKER:--push-state,--no-as-needed,$<TARGET_FILE:trama_standin>,--pop-state)
endmacro()

# trama_standin_source(<file>...): .cu files, or C++ with kernels, for the C++ compiler.
function(trama_standin_source)
    set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX
        COMPILE_OPTIONS "-include;${CMAKE_CURRENT_FUNCTION_LIST_DIR}/simt.h")
endfunction()

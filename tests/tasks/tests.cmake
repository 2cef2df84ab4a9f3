# SPDX-License-Identifier: Apache-2.0
# On how many ranks tests run, where not on 2 and 4; seconds that they may take; which start MPI themselves.
set(STARTS_MPI_test_faults ON)
set(RANKS_test_mpi_train 2 3 4)
set(RANKS_test_mpi_merge_counts 1 2 4)
set(RANKS_test_mpi_delay 2)
set(RANKS_test_mpi_wrap 1 2 4)
set(RANKS_test_mpi_communicators 4)
set(RANKS_test_mpi_guest 2)
set(TIMEOUT_test_mpi_guest 300)
set(RANKS_test_mpi_halo 1 2 4)
if(TRAMA_WITH_CUDA)
    set(RANKS_test_collective 2 4)
endif()

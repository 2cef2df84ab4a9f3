# SPDX-License-Identifier: Apache-2.0
set(RANKS_test_mpi_train 2 3 4)
set(RANKS_test_mpi_merge_counts 1 2 4)
set(RANKS_test_mpi_delay 2)
set(TIMEOUT_test_mpi_delay 300)
set(RANKS_test_mpi_wrap 1 2 4)
set(RANKS_test_mpi_communicators 4)
set(RANKS_test_mpi_guest 2)
set(TIMEOUT_test_mpi_guest 300)

# SPDX-License-Identifier: Apache-2.0
# Seconds; with more ranks than cores beside other work it takes its time.
set(TIMEOUT_test_mpi_message 400)
set(RANKS_test_mpi_threads 2 3 4)

# SPDX-License-Identifier: Apache-2.0
# The stand-in for a GPU runs its threads one after the other.
set(TIMEOUT_test_cuda_box 300)
set(TIMEOUT_test_cuda_ops 600)
set(REFUSES_MEMORY_test_scratch ON)
set(REFUSES_MEMORY_test_attention ON)

# SPDX-License-Identifier: Apache-2.0
# Seconds; for the exhaustive variants (TRAMA_TEST_LONG=1). All of them together take less than a minute otherwise.
set(TIMEOUT_test_reshard 900)
set(TIMEOUT_test_reshard_random 900)
set(TIMEOUT_test_random 600)
set(TIMEOUT_test_validator 600)
set(REFUSES_MEMORY_test_memory ON)
if(NOT TRAMA_WITH_NPZ)
    list(FILTER sources EXCLUDE REGEX "^dist/test_npz")
endif()
if(NOT TRAMA_WITH_SAFETENSORS)
    list(FILTER sources EXCLUDE REGEX "^dist/test_safetensors")
endif()

# Many plans of rooms that other tests reach, too.
foreach(program test_arena test_attention_layouts test_convolution_layouts test_gradient test_loans test_memory
        test_mutants test_optimizer test_reshard test_split_forms test_sum_turns test_unlike test_validator)
    set(LONG_ASAN_${program} ON)
endforeach()

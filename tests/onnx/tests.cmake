# SPDX-License-Identifier: Apache-2.0
# All programs here read the schema that the build compiled. The judge runs ONNX's own tests, on one process; with
# TRAMA_TEST_LONG=1 on all meshes.
include_directories(SYSTEM "${PROJECT_BINARY_DIR}/dist/onnx")
add_executable(onnx_judge onnx/judge.c onnx/onnx_case.c)
set_target_properties(onnx_judge PROPERTIES
    OUTPUT_NAME judge RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/onnx")
target_link_libraries(onnx_judge PRIVATE test_support)
if(c_flags MATCHES "sanitize=address")
    target_sources(onnx_judge PRIVATE support/sanitizers/keep_loaded.c)
endif()
add_dependencies(tests_onnx onnx_judge)
trama_register(onnx/judge onnx 240 onnx_judge --passing "${CMAKE_CURRENT_SOURCE_DIR}/onnx/passing.txt")

# The command trama onnx is a program of the examples.
if(TRAMA_EXAMPLES)
    add_dependencies(tests_onnx examples)
else()
    list(REMOVE_ITEM sources onnx/test_trama_onnx.c)
endif()
set(STARTS_MPI_test_trama_onnx ON)
set(LONG_ASAN_test_trama_onnx ON) # a start of the program for each model

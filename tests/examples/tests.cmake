# SPDX-License-Identifier: Apache-2.0
# The tests run the examples as programs: built with them and, where leaks are told, with their plugins kept loaded.
if(TRAMA_EXAMPLES)
    add_dependencies(tests_examples examples)
    if(c_flags MATCHES "sanitize=address")
        foreach(program cg hello_mesh embed own_rule own_op heat2d demo_mlp fashion_mnist slow_input
                transformer trama_command)
            target_sources(${program} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/support/sanitizers/keep_loaded.c")
        endforeach()
    endif()
endif()

if(NOT TRAMA_WITH_HDF5)
    list(REMOVE_ITEM sources examples/test_checkpoint.c)
elseif(TRAMA_EXAMPLES)
    trama_register(kills examples 3600 "${CMAKE_CURRENT_SOURCE_DIR}/kills" "${PROJECT_BINARY_DIR}/examples")
    trama_over_ranks(kills)
endif()
set(TIMEOUT_test_checkpoint 300)
set(TIMEOUT_test_trama_trace 300)
set(TIMEOUT_test_heat2d 240)
set(TIMEOUT_test_outputs 600)

# A StarPU program of known times, for the traces.
add_executable(examples_sleeper examples/sleeper.c)
set_target_properties(examples_sleeper PROPERTIES
    OUTPUT_NAME sleeper RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/examples")
target_link_libraries(examples_sleeper PRIVATE trama_inside)
add_dependencies(tests_examples examples_sleeper)

set(SOURCES_test_trama_trace_pictures trace_chrome json_stream trace_svg svg_bars svg_legend svg_text svg_view picture_parts
    ../read/trace_names ../../../common/must)
list(TRANSFORM SOURCES_test_trama_trace_pictures REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/examples/trama/trace/pictures/\\1.c")
foreach(program test_trama_rule test_trama_layout test_trama_reshard test_trama_large test_arguments
        test_outputs test_trama_trace)
    set(WITHOUT_WORKERS_${program} ON) # their programs start nothing, or end soon
endforeach()

# Whole programs, whose rooms the other folders test.
foreach(program test_arguments test_cg test_checkpoint test_demos test_fashion_mnist test_heat2d test_launch test_outputs
        test_trama_large test_trama_layout test_trama_rehearse test_trama_rule test_trama_trace test_trama_trace_made)
    set(LONG_ASAN_${program} ON)
endforeach()

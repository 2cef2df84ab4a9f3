# SPDX-License-Identifier: Apache-2.0
# The tests run the examples as programs: built with them and, where leaks are told, with their plugins kept loaded.
if(TRAMA_EXAMPLES)
    add_dependencies(tests_examples examples)
    if(c_flags MATCHES "sanitize=address")
        foreach(program hello_mesh own_rule demo_mlp fashion_mnist trama_command)
            target_sources(${program} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/support/sanitizers/keep_loaded.c")
        endforeach()
    endif()
endif()

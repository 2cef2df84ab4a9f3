# SPDX-License-Identifier: Apache-2.0
# On how many ranks tests run, where not on 2 and 4; seconds that they may take; which start MPI themselves.
set(STARTS_MPI_test_faults ON)
set(STARTS_MPI_test_leave ON)
set(TIMEOUT_test_leave 300)
set(RANKS_test_fork 2)
set(RANKS_test_random 2 4)
set(RANKS_test_mpi_train 2 3 4)
set(RANKS_test_mpi_merge_counts 1 2 4)
set(RANKS_test_mpi_delay 2)
set(RANKS_test_mpi_wrap 1 2 4)
set(RANKS_test_mpi_communicators 4)
set(RANKS_test_mpi_guest 2)
set(TIMEOUT_test_mpi_guest 300)
set(RANKS_test_mpi_halo 1 2 4)
set(RANKS_test_mpi_checkpoint 1 2 4)
set(RANKS_test_mpi_feed_local 1 2 4)
set(RANKS_test_mpi_masks 1 2 4)
if(TRAMA_WITH_CUDA)
    set(RANKS_test_collective 2 4)
endif()

# A plugin that links the library, unloaded by a program that does not, needs it as a shared library.
if(BUILD_SHARED_LIBS)
    add_library(tasks_plugin MODULE tasks/plugin.c)
    target_link_libraries(tasks_plugin PRIVATE trama)
    add_executable(tasks_plugin_host tasks/plugin_host.c)
    target_link_libraries(tasks_plugin_host PRIVATE ${CMAKE_DL_LIBS})
    set_target_properties(tasks_plugin tasks_plugin_host PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/tasks"
        LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/tasks")
    add_dependencies(tests_tasks tasks_plugin tasks_plugin_host)
    trama_register(tasks/unloaded tasks 120 tasks_plugin_host $<TARGET_FILE:tasks_plugin>)
endif()

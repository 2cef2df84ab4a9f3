# SPDX-License-Identifier: Apache-2.0
# The Fortran module trama: a library of its own beside trama's, target trama::fortran. Modules differ from compiler to
# compiler, so its sources are installed too.
set(sources tasks/trama_c.f90 tasks/trama.f90)
add_library(trama_fortran ${sources})
add_library(trama::fortran ALIAS trama_fortran)
set(TRAMA_FORTRAN_FLAGS "")
if(CMAKE_Fortran_COMPILER_ID STREQUAL "GNU")
    set(TRAMA_FORTRAN_FLAGS
        $<$<COMPILE_LANGUAGE:Fortran>:-std=f2008ts;-Wall;-Wextra;-Wpedantic>
        $<$<COMPILE_LANGUAGE:Fortran>:-Wno-compare-reals;-Wno-function-elimination>)
endif()
set(modules "${PROJECT_BINARY_DIR}/fortran")
set_target_properties(trama_fortran PROPERTIES EXPORT_NAME fortran Fortran_MODULE_DIRECTORY "${modules}"
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} INSTALL_RPATH "$ORIGIN")
target_compile_options(trama_fortran PRIVATE ${TRAMA_FORTRAN_FLAGS})
target_include_directories(trama_fortran INTERFACE
    $<BUILD_INTERFACE:${modules}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/trama/fortran>)
target_link_libraries(trama_fortran PUBLIC trama)

# The example shares its communicator with Trama where there is mpi_f08 for this compiler.
set(TRAMA_FORTRAN_MPI 0)
if(TRAMA_WITH_MPI)
    find_package(MPI QUIET COMPONENTS Fortran)
    if(MPI_Fortran_HAVE_F08_MODULE)
        set(TRAMA_FORTRAN_MPI 1)
    endif()
endif()

configure_file(cmake/trama-fortran.pc.in trama-fortran.pc @ONLY)
install(TARGETS trama_fortran EXPORT trama)
install(FILES ${sources} "${modules}/trama.mod" "${modules}/trama_c.mod"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/trama/fortran")
install(FILES "${PROJECT_BINARY_DIR}/trama-fortran.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

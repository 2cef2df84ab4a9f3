# SPDX-License-Identifier: Apache-2.0
# The Fortran module trama: the library trama_fortran, target trama::fortran. fortran.py writes a part of it from the
# public headers. Module files differ between compilers, so all sources are installed, too.
set(written "${PROJECT_BINARY_DIR}/fortran-sources")
set(generated "${written}/trama_types.f90" "${written}/trama_raw.f90" "${written}/trama_calls.f90")
set(by_hand support values layouts own wraps trama)
list(TRANSFORM by_hand PREPEND "${PROJECT_SOURCE_DIR}/tasks/fortran/")
list(TRANSFORM by_hand APPEND .f90)
file(GLOB scripts CONFIGURE_DEPENDS cmake/fortran*.py)
add_custom_command(OUTPUT ${generated} "${written}/left_out"
    COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/cmake/fortran.py" "${written}" "${CMAKE_C_COMPILER}"
        "${TRAMA_INCLUDE_DIR}" ${by_hand}
    DEPENDS ${scripts} ${by_hand} ${public_headers} COMMENT "Fortran module out of the public headers" VERBATIM)
set(sources ${generated} ${by_hand} tasks/fortran/array.c)
add_library(trama_fortran ${sources})
add_library(trama::fortran ALIAS trama_fortran)
set(TRAMA_FORTRAN_FLAGS "")
if(CMAKE_Fortran_COMPILER_ID STREQUAL "GNU") # which warns of variables that an assignment allocates
    set(TRAMA_FORTRAN_FLAGS
        $<$<COMPILE_LANGUAGE:Fortran>:-std=f2008ts;-Wall;-Wextra;-Wpedantic>
        $<$<COMPILE_LANGUAGE:Fortran>:-Wno-compare-reals;-Wno-function-elimination>
        $<$<COMPILE_LANGUAGE:Fortran>:-Wno-uninitialized;-Wno-maybe-uninitialized>)
endif()
set(modules "${PROJECT_BINARY_DIR}/fortran")
set_target_properties(trama_fortran PROPERTIES EXPORT_NAME fortran Fortran_MODULE_DIRECTORY "${modules}"
    VERSION ${PROJECT_VERSION} SOVERSION ${TRAMA_SOVERSION} INSTALL_RPATH "$ORIGIN")
target_compile_options(trama_fortran PRIVATE ${TRAMA_FORTRAN_FLAGS})
target_include_directories(trama_fortran INTERFACE
    $<BUILD_INTERFACE:${modules}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/trama/fortran>)
target_link_libraries(trama_fortran PUBLIC trama)

# The Fortran compiler defines array descriptors. A C compiler of another vendor does not find GNU's header.
include(CheckIncludeFile)
check_include_file(ISO_Fortran_binding.h TRAMA_HAVE_FORTRAN_BINDING)
if(NOT TRAMA_HAVE_FORTRAN_BINDING AND CMAKE_Fortran_COMPILER_ID STREQUAL "GNU")
    execute_process(COMMAND ${CMAKE_Fortran_COMPILER} -print-file-name=include/ISO_Fortran_binding.h
        OUTPUT_VARIABLE header OUTPUT_STRIP_TRAILING_WHITESPACE)
    configure_file("${header}" "${PROJECT_BINARY_DIR}/fortran-binding/ISO_Fortran_binding.h" COPYONLY)
    target_include_directories(trama_fortran PRIVATE "${PROJECT_BINARY_DIR}/fortran-binding")
endif()

# The example shares its communicator with Trama where this compiler has mpi_f08.
set(TRAMA_FORTRAN_MPI 0)
if(TRAMA_WITH_MPI)
    find_package(MPI QUIET COMPONENTS Fortran)
    if(MPI_Fortran_HAVE_F08_MODULE)
        set(TRAMA_FORTRAN_MPI 1)
    endif()
endif()

configure_file(cmake/trama-fortran.pc.in trama-fortran.pc @ONLY)
install(TARGETS trama_fortran EXPORT trama)
install(FILES ${sources} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/trama/fortran")
install(DIRECTORY "${modules}/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/trama/fortran"
    FILES_MATCHING PATTERN "trama*.mod")
install(FILES "${PROJECT_BINARY_DIR}/trama-fortran.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

# SPDX-License-Identifier: Apache-2.0
# The reference manual of the public headers. Target `manual` makes <build>/manual/html and man pages in
# <build>/manual/man; it needs Doxygen and Python. A manual that was made is installed (component manual).
find_package(Doxygen QUIET)
find_package(Python3 QUIET COMPONENTS Interpreter)
if(DOXYGEN_FOUND AND Python3_Interpreter_FOUND)
    set(TRAMA_MANUAL_DIR "${PROJECT_BINARY_DIR}/manual")
    configure_file(cmake/Doxyfile.in Doxyfile @ONLY)
    add_custom_target(manual
        COMMAND "${CMAKE_COMMAND}" -E rm -rf "${TRAMA_MANUAL_DIR}"
        COMMAND "${CMAKE_COMMAND}" -E make_directory "${TRAMA_MANUAL_DIR}"
        COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/cmake/manual.py" --man
            "${TRAMA_MANUAL_DIR}/man/man3" "${PROJECT_VERSION}" ${public_headers}
        COMMAND "${DOXYGEN_EXECUTABLE}" Doxyfile
        WORKING_DIRECTORY "${PROJECT_BINARY_DIR}" COMMENT "Reference manual" VERBATIM)
    install(DIRECTORY "${TRAMA_MANUAL_DIR}/html" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
        COMPONENT manual OPTIONAL)
    install(DIRECTORY "${TRAMA_MANUAL_DIR}/man/man3" DESTINATION "${CMAKE_INSTALL_MANDIR}"
        COMPONENT manual OPTIONAL)
endif()

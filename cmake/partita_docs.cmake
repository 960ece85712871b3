# SPDX-License-Identifier: Apache-2.0
# The target `docs`: the API reference, build/.../docs/html/index.html. Doxygen warnings are errors.
find_package(Doxygen 1.9.4 QUIET)

set(PARTITA_DOCS_OUTPUT ${PROJECT_BINARY_DIR}/docs)
if(TARGET Doxygen::doxygen)
  configure_file(${PROJECT_SOURCE_DIR}/docs/Doxyfile.in ${PARTITA_DOCS_OUTPUT}/Doxyfile @ONLY)
  add_custom_target(docs
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${PARTITA_DOCS_OUTPUT}/html
    COMMAND Doxygen::doxygen ${PARTITA_DOCS_OUTPUT}/Doxyfile
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    COMMENT "API reference: ${PARTITA_DOCS_OUTPUT}/html/index.html" VERBATIM)
else()
  add_custom_target(docs
    COMMAND ${CMAKE_COMMAND} -E echo "The API reference needs Doxygen 1.9.4 or newer: install the package doxygen and configure again."
    COMMAND ${CMAKE_COMMAND} -E false VERBATIM)
endif()

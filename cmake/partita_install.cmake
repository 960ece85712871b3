# SPDX-License-Identifier: Apache-2.0
# cmake --install installs the headers, a CMake package for find_package(partita COMPONENTS mpi blas ...), a
# pkg-config file and the licence; cpack -G DEB builds a Debian package with the same content.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# All files are architecture-independent.
set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/partita)
set(pkgconfig_dir ${CMAKE_INSTALL_DATADIR}/pkgconfig)

write_basic_package_version_file(${PROJECT_BINARY_DIR}/partitaConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
file(RELATIVE_PATH include_from_pkgconfig ${CMAKE_INSTALL_FULL_DATADIR}/pkgconfig ${CMAKE_INSTALL_FULL_INCLUDEDIR})
configure_file(${PROJECT_SOURCE_DIR}/cmake/partita.pc.in ${PROJECT_BINARY_DIR}/partita.pc @ONLY)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME headers)
install(TARGETS partita EXPORT partitaTargets FILE_SET HEADERS FILE_SET backend_headers)
install(EXPORT partitaTargets NAMESPACE partita:: DESTINATION ${package_dir})
install(FILES ${PROJECT_SOURCE_DIR}/cmake/partitaConfig.cmake ${PROJECT_BINARY_DIR}/partitaConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/partita_backends.cmake
              ${PROJECT_SOURCE_DIR}/cmake/partita_compiled.cmake
              ${PROJECT_SOURCE_DIR}/cmake/FindCBLAS.cmake ${PROJECT_SOURCE_DIR}/cmake/FindLAPACKE.cmake
              ${PROJECT_SOURCE_DIR}/cmake/FindLibZip.cmake ${PROJECT_SOURCE_DIR}/cmake/FindDLPack.cmake
              ${PROJECT_SOURCE_DIR}/cmake/FindMETIS.cmake ${PROJECT_SOURCE_DIR}/cmake/FindNCCL.cmake
        DESTINATION ${package_dir})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/cmake/compiled DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/partita.pc DESTINATION ${pkgconfig_dir})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

if(PROJECT_IS_TOP_LEVEL)
  set(CPACK_PACKAGE_CONTACT "The authors of partita")
  set(CPACK_COMPONENTS_ALL headers)
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_HEADERS_PACKAGE_NAME libpartita-dev)
  set(CPACK_DEBIAN_HEADERS_PACKAGE_ARCHITECTURE all)
  set(CPACK_DEBIAN_HEADERS_PACKAGE_SECTION libdevel)
  set(CPACK_COMPONENT_HEADERS_DESCRIPTION ${PROJECT_DESCRIPTION})
  include(CPack)
endif()

# cmake --install puts headers and a CMake package there; find_package(partita COMPONENTS mpi blas ...) reads it.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/partita)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/partitaConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION include)
install(TARGETS partita EXPORT partitaTargets)
install(EXPORT partitaTargets NAMESPACE partita:: DESTINATION ${package_dir})
install(FILES ${PROJECT_SOURCE_DIR}/cmake/partitaConfig.cmake ${PROJECT_BINARY_DIR}/partitaConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/partita_backends.cmake
              ${PROJECT_SOURCE_DIR}/cmake/FindCBLAS.cmake ${PROJECT_SOURCE_DIR}/cmake/FindLibZip.cmake
              ${PROJECT_SOURCE_DIR}/cmake/FindNCCL.cmake
        DESTINATION ${package_dir})

# SPDX-License-Identifier: Apache-2.0
# An overlay port: vcpkg install partita --overlay-ports=packaging/vcpkg/ports in the project's folder, whose sources it takes.
set(VCPKG_BUILD_TYPE release) # nothing is compiled
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -DPARTITA_BUILD_TESTS=OFF -DPARTITA_BUILD_EXAMPLES=OFF -DPARTITA_BUILD_BENCH=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/partita)
vcpkg_fixup_pkgconfig()
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
file(WRITE "${CURRENT_PACKAGES_DIR}/share/${PORT}/usage" [[
partita needs no backend; those of this machine are components:
  find_package(partita CONFIG REQUIRED)                           # COMPONENTS mpi blas ...
  target_link_libraries(main PRIVATE partita::partita)
]])

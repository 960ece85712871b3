# SPDX-License-Identifier: Apache-2.0
# Finds DLPack's header; defines DLPack::DLPack.
find_path(DLPack_INCLUDE_DIR dlpack/dlpack.h)
mark_as_advanced(DLPack_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(DLPack REQUIRED_VARS DLPack_INCLUDE_DIR)

if(DLPack_FOUND AND NOT TARGET DLPack::DLPack)
  add_library(DLPack::DLPack INTERFACE IMPORTED)
  target_include_directories(DLPack::DLPack SYSTEM INTERFACE ${DLPack_INCLUDE_DIR})
endif()

# SPDX-License-Identifier: Apache-2.0
# Finds LAPACKE, its header and a LAPACK library; defines LAPACKE::LAPACKE.
find_path(LAPACKE_INCLUDE_DIR lapacke.h PATH_SUFFIXES lapacke openblas)
find_library(LAPACKE_LIBRARY NAMES lapacke openblas)
find_library(LAPACKE_LAPACK_LIBRARY NAMES lapack openblas)
mark_as_advanced(LAPACKE_INCLUDE_DIR LAPACKE_LIBRARY LAPACKE_LAPACK_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LAPACKE REQUIRED_VARS LAPACKE_LIBRARY LAPACKE_LAPACK_LIBRARY LAPACKE_INCLUDE_DIR)

if(LAPACKE_FOUND AND NOT TARGET LAPACKE::LAPACKE)
  add_library(LAPACKE::LAPACKE UNKNOWN IMPORTED)
  set_target_properties(LAPACKE::LAPACKE PROPERTIES IMPORTED_LOCATION ${LAPACKE_LIBRARY}
                                                    INTERFACE_INCLUDE_DIRECTORIES ${LAPACKE_INCLUDE_DIR}
                                                    INTERFACE_LINK_LIBRARIES ${LAPACKE_LAPACK_LIBRARY})
endif()

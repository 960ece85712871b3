# SPDX-License-Identifier: Apache-2.0
# partita_note_globals() before partita is added or found, partita_refuse_leaks() after it: a project must find nothing
# changed but what is named partita and what the modules that find a dependency remember of it.

macro(partita_note_globals)
  get_property(languages_before GLOBAL PROPERTY ENABLED_LANGUAGES)
  set(variables_before)
  get_cmake_property(variables_before VARIABLES)
endmacro()

function(partita_refuse_leaks)
  get_cmake_property(variables VARIABLES)
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  list(REMOVE_ITEM languages ${languages_before})
  list(REMOVE_ITEM variables ${variables_before} variables_before)
  # CMake's own, the library's, and those of modules.
  list(FILTER variables EXCLUDE REGEX "^(CMAKE_(CURRENT_FUNCTION|PROJECT_VERSION)|ARG[CVN]|FIND_PACKAGE_MESSAGE_DETAILS)")
  list(FILTER variables EXCLUDE REGEX "^(PARTITA|partita)_")
  list(FILTER variables EXCLUDE REGEX "^((MPI|MPIEXEC|PKG_CONFIG|CBLAS|LAPACKE|LibZip|nlohmann_json|DLPack|METIS|NCCL|CUDAToolkit|CUDA|ZLIB)_|(CMAKE_(HAVE|USE)_)?P?THREAD|Threads_|CMAKE_(HAVE|THREAD)_)")
  if(languages OR variables)
    message(FATAL_ERROR "partita leaks: ${languages} ${variables}")
  endif()
endfunction()

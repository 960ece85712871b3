# SPDX-License-Identifier: Apache-2.0
# Enables CUDA in this build if nvcc is found; CMAKE_CUDA_COMPILER_LOADED is set if so. The library itself
# needs only the user's compiler.
include(CheckLanguage)

check_language(CUDA)
if(CMAKE_CUDA_COMPILER)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
    set(CMAKE_CUDA_ARCHITECTURES 90)
  endif()
  if(NOT CMAKE_CUDA_HOST_COMPILER AND NOT DEFINED ENV{CUDAHOSTCXX})
    set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
  endif()
  # Use the CUDA runtime that partita::cuda links.
  if(NOT DEFINED CMAKE_CUDA_RUNTIME_LIBRARY)
    set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
  endif()
  enable_language(CUDA)
else()
  # Do not warn about a preset's CUDA flags when nvcc is missing.
  set(unused ${CMAKE_CUDA_FLAGS})
endif()

# SPDX-License-Identifier: Apache-2.0
# Makes CUDA a language of this build where nvcc is found; CMAKE_CUDA_COMPILER_LOADED says whether it is one.
# The library itself needs no compiler but its user's.
include(CheckLanguage)

check_language(CUDA)
if(CMAKE_CUDA_COMPILER)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
    set(CMAKE_CUDA_ARCHITECTURES 90)
  endif()
  if(NOT CMAKE_CUDA_HOST_COMPILER AND NOT DEFINED ENV{CUDAHOSTCXX})
    set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
  endif()
  # One runtime for all: the one that partita::cuda links.
  if(NOT DEFINED CMAKE_CUDA_RUNTIME_LIBRARY)
    set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
  endif()
  enable_language(CUDA)
else()
  # A preset's flags for nvcc are no mistake where there is none.
  set(unused ${CMAKE_CUDA_FLAGS})
endif()

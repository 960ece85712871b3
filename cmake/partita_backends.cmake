# SPDX-License-Identifier: Apache-2.0
# The optional targets of partita. Used by its own build and, installed next to partitaConfig.cmake, by
# dependent projects, so that the available backends depend on the user's system rather than the packager's.

set(partita_backends mpi blas lapack npz zlib json dlpack metis cuda cublas cusparse nccl)

# How each dependency is found, by a module of its own where others have none or one that fails where tools are missing, what is
# linked, and which other backend it requires.
set(partita_mpi_package MPI COMPONENTS CXX)
set(partita_mpi_target MPI::MPI_CXX)
set(partita_blas_package CBLAS MODULE)
set(partita_blas_target CBLAS::CBLAS)
set(partita_lapack_package LAPACKE MODULE)
set(partita_lapack_target LAPACKE::LAPACKE)
set(partita_lapack_base blas)
set(partita_npz_package LibZip MODULE)
set(partita_npz_target LibZip::LibZip)
set(partita_zlib_package ZLIB)
set(partita_zlib_target ZLIB::ZLIB)
set(partita_json_package nlohmann_json)
set(partita_json_target nlohmann_json::nlohmann_json)
set(partita_dlpack_package DLPack MODULE)
set(partita_dlpack_target DLPack::DLPack)
set(partita_metis_package METIS MODULE)
set(partita_metis_target METIS::METIS)
set(partita_cuda_package CUDAToolkit)
set(partita_cuda_target CUDA::cudart)
set(partita_cublas_package CUDAToolkit)
set(partita_cublas_target CUDA::cublasLt)
set(partita_cublas_base cuda)
set(partita_cusparse_package CUDAToolkit)
set(partita_cusparse_target CUDA::cusparse)
set(partita_cusparse_base cuda)
set(partita_nccl_package NCCL MODULE)
set(partita_nccl_target NCCL::NCCL)
set(partita_nccl_base cuda)

# partita_add_backend(NAME [GLOBAL]): defines partita::NAME, and the backends it requires, if its dependency
# is found.
function(partita_add_backend name)
  set(base ${partita_${name}_base})
  if(base)
    partita_add_backend(${base} ${ARGN})
  endif()
  if(NOT TARGET partita::${name})
    find_package(${partita_${name}_package} QUIET)
    if(TARGET ${partita_${name}_target})
      add_library(partita::${name} INTERFACE IMPORTED ${ARGN})
      target_link_libraries(partita::${name} INTERFACE partita::partita ${partita_${name}_target})
      if(base)
        target_link_libraries(partita::${name} INTERFACE partita::${base})
      endif()
      if(name STREQUAL "cuda")
        partita_describe_cuda()
      endif()
    endif()
  endif()
endfunction()

# Kernels call constexpr functions, which nvcc compiles for the device only with this flag. Since CUDA 13,
# Thrust and CUB are in a directory of their own, which only nvcc searches by default.
function(partita_describe_cuda)
  target_compile_options(partita::cuda INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
  if("cuda_std_20" IN_LIST CMAKE_CUDA_COMPILE_FEATURES)
    target_compile_features(partita::cuda INTERFACE cuda_std_20)
  elseif(CMAKE_CUDA_COMPILER_LOADED)
    # CMake 3.25 does not know that nvcc supports it.
    target_compile_options(partita::cuda INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>)
  endif()
  find_path(PARTITA_THRUST_INCLUDE_DIR thrust/version.h PATHS ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES cccl
            NO_DEFAULT_PATH)
  mark_as_advanced(PARTITA_THRUST_INCLUDE_DIR)
  if(PARTITA_THRUST_INCLUDE_DIR)
    target_include_directories(partita::cuda SYSTEM INTERFACE ${PARTITA_THRUST_INCLUDE_DIR})
  endif()
endfunction()

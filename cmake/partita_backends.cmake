# The optional targets of partita. Read by its build and, installed beside partitaConfig.cmake, by its users,
# so that what an installed partita can do depends on what its user has and not on what its packager had.

set(partita_backends mpi openmp blas npz)

# How each dependency is found, and what is linked.
set(partita_mpi_package MPI COMPONENTS CXX)
set(partita_mpi_target MPI::MPI_CXX)
set(partita_openmp_package OpenMP COMPONENTS CXX)
set(partita_openmp_target OpenMP::OpenMP_CXX)
set(partita_blas_package CBLAS)
set(partita_blas_target CBLAS::CBLAS)
set(partita_npz_package LibZip)
set(partita_npz_target LibZip::LibZip)

# partita_add_backend(NAME [GLOBAL]): makes partita::NAME if its dependency is found.
macro(partita_add_backend name)
  if(NOT TARGET partita::${name})
    find_package(${partita_${name}_package} QUIET)
    if(TARGET ${partita_${name}_target})
      add_library(partita::${name} INTERFACE IMPORTED ${ARGN})
      target_link_libraries(partita::${name} INTERFACE partita::partita ${partita_${name}_target})
    endif()
  endif()
endmacro()

# SPDX-License-Identifier: Apache-2.0
# find_package(partita [COMPONENTS mpi blas npz dlpack cuda cublas cusparse nccl]) defines partita::partita,
# which requires only threads, and one target per requested component; also partita::compiled and, if CUDA is
# enabled in the project and requested as a component, partita::compiled_cuda.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/partitaTargets.cmake)

# Scopes the variables set here; only those that find_package reads are visible to the caller.
block()
  include(${CMAKE_CURRENT_LIST_DIR}/partita_backends.cmake)
  list(PREPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR})
  foreach(component IN LISTS partita_FIND_COMPONENTS)
    if(component IN_LIST partita_backends)
      partita_add_backend(${component})
      list(GET partita_${component}_package 0 package)
      set(reason "The component ${component} of partita needs ${package}, which was not found.")
    else()
      list(JOIN partita_backends ", " known)
      set(reason "partita has no component ${component}; it has ${known}.")
    endif()
    if(TARGET partita::${component})
      set(partita_${component}_FOUND TRUE PARENT_SCOPE)
    else()
      set(partita_${component}_FOUND FALSE PARENT_SCOPE)
      set(partita_NOT_FOUND_MESSAGE ${reason} PARENT_SCOPE)
      if(partita_FIND_REQUIRED_${component})
        set(partita_FOUND FALSE PARENT_SCOPE)
      endif()
    endif()
  endforeach()
  include(${CMAKE_CURRENT_LIST_DIR}/partita_compiled.cmake)
  partita_add_compiled(${CMAKE_CURRENT_LIST_DIR}/compiled)
endblock()

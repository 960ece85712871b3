# SPDX-License-Identifier: Apache-2.0
# find_package(partita [COMPONENTS mpi blas npz dlpack cuda cublas cusparse nccl]) makes partita::partita, which
# needs nothing but threads, and a target for each component that is asked for; also partita::compiled and, where CUDA is a
# language of the project and a component, partita::compiled_cuda.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/partitaTargets.cmake)

# Its users see none of the variables that are set here, but those that find_package reads.
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

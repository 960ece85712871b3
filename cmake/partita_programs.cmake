# SPDX-License-Identifier: Apache-2.0
# Functions shared by tests, examples and benchmarks.

# What cannot be built or tested on this machine, one sentence per line; read by ./check.
set(PARTITA_NOT_TESTED ${PROJECT_BINARY_DIR}/not_tested.txt)
file(WRITE ${PARTITA_NOT_TESTED} "")

function(partita_not_tested sentence)
  message(STATUS "partita: ${sentence}")
  file(APPEND ${PARTITA_NOT_TESTED} "${sentence}\n")
endfunction()

# What is tested with something else than its users have, or needs another processor, one sentence per line; read by ./check, too.
set(PARTITA_TESTED_OTHERWISE ${PROJECT_BINARY_DIR}/tested_otherwise.txt)
file(WRITE ${PARTITA_TESTED_OTHERWISE} "")

function(partita_tested_otherwise sentence)
  message(STATUS "partita: ${sentence}")
  file(APPEND ${PARTITA_TESTED_OTHERWISE} "${sentence}\n")
endfunction()

# partita_use(TARGET mpi blas ...): links each available backend and defines PARTITA_WITH_MPI, ...
# accordingly.
function(partita_use target)
  target_link_libraries(${target} PRIVATE partita::partita)
  foreach(backend IN LISTS ARGN)
    if(TARGET partita::${backend})
      string(TOUPPER ${backend} name)
      target_link_libraries(${target} PRIVATE partita::${backend})
      target_compile_definitions(${target} PRIVATE PARTITA_WITH_${name})
    endif()
  endforeach()
endfunction()

# partita_add_golden_cases(): the library golden_cases, which reads golden cases; no target without
# nlohmann_json.
function(partita_add_golden_cases)
  if(nlohmann_json_FOUND AND NOT TARGET golden_cases)
    add_library(golden_cases OBJECT EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/examples/golden/case.cpp)
    target_link_libraries(golden_cases PRIVATE nlohmann_json::nlohmann_json)
    partita_use(golden_cases)
  endif()
endfunction()

# partita_add_cuda_training(NAME): training on CUDA devices and the assignment of devices to ranks, with every
# available vendor library; no target without nvcc.
function(partita_add_cuda_training name)
  if(TARGET partita::compiled_cuda)
    add_library(${name} OBJECT ${PROJECT_SOURCE_DIR}/examples/ranks/cuda_device.cu)
    partita_use(${name} cuda cublas cusparse nccl)
    # Dependents need the same libraries, and the kernel compile flags.
    foreach(library compiled_cuda cuda cublas cusparse nccl)
      if(TARGET partita::${library})
        target_link_libraries(${name} INTERFACE partita::${library})
      endif()
    endforeach()
  endif()
endfunction()

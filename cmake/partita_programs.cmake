# SPDX-License-Identifier: Apache-2.0
# What tests, examples and benchmarks have in common.

# What cannot be built or tested here, one sentence a line; ./check reads it.
set(PARTITA_NOT_TESTED ${PROJECT_BINARY_DIR}/not_tested.txt)
file(WRITE ${PARTITA_NOT_TESTED} "")

function(partita_not_tested sentence)
  message(STATUS "partita: ${sentence}")
  file(APPEND ${PARTITA_NOT_TESTED} "${sentence}\n")
endfunction()

# partita_use(TARGET mpi blas ...): links each backend that is here and defines PARTITA_WITH_MPI, ... for it.
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

# partita_add_training(NAME OPTIMIZATION -O3 PRECISIONS f32 ... [BACKENDS ...]): training on the host, compiled once for the
# programs that link NAME; in Release with this level.
function(partita_add_training name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "OPTIMIZATION" "PRECISIONS;BACKENDS")
  list(TRANSFORM arg_PRECISIONS PREPEND ${PROJECT_SOURCE_DIR}/examples/training/host_ OUTPUT_VARIABLE sources)
  list(TRANSFORM sources APPEND .cpp)
  add_library(${name} OBJECT ${sources})
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:${arg_OPTIMIZATION}>)
  partita_use(${name} ${arg_BACKENDS})
endfunction()

# partita_add_golden_cases(): the library golden_cases reads golden cases; no target without nlohmann_json.
function(partita_add_golden_cases)
  if(nlohmann_json_FOUND AND NOT TARGET golden_cases)
    add_library(golden_cases OBJECT ${PROJECT_SOURCE_DIR}/examples/golden/case.cpp)
    target_link_libraries(golden_cases PRIVATE nlohmann_json::nlohmann_json)
    partita_use(golden_cases)
  endif()
endfunction()

# partita_add_cuda_training(NAME): the same on CUDA devices, with every library for them that is here; no target without
# nvcc.
function(partita_add_cuda_training name)
  if(CMAKE_CUDA_COMPILER_LOADED AND TARGET partita::cuda)
    set(folder ${PROJECT_SOURCE_DIR}/examples/training)
    add_library(${name} OBJECT ${folder}/cuda_f32.cu ${folder}/cuda_f64.cu ${folder}/cuda_device.cu)
    partita_use(${name} cuda cublas cusparse nccl)
    # What links it needs the same libraries, and the flags with which kernels are compiled.
    foreach(backend cuda cublas cusparse nccl)
      if(TARGET partita::${backend})
        target_link_libraries(${name} INTERFACE partita::${backend})
      endif()
    endforeach()
  endif()
endfunction()

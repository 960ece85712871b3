# SPDX-License-Identifier: Apache-2.0
# Options of this project; see docs/install.md.
include(CMakeDependentOption)

option(PARTITA_INSTALL "Install the headers and the CMake package" ${PROJECT_IS_TOP_LEVEL})
option(PARTITA_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(PARTITA_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(PARTITA_BUILD_BENCH "Build the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(PARTITA_OPTIMIZED_BENCH "Benchmarks are compiled as the build type says, not with -O0" ON)
option(PARTITA_NATIVE "Tests, examples and benchmarks use every instruction of this machine" OFF)
set(PARTITA_PRECISIONS f32 f64 CACHE STRING "What train, predict and golden can compute in")
set(PARTITA_TESTS library programs house device CACHE STRING
    "Which tests: those of the library on the host, of the programs, of the sources and packages, on CUDA devices; see docs/install.md")
option(PARTITA_PRECOMPILED_TESTS "Tests of the library precompile its headers: a change of any compiles all of them anew" OFF)
option(PARTITA_FUZZERS "Build the fuzzers of the readers, which need clang" OFF)

# PARTITA_MPI, PARTITA_BLAS, ...
foreach(backend IN LISTS partita_backends)
  string(TOUPPER PARTITA_${backend} option)
  list(GET partita_${backend}_package 0 package)
  set(${option} AUTO CACHE STRING "Make partita::${backend}: AUTO where ${package} is found, ON or stop, OFF never")
  set_property(CACHE ${option} PROPERTY STRINGS AUTO ON OFF)
  if(NOT ${option} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "${option} is ${${option}}, and must be AUTO, ON or OFF.")
  endif()
  string(TOUPPER PARTITA_${partita_${backend}_base} base)
  if(DEFINED partita_${backend}_base AND NOT ${base})
    if(${option} STREQUAL "ON")
      message(FATAL_ERROR "${option} is ON, but ${base}, which it needs, is OFF.")
    endif()
    set(${option} OFF)
  endif()
endforeach()

cmake_dependent_option(PARTITA_NVCC "Build those of them that nvcc compiles, if it is found" ${PROJECT_IS_TOP_LEVEL}
                       "PARTITA_CUDA;PARTITA_BUILD_TESTS OR PARTITA_BUILD_EXAMPLES OR PARTITA_BUILD_BENCH" OFF)

# SPDX-License-Identifier: Apache-2.0
# Registration of tests. The tests themselves are listed in tests/CMakeLists.txt.
#
# NAME is the path of a source in tests/ without its extension, such as algebra/spmm; the test and its program
# are named algebra_spmm.
#
#   partita_add_test(NAME [SOURCES FILE...] [BACKENDS mpi blas ...] [LIBRARIES TARGET...] [LABELS ...]
#                    [THREADS NAME...] [ONCE] [UNSANITIZED NAME...] [TIMEOUT SECONDS] [OPTIMIZED] [NEEDS_DATA]
#                    [NEEDS_GOLDEN])
#     A doctest program from NAME.cpp, or from SOURCES. It is registered only if all of its BACKENDS and LIBRARIES
#     are available. With PARTITA_TESTS=threads there are only those that THREADS names, for the thread sanitizer. OPTIMIZED
#     compiles it with -O1 in Release; other tests are not optimised.
#     Most tests are built twice by ./check: for the address sanitizer, where they see fewer meshes (PARTITA_TESTS=memory), and
#     without it (PARTITA_TESTS=optimized). ONCE: for the sanitizer alone, with all meshes. UNSANITIZED: what does nothing to
#     memory that other tests do not do is not built for it.
#
#   partita_add_tests(PROGRAM TESTS NAME... [the same])
#     One program from several files NAME.cpp, compiled as one unit, which halves the time; each is registered as a test
#     of its own.
#
#   partita_add_mpi_test(NAME RANKS N... [the same])
#     As above under mpirun, once per number of ranks, the address sanitizer's on 2 and 4: tests NAME_1, NAME_2, ...,
#     labels mpi and ranks_N.
#
#   partita_add_script_test(NAME COMMAND ARG... [LABELS ...] [TIMEOUT SECONDS] [RANKS N] [NEEDS_DATA] [NEEDS_GOLDEN])
#     Any command.
#
# NEEDS_DATA and NEEDS_GOLDEN register a test only if the corresponding folder exists. Every test receives the
# existing folders in its environment, as PARTITA_DATA and PARTITA_GOLDEN, and tests/golden as PARTITA_OWN_GOLDEN.

function(partita_test_folder name default meaning)
  if(DEFINED ENV{${name}})
    set(default $ENV{${name}})
  endif()
  cmake_path(ABSOLUTE_PATH default BASE_DIRECTORY ${PROJECT_SOURCE_DIR} NORMALIZE)
  set(${name} ${default} CACHE PATH "${meaning}")
  if(NOT IS_DIRECTORY ${${name}})
    partita_not_tested("${meaning}: not tested, there is no folder ${${name}}")
  endif()
endfunction()

partita_test_folder(PARTITA_DATA ../shared/data "real data")
partita_test_folder(PARTITA_GOLDEN ../shared/golden "golden cases")

# Include paths are relative to tests/ or to the project's root.
set(partita_test_includes ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR})

# partita_add_common(NAME SOURCE... [BACKENDS mpi ...]): code shared by several tests, compiled once.
function(partita_add_common name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "BACKENDS")
  add_library(${name} OBJECT ${arg_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PRIVATE ${partita_test_includes})
  target_link_libraries(${name} PUBLIC doctest::doctest)
  partita_use(${name} ${arg_BACKENDS})
endfunction()

set(test_options OPTIMIZED ONCE NEEDS_DATA NEEDS_GOLDEN)
set(test_values TIMEOUT)
set(test_lists SOURCES BACKENDS LIBRARIES LABELS THREADS UNSANITIZED)

# Sets `usable` in the caller: whether the test is asked for and everything it needs is available. What is missing is
# reported elsewhere.
macro(partita_find_needs)
  set(usable TRUE)
  if(PARTITA_TESTS STREQUAL "threads")
    set(arg_TESTS ${arg_THREADS})
    if(NOT arg_THREADS)
      set(usable FALSE)
    endif()
  endif()
  if(PARTITA_TESTS STREQUAL "memory" AND arg_UNSANITIZED)
    list(REMOVE_ITEM arg_TESTS ${arg_UNSANITIZED})
    if(NOT arg_TESTS)
      set(usable FALSE)
    endif()
  endif()
  if(arg_ONCE AND "optimized" IN_LIST PARTITA_TESTS)
    set(usable FALSE)
  endif()
  foreach(backend IN LISTS arg_BACKENDS)
    if(NOT TARGET partita::${backend})
      set(usable FALSE)
    endif()
  endforeach()
  foreach(library IN LISTS arg_LIBRARIES)
    if(NOT TARGET ${library})
      set(usable FALSE)
    endif()
  endforeach()
  foreach(folder DATA GOLDEN)
    if(arg_NEEDS_${folder} AND NOT IS_DIRECTORY ${PARTITA_${folder}})
      set(usable FALSE)
    endif()
  endforeach()
endmacro()

# Sets `variable` in the caller to the name of the test PATH.
function(partita_name_test variable path)
  string(REPLACE "/" "_" name ${path})
  set(${variable} ${name} PARENT_SCOPE)
endfunction()

macro(partita_build_test name main)
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${partita_test_includes})
  target_link_libraries(${name} PRIVATE ${main} ${arg_LIBRARIES})
  partita_use(${name} ${arg_BACKENDS})
  if(TARGET precompiled)
    target_precompile_headers(${name} REUSE_FROM precompiled)
  endif()
  if(arg_OPTIMIZED)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
endmacro()

# Sets `variable` in the caller to the environment of every test. A rank is a thread: with frames for use after return of at
# most 64 KiB of a size, tests under the address sanitizer take two thirds of the time.
function(partita_test_environment variable)
  set(asan_options max_uar_stack_size_log=16)
  if("${ARGN}" MATCHES "^[12]$")
    # Call stacks as deep as leaks_of_others.txt needs to match the leaks of MPI's modules.
    string(APPEND asan_options :fast_unwind_on_malloc=0:malloc_context_size=24)
  elseif(ARGN)
    # On more ranks such stacks take ten times as long as the test, which leaks nothing more.
    string(APPEND asan_options :detect_leaks=0)
  endif()
  set(environment ASAN_OPTIONS=${asan_options} TSAN_OPTIONS=halt_on_error=1
                  LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/leaks_of_others.txt:print_suppressions=0
                  PARTITA_OWN_GOLDEN=${PROJECT_SOURCE_DIR}/tests/golden)
  foreach(folder DATA GOLDEN)
    if(IS_DIRECTORY ${PARTITA_${folder}})
      list(APPEND environment PARTITA_${folder}=${PARTITA_${folder}})
    endif()
  endforeach()
  set(${variable} ${environment} PARENT_SCOPE)
endfunction()

function(partita_describe_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "${test_options}" "${test_values};RANKS" "${test_lists};COMMAND;TESTS")
  partita_test_environment(environment ${arg_RANKS})
  if(arg_ONCE AND PARTITA_TESTS STREQUAL "memory")
    list(APPEND environment PARTITA_ALL_MESHES=1)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "${environment}" LABELS "${arg_LABELS}"
                                          TIMEOUT ${arg_TIMEOUT})
  if(arg_RANKS)
    set_tests_properties(${name} PROPERTIES PROCESSORS ${arg_RANKS})
  endif()
endfunction()

function(partita_add_test path)
  cmake_parse_arguments(PARSE_ARGV 1 arg "${test_options}" "${test_values}" "${test_lists}")
  set(arg_TESTS ${path})
  partita_find_needs()
  partita_name_test(name ${path})
  if(NOT arg_SOURCES)
    set(arg_SOURCES ${path}.cpp)
  endif()
  if(usable)
    partita_build_test(${name} main)
    add_test(NAME ${name} COMMAND ${name})
    partita_describe_test(${name} ${ARGN})
  endif()
endfunction()

# partita_add_tests_of_instructions(local/host ...): compiles these tests for any x86-64, and runs them with each set
# of instructions that this machine has; the last of them is what they choose by themselves, and sanitizers see that alone.
function(partita_add_tests_of_instructions)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" OR PARTITA_TESTS MATCHES "^(memory|threads)$")
    return()
  endif()
  file(STRINGS /proc/cpuinfo flags REGEX "^flags" LIMIT_COUNT 1)
  set(sets baseline)
  foreach(set avx2 avx512)
    string(REPLACE avx512 avx512vl flag ${set})
    if(flags MATCHES " ${flag}( |$)")
      list(APPEND sets ${set})
    else()
      partita_tested_otherwise("kernels in ${set}: compiled and not run, this processor does not have it")
    endif()
  endforeach()
  list(POP_BACK sets)
  foreach(path IN LISTS ARGN)
    partita_name_test(name ${path})
    target_compile_options(${name} PRIVATE -march=x86-64)
    set_target_properties(${name} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)  # those are for the machine's usual instructions
    partita_test_environment(environment)
    foreach(set IN LISTS sets)
      add_test(NAME ${name}_${set} COMMAND ${name})
      set_tests_properties(${name}_${set} PROPERTIES ENVIRONMENT "${environment};PARTITA_ISA=${set}" TIMEOUT 300)
    endforeach()
  endforeach()
endfunction()

function(partita_add_tests program)
  cmake_parse_arguments(PARSE_ARGV 1 arg "${test_options}" "${test_values}" "${test_lists};TESTS")
  partita_find_needs()
  if(usable)
    list(TRANSFORM arg_TESTS APPEND .cpp OUTPUT_VARIABLE arg_SOURCES)
    partita_build_test(${program} main)
    set_target_properties(${program} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
    foreach(path IN LISTS arg_TESTS)
      partita_name_test(test ${path})
      add_test(NAME ${test} COMMAND ${program} --source-file=*/tests/${path}.cpp)
      partita_describe_test(${test} ${ARGN})
    endforeach()
  endif()
endfunction()

function(partita_add_mpi_test path)
  cmake_parse_arguments(PARSE_ARGV 1 arg "${test_options}" "${test_values}" "${test_lists};RANKS")
  list(APPEND arg_BACKENDS mpi)
  set(arg_TESTS ${path})
  if(PARTITA_TESTS STREQUAL "memory")
    list(FILTER arg_RANKS INCLUDE REGEX "^[24]$")
  endif()
  partita_find_needs()
  partita_name_test(name ${path})
  if(NOT arg_SOURCES)
    set(arg_SOURCES ${path}.cpp)
  endif()
  if(usable)
    partita_build_test(${name} main_mpi)
    foreach(ranks IN LISTS arg_RANKS)
      add_test(NAME ${name}_${ranks}
               COMMAND ${PROJECT_SOURCE_DIR}/tests/programs/mpi_launch.sh ${MPIEXEC_EXECUTABLE} ${ranks}
                       $<TARGET_FILE:${name}> --ranks ${ranks})
      partita_describe_test(${name}_${ranks} RANKS ${ranks} LABELS mpi ranks_${ranks} ${arg_LABELS}
                            TIMEOUT ${arg_TIMEOUT})
    endforeach()
  endif()
endfunction()

function(partita_add_script_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "${test_options}" "${test_values};RANKS" "${test_lists};COMMAND")
  partita_find_needs()
  if(usable)
    add_test(NAME ${name} COMMAND ${arg_COMMAND})
    partita_describe_test(${name} ${ARGN})
    # Of the 0.1 s in which a program with CUDA starts, half goes into loading libcublasLt, which the host does not use.
    if(PARTITA_EMULATOR AND EMULATOR_DIR)
      set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT_MODIFICATION LD_LIBRARY_PATH=path_list_prepend:${EMULATOR_DIR})
    endif()
  endif()
endfunction()

# SPDX-License-Identifier: Apache-2.0
# Registration of tests that need a CUDA device; the common options are those of cmake/partita_tests.cmake.
#
#   partita_add_device_test(NAME [TESTS FILE...] [SOURCES FILE...] [BACKENDS cublas ...] [LIBRARIES TARGET...]
#                           [CONTROLS_EMULATOR] [NEEDS_CARD REASON] [NOT_ON_CARD PATTERN] [DEVICES N] [MPI_RANKS N...]
#                           [LABELS ...] [TIMEOUT SECONDS] [NEEDS_DATA] [NEEDS_GOLDEN])
#     A doctest program from NAME.cu, or from SOURCES. TESTS lists sources FILE.cpp that nvcc compiles as one unit;
#     each is registered as a test of its own. With MPI_RANKS the program runs under mpirun. Test cases of sources that
#     PATTERN names are for the emulator alone.
#
#   partita_add_device_script_test(NAME COMMAND ARG... [ON_CARD ARG...] [NEEDS_CARD REASON] [DEVICES N] [LABELS ...]
#                                  [TIMEOUT SECONDS] [NEEDS_DATA] [NEEDS_GOLDEN])
#     Any command; ON_CARD replaces it on a physical GPU.
#
# DEVICES is the number of devices a test needs (default: 1).
#
# Each is registered as an emulator test (label ptx), whose program loads the emulator's libraries in place of
# CUDA's. If ctest detects a device at start-up, it is also registered as gpu_NAME (label gpu) with
# PARTITA_ON_CARD in its environment, unless it includes emulator/control.hpp (CONTROLS_EMULATOR). NEEDS_CARD
# gives the reason why a test requires a physical GPU; without one, such tests are listed in needs_card.txt in
# the build directory, which ./check prints.

option(PARTITA_EMULATOR "Tests of CUDA devices build the emulator, on which they run without a card" ON)
mark_as_advanced(PARTITA_EMULATOR)
set_property(GLOBAL PROPERTY partita_gpu_test_script "")
set(PARTITA_NEEDS_CARD ${PROJECT_BINARY_DIR}/needs_card.txt)
file(REMOVE ${PARTITA_NEEDS_CARD})
add_custom_target(gpu_tests COMMENT "All that the tests with the label gpu run")
add_custom_target(device_tests COMMENT "All that the tests with the labels gpu and ptx run")
add_dependencies(device_tests gpu_tests)

set(partita_device_tests FALSE)
if(NOT "device" IN_LIST PARTITA_TESTS)
  message(STATUS "partita: tests of CUDA devices: not asked for")
elseif(CMAKE_CUDA_COMPILER_LOADED AND TARGET partita::cuda)
  set(partita_device_tests TRUE)
  add_executable(has_device ${PROJECT_SOURCE_DIR}/tests/programs/has_device.cpp)
  partita_use(has_device cuda)
  add_dependencies(gpu_tests has_device)
  cmake_language(DEFER CALL partita_write_gpu_tests)
else()
  partita_not_tested("tests of CUDA devices: not built, nvcc or the CUDA toolkit was not found or is switched off")
endif()

set(device_options ${test_options} CONTROLS_EMULATOR)
set(device_values ${test_values} NEEDS_CARD NOT_ON_CARD DEVICES)
set(device_lists ${test_lists} TESTS MPI_RANKS COMMAND ON_CARD)

# Lets ctest register gpu_NAME, which runs COMMAND, if there is a device.
function(partita_register_gpu_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "${device_options}" "${device_values}" "${device_lists}")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  set(labels gpu ${arg_LABELS})
  partita_test_environment(environment)
  list(APPEND environment PARTITA_ON_CARD=1)
  set(command)
  foreach(word IN LISTS arg_COMMAND)
    string(APPEND command " [==[${word}]==]")
  endforeach()
  if(NOT arg_DEVICES)
    set(arg_DEVICES 1)
  endif()
  string(CONCAT lines "if(devices GREATER_EQUAL ${arg_DEVICES})\n"
                "  add_test(gpu_${name}${command})\n"
                "  set_tests_properties(gpu_${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS [==[${labels}]==]\n"
                "                       ENVIRONMENT [==[${environment}]==])\n")
  if(arg_NEEDS_CARD)
    string(APPEND lines "else()\n  string(APPEND missing [==[gpu_${name}: ${arg_NEEDS_CARD}\n]==])\n")
  endif()
  string(APPEND lines "endif()\n")
  set_property(GLOBAL APPEND_STRING PROPERTY partita_gpu_test_script "${lines}")
endfunction()

# Registers NAME, which runs COMMAND on the emulator.
function(partita_register_emulator_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "${device_options}" "${device_values}" "${device_lists}")
  add_test(NAME ${name} COMMAND ${arg_COMMAND})
  partita_describe_test(${name} LABELS ptx ${arg_LABELS} TIMEOUT ${arg_TIMEOUT})
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT_MODIFICATION LD_LIBRARY_PATH=path_list_prepend:${EMULATOR_DIR})
  if(arg_DEVICES)
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT EMULATOR_DEVICES=8)
  endif()
  if(cusparse IN_LIST arg_BACKENDS)
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT EMULATOR_CUSPARSE=1)
  endif()
endfunction()

function(partita_depend_on_emulator target)
  if(PARTITA_EMULATOR)
    add_dependencies(${target} emulator)
  endif()
endfunction()

function(partita_add_device_test path)
  cmake_parse_arguments(PARSE_ARGV 1 arg "${device_options}" "${device_values}" "${device_lists}")
  list(APPEND arg_BACKENDS cuda)
  set(main main)
  if(arg_MPI_RANKS)
    list(APPEND arg_BACKENDS mpi)
    set(main main_mpi)
  endif()
  partita_find_needs()
  if(NOT usable OR NOT partita_device_tests)
    return()
  endif()
  partita_name_test(name ${path})
  if(arg_TESTS)
    set(includes)
    foreach(test IN LISTS arg_TESTS)
      string(APPEND includes "#include \"${test}.cpp\"\n")
    endforeach()
    file(CONFIGURE OUTPUT ${name}.cu CONTENT "${includes}")
    set(arg_SOURCES ${CMAKE_CURRENT_BINARY_DIR}/${name}.cu)
  elseif(NOT arg_SOURCES)
    set(arg_SOURCES ${path}.cu)
  endif()
  if(arg_CONTROLS_EMULATOR)
    list(PREPEND arg_LIBRARIES emulated_cudart)
  endif()
  partita_build_test(${name} ${main})
  partita_depend_on_emulator(${name})
  add_dependencies(device_tests ${name})
  if(arg_CONTROLS_EMULATOR)  # the libraries of one name come from the environment
    set_target_properties(${name} PROPERTIES SKIP_BUILD_RPATH TRUE)
  endif()
  if(NOT arg_CONTROLS_EMULATOR)
    add_dependencies(gpu_tests ${name})
  endif()
  set(about LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT} DEVICES ${arg_DEVICES} BACKENDS ${arg_BACKENDS})
  foreach(ranks IN LISTS arg_MPI_RANKS)
    partita_register_emulator_test(${name}_${ranks} ${about} COMMAND ${PROJECT_SOURCE_DIR}/tests/programs/mpi_launch.sh
      ${MPIEXEC_EXECUTABLE} ${ranks} $<TARGET_FILE:${name}> --ranks ${ranks})
    set_tests_properties(${name}_${ranks} PROPERTIES PROCESSORS ${ranks})
  endforeach()
  foreach(source IN LISTS arg_TESTS)
    partita_name_test(test ${source})
    partita_register_emulator_test(${test} ${about} COMMAND ${name} --source-file=*/tests/${source}.cpp)
  endforeach()
  if(NOT arg_TESTS AND NOT arg_MPI_RANKS)
    partita_register_emulator_test(${name} ${about} COMMAND ${name})
  endif()
  if(NOT arg_CONTROLS_EMULATOR AND NOT arg_MPI_RANKS)
    set(command $<TARGET_FILE:${name}>)
    if(arg_NOT_ON_CARD)
      list(APPEND command --source-file-exclude=${arg_NOT_ON_CARD})
    endif()
    partita_register_gpu_test(${name} ${about} NEEDS_CARD ${arg_NEEDS_CARD} COMMAND ${command})
  endif()
endfunction()

function(partita_add_device_script_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "${device_options}" "${device_values}" "${device_lists}")
  partita_find_needs()
  if(NOT usable OR NOT partita_device_tests)
    return()
  endif()
  set(about LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT} DEVICES ${arg_DEVICES})
  partita_register_emulator_test(${name} ${about} COMMAND ${arg_COMMAND})
  if(NOT arg_ON_CARD)
    set(arg_ON_CARD ${arg_COMMAND})
  endif()
  partita_register_gpu_test(${name} ${about} NEEDS_CARD ${arg_NEEDS_CARD} COMMAND ${arg_ON_CARD})
endfunction()

# The file that ctest reads at start-up.
function(partita_write_gpu_tests)
  get_property(script GLOBAL PROPERTY partita_gpu_test_script)
  file(GENERATE OUTPUT gpu_tests.cmake CONTENT
"execute_process(COMMAND [==[$<TARGET_FILE:has_device>]==] RESULT_VARIABLE answer OUTPUT_VARIABLE names ERROR_QUIET)
set(devices 0)
set(missing \"\")
if(answer EQUAL 0)
  string(REGEX MATCHALL \"\\n\" lines \"\${names}\")
  list(LENGTH lines devices)
endif()
${script}file(WRITE [==[${PARTITA_NEEDS_CARD}]==] \"\${missing}\")
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_CURRENT_BINARY_DIR}/gpu_tests.cmake)
endfunction()

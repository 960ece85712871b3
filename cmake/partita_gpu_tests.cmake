# How tests that need a CUDA device are built and registered; the options are those of cmake/partita_tests.cmake.
#
#   partita_add_gpu_test(NAME [SOURCES FILE...] [BACKENDS cublas ...] [LIBRARIES TARGET...] [LABELS ...]
#                        [TIMEOUT SECONDS] [NEEDS_DATA] [NEEDS_GOLDEN])
#     A doctest program; its source is cuda/NAME.cu unless SOURCES says otherwise. It is built wherever nvcc and its
#     BACKENDS are.
#
#   partita_add_gpu_script_test(NAME COMMAND ARG... [LIBRARIES TARGET...] [LABELS ...] [TIMEOUT SECONDS]
#                               [NEEDS_DATA] [NEEDS_GOLDEN])
#     Any command; a program is named by $<TARGET_FILE:...>.
#
# ctest asks for a device whenever it starts. Where there is one, these are tests with the label gpu; where there is
# none, they are no tests, and their names go to gpu_not_run.txt in the build's folder, which ./check prints.

set_property(GLOBAL PROPERTY partita_gpu_tests "")
set_property(GLOBAL PROPERTY partita_gpu_test_script "")
set(PARTITA_GPU_NOT_RUN ${PROJECT_BINARY_DIR}/gpu_not_run.txt)
file(REMOVE ${PARTITA_GPU_NOT_RUN})

if(CMAKE_CUDA_COMPILER_LOADED AND TARGET partita::cuda)
  add_executable(has_device ${PROJECT_SOURCE_DIR}/tests/cuda/has_device.cpp)
  partita_use(has_device cuda)
  cmake_language(DEFER CALL partita_write_gpu_tests)
else()
  partita_not_tested("GPU tests: not built, nvcc or the CUDA toolkit was not found or is switched off")
endif()

# Lets ctest register NAME, which runs COMMAND, where there is a device.
function(partita_register_gpu_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "COMMAND;LABELS")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  set(labels gpu ${arg_LABELS})
  partita_test_environment(environment)
  set(command)
  foreach(word IN LISTS arg_COMMAND)
    string(APPEND command " [==[${word}]==]")
  endforeach()
  set_property(GLOBAL APPEND PROPERTY partita_gpu_tests ${name})
  string(CONCAT lines "  add_test(${name}${command})\n"
                "  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS [==[${labels}]==]\n"
                "                       ENVIRONMENT [==[${environment}]==])\n")
  set_property(GLOBAL APPEND_STRING PROPERTY partita_gpu_test_script "${lines}")
endfunction()

function(partita_add_gpu_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "${test_options}" "${test_values}" "${test_lists}")
  list(APPEND arg_BACKENDS cuda)
  partita_find_needs()
  if(usable AND TARGET has_device)
    if(NOT arg_SOURCES)
      set(arg_SOURCES cuda/${name}.cu)
    endif()
    partita_build_test(${name} main)
    partita_register_gpu_test(${name} COMMAND $<TARGET_FILE:${name}> LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT})
  endif()
endfunction()

function(partita_add_gpu_script_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "${test_options}" "${test_values}" "${test_lists};COMMAND")
  partita_find_needs()
  if(usable AND TARGET has_device)
    partita_register_gpu_test(${name} COMMAND ${arg_COMMAND} LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT})
  endif()
endfunction()

# What ctest reads when it starts.
function(partita_write_gpu_tests)
  get_property(names GLOBAL PROPERTY partita_gpu_tests)
  get_property(script GLOBAL PROPERTY partita_gpu_test_script)
  list(JOIN names "\n" lines)
  file(GENERATE OUTPUT gpu_tests.cmake CONTENT
"execute_process(COMMAND [==[$<TARGET_FILE:has_device>]==] RESULT_VARIABLE answer OUTPUT_QUIET ERROR_QUIET)
if(answer EQUAL 0)
  file(REMOVE [==[${PARTITA_GPU_NOT_RUN}]==])
${script}else()
  file(WRITE [==[${PARTITA_GPU_NOT_RUN}]==] [==[${lines}
]==])
endif()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_CURRENT_BINARY_DIR}/gpu_tests.cmake)
endfunction()

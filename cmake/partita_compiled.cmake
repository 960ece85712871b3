# SPDX-License-Identifier: Apache-2.0
# partita::compiled and, where nvcc is, partita::compiled_cuda: what programs instantiate most, compiled once. Read by partita's
# build and, installed, by its users: they are built in the project that links them, with its compiler and its flags.

# partita_add_compiled(FOLDER): from the sources in FOLDER.
function(partita_add_compiled folder)
  if(NOT TARGET partita::compiled)
    add_library(partita_compiled STATIC EXCLUDE_FROM_ALL ${folder}/host_f32.cpp ${folder}/host_f64.cpp)
    add_library(partita::compiled ALIAS partita_compiled)
    target_link_libraries(partita_compiled PUBLIC partita::partita)
    set_target_properties(partita_compiled PROPERTIES POSITION_INDEPENDENT_CODE ON)
    # Kernels want it, whatever the rest of the project is compiled with.
    target_compile_options(partita_compiled PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O3>)
  endif()
  if(NOT TARGET partita::compiled_cuda AND TARGET partita::cuda AND CMAKE_CUDA_COMPILER_LOADED)
    add_library(partita_compiled_cuda STATIC EXCLUDE_FROM_ALL ${folder}/cuda_f32.cu ${folder}/cuda_f64.cu)
    add_library(partita::compiled_cuda ALIAS partita_compiled_cuda)
    target_link_libraries(partita_compiled_cuda PUBLIC partita::cuda)
    set_target_properties(partita_compiled_cuda PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
endfunction()

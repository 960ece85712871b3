# SPDX-License-Identifier: Apache-2.0
# partita::compiled and, if nvcc is available, partita::compiled_cuda: the most common instantiations,
# compiled once. Used by partita's build and, installed, by dependent projects, which build them with their
# own compiler and flags.

# partita_add_compiled(FOLDER): adds both libraries from the sources in FOLDER.
function(partita_add_compiled folder)
  if(NOT TARGET partita::compiled)
    add_library(partita_compiled STATIC EXCLUDE_FROM_ALL ${folder}/host_f32.cpp ${folder}/host_f64.cpp)
    add_library(partita::compiled ALIAS partita_compiled)
    target_link_libraries(partita_compiled PUBLIC partita::partita)
    set_target_properties(partita_compiled PROPERTIES POSITION_INDEPENDENT_CODE ON)
    # Kernels need optimisation, however the rest of the project is compiled.
    target_compile_options(partita_compiled PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O3>)
  endif()
  if(NOT TARGET partita::compiled_cuda AND TARGET partita::cuda AND CMAKE_CUDA_COMPILER_LOADED)
    add_library(partita_compiled_cuda STATIC EXCLUDE_FROM_ALL ${folder}/cuda_f32.cu ${folder}/cuda_f64.cu)
    add_library(partita::compiled_cuda ALIAS partita_compiled_cuda)
    target_link_libraries(partita_compiled_cuda PUBLIC partita::cuda)
    set_target_properties(partita_compiled_cuda PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
endfunction()

# SPDX-License-Identifier: Apache-2.0
# partita::compiled and, if nvcc is available, partita::compiled_cuda: the most common instantiations,
# compiled once. Used by partita's build and, installed, by dependent projects, which build them with their
# own compiler and flags.

# partita_add_compiled(FOLDER): adds both libraries from the sources in FOLDER. partita::compiled links one library for
# each precision, partita::compiled_f32 and partita::compiled_f64, so that a program of one precision builds that alone.
function(partita_add_compiled folder)
  if(NOT TARGET partita::compiled)
    add_library(partita_compiled INTERFACE)
    add_library(partita::compiled ALIAS partita_compiled)
    foreach(precision f32 f64)
      set(library partita_compiled_${precision})
      add_library(${library} EXCLUDE_FROM_ALL ${folder}/host_${precision}.cpp)
      add_library(partita::compiled_${precision} ALIAS ${library})
      target_link_libraries(${library} PUBLIC partita::partita)
      set_target_properties(${library} PROPERTIES POSITION_INDEPENDENT_CODE ON)
      # Kernels need optimisation, however the rest of the project is compiled; with GCC they ask for -O3 themselves, and the
      # rest compiles faster: bench/results/check-cost.md has what that costs at run time.
      target_compile_options(${library} PRIVATE $<$<NOT:$<CONFIG:Debug>>:$<IF:$<CXX_COMPILER_ID:GNU>,-O1$<SEMICOLON>-fstrict-aliasing,-O3>>)
      target_link_libraries(partita_compiled INTERFACE ${library})
    endforeach()
  endif()
  if(NOT TARGET partita::compiled_cuda AND TARGET partita::cuda AND CMAKE_CUDA_COMPILER_LOADED)
    add_library(partita_compiled_cuda EXCLUDE_FROM_ALL ${folder}/cuda_f32.cu ${folder}/cuda_f64.cu)
    add_library(partita::compiled_cuda ALIAS partita_compiled_cuda)
    target_link_libraries(partita_compiled_cuda PUBLIC partita::cuda)
    set_target_properties(partita_compiled_cuda PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
endfunction()

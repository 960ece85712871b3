# SPDX-License-Identifier: Apache-2.0
# The tests of the library on CUDA devices, a card or the emulator.
partita_add_device_test(device_kernels TESTS local/cuda local/cuda_edges)
partita_add_device_test(programs/compress)
file(GLOB sources CONFIGURE_DEPENDS emulator/opcodes/*.cpp)
partita_add_device_test(opcodes SOURCES ${sources} LIBRARIES ptx_machine)
if(TARGET opcodes)
  set_target_properties(opcodes PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
endif()
set(of_matrices matrix/device_views autodiff/device_tape algebra/device_gemm algebra/device_messages transfer/device_gather_rows nn/device_sparse_adam)
set(backends_of_matrices)
if(TARGET partita::lapack)
  list(APPEND of_matrices algebra/device_tall_skinny)
  set(backends_of_matrices blas lapack)
endif()
partita_add_device_test(device_matrices TESTS ${of_matrices} BACKENDS ${backends_of_matrices})
partita_add_device_test(device_communicators TESTS comm/device_laws LIBRARIES laws_on_the_device)
partita_add_device_test(device_far TESTS memory/cuda_far)
partita_add_device_test(train/cuda_far_models SOURCES train/cuda_far_models.cpp LIBRARIES cuda_training_of_programs partita::compiled)
partita_add_device_test(device_nccl TESTS comm/nccl BACKENDS nccl LIBRARIES laws_on_the_host laws_on_the_device DEVICES 2 NEEDS_CARD "NCCL, on two cards")
partita_add_device_test(comm/mpi_device_laws LIBRARIES laws_on_the_device MPI_RANKS 1 2 4)
partita_add_device_test(local/vendor_link BACKENDS cublas cusparse NEEDS_CARD "the products of cuBLASLt and cuSPARSE")
# What asks the emulator how often something was called, or makes it fail
partita_add_device_test(emulator_faults SOURCES emulator/faults.cu emulator/races.cu emulator/sectors.cu CONTROLS_EMULATOR)
partita_add_device_test(emulator_communicators TESTS comm/device_failures comm/device_steady memory/cuda memory/cuda_foreign memory/cuda_staging LIBRARIES laws_on_the_device
                        CONTROLS_EMULATOR)
partita_add_device_test(emulator_nccl TESTS comm/nccl_failures BACKENDS nccl LIBRARIES emulated_nccl CONTROLS_EMULATOR)
partita_add_device_test(emulator_libraries BACKENDS cublas cusparse TESTS local/cuda_libraries local/vendor_calls algebra/device_steady CONTROLS_EMULATOR)
partita_add_device_test(train/cuda_models SOURCES train/cuda_models.cpp LIBRARIES cuda_training_of_programs partita::compiled
                        CONTROLS_EMULATOR)
if(partita_device_tests)
  # The PTX that the build makes, if it suits every card looked at, or else PTX of its own.
  set(kept ${CMAKE_CURRENT_BINARY_DIR}/ptx_of_kernels)
  foreach(precision f32 f64)
    set(kernels ${PROJECT_SOURCE_DIR}/cmake/compiled/cuda_${precision}.cu -std=c++20 --expt-relaxed-constexpr -DNDEBUG
      -I${PROJECT_SOURCE_DIR}/include -isystem=${PARTITA_THRUST_INCLUDE_DIR})
    if(CMAKE_CUDA_ARCHITECTURES STREQUAL "80-virtual")
      set(kernels ${kept}/cuda_${precision}.ptx)
    endif()
    partita_add_script_test(kernels_spill_nothing_${precision} LABELS ptx
      COMMAND python3 ${programs}/spills.py ${CMAKE_CUDA_COMPILER} ${kernels})
  endforeach()
  if(CMAKE_CUDA_ARCHITECTURES STREQUAL "80-virtual")
    file(MAKE_DIRECTORY ${kept})
    target_compile_options(partita_compiled_cuda PRIVATE -keep -keep-dir=${kept})
  endif()
endif()
# Thrust, on the host
partita_add_test(programs/compress_entries BACKENDS cuda)
if(TARGET programs_compress_entries)
  # Thrust tells its systems apart by references to null.
  target_compile_options(programs_compress_entries PRIVATE -fno-sanitize=null)
endif()

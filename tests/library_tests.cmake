# SPDX-License-Identifier: Apache-2.0
# The tests of the library on the host, in the order of its floors; then over MPI.
# ONCE: what is as fast with the address sanitizer. UNSANITIZED: what computes, or asks in advance, with the memory of other tests.
# THREADS: what together makes threads do all that they do, for the thread sanitizer.
partita_add_tests(plain_tests TESTS
                  base/background base/bfloat16 base/dual base/error base/exact_grid base/exponential base/function base/function_reference base/index base/numbering base/random base/system base/triplet
                  partition/axis partition/block_finder partition/blocking partition/exchange partition/layout partition/mesh_shape partition/orders partition/policies partition/sparse_blocks partition/vertex_cover local/row_encoding
                  partition/route partition/volume
                  memory/far memory/host memory/host_far memory/kernel_rates memory/mapped_store memory/observed_passes comm/call_site comm/cores comm/element_range comm/ledger comm/operation comm/signature
                  matrix/arrived_entries matrix/dense matrix/tile_analysis matrix/tile_shape matrix/tiles local/view local/chunked local/pass local/reference local/reference_edges local/errors
                  algebra/elementwise algebra/epilogue algebra/gram algebra/reductions algebra/vectors algebra/spmm_traffic algebra/loss algebra/soft_targets algebra/value_loss algebra/class_scores algebra/dropout algebra/product algebra/reproducible algebra/row_products
                  graph/link_split graph/link_rows graph/propagation_matrices autodiff/broadcasts autodiff/edge_norm autodiff/edge_products autodiff/edges autodiff/elementwise autodiff/losses autodiff/messages autodiff/product autodiff/products autodiff/reductions autodiff/shared_memory autodiff/sums autodiff/tape autodiff/variable nn/activation nn/embedding nn/optimizer nn/learning_rate nn/sparse_adam nn/parameters nn/model nn/layer_norm nn/residual nn/sequential
                  io/array io/blocked io/changed_files io/checksum io/csv io/features io/graph_text io/karate io/link_files io/mapped_npy io/matrix_market io/metis_graph io/npy io/parts io/quote io/reordered io/text_ranges io/whole_file
                  train/fields train/pipeline_order train/chunks programs/pipeline_words programs/pipeline_simulation ONCE)
partita_add_tests(rank_tests TESTS comm/self comm/communicator comm/request comm/threads comm/failures comm/timeout comm/mesh comm/emulated
                  matrix/sparse LIBRARIES laws_on_the_host ONCE
                  THREADS comm/self comm/communicator comm/request comm/threads comm/failures comm/timeout comm/mesh)
# What asks the operating system, with what POSIX has alone; no object of its program may see Linux.
if("library" IN_LIST PARTITA_TESTS OR PARTITA_TESTS STREQUAL "memory")
  add_executable(base_posix_only base/posix_only.cpp)
  target_compile_definitions(base_posix_only PRIVATE PARTITA_POSIX_ONLY DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN)
  target_link_libraries(base_posix_only PRIVATE doctest::doctest)
  partita_use(base_posix_only)
  partita_add_script_test(base_posix_only COMMAND base_posix_only)
endif()
# Its scheduler stands in for the threads of the C library, which sanitizers do, too.
if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  partita_add_test(comm/interleavings SOURCES comm/interleavings.cpp support/interleaving.cpp support/interleaving_test.cpp OPTIMIZED)
endif()
partita_add_tests(verb_tests TESTS memory/large_list matrix/csr_arrays matrix/sorted_entries transfer/assign_values transfer/csr_rows transfer/distribute transfer/scaled_pattern
                  transfer/entry_checks transfer/entry_routing transfer/redistribution transfer/in_edges transfer/gather_rows transfer/row_lists transfer/row_split graph/edge_features graph/relation_matrices graph/matrix_entries
                  algebra/spmm algebra/spmm_bfloat16 algebra/needed_exchange algebra/node_exchange algebra/row_cover algebra/exact_row_sums algebra/exact_spmm algebra/exact_messages algebra/spmm_transposed algebra/sddmm algebra/edge_spmm algebra/messages algebra/message_scores algebra/pair_loss algebra/edge_rows algebra/edge_verbs algebra/edge_softmax algebra/edge_scores algebra/max_aggregate
                  algebra/gemm algebra/gemm_plan algebra/row_chunks sampling/graph sampling/layer_sampler sampling/negative_edges sampling/neighbour_sampler
                  sampling/placement sampling/roots_apart sampling/walk_sampler OPTIMIZED UNSANITIZED sampling/placement
                  THREADS transfer/assign_values transfer/distribute transfer/redistribution transfer/in_edges transfer/gather_rows
                  algebra/spmm algebra/needed_exchange algebra/node_exchange algebra/messages algebra/edge_rows algebra/max_aggregate algebra/gemm algebra/row_chunks sampling/neighbour_sampler)
# Its kernels are optimised as the rest is, not by GCC's -O3, at which tests of local/host and of partita::compiled see them; and passes
# of -O1 that take long to compile and that its tests, which mostly wait and send, gain little from are left out.
if(TARGET verb_tests AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(verb_tests PRIVATE -U__OPTIMIZE__ -fno-tree-pta -fno-tree-dominator-opts -fno-ivopts -fira-region=one)
endif()
partita_add_test(partition/gemm_choice OPTIMIZED UNSANITIZED partition/gemm_choice)
partita_add_test(local/host OPTIMIZED THREADS local/host)
partita_add_test(local/host_edges OPTIMIZED THREADS local/host_edges)
partita_add_tests(row_order_tests TESTS local/host/row_order local/host/tuned_spmm OPTIMIZED THREADS local/host/row_order local/host/tuned_spmm)
partita_add_test(local/host_gemm OPTIMIZED THREADS local/host_gemm)
partita_add_test(local/host_widths OPTIMIZED)
partita_add_tests_of_instructions(local/host local/host_edges local/host_gemm local/host_widths)
partita_add_tests(far_memory_tests TESTS memory/far_forecast memory/far_passes memory/far_rows memory/far_plan memory/far_entries local/chunked_products local/chunked_edges OPTIMIZED
                  THREADS memory/far_passes memory/far_rows memory/far_entries local/chunked_products)
partita_add_test(local/blas OPTIMIZED BACKENDS blas)
partita_add_test(local/lapack BACKENDS blas lapack ONCE)
partita_add_test(algebra/tall_skinny BACKENDS blas lapack ONCE)
partita_add_test(partition/metis BACKENDS metis ONCE)
partita_add_test(local/mdspan BACKENDS cuda)
partita_add_tests(npz_tests TESTS io/dataset io/dataset_on_ranks io/label_numbers io/npz io/typed_reader BACKENDS npz ONCE)
partita_add_tests(json_tests TESTS io/safetensors io/checkpoint_folder BACKENDS json ONCE)
partita_add_tests(zlib_tests TESTS io/gzip io/ogb io/ogb_types BACKENDS zlib ONCE)
partita_add_test(io/dlpack BACKENDS dlpack ONCE)
partita_add_test(io/real_data BACKENDS npz NEEDS_DATA ONCE)

# Networks. Those of THREADS compute in double.
partita_add_golden_cases()
set(compiled partita::compiled)
if(PARTITA_TESTS STREQUAL "threads")
  set(compiled partita::compiled_f64)
endif()
partita_add_tests(network_tests TESTS nn/layer algebra/attention nn/conv nn/rgcn nn/decoupled nn/link_decoder nn/activation_checkpointing nn/recorded_layer nn/sampled_blocks OPTIMIZED LIBRARIES ${compiled})
partita_add_tests(mini_batch_tests TESTS train/mini_batch train/mini_batch_trainer train/batch_share train/batch_traffic train/bfloat16_batches OPTIMIZED LIBRARIES ${compiled} THREADS train/mini_batch_trainer)
partita_add_tests(pipeline_tests TESTS train/pipeline_trainer train/model_outline OPTIMIZED LIBRARIES ${compiled} THREADS train/pipeline_trainer)
partita_add_tests(pipeline_parts_tests TESTS train/chunk_graph train/pipeline_traffic train/pipeline_options train/pipeline_guard train/pipeline_failures LIBRARIES ${compiled} THREADS train/pipeline_guard train/pipeline_failures)
partita_add_tests(training_tests TESTS train/trainer train/link_scores train/link_trainer train/objective train/task_scores train/pytorch train/embedding train/choose_policy train/policy_cost train/rehearsal train/bfloat16_products train/far_memory OPTIMIZED LIBRARIES ${compiled}
                  UNSANITIZED train/pytorch train/choose_policy train/policy_cost
                  THREADS train/trainer train/link_trainer train/far_memory)
partita_add_tests(saved_training_tests TESTS train/finite train/state_dict train/training train/checkpoint train/model_file OPTIMIZED LIBRARIES ${compiled} BACKENDS json)
partita_add_test(train/point_predictor OPTIMIZED LIBRARIES ${compiled} BACKENDS npz json)
partita_add_tests(no_memory_tests TESTS comm/no_memory memory/no_memory train/refused_memory OPTIMIZED LIBRARIES ${compiled} BACKENDS json)
if(TARGET no_memory_tests)
  target_sources(no_memory_tests PRIVATE support/failing_memory.cpp)
  # Where it is inlined, GCC sees free() of what came from new.
  set_source_files_properties(support/failing_memory.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endif()
partita_add_tests(reproducible_tests TESTS train/reproducible train/reproducible_batches OPTIMIZED LIBRARIES ${compiled} UNSANITIZED train/reproducible_batches)
partita_add_test(train/edge_models OPTIMIZED LIBRARIES ${compiled} golden_cases)
partita_add_test(train/models OPTIMIZED LIBRARIES ${compiled} golden_cases NEEDS_GOLDEN)

# Over MPI
partita_add_mpi_test(comm/mpi LIBRARIES laws_on_the_host RANKS 1 2 4 6)
partita_add_mpi_test(comm/mpi_bytes RANKS 2 4 6)
partita_add_mpi_test(algebra/mpi_gemm RANKS 2 4 6)
partita_add_mpi_test(train/mpi_training LIBRARIES ${compiled} RANKS 1 2 4 UNSANITIZED train/mpi_training)
if(TARGET partita::mpi AND NOT PARTITA_TESTS STREQUAL "memory")
  foreach(build checked release)
    add_executable(mpi_failure_program_${build} programs/mpi_failure_program.cpp)
    partita_use(mpi_failure_program_${build} mpi)
  endforeach()
  target_compile_options(mpi_failure_program_checked PRIVATE -UNDEBUG)
  target_compile_options(mpi_failure_program_release PRIVATE -DNDEBUG)
  partita_add_script_test(mpi_failures TIMEOUT 600 LABELS mpi ranks_4 COMMAND ${programs}/mpi_failures.sh
    $<TARGET_FILE:mpi_failure_program_checked> $<TARGET_FILE:mpi_failure_program_release>)
  add_executable(mpi_pipeline_program programs/mpi_pipeline_program.cpp)
  target_include_directories(mpi_pipeline_program PRIVATE ${partita_test_includes})
  target_link_libraries(mpi_pipeline_program PRIVATE partita::compiled)
  partita_use(mpi_pipeline_program mpi)
  partita_add_script_test(mpi_pipeline_failures TIMEOUT 600 LABELS mpi ranks_4 COMMAND
    ${programs}/mpi_pipeline_failures.sh $<TARGET_FILE:mpi_pipeline_program>)
endif()

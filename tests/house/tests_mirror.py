#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every header has a test of its name, and every test is run: tests_mirror.py INCLUDE TESTS

The test of partita/algebra/spmm.hpp is algebra/spmm.cpp or algebra/spmm.cu. A test of a folder's name serves the headers in
it: local/host.cpp those of partita/local/host/. What is tested together with something else stands in TOGETHER. Whichever
it is, the test must reach the header by its includes. A test that no list of tests names is a violation, too."""
import functools
import pathlib
import re
import sys

# A test, and headers that it tests besides the one of its name, without partita/ and .hpp.
TOGETHER = {
    # What only the named headers use.
    "memory/host.cpp": "memory/device memory/large_pages",
    "memory/observed_passes.cpp": "memory/pass_runner",
    "partition/exchange.cpp": "partition/block_layout",
    "partition/gemm_choice.cpp": "partition/gemm_grid partition/gemm_schedule",
    "transfer/redistribution.cpp": "transfer/block_exchange transfer/staged_redistribution",
    "transfer/gather_rows.cpp": "transfer/row_requests transfer/row_sums",
    "algebra/gemm.cpp": "algebra/gemm_operand algebra/partial_products",
    "base/random.cpp": "base/step_number",
    "base/system.cpp": "base/linux_system base/posix_system base/processor",
    "memory/cuda.cpp": "memory/cuda_call memory/cuda_stream",
    "memory/cuda_graph.cpp": "memory/captured",
    "transfer/coo_entries.cpp": "local/coo_arrays local/cuda/coo_entries",
    "local/cuda.cpp": "memory/cuda_launch memory/cuda_sort",
    "comm/communicator.cpp": "comm/transport",
    "comm/device_laws.cpp": "comm/cuda_memory comm/device_memory comm/staged",
    "train/fields.cpp": "train/field train/model_table",
    "train/point_predictor.cpp": "sampling/neighbourhoods train/model_data",
    "train/rehearsal.cpp": "train/choose_training",
    "train/policy_cost.cpp": "graph/edge_counts graph/matrix_options transfer/tile_counts",
    "comm/timeout.cpp": "comm/late",
    "comm/mpi.cpp": "comm/mpi_call comm/mpi_checks comm/mpi_end comm/mpi_exchange comm/mpi_job comm/mpi_native comm/mpi_node comm/mpi_notices comm/mpi_transport",
    "comm/nccl.cpp": "comm/nccl_call comm/nccl_group comm/nccl_stream comm/nccl_transport",
    "matrix/tile_analysis.cpp": "matrix/needed_rows",
    "io/dataset.cpp": "io/dataset_reader io/folder_reading io/mapped_features",
    "io/graph_text.cpp": "io/edge io/text_output",
    "io/blocked.cpp": "io/blocked_header",
    "io/gzip.cpp": "io/unpacked_size",
    "io/npy.cpp": "io/npy_header",
    "io/npz.cpp": "io/npz_archive",
    "io/metis_graph.cpp": "io/metis_lines",
    "io/karate.cpp": "io/dataset_type",
    "io/whole_file.cpp": "io/descriptor",
    "io/safetensors.cpp": "io/safetensors_header",
    "io/checkpoint_folder.cpp": "io/fnv1a",
    "io/matrix_market.cpp": "io/market_body io/market_header io/number_text",
    "local/reference.cpp": "local/fusion",
    "memory/far.cpp": "memory/far_store",
    "memory/far_plan.cpp": "memory/far_cut memory/far_reuse memory/index_reader",
    "memory/far_passes.cpp": "memory/far_chunks memory/out_of_core",
    "local/chunked.cpp": "local/chunked_gemm local/chunked_sums",
    "local/pass.cpp": "local/operands",
    "local/errors.cpp": "local/shapes",
    "local/reference_edges.cpp": "local/head_slice local/csr_inverse",
    "local/host_edges.cpp": "local/exact local/host/exact local/host/exact_strips local/host/ordered_edges",
    "local/host.cpp": "local/kernels local/move local/tuned_spmm",
    "local/vendor_link.cu": "local/cublas/gemm local/cusparse/product local/cusparse/spmm",
    "algebra/spmm.cpp": "algebra/block_stream algebra/product_plan algebra/product_stages algebra/row_exchange algebra/spmm_cost algebra/sum_along",
    "algebra/needed_exchange.cpp": "algebra/chunk_lists",
    "algebra/node_exchange.cpp": "algebra/node_lists",
    "algebra/row_cover.cpp": "transfer/row_cover",
    "algebra/exact_spmm.cpp": "algebra/exact_product algebra/exact_sums",
    "algebra/reproducible.cpp": "algebra/reproducible_verbs",
    "algebra/exact_messages.cpp": "algebra/exact_edge_products local/host/exact_messages local/message_function",
    "algebra/messages.cpp": "algebra/message_core algebra/message_parameters algebra/tile_rows local/chunked_messages "
                            "local/message_operands local/host/message_gradients local/host/messages",
    "algebra/sddmm.cpp": "algebra/edge_schedule algebra/in_edge_sddmm transfer/edge_redistribution",
    "graph/edge_features.cpp": "transfer/edge_columns",
    "algebra/edge_softmax.cpp": "algebra/edge_matrix",
    "algebra/edge_scores.cpp": "algebra/edge_scores_gradient",
    "algebra/row_products.cpp": "algebra/operand local/row_products matrix/sparse_rows",
    "algebra/max_aggregate.cpp": "algebra/exact_max_gradient transfer/halo",
    "sampling/neighbour_sampler.cpp": "sampling/block sampling/fanout sampling/hop sampling/requests sampling/sampler local/parallel",
    "algebra/attention.cpp": "algebra/coefficient_gradient algebra/neighbour_rows train/summary transfer/layout_change",
    "nn/parameters.cpp": "nn/builder",
    "nn/layer.cpp": "nn/recorded_plans",
    "nn/decoupled.cpp": "algebra/chunked_hops",
    "nn/model.cpp": "nn/gradient_check nn/graph_product",
    "nn/residual.cpp": "nn/linear",
    "nn/rgcn.cpp": "autodiff/relations nn/conv/rgcn",
    "train/cuda_models.cpp": "compiled/cuda",
    "train/trainer.cpp": "compiled/algebra compiled/algebra_instances compiled/host compiled/host_f32 compiled/host_f64 compiled/host_instances compiled/instances train/feature_matrix train/options",
    "train/objective.cpp": "train/vertex_weights",
    "graph/matrix_entries.cpp": "graph/duplicate_edges graph/features transfer/entry_rows",
    "train/checkpoint.cpp": "train/training_state",
    "train/embedding.cpp": "train/input_gradient",
    "train/finite.cpp": "algebra/finite",
    "train/mini_batch.cpp": "algebra/column_slices train/batch_input train/batch_order train/batch_sampler sampling/block_matrix",
    "train/pipeline_trainer.cpp": "train/layer_rates train/chunk_halo train/chunk_products train/pipeline_link "
                                  "train/pipeline_setup train/pipeline_stage train/stage_layers",
    "train/model_file.cpp": "train/make_training train/predictor",
    "autodiff/edge_norm.cpp": "algebra/edge_broadcasts",
    "train/edge_models.cpp": "nn/conv/gatv2 nn/conv/gine nn/conv/heads nn/conv/mesh_graph nn/conv/nn_conv nn/conv/transformer",
    "train/models.cpp": "nn/models nn/propagation nn/skip_source nn/conv/gat nn/conv/gcnii nn/conv/gin nn/conv/sage nn/conv/sgc "
                        "nn/conv/gcn nn/conv/rgat nn/conv/attention_vectors",
}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
# Folders of tests/ that hold no tests of headers.
OTHERS = {"emulator", "fuzz", "golden", "house", "laws", "programs", "reference", "support"}


@functools.cache
def included(file, roots):
    """The files that `file` itself includes."""
    paths = ([(root / name).resolve() for root in (file.parent, *roots)] for name in INCLUDE.findall(file.read_text()))
    return [path for choices in paths if (path := next(filter(pathlib.Path.is_file, choices), None))]


def reach(file, roots, found):
    """Adds to `found` every file that `file` includes, directly or not."""
    for path in included(file, roots):
        if path not in found:
            found.add(path)
            reach(path, roots, found)
    return found


def tests_of(header, tests):
    """Where a test of this header's name, or of its folder's, may be: the sources that exist."""
    names = [header] + [folder for folder in header.parents if len(folder.parts) > 1]
    paths = [tests / f"{name.as_posix()}{suffix}" for name in names for suffix in (".cpp", ".cu")]
    return [path for path in paths if path.is_file()]


def violations(include, tests, together):
    include, tests = include.resolve(), tests.resolve()
    roots = (tests, tests.parent, include)
    headers = {p.relative_to(include / "partita").with_suffix("") for p in (include / "partita").glob("*/**/*.hpp")}
    elsewhere = {}
    for test, names in together.items():
        for name in names.split():
            elsewhere.setdefault(pathlib.PurePath(name), []).append(tests / test)
    for name in sorted(set(elsewhere) - {pathlib.PurePath(h) for h in headers}):
        yield f"TOGETHER has partita/{name}.hpp, which there is not"
    reached = {}
    for header in sorted(headers):
        by_name, listed = tests_of(header, tests), elsewhere.get(pathlib.PurePath(header), [])
        if by_name and listed and by_name[0].relative_to(tests).with_suffix("") == header:
            yield f"TOGETHER has partita/{header}.hpp, which has a test of its name"
        for test in listed:
            if not test.is_file():
                yield f"TOGETHER has {test.relative_to(tests)}, which there is not"
        found = [test for test in by_name + listed if test.is_file()]
        for test in found:
            if test not in reached:
                reached[test] = reach(test, roots, set())
        if not found:
            yield f"partita/{header}.hpp has no test"
        elif not any((include / "partita" / header).with_suffix(".hpp") in reached[test] for test in found):
            yield f"partita/{header}.hpp is not included by {found[0].relative_to(tests)}"
    listing = "".join(file.read_text() for file in [tests / "CMakeLists.txt", *sorted(tests.glob("*.cmake"))])
    for test in sorted(p.relative_to(tests) for p in tests.glob("*/**/*") if p.suffix in (".cpp", ".cu")):
        if test.parts[0] not in OTHERS and not re.search(rf"\b{test.with_suffix('').as_posix()}\b", listing):
            yield f"{test} is not run"


def main(include, tests):
    found = list(violations(pathlib.Path(include), pathlib.Path(tests), TOGETHER))
    print("\n".join(found + [f"{len(found)} violations"]))
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))

// SPDX-License-Identifier: Apache-2.0
// CUDA's kernels of a pattern's entries: the reference, adjoints, and gradients as differences.
#include "laws/edge_laws.hpp"
#include "support/stage_cuda.hpp"

namespace test_local_edges_cuda {

using namespace test_support;

TEST_CASE("cuda edges: products are adjoint to each other") { products_are_adjoint<cuda_device>(); }
TEST_CASE("cuda edges: gradients of softmax are differences") {
  gradients_of_softmax_are_differences<cuda_device>();
}
TEST_CASE("cuda edges: scores that overflow exp have a finite softmax") {
  large_scores_have_a_finite_softmax<cuda_device>();
}
TEST_CASE("cuda edges refuse shapes that do not fit") { edges_refuse_shapes(queues<cuda_device>()[1]); }
TEST_CASE_TEMPLATE("cuda aggregate: an infinite neighbour counts, and nothing below it does", T, float,
                   double) {
  an_infinite_neighbour_counts<T, cuda_device>();
}
TEST_CASE_TEMPLATE("cuda aggregate: a neighbour that is NaN counts", T, float, double) {
  a_neighbour_that_is_nan_counts<T, cuda_device>();
}
TEST_CASE_TEMPLATE("cuda edges: products of slices cut anywhere", T, float, double) {
  products_of_slices_cut_anywhere<T, cuda_device>();
}
TEST_CASE_TEMPLATE("cuda edges: scores and maps", T, float, double) { scores_and_maps<T, cuda_device>(); }
TEST_CASE_TEMPLATE("cuda aggregate: largest neighbours and the way back", T, float, double) {
  largest_neighbours<T, cuda_device>();
}

}  // namespace test_local_edges_cuda

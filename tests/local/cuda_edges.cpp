// SPDX-License-Identifier: Apache-2.0
// CUDA's kernels of a pattern's entries: the reference, adjoints, and gradients as differences.
#include "laws/coefficient_laws.hpp"
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
TEST_CASE_TEMPLATE("cuda edges: products with coefficients of scores", T, float, double) {
  products_with_coefficients_of_scores<T, cuda_device>();
}
TEST_CASE_TEMPLATE("cuda attention: gradients without numbers of entries", T, float, double) {
  attention_without_numbers_of_entries<T, cuda_device>();
}
TEST_CASE_TEMPLATE("cuda edges: the gradient of a softmax with row sums of its own", T, float, double) {
  for (const local_index heads : {0, 1, 3, 8, 33})
    for (const auto& [m, k] :
         std::vector<std::array<local_index, 2>>{{0, 0}, {0, 4}, {4, 0}, {1, 1}, {23, 19}, {2, 1000}})
      check_fused_gradient<T, cuda_device>(test_support::sparse_block<T>(m, k), m, k, heads);
}
TEST_CASE_TEMPLATE("cuda aggregate: largest neighbours and the way back", T, float, double) {
  largest_neighbours<T, cuda_device>();
}

}  // namespace test_local_edges_cuda

// SPDX-License-Identifier: Apache-2.0
// The host's kernels of the entries of a sparse pattern against the reference, adjoints against each other,
// and gradients against differences.
#include "laws/edge_laws.hpp"

using namespace test_support;

TEST_CASE("cpu edges: products are adjoint to each other") { products_are_adjoint<host>(); }
TEST_CASE("cpu edges: gradients of softmax are differences") { gradients_of_softmax_are_differences<host>(); }
TEST_CASE("cpu edges: scores that overflow exp have a finite softmax") {
  large_scores_have_a_finite_softmax<host>();
}
TEST_CASE("cpu edges refuse shapes that do not fit") { edges_refuse_shapes(queues<host>()[1]); }
TEST_CASE_TEMPLATE("cpu aggregate: an infinite neighbour counts, and nothing below it does", T, float,
                   double) {
  an_infinite_neighbour_counts<T, host>();
}
TEST_CASE_TEMPLATE("cpu aggregate: a neighbour that is NaN counts", T, float, double) {
  a_neighbour_that_is_nan_counts<T, host>();
}
TEST_CASE_TEMPLATE("cpu edges: products of slices cut anywhere", T, float, double) {
  products_of_slices_cut_anywhere<T, host>();
}
TEST_CASE_TEMPLATE("cpu edges: scores and maps", T, float, double) { scores_and_maps<T, host>(); }
TEST_CASE_TEMPLATE("cpu aggregate: largest neighbours and the way back", T, float, double) {
  largest_neighbours<T, host>();
}

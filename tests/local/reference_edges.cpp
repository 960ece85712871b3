// SPDX-License-Identifier: Apache-2.0
// The reference kernels of the entries of a sparse pattern, against numbers computed by hand.
#include "support/edges.hpp"

namespace test_local_edges_reference {

using namespace test_support;

TEST_CASE("reference edges: softmax of scores, by hand") {
  small_case c;
  block<double> source{3, 2, {1, 2, 3, -4, -5, 6}}, target{3, 2, {1, -1, 0, 0, 2, -3}};
  reference::edge_log_sum(c.a, 2, 0.5, source.view(), target.view(), c.y.view());
  CHECK(distance(c.y.values, {2.0181499279, 5.0181499279, 0, 0, 5, -3.5}) < 1e-9);
  reference::edge_softmax(c.a, 2, 0.5, source.view(), target.view(), c.y.view(), c.out.data());
  CHECK(distance(c.out, {-1, -1, 0.98201379, 0.01798621, 0.01798621, 0.98201379, 1, 1}) < 1e-8);
  reference::edge_apply(
      c.a, 2, [](int i, int col, int h, double v) { return 1000 * i + 100 * col + 20 * h + v; },
      c.edges.data(), c.out.data());
  CHECK(c.out == numbers{-1, -1, 2, 23, 205, 227, 2111, 2133});
}

TEST_CASE("reference edges: softmax over rows and gradients, by hand") {
  small_case c;
  block<double> source{3, 2, numbers(6)}, target{3, 2, {1, -1, 9, 9, 2, -3}}, dsource{3, 2, numbers(6, 10)};
  block<double> log_sum{3, 2, {1, -0.5, 9, 9, 2, -1.5}}, row_dot{3, 2, {1, 1, 9, 9, 3, 5}};
  reference::edge_softmax_gradient(c.a, 2, 0.5, source.view(), target.view(), log_sum.view(), row_dot.view(),
                                   0.5, c.edges.data(), dsource.view(), c.y.view());
  CHECK(c.edges == numbers{-1, -1, 1, 1, 4, 3, 8, 4});
  CHECK(dsource.values == numbers{6, 6, 13, 9, 9, 8});
  CHECK(c.y.values == numbers{55, 54, 50, 50, 58, 54});
  const numbers alpha{-1, -1, 0.25, 0.5, 0.75, 0.5, 1, 1}, dalpha{-1, -1, 4, 2, 8, 6, 9, 9};
  reference::edge_row_dot(c.a, 2, alpha.data(), dalpha.data(), c.y.view());
  CHECK(c.y.values == numbers{7, 4, 0, 0, 9, 9});
}

TEST_CASE("reference edges: products of a slice that begins and ends inside a head, by hand") {
  small_case c;
  const partita::local::head_slice s{2, 2, 1};
  reference::edge_multiply(c.a, s, c.edges.data(), c.x.view(), 0.5, c.y.view());
  CHECK(c.y.values == numbers{77, 98, 50, 50, 83, 102});
  block<double> to{3, 2, numbers(6, 10)};
  reference::edge_multiply_transposed(c.a, s, c.edges.data(), c.x.view(), 1.0, to.view());
  CHECK(to.values == numbers{12, 16, 65, 88, 15, 24});
  reference::edge_dot(c.a, s, c.x.view(), c.x.view(), 10.0, c.edges.data());
  CHECK(c.edges == numbers{-1, -1, 21, 34, 55, 82, 125, 154});
  reference::edge_dot(c.a, {2, 2, 2}, c.x.view(), c.x.view(), 0.0, c.edges.data());
  CHECK(c.edges == numbers{-1, -1, 0, 5, 0, 17, 0, 39});
}

TEST_CASE("reference aggregate: largest neighbours and the way back, by hand") {
  small_case c;
  const block<double> x{3, 2, {1, 2, 7, 0, 1, 5}};
  std::vector<local_index> arg(6, 77);
  const matrix_view<local_index> where{arg.data(), 3, 2, 2};
  reference::max_aggregate(c.a, x.view(), c.y.view(), where);
  CHECK(c.y.values == numbers{1, 5, 0, 0, 7, 0});
  CHECK(arg == std::vector<local_index>{1, 2, -1, -1, 3, 3});
  block<double> dx{3, 2, numbers(6, 10)};
  reference::max_scatter(c.a, matrix_view<const local_index>(where), c.x.view(), dx.view());
  CHECK(dx.values == numbers{11, 10, 15, 16, 10, 12});
}

}  // namespace test_local_edges_reference

// SPDX-License-Identifier: Apache-2.0
// The host's kernels of the entries of a sparse pattern against the reference, adjoints against each other,
// and gradients against differences.
#include "laws/edge_laws.hpp"

using namespace test_support;

namespace {

/// Ordered products against the reference, and those of one row alone against those of all rows.
template <class T>
void check_ordered(local_index m, local_index k, partita::local::head_slice s) {
  const sparse<T> p(m, k);
  const partita::local::csr_view<T> a = p.pattern();
  const local_index f = s.heads * s.head_width;
  const block<T> x(k, f, 1), y(m, f, 2), dots(m, s.heads, 5);
  const block<T> values = edge_block(p, s.heads, 3), others = edge_block(p, s.heads, 4);
  const weight_of_entry<T> weight{};
  INFO("m ", m, " k ", k, " heads ", s.heads, " of ", s.head_width);
  const auto check = [&](const block<T>& to, auto kernel, auto expect) {
    agree_with<host>(to, tolerance<T>, kernel, expect);
  };
  check(
      y,
      [&](auto& at, auto& r) {
        ordered_edge_multiply(at.queue, at.pattern(p), s, at(values.values), at(x), r.view());
      },
      [&](auto& r) { reference::edge_multiply(a, s, values.data(), x.view(), T{0}, r.view()); });
  check(
      y,
      [&](auto& at, auto& r) {
        T* const weights = at.template room<T>(values.values.size());
        ordered_edge_apply_multiply(at.queue, at.pattern(p), s, weight, weights, at(x), r.view());
      },
      [&](auto& r) {
        std::vector<T> weights(values.values.size());
        reference::edge_apply_multiply(a, s, weight, weights.data(), x.view(), T{0}, r.view());
      });
  for (const T beta : {T{0}, T{1}})
    check(
        values,
        [&](auto& at, auto& r) {
          ordered_edge_dot(at.queue, at.pattern(p), s, at(y), at(x), beta, r.data());
        },
        [&](auto& r) { reference::edge_dot(a, s, y.view(), x.view(), beta, r.data()); });
  check(
      dots,
      [&](auto& at, auto& r) {
        ordered_row_dot(at.queue, at.pattern(p), s.heads, at(values.values), at(others.values), r.view());
      },
      [&](auto& r) { reference::edge_row_dot(a, s.heads, values.data(), others.data(), r.view()); });
  const std::vector<T> ones(values.values.size(), T{1});
  check(
      dots,
      [&](auto& at, auto& r) {
        ordered_row_sum(at.queue, at.pattern(p), s.heads, at(values.values), r.view());
      },
      [&](auto& r) { reference::edge_row_dot(a, s.heads, values.data(), ones.data(), r.view()); });

  block<T> all = y, alone = y;
  const partita::device_queue<host> q(3);
  ordered_edge_multiply(q, a, s, values.data(), x.view(), all.view());
  for (local_index i = 0; i < m; ++i) {
    const partita::local::csr_view<T> row{1,         k,       a.offsets + i,
                                          a.columns, nullptr, a.offsets[i + 1] - a.offsets[i]};
    ordered_edge_multiply(q, row, s, values.data(), x.view(), alone.view().block(i, 0, 1, f));
  }
  CHECK(all.values == alone.values);
}

}  // namespace

TEST_CASE_TEMPLATE("cpu edges: ordered products", T, float, double) {
  for (const partita::local::head_slice s : {partita::local::head_slice{1, 41}, {3, 5}, {8, 8}, {9, 1}})
    for (const auto& [m, k] :
         std::vector<std::array<local_index, 2>>{{0, 0}, {4, 0}, {1, 1}, {23, 19}, {301, 40}})
      check_ordered<T>(m, k, s);
}
TEST_CASE("cpu edges: ordered products refuse shapes that do not fit") {
  const sparse<double> p(4, 3);
  const block<double> x(3, 4, 1), narrow_one(3, 2, 1);
  block<double> y(4, 4, 2), values = edge_block(p, 2, 3);
  const partita::device_queue<host> q;
  CHECK_THROWS_AS(ordered_edge_multiply(q, p.pattern(), {2, 2}, values.data(), narrow_one.view(), y.view()),
                  partita::shape_error);
  CHECK_THROWS_AS(ordered_edge_dot(q, p.pattern(), {2, 2}, x.view(), x.view(), 0.0, values.data()),
                  partita::shape_error);
  CHECK_THROWS_AS(ordered_row_sum(q, p.pattern(), 2, values.data(), y.view()), partita::shape_error);
  CHECK_THROWS_AS(ordered_row_dot(q, p.pattern(), 2, values.data(), values.data(), y.view()),
                  partita::shape_error);
}

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

// SPDX-License-Identifier: Apache-2.0
// Sums, products of columns and softmax of variables against finite differences, and what they send.
#include "partita/autodiff/reductions.hpp"

#include "partita/algebra/gram.hpp"
#include "partita/autodiff/elementwise.hpp"
#include "partita/autodiff/losses.hpp"
#include "partita/autodiff/products.hpp"
#include "partita/comm/threads.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/tapes.hpp"

namespace test_autodiff_reductions {

using namespace partita;
using namespace test_support;

const auto square = [](auto x) { return x * x; };

TEST_CASE("gradients of sums, inner products and softmax") {
  for (const mesh_shape shape : {mesh_shape{1, 1, 1}, {3, 1, 1}, {2, 2, 2}})
    on_threads(shape.size(), [&](const communicator& world) {
      const mesh<host> m(world, shape);
      auto x = generate<vertex_rows, double>(m, {9, 3}, [](auto i, auto j) { return element(i, j) / 3; });
      auto w = generate<replicated, double>(m, {3, 4}, [](auto i, auto j) { return element(i + 2, j) / 2; });
      host_tape t(m);
      const auto h = t.input(x), v = t.parameter(w);
      const auto z = gemm(h, v);
      const auto mean = (1.0 / 9) * column_sums(z);                                     // (1, 4)
      const auto weights = row_softmax(add_row(mean, z));                               // (9, 4)
      const auto attended = gemm(weights, transposed(transform(inner(h, z), square)));  // (9, 3)
      check_tape(t, sum(log_softmax(z) * weights) + sum(transform(row_sums(attended), square)), x, h, w, v);
    });
}

TEST_CASE("values of sums, inner products and softmax") {
  on_threads(2, [](const communicator& world) {
    const mesh<host> m(world, {2, 1, 1});
    const auto x = generate<vertex_rows, double>(m, {5, 3}, [](auto i, auto j) { return element(i, j); });
    host_tape t(m);
    const auto h = t.constant(x);
    const auto rows = t.keep(row_sums(h)), columns = t.keep(column_sums(h)), products = t.keep(inner(h, h)),
               softmax = t.keep(row_softmax(h)), logarithm = t.keep(log_softmax(h));
    t.forward();
    dense<double, vertex_rows, host> per_row(m, {5, 1}), shares(m, {5, 3}), logarithms(m, {5, 3});
    dense<double, replicated, host> per_column(m, {1, 3});
    partita::row_sums(x, per_row);
    partita::column_sums(x, per_column);
    partita::row_softmax(x, shares);
    algebra::log_softmax(x, logarithms);
    CHECK(collect(t.value(rows)) == collect(per_row));
    CHECK(collect(t.value(columns)) == collect(per_column));
    CHECK(largest_difference(collect(t.value(products)), collect(gram(x))) < 1e-13);
    CHECK(collect(t.value(softmax)) == collect(shares));
    CHECK(collect(t.value(logarithm)) == collect(logarithms));
  });
}

TEST_CASE("reductions are verbs of whole rows") {
  on_threads(2, [](const communicator& world) {
    const mesh<host> m(world, {1, 2, 1});
    dense<double, layout{{}, axis::col}, host> x(m, {4, 3});
    dense<double, vertex_rows, host> y(m, {5, 3}), z(m, {4, 3});
    host_tape t(m);
    const auto h = t.input(x);
    const auto why = [](const char* what) {
      return std::string(what) + " is a verb of whole rows, not of 4 x 3 with (";
    };
    expect_error<shape_error>(why("row_sums").c_str(), [&] { row_sums(h); });
    expect_error<shape_error>(why("column_sums").c_str(), [&] { column_sums(h); });
    expect_error<shape_error>(why("row_softmax").c_str(), [&] { row_softmax(h); });
    expect_error<shape_error>(why("inner").c_str(), [&] { inner(t.input(z), h); });
    expect_error<shape_error>("not those of 5 x 3 and 4 x 3", [&] { inner(t.input(y), t.input(z)); });
  });
}

}  // namespace test_autodiff_reductions

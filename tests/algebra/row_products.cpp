// SPDX-License-Identifier: Apache-2.0
// Products with a replicated weight of matrices whose rows are whole, dense and sparse.

#include <algorithm>

#include "partita/algebra/operand.hpp"
#include "partita/local/kernels.hpp"
#include "partita/memory/mapped_store.hpp"
#include "partita/memory/observed_passes.hpp"
#include "support/far_store.hpp"
#include "support/layers.hpp"

namespace test_row_products {

using namespace test_support;

using matrix = rows_matrix;

TEST_CASE(
    "sparse features are multiplied like the matrix that dropout leaves, in few entries or far memory too") {
  const auto store = new_far_store();
  for (const auto& [most, window] : {std::pair(base::max_tile_entries, std::size_t{0}), {9, 0}, {9, 6144}})
    on_threads(3, [&, most = most, window = window](const communicator& world) {
      const device_queue<host> q;
      if (window > 0) use_far(q, {.store = store, .window = window});
      const mesh<host> m(world, {1, 1, 3}, q, most);
      const auto h = generate<vertex_rows, double>(m, {26, 11}, [](global_index i, global_index j) {
        return (i + 3 * j) % 4 == 1 ? element(i, j) : 0;
      });
      const auto g = generate<vertex_rows, double>(m, {26, 5}, field(0));
      const auto w = generate<replicated, double>(m, {11, 5}, field(0));
      const auto whole = compressed(h);
      auto dropped = whole.like();
      matrix left(m, h.shape()), written(m, h.shape()), y(m, g.shape()), expected(m, g.shape());
      dense<double, replicated, host> dw(m, w.shape()), expected_dw(m, w.shape());
      for (const double probability : {0.0, 0.5, 0.0}) {
        const dropout_mask mask{probability, {.seed = 4}};
        dropout(whole, dropped, mask);
        const auto& x = probability > 0 ? dropped : whole;
        dropout(h, left, mask);
        copy(x, written);
        CHECK(values(written) == values(left));
        gemm(x, w, y);
        gemm(left, w, expected);
        CHECK(largest_difference(values(y), values(expected)) < 1e-13);
        algebra::weight_gradient_part(x, g, dw);
        algebra::weight_gradient_part(left, g, expected_dw);
        CHECK(largest_difference({dw.values().begin(), dw.values().end()},
                                 {expected_dw.values().begin(), expected_dw.values().end()}) < 1e-13);
      }
      if (window > 0) CHECK(far_of(q)->traffic().rows_read > 0);
      int parts = 0;
      for ([[maybe_unused]] const auto& part : whole.parts()) ++parts;
      for ([[maybe_unused]] const auto& part : whole.transposed_parts()) ++parts;
      CHECK((most < base::max_tile_entries ? parts > 4 : parts == 2));
    });
}

TEST_CASE("dense copies of sparse rows are seen, and need not run") {
  for (const bool runs : {true, false}) {
    std::vector<memory::kernel_call> calls;
    const auto q = memory::observed(device_queue<host>(),
                                    [&](const memory::kernel_call& c, base::function_reference<void()> run) {
                                      calls.push_back(c);
                                      if (runs) run();
                                    });
    const mesh<host> m(self::world(), mesh_shape(), q);
    const sparse_rows<double, host> x(m, blocking::even(2, m.shape(), nesting::rows), 3, {{0, 2, 5.0}});
    dense<double, vertex_rows, host> y(m, {2, 3});
    std::ranges::fill(y.values(), 7.0);
    copy(x, y);
    REQUIRE(calls.size() == 1);
    CHECK(calls[0].kernel == "rows: write out");
    CHECK(calls[0].rows == 2);
    CHECK(calls[0].bytes == 2 * 3 * sizeof(double));
    const std::vector<double> found(y.values().begin(), y.values().end());
    CHECK(found == (runs ? std::vector<double>{0, 0, 5, 0, 0, 0} : std::vector<double>(6, 7)));
  }
}

TEST_CASE("epilogues, transposed weights, sums and gradients of this rank, by hand") {
  const auto m = alone();
  const matrix x = from(m, {2, 2}, {1, 2, 3, 4}), g = from(m, {2, 1}, {10, -1});
  const auto constant = [&](matrix_shape shape, std::vector<double> of) {
    return generate<replicated, double>(
        m, shape, [&](auto i, auto j) { return of[static_cast<std::size_t>(i * shape.cols + j)]; });
  };
  const auto w = constant({2, 1}, {1, -1}), bias = constant({1, 1}, {0.5});
  matrix y(m, {2, 1}), dx(m, {2, 2});
  gemm(x, w, y);
  CHECK(values(y) == std::vector<double>{-1, -1});
  gemm(x, w, y, {.beta = -2, .bias = &bias, .relu = true});
  CHECK(values(y) == std::vector<double>{1.5, 1.5});
  gemm(x, w, y, {.bias = &bias, .relu = true});
  CHECK(values(y) == std::vector<double>{0, 0});
  gemm(g, transposed(w), dx);
  CHECK(values(dx) == std::vector<double>{10, -10, -1, 1});
  gemm(g, transposed(w), dx, 1.0);
  CHECK(values(dx) == std::vector<double>{20, -20, -2, 2});
  algebra::gemm_relu_backward(g, w, from(m, {2, 2}, {1, 0, 0, 5}), dx);
  CHECK(values(dx) == std::vector<double>{10, 0, 0, 1});
  auto dw = constant({2, 1}, {0, 0}), sums = constant({1, 1}, {0});
  algebra::weight_gradient_part(algebra::operand<double, host>(x), g, dw, &sums);
  CHECK(collect(dw) == std::vector<double>{7, 16});
  CHECK(collect(sums) == std::vector<double>{9});
  algebra::column_sums_part(g, sums);
  CHECK(collect(sums) == std::vector<double>{9});
  expect_error<shape_error>("gemm: X of 2 x 2 times 1 x 1 does not fit Y of 2 x 1",
                            [&] { gemm(x, bias, y); });
  expect_error<shape_error>("column sums of 2 x 1 cannot be stored in 2 x 1",
                            [&] { algebra::column_sums_part(g, dw); });
}

TEST_CASE("an X of bfloat16: the bits of its floats, near and far") {
  const auto store = new_far_store();
  for (const std::size_t window : {std::size_t{0}, std::size_t{4096}})
    on_threads(3, [&](const communicator& world) {
      const device_queue<host> q;
      if (window > 0) use_far(q, {.store = store, .window = window});
      const mesh<host> m(world, {3, 1, 1}, q);
      const auto as_float = [](global_index i, global_index j) { return static_cast<float>(element(i, j)); };
      const auto x = generate<vertex_rows, float>(m, {70, 11}, as_float),
                 g = generate<vertex_rows, float>(m, {70, 5}, as_float);
      const auto w = generate<replicated, float>(m, {11, 5}, as_float);
      dense<base::bfloat16, vertex_rows, host> stored(m, x.shape());
      dense<float, vertex_rows, host> widened(m, x.shape()), y(m, g.shape()), expected(m, g.shape()),
          dx(m, x.shape()), expected_dx(m, x.shape());
      copy(x, stored);
      copy(stored, widened);
      dense<float, replicated, host> dw(m, w.shape()), expected_dw(m, w.shape()), sums(m, {1, 5});
      const algebra::operand<float, host> h(stored);
      gemm(h, w, y, {.relu = true});
      gemm(widened, w, expected, {.relu = true});
      CHECK(std::ranges::equal(y.values(), expected.values()));
      algebra::gemm_relu_backward(g, w, stored, dx);
      algebra::gemm_relu_backward(g, w, widened, expected_dx);
      CHECK(std::ranges::equal(dx.values(), expected_dx.values()));
      if (window > 0) CHECK(far_of(q)->traffic().read > 0);
      if (window > 0) return;
      algebra::weight_gradient_part(h, g, dw, &sums);
      algebra::weight_gradient_part(widened, g, expected_dw);
      CHECK(collect(dw) == collect(expected_dw));
    });
}

}  // namespace test_row_products

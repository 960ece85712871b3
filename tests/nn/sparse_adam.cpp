// SPDX-License-Identifier: Apache-2.0
// Sparse Adam against Adam entry by entry: rows in a step, rows left out, rows that never had a gradient.
#include "partita/nn/sparse_adam.hpp"

#include "support/layers.hpp"

namespace test_sparse_adam {

using namespace test_support;

constexpr global_index n = 11, width = 3;
constexpr int steps = 4;

/// Whether row i is in step t; row 6 is in none.
bool in_step(global_index i, int t) { return i != 6 && base::random_bits(9, i, t) % 3 != 0; }
double gradient(global_index i, global_index j, int t) {
  return i == 4 ? 0 : element(i, j, 50 + static_cast<std::uint64_t>(t));
}

/// X after all steps, from Kingma and Ba's equations, with the step's number in the bias correction.
double expected(global_index i, global_index j) {
  double x = element(i, j), m = 0, v = 0;
  for (int t = 1; t <= steps; ++t) {
    if (!in_step(i, t)) continue;
    const double g = gradient(i, j, t);
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    x -= 0.05 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
  }
  return x;
}

TEST_CASE("rows in a step move as Adam moves them, other rows keep values and moments bit for bit") {
  for (const layout l : {vertex_rows, layout{{}, partition::every_axis}, layout{axis::row, axis::col}})
    for (const mesh_shape shape : {mesh_shape{1, 1, 1}, {3, 1, 1}, {2, 2, 1}, {2, 2, 2}})
      on_mesh(shape, [&](const host_mesh& m) {
        auto x = generate<double>(m, l, {n, width}, [](auto i, auto j) { return element(i, j); });
        nn::sparse_adam<double, host> optimizer(0.05);
        for (int t = 1; t <= steps; ++t) {
          std::vector<global_index> rows;
          for (global_index i = x.row_range().end; i-- > x.row_range().begin;)
            if (in_step(i, t)) rows.push_back(i - x.row_range().begin);
          auto g = generate<vertex_rows, double>(
              alone(), {std::ssize(rows), x.col_range().size()}, [&](global_index i, global_index j) {
                return gradient(x.row_range().begin + rows[static_cast<std::size_t>(i)],
                                x.col_range().begin + j, t);
              });
          const std::vector<double> before(x.values().begin(), x.values().end());
          const auto moment = optimizer.state_of(x).second_moment.values();
          const std::vector<double> moment_before(moment.begin(), moment.end());
          optimizer.step(x, rows, g);
          for (std::size_t k = 0; k < before.size(); ++k) {
            const global_index i = x.row_range().begin + static_cast<global_index>(k) / x.col_range().size();
            if (!in_step(i, t)) CHECK(x.values()[k] == before[k]);
            if (!in_step(i, t)) CHECK(moment[k] == moment_before[k]);
          }
        }
        CHECK(mismatches(x, expected, 1e-14) == 0);
        // A row whose gradient is always 0, and one that is in no step.
        for (const global_index i : {4, 6})
          if (x.row_range().contains(i))
            for (global_index j = x.col_range().begin; j < x.col_range().end; ++j)
              CHECK(expected(i, j) == element(i, j));
        CHECK(optimizer.state_of(x).steps == steps);
      });
}

TEST_CASE("a step on all rows is one on the list of all rows") {
  on_mesh({2, 1, 2}, [&](const host_mesh& m) {
    const auto made = [&](std::uint64_t key) {
      return generate<double>(m, vertex_rows, {n, width}, [=](auto i, auto j) { return element(i, j, key); });
    };
    auto x = made(1), y = made(1), g = made(2);
    nn::sparse_adam<double, host> whole(0.1), listed(0.1);
    std::vector<global_index> rows;
    for (global_index i = 0; i < x.row_range().size(); ++i) rows.push_back(i);
    auto block = dense<double, vertex_rows, host>::view(alone(), {std::ssize(rows), width}, g.values());
    for (int t = 0; t < 3; ++t) {
      whole.step(x, g);
      listed.step(y, rows, block);
    }
    CHECK(std::equal(x.values().begin(), x.values().end(), y.values().begin()));
    auto elsewhere =
        generate<double>(m, layout{{}, partition::every_axis}, {n, width}, [](auto, auto) { return 0; });
    CHECK_THROWS_AS(whole.step(x, elsewhere), shape_error);
    rows.push_back(0);
    CHECK_THROWS_AS(listed.step(x, rows, block), shape_error);
  });
}

}  // namespace test_sparse_adam

// SPDX-License-Identifier: Apache-2.0
// The maximum over in-neighbours and its gradient: by hand, and on every policy and mesh.
#include "partita/algebra/max_aggregate.hpp"

#include "partita/comm/self.hpp"
#include "partita/memory/mapped_store.hpp"
#include "support/far_store.hpp"
#include "support/matrices.hpp"
#include "support/summing.hpp"

namespace test_max_aggregate {

using namespace test_support;

using matrix = dense<double, vertex_rows, host>;

mesh<host> alone() { return mesh<host>(self::world(), {1, 1, 1}); }
matrix from(const mesh<host>& m, matrix_shape shape, const std::vector<double>& values) {
  return generate<vertex_rows, double>(m, shape, [&](global_index i, global_index j) {
    return values[static_cast<std::size_t>(i * shape.cols + j)];
  });
}
std::vector<double> values(const matrix& x) { return {x.values().begin(), x.values().end()}; }

/// Edges to 0 from 1, 2 and 3, to 2 from 0 and 1; vertices 1 and 3 have no in-neighbours.
sparse<double, dynamic_layout, host> four_vertices(const mesh<host>& m) {
  const std::vector<triplet<double>> edges{{0, 3, 9.}, {0, 1, -1.}, {2, 1, 1.}, {0, 2, 1.}, {2, 0, 1.}};
  return distribute(m, row_1d.sparse, {4, 4}, edges);
}
const std::vector<double> four_features{1, -5, 2, -4, -1, -3, 2, -9};

TEST_CASE("the maximum over in-neighbours of four vertices and its gradient, by hand") {
  const auto m = alone();
  max_aggregation<double, host> maximum(four_vertices(m), 2);
  const matrix h = from(m, {4, 2}, four_features);
  matrix y(m, h.shape()), dh(m, h.shape());
  maximum.forward(h, y);
  CHECK(values(y) == std::vector<double>{2, -3, 0, 0, 2, -4, 0, 0});
  maximum.backward(from(m, {4, 2}, {1, 10, 100, 100, 2, 20, 100, 100}), dh);
  CHECK(values(dh) == std::vector<double>{0, 0, 3, 20, 0, 10, 0, 0});
}

TEST_CASE("of equal neighbours the one with the smallest global index gets the gradient, on every policy") {
  constexpr global_index n = 23, f = 4;
  const auto edges = sparse_entries({n, n}, 3);
  const auto h = [](global_index i, global_index j) { return static_cast<double>((i * i + j) % 3 - 1); };
  const auto dy = [](global_index i, global_index j) { return static_cast<double>(i + 30 * j + 1); };
  std::vector<double> y(n * f, 0), dh(n * f, 0);
  std::size_t ties = 0;
  for (global_index v = 0; v < n; ++v)
    for (global_index j = 0; j < f; ++j) {
      global_index winner = -1;
      for (const auto& e : edges) {  // in the order of rows and columns
        if (e.row != v) continue;
        if (winner >= 0 && h(e.col, j) == h(winner, j)) ++ties;
        if (winner < 0 || h(e.col, j) > h(winner, j)) winner = e.col;
      }
      if (winner < 0) continue;
      y[static_cast<std::size_t>(v * f + j)] = h(winner, j);
      dh[static_cast<std::size_t>(winner * f + j)] += dy(v, j);
    }
  CHECK(ties > 100);
  const auto run = [&](auto policy, mesh_shape shape, const std::shared_ptr<far_store>& store) {
    on_threads(shape.size(), [&](const communicator& world) {
      const device_queue<host> q;
      if (store) use_far(q, {.store = store, .window = 4096});
      const mesh<host> m(world, shape, q);
      const auto graph = distribute(m, policy.sparse, {n, n}, share(edges, m));
      max_aggregation<double, host> maximum(graph, f);
      matrix largest(m, {n, f}), gradient(m, {n, f});
      m.ledger().clear();
      maximum.forward(generate<vertex_rows, double>(m, {n, f}, h), largest);
      same(heard(m), maximum.predicted_forward(), "forward");
      m.ledger().clear();
      maximum.backward(generate<vertex_rows, double>(m, {n, f}, dy), gradient);
      same(heard(m), maximum.predicted_backward(), "backward");
      check_equals(largest, y, 0, "the maximum");
      check_equals(gradient, dh, 0, "its gradient");
    });
  };
  const auto store = new_far_store();
  for_each_mesh(std::array{1, 4, 6, 9, 12}, [&](auto policy, mesh_shape shape) {
    run(policy, shape, nullptr);
    if (shape == default_mesh(policy, shape.size())) run(policy, shape, store);
  });
}

/// The maximum and its gradient on every rank, with ties and gradients of many magnitudes.
template <class T>
std::array<std::vector<double>, 2> maximum_on(const mesh<host>& m, const policy& p) {
  constexpr global_index n = 41, f = 5;
  const auto edges = sparse_entries({n, n}, 3);
  const auto h = [](global_index i, global_index j) { return static_cast<T>((i * i + j) % 5 - 2); };
  const auto dy = [](global_index i, global_index j) {
    return static_cast<T>(std::ldexp(field(1)(i, j), static_cast<int>(i % 19)));
  };
  std::vector<triplet<T>> own;
  for (const auto& e : share(edges, m)) own.push_back({e.row, e.col, T(1)});
  const auto graph = distribute(m, p.sparse, {n, n}, own);
  max_aggregation<T, host> maximum(graph, f);
  dense<T, vertex_rows, host> largest(m, {n, f}), gradient(m, {n, f});
  m.ledger().clear();
  maximum.forward(generate<vertex_rows, T>(m, {n, f}, h), largest);
  same(heard(m), maximum.predicted_forward(), "forward");
  m.ledger().clear();
  maximum.backward(generate<vertex_rows, T>(m, {n, f}, dy), gradient);
  same(heard(m), maximum.predicted_backward(), "backward");
  const auto doubles = [](const std::vector<T>& x) { return std::vector<double>(x.begin(), x.end()); };
  return {doubles(collect(largest)), doubles(collect(gradient))};
}

TEST_CASE_TEMPLATE("on a reproducible mesh the bits are the same everywhere", T, float, double) {
  const auto on = [](const communicator& world, mesh_shape shape, const policy& p, summation sums) {
    return maximum_on<T>({world, shape, summing(sums, 1 + shape.row % 3), 40}, p);
  };
  const auto expected = on(self::world(), {1, 1, 1}, row_1d, summation::reproducible);
  const auto fast = on(self::world(), {1, 1, 1}, row_1d, summation::fast);
  CHECK(expected[0] == fast[0]);
  CHECK(largest_difference(expected[1], fast[1]) < 40 * 0x1p18 * std::numeric_limits<T>::epsilon());
  on_usual_meshes(std::array{1, 2, 3, 4, 6, 8, 9, 12, 16, 27},
                  [&](const host_mesh& m, const partita::policy& policy) {
                    CHECK_MESSAGE((on(m.world(), m.shape(), policy, summation::reproducible) == expected),
                                  std::string(policy.name), " on ", to_string(m.shape()));
                  });
}

TEST_CASE("matrices of another shape are refused") {
  const auto m = alone();
  max_aggregation<double, host> maximum(four_vertices(m), 2);
  matrix narrow_one(m, {4, 1}), wide(m, {4, 2}), longer(m, {5, 2});
  expect_error<shape_error>("maximum over neighbours of 4 x 2 was given a matrix of 4 x 1",
                            [&] { maximum.forward(narrow_one, wide); });
  expect_error<shape_error>("5 x 2", [&] { maximum.forward(longer, wide); });
  expect_error<shape_error>("5 x 2", [&] { maximum.backward(wide, longer); });
}

}  // namespace test_max_aggregate

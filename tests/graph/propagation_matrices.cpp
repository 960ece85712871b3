// SPDX-License-Identifier: Apache-2.0
// The matrices that models propagate with, by hand.
#include "partita/graph/propagation_matrices.hpp"

#include <numeric>

#include "partita/base/random.hpp"
#include "support/layers.hpp"

namespace test_propagation_matrices {

using namespace test_support;

io::dataset weighted_graph(global_index n, std::vector<io::edge> edges, std::vector<double> weights) {
  io::dataset data;
  data.name = "by hand", data.vertices = n;
  data.edges = std::move(edges), data.edge_weights = std::move(weights);
  return data;
}

/// The values at these places, once the entries of all ranks are added up.
std::vector<double> values_at(const communicator& world, const graph::matrix_entries<double>& entries,
                              const std::vector<std::pair<global_index, global_index>>& places) {
  std::vector<double> found(places.size(), 0);
  for (const auto& e : entries)
    for (std::size_t k = 0; k < places.size(); ++k)
      if (places[k] == std::pair(e.row, e.col)) found[k] += e.value;
  world.all_reduce(found);
  for (std::size_t k = 0; k < places.size(); ++k)
    found[k] = entries.final_value(places[k].first, places[k].second, found[k]);
  return found;
}

TEST_CASE("normalisation of two vertices and one weighted edge") {
  const io::dataset data = weighted_graph(2, {{0, 1}}, {3.0});
  const auto a = graph::gcn_normalized(self::world(), data);
  CHECK(values_at(self::world(), a, {{1, 0}, {0, 0}, {1, 1}}) ==
        std::vector<double>{3.0 * (1 / std::sqrt(4.0)), 1.0, 0.25});
}

TEST_CASE("a loop that is there: A + I adds to it or leaves it, on any number of ranks") {
  const io::dataset data = weighted_graph(2, {{0, 0}, {0, 1}}, {3.0, 1.0});
  for (const int ranks : {1, 2})
    on_threads(ranks, [&](const communicator& world) {
      for (const auto& [loops, corner] :
           {std::pair(graph::self_loops::sum, 4.0), std::pair(graph::self_loops::once, 3.0)}) {
        const auto found =
            values_at(world, graph::gcn_normalized(world, data, loops), {{0, 0}, {0, 1}, {1, 0}, {1, 1}});
        const double below = 1 / std::sqrt(2 * corner);
        for (std::size_t k = 0; k < 4; ++k)
          CHECK(found[k] == doctest::Approx(std::array{1.0, 0.0, below, 0.5}[k]));
      }
    });
}

TEST_CASE("the mean over in-neighbours is weighted") {
  const io::dataset data = weighted_graph(3, {{0, 1}, {2, 1}, {1, 0}}, {3.0, 1.0, 0.0});
  CHECK(values_at(self::world(), graph::mean_normalized(self::world(), data), {{1, 0}, {1, 2}, {0, 1}}) ==
        std::vector<double>{0.75, 0.25, 0.0});
}

TEST_CASE("the loops of A + I are spread over all tiles of a grid, in any order of the vertices") {
  const global_index n = 4001;
  std::vector<global_index> number(static_cast<std::size_t>(n));
  std::iota(number.begin(), number.end(), global_index{0});
  for (const bool by_chance : {false, true}) {
    if (by_chance) base::shuffle(number, 1);
    std::vector<io::edge> path;
    for (std::size_t v = 0; v + 1 < number.size(); ++v)
      path.insert(path.end(), {{number[v], number[v + 1]}, {number[v + 1], number[v]}});
    const io::dataset data = weighted_graph(n, path, std::vector<double>(path.size(), 1));
    on_threads(4, [&](const communicator& world) {
      const auto a =
          graph::propagation_matrices<double, host>(mesh<host>(world, {2, 2, 1}), data, {}, grid_2d)
              .gcn_normalized();
      const auto mine = static_cast<global_index>(a.local()->values.size());
      const auto most = world.all_reduce(mine, reduction::max), all = world.all_reduce(mine);
      CHECK(all == 3 * n - 2);
      CHECK(most < 1.04 * static_cast<double>(all) / 4);  // in square tiles on the diagonal: 4 / 3 or 2
    });
  }
}

TEST_CASE("an edge outside the graph is named") {
  const io::dataset data = weighted_graph(2, {{7, 1}}, {3.0});
  expect_error<shape_error>(1, "entry (1, 7) is outside a matrix of 2 x 2", [&](const communicator& world) {
    const mesh<host> m(world, {1, 1, 1});
    distribute(m, row_1d, {2, 2}, graph::mean_normalized(world, data));
  });
  expect_error<shape_error>(1, "entry (1, 7) is outside a matrix of 2 x 2", [&](const communicator& world) {
    graph::propagation_matrices<double, host>(mesh<host>(world, {1, 1, 1}), data, {}, row_1d);
  });
}

TEST_CASE("a sum of weights that is not finite is named") {
  const io::dataset data = weighted_graph(2, {{0, 1}, {1, 1}}, {1e308, 1e308});
  expect_error<error>(1, "the weights of the edges to vertex 1 have a sum that is not a finite number",
                      [&](const communicator& world) { graph::mean_normalized(world, data); });
}

}  // namespace test_propagation_matrices

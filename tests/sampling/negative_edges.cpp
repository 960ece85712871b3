// SPDX-License-Identifier: Apache-2.0
// Negatives are no links and no loops, and the same on any number of ranks.
#include "partita/sampling/negative_edges.hpp"

#include <mutex>

#include "support/samples.hpp"

namespace test_negative_edges {

using namespace test_support;

constexpr global_index n = 40;
using pair_list = std::vector<std::tuple<global_index, global_index, double>>;

/// Of all ranks, sorted.
pair_list pairs_on(mesh_shape shape, const partita::policy& p, int count, std::uint64_t epoch) {
  pair_list all;
  std::mutex lock;
  with_mesh(shape, [&](const host_mesh& m) {
    const auto a = distribute(m, partita::partition::rows_of(p.sparse), {n, n}, share(graph_entries(n), m));
    const sampling::graph<double> links(a);
    const partita::interval own = partita::blocking::even(n, m.shape(), partita::nesting::rows)
                                      .block(partita::vertex_rows.rows, m.at());
    const auto mine = sampling::links_and_negatives(links, own, count, {3, epoch, 7});
    const std::lock_guard hold(lock);
    for (const auto& e : mine) all.emplace_back(e.col, e.row, e.value);
  });
  std::sort(all.begin(), all.end());
  return all;
}

TEST_CASE("negatives by counter, under every policy") {
  const global_rows links = by_rows(graph_entries(n));
  const pair_list first = pairs_on({1, 1, 1}, partita::row_1d, 3, 1);
  std::size_t positives = 0;
  for (const auto& [u, w, value] : first) {
    const bool is_link = links.contains(u) && links.at(u).contains(w);
    CHECK(is_link == (value == 1));
    CHECK(u != w);
    positives += value == 1;
  }
  std::size_t entries = 0;
  for (const auto& e : graph_entries(n)) entries += e.row != e.col;
  CHECK(positives == entries);
  CHECK(first.size() == 4 * entries);  // nobody is linked with nearly all others, but for vertex 8
  CHECK(pairs_on({1, 1, 1}, partita::row_1d, 3, 2) != first);
  for (const partita::policy& p : {partita::row_1d, partita::grid_2d, partita::feature_column})
    for (const int ranks : {2, 3, 6}) CHECK(pairs_on(default_mesh(p, ranks), p, 3, 1) == first);
}

TEST_CASE("a vertex that is linked with all others has no negatives") {
  const host_mesh m(partita::self::world(), {1, 1, 1});
  std::vector<triplet<double>> star;
  for (global_index v = 1; v < 5; ++v) star.push_back({0, v, 1});
  const sampling::graph<double> links(distribute(m, partita::row_1d, {5, 5}, star));
  CHECK(!sampling::negative_of(links, {}, 0, 0));
  CHECK(sampling::negative_of(links, {}, 1, 0) != 1);
  CHECK(sampling::links_and_negatives(links, {0, 5}, 2, {}).size() == 4);
}

TEST_CASE("negatives are uniform") {
  const host_mesh m(partita::self::world(), {1, 1, 1});
  const sampling::graph<double> links(
      distribute(m, partita::row_1d, {10, 10}, std::vector<triplet<double>>{{2, 5, 1}, {2, 9, 1}}));
  std::array<int, 10> counts{};
  for (int k = 0; k < 7000; ++k) ++counts[static_cast<std::size_t>(*sampling::negative_of(links, {4}, 2, k))];
  for (const int w : {2, 5, 9}) CHECK(counts[static_cast<std::size_t>(w)] == 0);
  for (const int w : {0, 1, 3, 4, 6, 7, 8}) CHECK(std::abs(counts[static_cast<std::size_t>(w)] - 1000) < 120);
}

}  // namespace test_negative_edges

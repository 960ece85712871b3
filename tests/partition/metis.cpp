// SPDX-License-Identifier: Apache-2.0
// Parts by METIS: few edges between them, the same again, about equally large.
#include "partita/partition/metis.hpp"

#include <doctest/doctest.h>
#include <set>
#include <thread>

#include "partita/base/random.hpp"
#include "support/ranks.hpp"

namespace test_partition_metis {

using namespace partita;
using partition::metis_parts, partition::part_balance, test_support::expect_error;

/// A pattern in CSR, row by row.
struct pattern {
  std::vector<global_index> offsets{0}, columns;

  void end_row() { offsets.push_back(static_cast<global_index>(columns.size())); }
  std::size_t rows() const { return offsets.size() - 1; }
  std::vector<int> parts(int count, const partition::metis_options& options = {}) const {
    return metis_parts(offsets, columns, count, options);
  }
};

/// Cliques of `size` vertices each, dealt by turns so that vertex v is in clique v mod `cliques`, and an edge
/// from each clique to the next.
pattern planted(global_index cliques, global_index size) {
  pattern a;
  for (global_index v = 0; v < cliques * size; ++v) {
    for (global_index u = v % cliques; u < cliques * size; u += cliques) a.columns.push_back(u);
    if (v < cliques) a.columns.push_back((v + 1) % cliques);
    a.end_row();
  }
  return a;
}

/// Directed, about one entry in 30, n rows; rows and columns that 7 divides are empty.
pattern directed(global_index n) {
  pattern a;
  for (global_index v = 0; v < n; ++v) {
    for (global_index u = 0; u < n; ++u)
      if (u % 7 != 0 && v % 7 != 0 && base::random_bits(5, v, u) % 30 == 0) a.columns.push_back(u);
    a.end_row();
  }
  return a;
}

std::vector<global_index> sizes_of(const std::vector<int>& parts, int count) {
  std::vector<global_index> sizes(static_cast<std::size_t>(count), 0);
  for (const int part : parts) {
    REQUIRE((part >= 0 && part < count));
    ++sizes[static_cast<std::size_t>(part)];
  }
  return sizes;
}

TEST_CASE("metis: cliques are found") {
  for (const int cliques : {2, 3, 5, 12}) {
    const pattern a = planted(cliques, 31);
    for (const std::uint64_t seed : {0u, 1u, 2u}) {
      const std::vector<int> parts = a.parts(cliques, {.seed = seed});
      REQUIRE(parts.size() == a.rows());
      for (std::size_t v = 0; v < parts.size(); ++v)
        CHECK(parts[v] == parts[v % static_cast<std::size_t>(cliques)]);
      CHECK(std::set<int>(parts.begin(), parts.end()).size() == static_cast<std::size_t>(cliques));
    }
  }
}

TEST_CASE("metis: the volume, too, finds cliques and keeps parts even") {
  constexpr auto volume = partition::part_objective::volume;
  const pattern cliques = planted(5, 31);
  const std::vector<int> parts = cliques.parts(5, {.objective = volume});
  for (std::size_t v = 0; v < parts.size(); ++v) CHECK(parts[v] == parts[v % 5]);
  const pattern a = directed(400);
  CHECK(std::ranges::max(sizes_of(a.parts(6, {.objective = volume}), 6)) <= 400 * 1.04 / 6);
}

TEST_CASE("metis: the same seed, the same parts, by threads that call together too") {
  const pattern a = directed(700);
  for (const int count : {3, 9}) {
    const std::vector<int> once = a.parts(count, {.seed = 8});
    std::vector<std::vector<int>> again(4);
    std::vector<std::jthread> threads;
    for (std::vector<int>& parts : again)
      threads.emplace_back([&, count] { parts = a.parts(count, {.seed = 8}); });
    threads.clear();
    for (const std::vector<int>& parts : again) CHECK(parts == once);
    std::set<std::vector<int>> of_seeds;
    for (const std::uint64_t seed : {0u, 1u, 2u, 3u}) of_seeds.insert(a.parts(count, {.seed = seed}));
    CHECK(of_seeds.size() > 1);
  }
}

TEST_CASE("metis: parts are about equally large, in vertices or in entries") {
  const pattern a = directed(400);
  // The first 50 vertices have twenty times the entries.
  pattern heavy;
  for (global_index v = 0; v < 400; ++v) {
    const auto begin = a.columns.begin() + a.offsets[static_cast<std::size_t>(v)];
    const auto end = a.columns.begin() + a.offsets[static_cast<std::size_t>(v) + 1];
    for (int copy = 0; copy < (v < 50 ? 20 : 1); ++copy)
      heavy.columns.insert(heavy.columns.end(), begin, end);
    heavy.end_row();
  }
  const auto entries = [&](const std::vector<int>& parts) {
    std::vector<global_index> sums(4, 0);
    for (std::size_t v = 0; v < parts.size(); ++v)
      sums[static_cast<std::size_t>(parts[v])] += 1 + heavy.offsets[v + 1] - heavy.offsets[v];
    return sums;
  };
  const auto largest_over_mean = [](const std::vector<global_index>& sums) {
    const auto all = static_cast<double>(std::accumulate(sums.begin(), sums.end(), global_index{0}));
    return static_cast<double>(std::ranges::max(sums)) * static_cast<double>(sums.size()) / all;
  };
  const std::vector<int> by_vertices = heavy.parts(4);
  const std::vector<int> by_entries = heavy.parts(4, {.balance = part_balance::entries});
  CHECK(largest_over_mean(sizes_of(by_vertices, 4)) <= 1.05);
  CHECK(largest_over_mean(entries(by_entries)) <= 1.2);
  CHECK(largest_over_mean(entries(by_vertices)) > largest_over_mean(entries(by_entries)));
}

TEST_CASE("metis: direction, order of entries and loops do not matter") {
  const pattern a = directed(100);
  std::vector<std::vector<global_index>> from(100);
  for (std::size_t v = 0; v < 100; ++v)
    for (auto e = static_cast<std::size_t>(a.offsets[v]); e < static_cast<std::size_t>(a.offsets[v + 1]); ++e)
      from[static_cast<std::size_t>(a.columns[e])].push_back(static_cast<global_index>(v));
  pattern transposed;
  for (std::size_t u = 0; u < 100; ++u) {
    transposed.columns.insert(transposed.columns.end(), from[u].rbegin(), from[u].rend());
    if (u % 3 == 0) transposed.columns.push_back(static_cast<global_index>(u));
    transposed.end_row();
  }
  CHECK(transposed.parts(4) == a.parts(4));
}

TEST_CASE("metis: graphs without vertices, without edges, and with fewer vertices than parts") {
  CHECK(pattern{}.parts(3).empty());
  for (const int count : {1, 2, 3, 8, 9, 40})
    for (const global_index n : {1, 2, 7, 12, 97}) {
      pattern a;
      a.offsets.assign(static_cast<std::size_t>(n) + 1, 0);
      const std::vector<global_index> sizes = sizes_of(a.parts(count), count);
      INFO(n, " vertices in ", count, " parts");
      CHECK(std::ranges::max(sizes) <= (n + count - 1) / count + 2);
      if (n >= count) CHECK(std::ranges::min(sizes) >= 1);
    }
  const pattern a = directed(60);
  CHECK(a.parts(1) == std::vector<int>(60, 0));
  sizes_of(a.parts(4), 4);
  const std::vector<global_index> each = sizes_of(a.parts(60), 60);
  CHECK(std::ranges::count(each, 1) == 60);
}

TEST_CASE("metis: what is no graph is refused") {
  using numbers = std::vector<global_index>;
  const auto refused = [](const char* part, const numbers& offsets, const numbers& columns, int parts = 2) {
    expect_error<shape_error>(part, [&] { (void)metis_parts(offsets, columns, parts); });
  };
  refused("cut into 0 parts", {0, 1}, {0}, 0);
  refused("n + 1 numbers", {}, {});
  refused("the offsets of 2 rows do not ascend from 0", {0, 2, 1}, {0});
  refused("the offsets of 2 rows do not ascend from 0", {1, 1, 1}, {0});
  refused("the offsets of 2 rows end at 3, but there are 1 entries", {0, 1, 3}, {0});
  refused("a graph of 2 vertices has an edge from vertex 2", {0, 1, 1}, {2});
  refused("a graph of 2 vertices has an edge from vertex -1", {0, 1, 1}, {-1});
  if (sizeof(idx_t) == 4)
    refused("cannot number a graph of 1 vertices and 3000000000 entries", {0, 3000000000}, {});
}

TEST_CASE("metis: an error names METIS's code and the sizes") {
  partition::detail::require_metis_done(METIS_OK, 5, 6, 2);
  const auto refused = [](const char* part, int code) {
    expect_error<error>(part, [&] { partition::detail::require_metis_done(code, 5, 6, 2); });
  };
  refused("5 vertices and 6 undirected edges into 2 parts: it returned -2 (METIS_ERROR_INPUT)",
          METIS_ERROR_INPUT);
  refused("it returned -3 (METIS_ERROR_MEMORY)", METIS_ERROR_MEMORY);
  refused("it returned -4 (METIS_ERROR)", METIS_ERROR);
}

}  // namespace test_partition_metis

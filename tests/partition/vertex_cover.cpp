// SPDX-License-Identifier: Apache-2.0
// Minimum vertex covers: against all sets of vertices, and against maximum matchings found one path at a
// time.
#include "partita/partition/vertex_cover.hpp"

#include <bit>
#include <doctest/doctest.h>

#include "partita/base/random.hpp"
#include "support/matching.hpp"

namespace test_vertex_cover {

using namespace partita;

struct block {
  std::vector<std::size_t> begins{3};  // entries before the first row are another block's
  std::vector<local_index> columns{7, 7, 7};
  local_index width;

  partition::bipartite_graph graph() const { return {begins, columns, width}; }
};

/// Each place has an entry with a probability that `skew` makes smaller towards the last row and column.
block random_block(std::size_t rows, local_index width, double density, double skew, std::uint64_t seed) {
  block b{.width = width};
  for (std::size_t i = 0; i < rows; ++i) {
    for (local_index j = 0; j < width; ++j) {
      const double here = density / (1 + skew * static_cast<double>(i + static_cast<std::size_t>(j)));
      if (base::random_uniform(seed, static_cast<global_index>(i), j) < here) b.columns.push_back(j);
    }
    b.begins.push_back(b.columns.size());
  }
  return b;
}

/// The size of a maximum matching.
global_index matched(const block& b) {
  std::vector<std::vector<int>> columns_of;
  for (std::size_t i = 0; i + 1 < b.begins.size(); ++i)
    columns_of.emplace_back(b.columns.begin() + static_cast<std::ptrdiff_t>(b.begins[i]),
                            b.columns.begin() + static_cast<std::ptrdiff_t>(b.begins[i + 1]));
  return test_support::maximum_matching(columns_of, b.width);
}

bool covers(const block& b, const partition::vertex_cover& c) {
  for (std::size_t i = 0; i + 1 < b.begins.size(); ++i)
    for (std::size_t e = b.begins[i]; e < b.begins[i + 1]; ++e)
      if (c.rows[i] == 0 && c.columns[static_cast<std::size_t>(b.columns[e])] == 0) return false;
  return true;
}

TEST_CASE("vertex_cover: no set of rows and columns is smaller, and none as small has more columns") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const std::size_t rows = 1 + seed % 6;
    const auto width = static_cast<local_index>(1 + seed / 6 % 6);
    const block b = random_block(rows, width, 0.4, 0, seed);
    int least = 99, most_columns = 0;
    for (unsigned set = 0; set < 1U << (rows + static_cast<std::size_t>(width)); ++set) {
      partition::vertex_cover c{std::vector<char>(rows), std::vector<char>(static_cast<std::size_t>(width))};
      for (std::size_t i = 0; i < rows; ++i) c.rows[i] = set >> i & 1;
      for (std::size_t j = 0; j < c.columns.size(); ++j) c.columns[j] = set >> (rows + j) & 1;
      if (!covers(b, c)) continue;
      const int size = std::popcount(set), columns = std::popcount(set >> rows);
      if (size < least) most_columns = 0;
      least = std::min(least, size);
      if (size == least) most_columns = std::max(most_columns, columns);
    }
    const auto found = partition::minimum_vertex_cover(b.graph());
    CHECK(covers(b, found));
    CHECK(found.size == least);
    CHECK(std::count(found.columns.begin(), found.columns.end(), 1) == most_columns);
  }
}

TEST_CASE(
    "vertex_cover: as large as a maximum matching, and no larger than the rows or columns with entries") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const std::size_t rows = 1 + seed * 7 % 90;
    const auto width = static_cast<local_index>(1 + seed * 11 % 70);
    const block b = random_block(rows, width, seed % 2 == 0 ? 0.03 : 0.9, seed % 3 == 0 ? 0.3 : 0, seed);
    const auto found = partition::minimum_vertex_cover(b.graph());
    CHECK(covers(b, found));
    CHECK(found.size == matched(b));
    CHECK(found.size == std::count(found.rows.begin(), found.rows.end(), 1) +
                            std::count(found.columns.begin(), found.columns.end(), 1));
  }
}

TEST_CASE("vertex_cover: a star needs its centre, whichever side it is on, and no entry nothing") {
  const block row{{3, 8}, {7, 7, 7, 0, 1, 2, 3, 4}, 5}, column{{3, 4, 5, 6}, {7, 7, 7, 1, 1, 1}, 2};
  CHECK(partition::minimum_vertex_cover(row.graph()).rows == std::vector<char>{1});
  CHECK(partition::minimum_vertex_cover(row.graph()).size == 1);
  CHECK(partition::minimum_vertex_cover(column.graph()).columns == std::vector<char>{0, 1});
  CHECK(partition::minimum_vertex_cover(column.graph()).size == 1);
  const block none{{3, 3}, {7, 7, 7}, 0};
  CHECK(partition::minimum_vertex_cover(none.graph()).size == 0);
}

}  // namespace test_vertex_cover

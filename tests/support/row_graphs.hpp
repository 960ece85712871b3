// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sparse patterns by rows: grids, random and skewed graphs, hubs.
#include <numeric>
#include <set>

#include "partita/base/index.hpp"
#include "partita/base/random.hpp"

namespace test_support {

struct row_graph {
  std::vector<partita::local_index> offsets, columns;
  partita::local_index cols = 0;

  partita::local_index rows() const { return static_cast<partita::local_index>(offsets.size()) - 1; }
};

inline row_graph graph_of(const std::vector<std::set<partita::local_index>>& rows,
                          partita::local_index cols) {
  row_graph g{{0}, {}, cols};
  for (const auto& row : rows) {
    g.columns.insert(g.columns.end(), row.begin(), row.end());
    g.offsets.push_back(static_cast<partita::local_index>(g.columns.size()));
  }
  return g;
}

/// A number in [0, below).
inline partita::local_index drawn(std::int64_t i, std::int64_t j, partita::local_index below) {
  return static_cast<partita::local_index>(partita::base::random_uniform(5, i, j) * below);
}

/// The points of a side x side grid, each with itself and its up to four neighbours.
inline row_graph grid_graph(partita::local_index side, bool permuted) {
  using partita::local_index;
  std::vector<local_index> name(static_cast<std::size_t>(side * side));
  std::iota(name.begin(), name.end(), 0);
  for (auto i = static_cast<local_index>(name.size()) - 1; permuted && i > 0; --i)
    std::swap(name[static_cast<std::size_t>(i)], name[static_cast<std::size_t>(drawn(i, 0, i + 1))]);
  std::vector<std::set<local_index>> rows(name.size());
  const auto named = [&](local_index i, local_index j) {
    return name[static_cast<std::size_t>(i * side + j)];
  };
  for (local_index i = 0; i < side; ++i)
    for (local_index j = 0; j < side; ++j) {
      std::set<local_index>& row = rows[static_cast<std::size_t>(named(i, j))];
      row.insert(named(i, j));
      if (i > 0) row.insert(named(i - 1, j));
      if (j > 0) row.insert(named(i, j - 1));
      if (i + 1 < side) row.insert(named(i + 1, j));
      if (j + 1 < side) row.insert(named(i, j + 1));
    }
  return graph_of(rows, side * side);
}

/// Directed: at most `degree` columns a row, drawn uniformly.
inline row_graph random_graph(partita::local_index rows, partita::local_index cols, int degree) {
  std::vector<std::set<partita::local_index>> lists(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < lists.size(); ++i)
    for (int k = 0; k < degree; ++k) lists[i].insert(drawn(static_cast<std::int64_t>(i), k, cols));
  return graph_of(lists, cols);
}

/// R-MAT, directed: 2^scale vertices with about `degree` edges each.
inline row_graph skewed_graph(int scale, int degree) {
  using partita::local_index;
  const local_index n = local_index{1} << scale;
  const auto named = [&](local_index v) {
    return static_cast<local_index>((static_cast<std::int64_t>(v) * 40503 + 12345) & (n - 1));
  };
  std::vector<std::set<local_index>> rows(static_cast<std::size_t>(n));
  for (std::int64_t e = 0; e < std::int64_t{n} * degree; ++e) {
    local_index row = 0, col = 0;
    for (int level = 0; level < scale; ++level) {
      const double u = partita::base::random_uniform(1, e, level);
      row = 2 * row + (u >= 0.76);
      col = 2 * col + ((u >= 0.57 && u < 0.76) || u >= 0.95);
    }
    rows[static_cast<std::size_t>(named(row))].insert(named(col));
  }
  return graph_of(rows, n);
}

/// One row with every column, which every other row has.
inline row_graph star_graph(partita::local_index rows) {
  std::vector<std::set<partita::local_index>> lists(static_cast<std::size_t>(rows), {rows / 2});
  for (partita::local_index j = 0; j < rows; ++j) lists[static_cast<std::size_t>(rows / 2)].insert(j);
  return graph_of(lists, rows);
}

/// The graph with every `every`-th row emptied, the first and the last, too.
inline row_graph without_rows(const row_graph& g, partita::local_index every) {
  std::vector<std::set<partita::local_index>> rows(static_cast<std::size_t>(g.rows()));
  for (partita::local_index i = 1; i + 1 < g.rows(); ++i)
    if (i % every != 0)
      rows[static_cast<std::size_t>(i)].insert(
          g.columns.begin() + g.offsets[static_cast<std::size_t>(i)],
          g.columns.begin() + g.offsets[static_cast<std::size_t>(i) + 1]);
  return graph_of(rows, g.cols);
}

}  // namespace test_support

#pragma once
// Matrices as functions of their global indices, and what to hold products against.
#include <cmath>
#include <span>
#include <vector>

#include "partita/base/random.hpp"
#include "partita/base/triplet.hpp"
#include "partita/local/reference/kernels.hpp"

namespace test_support {

using partita::extent;
using partita::global_index;
using partita::triplet;

inline double dense_entry(global_index i, global_index j) {
  return std::sin(1.0 + 7.0 * static_cast<double>(i) + 3.0 * static_cast<double>(j));
}

/// Directed, weighted, about one entry in `sparsity`; row 3 and column 4 (mod 11) are empty.
inline std::vector<triplet<double>> sparse_entries(extent shape, std::uint64_t sparsity = 5) {
  std::vector<triplet<double>> entries;
  for (global_index i = 0; i < shape.rows; ++i)
    for (global_index j = 0; j < shape.cols; ++j)
      if (i % 11 != 3 && j % 11 != 4 && partita::random_bits(17, i, j) % sparsity == 0)
        entries.push_back({i, j, std::cos(static_cast<double>(i + 2 * j))});
  return entries;
}

/// Every size-th entry, beginning with the rank's.
template <class T>
std::vector<triplet<T>> share(const std::vector<triplet<T>>& entries, int rank, int size) {
  std::vector<triplet<T>> mine;
  for (auto e = static_cast<std::size_t>(rank); e < entries.size(); e += static_cast<std::size_t>(size))
    mine.push_back(entries[e]);
  return mine;
}

/// A X or A^T X (row-major), entry by entry.
inline std::vector<double> product(std::span<const triplet<double>> entries, extent shape, global_index width,
                                   bool transposed) {
  std::vector<double> y(static_cast<std::size_t>((transposed ? shape.cols : shape.rows) * width), 0);
  for (const auto& e : entries) {
    const global_index to = transposed ? e.col : e.row, from = transposed ? e.row : e.col;
    for (global_index j = 0; j < width; ++j)
      y[static_cast<std::size_t>(to * width + j)] += e.value * dense_entry(from, j);
  }
  return y;
}

inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double d = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    d = std::isnan(a[i]) ? INFINITY : std::max(d, std::abs(a[i] - b[i]));
  return d;
}

}  // namespace test_support

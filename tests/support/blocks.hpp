#pragma once
// Blocks of numbers for kernels, and how far apart two of them are.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "partita/base/random.hpp"
#include "partita/local/kernels.hpp"

namespace test_support {

using partita::local_index;
using partita::matrix_view;

/// A block inside a larger allocation: the columns between `cols` and `stride` must survive every kernel.
template <class T>
struct block {
  std::vector<T> values;
  local_index rows, cols, stride;

  block(local_index rows, local_index cols, std::uint64_t seed, local_index gap = 3)
      : values(static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols + gap)),
        rows(rows),
        cols(cols),
        stride(cols + gap) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<T>(partita::random_uniform(seed, static_cast<std::int64_t>(i), 7) - 0.5);
  }
  block(local_index rows, local_index cols, std::vector<T> values)
      : values(std::move(values)), rows(rows), cols(cols), stride(cols) {}
  matrix_view<T> view() { return {values.data(), rows, cols, stride}; }
  T* data() { return values.data(); }
  void poison() {
    for (local_index i = 0; i < rows; ++i)
      for (local_index j = 0; j < cols; ++j) view()(i, j) = std::numeric_limits<T>::quiet_NaN();
  }
};

template <class T>
double distance(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    const double d = std::abs(double(a[i]) - double(b[i])) / (1 + std::abs(double(b[i])));
    worst = d <= worst ? worst : (d == d ? d : std::numeric_limits<double>::infinity());
  }
  return worst;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace test_support

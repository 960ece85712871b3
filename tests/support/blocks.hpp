// SPDX-License-Identifier: Apache-2.0
#pragma once
// Blocks of numbers for kernels, and how far apart two of them are.
#include <cmath>
#include <cstring>

#include "partita/base/random.hpp"
#include "partita/local/view.hpp"

namespace test_support {

using partita::local_index, partita::matrix_view, partita::local::csr_view;

/// How a block lies in its allocation: elements before its first, and after each of its rows.
struct placing {
  local_index gap = 3, lead = 0;
};

/// A block inside a larger allocation: what lies before it and between its rows must survive every kernel.
template <class T>
struct block {
  std::vector<T> values;
  local_index rows, cols, stride, lead = 0;

  block(local_index rows, local_index cols, std::uint64_t seed, placing p = {})
      : values(static_cast<std::size_t>(p.lead) +
               static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols + p.gap)),
        rows(rows),
        cols(cols),
        stride(cols + p.gap),
        lead(p.lead) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<T>(partita::base::random_uniform(seed, static_cast<std::int64_t>(i), 7) - 0.5);
  }
  block(local_index rows, local_index cols, std::uint64_t seed, local_index gap)
      : block(rows, cols, seed, placing{gap, 0}) {}
  block(local_index rows, local_index cols, std::vector<T> values)
      : values(std::move(values)), rows(rows), cols(cols), stride(cols) {}

  matrix_view<T> view() { return {data(), rows, cols, stride}; }
  matrix_view<const T> view() const { return {data(), rows, cols, stride}; }
  T* data() { return values.data() + lead; }
  const T* data() const { return values.data() + lead; }
  void poison() {
    for (local_index i = 0; i < rows; ++i)
      for (local_index j = 0; j < cols; ++j) view()(i, j) = std::numeric_limits<T>::quiet_NaN();
  }
};

/// A skewed sparse pattern: row 0 is long, every third row is empty, offsets begin at 2. Each array has
/// elements of nobody before its first one.
template <class T>
struct sparse_block {
  local_index rows, cols;
  std::size_t columns_lead, values_lead;
  std::vector<local_index> offsets{2}, columns;
  std::vector<T> values;

  sparse_block(local_index rows, local_index cols, std::size_t columns_lead = 0, std::size_t values_lead = 0)
      : rows(rows),
        cols(cols),
        columns_lead(columns_lead),
        values_lead(values_lead),
        columns(columns_lead + 2),
        values(values_lead + 2) {
    for (local_index i = 0; i < rows; ++i)
      add_row(i, cols == 0 || i % 3 == 1 ? 0 : i == 0 ? 3 * cols : 1 + i % 7);
  }
  /// With rows of these lengths.
  sparse_block(const std::vector<local_index>& lengths, local_index cols)
      : rows(static_cast<local_index>(lengths.size())),
        cols(cols),
        columns_lead(0),
        values_lead(0),
        columns(2),
        values(2) {
    for (local_index i = 0; i < rows; ++i) add_row(i, lengths[static_cast<std::size_t>(i)]);
  }

  /// With ascending columns in each row.
  sparse_block ascending() const {
    sparse_block sorted = *this;
    const auto column = [&](local_index e) {
      return sorted.columns.begin() + static_cast<std::ptrdiff_t>(columns_lead) + e;
    };
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
      std::sort(column(offsets[i]), column(offsets[i + 1]));
    return sorted;
  }

  local_index end() const { return offsets.back(); }
  partita::local::csr_view<T> view() const {
    return {rows, cols, offsets.data(), columns.data() + columns_lead, values.data() + values_lead};
  }
  partita::local::csr_view<T> pattern() const {
    return {rows, cols, offsets.data(), columns.data() + columns_lead, nullptr};
  }

 private:
  void add_row(local_index i, local_index length) {
    for (local_index e = 0; e < length; ++e) {
      columns.push_back(
          static_cast<local_index>(partita::base::random_bits(5, i, e) % static_cast<std::uint64_t>(cols)));
      values.push_back(static_cast<T>(partita::base::random_uniform(6, i, e) - 0.5));
    }
    offsets.push_back(offsets.back() + length);
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

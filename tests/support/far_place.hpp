// SPDX-License-Identifier: Apache-2.0
#pragma once
// Far memory for tests of kernels, and a graph to pass through its window.

#include "partita/memory/host_far.hpp"
#include "partita/memory/mapped_store.hpp"
#include "support/blocks.hpp"
#include "support/far_store.hpp"

namespace test_support {

/// A queue with far memory, and memory for what a test puts there or not.
struct far_place {
  std::shared_ptr<partita::mapped_store> store = new_far_store();
  partita::device_queue<partita::host> q, far, near;
  std::vector<std::shared_ptr<void>> memory;

  /// `from`: which buffers of products are far.
  explicit far_place(std::size_t window, std::size_t from = 1, int threads = 1) : q(threads) {
    use_far(q, {.store = store, .window = window, .from = from});
    use_far(far, {.store = store, .window = 512});
  }
  template <class T>
  T* put(const std::vector<T>& values, bool is_far) {
    const auto made = std::make_shared<partita::buffer<T, partita::host>>(is_far ? far : near, values.size());
    std::copy(values.begin(), values.end(), made->data());
    memory.push_back(made);
    return made->data();
  }
  template <class T>
  matrix_view<T> put(const block<T>& b, bool is_far) {
    return {put(b.values, is_far) + b.lead, b.rows, b.cols, b.stride};
  }
  template <class T>
  csr_view<T> put(const sparse_block<T>& a, bool structure, bool values) {
    return {a.rows, a.cols, put(a.offsets, structure), put(a.columns, structure) + a.columns_lead,
            put(a.values, values) + a.values_lead};
  }
};

template <class T>
std::vector<T> values_of(matrix_view<const T> y) {
  std::vector<T> values;
  for (local_index i = 0; i < y.rows; ++i) values.insert(values.end(), y.row_data(i), y.row_data(i) + y.cols);
  return values;
}

/// A directed graph: hubs, empty rows, isolated sources.
template <class T>
sparse_block<T> directed(local_index rows, local_index cols) {
  std::vector<local_index> lengths(static_cast<std::size_t>(rows));
  for (local_index i = 0; i < rows; ++i)
    lengths[static_cast<std::size_t>(i)] = i % 5 == 2 ? 0 : i % 97 == 11 ? cols / 2 : 1 + i % 9;
  sparse_block<T> a(lengths, cols);
  for (local_index& c : a.columns) c -= c % 7 == 3;  // columns 3, 10, ... are isolated
  return a;
}

}  // namespace test_support

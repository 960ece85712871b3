// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Undirected graphs generated on a CUDA device as pure functions of a seed: uniform ones, and R-MAT with the
/// Graph500 parameters. The library's own path starts from entries in host memory, which takes longer than
/// the benchmark for a hundred million entries.

#include <algorithm>
#include <string>

#include "partita/local/view.hpp"
#include "partita/memory/cuda.hpp"

namespace bench {

using partita::buffer;
using partita::cuda_device;
using partita::device_queue;
using partita::global_index;
using partita::local_index;

/// The parameters of a graph.
struct graph_counts {
  std::string name;
  global_index vertices = 0;
  global_index nonzeros = 0;  ///< of the adjacency matrix

  /// The same degrees on fewer vertices.
  graph_counts divided_by(int factor) const {
    const auto divided = [&](global_index n) { return std::max(n / factor, std::min<global_index>(n, 64)); };
    return {name, divided(vertices), divided(nonzeros)};
  }
};

inline graph_counts reddit_counts() { return {"reddit", 232965, 114'800'000}; }
inline graph_counts products_counts() { return {"products", 2449029, 123'700'000}; }

/// D^-1/2 A D^-1/2 in CSR format, with aligned arrays.
struct device_operand {
  local_index rows = 0, entries = 0;
  buffer<local_index, cuda_device> offsets, columns;
  buffer<float, cuda_device> values;

  partita::local::csr_view<float> view() const {
    return {rows, rows, offsets.data(), columns.data(), values.data(), entries};
  }
};

/// Synchronises with the device.
device_operand operand_on_device(const device_queue<cuda_device>& q, const graph_counts& counts, bool rmat);

/// Random numbers in [0, 1]. Synchronises with the device.
buffer<float, cuda_device> features_on_device(const device_queue<cuda_device>& q, std::size_t size);

/// The largest |a - b| / (1e-3 + |b|), capped at 1. Synchronises with the device.
float largest_difference(const device_queue<cuda_device>& q, const float* a, const float* b,
                         std::size_t size);

}  // namespace bench

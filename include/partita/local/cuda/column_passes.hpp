// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Columns of a matrix whose rows are gathered, by as many as the device's cache holds.

#include <algorithm>
#include <cstddef>

#include "partita/local/view.hpp"
#include "partita/memory/cuda.hpp"

namespace partita::on_cuda {

/// The L2 cache of a queue's device. Another one is given by `queue.extend`.
struct device_cache {
  explicit device_cache(const device_queue<cuda_device>& q) {
    int size = 0;
    check_cuda(cudaDeviceGetAttribute(&size, cudaDevAttrL2CacheSize, q.device()), "cudaDeviceGetAttribute");
    bytes = static_cast<std::size_t>(size);
  }
  explicit device_cache(std::size_t size) : bytes(size) {}

  std::size_t bytes = 0;
};

/// The columns of a pass over x: all, if three quarters of the cache hold x or do not hold one cache line of
/// every row; else as many cache lines of every row as they hold.
template <class T>
local_index columns_of_pass(const device_cache& cache, const matrix_view<const T>& x) {
  constexpr std::size_t line = 128 / sizeof(T);
  const std::size_t held = cache.bytes / 4 * 3 / sizeof(T) / std::max<std::size_t>(x.rows, 1);
  return held < line || held >= static_cast<std::size_t>(x.cols)
             ? x.cols
             : static_cast<local_index>(held / line * line);
}

/// Calls f(first, count) for the passes over the columns of x in order. What is left over by less than a
/// quarter of a pass belongs to the last one.
template <class T, class F>
void for_columns(const device_queue<cuda_device>& q, const matrix_view<const T>& x, const F& f) {
  const local_index most = columns_of_pass(q.resource<device_cache>(), x);
  for (local_index first = 0; first < x.cols;) {
    const local_index left = x.cols - first, count = left < most + most / 4 ? left : most;
    f(first, count);
    first += count;
  }
}

}  // namespace partita::on_cuda

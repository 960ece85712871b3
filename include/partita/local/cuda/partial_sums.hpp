// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sums of partial results in a fixed order. Device code only.

#include <cstddef>
#include <cstdint>

#include "partita/local/cuda/vector.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/cuda_launch.hpp"

namespace partita::on_cuda {

/// What joined gives of the values of all lanes of a warp: the same bits in each, if it commutes.
template <class V, class F>
__device__ V over_lanes(V value, const F& joined) {
  for (int apart = 16; apart > 0; apart /= 2)
    value = joined(value, __shfl_xor_sync(0xffffffffu, value, apart));
  return value;
}

/// The sum of what the threads of a block have, added pairwise: in thread 0, nothing in others.
template <class Sum>
__device__ Sum over_block(const Sum& mine) {
  __shared__ alignas(16) unsigned char memory[launch_block * sizeof(Sum)];
  Sum* const of_threads = reinterpret_cast<Sum*>(memory);
  const unsigned t = threadIdx.x;
  __syncthreads();  // an earlier sum has been read
  of_threads[t] = mine;
  for (unsigned apart = launch_block / 2; apart > 0; apart /= 2) {
    __syncthreads();
    if (t < apart) of_threads[t] += of_threads[t + apart];
  }
  return t == 0 ? of_threads[0] : Sum{};
}

/// sums[j] = from(0, j) + ... + from(count - 1, j): a block of threads for each j, thread t of it takes rows
/// t, t + launch_block, ..., and the threads' sums are added pairwise.
template <class Sum, class To>
__global__ void __launch_bounds__(launch_block)
    add_parts(const Sum* from, std::int64_t count, std::int64_t width, To* sums) {
  Sum total{};
  for (std::int64_t p = threadIdx.x; p < count; p += launch_block) total += from[p * width + blockIdx.x];
  const Sum sum = over_block(total);
  if (threadIdx.x == 0) sums[blockIdx.x] = static_cast<To>(sum);
}

/// to(i, j) = the sum of what `parts` (blocks rows x columns) has for it, added to what is there if `Adds`.
template <bool Adds, class T>
struct add_blocks {
  const T* parts;
  local_index blocks;
  matrix_view<T> to;

  constexpr void operator()(std::int64_t thread) const {
    const cell at = cell_of(thread, to.cols);
    T sum = 0;
    for (std::int64_t b = 0; b < blocks; ++b) sum += parts[(b * to.rows + at.row) * to.cols + at.col];
    if constexpr (Adds) sum += to(at.row, at.col);
    to(at.row, at.col) = sum;
  }
};

/// Memory of a queue for these parts.
template <class T>
struct block_memory {
  explicit block_memory(const device_queue<cuda_device>&) {}
  buffer<T, cuda_device> parts;
};

/// So many rows of partial sums keep a device busy, and are added by one kernel.
inline constexpr std::int64_t most_parts = 8192;

/// Sums `count` rows of `width` >= 1 partial sums.
template <class Sum, class To>
void add_up(const device_queue<cuda_device>& q, const Sum* parts, std::int64_t count, std::int64_t width,
            To* sums) {
  const device_guard guard(q.device());
  add_parts<<<static_cast<unsigned>(width), launch_block, 0, q.stream()>>>(parts, count, width, sums);
  check_cuda(cudaGetLastError(), "a kernel's launch");
}

/// Where the sum of what make(parts) enqueues, `count` partial sums in scratch memory, will be: there, too.
template <class Sum, class F>
const Sum* start_sum_of_parts(const device_queue<cuda_device>& q, std::int64_t count, const F& make) {
  Sum* const parts = scratch<Sum>(q, static_cast<std::size_t>(count) + 1);
  make(parts);
  add_up(q, parts, count, 1, parts + count);
  return parts + count;
}
/// That sum. Synchronises.
template <class Sum, class F>
Sum sum_of_parts(const device_queue<cuda_device>& q, std::int64_t count, const F& make) {
  return read(q, start_sum_of_parts<Sum>(q, count, make));
}

}  // namespace partita::on_cuda

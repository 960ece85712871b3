// SPDX-License-Identifier: Apache-2.0
#pragma once
/// CSR construction on a device: Thrust on the queue's stream, with temporary memory from its pool, and CUB's
/// radix sort limited to the significant bits of the keys. Thrust would sort all 64; a graph of 233 thousand
/// vertices has 36-bit keys, five passes instead of eight.

#include <cstddef>
#include <cstdint>
#include <cub/device/device_radix_sort.cuh>
#include <memory>
#include <span>
#include <thrust/system/cuda/execution_policy.h>
#include <utility>

#include "compress_entries.hpp"
#include "partita/memory/cuda.hpp"

namespace bench {

using partita::cuda_device;

/// Thrust's allocator for temporary memory.
class pool_allocator {
 public:
  using value_type = char;

  explicit pool_allocator(const device_queue<cuda_device>& q) : owner_(q.owner()) {}

  char* allocate(std::ptrdiff_t bytes) {
    return static_cast<char*>(owner_->allocate(static_cast<std::size_t>(bytes)));
  }
  void deallocate(char* memory, std::size_t bytes) { owner_->release(memory, bytes); }

 private:
  std::shared_ptr<const partita::on_cuda::cuda_stream> owner_;
};

template <>
struct key_sorter<cuda_device> {
  template <class Policy, class T>
  static void sort(const Policy&, const device_queue<cuda_device>& q,
                   buffer<std::uint64_t, cuda_device>& keys, buffer<T, cuda_device>& values, int bits) {
    buffer<std::uint64_t, cuda_device> other_keys(q, keys.size());
    buffer<T, cuda_device> other_values(q, values.size());
    cub::DoubleBuffer<std::uint64_t> both_keys(keys.data(), other_keys.data());
    cub::DoubleBuffer<T> both_values(values.data(), other_values.data());
    const auto run = [&](void* workspace, std::size_t& bytes) {
      partita::on_cuda::check_cuda(
          cub::DeviceRadixSort::SortPairs(workspace, bytes, both_keys, both_values,
                                          static_cast<std::int64_t>(keys.size()), 0, bits, q.stream()),
          "cub::DeviceRadixSort::SortPairs");
    };
    std::size_t bytes = 0;
    run(nullptr, bytes);
    const buffer<std::byte, cuda_device> workspace(q, bytes);
    run(const_cast<std::byte*>(workspace.data()), bytes);
    if (both_keys.Current() != keys.data()) std::swap(keys, other_keys);
    if (both_values.Current() != values.data()) std::swap(values, other_values);
  }
};

/// body(policy) with the Thrust execution policy for the queue; its device is current during the call.
template <class Body>
auto with_policy(const device_queue<cuda_device>& q, const Body& body) {
  const partita::on_cuda::device_guard guard(q.device());
  pool_allocator memory(q);
  return body(thrust::cuda::par_nosync(memory).on(q.stream()));
}

/// Tiles of the entries with rows in `rows` and columns in one of the disjoint intervals `columns`; `entries`
/// are on the host. Duplicates are summed in the order of `entries`. Throws shape_error when the block
/// exceeds the 32-bit local index range. Synchronises with the device.
template <class T>
compressed<T, cuda_device> compress(const device_queue<cuda_device>& q, interval rows,
                                    std::span<const interval> columns, std::span<const triplet<T>> entries) {
  return with_policy(
      q, [&](const auto& policy) { return bench::compress<T>(policy, q, rows, columns, entries); });
}

/// a^T as one tile; a is (m, k) with `nonzeros` entries. Synchronises with the device.
template <class T>
compressed<T, cuda_device> transpose(const device_queue<cuda_device>& q, partita::local::csr_view<T> a,
                                     local_index nonzeros) {
  return with_policy(q, [&](const auto& policy) { return bench::transpose(policy, q, a, nonzeros); });
}

/// Splits `rows` CSR rows into parts with about equally many entries: part p has the rows first_rows[p] to
/// first_rows[p + 1], the last of which is `rows`. Offsets and first_rows are on the device.
inline void partition_rows(const device_queue<cuda_device>& q, local_index rows, const local_index* offsets,
                           std::span<local_index> first_rows) {
  with_policy(q, [&](const auto& policy) { bench::partition_rows(policy, rows, offsets, first_rows); });
}

}  // namespace bench

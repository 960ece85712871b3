// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Stable radix sort on a queue, using CUB.

#ifndef __CUDACC__
#error "sorting on a device is compiled by nvcc: name the source .cu, or set its LANGUAGE to CUDA"
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cub/device/device_radix_sort.cuh>

#include "partita/memory/cuda.hpp"

namespace partita::on_cuda {

/// Number of bits needed for values in [0, count), at least one.
inline int bits_below(std::int64_t count) {
  return count < 3 ? 1 : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(count - 1)));
}

/// Keys and values, with alternate buffers of the same sizes.
template <class Key, class Value>
struct sorted_pairs {
  Key* keys;
  Value* values;
  Key* other_keys;
  Value* other_values;
};

/// Temporary storage for sorts on a queue.
struct sort_memory {
  explicit sort_memory(const device_queue<cuda_device>&) {}

  buffer<std::byte, cuda_device> bytes;
};

/// Stable sort of `count` pairs by the low `bits` bits of their non-negative keys. On return `pairs` points
/// to the sorted data.
template <class Key, class Value>
void sort_pairs(const device_queue<cuda_device>& q, std::int64_t count, int bits,
                sorted_pairs<Key, Value>& pairs) {
  const device_guard guard(q.device());
  cub::DoubleBuffer<Key> keys(pairs.keys, pairs.other_keys);
  cub::DoubleBuffer<Value> values(pairs.values, pairs.other_values);
  std::size_t size = 0;
  const auto sort = [&](void* memory) {
    check_cuda(cub::DeviceRadixSort::SortPairs(memory, size, keys, values, count, 0, bits, q.stream()),
               "cub::DeviceRadixSort::SortPairs");
  };
  sort(nullptr);
  auto& bytes = q.resource<sort_memory>().bytes;
  bytes.reset(q, std::max<std::size_t>(size, 1));
  sort(bytes.data());
  pairs = {keys.Current(), values.Current(), keys.Alternate(), values.Alternate()};
}

}  // namespace partita::on_cuda

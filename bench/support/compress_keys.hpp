// SPDX-License-Identifier: Apache-2.0
#pragma once
/// CSR construction from keys: an entry's key is its position in the result, (tile, row, column) packed into
/// one integer, so that a single stable sort orders all entries. Runs where the Thrust execution policy
/// directs. Duplicates are not summed with Thrust's reduce_by_key, whose summation order may vary between
/// runs.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thrust/binary_search.h>
#include <thrust/copy.h>
#include <thrust/fill.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/sort.h>
#include <thrust/tabulate.h>

#include "partita/base/error.hpp"
#include "partita/base/index.hpp"
#include "partita/base/triplet.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/device.hpp"

namespace bench {

using partita::buffer;
using partita::device_queue;
using partita::global_index;
using partita::interval;
using partita::local_index;
using partita::shape_error;
using partita::triplet;
using partita::base::to_local;
using partita::local::csr_view;

/// A row of CSR tiles, as in matrix/tiles.hpp.
template <class T, class Device>
struct compressed {
  std::size_t nonzeros = 0;
  buffer<local_index, Device>
      structure;  ///< (partita::local::offsets_size() for tiles * (rows + 1) offsets, then nonzeros columns)
  buffer<T, Device> values;  ///< (nonzeros)
};

/// Keys of entries in a row of `tiles` tiles of `rows` rows, at most `width` columns each.
struct key_space {
  /// Throws shape_error when the positions exceed 64 bits.
  key_space(std::size_t count, local_index height, global_index widest)
      : tiles(count), rows(static_cast<std::uint64_t>(height)), width(static_cast<std::uint64_t>(widest)) {
    if (std::bit_width(tiles) + std::bit_width(rows) + std::bit_width(width) > 64)
      throw shape_error("a sparse block of " + std::to_string(tiles) + " tiles of " + std::to_string(rows) +
                        " x " + std::to_string(width) + " has more places than 64 bits can count");
  }

  std::uint64_t tiles, rows, width;

  constexpr std::uint64_t key(std::uint64_t tile, std::uint64_t row, std::uint64_t col) const {
    return (tile * rows + row) * width + col;
  }
  constexpr local_index column(std::uint64_t key) const { return static_cast<local_index>(key % width); }
  /// The maximum number of bits in a key.
  constexpr int bits() const { return std::bit_width(tiles * rows * width); }
  constexpr std::size_t offsets() const { return static_cast<std::size_t>(tiles * (rows + 1)); }
  /// The start of the columns in the structure, after the offsets.
  constexpr std::size_t aligned_offsets() const {
    return partita::local::offsets_size(static_cast<std::size_t>(tiles), static_cast<local_index>(rows));
  }
};

/// The smallest key of the row that an offset belongs to; a tile has one more offset than rows.
struct key_of_offset {
  key_space space;

  constexpr std::uint64_t operator()(std::uint64_t o) const {
    return space.key(o / (space.rows + 1), o % (space.rows + 1), 0);
  }
};

/// Stable sort of `keys`, of at most `bits` bits, with their values. Specialised where a better sort than
/// Thrust's is available.
template <class Device>
struct key_sorter {
  template <class Policy, class T>
  static void sort(const Policy& policy, const device_queue<Device>&, buffer<std::uint64_t, Device>& keys,
                   buffer<T, Device>& values, int) {
    thrust::stable_sort_by_key(policy, keys.data(), keys.data() + keys.size(), values.data());
  }
};

/// Whether an entry is the first one at its position.
struct is_first {
  const std::uint64_t* keys;

  constexpr bool operator()(local_index e) const { return e == 0 || keys[e] != keys[e - 1]; }
};

struct column_of_place {
  key_space space;
  const std::uint64_t* keys;
  const local_index* firsts;

  constexpr local_index operator()(std::int64_t p) const { return space.column(keys[firsts[p]]); }
};

/// The sum of the values at one position, in order.
template <class T>
struct sum_at_place {
  const T* values;
  const local_index* firsts;
  std::int64_t places;
  local_index entries;

  constexpr T operator()(std::int64_t p) const {
    const local_index end = p + 1 < places ? firsts[p + 1] : entries;
    T sum = values[firsts[p]];
    for (local_index e = firsts[p] + 1; e < end; ++e) sum += values[e];
    return sum;
  }
};

/// Tiles of the entries with these keys and values, which are consumed.
template <class Policy, class T, class Device>
compressed<T, Device> compress_keys(const Policy& policy, const device_queue<Device>& q, key_space space,
                                    buffer<std::uint64_t, Device> keys, buffer<T, Device> values) {
  const local_index entries = static_cast<local_index>(keys.size());
  key_sorter<Device>::sort(policy, q, keys, values, space.bits());

  buffer<local_index, Device> firsts(q, keys.size());
  const auto all = thrust::make_counting_iterator(local_index{0});
  const auto end = thrust::copy_if(policy, all, all + entries, firsts.data(), is_first{keys.data()});
  const std::int64_t places = end - firsts.data();

  compressed<T, Device> result;
  result.nonzeros = static_cast<std::size_t>(places);
  result.structure = buffer<local_index, Device>(q, space.aligned_offsets() + result.nonzeros);
  result.values = buffer<T, Device>(q, result.nonzeros);
  local_index* const columns = result.structure.data() + space.aligned_offsets();
  thrust::fill(policy, result.structure.data() + space.offsets(), columns, local_index{0});
  thrust::tabulate(policy, columns, columns + places, column_of_place{space, keys.data(), firsts.data()});
  thrust::tabulate(policy, result.values.data(), result.values.data() + places,
                   sum_at_place<T>{values.data(), firsts.data(), places, entries});
  const auto places_in_order = thrust::make_permutation_iterator(keys.data(), firsts.data());
  const auto offset_keys =
      thrust::make_transform_iterator(thrust::make_counting_iterator(std::uint64_t{0}), key_of_offset{space});
  thrust::lower_bound(policy, places_in_order, places_in_order + places, offset_keys,
                      offset_keys + static_cast<std::ptrdiff_t>(space.offsets()), result.structure.data());
  return result;
}

}  // namespace bench

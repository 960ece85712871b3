// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sorts and sums entries of sparse matrices in device memory.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cub/device/device_select.cuh>
#include <iterator>
#include <optional>
#include <span>
#include <thrust/iterator/counting_iterator.h>
#include <utility>
#include <vector>

#include "partita/base/triplet.hpp"
#include "partita/local/coo_arrays.hpp"
#include "partita/memory/cuda_launch.hpp"
#include "partita/memory/cuda_sort.hpp"

namespace partita::on_cuda {
namespace detail {

template <class T>
using on_card = buffer<T, cuda_device>;

template <class T>
std::vector<T> from_card(const device_queue<cuda_device>& q, const on_card<T>& list) {
  std::vector<T> here(list.size());
  copy(q, list.span(), std::span<T>(here));
  return here;
}

/// keys[c] = the tile that has copy c of the entries, numbers[c] = c.
struct find_tiles : local::held_entries {
  std::uint64_t* keys;
  global_index* numbers;

  constexpr void operator()(std::int64_t c) const {
    const std::int64_t e = c / copies,
                       pair = rows.block_of(entry_rows[e]) * cols.blocks + cols.block_of(entry_cols[e]);
    keys[c] = static_cast<std::uint64_t>(tiles[pair * copies + c % copies]);
    numbers[c] = c;
  }
};

/// The places in their tiles, and the values, of copies of entries in this order.
template <class T>
struct pack_entries : local::held_entries {
  const global_index* order;
  const T* given;
  global_index* places;
  T* values;

  constexpr void operator()(std::int64_t i) const {
    const std::int64_t e = order[i] / copies;
    const global_index row = entry_rows[e], col = entry_cols[e];
    places[i] = (row - rows.begin(rows.block_of(row))) << 32 | (col - cols.begin(cols.block_of(col)));
    values[i] = given[e];
  }
};

/// Keys of entries that have come from ranks 0, 1, ..., from each tile by tile.
struct key_arrivals {
  local::place_keys places;
  const global_index *arrived, *ends;  ///< of the entries for each tile of each rank
  std::int64_t parts, tiles;
  std::uint64_t* keys;

  constexpr void operator()(std::int64_t e) const {
    const std::int64_t tile = local::count_to(ends, parts, e) % tiles;
    keys[e] = places.key(tile, arrived[e] >> 32, static_cast<std::uint64_t>(arrived[e] & 0xffffffff));
  }
};

/// numbers[i] = i.
struct number_all {
  global_index* numbers;

  constexpr void operator()(std::int64_t i) const { numbers[i] = i; }
};

/// Whether a key is the first one of its place.
struct mark_firsts {
  const std::uint64_t* keys;
  char* flags;

  constexpr void operator()(std::int64_t i) const { flags[i] = i == 0 || keys[i] != keys[i - 1]; }
};

/// Whether an entry is outside the matrix, or not finite.
template <class T>
struct mark_wrong {
  local::coo_arrays<T> entries;
  matrix_shape shape;
  char* flags;

  constexpr void operator()(std::int64_t e) const {
    const global_index row = entries.rows.data()[e], col = entries.cols.data()[e];
    const T value = entries.values.data()[e];
    flags[e] = row < 0 || row >= shape.rows || col < 0 || col >= shape.cols || value - value != 0;
  }
};

/// The entries of one place: their sum, in order, their column, and their key.
template <class T>
struct sum_places {
  local::place_keys places;
  const std::uint64_t* keys;
  const global_index *order, *firsts;
  std::int64_t count, entries;
  const T* arrived;
  std::uint64_t* keys_of_places;
  local_index* columns;
  T* values;

  constexpr void operator()(std::int64_t p) const {
    const std::int64_t first = firsts[p], end = p + 1 < count ? firsts[p + 1] : entries;
    T sum = arrived[order[first]];
    for (std::int64_t e = first + 1; e < end; ++e) sum += arrived[order[e]];
    keys_of_places[p] = keys[first];
    columns[p] = places.col(keys[first]);
    values[p] = sum;
  }
};

/// begins[t * (rows + 1) + i] = where row i of tile t begins in ascending keys; that of i = rows is its end.
struct find_begins {
  local::place_keys places;
  const std::uint64_t* keys;
  std::int64_t count;
  global_index* begins;

  constexpr void operator()(std::int64_t o) const {
    const std::uint64_t first = places.key(o / (places.rows + 1), o % (places.rows + 1), 0);
    begins[o] = first == 0 ? 0 : local::count_to(keys, count, first - 1);
  }
};

inline std::vector<global_index> begins_in(const device_queue<cuda_device>& q, local::place_keys places,
                                           std::int64_t tiles, const std::uint64_t* keys,
                                           std::int64_t count) {
  on_card<global_index> begins(q, static_cast<std::size_t>(tiles * (places.rows + 1)));
  on_cuda::launch(q, std::ssize(begins.span()), find_begins{places, keys, count, begins.data()});
  return from_card(q, begins);
}

/// The numbers whose flags are set, and how many there are. Synchronises with the device.
inline std::pair<on_card<global_index>, std::int64_t> flagged(const device_queue<cuda_device>& q,
                                                              const on_card<char>& flags) {
  on_card<global_index> found(q, flags.size()), count(q, 1);
  if (flags.size() == 0) return {std::move(found), 0};
  const on_cuda::device_guard guard(q.device());
  std::size_t size = 0;
  const auto select = [&](void* memory) {
    on_cuda::check_cuda(
        cub::DeviceSelect::Flagged(memory, size, thrust::counting_iterator<global_index>(0), flags.data(),
                                   found.data(), count.data(), std::ssize(flags.span()), q.stream()),
        "cub::DeviceSelect::Flagged");
  };
  select(nullptr);
  select(on_cuda::scratch<std::byte>(q, std::max<std::size_t>(size, 1)));
  return {std::move(found), on_cuda::read(q, count.data())};
}

/// Numbers to be sorted by keys, stably.
struct keyed_numbers {
  keyed_numbers(const device_queue<cuda_device>& q, std::size_t size)
      : keys{on_card<std::uint64_t>(q, size), on_card<std::uint64_t>(q, size)},
        numbers{on_card<global_index>(q, size), on_card<global_index>(q, size)},
        pairs{keys[0].data(), numbers[0].data(), keys[1].data(), numbers[1].data()} {}

  void sort(const device_queue<cuda_device>& q, int bits) {
    if (keys[0].size() > 0) on_cuda::sort_pairs(q, std::ssize(keys[0].span()), bits, pairs);
  }

  on_card<std::uint64_t> keys[2];
  on_card<global_index> numbers[2];
  on_cuda::sorted_pairs<std::uint64_t, global_index> pairs;
};

}  // namespace detail

/// Packs the `copies` of `count` entries, with these values, by the tiles that hold them, of `tiles` in all,
/// in the order of the entries; returns where tiles begin, and the last one ends. Synchronises with the
/// device.
template <class T>
std::vector<global_index> pack_by_tiles(const device_queue<cuda_device>& q, const local::held_entries& held,
                                        std::int64_t count, std::int64_t tiles, const T* given,
                                        global_index* places, T* values) {
  const std::int64_t copies = held.copies * count;
  detail::keyed_numbers sorted(q, static_cast<std::size_t>(copies));
  launch(q, copies, detail::find_tiles{held, sorted.pairs.keys, sorted.pairs.values});
  sorted.sort(q, bits_below(tiles));
  launch(q, copies, detail::pack_entries<T>{held, sorted.pairs.values, given, places, values});
  return detail::begins_in(q, {tiles, 0}, 1, sorted.pairs.keys, copies);
}

/// The keys of packed places that have come from ranks 0, 1, ..., from each tile by tile, of `tiles`; part k
/// ends at ends[k]. Synchronises with the device.
inline void key_places(const device_queue<cuda_device>& q, local::place_keys places,
                       const buffer<global_index, cuda_device>& arrived,
                       const std::vector<global_index>& ends, std::int64_t tiles, std::uint64_t* keys) {
  buffer<global_index, cuda_device> parts(q, ends.size());
  copy(q, std::span<const global_index>(ends), parts.span());
  launch(q, std::ssize(arrived.span()),
         detail::key_arrivals{places, arrived.data(), parts.data(), std::ssize(ends), tiles, keys});
}

/// Sorts entries of `tiles` tiles by their keys and sums those of one place in their order. Synchronises with
/// the device.
template <class T>
local::placed_entries<T, cuda_device> sum_by_places(const device_queue<cuda_device>& q,
                                                    local::place_keys places, std::int64_t tiles,
                                                    const buffer<std::uint64_t, cuda_device>& keys,
                                                    const buffer<T, cuda_device>& values) {
  const std::int64_t entries = std::ssize(keys.span());
  detail::keyed_numbers sorted(q, keys.size());
  copy(q, keys.span(), sorted.keys[0].span());
  launch(q, entries, detail::number_all{sorted.pairs.values});
  sorted.sort(q, places.bits(tiles));
  detail::on_card<char> flags(q, keys.size());
  launch(q, entries, detail::mark_firsts{sorted.pairs.keys, flags.data()});
  const auto [firsts, count] = detail::flagged(q, flags);
  const auto size = static_cast<std::size_t>(count);
  local::placed_entries<T, cuda_device> made{
      detail::on_card<local_index>(q, size), detail::on_card<T>(q, size), {}};
  launch(
      q, count,
      detail::sum_places<T>{places, sorted.pairs.keys, sorted.pairs.values, firsts.data(), count, entries,
                            values.data(), sorted.pairs.other_keys, made.columns.data(), made.values.data()});
  made.begins = detail::begins_in(q, places, tiles, sorted.pairs.other_keys, count);
  return made;
}

/// The first entry that is outside a matrix of this shape or not finite. Synchronises with the device.
template <class T>
std::optional<triplet<T>> first_wrong(const device_queue<cuda_device>& q, matrix_shape shape,
                                      const local::coo_arrays<T>& entries) {
  detail::on_card<char> flags(q, entries.rows.size());
  launch(q, std::ssize(entries.rows), detail::mark_wrong<T>{entries, shape, flags.data()});
  const auto [wrong, count] = detail::flagged(q, flags);
  if (count == 0) return std::nullopt;
  const global_index e = read(q, wrong.data());
  return triplet<T>{read(q, entries.rows.data() + e), read(q, entries.cols.data() + e),
                    read(q, entries.values.data() + e)};
}

}  // namespace partita::on_cuda

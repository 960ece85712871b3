// SPDX-License-Identifier: Apache-2.0
#pragma once
/// CSR construction where the Thrust execution policy directs, on a device or on the host: from entries, as a
/// transpose, and split into parts.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thrust/tabulate.h>
#include <utility>
#include <vector>

#include "compress_keys.hpp"
#include "partita/base/triplet.hpp"
#include "partita/local/view.hpp"

namespace bench {

/// The key of an entry; its tile is the last one that begins at or before its column.
template <class T>
struct key_of_entry {
  key_space space;
  const triplet<T>* entries;
  std::int64_t searched;       // number of nonempty tiles
  const global_index* begins;  // their first columns, ascending
  const local_index* tiles;    // their indices
  global_index first_row;

  constexpr std::uint64_t operator()(std::int64_t e) const {
    const triplet<T>& entry = entries[e];
    std::int64_t low = 0, high = searched;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (begins[middle] <= entry.col)
        low = middle + 1;
      else
        high = middle;
    }
    return space.key(static_cast<std::uint64_t>(tiles[low - 1]),
                     static_cast<std::uint64_t>(entry.row - first_row),
                     static_cast<std::uint64_t>(entry.col - begins[low - 1]));
  }
};

template <class T>
struct value_of_entry {
  const triplet<T>* entries;

  constexpr T operator()(std::int64_t e) const { return entries[e].value; }
};

/// A copy of `list` in the queue's memory.
template <class U, class Device>
buffer<U, Device> copied_to(const device_queue<Device>& q, std::span<const U> list) {
  buffer<U, Device> there(q, list.size());
  copy(q, list, there.span());
  return there;
}

/// Tiles of the entries with rows in `rows` and columns in one of the disjoint intervals `columns`; `entries`
/// are on the host. Duplicates are summed in the order of `entries`. Throws shape_error when the block
/// exceeds the 32-bit local index range.
template <class T, class Policy, class Device>
compressed<T, Device> compress(const Policy& policy, const device_queue<Device>& q, interval rows,
                               std::span<const interval> columns, std::span<const triplet<T>> entries) {
  std::vector<std::pair<interval, local_index>> tiles;
  global_index width = 1;
  for (const interval c : columns) {
    width = std::max<global_index>(
        width, partita::base::to_local(c.size(), "the number of columns of a sparse tile"));
    tiles.emplace_back(c, static_cast<local_index>(tiles.size()));
  }
  std::erase_if(tiles, [](const auto& tile) { return tile.first.empty(); });
  std::sort(tiles.begin(), tiles.end(),
            [](const auto& a, const auto& b) { return a.first.begin < b.first.begin; });
  std::vector<global_index> begins;
  std::vector<local_index> numbers;
  for (const auto& [interval, number] : tiles) {
    begins.push_back(interval.begin);
    numbers.push_back(number);
  }
  const auto height = partita::base::to_local(rows.size(), "the number of rows of a sparse block");
  partita::base::to_local(static_cast<global_index>(entries.size()),
                          "the number of entries of a sparse block");
  const key_space space(columns.size(), height, width);

  const auto given = copied_to(q, entries);
  const auto given_begins = copied_to(q, std::span<const global_index>(begins));
  const auto given_numbers = copied_to(q, std::span<const local_index>(numbers));
  buffer<std::uint64_t, Device> keys(q, entries.size());
  buffer<T, Device> values(q, entries.size());
  thrust::tabulate(policy, keys.data(), keys.data() + keys.size(),
                   key_of_entry<T>{space, given.data(), static_cast<std::int64_t>(begins.size()),
                                   given_begins.data(), given_numbers.data(), rows.begin});
  thrust::tabulate(policy, values.data(), values.data() + values.size(), value_of_entry<T>{given.data()});
  return compress_keys(policy, q, space, std::move(keys), std::move(values));
}

/// The key in the transpose of entry `e` of a CSR matrix.
struct key_of_transposed {
  key_space space;
  const local_index* offsets;
  const local_index* columns;
  local_index rows;

  constexpr std::uint64_t operator()(std::int64_t e) const {
    const std::int64_t at = offsets[0] + e;
    local_index low = 0, high = rows;
    while (high - low > 1) {
      const local_index middle = low + (high - low) / 2;
      if (offsets[middle] <= at)
        low = middle;
      else
        high = middle;
    }
    return space.key(0, static_cast<std::uint64_t>(columns[at]), static_cast<std::uint64_t>(low));
  }
};

template <class T>
struct value_of_transposed {
  const local_index* offsets;
  const T* values;

  constexpr T operator()(std::int64_t e) const { return values[offsets[0] + e]; }
};

/// a^T, one tile, for an `a` of `nonzeros` entries; duplicates are summed.
template <class T, class Policy, class Device>
compressed<T, Device> transpose(const Policy& policy, const device_queue<Device>& q,
                                partita::local::csr_view<T> a, local_index nonzeros) {
  const key_space space(1, a.cols, std::max(a.rows, 1));
  buffer<std::uint64_t, Device> keys(q, static_cast<std::size_t>(nonzeros));
  buffer<T, Device> values(q, static_cast<std::size_t>(nonzeros));
  thrust::tabulate(policy, keys.data(), keys.data() + keys.size(),
                   key_of_transposed{space, a.offsets, a.columns, a.rows});
  thrust::tabulate(policy, values.data(), values.data() + values.size(),
                   value_of_transposed<T>{a.offsets, a.values});
  return compress_keys(policy, q, space, std::move(keys), std::move(values));
}

/// The first row of a part, for parts of about equal size, where each row counts as two entries.
struct first_row_of_part {
  const local_index* offsets;
  local_index rows;
  std::int64_t parts;

  constexpr local_index operator()(std::int64_t part) const {
    const std::int64_t target = weight(rows) * part / parts;
    local_index low = 0, high = rows;
    while (low < high) {
      const local_index middle = low + (high - low) / 2;
      if (weight(middle) < target)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

 private:
  constexpr std::int64_t weight(local_index row) const {
    return row == 0 ? 0 : std::int64_t{offsets[row]} - offsets[0] + 2 * std::int64_t{row};
  }
};

/// Splits `rows` CSR rows into parts with about equally many entries: part p has the rows first_rows[p] to
/// first_rows[p + 1], the last of which is `rows`.
template <class Policy>
void partition_rows(const Policy& policy, local_index rows, const local_index* offsets,
                    std::span<local_index> first_rows) {
  thrust::tabulate(policy, first_rows.data(), first_rows.data() + first_rows.size(),
                   first_row_of_part{offsets, rows, static_cast<std::int64_t>(first_rows.size()) - 1});
}

}  // namespace bench

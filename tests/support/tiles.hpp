// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A row of four tiles, one of them empty, and the entries of any tiles.

#include <map>
#include <utility>
#include <vector>

#include "partita/matrix/tiles.hpp"
#include "partita/memory/host.hpp"

namespace test_support {

/// By row and column, both counted from 0.
using entries_of_tiles = std::map<std::pair<partita::global_index, partita::global_index>, double>;

inline const partita::interval rows_of_tiles{10, 14};
inline const std::vector<partita::interval> columns_of_tiles{{0, 4}, {4, 4}, {4, 9}, {9, 11}};
inline const std::vector<partita::triplet<double>> given_to_tiles{{13, 10, 1}, {10, 0, 2}, {10, 3, 3},
                                                                  {11, 5, 4},  {10, 0, 5}, {13, 8, 6},
                                                                  {13, 5, 7},  {12, 2, 8}, {13, 2, 9}};

inline partita::local::csr_tiles<double, partita::host> small_tiles(
    const partita::device_queue<partita::host>& q) {
  return partita::local::make_csr_tiles(q, rows_of_tiles,
                                        std::span<const partita::interval>(columns_of_tiles), given_to_tiles);
}

/// `first` is where each tile's columns begin.
inline entries_of_tiles entries_of(const partita::local::csr_tiles<double, partita::host>& a,
                                   const std::vector<partita::global_index>& first) {
  entries_of_tiles found;
  for (std::size_t t = 0; t < a.count(); ++t)
    for (const auto& part : a.parts(t))
      for (partita::local_index i = 0; i < part.entries.rows; ++i)
        for (partita::local_index e = part.entries.offsets[i]; e < part.entries.offsets[i + 1]; ++e)
          found[{part.first_row + i, first[t] + part.entries.columns[e]}] += part.entries.values[e];
  return found;
}

}  // namespace test_support

#pragma once
/// Which rows of the dense operand the nonzero columns of a sparse block name.

#include <span>
#include <vector>

#include "partita/matrix/tile_shape.hpp"

namespace partita::detail {

/// For each tile but `own`: the columns with an entry, ascending, as local columns of the tile.
struct needed_rows {
  std::vector<std::vector<local_index>> of_tile;

  std::vector<global_index> counts() const {
    std::vector<global_index> n;
    for (const auto& rows : of_tile) n.push_back(static_cast<global_index>(rows.size()));
    return n;
  }
};

/// Looks at the block once; `structure` is its offsets and columns in host memory.
inline needed_rows find_needed_rows(const tile_shape& block, std::span<const local_index> structure,
                                    std::size_t own) {
  needed_rows needed;
  const std::vector<std::size_t> begins = entry_begins(block, structure.data());
  const std::size_t stride = static_cast<std::size_t>(block.rows) + 1;
  for (std::size_t t = 0; t < block.count(); ++t) {
    auto& rows = needed.of_tile.emplace_back();
    if (t == own) continue;
    std::vector<char> named(static_cast<std::size_t>(block.widths[t]), 0);
    const auto columns = structure.subspan(block.offsets_size());
    for (std::size_t e = begins[t * stride]; e < begins[(t + 1) * stride - 1]; ++e)
      named[static_cast<std::size_t>(columns[e])] = 1;
    for (std::size_t j = 0; j < named.size(); ++j)
      if (named[j]) rows.push_back(static_cast<local_index>(j));
  }
  return needed;
}

/// The same structure with every column of a tile (but `own`) replaced by its position among the needed rows.
inline std::vector<local_index> compacted(const tile_shape& block, std::vector<local_index> structure,
                                          std::size_t own, const needed_rows& needed) {
  const std::vector<std::size_t> begins = entry_begins(block, structure.data());
  const std::size_t stride = static_cast<std::size_t>(block.rows) + 1;
  for (std::size_t t = 0; t < block.count(); ++t) {
    if (t == own) continue;
    std::vector<local_index> position(static_cast<std::size_t>(block.widths[t]), 0);
    for (std::size_t i = 0; i < needed.of_tile[t].size(); ++i)
      position[static_cast<std::size_t>(needed.of_tile[t][i])] = static_cast<local_index>(i);
    for (std::size_t e = begins[t * stride]; e < begins[(t + 1) * stride - 1]; ++e) {
      local_index& column = structure[block.offsets_size() + e];
      column = position[static_cast<std::size_t>(column)];
    }
  }
  return structure;
}

}  // namespace partita::detail

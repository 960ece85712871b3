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

/// Two tiles in place of a row of them: `own`, and one of all others whose columns count their needed rows,
/// one tile's after another's. Entry e of the two is entry order[e] of the block.
struct merged_tiles {
  tile_shape shape;
  std::vector<local_index> structure;
  std::vector<std::size_t> order;
};

/// Their shape, and the offsets that begin their structure; `begins` are the entry_begins of the block. No
/// part of a tile gets more than `most` entries; throws shape_error naming a row that has more.
inline merged_tiles merged_shape(const tile_shape& block, const std::vector<std::size_t>& begins,
                                 std::size_t own, const needed_rows& needed, std::size_t most) {
  const std::size_t rows = static_cast<std::size_t>(block.rows), stride = rows + 1;
  const auto entries_of = [&](std::size_t t, std::size_t i) {
    return begins[t * stride + i + 1] - begins[t * stride + i];
  };
  local_index remote_rows = 0;
  for (const auto& list : needed.of_tile) remote_rows += static_cast<local_index>(list.size());
  merged_tiles merged;
  merged.shape.rows = block.rows;
  merged.shape.widths = {block.widths[own], remote_rows};
  std::vector<std::size_t> merged_begins{0};
  for (std::size_t i = 0; i < rows; ++i) merged_begins.push_back(merged_begins.back() + entries_of(own, i));
  merged_begins.push_back(merged_begins.back());
  for (std::size_t i = 0; i < rows; ++i) {
    std::size_t entries = 0;
    for (std::size_t t = 0; t < block.count(); ++t) entries += t == own ? 0 : entries_of(t, i);
    merged_begins.push_back(merged_begins.back() + entries);
  }
  merged.structure = count_offsets(merged.shape, merged_begins, most, 0);
  return merged;
}

/// The two tiles; `structure` is the block's in host memory.
inline merged_tiles merge(const tile_shape& block, std::vector<local_index> structure, std::size_t own,
                          const needed_rows& needed, std::size_t most) {
  const std::vector<std::size_t> begins = entry_begins(block, structure.data());
  merged_tiles merged = merged_shape(block, begins, own, needed, most);
  const std::size_t rows = static_cast<std::size_t>(block.rows), stride = rows + 1;
  const std::vector<local_index> compact = compacted(block, std::move(structure), own, needed);
  std::vector<local_index> before{0};  // needed rows of the tiles before each
  for (const auto& list : needed.of_tile)
    before.push_back(before.back() + static_cast<local_index>(list.size()));
  const auto take = [&](std::size_t t, std::size_t i) {
    for (std::size_t e = begins[t * stride + i]; e < begins[t * stride + i + 1]; ++e) {
      merged.structure.push_back(compact[block.offsets_size() + e] + (t == own ? 0 : before[t]));
      merged.order.push_back(e);
    }
  };
  for (std::size_t i = 0; i < rows; ++i) take(own, i);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t t = 0; t < block.count(); ++t)
      if (t != own) take(t, i);
  return merged;
}

}  // namespace partita::detail

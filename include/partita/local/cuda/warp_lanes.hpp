// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How the lanes of a warp share a product of a sparse pattern with a dense block, and store its result.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "partita/local/cuda/vector.hpp"
#include "partita/local/head_slice.hpp"
#include "partita/local/view.hpp"

namespace partita::on_cuda {

/// y(row, pack v) = beta y(row, pack v) + total. If `cut`, the packs of y are not aligned, and the last one
/// may extend past y's columns.
template <int Width, class T>
struct add_to_rows {
  using sum = pack_of<T, Width>;

  T beta;
  matrix_view<T> y;
  bool cut = false;

  constexpr void merge(sum& total, const sum& later) const { total += later; }
  constexpr void store(T total, local_index row, local_index j) const {
    T& to = y(row, j);
    to = beta == 0 ? total : total + beta * to;
  }
  constexpr void store(const sum& total, local_index row, local_index v) const {
    if (cut) {
      for (int c = 0; c < Width; ++c)
        if (v * Width + c < y.cols) store(total.at[c], row, v * Width + c);
      return;
    }
    T* const to = y.row_data(row) + v * Width;
    sum result = total;
    if (beta != 0) {
      const sum old = load<Width>(to);
      for (int c = 0; c < Width; ++c) result.at[c] += beta * old.at[c];
    }
    on_cuda::store(result, to);
  }
};

/// How 32 lanes share the work. Coefficients: 2^log_heads lanes for an entry, one per head. Columns:
/// 2^log_lanes lanes for an entry, `packs_of_lane` packs each, 2^log_lanes packs apart. Warps with the same
/// entries take a block of columns each, of at most 16 heads.
struct warp_lanes {
  int log_heads, log_lanes;
  int batch, entries;  ///< entries at a time: of coefficients, of columns
  local_index packs_of_block, blocks;

  /// How many entries a lane processes without a test between them.
  static constexpr int together(bool one_head) { return one_head ? 4 : 2; }

  static warp_lanes of(const local::head_slice& s, local_index cols, int width, int packs_of_lane) {
    using count = std::uint32_t;
    const auto up = [](local_index n) {
      return static_cast<local_index>(std::bit_ceil(static_cast<count>(n)));
    };
    const auto lanes_for = [&](local_index packs) { return up((packs + packs_of_lane - 1) / packs_of_lane); };
    const local_index all = s.head_of(cols - 1) - s.head_of(0) + 1, packs = cols / width;
    const auto heads_of = [&](local_index n) {
      const bool even = s.first_col % s.head_width == 0 && n % s.head_width == 0;
      return up(std::min(all, even ? n / s.head_width : (n - 2 + s.head_width) / s.head_width + 1));
    };
    local_index block = std::min(packs, 32 * packs_of_lane);
    while (heads_of(block * width) > 16) block = (block + 1) / 2;
    const local_index heads = heads_of(block * width);
    const local_index lanes = std::max(lanes_for(block), heads * together(heads == 1));
    return {std::countr_zero(static_cast<count>(heads)),
            std::countr_zero(static_cast<count>(lanes)),
            32 / heads,
            32 / lanes,
            block,
            (packs + block - 1) / block};
  }
};

}  // namespace partita::on_cuda

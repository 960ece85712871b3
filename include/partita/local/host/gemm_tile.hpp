#pragma once
/// The inside of the blocked product: a packed panel of op(b), and tiles of c whose sums stay in registers.

#include <algorithm>
#include <cstddef>
#include <utility>

#include "partita/local/host/vector.hpp"
#include "partita/local/view.hpp"

namespace partita::on_host {

/// Sizes of the blocks. A block of c (rows x cols) and a packed block of op(b) (depth x cols) lie on the
/// stack.
template <class T>
struct gemm_block {
  static constexpr int lanes = vector_bytes / static_cast<int>(sizeof(T));
  static constexpr int tile_rows = vector_bytes == 64 ? 8 : vector_bytes == 32 ? 6 : 4;
  static constexpr int tile_cols = 2 * lanes;
  static constexpr int rows = 192;
  static constexpr int cols = 512 / static_cast<int>(sizeof(T));
  static constexpr int depth = 256;
};

/// Element (i, p) of op(a) for a matrix stored as it is (not transposed) or by columns.
template <bool Transposed, class T>
struct operand {
  matrix_view<const T> view;

  T operator()(local_index i, local_index j) const { return Transposed ? view(j, i) : view(i, j); }
  operand block(local_index i, local_index j) const {
    return {Transposed ? view.block(j, i, 0, 0) : view.block(i, j, 0, 0)};
  }
};

/// Packs op(b)(0:depth, 0:cols) into panels of Width columns, each contiguous and filled up with zeros.
template <int Width, bool Transposed, class T>
void pack_panel(operand<Transposed, T> b, local_index depth, local_index cols, T* to) {
  if constexpr (Transposed) {
    std::fill_n(to, static_cast<std::size_t>(depth) * Width, T{0});
    for (local_index j = 0; j < cols; ++j)
      for (local_index p = 0; p < depth; ++p) to[p * Width + j] = b(p, j);
  } else {
    for (local_index p = 0; p < depth; ++p, to += Width) {
      std::copy_n(b.view.row(p), cols, to);
      std::fill_n(to + cols, Width - cols, T{0});
    }
  }
}

/// sum += factor b.
template <int Width, class T>
void add_multiple(T factor, const T* b, T (&sum)[Width]) {
  for (int j = 0; j < Width; ++j) sum[j] += factor * b[j];
}

/// c(0:rows, 0:Width) += op(a)(0:rows, 0:depth) b, b a packed panel and Row... = 0, ..., rows - 1. Besides
/// fetching b early, the prefetch keeps gcc from vectorising over p, which would take the sums out of their
/// registers.
template <int Width, bool Transposed, class T, int... Row>
void multiply_tile(operand<Transposed, T> a, local_index depth, const T* b, T* c, std::ptrdiff_t stride,
                   std::integer_sequence<int, Row...>) {
  T sum[sizeof...(Row)][Width] = {};
  for (local_index p = 0; p < depth; ++p, b += Width) {
    __builtin_prefetch(b + 8 * Width);
    (add_multiple(a(Row, p), b, sum[Row]), ...);
  }
  for (std::size_t i = 0; i < sizeof...(Row); ++i, c += stride)
    for (int j = 0; j < Width; ++j) c[j] += sum[i][j];
}

/// c(0:rows, 0:Width) += op(a)(0:rows, 0:depth) b in tiles of Rows rows, and then of fewer.
template <int Rows, int Width, bool Transposed, class T>
void multiply_panel(operand<Transposed, T> a, local_index rows, local_index depth, const T* b, T* c,
                    std::ptrdiff_t stride) {
  local_index i = 0;
  for (; i + Rows <= rows; i += Rows)
    multiply_tile<Width>(a.block(i, 0), depth, b, c + i * stride, stride,
                         std::make_integer_sequence<int, Rows>{});
  if constexpr (Rows > 1)
    multiply_panel<(Rows > 4 ? 4 : Rows / 2), Width>(a.block(i, 0), rows - i, depth, b, c + i * stride,
                                                     stride);
}

}  // namespace partita::on_host

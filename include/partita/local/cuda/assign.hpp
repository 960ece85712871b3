// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Elementwise assignment of blocks.

#include <cstdint>
#include <type_traits>

#include "partita/local/cuda/vector.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/cuda_launch.hpp"

namespace partita::on_cuda {

/// Term provides term.at<Width>(i, j): the pack of y(i, j), ..., y(i, j + Width - 1).
template <int Width, class T, class Term>
struct assign_packs {
  Term term;
  matrix_view<T> y;

  constexpr void operator()(std::int64_t thread) const {
    const cell at = cell_of(thread, y.cols / Width);
    const local_index j = at.col * Width;
    store(term.template at<Width>(at.row, j), y.row_data(at.row) + j);
  }
};

/// Copies row `warp` of a block, and pads it with zeros.
template <class T>
struct pad_row {
  matrix_view<const T> from;
  matrix_view<T> wide;

  __device__ void operator()(std::uint32_t warp, int lane) const {
    const T* const row = from.row_data(static_cast<local_index>(warp));
    T* const to = wide.row_data(static_cast<local_index>(warp));
#pragma unroll 1
    for (local_index j = lane; j < wide.cols; j += 32) to[j] = j < from.cols ? row[j] : T(0);
  }
};

/// Columns of a block of at least `cols` whose rows are whole numbers of 16 bytes.
template <class T>
constexpr local_index padded_width(local_index cols) {
  return static_cast<local_index>(quotient_up(cols, widest<T>) * widest<T>);
}

/// A copy of x in `memory`, its rows padded with zeros to padded_width.
template <class T>
matrix_view<const T> padded_rows(const device_queue<cuda_device>& q, const matrix_view<const T>& x,
                                 T* memory) {
  const local_index cols = padded_width<T>(x.cols);
  const matrix_view<T> wide{memory, x.rows, cols, cols};
  on_cuda::launch_warps(q, x.rows, pad_row<T>{x, wide});
  return wide;
}

/// y(i, j) = term(i, j); `operands` are the blocks that the term reads as packs.
template <class T, class Term, class... Views>
void assign(const device_queue<cuda_device>& q, matrix_view<T> y, const Term& term,
            const Views&... operands) {
  with_width<widest<T>, 1>(
      y.cols,
      [&]<int pack_width>(std::integral_constant<int, pack_width>) {
        on_cuda::launch(q, std::int64_t{y.rows} * (y.cols / pack_width),
                        assign_packs<pack_width, T, Term>{term, y});
      },
      y, operands...);
}

}  // namespace partita::on_cuda

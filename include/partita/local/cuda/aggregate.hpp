// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Max aggregation over neighbours, and its gradient.

#include <type_traits>

#include "partita/local/cuda/inverse.hpp"
#include "partita/local/cuda/row_fold.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"

namespace partita::on_cuda {

/// Maxima over the neighbours of a row in a pack of columns, with the winning entries; 0 and -1 if there are
/// none.
template <class T, int Width>
struct largest_neighbours {
  struct sum {
    pack_of<T, Width> largest;
    pack_of<local_index, Width> where;
  };
  struct term {
    pack_of<T, Width> x;
    local_index entry;
  };
  using ahead = pack_of<local_index, 4>;

  const local_index* columns;
  row_table<T> x;
  matrix_view<T> y;
  matrix_view<local_index> arg;

  constexpr sum zero() const {
    sum none{};
    for (local_index& entry : none.where.at) entry = -1;
    return none;
  }
  constexpr ahead load_ahead(local_index e) const { return load<4>(columns + e); }
  constexpr term term_of(local_index e, local_index v) const { return of(e, columns[e], v); }
  constexpr void terms_of(const ahead& four, local_index e, local_index v, term (&terms)[4]) const {
    for (int k = 0; k < 4; ++k) terms[k] = of(e + k, four.at[k], v);
  }
  constexpr void add(sum& best, const term& next, local_index, local_index) const {
    for (int c = 0; c < Width; ++c) take(best, c, next.x.at[c], next.entry);
  }
  constexpr void merge(sum& best, const sum& later) const {
    for (int c = 0; c < Width; ++c)
      if (later.where.at[c] >= 0) take(best, c, later.largest.at[c], later.where.at[c]);
  }
  constexpr void store(const sum& found, local_index row, local_index v) const {
    on_cuda::store(found.largest, y.row_data(row) + v * Width);
    on_cuda::store(found.where, arg.row_data(row) + v * Width);
  }

 private:
  constexpr term of(local_index e, local_index column, local_index v) const {
    return {load<Width>(x.at(column, v * Width)), e};
  }
  static constexpr void take(sum& best, int c, T value, local_index entry) {
    const T so_far = best.largest.at[c];
    if (best.where.at[c] >= 0 && (value <= so_far || so_far != so_far)) return;  // the first NaN wins
    best.largest.at[c] = value;
    best.where.at[c] = entry;
  }
};

/// Gradient of a column: the sum of dy over the entries of that column that attained the maximum.
template <class T, int Width>
struct won_gradients : summing<columns_ahead, pack_of<T, Width>> {
  static constexpr int min_blocks_per_multiprocessor = 2;

  using typename columns_ahead::ahead;
  using sum = pack_of<T, Width>;
  struct term {
    local_index entry;
    pack_of<local_index, Width> winners;
    pack_of<T, Width> dy;
  };

  const local_index* entries;
  matrix_view<const local_index> arg;
  row_table<T> dy;
  matrix_view<T> dx;

  constexpr term term_of(local_index t, local_index v) const { return of(t, this->columns[t], v); }
  constexpr void terms_of(const ahead& four, local_index t, local_index v, term (&terms)[4]) const {
    for (int k = 0; k < 4; ++k) terms[k] = of(t + k, four.at[k], v);
  }
  constexpr void add(sum& total, const term& next, local_index, local_index) const {
    for (int c = 0; c < Width; ++c)
      if (next.winners.at[c] == next.entry) total.at[c] += next.dy.at[c];
  }
  constexpr void store(const sum& total, local_index row, local_index v) const {
    T* const to = dx.row_data(row) + v * Width;
    pack_of<T, Width> result = load<Width>(static_cast<const T*>(to));
    result += total;
    on_cuda::store(result, to);
  }

 private:
  constexpr term of(local_index t, local_index row, local_index v) const {
    return {entries[t], load<Width>(arg.row_data(row) + v * Width), load<Width>(dy.at(row, v * Width))};
  }
};

/// As on_host::max_aggregate.
template <class T>
void max_aggregate(const device_queue<cuda_device>& q, local::input_csr<T> a, local::input_view<T> x,
                   matrix_view<T> y, matrix_view<local_index> arg) {
  local::require_product("max_aggregate", a, x, y, "the aggregate");
  local::require_equal("max_aggregate", "arg", local::shape_of(arg), "y", local::shape_of(y));
  with_width<widest<T>>(
      y.cols,
      [&]<int pack_width>(std::integral_constant<int, pack_width>) {
        fold_rows(q, rows_of(a), y.cols / pack_width, skew(a.columns, 4),
                  largest_neighbours<T, pack_width>{a.columns, table_of(x), y, arg});
      },
      x, y, arg);
}

/// As on_host::max_scatter_pattern.
template <class T>
local::csr_inverse<cuda_device> max_scatter_pattern(const device_queue<cuda_device>& q,
                                                    const local::csr_view<T>& a) {
  return inverse_of(q, a);
}

/// As on_host::max_scatter.
template <class T>
void max_scatter(const device_queue<cuda_device>& q, const local::csr_inverse_view& a,
                 matrix_view<const local_index> arg, local::input_view<T> dy, matrix_view<T> dx) {
  local::require_product("max_scatter", matrix_shape{a.cols, a.rows}, dy, dx, "the gradient");
  local::require_equal("max_scatter", "arg", local::shape_of(arg), "dy", local::shape_of(dy));
  const local::csr_view<T> columns = a.transposed<T>();
  with_width<widest<T>>(
      dx.cols,
      [&]<int pack_width>(std::integral_constant<int, pack_width>) {
        fold_rows(q, rows_of(columns), dx.cols / pack_width, skew(columns.columns, 4),
                  won_gradients<T, pack_width>{{columns.columns}, a.entry_numbers, arg, table_of(dy), dx});
      },
      arg, dy, dx);
}

}  // namespace partita::on_cuda

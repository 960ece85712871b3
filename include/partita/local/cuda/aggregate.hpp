#pragma once
/// Largest neighbours of rows, and sums into listed rows. Sums go into one element in the
/// order of the rows they come from.

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "partita/local/cuda/elementwise.hpp"
#include "partita/local/cuda/row_fold.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/cuda_sort.hpp"

namespace partita::on_cuda {

/// The largest neighbours of a row in a pack of columns, and their indices; 0 and -1 while there are none.
template <class T, int Width>
struct largest_neighbours {
  struct sum {
    pack_of<T, Width> largest;
    pack_of<local_index, Width> where;
  };
  struct item {
    pack_of<T, Width> x;
    local_index index;
  };
  using lead = pack_of<local_index, 4>;

  const local_index* columns;
  row_table<T> x;
  matrix_view<T> y;
  matrix_view<local_index> arg;

  constexpr sum zero() const {
    sum none{};
    for (local_index& index : none.where.at) index = -1;
    return none;
  }
  constexpr lead look(local_index e) const { return load<4>(columns + e); }
  constexpr item get(local_index e, local_index v) const { return of(columns[e], v); }
  constexpr void get(const lead& four, local_index, local_index v, item (&items)[4]) const {
    for (int k = 0; k < 4; ++k) items[k] = of(four.at[k], v);
  }
  constexpr void add(sum& best, const item& next, local_index, local_index) const {
    for (int c = 0; c < Width; ++c) take(best, c, next.x.at[c], next.index);
  }
  constexpr void join(sum& best, const sum& later) const {
    for (int c = 0; c < Width; ++c)
      if (later.where.at[c] >= 0) take(best, c, later.largest.at[c], later.where.at[c]);
  }
  constexpr void store(const sum& found, local_index row, local_index v) const {
    on_cuda::store(found.largest, y.row(row) + v * Width);
    on_cuda::store(found.where, arg.row(row) + v * Width);
  }

 private:
  constexpr item of(local_index column, local_index v) const {
    return {load<Width>(x.at(column, v * Width)), column};
  }
  static constexpr void take(sum& best, int c, T value, local_index index) {
    if (best.where.at[c] >= 0 && !(value > best.largest.at[c])) return;
    best.largest.at[c] = value;
    best.where.at[c] = index;
  }
};

/// Element (i, j) of dy goes to element key = row n + j of dx; beyond its end where it goes nowhere.
template <class Key>
struct find_targets {
  matrix_view<const local_index> arg;
  local_index rows;
  Key* keys;
  local_index* sources;

  constexpr void operator()(std::int64_t thread) const {
    const cell at = cell_of(thread, arg.cols);
    const local_index row = arg(at.row, at.col);
    keys[thread] =
        static_cast<Key>(row < 0 ? std::int64_t{rows} * arg.cols : std::int64_t{row} * arg.cols + at.col);
    sources[thread] = at.row;
  }
};

/// The first of some equal keys adds what all of them have.
template <class T, class Key>
struct add_to_targets {
  const Key* keys;
  const local_index* sources;
  std::int64_t count;
  matrix_view<const T> dy;
  matrix_view<T> dx;

  constexpr void operator()(std::int64_t t) const {
    const Key key = keys[t];
    if (t > 0 && keys[t - 1] == key) return;
    const auto row = static_cast<std::int64_t>(key / static_cast<Key>(dy.cols));
    const auto j = static_cast<local_index>(key % static_cast<Key>(dy.cols));
    if (row >= dx.rows) return;
    T total = dx(static_cast<local_index>(row), j);
    for (; t < count && keys[t] == key; ++t) total += dy(sources[t], j);
    dx(static_cast<local_index>(row), j) = total;
  }
};

struct number_rows {
  const local_index* rows;
  local_index* keys;
  local_index* numbers;

  constexpr void operator()(std::int64_t i) const {
    keys[i] = rows[i];
    numbers[i] = static_cast<local_index>(i);
  }
};

/// The first of some equal rows adds what goes to all of them, in one column.
template <class T>
struct add_to_rows {
  const local_index* rows;
  const local_index* numbers;
  std::int64_t count;
  const T* from;
  matrix_view<T> to;

  constexpr void operator()(std::int64_t thread) const {
    const cell at = cell_of(thread, to.cols);
    std::int64_t t = at.row;
    const local_index row = rows[t];
    if (t > 0 && rows[t - 1] == row) return;
    T total = to(row, at.col);
    for (; t < count && rows[t] == row; ++t) total += from[std::int64_t{numbers[t]} * to.cols + at.col];
    to(row, at.col) = total;
  }
};

namespace aggregate_detail {

template <class Key>
on_cuda::sorted_pairs<Key, local_index> pairs(const device_queue<cuda_device>& q, std::int64_t count) {
  const auto size = static_cast<std::size_t>(count);
  Key* const keys =
      reinterpret_cast<Key*>(scratch<std::byte>(q, 2 * size * (sizeof(Key) + sizeof(local_index))));
  local_index* const values = reinterpret_cast<local_index*>(keys + 2 * size);
  return {keys, values, keys + size, values + size};
}

template <class Key, class T>
void scatter(const device_queue<cuda_device>& q, const matrix_view<const local_index>& arg,
             const matrix_view<const T>& dy, const matrix_view<T>& dx, std::int64_t keys) {
  const std::int64_t count = std::int64_t{dy.rows} * dy.cols;
  if (count == 0) return;
  auto sorted = pairs<Key>(q, count);
  on_cuda::launch(q, count, find_targets<Key>{arg, dx.rows, sorted.keys, sorted.values});
  on_cuda::sort_pairs(q, count, on_cuda::bits_below(keys), sorted);
  on_cuda::launch(q, count, add_to_targets<T, Key>{sorted.keys, sorted.values, count, dy, dx});
}

}  // namespace aggregate_detail

/// As the host's.
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

/// As the host's. Costs a stable sort of m f keys of 4 bytes (8 if k f is 2^32 or more) with 4 bytes each,
/// and twice their memory; an element of dx is added up by one thread.
template <class T>
void max_scatter(const device_queue<cuda_device>& q, matrix_view<const local_index> arg,
                 local::input_view<T> dy, matrix_view<T> dx) {
  local::require_equal("max_scatter", "arg", local::shape_of(arg), "dy", local::shape_of(dy));
  local::require_equal("max_scatter", "dx", local::shape_of(dx), "a block with the columns of dy",
                       matrix_shape{dx.rows, dy.cols});
  const std::int64_t keys = (std::int64_t{dx.rows} + 1) * dx.cols;
  if (keys >> 32 == 0)
    aggregate_detail::scatter<std::uint32_t>(q, arg, dy, dx, keys);
  else
    aggregate_detail::scatter<std::uint64_t>(q, arg, dy, dx, keys);
}

/// As the host's; rows is in the device's memory. Costs a stable sort of the rows; an element is added up by
/// one thread. Throws shape_error when there are more rows than a local index counts.
template <class T>
void scatter_add_rows(const device_queue<cuda_device>& q, const local::scalar<T>* from,
                      std::span<const local_index> rows, matrix_view<T> to) {
  const local_index count = to_local(static_cast<global_index>(rows.size()), "the number of scattered rows");
  if (count == 0 || to.cols == 0) return;
  auto sorted = aggregate_detail::pairs<local_index>(q, count);
  on_cuda::launch(q, count, number_rows{rows.data(), sorted.keys, sorted.values});
  on_cuda::sort_pairs(q, count, on_cuda::bits_below(to.rows), sorted);
  on_cuda::launch(q, std::int64_t{count} * to.cols,
                  add_to_rows<T>{sorted.keys, sorted.values, count, from, to});
}

}  // namespace partita::on_cuda

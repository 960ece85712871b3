// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Max aggregation over neighbours, and its gradient.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "partita/local/host/edge_parts.hpp"
#include "partita/local/host/instructions.hpp"
#include "partita/local/host/parallel.hpp"
#include "partita/local/host/prefetch_distance.hpp"
#include "partita/local/host/vector.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

namespace aggregate_detail {

template <class T>
struct operands {
  local::csr_view<T> a;
  matrix_view<const T> x;
  matrix_view<T> y;
  matrix_view<local_index> arg;
  local_index ahead = 0;  // entries between a prefetch of a row of x and its use

  /// Columns [begin, end) of x, y and arg.
  operands columns(local_index begin, local_index end) const {
    const local_index width = end - begin;
    return {a, x.block(0, begin, x.rows, width), y.block(0, begin, y.rows, width),
            arg.block(0, begin, arg.rows, width), ahead};
  }
};

/// Rows of y of more than Count / 2 and at most Count vectors. Those of the second half end with the last
/// column, and may overlap the others.
template <class T, int Bytes, int Count>
struct strip {
  static constexpr int lanes = Bytes / static_cast<int>(sizeof(T)), half = Count / 2;
  using vector = typename vector_of<T, Bytes>::type;
  using place = typename vector_of<T, Bytes>::place;
  using word = std::conditional_t<sizeof(T) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;
  using words = typename vector_of<word, Bytes>::type;
  using index_place = typename vector_of<local_index, lanes* static_cast<int>(sizeof(local_index))>::place;

  void operator()(const operands<T>& p, local_index begin, local_index end) const {
    const local_index* const columns = p.a.columns;
    const std::ptrdiff_t second = p.y.cols - (Count - half) * lanes;
    const local_index far_end = p.a.offsets[p.a.rows] - p.ahead;
    for (local_index i = begin; i < end; ++i) {
      std::ptrdiff_t e = p.a.offsets[i];
      const std::ptrdiff_t row_end = p.a.offsets[i + 1];
      const local_index* const later = columns + (row_end <= far_end ? p.ahead : 0);
      vector largest[Count] = {};
      words where[Count] = {}, entry{};
      entry += static_cast<word>(e < row_end ? e : -1);
      for (int n = 0; n < Count; ++n) {
        where[n] += entry;
        if (e < row_end) largest[n] = at(p.x.row_data(columns[e]), n, second).value;
      }
      for (++e; e < row_end; ++e) {
        const T* const next = p.x.row_data(later[e]);
        for (int j = 0; j < lanes * Count; j += 64 / static_cast<int>(sizeof(T)))
          __builtin_prefetch(next + j);
        const T* const from = p.x.row_data(columns[e]);
        entry += 1;
        for (int n = 0; n < Count; ++n) {
          const vector value = at(from, n, second).value;  // a copy: the place need not be aligned
          take_larger(value, entry, largest[n], where[n]);
        }
      }
      for (int n = 0; n < Count; ++n) {
        reinterpret_cast<place*>(p.y.row_data(i) + start(n, second))->value = largest[n];
        reinterpret_cast<index_place*>(p.arg.row_data(i) + start(n, second))->value =
            __builtin_convertvector(where[n], decltype(index_place::value));
      }
    }
  }

 private:
  /// value takes the place of the largest if it is larger or the first NaN. The masks come from sign bits:
  /// g++ 12 compares vectors that are longer than those of the whole program one number after the other.
  static void take_larger(const vector& value, const words& entry, vector& largest, words& where) {
    const vector old = largest, difference = (old - value) + T{0};  // not -0
    words takes = __builtin_bit_cast(words, difference), is_nan, is_first, was_nan;
    to_sign_mask(takes);
    set_nan_mask(difference, is_nan);
    set_nan_mask(value, is_first);
    set_nan_mask(old, was_nan);
    takes = (takes & ~is_nan) | (is_first & ~was_nan);
    where = (where & ~takes) | (entry & takes);
    largest = __builtin_bit_cast(
        vector, (__builtin_bit_cast(words, old) & ~takes) | (__builtin_bit_cast(words, value) & takes));
  }
  /// All bits where the highest one is set, and where a number is NaN.
  static void to_sign_mask(words& bits) { bits = -(bits >> (8 * sizeof(T) - 1)); }
  static void set_nan_mask(const vector& x, words& mask) {
    constexpr word infinity = std::bit_cast<word>(std::numeric_limits<T>::infinity());
    mask = infinity - ((__builtin_bit_cast(words, x) << 1) >> 1);
    to_sign_mask(mask);
  }
  /// Where vector n of a row begins, whose second half begins at `second`.
  static std::ptrdiff_t start(int n, std::ptrdiff_t second) {
    return n < half ? std::ptrdiff_t{n} * lanes : second + (n - half) * lanes;
  }
  static const place& at(const T* row, int n, std::ptrdiff_t second) {
    return *reinterpret_cast<const place*>(row + start(n, second));
  }
};

/// Rows of y that Most vectors of Bytes hold.
template <instruction_set I, int Bytes, int Most, class T>
inline void find_in_strip(const operands<T>& p, local_index begin, local_index end) {
  if constexpr (Most > 1)
    if (p.y.cols * static_cast<int>(sizeof(T)) <= Most / 2 * Bytes)
      return find_in_strip<I, Bytes, Most / 2>(p, begin, end);
  run_with<I>(strip<T, Bytes, Most>(), p, begin, end);
}

/// Rows [begin, end) of y, in vectors of Bytes, or shorter ones if a row does not fill these.
template <instruction_set I, class T, int Bytes = register_bytes(I)>
inline void find_maxima(operands<T> p, local_index begin, local_index end) {
  constexpr local_index lanes = Bytes / sizeof(T);
  if constexpr (lanes > 1)
    if (p.y.cols < lanes) return find_maxima<I, T, Bytes / 2>(p, begin, end);
  constexpr int most = Bytes < register_bytes(I) ? 2 : kept_registers(I) / 2;
  const local_index vectors = (p.y.cols + lanes - 1) / lanes, strips = (vectors + most - 1) / most;
  if (strips == 0) return;
  const auto begin_of = [&](local_index s) {
    return static_cast<local_index>(global_index{vectors} * s / strips) * lanes;
  };
  p.ahead =
      prefetch_search_of(static_cast<std::size_t>((p.y.cols + strips - 1) / strips) * sizeof(T)).distance();
  for (local_index i = begin, to; i < end; i = to) {
    to = strips == 1 ? end : std::min(i + row_block, end);
    for (local_index s = 0; s < strips; ++s) {
      const local_index first = begin_of(s), last = std::min(begin_of(s + 1), p.y.cols);
      find_in_strip<I, Bytes, most>(p.columns(first, last), i, to);
    }
  }
}

}  // namespace aggregate_detail

/// y(i, j) = max_e x(col(e), j) over the entries e of row i, and arg(i, j) is the first entry that attains
/// it; a NaN wins over all numbers. 0 and -1 for an empty row. x is (a.cols, f), y and arg are (a.rows, f).
/// Throws shape_error if the shapes do not match.
template <class T>
inline void max_aggregate(const device_queue<host>& q, local::input_csr<T> a, local::input_view<T> x,
                          matrix_view<T> y, matrix_view<local_index> arg) {
  local::require_product("max_aggregate", a, x, y, "the aggregate");
  local::require_equal("max_aggregate", "arg", local::shape_of(arg), "y", local::shape_of(y));
  const aggregate_detail::operands<T> all{a, x, y, arg};
  with_instructions([&](auto instructions) {
    run_entry_rows(q.threads(), a, x.cols, [&](local_index begin, local_index end) {
      aggregate_detail::find_maxima<instructions>(all, begin, end);
    });
  });
}

/// The form of a pattern that max_scatter takes, built once per pattern: the pattern itself on the host, its
/// inverse on CUDA devices.
template <class T>
inline local::csr_view<T> max_scatter_pattern(const device_queue<host>&, const local::csr_view<T>& a) {
  return a;
}

/// dx(col(e), j) += dy(row(e), j) over the entries e with arg(row(e), j) = e, those of one column in order.
/// `a` is the max_scatter_pattern of the pattern given to max_aggregate. arg and dy are (a.rows, f), dx is
/// (a.cols, f). Parallel over columns. Throws shape_error if the shapes do not match.
template <class T>
inline void max_scatter(const device_queue<host>& q, local::input_csr<T> a,
                        matrix_view<const local_index> arg, local::input_view<T> dy, matrix_view<T> dx) {
  memory::refuse_reproducible(q, "max_scatter");
  local::require_product("max_scatter", matrix_shape{a.cols, a.rows}, dy, dx, "the gradient");
  local::require_equal("max_scatter", "arg", local::shape_of(arg), "dy", local::shape_of(dy));
  constexpr local_index line = 64 / sizeof(T);
  const auto columns = [=](local_index begin, local_index end) {
    for (local_index i = 0; i < dy.rows; ++i)
      for (local_index j = begin * line; j < std::min(end * line, dx.cols); ++j)
        if (const local_index e = arg(i, j); e >= 0) dx(a.columns[e], j) += dy(i, j);
  };
  with_instructions([&](auto instructions) {
    run_rows(q.threads(), (dx.cols + line - 1) / line, std::int64_t{dy.rows} * line,
             [&](local_index begin, local_index end) { run_with<instructions>(columns, begin, end); });
  });
}

}  // namespace partita::on_host

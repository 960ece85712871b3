// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Vectors of exact terms (base/exact_grid.hpp): columns side by side in doubles, whose sums stay in
/// registers. The bits do not depend on the set of instructions: what a term adds is rounded alike in each,
/// and each column is summed alone.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "partita/base/exact_grid.hpp"
#include "partita/local/fusion.hpp"
#include "partita/local/host/instructions.hpp"
#include "partita/local/view.hpp"

namespace partita::on_host {

/// Sums of T, of each grid.
template <class T>
using exact_views = std::array<matrix_view<double>, base::exact_sums<T>>;

namespace exact_detail {

/// `Lanes` doubles, from as many T in memory.
template <class T, int Lanes>
struct exact_lanes {
  using vector = typename vector_of<double, 8 * Lanes>::type;
  using integers = typename vector_of<std::uint64_t, 8 * Lanes>::type;
  using place = typename vector_of<double, 8 * Lanes>::place;
  using narrow = typename vector_of<T, Lanes* static_cast<int>(sizeof(T))>::place;

  static void load(const T* from, vector& to) {
    to = __builtin_convertvector(reinterpret_cast<const narrow*>(from)->value, vector);
  }
};
template <class T>
struct exact_lanes<T, 1> {
  using vector = double;
  using integers = std::uint64_t;
  struct place {
    double value;
  };

  static void load(const T* from, vector& to) { to = double{*from}; }
};

/// Sums of products of numbers that were T on the grids of exact_sums<T>, as whole numbers of units. The bits
/// of fma(x, y, C) are those of C, and as many more as the term has units, since both have one exponent: sums
/// of bits are sums of units, which need one operation for each term where doubles need two, and with C's
/// bits are a double again.
template <class T>
class unit_sums {
 public:
  static constexpr int levels = base::exact_sums<T>;
  template <int Lanes>
  struct vectors {
    typename exact_lanes<T, Lanes>::integers of[levels] = {};
  };

  explicit unit_sums(const base::exact_grid& grid) : coarse_(grid.coarse().coarse), fine_(grid.fine().fine) {}

  template <int Lanes, class V>
  void add(const V& x, const V& y, vectors<Lanes>& sums) const {
    using integers = typename exact_lanes<T, Lanes>::integers;
    V rounded = V() + coarse_;
    base::multiply_add<T>(x, y, rounded);
    sums.of[0] += __builtin_bit_cast(integers, rounded);
    if constexpr (levels == 2) {
      V left = coarse_ - rounded;
      base::multiply_add<T>(x, y, left);
      left += fine_;
      sums.of[1] += __builtin_bit_cast(integers, left);
    }
  }
  /// sum = the sum of this many terms, on one of the grids.
  template <int Lanes, class V>
  void take(const vectors<Lanes>& sums, int level, local_index terms, V& sum) const {
    using integers = typename exact_lanes<T, Lanes>::integers;
    if (terms == 0) {
      sum = V();
      return;
    }
    const double c = level == 0 ? coarse_ : fine_;
    const integers bits =
        sums.of[level] - (static_cast<std::uint64_t>(terms) - 1) * std::bit_cast<std::uint64_t>(c);
    sum = __builtin_bit_cast(V, bits) - c;
  }

 private:
  double coarse_, fine_;
};

/// Sums in the order of their terms, as doubles.
template <class T>
struct ordered_sums {
  static constexpr int levels = 1;
  template <int Lanes>
  struct vectors {
    typename exact_lanes<T, Lanes>::vector of = {};
  };

  template <int Lanes, class V>
  void add(const V& x, const V& y, vectors<Lanes>& sums) const {
    base::multiply_add<T>(x, y, sums.of);
  }
  template <int Lanes, class V>
  void take(const vectors<Lanes>& sums, int, local_index, V& sum) const {
    sum = sums.of;
  }
};

/// Where `Count` vectors of a block of `cols` columns begin, from column `first` on: the last ends with the
/// last column, and may overlap what is before it. cols >= Lanes.
template <int Lanes, int Count>
struct strip_columns {
  local_index first, cols;

  local_index past() const { return cols - first > Lanes * Count ? first + Lanes * Count : cols; }
  local_index start(int n) const { return cols - first > (n + 1) * Lanes ? first + n * Lanes : cols - Lanes; }
  /// f(j, the sum of column j) for the columns [first, past()).
  template <class Vector, class F>
  void for_sums(const Vector (&sums)[Count], const F& f) const {
    double row[Lanes * Count];
    for (int n = 0; n < Count; ++n)
      reinterpret_cast<typename exact_lanes<double, Lanes>::place*>(row + (start(n) - start(0)))->value =
          sums[n];
    for (local_index j = first; j < past(); ++j) f(j, row[j - start(0)]);
  }
};

/// f(lanes, count, first) for strips of vectors that cover the columns [first, cols) of a block, the numbers
/// of lanes and of vectors as constants.
template <instruction_set I, class F>
inline void for_strips(local_index first, local_index cols, const F& f) {
  constexpr int lanes = register_bytes(I) / 8;
  using one = std::integral_constant<int, 1>;
  while (first < cols) {
    if (cols < lanes) {
      f(one(), one(), first++);
    } else if (cols - first > 2 * lanes) {
      f(std::integral_constant<int, lanes>(), std::integral_constant<int, 4>(), first);
      first += std::min(4 * lanes, cols - first);
    } else {
      f(std::integral_constant<int, lanes>(), std::integral_constant<int, 2>(), first);
      first = cols;
    }
  }
}

/// store(level, i, j, the sum of the terms value(e) x(col(e), j) of row i of a, as `Sums` has them) for rows
/// [begin, end) and the columns of a strip.
template <class T, int Lanes, int Count>
struct exact_spmm_strip {
  using lanes = exact_lanes<T, Lanes>;

  template <class Value, class Sums, class Store>
  void operator()(const local::csr_view<T>& a, const Value& given_value, const matrix_view<const T>& x,
                  const Sums& given_sums, const strip_columns<Lanes, Count>& columns, local_index begin,
                  local_index end, const Store& store) const {
    constexpr local_index ahead = 16;
    const Value value = given_value;
    const Sums summed = given_sums;
    const local_index last = a.offsets[a.rows] - ahead;
    for (local_index i = begin; i < end; ++i) {
      typename Sums::template vectors<Lanes> sums[Count] = {};
      for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e) {
        if (e < last) {
          const T* const later = x.row_data(a.columns[e + ahead]) + columns.first;
          for (int line = 0; line < Lanes * Count; line += 64 / static_cast<int>(sizeof(T)))
            __builtin_prefetch(later + line);
        }
        const T* const row = x.row_data(a.columns[e]);
        const auto factor = typename lanes::vector() + double{value(e)};
        for (int n = 0; n < Count; ++n) {
          typename lanes::vector terms;
          lanes::load(row + columns.start(n), terms);
          summed.add(factor, terms, sums[n]);
        }
      }
      for (int level = 0; level < Sums::levels; ++level) {
        typename lanes::vector of_level[Count];
        for (int n = 0; n < Count; ++n)
          summed.take(sums[n], level, a.offsets[i + 1] - a.offsets[i], of_level[n]);
        columns.for_sums(of_level, [&](local_index j, double sum) { store(level, i, j, sum); });
      }
    }
  }
};

/// Columns of `Rows` rows of the sums of each level, from row k on, += the sums of the terms of x^T y, of
/// rows [begin, end) of x and y.
template <class T, int Lanes, int Count, int Rows>
struct exact_inner_strip {
  using lanes = exact_lanes<T, Lanes>;

  void operator()(const matrix_view<const T>& x, const matrix_view<const T>& y, const unit_sums<T>& given,
                  const exact_views<T>& to, local_index k, local_index first, local_index begin,
                  local_index end) const {
    const strip_columns<Lanes, Count> columns{first, y.cols};
    const unit_sums<T> summed = given;
    typename unit_sums<T>::template vectors<Lanes> sums[Rows][Count] = {};
    for (local_index i = begin; i < end; ++i) {
      const T *const left = x.row_data(i) + k, *const right = y.row_data(i);
      typename lanes::vector terms[Count];
      for (int n = 0; n < Count; ++n) lanes::load(right + columns.start(n), terms[n]);
      for (int r = 0; r < Rows; ++r) {
        const auto factor = typename lanes::vector() + double{left[r]};
        for (int n = 0; n < Count; ++n) summed.add(factor, terms[n], sums[r][n]);
      }
    }
    for (int r = 0; r < Rows; ++r)
      for (int level = 0; level < unit_sums<T>::levels; ++level) {
        typename lanes::vector of_level[Count];
        for (int n = 0; n < Count; ++n) summed.take(sums[r][n], level, end - begin, of_level[n]);
        double* const row = to[static_cast<std::size_t>(level)].row_data(k + r);
        columns.for_sums(of_level, [=](local_index j, double sum) { row[j] += sum; });
      }
  }
};

/// A weight (k, n), or the transpose of one, row by row in double.
template <class T>
class wide_weight {
 public:
  wide_weight(matrix_view<const T> w, bool transposed)
      : cols_(transposed ? w.rows : w.cols),
        values_(static_cast<std::size_t>(w.rows) * static_cast<std::size_t>(w.cols)) {
    for (local_index i = 0; i < w.rows; ++i)
      for (local_index j = 0; j < w.cols; ++j)
        values_[static_cast<std::size_t>(transposed ? j * cols_ + i : i * cols_ + j)] = double{w(i, j)};
  }

  const double* row(local_index k) const { return values_.data() + k * cols_; }

 private:
  std::ptrdiff_t cols_;
  std::vector<double> values_;
};

/// What dense rows multiply row k of a weight by: visit(k, one number for each of the rows from i on).
template <class T>
struct dense_terms {
  matrix_view<const T> x;
  static constexpr int most_rows = 4;

  template <int Rows, class Visit>
  void of_rows(local_index i, const Visit& visit) const {
    for (local_index k = 0; k < x.cols; ++k) {
      T of_row[Rows];
      for (int r = 0; r < Rows; ++r) of_row[r] = x(i + r, k);
      visit(k, of_row);
    }
  }
};
/// The same for a row of a sparse block.
template <class T>
struct sparse_terms {
  local::csr_view<T> x;
  static constexpr int most_rows = 1;

  template <int Rows, class Visit>
  void of_rows(local_index i, const Visit& visit) const {
    for (local_index e = x.offsets[i]; e < x.offsets[i + 1]; ++e) visit(x.columns[e], {x.values[e]});
  }
};

/// Columns of rows [begin, end) of y = clamp(the sums over the terms of x w(k, :), in their order, + beta y +
/// bias).
template <class T, int Lanes, int Count>
struct ordered_strip {
  using lanes = exact_lanes<double, Lanes>;

  template <class Terms>
  void operator()(const wide_weight<T>* w, const Terms& given, const local::spmm_epilogue<T>& e,
                  const matrix_view<T>& y, local_index first, local_index begin, local_index end) const {
    constexpr int together = std::min(Terms::most_rows, 8 / Count);
    const Terms terms = given;
    local_index i = begin;
    for (; i + together <= end; i += together) rows<together>(*w, terms, e, y, first, i);
    if constexpr (together > 1)
      for (; i < end; ++i) rows<1>(*w, terms, e, y, first, i);
  }

 private:
  template <int Rows, class Terms>
  static void rows(const wide_weight<T>& w, const Terms& terms, const local::spmm_epilogue<T>& e,
                   const matrix_view<T>& y, local_index first, local_index i) {
    const strip_columns<Lanes, Count> columns{first, y.cols};
    typename lanes::vector sums[Rows][Count] = {};
    terms.template of_rows<Rows>(i, [&](local_index k, const T(&x)[Rows]) {
      typename lanes::vector of_weight[Count];
      for (int n = 0; n < Count; ++n) lanes::load(w.row(k) + columns.start(n), of_weight[n]);
      for (int r = 0; r < Rows; ++r) {
        const auto factor = typename lanes::vector() + double{x[r]};
        for (int n = 0; n < Count; ++n) base::multiply_add<T>(factor, of_weight[n], sums[r][n]);
      }
    });
    for (int r = 0; r < Rows; ++r) {
      T* const to = y.row_data(i + r);
      columns.for_sums(sums[r], [=, &e](local_index j, double z) {
        if (e.beta != T(0)) z = std::fma(double{e.beta}, double{to[j]}, z);
        if (e.bias != nullptr) z += double{e.bias[j]};
        to[j] = static_cast<T>(e.relu ? std::max(z, 0.0) : z);
      });
    }
  }
};

}  // namespace exact_detail

}  // namespace partita::on_host

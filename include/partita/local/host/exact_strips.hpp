// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Vectors of exact terms (base/exact_grid.hpp): columns side by side in doubles, whose sums stay in
/// registers. The bits do not depend on the set of instructions: every product is exact, and each column is
/// summed alone.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "partita/base/exact_grid.hpp"
#include "partita/local/fusion.hpp"
#include "partita/local/host/instructions.hpp"
#include "partita/local/view.hpp"

namespace partita::on_host::exact_detail {

/// `Lanes` doubles, from as many T in memory, as factors whose products are exact.
template <class T, int Lanes>
struct exact_lanes {
  static constexpr int factors = base::factor_count<T>;
  using vector = typename vector_of<double, 8 * Lanes>::type;
  using place = typename vector_of<double, 8 * Lanes>::place;
  using narrow = typename vector_of<T, Lanes* static_cast<int>(sizeof(T))>::place;

  static void split(const T* from, vector (&to)[factors]) {
    to[0] = __builtin_convertvector(reinterpret_cast<const narrow*>(from)->value, vector);
    if constexpr (factors == 2) {
      using bits = typename vector_of<std::uint64_t, 8 * Lanes>::type;
      constexpr std::uint64_t low = (std::uint64_t{1} << 27) - 1;
      const vector x = to[0];
      const bits high = (__builtin_bit_cast(bits, x) + (low / 2 + 1)) & ~low;
      to[0] = __builtin_bit_cast(vector, high);
      to[1] = x - to[0];
    }
  }
};
template <class T>
struct exact_lanes<T, 1> {
  static constexpr int factors = base::factor_count<T>;
  using vector = double;
  struct place {
    double value;
  };

  static void split(const T* from, vector (&to)[factors]) {
    const auto split = base::exact_factors(*from);
    for (std::size_t f = 0; f < factors; ++f) to[f] = split[f];
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

/// f(lanes, count, first) for strips of vectors that cover `cols` columns, the numbers of lanes and of
/// vectors as constants.
template <instruction_set I, class F>
inline void for_strips(local_index cols, const F& f) {
  constexpr int lanes = register_bytes(I) / 8;
  using one = std::integral_constant<int, 1>;
  for (local_index first = 0; first < cols;) {
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

/// Columns of rows [begin, end) of y = the sums of part(term) over the terms of a x, + y if `add`.
template <class T, int Lanes, int Count>
struct exact_spmm_strip {
  using lanes = exact_lanes<T, Lanes>;

  template <class Part>
  void operator()(const local::csr_view<T>& a, const matrix_view<const T>& x, const Part& given, bool add,
                  const matrix_view<double>& y, local_index first, local_index begin, local_index end) const {
    constexpr local_index ahead = 16;
    const strip_columns<Lanes, Count> columns{first, x.cols};
    const Part part = given;
    const local_index last = a.offsets[a.rows] - ahead;
    for (local_index i = begin; i < end; ++i) {
      typename lanes::vector sums[Count] = {};
      for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e) {
        if (e < last) {
          const T* const later = x.row_data(a.columns[e + ahead]) + first;
          for (int line = 0; line < Lanes * Count; line += 64 / static_cast<int>(sizeof(T)))
            __builtin_prefetch(later + line);
        }
        const T* const row = x.row_data(a.columns[e]);
        const auto factors = base::exact_factors(a.values[e]);
        for (int n = 0; n < Count; ++n) {
          typename lanes::vector terms[lanes::factors];
          lanes::split(row + columns.start(n), terms);
          for (const double f : factors)
            for (const auto& g : terms) part.add(f * g, sums[n]);
        }
      }
      double* const to = y.row_data(i);
      columns.for_sums(sums, [=](local_index j, double sum) { to[j] = add ? to[j] + sum : sum; });
    }
  }
};

/// Columns of `Rows` rows of sums, from row k on, += the sums of part(term) over the terms of x^T y, of rows
/// [begin, end) of x and y.
template <class T, int Lanes, int Count, int Rows>
struct exact_inner_strip {
  using lanes = exact_lanes<T, Lanes>;

  template <class Part>
  void operator()(const matrix_view<const T>& x, const matrix_view<const T>& y, const Part& given,
                  const matrix_view<double>& to, local_index k, local_index first, local_index begin,
                  local_index end) const {
    const strip_columns<Lanes, Count> columns{first, y.cols};
    const Part part = given;
    typename lanes::vector sums[Rows][Count] = {};
    for (local_index i = begin; i < end; ++i) {
      const T *const left = x.row_data(i) + k, *const right = y.row_data(i);
      typename lanes::vector terms[Count][lanes::factors];
      for (int n = 0; n < Count; ++n) lanes::split(right + columns.start(n), terms[n]);
      for (int r = 0; r < Rows; ++r)
        for (const double f : base::exact_factors(left[r]))
          for (int n = 0; n < Count; ++n)
            for (const auto& g : terms[n]) part.add(f * g, sums[r][n]);
    }
    for (int r = 0; r < Rows; ++r) {
      double* const row = to.row_data(k + r);
      columns.for_sums(sums[r], [=](local_index j, double sum) { row[j] += sum; });
    }
  }
};

/// A weight (k, n) as factors, row by row: for each row its n first factors, then its n second ones.
template <class T>
class factored_weight {
 public:
  static constexpr std::ptrdiff_t factors = base::factor_count<T>;

  factored_weight(matrix_view<const T> w, bool transposed)
      : cols_(transposed ? w.rows : w.cols),
        values_(static_cast<std::size_t>(w.rows) * static_cast<std::size_t>(w.cols) * factors) {
    for (local_index i = 0; i < w.rows; ++i)
      for (local_index j = 0; j < w.cols; ++j) {
        const auto split = base::exact_factors(w(i, j));
        for (std::ptrdiff_t f = 0; f < factors; ++f)
          values_[static_cast<std::size_t>(transposed ? (j * factors + f) * cols_ + i
                                                      : (i * factors + f) * cols_ + j)] =
              split[static_cast<std::size_t>(f)];
      }
  }

  const double* row(local_index k, std::ptrdiff_t factor) const {
    return values_.data() + (k * factors + factor) * cols_;
  }
  local_index cols() const { return static_cast<local_index>(cols_); }

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
  void operator()(const factored_weight<T>* w, const Terms& given, const local::spmm_epilogue<T>& e,
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
  static void rows(const factored_weight<T>& w, const Terms& terms, const local::spmm_epilogue<T>& e,
                   const matrix_view<T>& y, local_index first, local_index i) {
    const strip_columns<Lanes, Count> columns{first, y.cols};
    typename lanes::vector sums[Rows][Count] = {};
    terms.template of_rows<Rows>(i, [&](local_index k, const T(&x)[Rows]) {
      for (int r = 0; r < Rows; ++r)
        for (const double f : base::exact_factors(x[r]))
          for (std::ptrdiff_t g = 0; g < factored_weight<T>::factors; ++g) {
            const double* const from = w.row(k, g);
            for (int n = 0; n < Count; ++n)
              sums[r][n] +=
                  f * reinterpret_cast<const typename lanes::place*>(from + columns.start(n))->value;
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

}  // namespace partita::on_host::exact_detail

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Products and sums of reproducible meshes: sums over vertices have the same bits in every order, products
/// with a weight one order per element, whatever the number of rows.
///
/// All products are base::multiply_add, rounded once with the sum that they are added to.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "partita/base/exact_grid.hpp"
#include "partita/local/host/edge_parts.hpp"
#include "partita/local/host/elementwise.hpp"
#include "partita/local/host/exact_strips.hpp"
#include "partita/local/host/loss.hpp"
#include "partita/local/host/parallel.hpp"
#include "partita/local/row_products.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

namespace exact_detail {

/// Element by element, with the same bits in every set of instructions.
template <class T>
inline double row_loss(const T* logits, local_index n, local_index label, double scale, T* gradient) {
  const double largest = maximum_of(logits, n);
  double total = 0;
  for (local_index j = 0; j < n; ++j) total += std::exp(logits[j] - largest);
  const double loss = std::log(total) - (logits[label] - largest);
  const double factor = scale / total;
  for (local_index j = 0; j < n; ++j)
    gradient[j] = static_cast<T>(factor * std::exp(logits[j] - largest) - (j == label ? scale : 0));
  return loss;
}

/// sums[j] += the parts of x y[j], for j < n.
template <class T, class Part>
inline void add_products(T x, const T* y, local_index n, Part part, double* sums) {
  for (local_index j = 0; j < n; ++j) part.template add_product<T>(double{x}, double{y[j]}, sums[j]);
}

/// f(begin, end) for rows that all strips of columns pass while they are in a cache.
template <class F>
inline void for_row_blocks(int threads, local_index rows, std::int64_t row_work, const F& f) {
  run_rows(threads, rows, row_work, [&](local_index begin, local_index end) {
    for (local_index from = begin, to; from < end; from = to)
      f(from, to = end - from > 128 ? from + 128 : end);
  });
}

/// y(i, :) = drop(clamp(the sum over the terms of row i of x w(k, :), in their order, + beta y(i, :) +
/// bias)).
template <class T, class Terms>
inline void multiply_rows(const device_queue<host>& q, const wide_weight<T>& w, std::int64_t row_work,
                          Terms terms, const local::spmm_epilogue<T>& e, matrix_view<T> y) {
  with_instructions([&](auto i) {
    constexpr instruction_set set = decltype(i)::value;
    for_row_blocks(q.threads(), y.rows, row_work * y.cols, [&](local_index begin, local_index end) {
      for_strips<set>(0, y.cols, [&](auto lanes, auto count, local_index first) {
        run_with<set>(ordered_strip<T, lanes, count>(), &w, terms, e, y, first, begin, end);
      });
      if (e.drop.drops()) run_with<set>(elementwise_detail::dropped_rows<T>{e.drop, y}, begin, end);
    });
  });
}

/// The largest magnitude, as the bits that order them, of what is not a number above all others.
template <class T>
struct largest_magnitude {
  using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  bits of = 0;

  largest_magnitude& operator+=(const largest_magnitude& other) {
    of = std::max(of, other.of);
    return *this;
  }
  void add(const T* x, local_index n) {
    bits most = of;
    for (local_index j = 0; j < n; ++j) most = std::max(most, std::bit_cast<bits>(x[j]) << 1);
    of = most;
  }
  double value() const {
    const T largest = std::bit_cast<T>(of >> 1);
    return largest <= std::numeric_limits<T>::max() ? double{largest}
                                                    : std::numeric_limits<double>::infinity();
  }
};

}  // namespace exact_detail

/// The largest magnitude in x (m, n); infinity if an element is not a number, 0 if there is none.
template <class T>
inline double magnitude(const device_queue<host>& q, matrix_view<const T> x) {
  return sum_by_blocks<exact_detail::largest_magnitude<T>>(q.threads(), x.rows, x.cols,
                                                           [=](local_index begin, local_index end) {
                                                             exact_detail::largest_magnitude<T> largest;
                                                             for (local_index i = begin; i < end; ++i)
                                                               largest.add(x.row_data(i), x.cols);
                                                             return largest;
                                                           })
      .value();
}
/// As above, of a list.
template <class T>
inline double magnitude(const device_queue<host>& q, std::span<const T> x) {
  constexpr std::size_t width = 1024, rows = std::size_t{1} << 30;
  exact_detail::largest_magnitude<T> rest;
  double largest = 0;
  while (x.size() >= width) {
    const std::size_t whole = std::min(x.size() / width, rows);
    largest = std::max(largest, magnitude(q, matrix_view<const T>{x.data(), static_cast<local_index>(whole),
                                                                  static_cast<local_index>(width)}));
    x = x.subspan(whole * width);
  }
  rest.add(x.data(), static_cast<local_index>(x.size()));
  return std::max(largest, rest.value());
}

/// y = the sums of the terms of a x on each grid, + beta y; beta is 0 or 1. a is (m, k), x (k, n), each y (m,
/// n). Throws shape_error.
template <class T>
inline void exact_spmm(const device_queue<host>& q, local::csr_view<T> a, local::input_view<T> x,
                       const base::exact_grid& grid, double beta, const exact_views<T>& y) {
  for (const matrix_view<double>& sums : y) local::require_product("exact_spmm", a, x, sums, "a x");
  const std::int64_t work = a.rows == 0 ? 0 : 8 * std::int64_t{a.nonzeros()} / a.rows * x.cols;
  with_instructions([&](auto i) {
    constexpr instruction_set set = decltype(i)::value;
    exact_detail::for_row_blocks(q.threads(), a.rows, work, [&](local_index begin, local_index end) {
      exact_detail::for_strips<set>(0, x.cols, [&](auto lanes, auto count, local_index first) {
        run_with<set>(
            exact_detail::exact_spmm_strip<T, lanes, count>(), a, [=](auto e) { return a.values[e]; }, x,
            exact_detail::unit_sums<T>(grid), exact_detail::strip_columns<lanes, count>{first, x.cols}, begin,
            end,
            [&](int level, local_index row, local_index j, double sum) {
              double& to = y[static_cast<std::size_t>(level)](row, j);
              to = beta != 0 ? to + sum : sum;
            });
      });
    });
  });
}

/// y = the sums of part(term) over the terms of a^T x, + beta y; beta is 0 or 1. a is (k, m), x (k, n), y (m,
/// n). Threads share the columns. Throws shape_error.
template <class T, class Part>
inline void exact_spmm_transposed(const device_queue<host>& q, local::csr_view<T> a, local::input_view<T> x,
                                  Part part, double beta, matrix_view<double> y) {
  local::require_product("exact_spmm_transposed", matrix_shape{a.cols, a.rows}, x, y, "a^T x");
  const auto columns = [=](local_index begin, local_index end) {
    const local_index width = end - begin;
    if (beta == 0)
      for (local_index i = 0; i < y.rows; ++i) std::fill_n(y.row_data(i) + begin, width, 0.0);
    for (local_index i = 0; i < a.rows; ++i)
      for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e)
        exact_detail::add_products(a.values[e], x.row_data(i) + begin, width, part,
                                   y.row_data(a.columns[e]) + begin);
  };
  with_instructions([&](auto instructions) {
    run_rows(q.threads(), x.cols, 8 * std::int64_t{a.nonzeros()},
             [&](local_index begin, local_index end) { run_with<instructions>(columns, begin, end); });
  });
}

/// dx(col(e), j) += part(dy(row(e), j)) over the entries e with arg(row(e), j) = e. arg and dy are (a.rows,
/// f), dx is (a.cols, f). Threads share the columns. Throws shape_error.
template <class T, class Part>
inline void exact_max_scatter(const device_queue<host>& q, local::csr_view<T> a,
                              matrix_view<const local_index> arg, local::input_view<T> dy, Part part,
                              matrix_view<double> dx) {
  local::require_product("exact_max_scatter", matrix_shape{a.cols, a.rows}, dy, dx, "the gradient");
  local::require_equal("exact_max_scatter", "arg", local::shape_of(arg), "dy", local::shape_of(dy));
  run_rows(q.threads(), dx.cols, dy.rows, [=](local_index begin, local_index end) {
    for (local_index i = 0; i < dy.rows; ++i)
      for (local_index j = begin; j < end; ++j)
        if (const local_index e = arg(i, j); e >= 0) dx(a.columns[e], j) += part(double{dy(i, j)});
  });
}

/// sums = the sums of the terms of x^T y on each grid. x is (m, k), y (m, n), each of the sums (k, n). Throws
/// shape_error.
template <class T>
inline void exact_inner(const device_queue<host>& q, matrix_view<const T> x, local::input_view<T> y,
                        const base::exact_grid& grid, const exact_views<T>& sums) {
  constexpr local_index rows_at_once = 512;
  constexpr int together = 2 / base::exact_sums<T>;
  const local::gemm_sizes checked("exact_inner", true, false, x, y, sums[0]);
  const exact_detail::unit_sums<T> summed(grid);
  with_instructions([&](auto i) {
    constexpr instruction_set set = decltype(i)::value;
    run_rows(q.threads(), x.cols, 8 * std::int64_t{checked.k} * checked.n,
             [&](local_index begin, local_index end) {
               for (const matrix_view<double>& of : sums)
                 for (local_index k = begin; k < end; ++k) std::fill_n(of.row_data(k), of.cols, 0.0);
               const auto add = [&](auto rows, local_index k, local_index top, local_index next) {
                 exact_detail::for_strips<set>(0, y.cols, [&](auto lanes, auto count, local_index first) {
                   run_with<set>(exact_detail::exact_inner_strip<T, lanes, count, rows>(), x, y, summed, sums,
                                 k, first, top, next);
                 });
               };
               for (local_index top = 0, next; top < x.rows; top = next) {
                 next = x.rows - top > rows_at_once ? top + rows_at_once : x.rows;
                 local_index k = begin;
                 for (; end - k >= together; k += together)
                   add(std::integral_constant<int, together>(), k, top, next);
                 if (k < end) add(std::integral_constant<int, 1>(), k, top, next);
               }
             });
  });
}

/// sums[j] = the sum over i of part(x(i, j)). x is (m, n).
template <class T, class Part>
inline void exact_column_sums(const device_queue<host>& q, matrix_view<T> x, Part part, double* sums) {
  std::fill_n(sums, x.cols, 0.0);
  const auto columns = [=](local_index begin, local_index end) {
    for (local_index i = 0; i < x.rows; ++i)
      for (local_index j = begin; j < end; ++j) part.add(static_cast<double>(x(i, j)), sums[j]);
  };
  with_instructions([&](auto instructions) {
    run_rows(q.threads(), x.cols, x.rows,
             [&](local_index begin, local_index end) { run_with<instructions>(columns, begin, end); });
  });
}

/// sums(i, h) += the sum of part(values[e, h]) over the entries e of row i of a. sums is (a.rows, heads).
template <class T, class Part>
inline void exact_entry_sums(const device_queue<host>& q, local::csr_view<T> a, local_index heads,
                             const T* values, Part part, matrix_view<double> sums) {
  local::require_row_values("exact_entry_sums", a, heads, "sums", sums);
  run_entry_rows(q.threads(), a, heads, [=](local_index begin, local_index end) {
    for (local_index i = begin; i < end; ++i)
      for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e)
        for (local_index h = 0; h < heads; ++h)
          sums(i, h) += part(static_cast<double>(edge_values(values, e, heads)[h]));
  });
}

/// Each element is summed in double over the columns of x in their order.
template <class T>
class ordered_products final : public local::ordered_products<T, host> {
 public:
  using queue = device_queue<host>;

  /// x is (m, k), w (k, n) or (n, k), y (m, n). Throws shape_error.
  void multiply(const queue& q, matrix_view<const T> x, matrix_view<const T> w, bool transposed_w,
                const local::spmm_epilogue<T>& e, matrix_view<T> y) const override {
    const local::gemm_sizes checked("ordered_products", false, transposed_w, x, w, y);
    exact_detail::multiply_rows<T>(q, {w, transposed_w}, checked.k, exact_detail::dense_terms<T>{x}, e, y);
  }
  void multiply(const queue& q, const local::csr_view<T>& x, matrix_view<const T> w,
                const local::spmm_epilogue<T>& e, matrix_view<T> y) const override {
    local::require_product("ordered_products", x, w, y, "x w");
    exact_detail::multiply_rows<T>(q, {w, false}, x.rows == 0 ? 0 : x.nonzeros() / x.rows,
                                   exact_detail::sparse_terms<T>{x}, e, y);
  }
};

template <class T>
std::shared_ptr<local::ordered_products<T, host>> make_ordered_products(const device_queue<host>&) {
  return std::make_shared<ordered_products<T>>();
}

/// As cross_entropy, but with the loss of each row in losses[i], 0 where labels[i] < 0. Throws shape_error.
template <class T>
inline void row_losses(const device_queue<host>& q, matrix_view<const T> logits, const local_index* labels,
                       local::scalar<T> scale, matrix_view<T> gradient, double* losses) {
  local::require_equal("row_losses", "logits", local::shape_of(logits), "gradient",
                       local::shape_of(gradient));
  for_rows(q.threads(), logits.rows, 8 * std::int64_t{logits.cols}, [=](local_index i) {
    if (labels[i] >= logits.cols) local::throw_label(i, labels[i], logits.cols);
    losses[i] = 0;
    if (labels[i] < 0)
      std::fill_n(gradient.row_data(i), gradient.cols, T{0});
    else
      losses[i] = exact_detail::row_loss(logits.row_data(i), logits.cols, labels[i], double{scale},
                                         gradient.row_data(i));
  });
}

/// y[i] = part(x[i]). x and y have as many elements.
template <class T, class Part>
inline void exact_parts(const device_queue<host>&, std::span<const T> x, Part part, std::span<double> y) {
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = part(static_cast<double>(x[i]));
}

/// y[i] = alpha * (the sum of sums[i], sums[n + i], ...), of as many as exact_sums<T>, for i < n.
template <class T>
inline void round_sums(const device_queue<host>& q, std::span<const double> sums, double alpha,
                       std::span<T> y) {
  const double* const from = sums.data();
  const auto part = [=](local_index begin, local_index end) {
    constexpr std::size_t block = 1024;
    for (std::size_t i = block * static_cast<std::size_t>(begin),
                     last = std::min(y.size(), block * static_cast<std::size_t>(end));
         i < last; ++i) {
      double total = from[i];
      if constexpr (base::exact_sums<T> == 2) total += from[y.size() + i];
      y[i] = static_cast<T>(alpha * total);
    }
  };
  with_instructions([&](auto instructions) {
    run_rows(q.threads(), static_cast<local_index>((y.size() + 1023) / 1024), 1024,
             [&](local_index begin, local_index end) { run_with<instructions>(part, begin, end); });
  });
}

}  // namespace partita::on_host

#pragma once
// Blocks and sparse patterns for kernels of edges, and how a kernel is held against the reference.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <doctest/doctest.h>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "partita/base/random.hpp"
#include "partita/local/kernels.hpp"
#include "partita/local/reference/kernels.hpp"
#include "support/blocks.hpp"

namespace test_support {

using partita::csr_view;
using partita::head_slice;
using host_kernels = partita::kernels<partita::host>;
using host_queue = partita::queue<partita::host>;
namespace reference = partita::reference;

template <class T>
constexpr double tolerance = sizeof(T) == 4 ? 1e-4 : 1e-12;

/// A skewed pattern without values: row 0 is long, every third row is empty, offsets begin at 2.
struct pattern {
  local_index rows, cols;
  std::vector<local_index> offsets, columns{0, 0};

  pattern(local_index rows, local_index cols) : rows(rows), cols(cols), offsets{2} {
    for (local_index i = 0; i < rows; ++i) {
      const local_index length = cols == 0 || i % 3 == 1 ? 0 : i == 0 ? 3 * cols : 1 + i % 7;
      for (local_index e = 0; e < length; ++e)
        columns.push_back(
            static_cast<local_index>(partita::random_bits(5, i, e) % static_cast<std::uint64_t>(cols)));
      offsets.push_back(static_cast<local_index>(columns.size()));
    }
  }
  local_index entries() const { return static_cast<local_index>(columns.size()); }
  template <class T>
  csr_view<T> view() const {
    return {rows, cols, offsets.data(), columns.data(), nullptr};
  }
};

/// Runs `kernel(queue, y)` with several threads: all must agree with what `expect(y)` does, and in every bit
/// with each other.
template <class T, class Kernel, class Expect>
void agree(const block<T>& y, Kernel kernel, Expect expect) {
  block<T> expected = y;
  expect(expected);
  std::vector<T> first;
  for (const int threads : {1, 2, 3}) {
    block<T> result = y;
    kernel(host_queue(threads), result);
    INFO("rows ", y.rows, " cols ", y.cols, " threads ", threads);
    CHECK(distance(result.values, expected.values) < tolerance<T>);
    if (threads == 1) first = result.values;
    CHECK(same_bits(result.values, first));
  }
}

template <class T>
void check_scores(local_index m, local_index k, local_index heads) {
  const pattern p(m, k);
  const csr_view<T> a = p.view<T>();
  const T slope = T(0.2);
  block<T> source(k, heads, 1), target(m, heads, 2), edges(p.entries(), heads, 3, 0),
      u(p.entries(), heads, 4, 0);
  block<T> sums(m, heads, 5), log_sum(m, heads, 6), row_dot(m, heads, 7);
  for (T& v : source.values) v *= 20;
  const auto s = source.view(), t = target.view();
  INFO("m ", m, " k ", k, " heads ", heads);
  agree(
      edges, [&](auto q, auto& y) { host_kernels::edge_scores(q, a, heads, slope, s, t, y.data()); },
      [&](auto& y) { reference::edge_scores(a, heads, slope, s, t, y.data()); });
  agree(
      sums, [&](auto q, auto& y) { host_kernels::edge_log_sum(q, a, heads, slope, s, t, y.view()); },
      [&](auto& y) { reference::edge_log_sum(a, heads, slope, s, t, y.view()); });
  reference::edge_log_sum(a, heads, slope, s, t, log_sum.view());
  agree(
      edges,
      [&](auto q, auto& y) {
        host_kernels::edge_softmax(q, a, heads, slope, s, t, log_sum.view(), y.data());
      },
      [&](auto& y) { reference::edge_softmax(a, heads, slope, s, t, log_sum.view(), y.data()); });
  agree(
      sums,
      [&](auto q, auto& y) { host_kernels::edge_row_dot(q, a, heads, u.data(), edges.data(), y.view()); },
      [&](auto& y) { reference::edge_row_dot(a, heads, u.data(), edges.data(), y.view()); });
  for (const T beta : {T{0}, T{1}, T(-0.75)}) {
    block<T> both(k + m, heads, 8);
    if (beta == 0) both.poison();
    const auto halves = [=](auto& y, auto gradient) {
      gradient(y.view().block(0, 0, k, heads), y.view().block(k, 0, m, heads));
    };
    agree(
        both,
        [&](auto q, auto& y) {
          halves(y, [&](auto ds, auto dt) {
            host_kernels::edge_softmax_gradient(q, a, heads, slope, s, t, log_sum.view(), u.data(),
                                                row_dot.view(), beta, ds, dt);
          });
        },
        [&](auto& y) {
          halves(y, [&](auto ds, auto dt) {
            reference::edge_softmax_gradient(a, heads, slope, s, t, log_sum.view(), u.data(), row_dot.view(),
                                             beta, ds, dt);
          });
        });
  }
}

template <class T>
void check_maps(local_index m, local_index k, local_index heads) {
  const pattern p(m, k);
  const csr_view<T> a = p.view<T>();
  block<T> edges(p.entries(), heads, 3, 0), u(p.entries(), heads, 4, 0), v(p.entries(), heads, 5, 0);
  const auto f = [](local_index i, local_index c, local_index h, T value) {
    return value * static_cast<T>((i + 3 * c + 5 * h) % 4);
  };
  INFO("m ", m, " k ", k, " heads ", heads);
  agree(
      edges, [&](auto q, auto& y) { host_kernels::edge_apply(q, a, heads, f, u.data(), y.data()); },
      [&](auto& y) { reference::edge_apply(a, heads, f, u.data(), y.data()); });
  agree(
      u, [&](auto q, auto& y) { host_kernels::edge_apply(q, a, heads, f, y.data(), y.data()); },
      [&](auto& y) { reference::edge_apply(a, heads, f, u.data(), y.data()); });
  agree(
      edges, [&](auto q, auto& y) { host_kernels::edge_row_softmax(q, a, heads, u.data(), y.data()); },
      [&](auto& y) { reference::edge_row_softmax(a, heads, u.data(), y.data()); });
  agree(
      u, [&](auto q, auto& y) { host_kernels::edge_row_softmax(q, a, heads, y.data(), y.data()); },
      [&](auto& y) { reference::edge_row_softmax(a, heads, y.data(), y.data()); });
  agree(
      edges,
      [&](auto q, auto& y) {
        host_kernels::edge_row_softmax_gradient(q, a, heads, u.data(), v.data(), y.data());
      },
      [&](auto& y) { reference::edge_row_softmax_gradient(a, heads, u.data(), v.data(), y.data()); });
  for (const bool left : {true, false})
    agree(
        u,
        [&](auto q, auto& y) {
          host_kernels::edge_row_softmax_gradient(q, a, heads, left ? y.data() : v.data(),
                                                  left ? v.data() : y.data(), y.data());
        },
        [&](auto& y) {
          reference::edge_row_softmax_gradient(a, heads, left ? u.data() : v.data(),
                                               left ? v.data() : u.data(), y.data());
        });
}

/// Columns [s.first_col, s.first_col + f) of x and y.
template <class T>
void check_products(local_index m, local_index k, head_slice s, local_index f) {
  const pattern p(m, k);
  const csr_view<T> a = p.view<T>();
  block<T> x(k, f, 1), y(m, f, 2, 1), values(p.entries(), s.heads, 3, 0);
  INFO("m ", m, " k ", k, " heads ", s.heads, " of ", s.head_width, " from ", s.first_col);
  for (const T beta : {T{0}, T{1}, T(-0.75)}) {
    INFO("f ", f, " beta ", beta);
    block<T> to_x = x, to_y = y, to_values = values;
    if (beta == 0)
      for (block<T>* out : {&to_x, &to_y}) out->poison();
    if (beta == 0 && p.entries() > 2)
      std::fill(to_values.values.begin() + 2 * s.heads, to_values.values.end(),
                std::numeric_limits<T>::quiet_NaN());
    agree(
        to_y,
        [&](auto q, auto& r) {
          host_kernels::edge_multiply(q, a, s, values.data(), x.view(), beta, r.view());
        },
        [&](auto& r) { reference::edge_multiply(a, s, values.data(), x.view(), beta, r.view()); });
    agree(
        to_x,
        [&](auto q, auto& r) {
          host_kernels::edge_multiply_transposed(q, a, s, values.data(), y.view(), beta, r.view());
        },
        [&](auto& r) { reference::edge_multiply_transposed(a, s, values.data(), y.view(), beta, r.view()); });
    agree(
        to_values,
        [&](auto q, auto& r) { host_kernels::edge_dot(q, a, s, y.view(), x.view(), beta, r.data()); },
        [&](auto& r) { reference::edge_dot(a, s, y.view(), x.view(), beta, r.data()); });
  }
}

/// Two tiles with columns [7, 7 + k) and [7 + k, 7 + 2k), then the way back to one of them.
template <class T>
void check_max(local_index m, local_index k, local_index f) {
  const pattern p(m, k);
  const csr_view<T> a = p.view<T>();
  block<T> x(k, f, 1), x2(k, f, 2, 0), dy(m, f, 3, 1), both(2 * m, f, 4), dx(k, f, 5);
  for (block<T>* tile : {&x, &x2})
    for (T& v : tile->values) v = std::floor(v * 8);
  std::vector<local_index> indices(static_cast<std::size_t>(m) * static_cast<std::size_t>(f));
  const matrix_view<local_index> arg{indices.data(), m, f, f};
  INFO("m ", m, " k ", k, " f ", f);
  const auto second_half = [&](auto& r) {
    for (local_index i = 0; i < m; ++i)
      for (local_index j = 0; j < f; ++j) r.view()(m + i, j) = static_cast<T>(arg(i, j));
  };
  agree(
      both,
      [&](auto q, auto& r) {
        const auto y = r.view().block(0, 0, m, f);
        host_kernels::max_aggregate(q, a, x.view(), 7, true, y, arg);
        host_kernels::max_aggregate(q, a, x2.view(), 7 + k, false, y, arg);
        host_kernels::finish_max(q, y, matrix_view<const local_index>(arg));
        second_half(r);
      },
      [&](auto& r) {
        const auto y = r.view().block(0, 0, m, f);
        reference::max_aggregate(a, x.view(), 7, true, y, arg);
        reference::max_aggregate(a, x2.view(), 7 + k, false, y, arg);
        reference::finish_max(y, matrix_view<const local_index>(arg));
        second_half(r);
      });
  agree(
      dx, [&](auto q, auto& r) { host_kernels::max_scatter(q, arg, dy.view(), 7 + k, r.view()); },
      [&](auto& r) { reference::max_scatter<T>(arg, dy.view(), 7 + k, r.view()); });
  std::vector<local_index> rows;
  for (local_index i = 0; i < m && k > 0; ++i) rows.push_back((i * 7) % k);
  const block<T> from(m, f, 6, 0);
  agree(
      dx, [&](auto q, auto& r) { host_kernels::scatter_add_rows(q, from.values.data(), rows, r.view()); },
      [&](auto& r) { reference::scatter_add_rows(from.values.data(), rows, r.view()); });
}

template <class T>
double inner(const std::vector<T>& a, const std::vector<T>& b) {
  double total = 0;
  for (std::size_t i = 0; i < a.size(); ++i) total += double{a[i]} * double{b[i]};
  return total;
}

/// Two heads of two columns; entries 1 and 2 are those of row 0 and entry 3 is that of row 2.
struct small_case {
  std::vector<local_index> offsets{1, 3, 3, 4}, columns{9, 0, 2, 1};
  csr_view<double> a{3, 3, offsets.data(), columns.data(), nullptr};
  std::vector<double> edges{-1, -1, 2, 3, 5, 7, 11, 13}, out{-1, -1, 0, 0, 0, 0, 0, 0};
  block<double> x{3, 2, {1, 2, 3, 4, 5, 6}}, y{3, 2, std::vector<double>(6, 100)};
};

using numbers = std::vector<double>;

}  // namespace test_support

// SPDX-License-Identifier: Apache-2.0
#pragma once
// What kernels of edges must do anywhere: the reference's results, adjoints, and the same bits again.
#include <doctest/doctest.h>

#include "reference/kernels.hpp"
#include "support/stage.hpp"

namespace test_support {

using partita::local::head_slice;

template <class T>
constexpr double tolerance = sizeof(T) == 4 ? 1e-4 : 1e-12;

/// An array of edges of a pattern, `heads` values an entry.
template <class T>
block<T> edge_block(const sparse_block<T>& a, local_index heads, std::uint64_t seed) {
  return block<T>(a.end(), heads, seed, 0);
}

/// Scores of a pattern, 20 times as far apart by sources as by targets, and their softmax.
template <class T>
struct scored {
  scored(const sparse_block<T>& pattern, local_index m, local_index k, local_index heads_of_each)
      : p(pattern), heads(heads_of_each), source(k, heads, 1), target(m, heads, 2), log_sum(m, heads, 6) {
    for (T& v : source.values) v *= 20;
    reference::edge_log_sum<T>(p.pattern(), heads, slope, source.view(), target.view(), log_sum.view());
  }
  const sparse_block<T>& p;
  local_index heads;
  T slope = T(0.2);
  block<T> source, target, log_sum;
};

/// The gradient with row sums of its own, of both sides and in place.
template <class T, class Device>
void check_fused_gradient(const sparse_block<T>& p, local_index m, local_index k, local_index heads) {
  const scored<T> given(p, m, k, heads);
  const block<T> u = edge_block(p, heads, 4);
  INFO("m ", m, " k ", k, " heads ", heads);
  for (const T beta : {T{0}, T(-0.75)}) {
    block<T> both(k + m, heads, 8);
    if (beta == 0) both.poison();
    const auto dsource = [=](auto& y) { return y.view().block(0, 0, k, heads); };
    const auto dtarget = [=](auto& y) { return y.view().block(k, 0, m, heads); };
    const auto compute = [&](auto& at, auto* g, auto& y) {
      const partita::local::csr_view<T> staged = at.pattern(p);
      edge_softmax_gradient_of_rows(at.queue, staged, inverse_of(at.queue, staged), heads, given.slope,
                                    at(given.source), at(given.target), at(given.log_sum), beta, g,
                                    dsource(y), dtarget(y));
    };
    const auto expect = [&](T* g, block<T>& y) {
      reference::edge_softmax_gradient_of_rows<T>(p.pattern(), heads, given.slope, given.source.view(),
                                                  given.target.view(), given.log_sum.view(), beta, g,
                                                  dsource(y), dtarget(y));
    };
    agree_with<Device>(
        both, tolerance<T>,
        [&](auto& at, auto& y) {
          staged_block<T, Device> g(at.queue, u);
          compute(at, g.data(), y);
        },
        [&](auto& y) {
          block<T> g = u;
          expect(g.data(), y);
        });
    agree_with<Device>(
        u, tolerance<T>,
        [&](auto& at, auto& g) {
          staged_block<T, Device> y(at.queue, both);
          compute(at, g.data(), y);
        },
        [&](auto& g) {
          block<T> y = both;
          expect(g.data(), y);
        });
  }
}

template <class T, class Device>
void check_scores(local_index m, local_index k, local_index heads) {
  const sparse_block<T> p(m, k);
  const partita::local::csr_view<T> a = p.pattern();
  const T slope = T(0.2);
  block<T> source(k, heads, 1), log_sum(m, heads, 6);
  for (T& v : source.values) v *= 20;
  const block<T> target(m, heads, 2), row_dot(m, heads, 7), sums(m, heads, 5);
  const block<T> edges = edge_block(p, heads, 3), u = edge_block(p, heads, 4);
  const auto s = std::as_const(source).view(), t = target.view();
  reference::edge_log_sum(a, heads, slope, s, t, log_sum.view());
  INFO("m ", m, " k ", k, " heads ", heads);
  const auto check = [&](const block<T>& y, auto kernel, auto expect) {
    agree_with<Device>(y, tolerance<T>, kernel, expect);
  };
  check(
      sums,
      [&](auto& at, auto& y) {
        edge_log_sum(at.queue, at.pattern(p), heads, slope, at(source), at(target), y.view());
      },
      [&](auto& y) { reference::edge_log_sum(a, heads, slope, s, t, y.view()); });
  check(
      edges,
      [&](auto& at, auto& y) {
        edge_softmax(at.queue, at.pattern(p), heads, slope, at(source), at(target), at(log_sum), y.data());
      },
      [&](auto& y) { reference::edge_softmax(a, heads, slope, s, t, log_sum.view(), y.data()); });
  check(
      sums,
      [&](auto& at, auto& y) {
        edge_row_dot(at.queue, at.pattern(p), heads, at(u.values), at(edges.values), y.view());
      },
      [&](auto& y) { reference::edge_row_dot(a, heads, u.data(), edges.data(), y.view()); });
  for (const T beta : {T{0}, T{1}, T(-0.75)}) {
    block<T> both(k + m, heads, 8);
    if (beta == 0) both.poison();
    const auto dsource = [=](auto& y) { return y.view().block(0, 0, k, heads); };
    const auto dtarget = [=](auto& y) { return y.view().block(k, 0, m, heads); };
    check(
        both,
        [&](auto& at, auto& y) {
          const partita::local::csr_view<T> staged = at.pattern(p);
          staged_block<T, Device> g(at.queue, u);
          edge_softmax_gradient(at.queue, staged, inverse_of(at.queue, staged), heads, slope, at(source),
                                at(target), at(log_sum), at(row_dot), beta, g.data(), dsource(y), dtarget(y));
        },
        [&](auto& y) {
          block<T> g = u;
          reference::edge_softmax_gradient(a, heads, slope, s, t, log_sum.view(), row_dot.view(), beta,
                                           g.data(), dsource(y), dtarget(y));
        });
    check(
        u,
        [&](auto& at, auto& g) {
          const partita::local::csr_view<T> staged = at.pattern(p);
          staged_block<T, Device> y(at.queue, both);
          edge_softmax_gradient(at.queue, staged, inverse_of(at.queue, staged), heads, slope, at(source),
                                at(target), at(log_sum), at(row_dot), beta, g.data(), dsource(y), dtarget(y));
        },
        [&](auto& g) {
          block<T> y = both;
          reference::edge_softmax_gradient(a, heads, slope, s, t, log_sum.view(), row_dot.view(), beta,
                                           g.data(), dsource(y), dtarget(y));
        });
  }
}

struct by_place {
  template <class T>
  constexpr T operator()(local_index i, local_index c, local_index h, T value) const {
    return value * static_cast<T>((i + 3 * c + 5 * h) % 4);
  }
};
template <class T>
struct smaller_of {
  constexpr T operator()(T a, T b) const { return b < a ? b : a; }
};

template <class T, class Device>
void check_maps(local_index m, local_index k, local_index heads) {
  const sparse_block<T> p(m, k);
  const partita::local::csr_view<T> a = p.pattern();
  const block<T> edges = edge_block(p, heads, 3), u = edge_block(p, heads, 4), v = edge_block(p, heads, 5);
  const by_place f{};
  INFO("m ", m, " k ", k, " heads ", heads);
  const auto check = [&](const block<T>& y, auto kernel, auto expect) {
    agree_with<Device>(y, tolerance<T>, kernel, expect);
  };
  check(
      edges,
      [&](auto& at, auto& y) { edge_apply(at.queue, at.pattern(p), heads, f, at(u.values), y.data()); },
      [&](auto& y) { reference::edge_apply(a, heads, f, u.data(), y.data()); });
  check(
      u, [&](auto& at, auto& y) { edge_apply(at.queue, at.pattern(p), heads, f, y.data(), y.data()); },
      [&](auto& y) { reference::edge_apply(a, heads, f, u.data(), y.data()); });
  const auto folds = [&](auto function) {
    check(
        block<T>(m, heads, 6),
        [&](auto& at, auto& y) {
          edge_row_fold(at.queue, at.pattern(p), heads, function, at(u.values), y.view());
        },
        [&](auto& y) { reference::edge_row_fold(a, heads, function, u.data(), y.view()); });
  };
  folds(std::plus<T>{});
  folds(smaller_of<T>{});
}

/// Columns [s.first_col, s.first_col + f) of x and y.
template <class T>
struct weight_of_entry {
  constexpr T operator()(local_index i, local_index e, local_index h) const {
    return static_cast<T>((7 * i + 3 * e + 5 * h) % 11 - 5) / 4;
  }
};

template <class T, class Device>
void check_products(local_index m, local_index k, partita::local::head_slice s, local_index f,
                    placing place = {}) {
  const sparse_block<T> p(m, k);
  const partita::local::csr_view<T> a = p.pattern();
  const block<T> x(k, f, 1, place), y(m, f, 2, placing{place.gap == 3 ? 1 : place.gap, place.lead});
  const block<T> values = edge_block(p, s.heads, 3);
  INFO("m ", m, " k ", k, " heads ", s.heads, " of ", s.head_width, " from ", s.first_col);
  for (const T beta : {T{0}, T{1}, T(-0.75)}) {
    INFO("f ", f, " beta ", beta);
    block<T> to_x = x, to_y = y, to_values = values;
    if (beta == 0)
      for (block<T>* out : {&to_x, &to_y}) out->poison();
    if (beta == 0 && p.end() > 2)
      std::fill(to_values.values.begin() + 2 * s.heads, to_values.values.end(),
                std::numeric_limits<T>::quiet_NaN());
    const auto check = [&](const block<T>& to, auto kernel, auto expect) {
      agree_with<Device>(to, tolerance<T>, kernel, expect);
    };
    check(
        to_y,
        [&](auto& at, auto& r) {
          edge_multiply(at.queue, at.pattern(p), s, at(values.values), at(x), beta, r.view());
        },
        [&](auto& r) { reference::edge_multiply(a, s, values.data(), x.view(), beta, r.view()); });
    const weight_of_entry<T> weight{};
    check(
        to_y,
        [&](auto& at, auto& r) {
          T* const weights = at.template room<T>(values.values.size());
          edge_apply_multiply(at.queue, at.pattern(p), s, weight, weights, at(x), beta, r.view());
        },
        [&](auto& r) {
          std::vector<T> weights(values.values.size());
          reference::edge_apply_multiply(a, s, weight, weights.data(), x.view(), beta, r.view());
        });
    check(
        values,
        [&](auto& at, auto& r) {
          T* const product = at.template room<T>(static_cast<std::size_t>(m) * static_cast<std::size_t>(f));
          edge_apply_multiply(at.queue, at.pattern(p), s, weight, r.data(), at(x), T{0},
                              matrix_view<T>{product, m, f, f});
        },
        [&](auto& r) {
          std::vector<T> product(static_cast<std::size_t>(m) * static_cast<std::size_t>(f));
          reference::edge_apply_multiply(a, s, weight, r.data(), x.view(), T{0},
                                         matrix_view<T>{product.data(), m, f, f});
        });
    check(
        to_x,
        [&](auto& at, auto& r) {
          edge_multiply_transposed(at.queue, inverse_of(at.queue, at.pattern(p)), s, at(values.values), at(y),
                                   beta, r.view());
        },
        [&](auto& r) { reference::edge_multiply_transposed(a, s, values.data(), y.view(), beta, r.view()); });
    check(
        to_values,
        [&](auto& at, auto& r) { edge_dot(at.queue, at.pattern(p), s, at(y), at(x), beta, r.data()); },
        [&](auto& r) { reference::edge_dot(a, s, y.view(), x.view(), beta, r.data()); });
  }
}

/// The indices that max_aggregate writes, beside its values: a block of `m` rows at the place, read as
/// numbers.
template <class T, class Device>
class staged_indices {
 public:
  staged_indices(stage<Device>& at, local_index m, local_index f)
      : view{at.template room<local_index>(static_cast<std::size_t>(m) * static_cast<std::size_t>(f)), m, f,
             f} {}

  /// Writes the indices as numbers to `to`, (m, f) as well.
  void put(stage<Device>& at, matrix_view<T> to) const {
    std::vector<local_index> indices(static_cast<std::size_t>(view.rows) *
                                     static_cast<std::size_t>(view.cols));
    copy(at.queue, std::span<const local_index>(view.data, indices.size()), std::span<local_index>(indices));
    const std::vector<T> numbers(indices.begin(), indices.end());
    unpack(at.queue, at(numbers), to);
  }

  matrix_view<local_index> view;
};

/// The largest neighbours, and the way back to them.
template <class T, class Device>
void check_max(local_index m, local_index k, local_index f, placing place = {}) {
  const sparse_block<T> p(m, k);
  const partita::local::csr_view<T> a = p.pattern();
  block<T> x(k, f, 1, place);
  for (T& v : x.values) v = std::floor(v * 8);
  const block<T> dy(m, f, 3, 1), both(2 * m, f, 4, place), dx(k, f, 5, place);
  std::vector<local_index> indices(static_cast<std::size_t>(m) * static_cast<std::size_t>(f));
  const matrix_view<local_index> arg{indices.data(), m, f, f};
  INFO("m ", m, " k ", k, " f ", f);
  const auto check = [&](const block<T>& y, auto kernel, auto expect) {
    agree_with<Device>(y, tolerance<T>, kernel, expect);
  };
  check(
      both,
      [&](auto& at, auto& r) {
        const staged_indices<T, Device> where(at, m, f);
        max_aggregate(at.queue, at.pattern(p), at(x), r.view().block(0, 0, m, f), where.view);
        where.put(at, r.view().block(m, 0, m, f));
      },
      [&](auto& r) {
        reference::max_aggregate(a, x.view(), r.view().block(0, 0, m, f), arg);
        for (local_index i = 0; i < m; ++i)
          for (local_index j = 0; j < f; ++j) r.view()(m + i, j) = static_cast<T>(arg(i, j));
      });
  check(
      dx,
      [&](auto& at, auto& r) {
        max_scatter(at.queue, max_scatter_pattern(at.queue, at.pattern(p)), {at(indices), m, f, f}, at(dy),
                    r.view());
      },
      [&](auto& r) { reference::max_scatter<T>(a, arg, dy.view(), r.view()); });
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
  partita::local::csr_view<double> a{3, 3, offsets.data(), columns.data(), nullptr};
  std::vector<double> edges{-1, -1, 2, 3, 5, 7, 11, 13}, out{-1, -1, 0, 0, 0, 0, 0, 0};
  block<double> x{3, 2, {1, 2, 3, 4, 5, 6}}, y{3, 2, std::vector<double>(6, 100)};
};

using numbers = std::vector<double>;

}  // namespace test_support

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products with softmax coefficients that are computed from scores on the way.
#include <array>

#include "partita/algebra/edge_scores.hpp"
#include "support/edges.hpp"

namespace test_support {

/// The coefficients of the rows of p, or of its columns if transposed, as a policy's tile has them: the heads
/// from the second on of one more, vertices from 5 and from 3 on, with or without dropout.
template <class T>
partita::algebra::detail::edge_coefficient<T> some_coefficients(partita::matrix_view<const T> source,
                                                                partita::matrix_view<const T> target,
                                                                partita::matrix_view<const T> log_sum,
                                                                const local_index* columns, double dropout,
                                                                bool averaged, bool transposed) {
  const partita::dropout_mask mask{dropout, {1, 2, 3}};
  return {.source = source,
          .target = target,
          .log_sum = log_sum,
          .first_source = 5,
          .first_target = 3,
          .first_head = 1,
          .heads = source.cols + 1,
          .columns = columns,
          .slope = T(0.2),
          .keep = mask.function<T>(),
          .drops = dropout > 0,
          .averaged = averaged,
          .transposed = transposed};
}

/// y = beta y + E x and E for the coefficients E, which fit the numbers of the reference. `renumbered`: the
/// columns of x have other numbers than those of the scores.
template <class T, class Device>
void check_coefficients(local_index m, local_index k, head_slice s, double dropout, bool averaged,
                        bool transposed, bool renumbered) {
  INFO("m ", m, " k ", k, " heads ", s.heads, " of ", s.head_width, " dropout ", dropout, " averaged ",
       averaged, " transposed ", transposed, " renumbered ", renumbered);
  const local_index f = s.heads * s.head_width, scores = averaged ? 3 : s.heads;
  const sparse_block<T> p(m, k);
  const block<T> x(k, f, 1), y(m, f, 2), source(transposed ? m : k, scores, 3),
      target(transposed ? k : m, scores, 4), log_sum(transposed ? k : m, scores, 5);
  const block<T> values = edge_block(p, s.heads, 6);
  const auto of = [&](auto&& at, const local_index* columns) {
    return some_coefficients<T>(at(source), at(target), at(log_sum), columns, dropout, averaged, transposed);
  };
  const auto here = [](const block<T>& b) { return b.view(); };
  std::vector<local_index> other = p.columns;
  for (local_index& column : other)
    if (column >= 0 && column < k) column = k - 1 - column;
  const auto of_scores = [&](auto& at, const auto& a) {
    return renumbered ? at(other) + p.columns_lead : a.columns;
  };
  const local_index* const on_host = renumbered ? other.data() + p.columns_lead : p.pattern().columns;
  for (const T beta : {T{0}, T(-0.75)})
    agree_with<Device>(
        y, tolerance<T>,
        [&](auto& at, auto& r) {
          const auto a = at.pattern(p);
          T* const weights = at.template room<T>(values.values.size());
          edge_apply_multiply(at.queue, a, s, of(at, of_scores(at, a)), weights, at(x), beta, r.view());
        },
        [&](auto& r) {
          std::vector<T> weights(values.values.size());
          reference::edge_apply_multiply(p.pattern(), s, of(here, on_host), weights.data(), x.view(), beta,
                                         r.view());
        });
  agree_with<Device>(
      values, tolerance<T>,
      [&](auto& at, auto& r) {
        const auto a = at.pattern(p);
        T* const product = at.template room<T>(y.values.size());
        edge_apply_multiply(at.queue, a, s, of(at, of_scores(at, a)), r.data(), at(x), T{0},
                            partita::matrix_view<T>{product, m, f, f});
      },
      [&](auto& r) {
        std::vector<T> product(y.values.size());
        reference::edge_apply_multiply(p.pattern(), s, of(here, on_host), r.data(), x.view(), T{0},
                                       partita::matrix_view<T>{product.data(), m, f, f});
      });
}

/// Scores, x and dy of an attention, on the host or staged.
template <class T>
struct attention_case {
  attention_case(const sparse_block<T>& pattern, local_index m, local_index k, head_slice slice, double p)
      : a(pattern),
        s(slice),
        dropout(p),
        scores(pattern, m, k, slice.heads),
        x(k, slice.heads * slice.head_width, 7, 0),
        dy(m, slice.heads * slice.head_width, 8, 0) {
    for (partita::global_index v = 0; v < m + k + 5; ++v) names.push_back(3 * v % 1000);
  }

  auto coefficients(auto&& at, const partita::global_index* named, const local_index* columns,
                    bool transposed) const {
    auto f = some_coefficients<T>(at(scores.source), at(scores.target), at(scores.log_sum), columns, dropout,
                                  false, transposed);
    f.keep.vertices = named;
    return f;
  }

  const sparse_block<T>& a;
  head_slice s;
  double dropout;
  scored<T> scores;
  block<T> x, dy;
  std::vector<partita::global_index> names;
};

/// (y | dtarget) over (dx | dsource), by the definitions.
template <class T>
void attention_by_definition(const attention_case<T>& c, bool named, const matrix_view<T>& y,
                             const matrix_view<T>& dtarget, const matrix_view<T>& dx,
                             const matrix_view<T>& dsource) {
  const auto a = c.a.pattern();
  const auto here = [](const block<T>& b) { return b.view(); };
  const auto f = c.coefficients(here, named ? c.names.data() : nullptr, a.columns, false);
  block<T> w = edge_block(c.a, c.s.heads, 1), d = w;
  reference::edge_apply_multiply(a, c.s, f, w.data(), c.x.view(), T(0), y);
  reference::edge_multiply_transposed(a, c.s, w.data(), c.dy.view(), T(0), dx);
  reference::edge_dot(a, c.s, c.dy.view(), c.x.view(), T(0), d.data());
  reference::for_edges(a, c.s.heads, [&](local_index i, local_index e, local_index h) {
    T& of_entry = d.data()[reference::edge_at(e, c.s.heads, h)];
    of_entry = f.after_dropout(i, a.columns[e], h, of_entry);
  });
  reference::edge_softmax_gradient_of_rows<T>(a, c.s.heads, c.scores.slope, c.scores.source.view(),
                                              c.scores.target.view(), c.scores.log_sum.view(), T(0), d.data(),
                                              dsource, dtarget);
}

/// An attention and its gradients by the kernels that have no numbers of entries. `gap`: columns between its
/// results, which begin at 16 bytes or not.
template <class T, class Device>
void check_attention(local_index m, local_index k, head_slice s, double dropout, bool named,
                     local_index gap) {
  INFO("m ", m, " k ", k, " heads ", s.heads, " of ", s.head_width, " dropout ", dropout, " named ", named);
  const sparse_block<T> p(m, k);
  const attention_case<T> c(p, m, k, s, dropout);
  const local_index f = s.heads * s.head_width, stride = (f + 3) / 4 * 4;
  const local_index entries = p.offsets.back() - p.offsets.front();
  const auto parts = [&](const matrix_view<T>& all, auto then) {
    then(all.block(0, 0, m, f), all.block(0, f, m, s.heads), all.block(m, 0, k, f),
         all.block(m, f, k, s.heads));
  };
  const auto compute = [&](auto& at, auto& r) {
    auto a = at.pattern(p);
    a.entries = entries;
    const auto inverse = inverse_of(at.queue, a);
    auto transposed = partita::local::csr_inverse_view(inverse).template transposed<T>();
    const auto* const names = named ? at(c.names) : nullptr;
    const auto room = [&](local_index cols) {
      return matrix_view<T>{at.template room<T>(static_cast<std::size_t>(m) * static_cast<std::size_t>(cols)),
                            m, cols, cols};
    };
    const partita::local::attention_sums<T> sums{room(stride), room(stride), room(s.heads)};
    T* const numbers = room(4 * s.heads).data;
    const auto x = at(c.x), dy = at(c.dy);
    parts(r.view(), [&](auto y, auto dtarget, auto dx, auto dsource) {
      attention_forward(at.queue, a, s, c.coefficients(at, names, a.columns, false), x, y, sums);
      const auto of_y = attention_targets(at.queue, s, at(c.scores.target), at(c.scores.log_sum), dy, sums,
                                          dtarget, numbers);
      attention_sources(at.queue, transposed, s, c.coefficients(at, names, transposed.columns, true), numbers,
                        x, of_y, dx, dsource);
    });
  };
  agree_with<Device>(block<T>(m + k, f + s.heads, 9, gap), 10 * tolerance<T>, compute, [&](auto& r) {
    parts(r.view(), [&](auto... of) { attention_by_definition(c, named, of...); });
  });
}

template <class T, class Device>
void attention_without_numbers_of_entries() {
  for (const auto& [m, k] : std::vector<std::array<local_index, 2>>{{1, 1}, {23, 19}, {2, 300}, {97, 200}})
    for (const head_slice s :
         {head_slice{8, 8}, {1, 48}, {1, 47}, {3, 5}, {2, 130}, {40, 4}, {1, 301}, {9, 1}})
      check_attention<T, Device>(m, k, s, m == 23 ? 0.0 : 0.6, m == 2, s.head_width == 48 ? 3 : 0);
}

template <class T, class Device>
void products_with_coefficients_of_scores() {
  for (const auto& [m, k] :
       std::vector<std::array<local_index, 2>>{{4, 0}, {1, 1}, {23, 19}, {2, 300}, {97, 200}})
    for (const head_slice s : {head_slice{8, 8}, {1, 48}, {1, 47}, {3, 5}, {2, 130}})
      for (const double dropout : {0.0, 0.6})
        for (const bool transposed : {false, true}) {
          for (const bool renumbered : {false, true})
            check_coefficients<T, Device>(m, k, s, dropout, false, transposed, renumbered);
          if (s.heads == 1) check_coefficients<T, Device>(m, k, s, dropout, true, transposed, false);
        }
}

}  // namespace test_support

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
  const sparse<T> p(m, k);
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

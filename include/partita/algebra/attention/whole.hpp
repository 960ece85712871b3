// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Attention on one rank, on devices whose kernels compute its gradients without storing values of edges.

#include "partita/algebra/attention/cost.hpp"
#include "partita/algebra/edge_scores.hpp"
#include "partita/algebra/reproducible_verbs.hpp"
#include "partita/local/chunked.hpp"

namespace partita::algebra::detail {

/// Whether the device has such kernels.
template <class T, class Device>
inline constexpr bool has_whole_attention = requires(const device_queue<Device>& q,
                                                     const local::csr_view<T>& a,
                                                     const edge_coefficient<T>& f, matrix_view<const T> x,
                                                     matrix_view<T> y, local::attention_sums<T> sums) {
  attention_forward(q, a, local::head_slice(), f, x, y, sums);
};

/// attention of one hop and heads side by side, on one rank: coefficients are computed from the scores of
/// both ends wherever they are used. Instead of E x heads numbers it keeps two per row and column of X, and
/// five per row and head.
///
/// y_v = sum over u of w_uv x_u, w alpha after dropout; s_v = dy_v . y_v; with leaky' the slope at s_u + t_v:
/// dt_v = dy_v . (sum over u of w leaky' x_u) - s_v sum over u of alpha leaky',
/// ds_u = (sum over v of w leaky' dy_v) . x_u - sum over v of alpha leaky' s_v, by heads.
template <class T, class Device>
class whole_attention final : public attention_way<T, Device> {
 public:
  using typename attention_way<T, Device>::matrix;

  /// Whether it can compute this attention.
  static bool serves(const sparse<T, dynamic_layout, Device>& a, const attention_shape& shape) {
    return has_whole_attention<T, Device> && a.mesh().size() == 1 && shape.hops == 1 && !shape.averaged &&
           local::runs_whole(a.mesh().queue());
  }

  whole_attention(const sparse<T, dynamic_layout, Device>& a, const transfer::in_edges<T, Device>& rows,
                  const attention_shape& shape)
      : a_(a.stored_for("attention")),
        transposed_(transposed(a).stored_for("attention")),
        slice_{shape.heads, shape.width, 0},
        scores_(a, rows, shape.scores()),
        passes_(a.analysed()->inverses()),
        transposed_passes_(transposed_.analysed()->inverses()) {
    const auto numbers = [&](local_index of_row) {
      return buffer<T, Device>(a.mesh().queue(),
                               static_cast<std::size_t>(a.shape().rows) * static_cast<std::size_t>(of_row));
    };
    y_ = numbers(stride()), bent_ = numbers(stride());
    terms_ = numbers(shape.heads), targets_ = numbers(4 * shape.heads);
  }

  void forward(const matrix& x, const matrix& scores, matrix& y, const dropout_mask& mask) override {
    scores_.forward(scores, mask);
    const local::attention_sums<T> sums = kept();
    std::size_t number = 0;
    for (const local::csr_slice<T>& part : a_.local()->parts(0))
      passes_(
          queue(), number++, part.entries, {.what = "attention"},
          [&](const local::edge_chunk<T>& c, matrix_view<const T> from, matrix_view<T> to) {
            attention_forward(
                queue(), c.pattern, slice_, scores_.coefficient(a_, heads(), 0, part, false), from, to,
                {part.rows_of(sums.y), part.rows_of(sums.bent), part.rows_of(sums.terms)});  // (n, w)
          },
          local::gathers(x.local()), local::writes(part.rows_of(y.local())));
  }

  /// To be called once after a forward.
  void backward(const matrix& x, const matrix& dy, matrix& dx, matrix& dscores) override {
    scores_.transpose();
    const auto rows = static_cast<local_index>(a_.shape().rows);
    const interval targets{0, rows};
    const matrix_view<T> of_sources = dscores.local().block(0, 0, dscores.local().rows, slice_.heads),
                         of_targets =
                             dscores.local().block(0, slice_.heads, dscores.local().rows, slice_.heads);
    const matrix_view<const T> of_y =
        attention_targets(queue(), slice_, scores_.targets(targets), scores_.log_sums(targets), dy.local(),
                          kept(), of_targets.block(0, 0, rows, slice_.heads), targets_.data());  // (n, heads)
    if (const local_index others = of_targets.rows - rows; others > 0)
      local::chunked::fill(queue(), T(0), of_targets.block(rows, 0, others, slice_.heads));
    std::size_t number = 0;
    for (const local::csr_slice<T>& part : transposed_.local()->parts(0))
      transposed_passes_(
          queue(), number++, part.entries, {.what = "attention gradient"},
          [&](const local::edge_chunk<T>& c, matrix_view<const T> from, matrix_view<T> to) {
            attention_sources(queue(), c.pattern, slice_,
                              scores_.coefficient(transposed_, heads(), 0, part, true), targets_.data(),
                              part.rows_of(x.local()), from, to,
                              part.rows_of(of_sources));  // (n, w)
          },
          local::gathers(of_y), local::writes(part.rows_of(dx.local())));
  }

  coefficient_gradient form() const override { return coefficient_gradient::rows; }
  traffic predicted() const override { return scores_.predicted(); }
  traffic predicted_forward() const override { return scores_.predicted_forward(); }
  global_index coefficients() const override {
    return 2 * static_cast<global_index>(a_.local()->nonzeros) * slice_.heads;
  }

 private:
  const device_queue<Device>& queue() const { return a_.mesh().queue(); }
  interval heads() const { return {0, slice_.heads}; }
  /// Rows of whole packs of four.
  local_index stride() const { return (slice_.heads * slice_.head_width + 3) / 4 * 4; }
  local::attention_sums<T> kept() {
    const auto view = [&](buffer<T, Device>& numbers, local_index cols) {
      return matrix_view<T>{numbers.data(), static_cast<local_index>(a_.shape().rows), cols, cols};
    };
    return {view(y_, stride()), view(bent_, stride()), view(terms_, slice_.heads)};
  }

  sparse<T, dynamic_layout, Device> a_, transposed_;
  local::head_slice slice_;
  edge_scores<T, Device> scores_;
  local::entry_passes<Device> passes_, transposed_passes_;
  buffer<T, Device> y_, bent_, terms_;  ///< of forward; y_ later a copy of dy
  buffer<T, Device> targets_;           ///< what targets have for sources
};

}  // namespace partita::algebra::detail

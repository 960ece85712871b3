// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Attention over the in-edges of every vertex, under any policy, without materialising edges x features.

#include <variant>

#include "partita/algebra/ordered_attention.hpp"
#include "partita/nn/owners_attention.hpp"
#include "partita/nn/tiled_attention.hpp"

namespace partita::nn {

namespace detail {

/// The ways to compute an attention on a device.
template <class T, class Device>
struct attention_ways {
  using type = std::variant<tiled_attention<T, Device>, owners_attention<T, Device>>;
};
template <class T, class Device>
requires local::sums_exactly<Device>
struct attention_ways<T, Device> {
  using type =
      std::variant<tiled_attention<T, Device>, owners_attention<T, Device>, ordered_attention<T, Device>>;
};

/// Whether several ranks have the same block of A and columns of the same head.
template <class T, class Device>
bool shares_heads(const sparse<T, dynamic_layout, Device>& a, const attention_shape& shape,
                  const blocking& features) {
  const layout l = multiplied_layout(a, vertex_rows);
  const axis_set sharing = l.cols - a.layout().cols;
  global_index heads = 0;
  for (int k = 0; k < a.mesh().shape().size(sharing); ++k)
    heads +=
        local::heads_of(
            features.block(sharing, partition::group_member(a.mesh().shape(), sharing, a.mesh().at(), k)),
            shape.width)
            .size();
  return heads > shape.values_of_edge();
}

/// The words that the busiest rank receives, and the coefficients that it computes.
template <class Way, class Device>
global_index cost_of(const Way& way, const mesh<Device>& m) {
  return m.world().all_reduce(way.predicted().words + way.coefficients(), reduction::max);
}

}  // namespace detail

/// Y = Z_K, Z_k(v, j) = sum over u->v of alpha_uv Z_(k-1)(u, j), Z_0 = X (all n x w); alpha as in
/// edge_scores: that of column j's head if heads are side by side (w = heads*width), or the mean over the
/// heads (w = width). Gradient: d alpha_uv = sum over k and the head's columns of dZ_k(v, j) Z_(k-1)(u, j).
///
/// Collective over the mesh: constructor and members. What travels, forward: X to the policy's layout and Y
/// back, K products with A stationary, and the scalars; coefficients are recomputed where they are used, in
/// the pass of the first product. Backward: dY and dX likewise, K transposed products, scalars, and for d
/// alpha what coefficient_gradient selects; for its `owners` see there. On a reproducible mesh the policy
/// only determines which rank owns which vertices: see ordered_attention. Sources: Velickovic et al. (ICLR
/// 2018), eq. 3 and 4; several hops with the same coefficients: NeutronTP (VLDB 2025), section 4.1, here with
/// their exact gradient.
template <class T, class Device>
class attention {
 public:
  using matrix = dense<T, vertex_rows, Device>;

  /// `a`: the pattern in the policy's layout. On a reproducible mesh `options` and `form` are not used.
  /// Throws error for coefficient_gradient::rows with more than one hop.
  attention(const sparse<T, dynamic_layout, Device>& a, const attention_shape& shape,
            spmm_options options = {}, coefficient_gradient form = coefficient_gradient::automatic)
      : features_(blocking::even(shape.columns(), a.mesh().shape(), nesting::cols)),
        way_(way_of(a, in_edges<T, Device>(a), shape, options, form)) {}

  /// y from x (both n/P x w) and the scalars (n/P x 2 heads).
  void forward(const matrix& x, const matrix& scores, matrix& y, const dropout_mask& mask = {}) {
    std::visit([&](auto& way) { way.forward(x, scores, y, mask); }, way_);
  }
  /// dx and the gradient of the scalars, from dy and the x of the last forward.
  void backward(const matrix& x, const matrix& dy, matrix& dx, matrix& dscores) {
    std::visit([&](auto& way) { way.backward(x, dy, dx, dscores); }, way_);
  }

  const blocking& features() const { return features_; }
  /// The form in effect for the gradient of the coefficients, with `automatic` resolved; on a reproducible
  /// mesh `rows`.
  coefficient_gradient form() const {
    return std::visit(
        [](const auto& way) {
          if constexpr (requires { way.form(); })
            return way.form();
          else
            return coefficient_gradient::rows;
        },
        way_);
  }

  /// What this rank receives in one forward and one backward, in closed form.
  traffic predicted() const {
    return std::visit([](const auto& way) { return way.predicted(); }, way_);
  }
  /// In one forward.
  traffic predicted_forward() const {
    return std::visit([](const auto& way) { return way.predicted_forward(); }, way_);
  }
  /// The coefficients that this rank computes for products in one forward and one backward.
  global_index coefficients() const {
    return std::visit([](const auto& way) { return way.coefficients(); }, way_);
  }

 private:
  using ways = typename detail::attention_ways<T, Device>::type;

  static ways way_of(const sparse<T, dynamic_layout, Device>& a, const in_edges<T, Device>& rows,
                     const attention_shape& shape, spmm_options options, coefficient_gradient form) {
    if constexpr (local::sums_exactly<Device>)
      if (a.mesh().reproducible())
        return ways(std::in_place_type<ordered_attention<T, Device>>, a, rows, shape.scores(), shape.width,
                    shape.hops);
    const bool is_block = !(a.row_blocking() == a.col_blocking());  // of sampled neighbours, on one rank
    if (is_block && form == coefficient_gradient::owners) form = coefficient_gradient::automatic;
    if (form == coefficient_gradient::owners ||
        (form == coefficient_gradient::automatic && owners_have_less(a, rows, shape, options)))
      return ways(std::in_place_type<detail::owners_attention<T, Device>>, a, rows, shape, options);
    return ways(std::in_place_type<detail::tiled_attention<T, Device>>, a, rows, shape, options, form);
  }
  static bool owners_have_less(const sparse<T, dynamic_layout, Device>& a, const in_edges<T, Device>& rows,
                               const attention_shape& shape, spmm_options options) {
    const mesh<Device>& m = a.mesh();
    if (!detail::shares_heads(a, shape, blocking::even(shape.columns(), m.shape(), nesting::cols)))
      return false;
    const global_index in_layout = detail::cost_of(
        detail::tiled_attention<T, Device>(a, rows, shape, options, coefficient_gradient::automatic), m);
    return detail::cost_of(detail::owners_attention<T, Device>(a, rows, shape, options), m) < in_layout;
  }

  blocking features_;
  ways way_;
};

}  // namespace partita::nn

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Attention over the in-edges of every vertex, under any policy, without materialising edges x features.

#include <memory>

#include "partita/algebra/attention/owners.hpp"
#include "partita/algebra/attention/tiled.hpp"
#include "partita/algebra/reproducible_verbs.hpp"

namespace partita::algebra {

namespace detail {

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

/// The way of an attention on a device. Where either of two could be less for the busiest rank, in words that
/// it receives and coefficients that it computes, one after the other is planned, and asked.
template <class T, class Device>
std::unique_ptr<attention_way<T, Device>> make_attention_way(const sparse<T, dynamic_layout, Device>& a,
                                                             const attention_shape& shape,
                                                             const spmm_options& options,
                                                             coefficient_gradient form) {
  using way = std::unique_ptr<attention_way<T, Device>>;
  const mesh<Device>& m = a.mesh();
  if (const auto* const verbs = reproducible_verbs_of<T>(m))
    return verbs->make_attention(a, shape.scores(), shape.width, shape.hops);
  const transfer::in_edges<T, Device> rows(a);
  const bool is_block = !(a.row_blocking() == a.col_blocking());  // of sampled neighbours, on one rank
  if (is_block && form == coefficient_gradient::owners) form = coefficient_gradient::automatic;
  const auto tiled = [&]() -> way {
    return std::make_unique<tiled_attention<T, Device>>(a, rows, shape, options, form);
  };
  const auto of_owners = [&]() -> way {
    return std::make_unique<owners_attention<T, Device>>(a, rows, shape, options);
  };
  if (form == coefficient_gradient::owners) return of_owners();
  const blocking features = blocking::even(shape.columns(), m.shape(), nesting::cols);
  if (form != coefficient_gradient::automatic || !shares_heads(a, shape, features)) return tiled();
  const auto cost_of = [&](const way& w) {
    return m.world().all_reduce(w->predicted().words + w->coefficients(), reduction::max);
  };
  const global_index in_layout = cost_of(tiled());
  way owners = of_owners();
  if (cost_of(owners) < in_layout) return owners;
  owners.reset();
  return tiled();
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
            spmm_options options = {}, coefficient_gradient form = coefficient_gradient::automatic);

  /// y from x (both n/P x w) and the scalars (n/P x 2 heads).
  void forward(const matrix& x, const matrix& scores, matrix& y, const dropout_mask& mask = {}) {
    way_->forward(x, scores, y, mask);
  }
  /// dx and the gradient of the scalars, from dy and the x of the last forward.
  void backward(const matrix& x, const matrix& dy, matrix& dx, matrix& dscores) {
    way_->backward(x, dy, dx, dscores);
  }

  const blocking& features() const { return features_; }
  /// The form in effect for the gradient of the coefficients, with `automatic` resolved; on a reproducible
  /// mesh `rows`.
  coefficient_gradient form() const { return way_->form(); }
  /// What this rank receives in one forward and one backward, in closed form.
  traffic predicted() const { return way_->predicted(); }
  /// In one forward.
  traffic predicted_forward() const { return way_->predicted_forward(); }
  /// The coefficients that this rank computes for products in one forward and one backward.
  global_index coefficients() const { return way_->coefficients(); }

 private:
  blocking features_;
  std::unique_ptr<attention_way<T, Device>> way_;
};

template <class T, class Device>
attention<T, Device>::attention(const sparse<T, dynamic_layout, Device>& a, const attention_shape& shape,
                                spmm_options options, coefficient_gradient form)
    : features_(blocking::even(shape.columns(), a.mesh().shape(), nesting::cols)),
      way_(detail::make_attention_way(a, shape, options, form)) {}

}  // namespace partita::algebra

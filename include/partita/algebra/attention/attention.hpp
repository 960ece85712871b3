// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Attention over the in-edges of every vertex, under any policy, without materialising edges x features.

#include <memory>
#include <vector>

#include "partita/algebra/attention/owners.hpp"
#include "partita/algebra/attention/tiled.hpp"
#include "partita/algebra/attention/whole.hpp"
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

/// How the gradient of the coefficients is found, with `automatic` resolved from what each form would cost.
struct attention_form {
  bool owners = false;
  coefficient_gradient gradient = coefficient_gradient::edges;  ///< rows or edges
};

/// The form that is requested, or the one chosen by least_work. Collective over the mesh.
template <class T, class Device>
attention_form choose_attention_form(const sparse<T, dynamic_layout, Device>& a,
                                     const transfer::in_edges<T, Device>& rows, const attention_shape& shape,
                                     const spmm_options& options, coefficient_gradient asked) {
  const mesh<Device>& m = a.mesh();
  const bool is_block = !(a.row_blocking() == a.col_blocking());  // of sampled neighbours, on one rank
  if (is_block && asked == coefficient_gradient::owners) asked = coefficient_gradient::automatic;
  if (shape.hops > 1 && asked == coefficient_gradient::rows)
    throw error(
        "an attention of several hops cannot gather rows for the gradient of its coefficients: "
        "coefficient_gradient::rows is for one hop");
  if (asked == coefficient_gradient::rows || asked == coefficient_gradient::edges) return {false, asked};
  const bool only_owners = asked == coefficient_gradient::owners;
  std::vector<attention_cost> forms;
  if (!only_owners) forms.push_back(cost_in_layout(a, rows, shape, options));
  if (only_owners || shares_heads(a, shape, blocking::even(shape.columns(), m.shape(), nesting::cols)))
    forms.push_back(cost_of_owners(rows, shape, options));
  const auto [form, gradient] = least_work(m, forms, shape.hops);
  return {only_owners || form == 1, gradient};
}

/// The algorithm of an attention on a device.
template <class T, class Device>
std::unique_ptr<attention_way<T, Device>> make_attention_way(const sparse<T, dynamic_layout, Device>& a,
                                                             const attention_shape& shape,
                                                             const spmm_options& options,
                                                             coefficient_gradient asked) {
  if (const auto* const verbs = reproducible_verbs_of<T>(a.mesh()))
    return verbs->make_attention(a, shape.scores(), shape.width, shape.hops);
  const transfer::in_edges<T, Device> rows(a);
  if constexpr (has_whole_attention<T, Device>)
    if ((asked == coefficient_gradient::automatic || asked == coefficient_gradient::rows) &&
        whole_attention<T, Device>::serves(a, shape))
      return std::make_unique<whole_attention<T, Device>>(a, rows, shape);
  const attention_form form = choose_attention_form(a, rows, shape, options, asked);
  if (form.owners)
    return std::make_unique<owners_attention<T, Device>>(a, rows, shape, options, form.gradient);
  return std::make_unique<tiled_attention<T, Device>>(a, rows, shape, options, form.gradient);
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
  /// dx and the gradient of the scalars, from dy and the x of the last forward; once after each.
  void backward(const matrix& x, const matrix& dy, matrix& dx, matrix& dscores) {
    way_->backward(x, dy, dx, dscores);
  }

  const blocking& features() const { return features_; }
  /// The form in effect for the gradient of the coefficients, with `automatic` resolved; on a reproducible
  /// mesh `rows`.
  coefficient_gradient form() const { return way_->form(); }
  /// What this rank receives in one forward and one backward, in closed form.
  traffic predicted() const { return way_->predicted(); }
  /// What this rank receives in one forward, in closed form.
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

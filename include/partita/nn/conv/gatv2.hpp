// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Dynamic graph attention: Brody, Alon, Yahav (ICLR 2022), equation 7.

#include "partita/autodiff/edge_products.hpp"
#include "partita/autodiff/edges.hpp"
#include "partita/autodiff/messages.hpp"
#include "partita/nn/conv/heads.hpp"
#include "partita/nn/recorded_layer.hpp"

namespace partita::nn {

namespace detail {

/// a leaky(0.2)(x_u + x_v + e), without e where `vectors` is 0.
struct gatv2_score {
  static constexpr int parameters = 1;
  double vectors;
  template <class X, class P>
  constexpr X operator()(const X& u, const X& v, const X& e, const P& a) const {
    const X sum = u + v + X(vectors) * e;
    return a[0] * (sum > X(0) ? sum : X(0.2) * sum);
  }
};

/// gatv2_conv on a tape, of edge vectors e, if there are any.
template <class T, class Device, class Make>
autodiff::variable<T, Device> gatv2(const Make& make, const sparse<T, dynamic_layout, Device>& a,
                                    autodiff::variable<T, Device> h,
                                    const std::optional<autodiff::edge_variable<T, Device>>& e,
                                    global_index out, const attention_heads& heads) {
  const global_index in = h.shape().cols, columns = heads.count * global_index{heads.width_of(out)};
  const auto of = [&](const char* name, auto x) {
    return redistribute(gemm(x, make.glorot(name, {in, columns})),
                        algebra::multiplied_layout(a, vertex_rows));
  };
  const auto sources = of("Wl", h);
  autodiff::message_inputs<T, Device> ends{.targets = of("Wr", first_rows(h, a.row_blocking()))};
  if (e) ends.edges = gemm(*e, make.glorot("We", {e->columns(), columns}));
  ends.parameters = make.glorot("a", {1, columns});
  const auto scores = message_scores(a, sources, ends, gatv2_score{e ? 1.0 : 0.0}, {.heads = heads.count});
  const auto alpha = make.dropout(edge_softmax(scores), make.options().dropout);
  auto z = redistribute(spmm(alpha, sources), vertex_rows);
  if (heads.averaged)
    z = gemm(z, make.constant(std::make_shared<const dense<T, replicated, Device>>(
                    head_average<T>(a.mesh(), heads.count, out))));
  return add_row(make.filled("b", {1, out}), z);
}

}  // namespace detail

/// Z_v = sum over u->v of alpha_uv H_u W_l + b per head, alpha the softmax over u of a . leaky(0.2)(H_u W_l +
/// H_v W_r + e_uv W_e), heads concatenated or averaged (n x out; H n x in, W_l and W_r in x heads width, W_e
/// k x heads width, a 1 x heads width); without edge vectors, without their term. A's values are not used:
/// every entry counts once, and one without a vector, such as an added loop, has 0. On sampled neighbours a
/// is a block (targets x sources), H has the rows of its columns, and Z those of its rows.
///
/// What travels: see algebra::message_scores_plan, edge_softmax and edge_spmm_plan. Throws shape_error when
/// the heads do not divide `out`.
template <class T, class Device>
recorded_layer<T, Device> gatv2_conv(const sparse<T, dynamic_layout, Device>& a,
                                     const edge_vectors<T, Device>& vectors, global_index in,
                                     global_index out, const builder<T, Device>& b,
                                     attention_heads heads = {}) {
  return recorded(b, a.col_blocking(), in, [&](const auto& make, auto h) {
    return detail::gatv2(make, a, h, make.constant_if_any(vectors), out, heads);
  });
}

}  // namespace partita::nn

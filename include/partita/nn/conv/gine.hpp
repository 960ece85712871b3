// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The graph isomorphism network with edge vectors: Hu, Liu, Gomes, Zitnik, Liang, Pande, Leskovec (ICLR
/// 2020), appendix C, with fixed epsilon.

#include "partita/autodiff/edges.hpp"
#include "partita/autodiff/messages.hpp"
#include "partita/nn/recorded_layer.hpp"

namespace partita::nn {

namespace detail {

/// relu(x_u + e), or relu(x_u) where `vectors` is 0.
struct gine_message {
  double vectors;
  template <class X>
  constexpr X operator()(const X& u, const X& e) const {
    const X sum = u + X(vectors) * e;
    return sum > X(0) ? sum : X(0);
  }
};

}  // namespace detail

/// Z = relu(S W_a + b_a) W_b + b_b, S_v = (1 + epsilon) H_v + sum over u->v of relu(H_u + e_uv W_e) (n x out;
/// H n x in, e entries x k, W_e k x in; the inner width is also `out`); without edge vectors, without their
/// term. A's values are not used: every entry counts once.
///
/// What travels: see algebra::message_plan, of width `in`. Throws what message_plan throws.
template <class T, class Device>
recorded_layer<T, Device> gine_conv(const sparse<T, dynamic_layout, Device>& a,
                                    const edge_vectors<T, Device>& vectors, global_index in, global_index out,
                                    double epsilon, const builder<T, Device>& b) {
  return recorded(b, in, [&](const auto& make, auto h) {
    const auto sources = redistribute(h, algebra::multiplied_layout(a, vertex_rows));
    autodiff::message_inputs<T, Device> ends;
    if (vectors) ends.edges = gemm(make.constant(vectors), make.glorot("We", {vectors->heads(), in}));
    const local_index heads = vectors ? base::to_local(in, "the width of messages") : 1;
    const auto sum = messages(a, sources, ends, detail::gine_message{vectors ? 1.0 : 0.0}, {.heads = heads});
    const auto s = (1 + epsilon) * h + redistribute(sum, vertex_rows);
    const auto weighted = gemm(s, make.glorot("Wa", {in, out}));
    const auto inner = autodiff::relu(add_row(make.filled("ba", {1, out}), weighted));
    const auto last = gemm(inner, make.glorot("Wb", {out, out}));
    return add_row(make.filled("bb", {1, out}), last);
  });
}

}  // namespace partita::nn

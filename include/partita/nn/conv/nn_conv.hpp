// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Edge-conditioned convolution: Gilmer, Schoenholz, Riley, Vinyals, Dahl (ICML 2017), section 4, with an
/// affine function of the edge vectors.

#include "partita/autodiff/edges.hpp"
#include "partita/autodiff/messages.hpp"
#include "partita/nn/recorded_layer.hpp"

namespace partita::nn {

namespace detail {

/// An entry of the edge vector times each number of the source's row.
struct nn_message {
  template <class X>
  constexpr X operator()(const X& u, const X& e) const {
    return e * u;
  }
};

}  // namespace detail

/// Z_v = sum over u->v of H_u Theta(e_uv) + H_v W_r + b, or the mean, where Theta(e) = sum over j of e_j V_j
/// + B (n x out; H n x in, each V_j, B and W_r in x out, the k matrices V_j above each other in W_e, k in x
/// out); without edge vectors, without theirs. A's values are not used: every entry counts once.
///
/// Messages are added up before they are multiplied, Z_v = sum over j of (sum over u of e_uv,j H_u) V_j +
/// ..., so that the memory is n x k in, and no matrix of an edge is made. What travels: see
/// algebra::message_plan, of width `in` and, with edge vectors, of width k in. Throws what message_plan
/// throws.
template <class T, class Device>
recorded_layer<T, Device> nn_conv(const sparse<T, dynamic_layout, Device>& a,
                                  const edge_vectors<T, Device>& vectors, global_index in, global_index out,
                                  const builder<T, Device>& b,
                                  algebra::message_reduction reduction = algebra::message_reduction::sum) {
  return recorded(b, in, [&](const auto& make, auto h) {
    const auto reduced = [&](auto x, const autodiff::message_inputs<T, Device>& ends, local_index heads) {
      const auto sources = redistribute(x, algebra::multiplied_layout(a, vertex_rows));
      return redistribute(
          messages(a, sources, ends, detail::nn_message{}, {.heads = heads, .reduction = reduction}),
          vertex_rows);
    };
    auto z = gemm(h, make.glorot("Wr", {in, out})) + gemm(reduced(h, {}, 1), make.glorot("B", {in, out}));
    if (vectors) {
      const local_index k = vectors->heads();
      using fixed = dense<T, replicated, Device>;
      const auto copies = std::make_shared<const fixed>(generate<replicated, T>(
          b.mesh(), {in, k * in}, [=](global_index i, global_index j) { return j % in == i ? T(1) : T(0); }));
      const auto repeated = gemm(h, make.constant(copies));
      const auto sums = reduced(repeated, {.edges = make.constant(vectors)}, k);
      z = z + gemm(sums, make.glorot("We", {k * in, out}));
    }
    return add_row(make.filled("b", {1, out}), z);
  });
}

}  // namespace partita::nn

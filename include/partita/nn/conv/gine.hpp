// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The graph isomorphism network with edge vectors: Hu, Liu, Gomes, Zitnik, Liang, Pande, Leskovec (ICLR
/// 2020), appendix C, with fixed epsilon.

#include "partita/autodiff/edges.hpp"
#include "partita/autodiff/messages.hpp"
#include "partita/nn/recorded_layer.hpp"
#include "partita/transfer/distribute.hpp"

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

/// The sum over u->v of relu(H_u + e_uv), or of relu(H_u).
template <class T, class Device>
autodiff::variable<T, Device> gine_sum(const sparse<T, dynamic_layout, Device>& a,
                                       autodiff::variable<T, Device> h,
                                       const autodiff::message_inputs<T, Device>& ends) {
  const auto sources = redistribute(h, algebra::multiplied_layout(a, vertex_rows));
  const local_index heads = ends.edges ? ends.edges->columns() : 1;
  return redistribute(messages(a, sources, ends, gine_message{ends.edges ? 1.0 : 0.0}, {.heads = heads}),
                      vertex_rows);
}
/// Numbers of edges (entries x 1), in each of so many columns.
template <class T, class Device, class Make>
autodiff::edge_variable<T, Device> columns_of(const Make& make, const edge_vectors<T, Device>& numbers,
                                              global_index width) {
  using row = dense<T, replicated, Device>;
  const auto ones = std::make_shared<const row>(
      generate<replicated, T>(numbers->mesh(), {1, width}, [](auto, auto) { return T(1); }));
  return gemm(make.constant(numbers), make.constant(ones));
}
/// The same, of so many times each message; they are stored.
template <class T, class Device, class Make>
autodiff::variable<T, Device> weighted_gine_sum(const Make& make, const sparse<T, dynamic_layout, Device>& a,
                                                autodiff::variable<T, Device> h,
                                                const std::optional<autodiff::edge_variable<T, Device>>& e,
                                                const edge_vectors<T, Device>& factors) {
  auto sum = autodiff::gather_sources(a, h);
  if (e) sum = sum + *e;
  return autodiff::scatter_targets(autodiff::relu(sum) * columns_of(make, factors, h.shape().cols));
}

/// gine_conv on a tape, of edge vectors e, if there are any.
template <class T, class Device, class Make>
autodiff::variable<T, Device> gine(const Make& make, const sparse<T, dynamic_layout, Device>& a,
                                   autodiff::variable<T, Device> h,
                                   const std::optional<autodiff::edge_variable<T, Device>>& e,
                                   global_index out, double epsilon,
                                   const edge_vectors<T, Device>& factors = {}) {
  const global_index in = h.shape().cols;
  autodiff::message_inputs<T, Device> ends;
  if (e) ends.edges = gemm(*e, make.glorot("We", {e->columns(), in}));
  const auto sum = factors ? weighted_gine_sum(make, a, h, ends.edges, factors) : gine_sum(a, h, ends);
  const auto s = (1 + epsilon) * first_rows(h, a.row_blocking()) + sum;
  const auto weighted = gemm(s, make.glorot("Wa", {in, out}));
  const auto inner = autodiff::relu(add_row(make.filled("ba", {1, out}), weighted));
  const auto last = gemm(inner, make.glorot("Wb", {out, out}));
  return add_row(make.filled("bb", {1, out}), last);
}

}  // namespace detail

/// Z = relu(S W_a + b_a) W_b + b_b, S_v = (1 + epsilon) H_v + sum over u->v of relu(H_u + e_uv W_e) (n x out;
/// H n x in, e entries x k, W_e k x in; the inner width is also `out`); without edge vectors, without their
/// term. A's values are not used: every entry counts once, or, on sampled neighbours, as often as `factors`
/// (entries x 1) say. There a is a block (targets x sources), H has the rows of its columns, and Z those of
/// its rows.
///
/// What travels: see algebra::message_plan, of width `in`. Throws what message_plan throws.
template <class T, class Device>
recorded_layer<T, Device> gine_conv(const sparse<T, dynamic_layout, Device>& a,
                                    const edge_vectors<T, Device>& vectors, global_index in, global_index out,
                                    double epsilon, const builder<T, Device>& b,
                                    const edge_vectors<T, Device>& factors = {}) {
  return recorded(b, a.col_blocking(), in, [&](const auto& make, auto h) {
    return detail::gine(make, a, h, make.constant_if_any(vectors), out, epsilon, factors);
  });
}

}  // namespace partita::nn

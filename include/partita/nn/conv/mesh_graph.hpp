// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Mesh networks: Pfaff, Fortunato, Sanchez-Gonzalez, Battaglia (ICLR 2021), section 3.1.

#include <optional>
#include <string>

#include "partita/autodiff/broadcasts.hpp"
#include "partita/autodiff/edge_norm.hpp"
#include "partita/autodiff/messages.hpp"
#include "partita/nn/conv/gine.hpp"
#include "partita/nn/recorded_layer.hpp"

namespace partita::nn {

/// The states of vertices and of edges, if these have one yet, on a tape.
template <class T, class Device>
struct mesh_state {
  autodiff::variable<T, Device> x;                           ///< (n, width)
  std::optional<autodiff::edge_variable<T, Device>> e = {};  ///< (entries, width)
};

namespace detail {

/// relu(x_u + x_v + e), without e where `vectors` is 0.
struct mesh_edge {
  double vectors;
  template <class X>
  constexpr X operator()(const X& u, const X& v, const X& e) const {
    const X sum = u + v + X(vectors) * e;
    return sum > X(0) ? sum : X(0);
  }
};

/// The output layer of a dense network with one inner layer: layer_norm(inner W_b + b_b), on rows of vertices
/// or of edges.
template <class Make, class Rows>
Rows mesh_output(const Make& make, const std::string& of, Rows inner, global_index width) {
  const auto weighted = gemm(inner, make.glorot(of + "Wb", {width, width}));
  const auto z = add_row(make.filled(of + "bb", {1, width}), weighted);
  const auto gamma = make.filled(of + "gamma", {1, width}, 1);
  return autodiff::layer_norm(z, gamma, make.filled(of + "beta", {1, width}));
}
/// layer_norm(relu(rows W_a + b_a) W_b + b_b).
template <class Make, class Rows>
Rows mesh_input(const Make& make, const std::string& of, Rows rows, global_index in, global_index width) {
  const auto z = gemm(rows, make.glorot(of + "Wa", {in, width}));
  return mesh_output(make, of, autodiff::relu(add_row(make.filled(of + "ba", {1, width}), z)), width);
}

}  // namespace detail

/// One block: e <- e + mlp(e_uv, x_u, x_v), then x <- x + mlp(x_v, sum over u->v of e_uv), mlp a dense layer,
/// relu, a dense layer and layer normalisation, all of `width` columns. The first dense layer of edges is a
/// sum of three products; those of x are computed once per vertex. Without an edge state, the first one is
/// mlp(x_u, x_v). A's values are not used: every entry counts once, or, on sampled neighbours, as often as
/// `factors` (entries x 1) say. There a is a block (targets x sources): the input states are those of its
/// sources and of edges that begin with its entries; the output states are those of its targets and entries.
///
/// Collective over the mesh. What travels: see algebra::message_scores_plan and algebra::edge_scatter_plan.
template <class T, class Device, class Make>
mesh_state<T, Device> mesh_graph_block(const Make& make,
                                       const std::type_identity_t<sparse<T, dynamic_layout, Device>>& a,
                                       mesh_state<T, Device> at, global_index width,
                                       const edge_vectors<T, Device>& factors = {}) {
  const auto square = [&](const char* name) { return make.glorot(name, {width, width}); };
  const auto there = [&](auto x) { return redistribute(x, algebra::multiplied_layout(a, vertex_rows)); };
  const auto sources = there(gemm(at.x, square("edge_Wu")));
  autodiff::message_inputs<T, Device> ends;
  at.x = first_rows(at.x, a.row_blocking());
  const auto targets = gemm(at.x, square("edge_Wv"));
  ends.targets = there(add_row(make.filled("edge_ba", {1, width}), targets));
  if (at.e) at.e = first_rows(*at.e, a);
  if (at.e) ends.edges = gemm(*at.e, square("edge_We"));
  const auto of_ends = message_scores(a, sources, ends, detail::mesh_edge{at.e ? 1.0 : 0.0},
                                      {.heads = base::to_local(width, "the width of edges")});
  const auto next = detail::mesh_output(make, "edge_", of_ends, width);
  at.e = at.e ? *at.e + next : next;
  const auto of_x = gemm(at.x, square("vertex_Wx"));
  const auto counted = factors ? *at.e * detail::columns_of(make, factors, width) : *at.e;
  const auto z = of_x + gemm(scatter_targets(counted), square("vertex_Wm"));
  const auto inner = autodiff::relu(add_row(make.filled("vertex_ba", {1, width}), z));
  at.x = at.x + detail::mesh_output(make, "vertex_", inner, width);
  return at;
}

namespace detail {

/// mesh_graph_net on a tape, with edge vectors e, if any, and all_blocks(make, state) for its blocks.
template <class T, class Device, class Make, class Blocks>
autodiff::variable<T, Device> mesh_graph(const Make& make, autodiff::variable<T, Device> h,
                                         const std::optional<autodiff::edge_variable<T, Device>>& e,
                                         global_index width, global_index out, const Blocks& all_blocks) {
  mesh_state<T, Device> at{mesh_input(make, "in_", h, h.shape().cols, width)};
  if (e) at.e = mesh_input(make, "in_edge_", *e, e->columns(), width);
  at = all_blocks(make, at);
  const auto z = gemm(at.x, make.glorot("out_Wa", {width, width}));
  const auto inner = autodiff::relu(add_row(make.filled("out_ba", {1, width}), z));
  const auto last = gemm(inner, make.glorot("out_Wb", {width, out}));
  return add_row(make.filled("out_bb", {1, out}), last);
}

}  // namespace detail

/// Z = relu(x W_a + b_a) W_b + b_b, with x the vertex states after `blocks` blocks. The initial states are
/// layer_norm(relu(H W_a + b_a) W_b + b_b) for vertices, and the same of the edge vectors for edges (Z n x
/// out, H n x in; inner widths `width`).
template <class T, class Device>
recorded_layer<T, Device> mesh_graph_net(const sparse<T, dynamic_layout, Device>& a,
                                         const edge_vectors<T, Device>& vectors, global_index in,
                                         global_index width, global_index out, int blocks,
                                         const builder<T, Device>& b) {
  return recorded(b, in, [&](const auto& make, auto h) {
    return detail::mesh_graph(make, h, make.constant_if_any(vectors), width, out,
                              [&](const auto& with, mesh_state<T, Device> at) {
                                for (int l = 0; l < blocks; ++l) at = mesh_graph_block(with, a, at, width);
                                return at;
                              });
  });
}

}  // namespace partita::nn

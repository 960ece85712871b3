// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Dot-product attention over in-neighbours: Shi, Huang, Feng, Zhong, Wang, Sun (IJCAI 2021), section 3.1,
/// without its gate.

#include <cmath>

#include "partita/autodiff/edge_products.hpp"
#include "partita/autodiff/edges.hpp"
#include "partita/autodiff/messages.hpp"
#include "partita/nn/conv/heads.hpp"
#include "partita/nn/recorded_layer.hpp"

namespace partita::nn {

namespace detail {

/// q (k + e), without e where `vectors` is 0.
struct transformer_score {
  double vectors;
  template <class X>
  constexpr X operator()(const X& key, const X& query, const X& e) const {
    return query * (key + X(vectors) * e);
  }
};

/// transformer_conv on a tape, of edge vectors e, if there are any.
template <class T, class Device, class Make>
autodiff::variable<T, Device> transformer(const Make& make, const sparse<T, dynamic_layout, Device>& a,
                                          autodiff::variable<T, Device> h,
                                          const std::optional<autodiff::edge_variable<T, Device>>& e,
                                          global_index out, const attention_heads& heads) {
  using fixed = dense<T, replicated, Device>;
  const local_index width = heads.width_of(out);
  const global_index in = h.shape().cols, columns = heads.count * global_index{width};
  const auto own = first_rows(h, a.row_blocking());
  const auto of = [&](const char* name, auto x) { return gemm(x, make.glorot(name, {in, columns})); };
  const auto to_queries = of("Wq", own);
  const auto queries = add_row(make.filled("bq", {1, columns}), to_queries);
  const auto there = [&](auto x) { return redistribute(x, algebra::multiplied_layout(a, vertex_rows)); };
  const auto keys = there(of("Wk", h));
  const auto to_values = of("Wv", h);
  const auto values = add_row(make.filled("bv", {1, columns}), to_values);
  autodiff::message_inputs<T, Device> ends{.targets = there(1 / std::sqrt(double(width)) * queries)};
  if (e) ends.edges = gemm(*e, make.glorot("We", {e->columns(), columns}));
  const auto scores = message_scores(a, keys, ends, transformer_score{e ? 1.0 : 0.0}, {.heads = heads.count});
  const auto alpha = make.dropout(edge_softmax(scores), make.options().dropout);
  auto z = redistribute(spmm(alpha, there(values)), vertex_rows);
  if (ends.edges) {
    const auto in_columns = gemm(
        alpha, make.constant(std::make_shared<const fixed>(head_columns<T>(a.mesh(), heads.count, width))));
    z = z + scatter_targets(in_columns * *ends.edges);
  }
  if (heads.averaged)
    z = gemm(z, make.constant(std::make_shared<const fixed>(head_average<T>(a.mesh(), heads.count, out))));
  z = z + gemm(own, make.glorot("Wr", {in, out}));
  return add_row(make.filled("b", {1, out}), z);
}

}  // namespace detail

/// Z_v = sum over u->v of alpha_uv (H_u W_v + b_v + e_uv W_e) + H_v W_r + b per head, alpha the softmax over
/// u of (H_v W_q + b_q) . (H_u W_k + e_uv W_e) / sqrt(width), heads concatenated or averaged (n x out; H n x
/// in, W_q, W_k and W_v in x heads width, W_e k x heads width, W_r in x out); without edge vectors, without
/// their terms. A's values are not used: every entry counts once. On sampled neighbours a is a block (targets
/// x sources), H has the rows of its columns, and Z those of its rows.
///
/// What travels: see algebra::message_scores_plan, edge_softmax, edge_spmm_plan and, with edge vectors,
/// algebra::edge_scatter_plan. Throws shape_error when the heads do not divide `out`.
template <class T, class Device>
recorded_layer<T, Device> transformer_conv(const sparse<T, dynamic_layout, Device>& a,
                                           const edge_vectors<T, Device>& vectors, global_index in,
                                           global_index out, const builder<T, Device>& b,
                                           attention_heads heads = {}) {
  return recorded(b, a.col_blocking(), in, [&](const auto& make, auto h) {
    return detail::transformer(make, a, h, make.constant_if_any(vectors), out, heads);
  });
}

}  // namespace partita::nn

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Relational graph convolution: Schlichtkrull et al. (ESWC 2018), eq. 2.

#include "partita/autodiff/relations.hpp"
#include "partita/graph/relation_matrices.hpp"
#include "partita/nn/recorded_layer.hpp"

namespace partita::nn {

/// How the weights W_r of relations are made: each by itself, as sums over bases, W_r = sum over b of c_rb
/// V_b, or of blocks along its diagonal. One of them at most.
struct relation_weights {
  global_index bases = 0, blocks = 0;
};

/// The order of sum over r of A_r H W_r.
enum class relation_order : std::uint8_t {
  aggregate_first,      ///< (A_r H) W_r: H travels once for all relations
  transform_first,      ///< A_r (H W_r): what arrives is summed over the relations before it is sent
  transform_with_bases  ///< sum over b of c_rb A_r (H V_b): bases travel once for all relations
};

namespace detail {

/// The weights of relations (R in x out), below each other, as (in x R out), side by side.
struct weights_side_by_side {
  global_index in, out, relations;
  template <class T>
  constexpr T value(const T* w, global_index i, global_index j) const {
    return w[(j / out * in + i) * out + j % out];
  }
  template <class T>
  constexpr T adjoint(const T* d, global_index i, global_index j) const {
    return d[i % in * relations * out + i / in * out + j];
  }
};
/// Blocks (R in x out / blocks) as the diagonals of R matrices (R in x out).
struct weights_of_blocks {
  global_index in, out, blocks;
  constexpr global_index block(global_index i) const { return i % in / (in / blocks); }
  template <class T>
  constexpr T value(const T* q, global_index i, global_index j) const {
    const global_index width = out / blocks;
    return j / width == block(i) ? q[i * width + j % width] : T(0);
  }
  template <class T>
  constexpr T adjoint(const T* d, global_index i, global_index j) const {
    return d[i * out + block(i) * (out / blocks) + j];
  }
};
/// Coefficients (R x B) as C with C((r, b, o), o) = c(r, b) (R B out x out).
struct spread_coefficients {
  global_index bases, out;
  template <class T>
  constexpr T value(const T* c, global_index i, global_index j) const {
    return i % out == j ? c[i / out] : T(0);
  }
  template <class T>
  constexpr T adjoint(const T* d, global_index r, global_index b) const {
    T sum = 0;
    for (global_index o = 0; o < out; ++o) sum += d[((r * bases + b) * out + o) * out + o];
    return sum;
  }
};

inline void require_relation_weights(global_index in, global_index out, const relation_weights& how) {
  if (how.bases > 0 && how.blocks > 0)
    base::throw_error<error>({"weights of relations are sums over bases or have blocks, not both"});
  if (how.blocks > 0 && (in % how.blocks != 0 || out % how.blocks != 0))
    base::throw_error<shape_error>(
        {how.blocks, " diagonal blocks do not divide weights of relations of ", matrix_shape{in, out}});
}

/// Sum over r of A_r H W_r on a tape, with `rows`, a the matrix of all `count` relations for this order.
template <class T, class Device>
autodiff::variable<T, Device> relational_sum(const recorder<T, Device>& make,
                                             const sparse<T, dynamic_layout, Device>& a, global_index count,
                                             const blocking& rows, autodiff::variable<T, Device> h,
                                             global_index out, const relation_weights& how,
                                             relation_order order) {
  const global_index in = h.shape().cols;
  const auto below_each_other = [&] {
    if (how.blocks == 0) return make.glorot("W", {count * in, out});
    return mapped_weight(make.glorot("W", {count * in, out / how.blocks}), {count * in, out},
                         weights_of_blocks{in, out, how.blocks});
  };
  const auto with_bases = [&] {
    auto bases = make.glorot("V", {how.bases * in, out});
    auto c = make.glorot("c", {count, how.bases});
    if (order != relation_order::transform_with_bases) return combined_weights(c, bases);
    const weights_side_by_side beside{in, out, how.bases};
    h = gemm(h, mapped_weight(bases, {in, how.bases * out}, beside));  // H V_b (n, B out)
    return mapped_weight(c, {count * how.bases * out, out}, spread_coefficients{how.bases, out});
  };
  const auto w = how.bases > 0 ? with_bases() : below_each_other();
  if (order != relation_order::transform_first) return gemm(stacked_spmm(a, h, rows, count), w);
  h = gemm(h, mapped_weight(w, {in, count * out}, weights_side_by_side{in, out, count}));  // H W_r (n, R out)
  return stacked_spmm(a, h, rows);
}

/// The layer of a, with the rows of its operand and of its result.
template <class T, class Device>
recorded_layer<T, Device> relational_layer(const sparse<T, dynamic_layout, Device>& a, global_index count,
                                           const blocking& sources, const blocking& targets, global_index in,
                                           global_index out, const builder<T, Device>& b,
                                           const relation_weights& how, relation_order order) {
  return recorded(b, sources, in, [&](const auto& make, auto h) {
    auto z = gemm(first_rows(h, targets), make.glorot("Wself", {in, out}));  // H W (n, out)
    z = z + relational_sum(make, a, count, targets, h, out, how, order);
    return add_row(make.filled("b", {1, out}), z);
  });
}

}  // namespace detail

/// What the busiest rank receives in a steady epoch for sum over r of A_r H W_r in this order, H the input of
/// the next layer made with b (n x in), by the closed forms of the plans. Collective over the mesh. What
/// travels: an all-reduce of one element, and what planning sends.
template <class T, class Device>
global_index relation_words(const graph::relation_matrices<T, Device>& relations, relation_order order,
                            global_index in, global_index out, const builder<T, Device>& b,
                            const relation_weights& how = {}) {
  const layer_input input = b.layer().input();
  const bool aggregates = order == relation_order::aggregate_first;
  const global_index width = aggregates                                 ? in
                             : order == relation_order::transform_first ? out
                                                                        : how.bases * out;
  if (aggregates && input == layer_input::constant) return 0;
  const auto a =
      order == relation_order::transform_first ? relations.side_by_side() : relations.above_each_other();
  const auto words = [&](const sparse<T, dynamic_layout, Device>& of) {
    return spmm_plan<T, Device>(of, vertex_rows, b.columns(width), b.options().products).predicted().words;
  };
  global_index all = words(a);
  if ((!aggregates || input == layer_input::varying) && transposed(a).is_stored())
    all += words(transposed(a));
  return b.mesh().world().all_reduce(all, reduction::max);
}

/// The order in which the busiest rank receives least. On a reproducible mesh, and for sparse constant
/// features of many columns, which stay sparse, it follows from the widths. Collective, see relation_words.
template <class T, class Device>
relation_order cheapest_order(const graph::relation_matrices<T, Device>& relations, global_index in,
                              global_index out, const builder<T, Device>& b, const relation_weights& how) {
  using enum relation_order;
  const layer_input input = b.layer().input();
  const relation_order transforming =
      how.bases > 0 && how.bases < relations.size() ? transform_with_bases : transform_first;
  constexpr global_index few = 64;  // columns of a sparse H whose product may be dense
  if (input == layer_input::constant)
    return b.options().sparse_input && in > few ? transforming : aggregate_first;
  if (b.mesh().reproducible()) {
    const global_index of_input = input == layer_input::varying ? 2 * in : in;
    return of_input < 2 * out * std::max<global_index>(1, how.bases) ? aggregate_first : transforming;
  }
  relation_order best = aggregate_first;
  global_index least = relation_words(relations, best, in, out, b, how);
  for (const relation_order order : {transform_first, transform_with_bases}) {
    if (order == transform_with_bases && how.bases == 0) continue;
    if (const global_index words = relation_words(relations, order, in, out, b, how); words < least)
      least = words, best = order;
  }
  return best;
}

/// Z = H W + b + sum over r of A_r H W_r (n x out, n x in, in x out), A_r the mean over in-neighbours of type
/// r; with W_r in full that is the mean aggregation of GraphSAGE, relation by relation. In the given order,
/// or in that of cheapest_order, which no result depends on but for rounding. Parameters: "Wself" (in x out);
/// "W", the W_r below each other (R in x out), or "V", bases below each other (B in x out), and "c" (R x B),
/// or "W" of blocks (R in x out / blocks); "b" (1 x out).
///
/// What travels: one product of all relations forward, none for a constant A_r H, and one backward.
/// Collective over the mesh. Throws error for bases and blocks at once, shape_error for blocks that do not
/// divide the widths.
template <class T, class Device>
recorded_layer<T, Device> rgcn_conv(const graph::relation_matrices<T, Device>& relations, global_index in,
                                    global_index out, const builder<T, Device>& b,
                                    const relation_weights& how = {},
                                    std::optional<relation_order> order = {}) {
  using enum relation_order;
  detail::require_relation_weights(in, out, how);
  if (!order) order = cheapest_order(relations, in, out, b, how);
  const auto a = *order == transform_first ? relations.side_by_side() : relations.above_each_other();
  return detail::relational_layer(a, relations.size(), relations.like().col_blocking(),
                                  relations.like().row_blocking(), in, out, b, how, *order);
}
/// The same of a block of sampled neighbours (R targets x sources) of R relations above each other, on a mesh
/// of one rank, aggregating first. Local.
template <class T, class Device>
recorded_layer<T, Device> rgcn_conv(const sparse<T, dynamic_layout, Device>& block, global_index relations,
                                    global_index in, global_index out, const builder<T, Device>& b,
                                    const relation_weights& how = {}) {
  detail::require_relation_weights(in, out, how);
  const auto targets = blocking::even(block.shape().rows / relations, b.mesh().shape(), nesting::rows);
  return detail::relational_layer(block, relations, block.col_blocking(), targets, in, out, b, how,
                                  relation_order::aggregate_first);
}

}  // namespace partita::nn

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the forms of attention cost a rank, before one of them is built.

#include <limits>
#include <vector>

#include "partita/algebra/coefficient_gradient.hpp"
#include "partita/algebra/edge_scores_gradient.hpp"
#include "partita/algebra/spmm.hpp"
#include "partita/transfer/edge_redistribution.hpp"

namespace partita::algebra {

/// Parameters of an attention.
struct attention_shape {
  local_index heads = 1;
  local_index width = 1;  ///< columns of X per head
  bool averaged = false;  ///< heads share the same columns, and their coefficients are averaged
  int hops = 1;           ///< number of hops with the same coefficients
  double slope = 0.2;     ///< slope of the leaky ReLU

  score_shape scores() const { return {heads, averaged, slope}; }
  global_index columns() const { return averaged ? width : global_index{heads} * width; }
  local_index values_of_edge() const { return averaged ? 1 : heads; }
};

namespace detail {

/// What a rank has to do in one forward and one backward.
struct attention_cost {
  global_index words_by_rows = 0;   ///< received if rows give the gradient of the coefficients
  global_index words_by_edges = 0;  ///< received if edges do
  global_index coefficients = 0;    ///< computed for products

  global_index words(coefficient_gradient form) const {
    return form == coefficient_gradient::rows ? words_by_rows : words_by_edges;
  }
};

/// One of several forms, and what gives the gradient of its coefficients.
struct attention_choice {
  std::size_t form = 0;
  coefficient_gradient gradient = coefficient_gradient::edges;
};

/// The form in which the busiest rank has least to do, counting words received and coefficients computed. In
/// each form rows or edges give the gradient, whichever makes the busiest rank receive less; edges for
/// several hops. Collective over the mesh. What travels: one all-reduce of four numbers for each form.
template <class Device>
attention_choice least_work(const mesh<Device>& m, const std::vector<attention_cost>& forms, int hops) {
  std::vector<global_index> busiest;
  for (const attention_cost& cost : forms)
    for (const coefficient_gradient g : {coefficient_gradient::edges, coefficient_gradient::rows})
      busiest.insert(busiest.end(), {cost.words(g), cost.words(g) + cost.coefficients});
  m.world().all_reduce(busiest, reduction::max);
  attention_choice least;
  global_index work = std::numeric_limits<global_index>::max();
  for (std::size_t k = 0; k < forms.size(); ++k) {
    const global_index* const of = &busiest[4 * k];
    const bool by_rows = hops == 1 && of[2] < of[0];
    if (of[by_rows ? 3 : 1] >= work) continue;
    work = of[by_rows ? 3 : 1];
    least = {k, by_rows ? coefficient_gradient::rows : coefficient_gradient::edges};
  }
  return least;
}

/// The cost of tiled_attention. Collective over the mesh. What travels: see spmm_cost.
template <class T, class Device>
attention_cost cost_in_layout(const sparse<T, dynamic_layout, Device>& a,
                              const transfer::in_edges<T, Device>& rows, const attention_shape& shape,
                              const spmm_options& options) {
  const mesh<Device>& m = a.mesh();
  const layout inner = multiplied_layout(a, vertex_rows);
  const auto even = [&](global_index width) { return blocking::even(width, m.shape(), nesting::cols); };
  const blocking features = even(shape.columns());
  const auto moved = [&](const blocking& vertices, const blocking& columns, layout from, layout to) {
    if (partition::same_blocks(m.shape(), from, to)) return global_index{0};
    return redistribution<T, Device>::predicted(m, vertices, columns, from, to).words;
  };
  struct product_words {
    global_index all, sums;
  };
  const auto product = [&](const sparse<T, dynamic_layout, Device>& of) {
    const spmm_cost<T, Device> cost({m, of.row_blocking(), of.col_blocking(), features, of.layout(), inner},
                                    *of.analysed(), false);
    const spmm_options chosen = cost.choose({stationary::a, options.rows, 1});
    return product_words{cost.received_under(chosen).words, cost.received_in_sums(chosen).words};
  };
  const sparse<T, dynamic_layout, Device> of_sources = transposed(a).stored_for("attention");
  const product_words forward = product(a), backward = product(of_sources);
  const global_index words =
      moved(a.col_blocking(), even(2 * shape.heads), vertex_rows, replicated) +
      moved(a.row_blocking(), even(shape.heads), partition::rows_of(a.layout()), replicated) +
      edge_scores_gradient<T, Device>::predicted(rows, shape.heads).words +
      2 * moved(a.col_blocking(), features, vertex_rows, inner) +
      2 * moved(a.row_blocking(), features, inner, vertex_rows) + shape.hops * (forward.all + backward.all);
  const layout spread{a.layout().rows, inner.cols - (a.layout().cols & axis::col)};
  const global_index sampled = forward.all - forward.sums + moved(a.row_blocking(), features, inner, spread);
  const global_index heads = local::heads_of(features.block(spread.cols, m.at()), shape.width).size();
  return {words + static_cast<global_index>(rows.needed().size()) * features.size(),
          words + shape.hops * sampled +
              transfer::edge_redistribution<T, Device>::predicted(a, rows, features, shape.values_of_edge(),
                                                                  spread.cols)
                  .words,
          static_cast<global_index>(a.local()->nonzeros + of_sources.local()->nonzeros) * heads *
              (shape.averaged ? shape.heads : 1)};
}

/// The cost of owners_attention. Collective over the mesh. What travels: two numbers from every rank to
/// every other rank.
template <class T, class Device>
attention_cost cost_of_owners(const transfer::in_edges<T, Device>& rows, const attention_shape& shape,
                              const spmm_options& options) {
  const mesh<Device>& m = rows.mesh();
  const blocking& vertices = rows.sources();
  const auto ranks = static_cast<std::size_t>(m.size());
  std::vector<std::size_t> rank_of(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const interval owned = vertices.block(vertex_rows.rows, m.shape().at(static_cast<int>(rank)));
    if (!owned.empty()) rank_of[vertices.owner(vertex_rows.rows, owned.begin)] = rank;
  }
  // For each rank, the edges from its vertices to own ones, and the own vertices that they reach.
  std::vector<global_index> from(2 * ranks, 0);
  const std::vector<std::size_t> offsets = rows.own_offsets();
  for (std::size_t v = 0; v + 1 < offsets.size(); ++v) {
    std::size_t last = ranks;
    for (std::size_t e = offsets[v]; e < offsets[v + 1]; ++e) {
      const std::size_t rank = rank_of[vertices.owner(vertex_rows.rows, rows.own_columns()[e])];
      ++from[2 * rank];
      if (rank != last) ++from[2 * rank + 1];
      last = rank;
    }
  }
  const std::vector<global_index> to = m.control(partition::every_axis).all_to_all(from);
  const auto me = static_cast<std::size_t>(m.rank());
  global_index edges = static_cast<global_index>(rows.own_columns().size()), targets = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    edges += to[2 * rank];
    if (rank != me) targets += to[2 * rank + 1];
  }
  const global_index others = vertices.size() - rows.own().size(), width = shape.columns();
  const auto product = [&](global_index needed) {
    const auto received_under = [&](spmm_options o) {
      return traffic{(o.rows == row_exchange::full ? others : needed) * width, 0};
    };
    return received_under(least_received(m, {stationary::a, options.rows, 1}, received_under)).words;
  };
  const auto sources = static_cast<global_index>(rows.needed().size());
  const global_index forward = product(sources), backward = product(targets);
  const global_index words = 3 * others * shape.heads +
                             edge_scores_gradient<T, Device>::predicted(rows, shape.heads).words +
                             shape.hops * (forward + backward);
  return {words + sources * width, words + shape.hops * forward, edges * shape.heads};
}

}  // namespace detail

}  // namespace partita::algebra

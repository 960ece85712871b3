// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What training would cost under a policy, asked before the graph is distributed.

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "partita/comm/emulated.hpp"
#include "partita/graph/edge_counts.hpp"
#include "partita/train/link_trainer.hpp"

namespace partita::nn {

/// Whether the cost of this model is found from counts. Others compute from the entries of A what they
/// exchange, as all do with covers and in chunks, and are set up. Local. Throws error as find_model.
template <class T, class Device>
bool is_counted(const training_options& options) {
  const graph::propagation_matrix of = find_model<T, Device>(options).multiplies_with;
  return !is_pattern(of) && of != graph::propagation_matrix::relations &&
         options.exchange != row_exchange::cover && options.exchange_pieces <= 1;
}

namespace detail {

/// The values of a propagation matrix, or of its transpose, where each is stored once.
inline transfer::counted_values values_of(graph::propagation_matrix of, transfer::side side,
                                          const graph::edge_counts& edges, const training_options& options) {
  using graph::propagation_matrix;
  const bool both = of == propagation_matrix::gcn_normalized,
             mean = of == propagation_matrix::mean_normalized;
  const bool ones =
      !edges.is_weighted() && (mean || (!edges.has_added_loops() &&
                                        (of != propagation_matrix::weighted_self || options.epsilon == 0)));
  return {ones, both || (mean && side == transfer::side::straight),
          both || (mean && side == transfer::side::transposed)};
}

/// The matrix that propagation_matrices::matrix_for makes, without entries; nothing where counts do not
/// suffice: for models that read entries when they are constructed, and for tiles of several parts.
template <class T, class Device>
std::optional<sparse<T, dynamic_layout, Device>> counted_matrix(const mesh<Device>& m,
                                                                graph::edge_counts& edges,
                                                                const training_options& options,
                                                                const policy& p,
                                                                graph::propagation_matrix of) {
  if (!is_counted<T, Device>(options)) return {};
  const blocking rows = graph::vertex_blocking(m, edges.data(), options);
  const bool mean = of == graph::propagation_matrix::mean_normalized;
  const auto tiles = [&](transfer::side side) {
    transfer::tile_counts counts = edges.tiles(m.shape(), p.sparse, rows, side, !mean);
    return transfer::counted_tiles<T>(m, p.sparse, rows, std::move(counts),
                                      values_of(of, side, edges, options));
  };
  const auto forward = tiles(transfer::side::straight);
  const auto backward = !mean && edges.is_symmetric() ? forward : tiles(transfer::side::transposed);
  if (forward == nullptr || backward == nullptr) return {};
  return sparse<T, dynamic_layout, Device>(m, p.sparse, p.dense, rows, rows, forward, backward);
}

/// A model as make_model makes it, which is only asked what it moves.
template <class T, class Device>
nn::model<T, Device> unread_model(const mesh<Device>& m, graph::edge_counts& edges,
                                  const training_options& options, const policy& p) {
  const named_model<T, Device>& named = find_model<T, Device>(options);
  const auto a = counted_matrix<T>(m, edges, options, p, named.multiplies_with);
  if (!a) return make_model<T>(m, edges.data(), options, p);
  return named.make(
      {*a, edges.data(), options, builder<T, Device>(*a, options_of_model(options, edges.data()))});
}

/// A trainer of such a model; where pairs are to be drawn, of links.
template <class T, class Device>
std::unique_ptr<trainer<T, Device>> unread_trainer(const mesh<Device>& m, graph::edge_counts& edges,
                                                   const training_options& options, const policy& p,
                                                   bool draws_pairs) {
  nn::model<T, Device> net = unread_model<T>(m, edges, options, p);
  if (draws_pairs && edges.data().task == io::task::links)
    return std::make_unique<link_trainer<T, Device>>(m, edges.data(), options, p, std::move(net),
                                                     matrix_contents::unread);
  return std::make_unique<trainer<T, Device>>(m, edges.data(), options, std::move(net),
                                              matrix_contents::unread);
}

/// The seconds of a steady step: the second one, for which A X of a constant X is there.
template <class T, class Device>
void rehearse(training<T, Device>& set_up, const mesh<Device>& m, policy_cost& cost) {
  const emulated::rehearsal rehearsal(m.world());
  (void)set_up.epoch(1);
  m.ledger().clear();
  double found[] = {set_up.epoch(2).seconds, 0};  // of this rank, where what was not computed is not finite
  for (const comm::ledger_entry& e : m.ledger().entries())
    if (e.phase != "evaluation") found[1] += e.seconds;
  m.world().all_reduce(found, reduction::max);
  cost.seconds = found[0], cost.waiting = found[1];
}

/// The cost of the training that `set_up` makes, whose A has its entries on so many ranks.
template <class T, class Device, class SetUp>
policy_cost cost_of(const mesh<Device>& m, const io::dataset& data, int ranks_of_entries, SetUp set_up) {
  memory::memory_meter& meter = *m.queue().meter();
  meter.restart_peak();
  const auto before = static_cast<global_index>(meter.current());
  const std::unique_ptr<training<T, Device>> made = set_up();
  const global_index entries = static_cast<global_index>(data.edges.size()) + data.vertices;
  policy_cost cost;
  if (emulated::measures_kernels(m.world())) detail::rehearse(*made, m, cost);
  cost.words = summarize(m.world(), made->predicted().words);
  cost.buffer_bytes = summarize(m.world(), static_cast<global_index>(meter.peak()) - before);
  cost.list_bytes = entries / ranks_of_entries *
                    static_cast<global_index>(transfer::list_bytes<T>(!data.edge_weights.empty()));
  return cost;
}

}  // namespace detail

/// What one training step of train_model would receive under a policy, without training. Collective over the
/// mesh. What travels: see predict_cost.
template <class T, class Device>
max_and_total predict_words(const mesh<Device>& m, const io::dataset& data, const training_options& options,
                            const policy& p) {
  graph::edge_counts edges(m.world(), data, transfer::host_threads(m.queue()));
  const auto net = detail::unread_model<T>(m, edges, options, p);
  return summarize(m.world(), trainer<T, Device>::predicted_step(m, net).words);
}

/// The cost of training under a policy: the words of a step and the peak of live buffers, exactly as they
/// are after a set-up, from the entries and nonempty columns of A's tiles; an edge that repeats another one,
/// which a set-up adds to it, counts as one more, and does not keep A's values from being factors. Buffers
/// are allocated but not touched. Models with attention or max aggregation, and graphs whose tiles exceed
/// mesh::tile_entries(), are set up instead. List bytes are the most that a rank holds of A's entries while
/// they arrive and are sorted, assuming that they are spread evenly over the ranks that own different parts
/// of A. On an emulated machine whose kernels are measured, and with a queue that is charged by them, also
/// the seconds of a steady step there: two steps are rehearsed, and buffers are the peak of these, too. Of
/// links the pairs of these steps are drawn, and words are those of the second one; without measurements,
/// words are those of the model alone. Resets the peak of the queue's memory meter. Collective over the mesh,
/// whose world is that of `edges`. What travels: see edge_counts::tiles, for A and, unless it is symmetric,
/// A^T; for a set-up, the graph.
template <class T, class Device>
policy_cost predict_cost(const mesh<Device>& m, graph::edge_counts& edges, const training_options& options,
                         const policy& p) {
  const io::dataset& data = edges.data();
  return detail::cost_of<T>(m, data, m.shape().size(p.sparse.used()), [&] {
    return detail::unread_trainer<T>(m, edges, options, p, emulated::measures_kernels(m.world()));
  });
}
/// As above for one policy.
template <class T, class Device>
policy_cost predict_cost(const mesh<Device>& m, const io::dataset& data, const training_options& options,
                         const policy& p) {
  graph::edge_counts edges(m.world(), data, transfer::host_threads(m.queue()));
  return predict_cost<T>(m, edges, options, p);
}

}  // namespace partita::nn

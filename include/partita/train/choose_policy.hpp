// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The policy and the mesh under which training costs least.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "partita/train/policy_cost.hpp"

namespace partita::nn {

/// What a policy is chosen from.
struct policy_search {
  std::vector<partita::policy> policies = {named_policies.begin(), named_policies.end()};
  bool every_mesh = false;                     ///< each mesh that a policy allows; otherwise its default_mesh
  std::optional<mesh_shape> mesh = {};         ///< this one alone
  std::optional<std::size_t> most_bytes = {};  ///< that buffers of a rank may take, of who is chosen
  int threads = 1;                             ///< of each rank, with which it counts edges
  /// What is tried where the options leave it automatic and a mesh makes a difference; none: what moves
  /// least.
  std::vector<row_exchange> exchanges = {};
  std::vector<partita::stationary> stationaries = {};
  /// Of the exchange of needed rows, where it is tried or given: training_options::exchange_pieces.
  std::vector<int> chunks = {};
  comm::progress observe = {};  ///< is told on its rank how many candidates of all have a cost, after each
};

/// A policy on a mesh, with what its products exchange, and the cost of training under it.
struct policy_candidate {
  partita::policy policy;
  mesh_shape mesh;
  std::string_view same_as = {};  ///< an earlier policy that does the same on this mesh: there is no cost
  policy_cost cost = {};
  bool chosen = false;
  row_exchange exchange = row_exchange::automatic;
  partita::stationary stationary = partita::stationary::automatic;
  int chunks = 0;        ///< 0: automatic
  int stages = 0;        ///< of `mesh` each; 0: the whole graph over all ranks
  int stage_chunks = 0;  ///< pipeline_options::chunks
  sampling::placement placement = sampling::placement::automatic;  ///< of mini-batches
};

/// The policy that was chosen, and those that it was chosen from.
struct policy_choice {
  partita::policy policy;
  mesh_shape mesh;
  std::vector<policy_candidate> candidates;
  std::optional<bool> symmetric = {};  ///< training_options::symmetric, where that was found out

  /// The candidate that was chosen. Local.
  const policy_candidate& chosen() const {
    return *std::ranges::find(candidates, true, &policy_candidate::chosen);
  }
};

/// The options under which a candidate trains.
inline training_options options_of(const policy_candidate& k, training_options options) {
  options.exchange = k.exchange;
  options.stationary = k.stationary;
  options.exchange_pieces = k.chunks;
  if (k.stages > 0) options.pipeline.stages = k.stages, options.pipeline.chunks = k.stage_chunks;
  if (k.placement != sampling::placement::automatic) options.mini_batch.placement = k.placement;
  return options;
}

namespace detail {

/// What is least of who is chosen: seconds where they are known, else the product of words and bytes.
inline double measure_of(const policy_cost& c) {
  return c.seconds > 0 ? c.seconds
                       : static_cast<double>(c.words.max_rank + 1) * static_cast<double>(c.bytes());
}

/// Whether two numbers agree but for the order in which their parts were added up.
inline bool agree(double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(a); }

}  // namespace detail

/// Whether the buffers of a candidate fit into this number of bytes on each rank. Local.
inline bool fits(const policy_candidate& k, std::optional<std::size_t> most_bytes) {
  return !most_bytes || static_cast<std::size_t>(k.cost.buffer_bytes.max_rank) <= *most_bytes;
}

/// The order in which candidates are taken: those that fit first; of these, and of the others, by seconds
/// where they are known, else by the product of words and bytes; where that agrees within 1e-9 with the first
/// of several, by bytes of buffers, then by words, of the busiest rank; then as they were. of(element) is a
/// candidate that has a cost. Local.
template <class Element, class Of>
void sort_by_cost(std::vector<Element>& all, std::optional<std::size_t> most_bytes, Of of) {
  const auto measure = [&](const Element& e) {
    return std::pair(!fits(of(e), most_bytes), detail::measure_of(of(e).cost));
  };
  std::ranges::stable_sort(all, {}, measure);
  for (auto first = all.begin(); first != all.end();) {
    const auto group = measure(*first);
    const auto last = std::find_if(first, all.end(), [&](const Element& e) {
      return measure(e).first != group.first || !detail::agree(group.second, measure(e).second);
    });
    std::stable_sort(first, last, [&](const Element& a, const Element& b) {
      const auto size = [&](const Element& e) {
        return std::pair(of(e).cost.buffer_bytes.max_rank, of(e).cost.words.max_rank);
      };
      return size(a) < size(b);
    });
    first = last;
  }
}

namespace detail {

inline std::vector<policy_candidate> candidates_of(const policy_search& from, const training_options& options,
                                                   int ranks) {
  const std::vector exchange{options.exchange};
  const std::vector stationary{options.stationary};
  const std::vector chunk{options.exchange_pieces};
  const bool tries_exchanges = !from.exchanges.empty() && options.exchange == row_exchange::automatic;
  const bool tries_stationaries =
      !from.stationaries.empty() && options.stationary == partita::stationary::automatic;
  const bool tries_chunks =
      !from.chunks.empty() && options.exchange_pieces == 0 && options.ranks_of_node == 1;
  const bool needs_lists = options.ranks_of_node > 1 || options.encoding != algebra::row_encoding::exact;
  std::vector<policy_candidate> all;
  for (const partita::policy& p : from.policies)
    for (const mesh_shape shape : from.mesh         ? std::vector{*from.mesh}
                                  : from.every_mesh ? partition::meshes_of(p, ranks)
                                                    : std::vector{default_mesh(p, ranks)}) {
      const policy_candidate plain{p,
                                   shape,
                                   partition::same_policy(p, shape, from.policies),
                                   {},
                                   false,
                                   exchange[0],
                                   stationary[0],
                                   chunk[0]};
      const bool along_row = p.sparse.rows.contains(axis::row) && shape.row > 1 && plain.same_as.empty();
      const bool along_col = p.sparse.cols.contains(axis::col) && shape.col > 1 && plain.same_as.empty();
      const std::vector<row_exchange>& exchanges = tries_exchanges && along_row ? from.exchanges : exchange;
      const std::vector<partita::stationary>& stationaries =
          tries_stationaries && along_col ? from.stationaries : stationary;
      for (const row_exchange rows : exchanges)
        for (const auto kept : stationaries) {
          if (rows == row_exchange::cover && kept == partita::stationary::c) continue;
          if (rows == row_exchange::full && needs_lists) continue;
          const bool in_chunks = tries_chunks && along_row && rows == row_exchange::sparsity_aware;
          for (const int chunks : in_chunks ? from.chunks : chunk) {
            policy_candidate& k = all.emplace_back(plain);
            k.exchange = rows;
            k.stationary = kept;
            k.chunks = chunks;
          }
        }
    }
  return all;
}

/// Whether two candidates cost the same and differ in nothing but the number of chunks.
inline bool differ_in_chunks_alone(const policy_candidate& a, const policy_candidate& b) {
  const auto exact = [](const policy_candidate& k) {
    return std::tuple(k.policy.name, k.mesh.row, k.mesh.col, k.exchange, k.stationary, k.cost.words.max_rank,
                      k.cost.words.total, k.cost.buffer_bytes.max_rank);
  };
  return a.same_as.empty() && b.same_as.empty() && exact(a) == exact(b) &&
         agree(a.cost.seconds, b.cost.seconds) && agree(a.cost.waiting, b.cost.waiting);
}

/// Without those that differ in nothing but the number of chunks from an earlier one.
inline void drop_repeated(std::vector<policy_candidate>& all) {
  std::vector<policy_candidate> kept;
  for (const policy_candidate& k : all)
    if (std::ranges::none_of(kept, [&](const policy_candidate& e) { return differ_in_chunks_alone(e, k); }))
      kept.push_back(k);
  all = std::move(kept);
}

/// Marks the first in the order of sort_by_cost. Throws budget_error where it does not fit.
inline const policy_candidate& choose(std::vector<policy_candidate>& all,
                                      std::optional<std::size_t> most_bytes) {
  std::vector<policy_candidate*> order;
  for (policy_candidate& k : all)
    if (k.same_as.empty()) order.push_back(&k);
  if (order.empty()) throw mesh_error("there is no policy to choose from");
  const auto of = [](const policy_candidate* k) -> const policy_candidate& { return *k; };
  sort_by_cost(order, most_bytes, of);
  if (!fits(*order.front(), most_bytes)) {
    const policy_candidate& least = **std::ranges::min_element(
        order, {}, [](const policy_candidate* k) { return k->cost.buffer_bytes.max_rank; });
    base::throw_error<budget_error>({"no policy fits into buffers of ", *most_bytes,
                                     " bytes on a rank: ", least.policy.name, " on mesh ", least.mesh,
                                     " needs least, ", least.cost.buffer_bytes.max_rank,
                                     " bytes to be set up; its epochs may need more"});
  }
  order.front()->chosen = true;
  return *order.front();
}

}  // namespace detail

/// The policy and the mesh of `ranks` ranks whose busiest rank has the least product of words and bytes;
/// where predict_cost says seconds, those that take least: the first by sort_by_cost. Candidates that differ
/// in nothing but the number of chunks are one. make_mesh(shape) makes a mesh of these ranks.
/// Every rank must call. What travels: see predict_cost; edges are counted once for all candidates. Throws
/// budget_error where none fits, mesh_error where there is no policy to choose from, and as predict_cost.
template <class T, class MakeMesh>
policy_choice choose_policy(int ranks, const MakeMesh& make_mesh, const io::dataset& data,
                            const training_options& options, const policy_search& from = {}) {
  std::vector<policy_candidate> all = detail::candidates_of(from, options, ranks);
  const auto plain = make_mesh(mesh_shape{ranks, 1, 1});
  const bool by_seconds = emulated::measures_kernels(plain.world());
  graph::edge_counts edges(plain.world(), data, from.threads);
  std::vector<std::pair<policy_candidate*, decltype(make_mesh(mesh_shape{}))>> tried;
  for (policy_candidate& k : all) {
    if (!k.same_as.empty()) continue;
    tried.emplace_back(&k, make_mesh(k.mesh));
    edges.expect(graph::vertex_blocking(tried.back().second, data, options));
  }
  global_index done = 0;
  for (auto& [k, m] : tried) {
    training_options asked = options_of(*k, options);
    if (!by_seconds) asked.exchange_pieces = 0;  // the words are the same, and nothing is set up
    k->cost = predict_cost<T>(m, edges, asked, k->policy);
    if (from.observe) from.observe(++done, std::ssize(tried));
  }
  detail::drop_repeated(all);
  const policy_candidate& chosen = detail::choose(all, from.most_bytes);
  policy_choice choice{chosen.policy, chosen.mesh, {}, edges.known_symmetry()};
  choice.candidates = std::move(all);
  return choice;
}
/// As above on meshes of all ranks of `world`, with this queue.
template <class T, class Device>
policy_choice choose_policy(const communicator& world, const device_queue<Device>& queue,
                            const io::dataset& data, const training_options& options,
                            const policy_search& from = {}) {
  const auto make_mesh = [&](mesh_shape shape) { return partita::mesh<Device>(world, shape, queue); };
  return choose_policy<T>(world.size(), make_mesh, data, options, from);
}

/// The same for a machine whose kernels are measured, of as many ranks as `world` has, with a thread each:
/// what takes least time there. Buffers are allocated on copies of the queue, without far memory. Nothing of
/// `world` but its messages is used, and its ledger stays as it is.
template <class T, class Device>
policy_choice choose_policy(const communicator& world, const emulated::machine& on,
                            const device_queue<Device>& queue, const io::dataset& data,
                            const training_options& options, const policy_search& from = {}) {
  const communicator ranks = emulated::cluster(communicator(world.transport(), world.axis()), on);
  return choose_policy<T>(ranks, emulated::charged(ranks, queue), data, options, from);
}

}  // namespace partita::nn

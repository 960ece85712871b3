// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The matrices that layers multiply with, from the edges of a graph.

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "partita/graph/matrix_entries.hpp"
#include "partita/graph/matrix_options.hpp"
#include "partita/partition/policies.hpp"
#include "partita/transfer/distribute.hpp"

namespace partita::graph {

/// The vertex blocking selected by `options`. Collective over the mesh. What travels: for balanced blocks, an
/// all-reduce of n elements. Throws shape_error when the given block sizes do not sum to the number of
/// vertices.
template <class Device>
blocking vertex_blocking(const mesh<Device>& m, const io::dataset& data, const matrix_options& options) {
  if (!options.block_sizes.empty()) {
    const blocking given = blocking::given(options.block_sizes, m.shape(), nesting::rows);
    if (given.size() != data.vertices)
      base::throw_error<shape_error>({data.name, ": the block sizes sum to ", given.size(),
                                      ", the graph has ", data.vertices, " vertices"});
    return given;
  }
  if (options.blocks == vertex_blocks::even) return blocking::even(data.vertices, m.shape(), nesting::rows);
  std::vector<global_index> entries(static_cast<std::size_t>(data.vertices), 0);
  transfer::for_entries(matrix_entries<double>(m.world(), data).with_loops(1), 1,
                        [&](std::size_t, const auto& e) { ++entries[static_cast<std::size_t>(e.row)]; });
  m.world().all_reduce(entries);
  return blocking::balanced(entries, m.shape(), nesting::rows);
}

namespace detail {

/// f(sum) of each row of the entries, 0 where the sum is not positive. Throws error for a sum that is not
/// finite.
template <class Function>
matrix_entries<double>::scale scale_of(const communicator& world, const matrix_entries<double>& entries,
                                       const summation& how, Function f) {
  auto sums = std::make_shared<std::vector<double>>(weighted_degrees(world, entries, how));
  const auto infinite = std::ranges::find_if_not(*sums, [](double d) { return std::isfinite(d); });
  if (infinite != sums->end())
    base::throw_error<error>({"the weights of the edges to vertex ", infinite - sums->begin(),
                              " have a sum that is not a finite number"});
  for (double& d : *sums) d = d > 0 ? f(d) : 0;
  return sums;
}

}  // namespace detail

/// This rank's entries of D^-1/2 (A + I) D^-1/2, D the row sums of A + I, for distribute; rows with a
/// nonpositive sum become zero (n x n). They refer to the dataset. Collective. What travels: see
/// weighted_degrees; for self_loops::once also n bytes. Throws error for a sum of weights that is not finite.
/// Source: Kipf, Welling (ICLR 2017), section 2; directed graphs use in-degrees.
template <class T = double>
matrix_entries<T> gcn_normalized(const communicator& world, const io::dataset& data,
                                 self_loops loops = self_loops::sum, const summation& how = {}) {
  const auto there = loops == self_loops::once ? marked_loops(world, data) : nullptr;
  const matrix_entries<double> a = matrix_entries<double>(world, data).with_loops(1, there);
  const auto d = detail::scale_of(world, a, how, [](double sum) { return 1 / std::sqrt(sum); });
  return matrix_entries<T>(a).scaled(d, d).as_factors();
}

/// The same of the weighted mean over in-neighbours: each row of A over its sum.
template <class T = double>
matrix_entries<T> mean_normalized(const communicator& world, const io::dataset& data,
                                  const summation& how = {}) {
  const matrix_entries<double> a(world, data);
  const auto d = detail::scale_of(world, a, how, [](double sum) { return 1 / sum; });
  return matrix_entries<T>(a).scaled(d, nullptr).as_factors();
}

/// The same of each propagation matrix. Only normalised ones are collective.
template <class T = double>
matrix_entries<T> propagation_entries(const communicator& world, const io::dataset& data,
                                      propagation_matrix of, const matrix_options& options = {},
                                      const summation& how = {}) {
  const matrix_entries<T> a(world, data);
  switch (of) {
    case propagation_matrix::gcn_normalized:
      return gcn_normalized<T>(world, data, options.loops, how);
    case propagation_matrix::mean_normalized:
      return mean_normalized<T>(world, data, how);
    case propagation_matrix::weighted_self:
      return a.with_loops(1 + options.epsilon).as_factors();
    case propagation_matrix::self_loops:
      return a.with_loops(1).as_factors();
    case propagation_matrix::whole_rows:
    case propagation_matrix::adjacency:
    case propagation_matrix::relations:
      break;
  }
  return a;
}

/// The matrices that models multiply with, for one dataset under one policy. Collective over the mesh. What
/// travels: see distribute. The dataset must outlive it. The constructor throws shape_error naming an edge
/// outside the graph, and error naming a weight that is not finite.
template <class T, class Device>
class propagation_matrices {
 public:
  using matrix = sparse<T, dynamic_layout, Device>;

  propagation_matrices(const partita::mesh<Device>& m, const io::dataset& data, const matrix_options& options,
                       const policy& p)
      : mesh_(m),
        policy_(p),
        rows_(vertex_blocking(m, data, options)),
        options_(options),
        edges_(m.world(), data) {
    if (!options.symmetric || !data.edge_weights.empty())
      transfer::require_entries({rows_.size(), rows_.size()}, matrix_entries<T>(edges_), threads());
  }

  /// Without weights and repeated edges, it stores no value for an entry, see transfer::scaled_pattern. A
  /// transpose is stored unless the matrix is symmetric, or `one_way`, or made of whole rows.
  matrix matrix_for(propagation_matrix of, bool one_way = false) const {
    if (of == propagation_matrix::whole_rows) return whole_rows();
    const comm::phase_scope phase(mesh_.ledger(), "distribute");
    if (of == propagation_matrix::relations)
      return distribute(mesh_, policy_.sparse, rows_, rows_, std::vector<triplet<T>>{},
                        one_way ? symmetry::one_way : symmetry::general, policy_.dense,
                        transfer::sharing::trusted);
    const symmetry kind = one_way ? symmetry::one_way
                          : of != propagation_matrix::mean_normalized && adjacency_is_symmetric()
                              ? symmetry::symmetric
                              : symmetry::general;
    const auto entries = propagation_entries<T>(mesh_.world(), edges_.graph(), of, options_,
                                                {threads(), mesh_.reproducible()});
    const matrix a = distribute(mesh_, policy_.sparse, rows_, rows_, entries, kind, policy_.dense,
                                transfer::sharing::trusted);
    edges_.forget();
    return a;
  }
  matrix gcn_normalized() const { return matrix_for(propagation_matrix::gcn_normalized); }
  /// The adjacency matrix with the policy's row blocking and unpartitioned columns, without a transpose.
  matrix whole_rows() const {
    const comm::phase_scope phase(mesh_.ledger(), "distribute");
    return distribute(mesh_, partition::rows_of(policy_.sparse), rows_, rows_, matrix_entries<T>(edges_),
                      symmetry::one_way, {}, transfer::sharing::trusted);
  }

 private:
  bool adjacency_is_symmetric() const {
    if (!options_.symmetric) options_.symmetric = is_symmetric(mesh_.world(), edges_, threads());
    return *options_.symmetric;
  }
  int threads() const { return transfer::host_threads(mesh_.queue()); }

  mesh<Device> mesh_;
  policy policy_;
  blocking rows_;
  mutable matrix_options options_;
  matrix_entries<double> edges_;
};

}  // namespace partita::graph

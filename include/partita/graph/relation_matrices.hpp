// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The matrices of a graph whose edges have types, one for each relation, or all of them in one.

#include <cmath>
#include <span>
#include <vector>

#include "partita/graph/matrix_entries.hpp"
#include "partita/matrix/sparse.hpp"
#include "partita/partition/policies.hpp"
#include "partita/transfer/distribute.hpp"

namespace partita::graph {

/// Which relations the types of edges are. `both_ways`: for each type r of R, also its inverse, relation R +
/// r with the edges of r turned round.
enum class relation_edges : std::uint8_t { as_stored, both_ways };

/// A_r of each relation r of R: A_r(v, u) is the weight of the edge of type r from u to v, over the sum of
/// the weights of the edges of type r into v. Edges that repeat another of their type add up; the same ends
/// with another type are another edge. Cut as a matrix of the same graph is. Members are collective over its
/// mesh, and make a matrix in each call; what travels: see distribute.
template <class T, class Device>
class relation_matrices {
 public:
  using matrix = sparse<T, dynamic_layout, Device>;

  /// `like`: n x n, whose mesh, layouts and blocks the matrices have, and a transpose where it has one.
  /// `data`: the same on every rank; each rank reads its share of the edges. Collective over the mesh. What
  /// travels: an all-reduce of R n elements; on a reproducible mesh, of weighted edges, as in
  /// weighted_degrees. Throws input_error for data without types of edges; error naming an edge whose weight
  /// is not finite; shape_error naming an edge outside the graph.
  relation_matrices(const matrix& like, const io::dataset& data,
                    relation_edges which = relation_edges::as_stored)
      : like_(like), relations_(data.relations * (which == relation_edges::both_ways ? 2 : 1)) {
    if (data.relations == 0 || data.edge_types.size() != data.edges.size())
      base::throw_error<input_error>({data.name, ": relations need the type of each edge, edge_type.npy"});
    const auto& m = like.mesh();
    const interval mine = comm::share_of(std::ssize(data.edges), m.rank(), m.size());
    for (global_index k = mine.begin; k < mine.end; ++k) {
      const auto e = static_cast<std::size_t>(k);
      const io::edge ends = data.edges[e];
      const double weight = data.edge_weights.empty() ? 1 : data.edge_weights[e];
      entries_.push_back({ends.target * relations_ + data.edge_types[e], ends.source, weight});
      if (which == relation_edges::both_ways)
        entries_.push_back(
            {ends.source * relations_ + data.relations + data.edge_types[e], ends.target, weight});
    }
    data.edges.forget();
    data.edge_weights.forget();
    data.edge_types.forget();
    transfer::require_entries({relations_ * data.vertices, data.vertices}, entries_, 1);
    normalize(data.edge_weights.empty());
  }

  const matrix& like() const { return like_; }
  /// R.
  global_index size() const { return relations_; }
  /// A_r (n x n).
  matrix relation(global_index r) const {
    std::vector<triplet<T>> entries;
    for (const auto& e : entries_)
      if (e.row % relations_ == r) entries.push_back({e.row / relations_, e.col, static_cast<T>(e.value)});
    return made(like_.row_blocking(), like_.col_blocking(), entries);
  }
  /// All of them, one above the other (R n x n): row v R + r is row v of A_r, so that the product with X (n x
  /// f) is, in memory, n rows of A_0 X, A_1 X, ... beside each other (n x R f).
  matrix above_each_other() const {
    std::vector<triplet<T>> entries;
    for (const auto& e : entries_) entries.push_back({e.row, e.col, static_cast<T>(e.value)});
    return made(like_.row_blocking().stacked(relations_), like_.col_blocking(), entries);
  }
  /// All of them side by side (n x R n): column u R + r is column u of A_r, so that it multiplies n rows of
  /// X_0, X_1, ... beside each other (n x R f) to the sum of A_r X_r (n x f).
  matrix side_by_side() const {
    std::vector<triplet<T>> entries;
    for (const auto& e : entries_)
      entries.push_back(
          {e.row / relations_, e.col * relations_ + e.row % relations_, static_cast<T>(e.value)});
    return made(like_.row_blocking(), like_.col_blocking().stacked(relations_), entries);
  }

  /// Each by itself in one (R n x R n): entry (v R + r, u R + r) is (v, u) of A_r. It has a transpose, which
  /// attention reads.
  matrix apart() const {
    std::vector<triplet<T>> entries;
    for (const auto& e : entries_)
      entries.push_back({e.row, e.col * relations_ + e.row % relations_, static_cast<T>(e.value)});
    return made(like_.row_blocking().stacked(relations_), like_.col_blocking().stacked(relations_), entries,
                symmetry::general);
  }

 private:
  /// Each entry over the sum of its row; rows with a sum of 0 are 0.
  void normalize(bool ones) {
    const global_index rows = relations_ * like_.row_blocking().size();
    const std::vector<double> sums = detail::weighted_degrees(like_.mesh().world(), rows, entries_, ones,
                                                              {1, like_.mesh().reproducible()});
    for (auto& e : entries_) {
      const double sum = sums[static_cast<std::size_t>(e.row)];
      e.value = sum > 0 ? e.value / sum : 0;
    }
  }
  matrix made(const blocking& rows, const blocking& cols, const std::vector<triplet<T>>& entries) const {
    return made(rows, cols, entries, transposed(like_).is_stored() ? symmetry::general : symmetry::one_way);
  }
  matrix made(const blocking& rows, const blocking& cols, const std::vector<triplet<T>>& entries,
              symmetry kind) const {
    const comm::phase_scope phase(like_.mesh().ledger(), "distribute");
    return distribute(like_.mesh(), like_.layout(), rows, cols, entries, kind, like_.operand_layout(),
                      transfer::sharing::trusted);
  }

  matrix like_;
  global_index relations_;
  std::vector<triplet<double>> entries_;  ///< of above_each_other
};

}  // namespace partita::graph

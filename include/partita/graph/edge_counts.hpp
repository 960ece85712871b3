// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The edges of a graph, counted, from which policies are compared without distributing a matrix.

#include <algorithm>
#include <atomic>
#include <iterator>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "partita/graph/matrix_entries.hpp"
#include "partita/transfer/entry_checks.hpp"
#include "partita/transfer/entry_routing.hpp"
#include "partita/transfer/tile_counts.hpp"

namespace partita::graph {

/// Counts of the edges of a graph; each rank reads its share of them. Edges that repeat another one count
/// each time. It refers to the dataset, which must outlive it. Collective over `world`, whose ranks have the
/// same data: is_symmetric() and tiles().
class edge_counts {
 public:
  /// Local. `threads` of each rank count.
  edge_counts(const communicator& world, const io::dataset& data, int threads = 1)
      : world_(world), data_(&data), threads_(threads), entries_(world, data) {}

  const io::dataset& data() const { return *data_; }
  const communicator& world() const { return world_; }
  /// Whether edges have weights; and whether this rank has counted one of a vertex to itself, to which A + I
  /// adds.
  bool is_weighted() const { return !data_->edge_weights.empty(); }
  bool has_added_loops() const { return has_added_loops_; }
  /// Whether A = A^T. What travels: see partita::is_symmetric, once.
  bool is_symmetric() const {
    if (!symmetric_) symmetric_ = partita::is_symmetric(world_, entries_, threads_);
    return *symmetric_;
  }
  /// The same, if it has been asked. Local.
  std::optional<bool> known_symmetry() const { return symmetric_; }

  /// tiles() will be asked for these blocks: what is counted next serves them as well. Local.
  void expect(const blocking& vertices) {
    const std::vector<global_index> more = transfer::entry_counts::cuts_of(vertices);
    std::vector<global_index> all;
    std::ranges::set_union(cuts_, more, std::back_inserter(all));
    cuts_ = std::move(all);
  }
  /// This rank's tiles of A, or of A + I `with_loops`, or of the transpose, in a layout that cuts rows and
  /// columns at these blocks. What travels: see transfer::entry_counts, whose all-reduce is made again only
  /// for the transpose, for other loops and for blocks that were not expected. Throws shape_error naming an
  /// edge outside the graph, and error naming a weight that is not finite.
  transfer::tile_counts tiles(mesh_shape shape, layout l, const blocking& vertices, transfer::side of,
                              bool with_loops) {
    std::optional<transfer::entry_counts>& counts = of == transfer::side::straight ? straight_ : transposed_;
    if (with_loops_ != with_loops) {
      straight_.reset();
      transposed_.reset();
      if (!entries_.has_ones())
        transfer::for_entries(entries_, threads_,
                              [](std::size_t, const auto& e) { transfer::require_finite(e); });
      with_loops_ = with_loops;
    }
    if (!counts || !counts->has_cuts_of(vertices)) {
      expect(vertices);
      counts.emplace(world_, cuts_, threads_,
                     [&](int part, const auto& visit) { for_entries(part, of, visit); });
    }
    return counts->tiles(shape, l, vertices);
  }

 private:
  /// visit(row, col) for a thread's part of this rank's entries.
  template <class Visit>
  void for_entries(int part, transfer::side of, const Visit& visit) const {
    const auto part_of = [&](global_index count) {
      const interval mine = comm::share_of(count, world_.rank(), world_.size());
      const interval of_thread = base::part_of({0, mine.size()}, part, threads_);
      return interval{mine.begin + of_thread.begin, mine.begin + of_thread.end};
    };
    const interval edges = part_of(std::ssize(data_->edges)), loops = part_of(data_->vertices);
    const global_index n = data_->vertices;
    const bool with_loops = *with_loops_, straight = of == transfer::side::straight;
    const auto count = [&](const io::edge& e) {
      if (e.source < 0 || e.source >= n || e.target < 0 || e.target >= n)
        base::throw_error<shape_error>(
            {"entry (", e.target, ", ", e.source, ") is outside a matrix of ", matrix_shape{n, n}});
      if (with_loops && e.source == e.target) {
        std::atomic_ref(has_added_loops_).store(true, std::memory_order_relaxed);
        return;
      }
      visit(straight ? e.target : e.source, straight ? e.source : e.target);
    };
    transfer::visit_slices(data_->edges, data_->edges.begin() + edges.begin, edges.size(), count);
    for (global_index v = loops.begin; with_loops && v < loops.end; ++v) visit(v, v);
  }

  communicator world_;
  const io::dataset* data_;
  int threads_;
  matrix_entries<double> entries_;
  mutable std::optional<bool> symmetric_;
  std::vector<global_index> cuts_;
  mutable bool has_added_loops_ = false;
  std::optional<bool> with_loops_;  ///< in what has been counted
  std::optional<transfer::entry_counts> straight_, transposed_;
};

}  // namespace partita::graph

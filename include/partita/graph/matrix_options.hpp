// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How the matrices of a graph are made.

#include <cstdint>
#include <optional>
#include <vector>

#include "partita/base/index.hpp"

namespace partita::graph {

/// A matrix made of the adjacency matrix A, whose entry (v, u) is the weight of the edge from u to v.
enum class propagation_matrix : std::uint8_t {
  gcn_normalized,   ///< D^-1/2 (A + I) D^-1/2; see self_loops
  mean_normalized,  ///< the weighted mean over in-neighbours
  weighted_self,    ///< A + (1 + epsilon) I
  self_loops,       ///< A + I
  whole_rows,       ///< A, its columns not cut
  adjacency,        ///< A
  relations         ///< without entries: like which relation_matrices are cut
};

/// Whether models read only where this matrix has entries, and not the weights of edges.
constexpr bool is_pattern(propagation_matrix of) {
  return of == propagation_matrix::self_loops || of == propagation_matrix::whole_rows ||
         of == propagation_matrix::adjacency;
}

/// What A + I is where A has an entry (v, v): `sum` adds 1 to it, as the formula says; `once` leaves it, and
/// only vertices without a loop are given one of weight 1.
enum class self_loops : std::uint8_t { sum, once };

/// How vertices are partitioned into blocks when no sizes are given.
enum class vertex_blocks : std::uint8_t {
  even,
  balanced  ///< nearly equal numbers of in-edges
};

struct matrix_options {
  vertex_blocks blocks = vertex_blocks::even;
  std::vector<global_index> block_sizes = {};  ///< from a partitioner, as for blocking::given
  self_loops loops = self_loops::sum;          ///< of gcn_normalized
  double epsilon = 0;                          ///< of weighted_self
  /// Whether A = A^T, where the edges have been checked and that is known; otherwise it is found out.
  std::optional<bool> symmetric = {};
};

}  // namespace partita::graph

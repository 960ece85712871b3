#pragma once
/// A partition policy: the mesh axes it may use, a layout of the sparse operand A (n x n) and one of the
/// dense operands X, Y (n x f). Everything that `spmm` does follows from the two layouts.

#include <optional>

#include "partita/partition/layout.hpp"
#include "partita/partition/mesh_shape.hpp"

namespace partita {

template <class SparseLayout, class DenseLayout>
struct policy {
  using sparse_layout = SparseLayout;
  using dense_layout = DenseLayout;
  static constexpr axis_set used = SparseLayout::value.used() | DenseLayout::value.used();
};

// clang-format off
/// 1D block rows.
struct row_1d : policy<layout<axes<axis::row>, axes<>>, layout<axes<axis::row>, axes<>>> { static constexpr const char* name = "row_1d"; };
/// 1.5D: c = depth copies of X, each multiplied by 1/c of A's columns.
struct replicated_1_5d : policy<layout<axes<axis::row>, axes<axis::depth>>, layout<axes<axis::row>, axes<>>> { static constexpr const char* name = "replicated_1_5d"; };
/// 2D grid, as SUMMA has it.
struct grid_2d : policy<layout<axes<axis::row>, axes<axis::col>>, layout<axes<axis::row>, axes<axis::col>>> { static constexpr const char* name = "grid_2d"; };
/// 3D split: a grid for each depth, partial sums reduced over depth.
struct split_3d : policy<layout<axes<axis::row>, axes<axis::col, axis::depth>>, layout<axes<axis::row, axis::depth>, axes<axis::col>>> { static constexpr const char* name = "split_3d"; };
/// Feature columns, A everywhere: tensor parallelism; the sparse product moves nothing.
struct feature_column : policy<layout<axes<>, axes<>>, layout<axes<>, axes<axis::col>>> { static constexpr const char* name = "feature_column"; };
/// Features inside the node (col), rows across nodes (row).
struct feature_row : policy<layout<axes<axis::row>, axes<>>, layout<axes<axis::row>, axes<axis::col>>> { static constexpr const char* name = "feature_row"; };
// clang-format on

template <class... P>
struct policy_list {};

using named_policies = policy_list<row_1d, replicated_1_5d, grid_2d, split_3d, feature_column, feature_row>;

namespace detail {

template <class Visitor, class... P>
void visit_policy(policy_list<P...>, const std::string& name, Visitor visitor) {
  if (((name == P::name && (visitor(P{}), true)) || ...)) return;
  std::string known;
  ((known += (known.empty() ? "" : ", ") + std::string(P::name)), ...);
  throw mesh_error("there is no policy '" + name + "'; the policies are " + known);
}

}  // namespace detail

/// visitor(policy{}) for the named policy called `name`. Throws mesh_error when there is none.
template <class Visitor>
void visit_policy(const std::string& name, Visitor visitor) {
  detail::visit_policy(named_policies{}, name, visitor);
}

/// visitor(policy{}) for every named policy.
template <class Visitor>
void for_each_policy(Visitor visitor) {
  [&]<class... P>(policy_list<P...>) { (visitor(P{}), ...); }(named_policies{});
}

/// Throws mesh_error when `shape` does not fill `ranks` or has ranks on an axis that the policy does not use.
template <class Policy>
void require_mesh(mesh_shape shape, int ranks) {
  if (ranks < 1) throw mesh_error("a mesh needs at least one rank, not " + std::to_string(ranks));
  if (shape.row < 1 || shape.col < 1 || shape.depth < 1)
    throw mesh_error("mesh " + to_string(shape) + " has an axis without ranks");
  if (shape.size() != ranks)
    throw mesh_error("mesh " + to_string(shape) + " has " + std::to_string(shape.size()) + " places for " +
                     std::to_string(ranks) + " ranks");
  for (axis a : all_axes)
    if (shape[a] > 1 && !Policy::used.contains(a))
      throw mesh_error("policy " + std::string(Policy::name) + " does not use the " + name_of(a) +
                       " axis of mesh " + to_string(shape));
}

/// The mesh of `ranks` ranks over the axes of the policy that is nearest to a square or a cube, the longer
/// axes first; with `replication` its depth is that. Throws mesh_error when the replication does not divide
/// the ranks.
template <class Policy>
mesh_shape default_mesh(int ranks, std::optional<int> replication = {}) {
  if (ranks < 1) throw mesh_error("a mesh needs at least one rank, not " + std::to_string(ranks));
  if (replication && (*replication < 1 || ranks % *replication != 0))
    throw mesh_error("replication " + std::to_string(*replication) + " does not divide " +
                     std::to_string(ranks) + " ranks");
  mesh_shape best{0, 0, 0};
  const auto longest = [ranks](axis a) { return Policy::used.contains(a) ? ranks : 1; };
  for (int depth = 1; depth <= longest(axis::depth); ++depth)
    for (int col = 1; col <= longest(axis::col); ++col) {
      if (ranks % (depth * col) != 0 || (replication && depth != *replication)) continue;
      const mesh_shape m{ranks / (depth * col), col, depth};
      if (m.row > longest(axis::row)) continue;
      if (best.row == 0 || m.row + m.col + m.depth < best.row + best.col + best.depth) best = m;
    }
  if (best.row == 0)
    throw mesh_error("policy " + std::string(Policy::name) + " has no mesh of " + std::to_string(ranks) +
                     " ranks with replication " + std::to_string(replication.value_or(1)));
  return best;
}

}  // namespace partita

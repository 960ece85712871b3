#pragma once
/// A sparse matrix together with the policy that multiplies it, as a value whose type does not name the
/// policy: layers are written once and compiled once.

#include <memory>

#include "partita/algebra/spmm.hpp"

namespace partita {

/// Y = A X in the layouts of some policy. Copies share the blocks.
template <class T, class Place>
class graph_operator {
 public:
  using block = tiles<T, Place>;

  graph_operator(partita::mesh<Place> m, blocking rows, blocking cols, cut sparse_cut, cut dense_cut,
                 std::shared_ptr<const block> forward, std::shared_ptr<const block> backward)
      : mesh_(std::move(m)),
        rows_(std::move(rows)),
        cols_(std::move(cols)),
        sparse_(sparse_cut),
        dense_(dense_cut),
        forward_(std::move(forward)),
        backward_(std::move(backward)) {}

  const partita::mesh<Place>& mesh() const { return mesh_; }
  const blocking& row_blocking() const { return rows_; }
  const blocking& col_blocking() const { return cols_; }
  cut sparse_cut() const { return sparse_; }
  cut dense_cut() const { return dense_; }
  const std::shared_ptr<const block>& local() const { return forward_; }

  /// Y = A^T X. No rank talks to another.
  friend graph_operator transposed(const graph_operator& a) {
    return {a.mesh_, a.cols_, a.rows_, a.sparse_, a.dense_, a.backward_, a.forward_};
  }

 private:
  partita::mesh<Place> mesh_;
  blocking rows_, cols_;
  cut sparse_, dense_;
  std::shared_ptr<const block> forward_, backward_;
};

/// A as `Policy` multiplies it.
template <class Policy, class T, class Place>
graph_operator<T, Place> operator_of(const sparse<T, typename Policy::sparse_layout, Place>& a) {
  static_assert(multipliable<typename Policy::sparse_layout, typename Policy::dense_layout>,
                "the sparse and the dense layout of this policy cannot be multiplied");
  return {a.mesh(),
          a.row_blocking(),
          a.col_blocking(),
          Policy::sparse_layout::value,
          Policy::dense_layout::value,
          a.local(),
          transposed(a).local()};
}

}  // namespace partita

#pragma once
/// A sparse matrix cut over a mesh: rows by the row axes of its layout, columns as the rows of the dense
/// operand it multiplies are cut. The columns at (depth, col) are the union over the row axis of the
/// sub-blocks (depth, col).
///
/// 8 x 8 on a mesh of 2 x 2 x 1, grid_2d: rank (row, col) holds
///
///               columns 0 1 | 2 3 | 4 5 | 6 7
///   rows 0..3      (0,0) (0,1) (0,0) (0,1)
///   rows 4..7      (1,0) (1,1) (1,0) (1,1)

#include <memory>

#include "partita/comm/mesh.hpp"
#include "partita/matrix/tiles.hpp"
#include "partita/partition/blocking.hpp"
#include "partita/partition/layout.hpp"

namespace partita {

/// Whether A equals its transpose; `symmetric` saves storing A^T.
enum class structure : std::uint8_t { general, symmetric };

/// The axes that cut A's columns when they follow the rows of the dense operand: A's own, inside A's row
/// axes.
constexpr axis_set column_cut(cut sparse_layout) { return sparse_layout.rows | sparse_layout.cols; }

/// An immutable value handle: copies, and transposed(A), share the blocks.
template <class T, class Layout, class Place>
class sparse {
  static_assert(!Layout::value.rows.contains(axis::col) && !Layout::value.rows.contains(axis::depth) &&
                    !Layout::value.cols.contains(axis::row),
                "a sparse matrix is cut by the row axis in its rows and by col and depth in its columns");

 public:
  using value_type = T;
  using layout = Layout;
  using place = Place;
  using block = tiles<T, Place>;

  /// From this rank's blocks of A and of A^T (the same pointer when A is symmetric).
  sparse(partita::mesh<Place> m, blocking rows, blocking cols, std::shared_ptr<const block> forward,
         std::shared_ptr<const block> backward)
      : mesh_(std::move(m)),
        rows_(std::move(rows)),
        cols_(std::move(cols)),
        forward_(std::move(forward)),
        backward_(std::move(backward)) {}

  const partita::mesh<Place>& mesh() const { return mesh_; }
  extent shape() const { return {rows_.size(), cols_.size()}; }
  /// Cuts of the rows, and of the columns (nested as rows, since they follow the rows of a dense operand).
  const blocking& row_blocking() const { return rows_; }
  const blocking& col_blocking() const { return cols_; }
  /// This rank's tiles.
  const std::shared_ptr<const block>& local() const { return forward_; }

  /// A^T: the blocks stored for it. No rank talks to another.
  friend sparse transposed(const sparse& a) {
    return sparse(a.mesh_, a.cols_, a.rows_, a.backward_, a.forward_);
  }

 private:
  partita::mesh<Place> mesh_;
  blocking rows_;
  blocking cols_;
  std::shared_ptr<const block> forward_;
  std::shared_ptr<const block> backward_;
};

}  // namespace partita

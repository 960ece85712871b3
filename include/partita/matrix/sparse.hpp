// SPDX-License-Identifier: Apache-2.0
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

#include <concepts>
#include <memory>
#include <optional>

#include "partita/comm/mesh.hpp"
#include "partita/matrix/tiles.hpp"
#include "partita/partition/blocking.hpp"
#include "partita/partition/layout.hpp"

namespace partita {

/// What is known about A^T: `symmetric` saves storing it, and so does `one_way`, which has none.
enum class symmetry : std::uint8_t { general, symmetric, one_way };

namespace partition {

/// The axes that cut A's columns when they follow the rows of the dense operand: A's own, inside A's row
/// axes.
constexpr axis_set column_cut(layout sparse_layout) { return sparse_layout.rows | sparse_layout.cols; }

/// Whether a sparse matrix may lie so: the row axis may cut its rows, col and depth its columns.
constexpr bool is_sparse_layout(layout l) {
  return (l.rows - axis::row).empty() && !l.cols.contains(axis::row);
}

}  // namespace partition

/// T: float or double. An immutable value handle: copies, and transposed(A), share the blocks. Every member
/// but layout() throws error where the matrix was moved from. L: which axes cut rows and columns, or
/// dynamic_layout; a static layout converts to a dynamic one, and back with a check.
template <class T, layout L, class Device>
class sparse {
  static_assert(std::same_as<T, float> || std::same_as<T, double>,
                "the values of a matrix are float or double");
  static_assert(L == dynamic_layout || partition::is_sparse_layout(L),
                "a sparse matrix is cut by the row axis in its rows and by col and depth in its columns");

 public:
  using value_type = T;
  using device = Device;
  using block = local::csr_tiles<T, Device>;

  /// From this rank's blocks of A and of A^T (the same pointer when A is symmetric, null for none).
  /// `operand`: the layout in which dense matrices are multiplied that lie elsewhere. Throws shape_error.
  sparse(partita::mesh<Device> m, partita::layout l, std::optional<partita::layout> operand, blocking rows,
         blocking cols, std::shared_ptr<block> forward, std::shared_ptr<block> backward)
      : mesh_(std::move(m)),
        layout_(partition::checked_layout(l, L)),
        operand_(operand),
        rows_(std::move(rows)),
        cols_(std::move(cols)),
        forward_(std::move(forward)),
        backward_(std::move(backward)) {
    if (!partition::is_sparse_layout(l))
      throw_error<shape_error>(
          {"a sparse matrix is cut by the row axis in its rows and by col and depth in its columns, not "
           "with ",
           l});
  }

  /// The same matrix as another type. Throws shape_error when its layout is not L.
  template <partita::layout M>
  requires(M != L) explicit(L != dynamic_layout) sparse(const sparse<T, M, Device>& other)
      : sparse(other.mesh(), other.layout(), other.operand_, other.rows_, other.cols_, other.forward_,
               other.backward_) {}

  const partita::mesh<Device>& mesh() const { return here().mesh_; }
  partita::layout layout() const { return L == dynamic_layout ? layout_ : L; }
  /// Where a product takes dense matrices that A cannot multiply where they lie: the policy's layout, or
  /// none.
  std::optional<partita::layout> operand_layout() const { return operand_; }
  matrix_shape shape() const { return {row_blocking().size(), col_blocking().size()}; }
  /// Cuts of the rows, and of the columns (nested as rows, since they follow the rows of a dense operand).
  const blocking& row_blocking() const { return here().rows_; }
  const blocking& col_blocking() const { return here().cols_; }
  /// Global rows of this rank's block, and global columns of its tile t.
  interval row_range() const { return row_blocking().block(layout().rows, mesh_.at()); }
  interval tile_columns(std::size_t t) const {
    coordinates at = mesh().at();
    at.row = static_cast<int>(t);
    return cols_.block(partition::column_cut(layout()), at);
  }
  /// This rank's tiles.
  std::shared_ptr<const block> local() const { return here().forward_; }
  /// What is stored of A^T.
  symmetry kind() const {
    if (here().backward_ == nullptr) return symmetry::one_way;
    return backward_ == forward_ ? symmetry::symmetric : symmetry::general;
  }

  /// Other values for the entries of this rank's blocks of A and of A^T, each in the order in which they lie;
  /// those of A^T are ignored where it is not stored. Copies of this matrix, transposed(A) and plans see
  /// them. Throws shape_error when there are more or fewer. To assign by entries, see assign_values.
  void assign_local_values(std::span<const T> forward, std::span<const T> backward) {
    const auto assign = [&](block& to, std::span<const T> values) {
      if (values.size() != to.values.size())
        throw_error<shape_error>({"a matrix of ", shape(), " has ", to.values.size(),
                                  " entries on this rank, not ", values.size()});
      to.assign_values(mesh_.queue(), values);
    };
    assign(*here().forward_, forward);
    if (kind() == symmetry::general) assign(*backward_, backward);
  }

  /// A^T: the blocks stored for it. No rank talks to another. Throws error when there are none.
  friend sparse transposed(const sparse& a) {
    if (a.here().backward_ == nullptr)
      throw_error<error>({"the transpose of a matrix of ", a.shape(), " was not stored"});
    return sparse(a.mesh_, a.layout_, a.operand_, a.cols_, a.rows_, a.backward_, a.forward_);
  }

 private:
  /// This matrix, unless it was moved from.
  const sparse& here() const {
    if (forward_ == nullptr) throw error("a matrix was used after it had been moved from");
    return *this;
  }

  template <class, partita::layout, class>
  friend class sparse;

  partita::mesh<Device> mesh_;
  partita::layout layout_;
  std::optional<partita::layout> operand_;
  blocking rows_;
  blocking cols_;
  std::shared_ptr<block> forward_;
  std::shared_ptr<block> backward_;
};

}  // namespace partita

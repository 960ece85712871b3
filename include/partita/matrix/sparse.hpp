// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sparse matrices distributed over a mesh.

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "partita/comm/mesh.hpp"
#include "partita/matrix/tile_analysis.hpp"
#include "partita/matrix/tiles.hpp"
#include "partita/partition/blocking.hpp"
#include "partita/partition/layout.hpp"
#include "partita/partition/policies.hpp"
#include "partita/partition/sparse_blocks.hpp"

namespace partita {

/// How A^T is stored: separately (`general`), as A itself (`symmetric`), or not at all (`one_way`): products
/// with A^T then read A's blocks the other way, in half the memory; operations on the entries of A^T throw.
enum class symmetry : std::uint8_t { general, symmetric, one_way };

/// A sparse matrix distributed over a mesh: rows by the row axes of its layout, columns like the rows of the
/// dense operand. The columns at (depth, col) are the union of sub-blocks (depth, col) over the row axis.
/// Example, 8 x 8 on a 2 x 2 x 1 mesh with grid_2d; each pair is the (row, col) rank that owns the tile:
///
///     columns       0 1   2 3   4 5   6 7
///     rows 0..3   (0,0) (0,1) (0,0) (0,1)
///     rows 4..7   (1,0) (1,1) (1,0) (1,1)
///
/// T: float or double. L: the axes that partition the rows and columns, or dynamic_layout; a static layout
/// converts to a dynamic one, and back with a check. Has shared-handle semantics: copies and transposed(A)
/// share the blocks; transposed(A) of a one_way matrix has the blocks of A alone. Every member except
/// layout() throws error on a moved-from matrix.
template <class T, layout L, class Device>
class sparse {
  static_assert(std::same_as<T, float> || std::same_as<T, double>,
                "the values of a matrix are float or double");
  static_assert(
      L == dynamic_layout || partition::is_sparse_layout(L),
      "the row axis may partition only the rows of a sparse matrix, col and depth only its columns");

 public:
  using value_type = T;
  using device = Device;
  using block = local::csr_tiles<T, Device>;
  using analysis = local::tile_analysis<T, Device>;

  /// From this rank's blocks of A and of A^T (the same pointer when A is symmetric; one of them null when
  /// that matrix is not stored). `operand`: the layout to which products redistribute dense matrices that A
  /// cannot multiply in place. Throws shape_error.
  sparse(partita::mesh<Device> m, partita::layout l, std::optional<partita::layout> operand, blocking rows,
         blocking cols, std::shared_ptr<block> forward, std::shared_ptr<block> backward)
      : sparse(std::move(m), l, operand, std::move(rows), std::move(cols), nullptr, nullptr, {}) {
    partition::require_sparse(mesh_.shape(), l, rows_, cols_);
    const bool same = forward == backward;
    if (forward != nullptr) forward_ = analysed(std::move(forward));
    backward_ = same ? forward_ : backward == nullptr ? nullptr : analysed(std::move(backward));
  }

  /// A matrix over borrowed arrays on Device, without a copy: this rank's tiles of A and of A^T (the same
  /// arrays when A is symmetric, none for a one_way matrix). Tile t covers the rows row_range()
  /// and the columns tile_columns(t); there is a single tile when the row axes have size 1. The arrays must
  /// not change while the matrix, its copies or plans exist. Only products allocate: receive buffers, and
  /// copies of A when its blocks move along col or only the needed rows of X are exchanged.
  ///
  /// Local; no communication. Whether A^T is the transpose of A is not checked. Throws shape_error naming
  /// inconsistent sizes, decreasing offsets, a column outside its tile or not greater than its predecessor,
  /// more entries than mesh::tile_entries(), device columns that are not 16-byte aligned, and whatever the
  /// constructor rejects.
  static sparse view(const partita::mesh<Device>& m, partita::layout l,
                     std::optional<partita::layout> operand, const blocking& rows, const blocking& cols,
                     local::csr_arrays<T> a, local::csr_arrays<T> transpose = {}) {
    partition::require_sparse(m.shape(), l, rows, cols);
    const bool same = a.offsets.data() == transpose.offsets.data() &&
                      a.columns.data() == transpose.columns.data() &&
                      a.values.data() == transpose.values.data() && rows == cols;
    std::shared_ptr<block> forward, backward;
    if (same || !transpose.offsets.empty()) backward = viewed(m, l, cols, rows, std::move(transpose));
    forward = same ? backward : viewed(m, l, rows, cols, std::move(a));
    return sparse(m, l, operand, rows, cols, std::move(forward), std::move(backward));
  }
  /// In the layout of a policy, with even blocks. Throws mesh_error as distribute does.
  static sparse view(const partita::mesh<Device>& m, const policy& p, matrix_shape shape,
                     local::csr_arrays<T> a, local::csr_arrays<T> transpose = {}) {
    require_mesh(p, m.shape(), m.size());
    return view(m, p.sparse, p.dense, blocking::even(shape.rows, m.shape(), nesting::rows),
                blocking::even(shape.cols, m.shape(), nesting::rows), std::move(a), std::move(transpose));
  }

  /// The same matrix as another type. Throws shape_error when its layout is not L.
  template <partita::layout M>
  requires(M != L) explicit(L != dynamic_layout) sparse(const sparse<T, M, Device>& other)
      : sparse(other.mesh(), other.layout(), other.operand_, other.rows_, other.cols_, other.forward_,
               other.backward_, {}) {}

  const partita::mesh<Device>& mesh() const { return here().mesh_; }
  partita::layout layout() const { return L == dynamic_layout ? layout_ : L; }
  /// The layout to which products redistribute dense matrices that A cannot multiply in place: the policy's,
  /// or none.
  std::optional<partita::layout> operand_layout() const { return operand_; }
  matrix_shape shape() const { return {row_blocking().size(), col_blocking().size()}; }
  /// Blockings of the rows and of the columns (the latter with row nesting, like the rows of the dense
  /// operand).
  const blocking& row_blocking() const { return here().rows_; }
  const blocking& col_blocking() const { return here().cols_; }
  /// Global rows of this rank's block, and global columns of its tile t.
  interval row_range() const { return row_blocking().block(layout().rows, mesh_.at()); }
  interval tile_columns(std::size_t t) const {
    return partition::tile_columns(layout(), cols_, mesh().at(), t);
  }
  /// Whether this rank's tiles are stored; not so in transposed(A) of a one_way matrix A, whose products read
  /// the tiles of A.
  bool is_stored() const { return here().forward_ != nullptr; }
  /// This matrix. Throws error naming the operation and the shape unless is_stored().
  const sparse& stored_for(const char* operation) const {
    if (!is_stored())
      base::throw_error<error>(
          {operation, ": a matrix of ", shape(),
           " has no entries of its own: it is the transpose of one that was distributed as "
           "symmetry::one_way, which only products can read the other way; distribute that as "
           "symmetry::general"});
    return *this;
  }
  /// This rank's tiles. Throws error unless is_stored().
  std::shared_ptr<const block> local() const {
    const auto& found = stored_for("local").forward_;
    return {found, &found->tiles()};
  }
  /// What plans find out about them, which this matrix and its copies share. Throws error unless is_stored().
  std::shared_ptr<analysis> analysed() const { return stored_for("analysed").forward_; }
  /// How the transpose is stored.
  symmetry kind() const {
    if (!is_stored() || backward_ == nullptr) return symmetry::one_way;
    return backward_ == forward_ ? symmetry::symmetric : symmetry::general;
  }

  /// Replaces the values of this rank's blocks of A and of A^T, each in storage order; those of a block that
  /// is not stored, or is the other one, are ignored. Copies of this matrix, transposed(A) and plans see the
  /// new values. Throws shape_error for the wrong number of values, and error for a view, where factors are
  /// stored (see transfer::scaled_pattern), and while a plan with row_exchange::cover has copies of values on
  /// other ranks. To assign by (row, column), see assign_values.
  void assign_local_values(std::span<const T> forward, std::span<const T> backward) {
    for (const auto& of : {forward_, backward_})
      if (of != nullptr && of->has_copies())
        base::throw_error<error>(
            {"a matrix of ", shape(),
             " has a product with row_exchange::cover, for which other ranks have copies "
             "of its values; these cannot be replaced before the product is gone"});
    const auto assign = [&](analysis& of, std::span<const T> values) {
      const block& to = of.tiles();
      if (!to.viewed.offsets.empty())
        base::throw_error<error>(
            {"a matrix of ", shape(), " is a view of its caller's arrays, whose values cannot be replaced"});
      if (to.form.factored)
        base::throw_error<error>(
            {"a matrix of ", shape(),
             " stores factors of its rows and columns, and no values that could be replaced; "
             "distribute its entries with their values"});
      if (values.size() != to.values.size())
        base::throw_error<shape_error>({"a matrix of ", shape(), " has ", to.values.size(),
                                        " entries on this rank, not ", values.size()});
      of.assign_values(values);
    };
    if (is_stored()) assign(*forward_, forward);
    if (backward_ != nullptr && backward_ != forward_) assign(*backward_, backward);
  }

  /// A^T, with the stored transpose, or none of its own if A is one_way; see spmm_plan. Its transpose is A.
  /// Local; no communication.
  friend sparse transposed(const sparse& a) {
    return sparse(a.here().mesh_, a.layout_, a.operand_, a.cols_, a.rows_, a.backward_, a.forward_, {});
  }

 private:
  struct shared {};
  /// With the analyses of another matrix.
  sparse(partita::mesh<Device> m, partita::layout l, std::optional<partita::layout> operand, blocking rows,
         blocking cols, std::shared_ptr<analysis> forward, std::shared_ptr<analysis> backward, shared)
      : mesh_(std::move(m)),
        layout_(partition::checked_layout(l, L)),
        operand_(operand),
        rows_(std::move(rows)),
        cols_(std::move(cols)),
        forward_(std::move(forward)),
        backward_(std::move(backward)) {}

  std::shared_ptr<analysis> analysed(std::shared_ptr<block> tiles) const {
    const std::size_t own = layout_.rows.contains(axis::row) ? static_cast<std::size_t>(mesh_.at().row) : 0;
    return std::make_shared<analysis>(mesh_.queue(), std::move(tiles), own, mesh_.tile_entries());
  }
  static std::shared_ptr<block> viewed(const partita::mesh<Device>& m, partita::layout l,
                                       const blocking& rows, const blocking& cols,
                                       local::csr_arrays<T> arrays) {
    if (device_memory_of(m.queue()) && reinterpret_cast<std::uintptr_t>(arrays.columns.data()) % 16 != 0)
      throw shape_error("the columns of a sparse block on a device are not 16 bytes aligned");
    std::vector<local_index> widths;
    for (const interval c : partition::tile_columns(l, cols, m.at()))
      widths.push_back(base::to_local(c.size(), "the number of columns of a sparse tile"));
    return std::make_shared<block>(local::view_csr_tiles<T, Device>(
        m.queue(), base::to_local(rows.block(l.rows, m.at()).size(), "the number of rows of a sparse block"),
        std::move(widths), std::move(arrays), m.tile_entries()));
  }
  /// This matrix; throws if it was moved from.
  const sparse& here() const {
    if (forward_ == nullptr && backward_ == nullptr)
      throw error("a matrix was used after it had been moved from");
    return *this;
  }

  template <class, partita::layout, class>
  friend class sparse;

  partita::mesh<Device> mesh_;
  partita::layout layout_;
  std::optional<partita::layout> operand_;
  blocking rows_;
  blocking cols_;
  std::shared_ptr<analysis> forward_;
  std::shared_ptr<analysis> backward_;
};

}  // namespace partita

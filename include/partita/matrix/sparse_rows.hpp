// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sparse feature matrices with whole rows on each rank.

#include <memory>
#include <utility>
#include <vector>

#include "partita/comm/mesh.hpp"
#include "partita/matrix/tiles.hpp"
#include "partita/partition/blocking.hpp"
#include "partita/partition/layout.hpp"

namespace partita {

/// X (n x f), with rows partitioned over all ranks as in vertex_rows and whole columns: features with few
/// nonzeros. Stored in both CSR and CSC, so that X W and X^T G are local sparse products. Matrices made by
/// like() share the pattern. Move-only. Local; no communication.
template <class T, class Device>
class sparse_rows {
 public:
  using value_type = T;

  /// `entries`: the nonzeros of this rank's rows, with global indices; duplicates are summed. Throws
  /// shape_error when the rows or columns exceed the local index range.
  sparse_rows(const partita::mesh<Device>& m, const blocking& rows, global_index columns,
              std::vector<triplet<T>> entries)
      : mesh_(m), rows_(rows), row_range_(rows.block(vertex_rows.rows, m.at())), columns_{0, columns} {
    by_rows_ = stored(row_range_, columns_, entries);
    for (triplet<T>& e : entries) std::swap(e.row, e.col);
    by_columns_ = stored(columns_, row_range_, std::move(entries));
  }
  /// A matrix with this number of nonzeros on this rank, without storing them: products can be planned, and
  /// asked what they move. Memory for them is allocated, but neither written nor read. Throws as above.
  sparse_rows(const partita::mesh<Device>& m, const blocking& rows, global_index columns,
              std::size_t nonzeros)
      : mesh_(m), rows_(rows), row_range_(rows.block(vertex_rows.rows, m.at())), columns_{0, columns} {
    by_rows_ = counted(row_range_, columns_, nonzeros);
    by_columns_ = counted(columns_, row_range_, nonzeros);
  }

  /// The same pattern with uninitialised values of its own.
  sparse_rows like() const {
    sparse_rows x(*this, 0);
    x.row_values_ = buffer<T, Device>(mesh_.queue(), by_rows_->nonzeros);
    x.column_values_ = buffer<T, Device>(mesh_.queue(), by_columns_->nonzeros);
    return x;
  }

  const partita::mesh<Device>& mesh() const { return mesh_; }
  matrix_shape shape() const { return {rows_.size(), columns_.size()}; }
  const blocking& row_blocking() const { return rows_; }
  /// Global rows of this rank's block.
  interval row_range() const { return row_range_; }

  /// The parts of this rank's block (n/P, f) and of its transpose (f, n/P), by ascending rows.
  local::csr_slices<T> parts() const { return parts_of(*by_rows_, row_values_); }
  local::csr_slices<T> transposed_parts() const { return parts_of(*by_columns_, column_values_); }

  /// The values of a matrix made by like(), in the order of parts() and of transposed_parts(); those of a
  /// part start at part.values_in(values.data(), 1).
  std::span<T> row_values() { return row_values_.span(); }
  std::span<T> column_values() { return column_values_.span(); }

 private:
  sparse_rows(const sparse_rows& x, int)
      : mesh_(x.mesh_),
        rows_(x.rows_),
        row_range_(x.row_range_),
        columns_(x.columns_),
        by_rows_(x.by_rows_),
        by_columns_(x.by_columns_) {}

  std::shared_ptr<const local::csr_tiles<T, Device>> stored(interval rows, interval columns,
                                                            std::vector<triplet<T>> entries) const {
    return std::make_shared<const local::csr_tiles<T, Device>>(
        local::make_csr_tiles<T, Device>(mesh_.queue(), rows, std::span<const interval>(&columns, 1),
                                         std::move(entries), mesh_.tile_entries()));
  }
  std::shared_ptr<const local::csr_tiles<T, Device>> counted(interval rows, interval columns,
                                                             std::size_t nonzeros) const {
    local::tile_shape shape;
    shape.rows = base::to_local(rows.size(), "the number of rows of a sparse block");
    shape.widths = {base::to_local(columns.size(), "the number of columns of a sparse tile")};
    shape.nonzeros = nonzeros;
    shape.entries_of_parts = {
        base::to_local(static_cast<global_index>(nonzeros), "the number of nonzeros of a part")};
    return std::make_shared<const local::csr_tiles<T, Device>>(mesh_.queue(), std::move(shape),
                                                               local::needed_rows{});
  }
  static local::csr_slices<T> parts_of(const local::csr_tiles<T, Device>& x, const buffer<T, Device>& own) {
    return x.tile_shape::parts(0, x.located(), own.size() > 0 ? own.data() : x.values.data());
  }

  partita::mesh<Device> mesh_;
  blocking rows_;
  interval row_range_, columns_;
  std::shared_ptr<const local::csr_tiles<T, Device>> by_rows_, by_columns_;
  buffer<T, Device> row_values_, column_values_;  ///< if not shared with the tiles
};

}  // namespace partita

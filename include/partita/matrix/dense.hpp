#pragma once
/// A dense matrix cut over a mesh. Each rank holds one row-major block, whose place follows from the layout
/// alone.

#include <utility>

#include "partita/comm/mesh.hpp"
#include "partita/local/view.hpp"
#include "partita/partition/blocking.hpp"
#include "partita/partition/layout.hpp"

namespace partita {

/// T: float or double. L: which axes cut rows and columns, or dynamic_layout. Device: where the block lives.
/// Move-only; a static layout converts to a dynamic one, and back with a check.
template <class T, layout L, class Device>
class dense {
 public:
  using value_type = T;
  using device = Device;

  /// Uninitialised, with even blocks. No rank talks to another.
  dense(partita::mesh<Device> m, matrix_shape shape) requires(L != dynamic_layout)
      : dense(std::move(m), L, shape) {}
  dense(partita::mesh<Device> m, partita::layout l, matrix_shape shape)
      : dense(m, l, blocking::even(shape.rows, m.shape(), nesting::rows),
              blocking::even(shape.cols, m.shape(), nesting::cols)) {}

  /// Uninitialised, cut where the blockings say. Throws shape_error for blockings of another mesh, and for a
  /// layout that is not L where that is static.
  dense(partita::mesh<Device> m, blocking rows, blocking cols) requires(L != dynamic_layout)
      : dense(std::move(m), L, std::move(rows), std::move(cols)) {}
  dense(partita::mesh<Device> m, partita::layout l, blocking rows, blocking cols)
      : dense(std::move(m), l, std::move(rows), std::move(cols), std::span<T>()) {
    owned_ = buffer<T, Device>(mesh_.queue(), block_size());
    values_ = owned_.span();
  }

  /// Over memory that somebody else owns and keeps alive: this rank's block, row-major and without gaps.
  /// Throws shape_error also when `block` has another size.
  static dense view(partita::mesh<Device> m, partita::layout l, blocking rows, blocking cols,
                    std::span<T> block) {
    dense x(std::move(m), l, std::move(rows), std::move(cols), block);
    if (block.size() != x.block_size())
      throw shape_error("a matrix of " + to_string(x.shape()) + " has a block of " +
                        std::to_string(x.block_size()) + " elements here, not of " +
                        std::to_string(block.size()));
    return x;
  }

  /// Takes the block of a matrix of another type. Throws shape_error when its layout is not L.
  template <partita::layout M>
  requires(M != L) explicit(L != dynamic_layout) dense(dense<T, M, Device>&& other)
      : mesh_(other.mesh_),
        layout_(partition::checked_layout<L>(other.layout())),
        rows_(other.rows_),
        cols_(other.cols_),
        values_(other.values_),
        owned_(std::move(other.owned_)) {}

  const partita::mesh<Device>& mesh() const { return mesh_; }
  partita::layout layout() const { return L == dynamic_layout ? layout_ : L; }
  matrix_shape shape() const { return {rows_.size(), cols_.size()}; }
  const blocking& row_blocking() const { return rows_; }
  const blocking& col_blocking() const { return cols_; }

  /// Global rows and columns of this rank's block.
  interval row_range() const { return rows_.block(layout().rows, mesh_.at()); }
  interval col_range() const { return cols_.block(layout().cols, mesh_.at()); }

  /// This rank's block, row-major and without gaps.
  matrix_view<T> local() { return view_of(values_.data()); }
  matrix_view<const T> local() const { return view_of<const T>(values_.data()); }
  std::span<T> values() { return values_; }
  std::span<const T> values() const { return values_; }

 private:
  template <class, partita::layout, class>
  friend class dense;

  dense(partita::mesh<Device> m, partita::layout l, blocking rows, blocking cols, std::span<T> block)
      : mesh_(std::move(m)),
        layout_(partition::checked_layout<L>(l)),
        rows_(std::move(rows)),
        cols_(std::move(cols)),
        values_(block) {
    for (const blocking* b : {&rows_, &cols_})
      if (!(b->shape() == mesh_.shape()))
        throw shape_error("blockings of mesh " + to_string(b->shape()) + " given to a matrix on mesh " +
                          to_string(mesh_.shape()));
  }
  std::size_t block_size() const {
    const local_index r = to_local(row_range().size(), "the number of rows of a local block");
    const local_index c = to_local(col_range().size(), "the number of columns of a local block");
    return static_cast<std::size_t>(r) * static_cast<std::size_t>(c);
  }
  template <class U>
  matrix_view<U> view_of(U* data) const {
    const auto cols = static_cast<local_index>(col_range().size());
    return {data, static_cast<local_index>(row_range().size()), cols, cols};
  }

  partita::mesh<Device> mesh_;
  partita::layout layout_;
  blocking rows_;
  blocking cols_;
  std::span<T> values_;
  buffer<T, Device> owned_;  ///< empty in a view
};

}  // namespace partita

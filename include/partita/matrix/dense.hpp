#pragma once
/// A dense matrix cut over a mesh. Each rank holds one row-major block, whose place follows from the layout
/// alone.

#include <utility>

#include "partita/comm/mesh.hpp"
#include "partita/local/view.hpp"
#include "partita/partition/blocking.hpp"
#include "partita/partition/layout.hpp"

namespace partita {

/// T: float or double. Layout: which axes cut rows and columns. Place: where the block lives. Move-only.
template <class T, class Layout, class Place>
class dense {
 public:
  using value_type = T;
  using layout = Layout;
  using place = Place;

  /// Uninitialised, with even blocks. No rank talks to another.
  dense(partita::mesh<Place> m, extent shape)
      : dense(m, blocking::even(shape.rows, m.shape(), nesting::rows),
              blocking::even(shape.cols, m.shape(), nesting::cols)) {}

  /// Uninitialised, cut where the blockings say.
  dense(partita::mesh<Place> m, blocking rows, blocking cols)
      : mesh_(std::move(m)), rows_(std::move(rows)), cols_(std::move(cols)) {
    if (!(rows_.shape() == mesh_.shape()) || !(cols_.shape() == mesh_.shape()))
      throw shape_error("blockings of mesh " + to_string(rows_.shape()) + " given to a matrix on mesh " +
                        to_string(mesh_.shape()));
    const local_index r = narrow(row_range().size(), "the number of rows of a local block");
    const local_index c = narrow(col_range().size(), "the number of columns of a local block");
    data_ = buffer<T, Place>(mesh_.queue(), static_cast<std::size_t>(r) * static_cast<std::size_t>(c));
  }

  const partita::mesh<Place>& mesh() const { return mesh_; }
  extent shape() const { return {rows_.size(), cols_.size()}; }
  const blocking& row_blocking() const { return rows_; }
  const blocking& col_blocking() const { return cols_; }

  /// Global rows and columns of this rank's block.
  interval row_range() const { return rows_.block(Layout::value.rows, mesh_.at()); }
  interval col_range() const { return cols_.block(Layout::value.cols, mesh_.at()); }

  /// This rank's block, row-major and without gaps.
  matrix_view<T> local() { return view_of(data_.data()); }
  matrix_view<const T> local() const { return view_of(data_.data()); }
  std::span<T> values() { return data_.span(); }
  std::span<const T> values() const { return data_.span(); }

 private:
  template <class U>
  matrix_view<U> view_of(U* data) const {
    const auto cols = static_cast<local_index>(col_range().size());
    return {data, static_cast<local_index>(row_range().size()), cols, cols};
  }

  partita::mesh<Place> mesh_;
  blocking rows_;
  blocking cols_;
  buffer<T, Place> data_;
};

}  // namespace partita

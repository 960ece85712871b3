// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A dense matrix cut over a mesh. Each rank holds one row-major block, whose place follows from the layout
/// alone.

#include <concepts>
#include <utility>

#include "partita/comm/mesh.hpp"
#include "partita/local/view.hpp"
#include "partita/partition/blocking.hpp"
#include "partita/partition/layout.hpp"

namespace partita {

namespace detail {

/// Whether a matrix was moved from, which is all that can then be asked of it.
class moved_from {
 public:
  moved_from() = default;
  moved_from(moved_from&& other) noexcept : gone_(std::exchange(other.gone_, true)) {}
  moved_from& operator=(moved_from&& other) noexcept {
    gone_ = std::exchange(other.gone_, true);
    return *this;
  }
  /// Throws error where it was.
  void refuse() const {
    if (gone_) throw error("a matrix was used after it had been moved from");
  }

 private:
  bool gone_ = false;
};

/// A dense matrix whatever its type says of the layout, so that this is compiled once for all of them. Every
/// member throws error where the matrix was moved from.
template <class T, class Device>
class dense_block {
 public:
  const partita::mesh<Device>& mesh() const { return here().mesh_; }
  matrix_shape shape() const { return {row_blocking().size(), col_blocking().size()}; }
  const blocking& row_blocking() const { return here().rows_; }
  const blocking& col_blocking() const { return here().cols_; }

  /// Global rows and columns of this rank's block.
  interval row_range() const { return row_blocking().block(layout_.rows, mesh_.at()); }
  interval col_range() const { return col_blocking().block(layout_.cols, mesh_.at()); }

  /// This rank's block, row-major and without gaps.
  matrix_view<T> local() { return view_of(values_.data()); }
  matrix_view<const T> local() const { return view_of<const T>(values_.data()); }
  std::span<T> values() {
    moved_.refuse();
    return values_;
  }
  std::span<const T> values() const { return here().values_; }

 protected:
  dense_block(const partita::mesh<Device>& m, partita::layout l, const blocking& rows, const blocking& cols)
      : dense_block(m, l, rows, cols, std::span<T>()) {
    owned_ = base::with_memory_for("a dense matrix", {rows_.size(), cols_.size()},
                                   [&] { return buffer<T, Device>(mesh_.queue(), block_size()); });
    values_ = owned_.span();
  }
  dense_block(const partita::mesh<Device>& m, partita::layout l, const blocking& rows, const blocking& cols,
              std::span<T> block)
      : mesh_(m), layout_(l), rows_(rows), cols_(cols), values_(block) {
    for (const blocking* b : {&rows_, &cols_})
      if (!(b->shape() == mesh_.shape()))
        throw_error<shape_error>(
            {"blockings of mesh ", b->shape(), " given to a matrix on mesh ", mesh_.shape()});
  }
  dense_block(dense_block&& other, partita::layout l)
      : mesh_(other.mesh()),
        layout_(l),
        rows_(other.rows_),
        cols_(other.cols_),
        values_(other.values_),
        owned_(std::move(other.owned_)),
        moved_(std::move(other.moved_)) {}
  dense_block(dense_block&&) noexcept = default;
  dense_block& operator=(dense_block&&) noexcept = default;
  ~dense_block() = default;

  void require_size(std::size_t elements) const {
    if (elements != block_size())
      throw_error<shape_error>(
          {"a matrix of ", shape(), " has a block of ", block_size(), " elements here, not of ", elements});
  }
  partita::layout given_layout() const { return layout_; }

 private:
  /// This matrix, unless it was moved from.
  const dense_block& here() const {
    moved_.refuse();
    return *this;
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
  moved_from moved_;
};

}  // namespace detail

/// T: float or double. L: which axes cut rows and columns, or dynamic_layout. Device: where the block lives.
/// Move-only; a static layout converts to a dynamic one, and back with a check. Throws error naming its shape
/// where a block does not fit into memory, and where a matrix is used that was moved from.
template <class T, layout L, class Device>
class dense : public detail::dense_block<T, Device> {
  static_assert(std::same_as<T, float> || std::same_as<T, double>,
                "the values of a matrix are float or double");
  static_assert(L == dynamic_layout || partition::is_layout(L),
                "an axis cuts the rows of a layout or its columns, not both");
  using block = detail::dense_block<T, Device>;

 public:
  using value_type = T;
  using device = Device;

  /// Uninitialised, with even blocks. No rank talks to another.
  dense(const partita::mesh<Device>& m, matrix_shape shape) requires(L != dynamic_layout)
      : dense(m, L, shape) {}
  dense(const partita::mesh<Device>& m, partita::layout l, matrix_shape shape)
      : dense(m, l, blocking::even(shape.rows, m.shape(), nesting::rows),
              blocking::even(shape.cols, m.shape(), nesting::cols)) {}

  /// Uninitialised, cut where the blockings say. Throws shape_error for blockings of another mesh, and for a
  /// layout that is not L where that is static.
  dense(const partita::mesh<Device>& m, const blocking& rows,
        const blocking& cols) requires(L != dynamic_layout)
      : dense(m, L, rows, cols) {}
  dense(const partita::mesh<Device>& m, partita::layout l, const blocking& rows, const blocking& cols)
      : block(m, partition::checked_layout(l, L), rows, cols) {}

  /// Over memory that somebody else owns and keeps alive: this rank's block, row-major and without gaps.
  /// Throws shape_error also when `block` has another size.
  static dense view(const partita::mesh<Device>& m, partita::layout l, const blocking& rows,
                    const blocking& cols, std::span<T> block) {
    dense x(m, l, rows, cols, block);
    x.require_size(block.size());
    return x;
  }

  /// Takes the block of a matrix of another type. Throws shape_error when its layout is not L.
  template <partita::layout M>
  requires(M != L) explicit(L != dynamic_layout) dense(dense<T, M, Device>&& other)
      : block(std::move(other), partition::checked_layout(other.layout(), L)) {}

  partita::layout layout() const { return L == dynamic_layout ? this->given_layout() : L; }

 private:
  dense(const partita::mesh<Device>& m, partita::layout l, const blocking& rows, const blocking& cols,
        std::span<T> values)
      : block(m, partition::checked_layout(l, L), rows, cols, values) {}
};

}  // namespace partita

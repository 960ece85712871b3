// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Dense matrices distributed over a mesh.

#include <concepts>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "partita/base/bfloat16.hpp"
#include "partita/comm/mesh.hpp"
#include "partita/local/view.hpp"
#include "partita/partition/blocking.hpp"
#include "partita/partition/layout.hpp"

namespace partita {

namespace local::detail {

/// Whether a matrix has been moved from. Its other members then throw.
class moved_from {
 public:
  moved_from() = default;
  moved_from(moved_from&& other) noexcept : gone_(std::exchange(other.gone_, true)) {}
  moved_from& operator=(moved_from&& other) noexcept {
    gone_ = std::exchange(other.gone_, true);
    return *this;
  }
  /// Throws error if so.
  void refuse() const {
    if (gone_) throw error("a matrix was used after it had been moved from");
  }

 private:
  bool gone_ = false;
};

/// The memory of a block: a contiguous range, or a view that carries its shape and row stride; of const
/// elements if it is only to be read.
template <class T>
struct given_block {
  given_block(std::span<T> elements) : values(elements), writable(elements.data()) {}
  given_block(std::span<const T> elements) : values(elements) {}
  given_block(matrix_view<T> block) : given_block(matrix_view<const T>(block)) { writable = block.data; }
  given_block(matrix_view<const T> block)
      : values(block.data, static_cast<std::size_t>(block.rows) * static_cast<std::size_t>(block.cols)),
        layout(block) {}
  template <class Range>
  requires(std::is_convertible_v<Range&, std::span<const T>>) given_block(Range& elements)
      : values(elements) {
    if constexpr (std::is_convertible_v<Range&, std::span<T>>) writable = std::span<T>(elements).data();
  }

  std::span<const T> values;
  T* writable = nullptr;
  std::optional<matrix_view<const T>> layout;
};

/// The layout-independent part of dense, instantiated once for all layouts. Every member throws error on a
/// moved-from matrix.
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

  /// This rank's block, row-major and contiguous. A view that may only be read throws error unless it is
  /// const here.
  matrix_view<T> local() { return view_of(values().data()); }
  matrix_view<const T> local() const { return view_of(values_.data()); }
  std::span<T> values() {
    here().require_writable();
    return {writable_, values_.size()};
  }
  std::span<const T> values() const { return here().values_; }

 protected:
  dense_block(const partita::mesh<Device>& m, partita::layout l, const blocking& rows, const blocking& cols)
      : dense_block(m, l, rows, cols, given_block<T>(std::span<T>())) {
    owned_ = base::with_memory_for("a dense matrix", {rows_.size(), cols_.size()},
                                   [&] { return buffer<T, Device>(mesh_.queue(), block_size()); });
    values_ = std::as_const(owned_).span();
    writable_ = owned_.data();
  }
  dense_block(const partita::mesh<Device>& m, partita::layout l, const blocking& rows, const blocking& cols,
              const given_block<T>& block, std::shared_ptr<const void> owner = nullptr)
      : mesh_(m),
        layout_(l),
        rows_(rows),
        cols_(cols),
        values_(block.values),
        writable_(block.writable),
        owner_(std::move(owner)) {
    for (const blocking* b : {&rows_, &cols_})
      if (!(b->shape() == mesh_.shape()))
        base::throw_error<shape_error>(
            {"blockings of mesh ", b->shape(), " given to a matrix on mesh ", mesh_.shape()});
  }
  dense_block(dense_block&& other, partita::layout l)
      : mesh_(other.mesh()),
        layout_(l),
        rows_(other.rows_),
        cols_(other.cols_),
        values_(other.values_),
        writable_(other.writable_),
        owned_(std::move(other.owned_)),
        owner_(std::move(other.owner_)),
        moved_(std::move(other.moved_)) {}
  dense_block(dense_block&&) noexcept = default;
  dense_block& operator=(dense_block&&) noexcept = default;
  ~dense_block() = default;

  /// Throws shape_error unless the memory matches this rank's block.
  void require_fit(const given_block<T>& given) const {
    const auto rows = row_range().size(), cols = col_range().size();
    const matrix_shape here{rows, cols};
    if (given.layout && (given.layout->rows != rows || given.layout->cols != cols))
      base::throw_error<shape_error>({"a matrix of ", shape(), " has a block of ", here, " here, not of ",
                                      matrix_shape{given.layout->rows, given.layout->cols}});
    if (given.values.size() != block_size())
      base::throw_error<shape_error>({"a matrix of ", shape(), " has a block of ", here, ", ", block_size(),
                                      " elements, here, not of ", given.values.size()});
    if (given.layout && rows > 1 && cols > 0 && given.layout->row_stride != cols)
      base::throw_error<shape_error>({"a matrix of ", shape(), " cannot view a block of ", here,
                                      " whose rows are ", given.layout->row_stride,
                                      " elements apart: its rows have no gaps"});
    if (block_size() > 0 && given.values.data() == nullptr)
      base::throw_error<shape_error>(
          {"a matrix of ", shape(), " was given a null pointer for its block of ", here});
  }
  partita::layout given_layout() const { return layout_; }

 private:
  /// This matrix; throws if it was moved from.
  const dense_block& here() const {
    moved_.refuse();
    return *this;
  }
  void require_writable() const {
    if (writable_ == nullptr && !values_.empty())
      base::throw_error<error>({"a matrix of ", shape(), " is a view that may only be read"});
  }
  std::size_t block_size() const {
    const local_index r = base::to_local(row_range().size(), "the number of rows of a local block");
    const local_index c = base::to_local(col_range().size(), "the number of columns of a local block");
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
  std::span<const T> values_;
  T* writable_ = nullptr;              ///< the same memory; null in a view that may only be read
  buffer<T, Device> owned_;            ///< empty in a view
  std::shared_ptr<const void> owner_;  ///< keeps a view's memory alive; null if the caller does
  moved_from moved_;
};

}  // namespace local::detail

/// A dense matrix distributed over a mesh. Each rank holds one row-major block, determined by the layout and
/// the blockings.
///
/// T: float or double; or base::bfloat16, to be sent and multiplied by a sparse matrix, see spmm_plan. L: the
/// axes that partition the rows and columns, or dynamic_layout. Device: where the block resides. Move-only;
/// copy(x) of algebra/elementwise.hpp makes another. A static layout converts to a dynamic one, and back with
/// a check. Throws error naming the shape when a block cannot be allocated, and on any use after a move.
template <class T, layout L, class Device>
class dense : public local::detail::dense_block<T, Device> {
  static_assert(std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, base::bfloat16>,
                "the values of a dense matrix are float, double or base::bfloat16");
  static_assert(L == dynamic_layout || partition::is_layout(L),
                "an axis may partition the rows or the columns of a layout, not both");
  using block = local::detail::dense_block<T, Device>;

 public:
  using value_type = T;
  using device = Device;

  /// Uninitialised, with even blocks. Local; no communication.
  dense(const partita::mesh<Device>& m, matrix_shape shape) requires(L != dynamic_layout)
      : dense(m, L, shape) {}
  dense(const partita::mesh<Device>& m, partita::layout l, matrix_shape shape)
      : dense(m, l, blocking::even(shape.rows, m.shape(), nesting::rows),
              blocking::even(shape.cols, m.shape(), nesting::cols)) {}

  /// Uninitialised, with the given blockings. Throws shape_error for blockings of another mesh, and when L is
  /// static and differs from the given layout.
  dense(const partita::mesh<Device>& m, const blocking& rows,
        const blocking& cols) requires(L != dynamic_layout)
      : dense(m, L, rows, cols) {}
  dense(const partita::mesh<Device>& m, partita::layout l, const blocking& rows, const blocking& cols)
      : block(m, partition::checked_layout(l, L), rows, cols) {}

  /// A matrix over borrowed memory on Device, without a copy: this rank's block, row-major and contiguous, as
  /// a contiguous range of T or a matrix_view; of const T, it may only be read. The memory must outlive the
  /// matrix, unless `owner`, which the matrix holds, keeps it alive. Moving the matrix moves the view, not
  /// the elements; assigning to the matrix releases the view and does not write through it. Local; no
  /// communication. Also throws shape_error, naming both shapes, for a block of the wrong size, a padded row
  /// stride, and a null pointer.
  static dense view(const partita::mesh<Device>& m, partita::layout l, const blocking& rows,
                    const blocking& cols, local::detail::given_block<T> block,
                    std::shared_ptr<const void> owner = nullptr) {
    dense x(m, l, rows, cols, block, std::move(owner));
    x.require_fit(block);
    return x;
  }
  /// With even blocks, and with the layout of the type.
  static dense view(const partita::mesh<Device>& m, partita::layout l, matrix_shape shape,
                    local::detail::given_block<T> block, std::shared_ptr<const void> owner = nullptr) {
    return view(m, l, blocking::even(shape.rows, m.shape(), nesting::rows),
                blocking::even(shape.cols, m.shape(), nesting::cols), block, std::move(owner));
  }
  static dense view(const partita::mesh<Device>& m, const blocking& rows, const blocking& cols,
                    local::detail::given_block<T> block,
                    std::shared_ptr<const void> owner = nullptr) requires(L != dynamic_layout) {
    return view(m, L, rows, cols, block, std::move(owner));
  }
  static dense view(const partita::mesh<Device>& m, matrix_shape shape, local::detail::given_block<T> block,
                    std::shared_ptr<const void> owner = nullptr) requires(L != dynamic_layout) {
    return view(m, L, shape, block, std::move(owner));
  }

  /// Takes over the block of a matrix of another type. Throws shape_error when its layout is not L.
  template <partita::layout M>
  requires(M != L) explicit(L != dynamic_layout) dense(dense<T, M, Device>&& other)
      : block(std::move(other), partition::checked_layout(other.layout(), L)) {}

  partita::layout layout() const { return L == dynamic_layout ? this->given_layout() : L; }

  /// The first rows of X, as a view of its memory: as many as `rows` has. Each rank's block of `rows` must
  /// begin where that of X does. Local; no communication. Throws shape_error otherwise.
  friend dense first_rows(dense& x, const blocking& rows) { return x.first(rows, x.values()); }
  /// The same for reading.
  friend dense first_rows(const dense& x, const blocking& rows) { return x.first(rows, x.values()); }
  friend dense first_rows(const dense&&, const blocking&) = delete;

 private:
  dense first(const blocking& rows, local::detail::given_block<T> given) const {
    const interval mine = rows.block(layout().rows, this->mesh().at()), all = this->row_range();
    if (mine.size() > all.size() || (!mine.empty() && mine.begin != all.begin))
      base::throw_error<shape_error>({"rows ", mine.begin, " to ", mine.end,
                                      " are not the first of the rows ", all.begin, " to ", all.end,
                                      " of a matrix of ", this->shape(), " here"});
    const auto size = static_cast<std::size_t>(mine.size() * this->col_range().size());
    given.values = given.values.first(size);
    return view(this->mesh(), layout(), rows, this->col_blocking(), given);
  }
  dense(const partita::mesh<Device>& m, partita::layout l, const blocking& rows, const blocking& cols,
        const local::detail::given_block<T>& values, std::shared_ptr<const void> owner)
      : block(m, partition::checked_layout(l, L), rows, cols, values, std::move(owner)) {}
};

}  // namespace partita

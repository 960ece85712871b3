// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sums of partial products across ranks: along col over columns (A stationary), then along depth over rows.

#include <memory>
#include <optional>
#include <vector>

#include "partita/local/pass.hpp"
#include "partita/matrix/dense.hpp"
#include "partita/matrix/sparse.hpp"
#include "partita/transfer/redistribution.hpp"

namespace partita::algebra::detail {

/// Throws shape_error if a product would overwrite its operand while reading it.
template <class X, class Y>
void require_distinct(const char* what, const X& x, const Y& y) {
  const void* const of_x = x.local().data;
  if (of_x == y.local().data && !x.values().empty())
    base::throw_error<shape_error>({what, ": Y of ", y.shape(), " must not be the memory of X"});
}

/// Reduce-scatter of partial blocks along one axis: rank q keeps piece q of the rows or columns.
template <class T, class Device>
class scattered_sum {
 public:
  /// For a partial block of rows x sum(columns); rank q keeps its piece of the columns, or (by_rows) of the
  /// rows.
  scattered_sum(const mesh<Device>& m, axis_set along, local_index rows, local_index cols,
                std::vector<interval> pieces, bool by_rows)
      : group_(m.along(along)),
        queue_(m.queue()),
        rows_(rows),
        cols_(cols),
        pieces_(std::move(pieces)),
        by_rows_(by_rows) {
    for (interval p : pieces_) counts_.push_back(p.size() * (by_rows ? cols : rows));
    const auto size = static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
    partial_ = buffer<T, Device>(queue_, size);
    if (!by_rows) packed_ = buffer<T, Device>(queue_, size);
  }

  matrix_view<T> input() { return {partial_.data(), rows_, cols_, cols_}; }

  void operator()(std::span<T> mine) {
    T* to = packed_.data();
    for (std::size_t q = 0; !by_rows_ && q < pieces_.size(); ++q) {
      const auto begin = static_cast<local_index>(pieces_[q].begin),
                 width = static_cast<local_index>(pieces_[q].size());
      local::pack_block(queue_, matrix_view<const T>(input().block(0, begin, rows_, width)), to);
      to += counts_[q];
    }
    const auto& from = by_rows_ ? partial_ : packed_;
    group_.reduce_scatter(from.span(), counts_, mine);
  }

 private:
  communicator group_;
  device_queue<Device> queue_;
  local_index rows_, cols_;
  std::vector<interval> pieces_;
  std::vector<global_index> counts_;
  bool by_rows_;
  buffer<T, Device> partial_, packed_;
};

/// The blocks of the ranks along `along`, in the order of their communicator.
template <class Device>
std::vector<interval> pieces_along(const mesh<Device>& m, axis_set along, const blocking& b, axis_set by) {
  std::vector<interval> pieces;
  for (int q = 0; q < m.shape().size(along); ++q)
    pieces.push_back(b.block(by, partition::group_member(m.shape(), along, m.at(), q)));
  return pieces;
}

/// The target of a product's kernels: the first one to write a row scales its old value by beta.
template <class T>
class accumulator {
 public:
  accumulator(matrix_view<T> out, T beta = 0) : out_(out), beta_(beta) {}

  /// Where a kernel writes: result = ... + beta result.
  struct target {
    T beta;
    matrix_view<T> result;
  };
  /// The target of the kernel for this part, after those of all preceding parts.
  template <class A>
  target add(const local::csr_slice<A>& part) {
    const T beta = part.first_row < begun_ ? T(1) : beta_;
    begun_ = std::max(begun_, part.first_row + part.entries.rows);
    return {beta, part.rows_of(out_)};
  }

 private:
  matrix_view<T> out_;
  T beta_;
  local_index begun_ = 0;  ///< rows before this one have been written
};

/// All sums across ranks that follow a local product, or the way of finished sums to another layout.
template <class T, class Device>
class partial_sums {
 public:
  partial_sums() = default;
  /// `wide`: A is stationary, so the partial block has the columns of all ranks along col.
  partial_sums(const mesh<Device>& m, const blocking& rows, const blocking& features, layout sparse,
               layout dense, bool wide)
      : mesh_(m), over_depth_(sparse.cols.contains(axis::depth) && m.shape().depth > 1) {
    const coordinates me = m.at();
    const local_index height =
        base::to_local(rows.block(sparse.rows, me).size(), "the number of rows of a partial product");
    const local_index width =
        base::to_local(features.block(dense.cols, me).size(), "the width of a dense block");
    scatters_ = over_depth_ && dense.rows.contains(axis::depth);
    if (wide) {
      const local_index whole = base::to_local(features.block(dense.cols - axis_set(axis::col), me).size(),
                                               "the width of a matrix");
      columns_ = std::make_unique<scattered_sum<T, Device>>(
          m, axis::col, height, whole, pieces_along(m, axis::col, features, dense.cols), false);
    }
    if (scatters_)
      rows_ = std::make_unique<scattered_sum<T, Device>>(
          m, axis::depth, height, width, pieces_along(m, axis::depth, rows, dense.rows), true);
  }

  /// For sums that are finished in layout `from`, on their way to `to`.
  partial_sums(const mesh<Device>& m, const blocking& rows, const blocking& features, layout from,
               layout to) {
    if (partition::same_blocks(m.shape(), from, to)) return;
    change_ = std::make_unique<redistribution<T, Device>>(m, rows, features, from, to);
    finished_ = buffer<T, Device>(m.queue(), static_cast<std::size_t>(change_->old_block().size()));
  }

  /// No sums needed, or all in place: the product can be written directly to the result.
  bool empty() const { return !columns_ && !rows_ && !change_; }
  /// No sums needed at all: the product can accumulate into existing values.
  bool in_place() const { return empty() && !over_depth_; }
  matrix_view<T> input() {
    if (change_) return transfer::view_of(finished_.data(), change_->old_block());
    return columns_ ? columns_->input() : rows_->input();
  }

  /// y: this rank's block of the result, row-major and contiguous.
  void operator()(matrix_view<T> y) {
    if (change_) return (*change_)(input(), y);
    const std::span<T> result(y.data, static_cast<std::size_t>(y.rows) * static_cast<std::size_t>(y.cols));
    if (columns_) {
      const matrix_view<T> sum = rows_ ? rows_->input() : y;
      const std::size_t size = static_cast<std::size_t>(sum.rows) * static_cast<std::size_t>(sum.cols);
      (*columns_)(std::span<T>(sum.data, size));
    }
    if (rows_) (*rows_)(result);
    if (over_depth_ && !rows_) mesh_->along(axis::depth).all_reduce(result);
  }

  /// What this rank receives, in closed form.
  static traffic predicted(const mesh<Device>& m, const blocking& rows, const blocking& features,
                           layout sparse, layout dense, bool wide) {
    const coordinates me = m.at();
    const global_index height = rows.block(sparse.rows, me).size(),
                       width = features.block(dense.cols, me).size();
    traffic v;
    const auto add = [&](operation kind, axis along, global_index count) {
      comm::collective op;
      op.kind = kind;
      op.count = count;
      v += received(op, me[along], m.shape()[along]);
    };
    if (wide) add(operation::reduce_scatter, axis::col, height * width);
    if (sparse.cols.contains(axis::depth) && m.shape().depth > 1) {
      if (dense.rows.contains(axis::depth))
        add(operation::reduce_scatter, axis::depth, rows.block(dense.rows, me).size() * width);
      else
        add(operation::all_reduce, axis::depth, height * width);
    }
    return v;
  }

 private:
  std::optional<mesh<Device>> mesh_;
  bool over_depth_ = false;
  bool scatters_ = false;
  std::unique_ptr<scattered_sum<T, Device>> columns_, rows_;
  std::unique_ptr<redistribution<T, Device>> change_;
  buffer<T, Device> finished_;
};

}  // namespace partita::algebra::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Putting partial products together: along col over columns (A stays), then along depth over rows.

#include <memory>
#include <optional>
#include <vector>

#include "partita/local/kernels.hpp"
#include "partita/matrix/dense.hpp"
#include "partita/matrix/sparse.hpp"

namespace partita::detail {

/// The sum of the partial blocks of the ranks along one axis, scattered: rank q keeps rows or columns piece
/// q.
template <class T, class Device>
class scattered_sum {
 public:
  /// A partial block of rows x sum(columns); rank q keeps its columns piece, or (by_rows) rows piece q of all
  /// columns.
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
      pack(queue_, matrix_view<const T>(input().block(0, begin, rows_, width)), to);
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

/// The blocks of the ranks that differ from this one along `along`, in the order of their communicator.
template <class Device>
std::vector<interval> pieces_along(const mesh<Device>& m, axis_set along, const blocking& b, axis_set by) {
  std::vector<interval> pieces;
  for (int q = 0; q < m.shape().size(along); ++q)
    pieces.push_back(b.block(by, partition::group_member(m.shape(), along, m.at(), q)));
  return pieces;
}

/// A block to which the kernels of a product add: what a row has before the first of them counts beta times.
template <class T>
class accumulator {
 public:
  accumulator(matrix_view<T> out, T beta = 0) : out_(out), beta_(beta) {}

  /// result = ... + beta result.
  struct target {
    T beta;
    matrix_view<T> result;
  };
  /// Where the kernel of this part writes, after those of all parts before it.
  target add(const local::csr_slice<T>& part) {
    const T beta = part.first_row < begun_ ? T(1) : beta_;
    begun_ = std::max(begun_, part.first_row + part.entries.rows);
    return {beta, part.rows_of(out_)};
  }

 private:
  matrix_view<T> out_;
  T beta_;
  local_index begun_ = 0;  ///< rows before this one have something
};

/// All the sums that follow a local product.
template <class T, class Device>
class partial_sums {
 public:
  partial_sums() = default;
  /// `wide`: A stays, so the partial block has the columns of all ranks along col.
  partial_sums(const mesh<Device>& m, const blocking& rows, const blocking& features, layout sparse,
               layout dense, bool wide)
      : mesh_(m), over_depth_(sparse.cols.contains(axis::depth) && m.shape().depth > 1) {
    const coordinates me = m.at();
    const local_index height =
        to_local(rows.block(sparse.rows, me).size(), "the number of rows of a partial product");
    const local_index width = to_local(features.block(dense.cols, me).size(), "the width of a dense block");
    scatters_ = over_depth_ && dense.rows.contains(axis::depth);
    if (wide) {
      const local_index whole =
          to_local(features.block(dense.cols - axis_set(axis::col), me).size(), "the width of a matrix");
      columns_ = std::make_unique<scattered_sum<T, Device>>(
          m, axis::col, height, whole, pieces_along(m, axis::col, features, dense.cols), false);
    }
    if (scatters_)
      rows_ = std::make_unique<scattered_sum<T, Device>>(
          m, axis::depth, height, width, pieces_along(m, axis::depth, rows, dense.rows), true);
  }

  /// Nothing to put together, or all of it in place: the product may be written where the result belongs.
  bool empty() const { return !columns_ && !rows_; }
  /// Nothing to put together at all: the product may be added to what is there.
  bool in_place() const { return empty() && !over_depth_; }
  matrix_view<T> input() { return columns_ ? columns_->input() : rows_->input(); }

  /// y: this rank's block of the result, row-major without gaps.
  void operator()(matrix_view<T> y) {
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
};

}  // namespace partita::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sums of partial products across ranks: along col over columns (A stationary), then along depth over rows;
/// or along both over rows, if rows are whole.

#include <algorithm>
#include <array>
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

/// Reduce-scatter of partial blocks along axes: rank q keeps piece q of the rows or columns. It may be split
/// into parts, each an even share of the rows of every piece, and each sent while the next is computed.
///
/// Collective over the ranks along these axes: call and leave. What travels: each rank's piece, from all
/// others, in one message per part.
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
        by_rows_(by_rows),
        partial_(queue_, static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols)) {
    cut(1);
  }

  /// Splits it into `parts` parts, before the first call.
  void cut(std::size_t parts) {
    counts_.assign(parts, {});
    std::size_t most = 0;
    for (std::size_t j = 0; j < parts; ++j) {
      for (std::size_t q = 0; q < pieces_.size(); ++q) counts_[j].push_back(block(j, q).size());
      most = std::max(most, comm::total_of(std::span<const global_index>(counts_[j])));
    }
    for (std::size_t slot = 0; slot < std::min<std::size_t>(2, parts) && packs(); ++slot)
      packed_[slot] = buffer<T, Device>(queue_, most);
  }
  std::size_t parts() const { return counts_.size(); }
  /// The rows of the partial block that each part sends.
  std::vector<std::vector<interval>> rows_of_parts() const {
    std::vector<std::vector<interval>> all(parts());
    for (std::size_t j = 0; j < parts(); ++j)
      for (std::size_t q = 0; q < (by_rows_ ? pieces_.size() : 1); ++q) all[j].push_back(block(j, q).rows);
    return all;
  }

  matrix_view<T> input() { return {partial_.data(), rows_, cols_, cols_}; }

  /// Sends the next part; `mine`: this rank's piece, contiguous and complete after the call.
  void leave(std::span<T> mine) {
    const std::size_t j = left_++;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < j; ++i) begin += static_cast<std::size_t>(count(i));
    requests_[j % 2].wait();
    T* to = packed_[j % 2].data();
    for (std::size_t q = 0; packs() && q < pieces_.size(); ++q) {
      local::pack_block(queue_, transfer::part_of(matrix_view<const T>(input()), {}, block(j, q)), to);
      to += counts_[j][q];
    }
    const auto leaving = std::as_const(packs() ? packed_[j % 2] : partial_).span();
    requests_[j % 2] =
        group_.start_reduce_scatter(leaving.first(comm::total_of(std::span<const global_index>(counts_[j]))),
                                    counts_[j], mine.subspan(begin, static_cast<std::size_t>(count(j))));
  }
  /// mine = the sum of this rank's piece; sends the remaining parts.
  void operator()(std::span<T> mine) {
    while (left_ < parts()) leave(mine);
    for (request& r : requests_) r.wait();
    left_ = 0;
  }

  /// The messages this rank receives beyond those of a single-part call.
  global_index more_messages() const {
    global_index filled = 0;
    for (std::size_t j = 0; j < parts(); ++j) filled += count(j) > 0 ? 1 : 0;
    return std::max<global_index>(filled - 1, 0) * (group_.size() - 1);
  }

 private:
  /// Rank q's rectangle of part j, within the partial block.
  partition::rectangle block(std::size_t j, std::size_t q) const {
    const auto share = [&](interval rows) {
      return base::part_of(rows, static_cast<global_index>(j), static_cast<global_index>(parts()));
    };
    const global_index first = pieces_.front().begin;
    const interval piece{pieces_[q].begin - first, pieces_[q].end - first};
    return by_rows_ ? partition::rectangle{share(piece), {0, cols_}}
                    : partition::rectangle{share({0, rows_}), piece};
  }
  global_index count(std::size_t j) const { return counts_[j][static_cast<std::size_t>(group_.rank())]; }
  /// Whether parts are packed; otherwise a part is the partial block itself.
  bool packs() const { return !by_rows_ || parts() > 1; }

  communicator group_;
  device_queue<Device> queue_;
  local_index rows_, cols_;
  std::vector<interval> pieces_;
  std::vector<std::vector<global_index>> counts_;  ///< of each part, for each rank
  bool by_rows_;
  buffer<T, Device> partial_;
  std::array<buffer<T, Device>, 2> packed_;
  std::array<request, 2> requests_;
  std::size_t left_ = 0;
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

  /// Target of a kernel: result = ... + beta result.
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

/// All sums across ranks after a local product, or the redistribution of finished sums to another layout.
template <class T, class Device>
class partial_sums {
 public:
  partial_sums() = default;
  /// `wide`: A is stationary, so the partial block has the columns of all ranks along col.
  partial_sums(const mesh<Device>& m, const blocking& rows, const blocking& features, layout sparse,
               layout dense, bool wide)
      : mesh_(m),
        all_reduces_(sparse.cols.contains(axis::depth) && !dense.rows.contains(axis::depth) &&
                     m.shape().depth > 1) {
    const coordinates me = m.at();
    const local_index height =
        base::to_local(rows.block(sparse.rows, me).size(), "the number of rows of a partial product");
    const local_index width =
        base::to_local(features.block(dense.cols, me).size(), "the width of a dense block");
    if (wide) {
      const local_index whole = base::to_local(features.block(dense.cols - axis_set(axis::col), me).size(),
                                               "the width of a matrix");
      columns_ = std::make_unique<scattered_sum<T, Device>>(
          m, axis::col, height, whole, pieces_along(m, axis::col, features, dense.cols), false);
    }
    if (const axis_set over = sparse.cols & dense.rows; m.shape().size(over) > 1)
      rows_ = std::make_unique<scattered_sum<T, Device>>(m, over, height, width,
                                                         pieces_along(m, over, rows, dense.rows), true);
  }

  /// For sums finished in layout `from` that are redistributed to `to`.
  partial_sums(const mesh<Device>& m, const blocking& rows, const blocking& features, layout from,
               layout to) {
    if (partition::same_blocks(m.shape(), from, to)) return;
    change_ = std::make_unique<redistribution<T, Device>>(m, rows, features, from, to);
    finished_ = buffer<T, Device>(m.queue(), static_cast<std::size_t>(change_->old_block().size()));
  }

  /// No sums needed, or all of them in place: the product can be written directly to the result.
  bool empty() const { return !columns_ && !rows_ && !change_; }
  /// No sums needed at all: the product can accumulate into existing values.
  bool in_place() const { return empty() && !all_reduces_; }
  matrix_view<T> input() {
    if (change_) return transfer::view_of(finished_.data(), change_->old_block());
    return columns_ ? columns_->input() : rows_->input();
  }

  /// The only sum, which may be sent in parts; null if there are two sums.
  scattered_sum<T, Device>* in_parts() const {
    if (columns_ && rows_) return nullptr;
    return columns_ ? columns_.get() : rows_.get();
  }
  /// Sends the next part of y.
  void leave(matrix_view<T> y) { in_parts()->leave(entries_of(y)); }

  /// y: this rank's block of the result, row-major and contiguous.
  void operator()(matrix_view<T> y) {
    if (change_) return (*change_)(input(), y);
    const std::span<T> result = entries_of(y);
    if (columns_) (*columns_)(rows_ ? entries_of(rows_->input()) : result);
    if (rows_) (*rows_)(result);
    if (all_reduces_) mesh_->along(axis::depth).all_reduce(result);
  }

  /// What this rank receives, in closed form.
  static traffic predicted(const mesh<Device>& m, const blocking& rows, const blocking& features,
                           layout sparse, layout dense, bool wide) {
    const coordinates me = m.at();
    const global_index height = rows.block(sparse.rows, me).size(),
                       width = features.block(dense.cols, me).size();
    traffic v;
    const auto add = [&](operation kind, axis_set along, global_index count) {
      comm::collective op;
      op.kind = kind;
      op.count = count;
      v += received(op, partition::rank_in_group(m.shape(), along, me), m.shape().size(along));
    };
    if (wide) add(operation::reduce_scatter, axis::col, height * width);
    add(operation::reduce_scatter, sparse.cols & dense.rows, rows.block(dense.rows, me).size() * width);
    if (!dense.rows.contains(axis::depth))
      add(operation::all_reduce, sparse.cols & axis::depth, height * width);
    return v;
  }

 private:
  static std::span<T> entries_of(matrix_view<T> y) {
    return {y.data, static_cast<std::size_t>(y.rows) * static_cast<std::size_t>(y.cols)};
  }

  std::optional<mesh<Device>> mesh_;
  bool all_reduces_ = false;
  std::unique_ptr<scattered_sum<T, Device>> columns_, rows_;
  std::unique_ptr<redistribution<T, Device>> change_;
  buffer<T, Device> finished_;
};

}  // namespace partita::algebra::detail

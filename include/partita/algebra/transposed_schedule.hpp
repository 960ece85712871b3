// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The schedule of spmm with A^T where only A is stored: the adjoint of spmm_schedule.
///
/// With the sub-blocks B(r, d, c) of Y, whose rows are A's columns, the rank (r, c, d) computes from the rows
/// r of X, with f/pc columns on the left and f columns on the right,
///
///   C stationary: A moves along col                 A stationary: X and Y move along col
///   all-gather X along depth                        all-gather X along depth and col
///   for each col k: broadcast A(r; d, k) along col
///     for each row r':                                for each row r':
///       P(r') = A(r, r'; d, k)^T X(r)                   P(r') = A(r, r'; d, c)^T X(r)
///     reduce-scatter P along row to B(r, d, k)        reduce-scatter P along row to B(r, d, c)
///   all-gather Y along depth                        all-to-all along col, all-gather Y along depth
///
/// X is gathered along depth only if depth partitions it; else Y is, if depth partitions A's columns. Along
/// row, either whole sub-blocks are summed stage by stage, each overlapped with the next stage's multiply, or
/// only the rows that A's nonzero columns reference are computed, packed, sent to their owners in one
/// all-to-all that overlaps the multiply of the rank's own tile, and added there in rank order. In chunks of
/// A's rows, a sum travels after the last chunk that adds to it, while the next one multiplies.
///
/// What each rank receives: with whole sub-blocks, even blocks and evenly many nonzeros, as much as with a
/// stored A^T, since every step is the adjoint of one of that schedule, except that a replicated Y is
/// gathered along depth, which is half of its all-reduce. With needed rows only, the nonempty columns of the
/// tiles A(r', r), r' != r, where a stored A^T exchanges their nonempty rows: as many if the pattern is
/// symmetric.

#include <array>
#include <memory>
#include <type_traits>
#include <utility>

#include "partita/algebra/block_stream.hpp"
#include "partita/algebra/chunked_exchange.hpp"
#include "partita/algebra/spmm_cost.hpp"
#include "partita/base/function_reference.hpp"

namespace partita::detail {

/// Closed-form communication volume of Y = A^T X for each set of options.
///
/// Collective over the mesh: the constructor. What travels: block shapes along col and numbers of needed rows
/// along row, once.
template <class T, class Device>
class transposed_cost {
 public:
  /// `blocks` and `merges`: of the product with A.
  transposed_cost(const spmm_blocks<Device>& blocks, const local::csr_tiles<T, Device>& a, bool merges)
      : blocks_(blocks), of_a_(blocks, a, merges) {
    for (const row_group& group : of_a_.groups()) {
      asked_.emplace_back(group.needed.size(), 0);
      const std::vector<global_index> ones(group.needed.size(), 1);
      if (blocks_.row_ranks() > 1)
        blocks_.m.control(axis::row).all_to_all(group.needed, ones, asked_.back(), ones);
    }
  }

  const spmm_cost<T, Device>& of_a() const { return of_a_; }
  /// The layout of X while it is multiplied, and that of the sums over row.
  layout spread(spmm_options o) const { return {blocks_.sparse.rows, blocks_.multiplied(o).cols}; }
  layout summed(spmm_options o) const {
    if (blocks_.stays(o)) return blocks_.wide();
    return {partition::column_cut(blocks_.sparse) - axis_set(axis::col), blocks_.dense.cols};
  }

  /// What this rank would receive in one call under `o`, with no option `automatic`.
  traffic received_under(spmm_options o) const {
    const auto& b = blocks_;
    const global_index width = b.columns(o).size();
    traffic v = of_a_.received_of_a(o);
    for (std::size_t g = 0; g < asked_.size(); ++g) {
      const bool own = asked_.size() == 1 || static_cast<int>(g) == b.m.at().col;
      if (b.stays(o) && !own) continue;
      const global_index height = of_a_.groups()[g].rows[b.own_tile()];
      for (std::size_t r = 0; r < asked_[g].size(); ++r) {
        const global_index rows = o.rows == row_exchange::sparsity_aware ? asked_[g][r] : height;
        if (r != b.own_tile() && rows * width > 0) v += {rows * width, 1};
      }
    }
    return v + received_of_x(o) +
           redistribution<T, Device>::predicted(b.m, b.cols, b.features, summed(o), b.dense);
  }
  /// The part of it that is X.
  traffic received_of_x(spmm_options o) const {
    const auto& b = blocks_;
    return redistribution<T, Device>::predicted(b.m, b.rows, b.features, b.dense, spread(o));
  }
  /// As spmm_cost::choose.
  spmm_options choose(spmm_options asked) const {
    return least_received(blocks_.m, asked, [&](spmm_options o) { return received_under(o); });
  }

 private:
  spmm_blocks<Device> blocks_;
  spmm_cost<T, Device> of_a_;
  std::vector<std::vector<global_index>> asked_;  ///< of each group: the rows that other ranks sum for this
};

/// A product plan for A^T from the blocks of A, independent of the layouts in the matrix types. `Sum`: the
/// type of the sums and of what travels of them. `Stored`: of X, and what of it travels.
template <class T, class Device, class Sum = T, class Stored = T>
class transposed_schedule {
 public:
  /// `rows` and `cols`: of A.
  transposed_schedule(const mesh<Device>& m, std::shared_ptr<const local::csr_tiles<T, Device>> a,
                      const blocking& rows, const blocking& cols, const blocking& features,
                      layout sparse_layout, layout dense_layout, spmm_options options);

  /// y = alpha A^T x + beta y, for this rank's blocks; beta is 0 unless accumulates(), and e has nothing
  /// else.
  void operator()(matrix_view<const Stored> x, matrix_view<Sum> y, const local::spmm_epilogue<T>& e = {});
  /// y = the sums of part(term) over the terms of A^T x.
  template <class Part>
  void sum_parts(matrix_view<const Stored> x, matrix_view<Sum> y, Part part) {
    run(x, y, 0,
        [&](const local::csr_slice<T>& slice, matrix_view<const Stored> rows, Sum of_old,
            matrix_view<Sum> to) {
          exact_spmm_transposed(blocks_.m.queue(), slice.entries, rows, part, of_old, to);
        });
  }

  /// Whether products can be added to y in the pass that multiplies.
  bool accumulates() const { return !gather_ && (needed_ || chunked_ || blocks_.row_ranks() == 1); }
  /// No epilogue follows in the pass that multiplies.
  bool finishes() const { return false; }
  bool reorders() const { return false; }
  /// As those of spmm_schedule.
  global_index multiplications() const { return static_cast<global_index>(nonzeros_) * width_; }
  traffic predicted() const { return predicted_; }
  global_index words_of_x() const { return words_of_x_; }
  spmm_options options() const { return options_; }

 private:
  using kernel_reference = base::function_reference<void(const local::csr_slice<T>&,
                                                         matrix_view<const Stored>, Sum, matrix_view<Sum>)>;

  /// The sum of a whole sub-block: this rank's part of it, and how much each rank receives.
  struct stage {
    buffer<Sum, Device> partial;
    std::vector<global_index> counts;
    request sent;
  };

  /// y = A^T x + beta y by kernels multiply(part of A, its rows of X, beta, Y) of tiles; beta is 0 unless
  /// accumulates().
  void run(matrix_view<const Stored> x, matrix_view<Sum> y, Sum beta, kernel_reference kernel);
  void build(const transposed_cost<T, Device>& cost);

  /// to = A(r, t)^T x + beta to for tile t of block k.
  void multiply(std::size_t k, std::size_t t, matrix_view<const Stored> x, Sum beta, matrix_view<Sum> to,
                kernel_reference kernel) {
    for (const local::csr_slice<T>& part : stream_->parts(k, t))
      kernel(part, part.rows_of(x), part.first_row > 0 ? Sum(1) : beta, to);
  }
  /// The sums of block k for the rows of other ranks, chunk by chunk of A's rows; those of a chunk are in
  /// flight while the next ones multiply, and after.
  void sum_chunks(std::size_t k, matrix_view<const Stored> x, kernel_reference kernel);
  /// own = the sum over row of A(r, own)^T x for block k; one partial sum is in flight while the next
  /// one is computed.
  void sum_whole(std::size_t k, matrix_view<const Stored> x, matrix_view<Sum> own, kernel_reference kernel);

  spmm_blocks<Device> blocks_;
  std::shared_ptr<const local::csr_tiles<T, Device>> a_;
  spmm_options options_;
  traffic predicted_;
  global_index words_of_x_ = 0;
  std::vector<row_group> groups_;  ///< one for each block that this rank multiplies
  std::size_t nonzeros_ = 0;
  local_index width_ = 0;
  buffer<Stored, Device> x_;  ///< all rows of X that the tiles need
  buffer<Sum, Device> sums_;  ///< Y before it is gathered
  std::array<stage, 2> stages_;
  local::entry_passes<Device> passes_;
  std::unique_ptr<redistribution<Stored, Device>> spread_;
  std::unique_ptr<redistribution<Sum, Device>> gather_;
  std::unique_ptr<block_stream<T, Device>> stream_;
  std::unique_ptr<needed_exchange<Sum, Device>> needed_;
  std::unique_ptr<chunked_sums<Sum, Device>> chunked_;
};

template <class T, class Device, class Sum, class Stored>
transposed_schedule<T, Device, Sum, Stored>::transposed_schedule(
    const mesh<Device>& m, std::shared_ptr<const local::csr_tiles<T, Device>> a, const blocking& rows,
    const blocking& cols, const blocking& features, layout sparse_layout, layout dense_layout,
    spmm_options options)
    : blocks_{m, rows, cols, features, sparse_layout, dense_layout}, a_(std::move(a)) {
  const bool merges = blocks_.row_ranks() > 1 && options.rows != row_exchange::full;
  const transposed_cost<T, Device> cost(blocks_, *a_, merges);
  options_ = cost.choose(options);
  predicted_ = cost.received_under(options_);
  words_of_x_ = cost.received_of_x(options_).words;
  const auto bytes = static_cast<std::size_t>(cost.of_a().most_needed(options_)) * sizeof(Sum);
  options_.chunks = cost.of_a().merges(options_) && !a_->is_counted()
                        ? static_cast<int>(chunks_in_effect(m, options_.chunks, bytes))
                        : 1;
  build(cost);
}

template <class T, class Device, class Sum, class Stored>
void transposed_schedule<T, Device, Sum, Stored>::operator()(matrix_view<const Stored> x, matrix_view<Sum> y,
                                                             const local::spmm_epilogue<T>& e) {
  [[maybe_unused]] std::size_t number = 0;
  run(x, y, e.beta,
      [&](const local::csr_slice<T>& part, matrix_view<const Stored> rows, Sum of_old, matrix_view<Sum> to) {
        const local::csr_view<T>& a = part.entries;
        if constexpr (std::is_same_v<Stored, T>)
          local::chunked::spmm_transposed(blocks_.m.queue(), passes_, number++, a, rows, e.alpha, of_old, to,
                                          part.first_row > 0);
        else
          spmm_transposed(blocks_.m.queue(), a, rows, e.alpha, of_old, to);
      });
}

template <class T, class Device, class Sum, class Stored>
void transposed_schedule<T, Device, Sum, Stored>::run(matrix_view<const Stored> x, matrix_view<Sum> y,
                                                      Sum beta, kernel_reference kernel) {
  if (spread_) {
    (*spread_)(x, transfer::view_of(x_.data(), spread_->new_block()));
    x = transfer::view_of(x_.data(), spread_->new_block());
  }
  const matrix_view<Sum> sums = gather_ ? transfer::view_of(sums_.data(), gather_->old_block()) : y;
  stream_->start(0);
  for (std::size_t k = 0; k < groups_.size(); ++k) {
    stream_->arrive(k);
    if (k + 1 < groups_.size()) stream_->start(k + 1);
    const row_group& group = groups_[k];
    const auto height = static_cast<local_index>(group.rows[blocks_.own_tile()]);
    const matrix_view<Sum> own = sums.block(group.first_row, 0, height, width_);
    if (chunked_) {
      sum_chunks(k, x, kernel);
      multiply(k, 0, x, beta, own, kernel);
      chunked_->add(k, sums);
    } else if (needed_) {
      multiply(k, 1, x, 0, needed_->sums(k), kernel);
      needed_->start_sums(k);
      multiply(k, 0, x, beta, own, kernel);
      needed_->add_sums(k, sums);
    } else if (blocks_.row_ranks() > 1) {
      sum_whole(k, x, own, kernel);
    } else {
      multiply(k, 0, x, beta, own, kernel);
    }
  }
  if (gather_) (*gather_)(sums, y);
}

template <class T, class Device, class Sum, class Stored>
void transposed_schedule<T, Device, Sum, Stored>::build(const transposed_cost<T, Device>& cost) {
  const auto& m = blocks_.m;
  const auto& q = m.queue();
  const std::size_t own = blocks_.own_tile();
  const bool merges = cost.of_a().merges(options_);
  width_ = to_local(blocks_.columns(options_).size(), "the width of a dense block");
  const layout spread = cost.spread(options_), summed = cost.summed(options_);
  if (!partition::same_blocks(m.shape(), blocks_.dense, spread)) {
    spread_ = std::make_unique<redistribution<Stored, Device>>(m, blocks_.rows, blocks_.features,
                                                               blocks_.dense, spread);
    x_ = buffer<Stored, Device>(q, static_cast<std::size_t>(spread_->new_block().size()));
  }
  if (!partition::same_blocks(m.shape(), summed, blocks_.dense)) {
    gather_ = std::make_unique<redistribution<Sum, Device>>(m, blocks_.cols, blocks_.features, summed,
                                                            blocks_.dense);
    sums_ = buffer<Sum, Device>(q, static_cast<std::size_t>(gather_->old_block().size()));
  }
  auto [groups, shapes] = cost.of_a().multiplied(options_, blocks_.cols.block(summed.rows, m.at()).begin);
  groups_ = std::move(groups);
  for (const local::tile_shape& shape : shapes) nonzeros_ += shape.nonzeros;
  const local::csr_tiles<T, Device>& a = merges ? a_->merged(q, own, m.tile_entries()) : *a_;
  std::span<const local_index> sent;
  if (shapes.size() > 1) sent = a.contiguous(q);
  stream_ =
      std::make_unique<block_stream<T, Device>>(m, std::move(shapes), a.located(), sent, a.stored_values());
  if (options_.chunks > 1) {
    chunked_ = std::make_unique<chunked_sums<Sum, Device>>(
        m, make_chunk_lists(m, groups_, share_lists(m, groups_, a_->needed(q, own)), a,
                            static_cast<std::size_t>(options_.chunks), chunk_of_row::last, width_));
    predicted_.messages += chunked_->steps().more_messages(&chunk_lists<Device>::step::asked);
  } else if (merges) {
    needed_ = std::make_unique<needed_exchange<Sum, Device>>(
        m, groups_, share_lists(m, groups_, a_->needed(q, own)), width_);
  } else if (blocks_.row_ranks() > 1) {
    global_index largest = 0;
    for (const row_group& g : groups_)
      for (const global_index n : g.rows) largest = std::max(largest, n);
    for (stage& s : stages_) s.partial = buffer<Sum, Device>(q, static_cast<std::size_t>(largest * width_));
  }
}

template <class T, class Device, class Sum, class Stored>
void transposed_schedule<T, Device, Sum, Stored>::sum_chunks(std::size_t k, matrix_view<const Stored> x,
                                                             kernel_reference kernel) {
  const std::size_t chunks = chunked_->steps().chunks();
  for (std::size_t n = k * chunks; n < (k + 1) * chunks; ++n) {
    chunked_->steps().for_parts(stream_->parts(k, 1), n, [&](const local::csr_slice<T>& part) {
      kernel(part, part.rows_of(x), Sum(part.first_row > 0 ? 1 : 0), chunked_->sums(k));
    });
    chunked_->start(n);
  }
}

template <class T, class Device, class Sum, class Stored>
void transposed_schedule<T, Device, Sum, Stored>::sum_whole(std::size_t k, matrix_view<const Stored> x,
                                                            matrix_view<Sum> own, kernel_reference kernel) {
  const std::vector<global_index>& rows = groups_[k].rows;
  for (std::size_t t = 0; t < rows.size(); ++t) {
    stage& s = stages_[t % 2];
    s.sent.wait();
    multiply(k, t, x, 0, {s.partial.data(), static_cast<local_index>(rows[t]), width_, width_}, kernel);
    s.counts.assign(rows.size(), 0);
    s.counts[t] = rows[t] * width_;
    const auto size = static_cast<std::size_t>(s.counts[t]);
    s.sent = blocks_.m.along(axis::row).start_reduce_scatter(
        std::span<const Sum>(s.partial.data(), size), s.counts,
        std::span<Sum>(own.data, t == blocks_.own_tile() ? size : 0));
  }
  for (stage& s : stages_) s.sent.wait();
}

}  // namespace partita::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The schedule of spmm: stages of row exchange along row, A or X moved along col, sums over depth.
///
/// Let B(r, d, c) be the sub-block (depth d, col c) of row block r of X; A's columns at (d, c) are the union
/// of B(r, d, c) over r. The rank (r, c, d) computes, with f/pc columns on the left and f columns on the
/// right,
///
///   C stationary: A moves along col                 A stationary: X and Y move along col
///   for each col k: broadcast A(r; d, k) along col    all-to-all along col: X to full-width rows (.., col)
///     for each row r': receive B(r', d, k)            for each row r': receive B(r', d, c)
///       Y += A(r, r'; d, k) B(r', d, k)                 Y += A(r, r'; d, c) B(r', d, c)
///                                                     reduce-scatter Y along col over its columns
///   reduce-scatter (X partitioned by depth) or all-reduce (X replicated along depth) Y along depth
///
/// If A is not partitioned by col, there is one k and nothing moves along col. Along row, either whole
/// sub-blocks are broadcast stage by stage, each overlapped with the previous stage's multiply, or only the
/// rows referenced by A's nonzero columns are exchanged, packed in one all-to-all that overlaps the multiply
/// of the rank's own tile; or in one for each chunk of A's rows, which overlaps the multiply of the rank's
/// own tile, if it is one of the first two, and else that of the two chunks before.
///
/// Sources: 1D, 1.5D, 2D and 3D: Tripathy, Yelick, Buluc (SC20), section IV; needed rows only: Mukhopadhyay
/// et al. (ICPP24); chunks: see chunked_exchange.hpp. Sub-blocks instead of square blocks allow any mesh
/// shape.

#include <memory>
#include <type_traits>

#include "partita/algebra/block_stream.hpp"
#include "partita/algebra/chunked_exchange.hpp"
#include "partita/algebra/spmm_cost.hpp"
#include "partita/base/function_reference.hpp"
#include "partita/local/chunked_products.hpp"
#include "partita/local/head_slice.hpp"

namespace partita::detail {

/// The values a product multiplies with: A's own, or an array of values for the entries of its tiles.
enum class entry_values : std::uint8_t { own, given };

/// A product plan independent of the layouts in the matrix types. `Sum`: the type of the sums and what of
/// them travels. `Stored`: of X, and what of it travels.
template <class T, class Device, class Sum = T, class Stored = T>
class spmm_schedule {
 public:
  using kernel_reference =
      base::function_reference<void(std::size_t, const local::csr_slice<T>&, matrix_view<const Stored>)>;

  spmm_schedule(const mesh<Device>& m, std::shared_ptr<const local::csr_tiles<T, Device>> a,
                const blocking& rows, const blocking& cols, const blocking& features, layout sparse_layout,
                layout dense_layout, spmm_options options, entry_values values = entry_values::own);

  /// y = the epilogue e of A x, for this rank's blocks: beta is 0 unless accumulates(), and nothing else
  /// follows the product unless finishes(). The last product added to a row of y has the end of the epilogue.
  void operator()(matrix_view<const Stored> x, matrix_view<T> y, const local::spmm_epilogue<T>& e = {});

  /// y = the sums of part(term) over the terms of A x.
  template <class Part>
  void sum_parts(matrix_view<const Stored> x, matrix_view<Sum> y, Part part) {
    accumulator<Sum> sum = begin(y);
    for_stages(x, [&](std::size_t, const local::csr_slice<T>& slice, matrix_view<const Stored> rows) {
      const auto [of_old, out] = sum.add(slice);
      exact_spmm(queue(), slice.entries, rows, part, of_old, out);
    });
    finish(y);
  }

  /// Whether products can be added to y in the pass that multiplies.
  bool accumulates() const { return sums_.in_place(); }
  /// Whether what follows a product can be done in that pass.
  bool finishes() const { return accumulates() && product_.finishes(queue()); }

  /// kernel(t, part of tile t of A, the rows of X that its columns index), for all parts of every tile that
  /// this rank multiplies, its own first. With needed rows only and A's own values there are two tiles, the
  /// rank's own and the merged remote ones, so that Y is traversed twice at any number of ranks; in chunks,
  /// the second one chunk of rows after the other.
  void for_stages(matrix_view<const Stored> x, kernel_reference kernel);
  /// The accumulator for the kernels of a call; finish turns it into y.
  accumulator<Sum> begin(matrix_view<Sum> y) { return {sums_.empty() ? y : sums_.input()}; }
  void finish(matrix_view<Sum> y) { sums_(y); }

  /// The columns of X visited by for_stages.
  interval columns() const { return blocks_.columns(options_); }
  /// Nonzeros multiplied by this rank in one call, times the columns of X they are multiplied with.
  global_index multiplications() const {
    std::size_t nonzeros = 0;
    for (const std::size_t n : nonzeros_) nonzeros += n;
    return static_cast<global_index>(nonzeros) * width_;
  }
  /// What this rank receives in one call, and in its stages alone.
  traffic predicted() const { return predicted_; }
  traffic predicted_stages() const {
    return {predicted_.words - predicted_sums_.words, predicted_.messages - predicted_sums_.messages};
  }
  /// Of the words, those that are numbers of X.
  global_index words_of_x() const { return words_of_x_; }
  const partita::device_queue<Device>& queue() const { return blocks_.m.queue(); }
  spmm_options options() const { return options_; }
  /// Whether some rows of A are multiplied in another order.
  bool reorders() const { return product_.reorders(); }

 private:
  bool stays() const { return blocks_.stays(options_); }
  int chunks_of(const spmm_cost<T, Device>& cost, int asked) const {
    const auto bytes = static_cast<std::size_t>(cost.most_needed(options_)) * sizeof(Stored);
    return static_cast<int>(chunks_in_effect(blocks_.m, asked, bytes));
  }

  void build(const spmm_cost<T, Device>& cost);

  void build_chunks(const local::csr_tiles<T, Device>& merged);

  /// As for_stages, with the rows of the next two chunks in flight.
  void for_chunks(matrix_view<const Stored> x, kernel_reference kernel);

  /// y = the epilogue e of a x for part `number` of a call.
  void multiply([[maybe_unused]] std::size_t number, const local::csr_slice<T>& a,
                matrix_view<const Stored> x, const local::spmm_epilogue<T>& e, matrix_view<T> y);
  void start_rows(std::size_t k, std::size_t t, matrix_view<const Stored> x) {
    if (whole_) whole_->start(k, static_cast<int>(t), x);
    if (needed_ && t == 0) needed_->start(k, x);
  }
  /// The rows of X for tile t of block k.
  matrix_view<const Stored> arrive(std::size_t k, std::size_t t) {
    if (whole_) return whole_->arrive(k, static_cast<int>(t));
    return merges_ ? needed_->arrive(k) : needed_->arrive(k, static_cast<int>(t));
  }
  matrix_view<const Stored> own_rows(std::size_t k, matrix_view<const Stored> x) const {
    const row_group& group = groups_[k];
    return x.block(group.first_row, 0, static_cast<local_index>(group.rows[blocks_.own_tile()]), width_);
  }
  matrix_view<Stored> wide_rows() {
    return {wide_.data(), static_cast<local_index>(widen_->new_block().rows.size()), width_, width_};
  }

  spmm_blocks<Device> blocks_;
  std::shared_ptr<const local::csr_tiles<T, Device>> a_;
  spmm_options options_;
  traffic predicted_, predicted_sums_;
  global_index words_of_x_ = 0;
  bool merges_ = false;            ///< whether remote tiles are merged
  std::vector<row_group> groups_;  ///< one for each block that this rank multiplies
  std::vector<std::size_t> nonzeros_;
  std::size_t exchanged_tiles_ = 0;
  spmm_product<T, Device> product_;
  local::entry_passes<Device> passes_;
  local_index width_ = 0;
  buffer<Stored, Device> wide_;  ///< X at full width, when A is stationary
  std::unique_ptr<redistribution<Stored, Device>> widen_;
  std::unique_ptr<block_stream<T, Device>> stream_;
  std::unique_ptr<whole_exchange<Stored, Device>> whole_;
  std::unique_ptr<needed_exchange<Stored, Device>> needed_;
  std::unique_ptr<chunked_rows<Stored, Device>> chunked_;
  partial_sums<Sum, Device> sums_;
};

template <class T, class Device, class Sum, class Stored>
spmm_schedule<T, Device, Sum, Stored>::spmm_schedule(const mesh<Device>& m,
                                                     std::shared_ptr<const local::csr_tiles<T, Device>> a,
                                                     const blocking& rows, const blocking& cols,
                                                     const blocking& features, layout sparse_layout,
                                                     layout dense_layout, spmm_options options,
                                                     entry_values values)
    : blocks_{m, rows, cols, features, sparse_layout, dense_layout}, a_(std::move(a)) {
  if (values == entry_values::given) options.chunks = 1;
  const bool merges =
      values == entry_values::own && blocks_.row_ranks() > 1 && options.rows != row_exchange::full;
  const spmm_cost<T, Device> cost(blocks_, *a_, merges);
  options_ = cost.choose(options);
  product_ = spmm_product<T, Device>(options_.row_order);
  predicted_ = cost.received_under(options_);
  predicted_sums_ = cost.received_in_sums(options_);
  words_of_x_ = predicted_.words - predicted_sums_.words - cost.received_of_a(options_).words;
  merges_ = cost.merges(options_);
  options_.chunks = merges_ && !a_->is_counted() ? chunks_of(cost, options_.chunks) : 1;
  build(cost);
}

template <class T, class Device, class Sum, class Stored>
void spmm_schedule<T, Device, Sum, Stored>::operator()(matrix_view<const Stored> x, matrix_view<T> y,
                                                       const local::spmm_epilogue<T>& e) {
  const matrix_view<T> sums = sums_.empty() ? y : sums_.input();
  accumulator<T> sum(sums, e.beta);
  const std::size_t tiles = groups_.size() * std::max<std::size_t>(exchanged_tiles_, 1);
  std::size_t number = 0;
  std::size_t left = tiles * static_cast<std::size_t>(sums.rows);  // rows of tiles
  for_stages(x, [&](std::size_t, const local::csr_slice<T>& part, matrix_view<const Stored> rows) {
    const bool last = left <= static_cast<std::size_t>(sums.rows);
    left -= static_cast<std::size_t>(part.entries.rows);
    const auto [of_old, out] = sum.add(part);
    local::spmm_epilogue<T> fusion = last ? e.from_row(part.first_row) : e.without_end();
    fusion.beta = of_old;
    multiply(number++, part, rows, fusion, out);
  });
  finish(y);
}

template <class T, class Device, class Sum, class Stored>
void spmm_schedule<T, Device, Sum, Stored>::for_stages(matrix_view<const Stored> x, kernel_reference kernel) {
  if (widen_) {
    (*widen_)(x, wide_rows());
    x = wide_rows();
  }
  if (chunked_) return for_chunks(x, kernel);
  const std::size_t own = merges_ ? 0 : blocks_.own_tile();
  start_rows(0, 0, x);
  stream_->start(0);
  for (std::size_t k = 0; k < groups_.size(); ++k) {
    stream_->arrive(k);
    if (k + 1 < groups_.size()) stream_->start(k + 1);
    for (const local::csr_slice<T>& part : stream_->parts(k, own)) kernel(own, part, own_rows(k, x));
    for (std::size_t t = 0; t < exchanged_tiles_; ++t) {
      const matrix_view<const Stored> rows = arrive(k, t);
      if (t + 1 < exchanged_tiles_)
        start_rows(k, t + 1, x);
      else if (k + 1 < groups_.size())
        start_rows(k + 1, 0, x);
      if (t == own) continue;
      for (const local::csr_slice<T>& part : stream_->parts(k, t)) kernel(t, part, rows);
    }
  }
}

template <class T, class Device, class Sum, class Stored>
void spmm_schedule<T, Device, Sum, Stored>::build(const spmm_cost<T, Device>& cost) {
  const auto& m = blocks_.m;
  const auto& q = m.queue();
  const std::size_t own = blocks_.own_tile();
  width_ = to_local(columns().size(), "the width of a dense block");
  if (stays()) {
    widen_ = std::make_unique<redistribution<Stored, Device>>(m, blocks_.cols, blocks_.features,
                                                              blocks_.dense, blocks_.wide());
    wide_ = buffer<Stored, Device>(q, static_cast<std::size_t>(widen_->new_block().size()));
  }
  const bool needed = options_.rows == row_exchange::sparsity_aware;
  auto [groups, shapes] =
      cost.multiplied(options_, blocks_.cols.block(blocks_.multiplied(options_).rows, m.at()).begin);
  groups_ = std::move(groups);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (std::size_t r = 0; needed && !merges_ && r < groups_[g].rows.size(); ++r)
      if (r != own) shapes[g].widths[r] = static_cast<local_index>(groups_[g].needed[r]);
    nonzeros_.push_back(shapes[g].nonzeros);
  }
  const local::csr_tiles<T, Device>& a = merges_ ? a_->merged(q, own, m.tile_entries()) : *a_;
  const bool compact = needed && !merges_ && a.count() > 1;
  std::span<const local_index> sent;
  if (compact) sent = a.compacted(q, own);
  if (!compact && shapes.size() > 1) sent = a.contiguous(q);
  stream_ = std::make_unique<block_stream<T, Device>>(
      m, std::move(shapes), compact ? a.structure_at(sent.data()) : a.located(), sent,
      compact ? a.compacted_values(q, own) : a.stored_values());
  sums_ =
      partial_sums<Sum, Device>(m, blocks_.rows, blocks_.features, blocks_.sparse, blocks_.dense, stays());
  if (blocks_.row_ranks() == 1) return;
  exchanged_tiles_ = merges_ ? 2 : static_cast<std::size_t>(blocks_.row_ranks());
  if (options_.chunks > 1)
    build_chunks(a);
  else if (needed)
    needed_ = std::make_unique<needed_exchange<Stored, Device>>(
        m, groups_, share_lists(m, groups_, a_->needed(q, own)), width_);
  else
    whole_ = std::make_unique<whole_exchange<Stored, Device>>(m, groups_, width_);
}

template <class T, class Device, class Sum, class Stored>
void spmm_schedule<T, Device, Sum, Stored>::build_chunks(const local::csr_tiles<T, Device>& merged) {
  const auto& m = blocks_.m;
  chunked_ = std::make_unique<chunked_rows<Stored, Device>>(
      m, make_chunk_lists(m, groups_, share_lists(m, groups_, a_->needed(m.queue(), blocks_.own_tile())),
                          merged, static_cast<std::size_t>(options_.chunks), chunk_of_row::first, width_));
  predicted_.messages += chunked_->steps().more_messages(&chunk_lists<Device>::step::wanted);
}

template <class T, class Device, class Sum, class Stored>
void spmm_schedule<T, Device, Sum, Stored>::for_chunks(matrix_view<const Stored> x, kernel_reference kernel) {
  const std::size_t chunks = chunked_->steps().chunks(), steps = chunked_->steps().size();
  chunked_->start(0, x);
  chunked_->start(1, x);
  stream_->start(0);
  for (std::size_t n = 0; n < steps; ++n) {
    const std::size_t k = n / chunks;
    if (n % chunks == 0) {
      stream_->arrive(k);
      if (k + 1 < groups_.size()) stream_->start(k + 1);
      for (const local::csr_slice<T>& part : stream_->parts(k, 0)) kernel(0, part, own_rows(k, x));
    }
    const matrix_view<const Stored> rows = chunked_->arrive(n);
    if (n + 2 < steps) chunked_->start(n + 2, x);
    chunked_->steps().for_parts(stream_->parts(k, 1), n,
                                [&](const local::csr_slice<T>& part) { kernel(1, part, rows); });
  }
}

template <class T, class Device, class Sum, class Stored>
void spmm_schedule<T, Device, Sum, Stored>::multiply([[maybe_unused]] std::size_t number,
                                                     const local::csr_slice<T>& a,
                                                     matrix_view<const Stored> x,
                                                     const local::spmm_epilogue<T>& e, matrix_view<T> y) {
  if constexpr (!std::is_same_v<Stored, T>) {
    spmm_fused(queue(), a.entries, x, e, y);
  } else {
    local::chunked::spmm_fused(
        queue(), passes_, number, a.entries, x, e, y,
        [&] {
          if (blocks_.col_cut() && !stays())
            spmm_fused(queue(), a.entries, x, e, y);
          else
            product_(queue(), a.entries, x, e, y);  // the same blocks in every call
        },
        a.first_row > 0);
  }
}

}  // namespace partita::detail

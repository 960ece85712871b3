// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The stages of a product and what it sends; independent of the elements of X and Y.

#include <memory>
#include <utility>

#include "partita/algebra/block_stream.hpp"
#include "partita/algebra/node_lists.hpp"
#include "partita/algebra/spmm_cost.hpp"

namespace partita::algebra::detail {

/// The values that multiply X: A's own, or an array with one value for each entry of its tiles.
enum class entry_values : std::uint8_t { own, given };

/// A tile of A, or a chunk of its rows, with the step of the exchange along row that brings its rows or sends
/// its sums.
struct product_stage {
  std::size_t tile = 0, chunk = 0, step = 0;
  bool travels = false;  ///< otherwise its rows or sums are this rank's own
  bool multiplies = true;
};

/// The options and stages of a product with the blocks of A, independent of the layouts in the matrix types.
///
/// Collective over the mesh: the constructor. What travels: see spmm_cost and chunk_lists.
template <class T, class Device>
class product_plan {
 public:
  /// If only needed rows are sent and A's own values are used, there are two tiles, the rank's own and the
  /// merged remote ones, so Y is traversed twice on any number of ranks; or one merged tile per slice. With
  /// given values there is one chunk and one slice. `bytes`: the size of an element sent along row.
  product_plan(const spmm_blocks<Device>& blocks, std::shared_ptr<local::tile_analysis<T, Device>> a,
               spmm_options options, entry_values values, std::size_t bytes);

  const spmm_blocks<Device>& blocks() const { return blocks_; }
  const local::csr_tiles<T, Device>& a() const { return a_->tiles(); }
  spmm_options options() const { return options_; }
  bool sums_go() const { return blocks_.sums_go(); }
  axis_set summed() const { return blocks_.summed(options_); }
  /// Whether the blocks of A stay in the same memory in every call.
  bool blocks_stay() const { return !blocks_.col_cut() || blocks_.stays(options_); }

  /// The blocks of A that this rank multiplies, by their rows of X, and the stages of each block.
  const std::vector<row_group>& groups() const { return groups_; }
  std::span<const product_stage> stages() const { return stages_; }
  /// The steps of the exchange along row for each block, and the lists of the rows to send; null if whole
  /// sub-blocks are sent.
  std::size_t steps_of_block() const {
    return lists_ ? lists_->steps_of_block() : static_cast<std::size_t>(blocks_.row_ranks());
  }
  const std::shared_ptr<const chunk_lists<Device>>& lists() const { return lists_; }
  /// The lists of the two-level exchange, whose first level is lists(); empty if rows are sent
  /// directly.
  const node_lists<Device>& by_node() const { return by_node_; }
  bool merges() const { return merges_; }
  block_stream<T, Device>& stream() const { return *stream_; }

  /// The parts of A that stage s multiplies for block k, which has arrived.
  chunk_slices<T> parts(std::size_t k, const product_stage& s) const {
    if (!s.travels || chunks() == 1) return {stream_->parts(k, s.tile), 0, 1};
    return {stream_->parts(k, s.tile), s.chunk, chunks(),
            entries_.empty() ? std::span<const local_index>() : entries_[s.chunk]};
  }
  /// The same, restricted to these rows of Y.
  chunk_slices<T> parts(std::size_t k, const product_stage& s, interval rows) const {
    return {stream_->parts(k, s.tile), rows};
  }
  /// f(number, part) for the parts of a block that stays, numbered in order of multiplication.
  template <class F>
  void for_parts(F f) const {
    std::size_t number = 0;
    for (const product_stage& s : stages_)
      for (const local::csr_slice<T>& part : parts(0, s)) f(number++, part);
  }
  /// This rank's rows among those sent along row for block k.
  template <class View>
  View own_rows(std::size_t k, const View& all) const {
    const row_group& group = groups_[k];
    return all.block(group.first_row, 0, static_cast<local_index>(group.rows[blocks_.own_tile()]), width_);
  }

  /// The columns of X that this rank multiplies.
  interval columns() const { return blocks_.columns(options_); }
  local_index width() const { return width_; }
  /// The total number of tile rows that kernels process in one call.
  std::size_t rows_of_tiles() const { return tiles_ * static_cast<std::size_t>(a().rows); }
  /// The nonzeros this rank multiplies in one call, times the columns of X they are multiplied by.
  global_index multiplications() const { return static_cast<global_index>(nonzeros_) * width_; }
  /// What this rank receives in one call, and in its stages alone.
  traffic predicted() const { return predicted_; }
  traffic predicted_stages() const { return predicted_ - predicted_sums_; }
  /// If rows are forwarded inside nodes: the part of predicted() that comes from other nodes.
  traffic predicted_between_nodes() const { return between_nodes_; }
  /// The number of these words that are elements of X.
  global_index words_of_x() const { return words_of_x_; }

 private:
  /// Returns the tiles that are multiplied.
  const local::csr_tiles<T, Device>& plan_blocks(multiplied_blocks all);
  void plan_lists(const spmm_cost<T, Device>& cost, const local::csr_tiles<T, Device>& a);
  void plan_stages(const local::csr_tiles<T, Device>& a);
  void choose_steps(global_index needed_bytes);
  std::size_t chunks() const { return static_cast<std::size_t>(options_.chunks); }
  std::size_t slices() const { return static_cast<std::size_t>(options_.slices); }

  spmm_blocks<Device> blocks_;
  std::shared_ptr<local::tile_analysis<T, Device>> a_;
  spmm_options options_;
  traffic predicted_, predicted_sums_, between_nodes_;
  global_index words_of_x_ = 0;
  bool merges_ = false;  ///< whether remote tiles are merged, in one for each slice
  std::vector<row_group> groups_;
  std::vector<product_stage> stages_;
  std::vector<std::vector<local_index>> entries_;  ///< of each part of each chunk, where known
  std::size_t tiles_ = 0, nonzeros_ = 0;
  local_index width_ = 0;
  std::unique_ptr<block_stream<T, Device>> stream_;
  std::shared_ptr<const chunk_lists<Device>> lists_;
  node_lists<Device> by_node_;
};

template <class T, class Device>
product_plan<T, Device>::product_plan(const spmm_blocks<Device>& blocks,
                                      std::shared_ptr<local::tile_analysis<T, Device>> a,
                                      spmm_options options, entry_values values, std::size_t bytes)
    : blocks_(blocks), a_(std::move(a)) {
  const auto& m = blocks_.m;
  if (values == entry_values::given) options.chunks = options.ranks_of_node = 1;
  if (!hands_on(m.shape(), options.ranks_of_node)) options.ranks_of_node = 1;
  if (blocks_.keeps_rows_whole()) options.stationary = stationary::a;
  if (options.ranks_of_node > 1 && options.chunks == 0) options.chunks = 1;
  const bool merges =
      values == entry_values::own && blocks_.row_ranks() > 1 && options.rows != row_exchange::full;
  const spmm_cost<T, Device> cost(blocks_, *a_, merges);
  options_ = cost.choose(options);
  predicted_ = cost.received_under(options_);
  predicted_sums_ = cost.received_in_sums(options_);
  merges_ = cost.merges(options_);
  choose_steps(cost.most_needed(options_) * static_cast<global_index>(bytes));
  width_ = base::to_local(columns().size(), "the width of a dense block");
  const local::csr_tiles<T, Device>& multiplied = plan_blocks(cost.multiplied(options_));
  if (blocks_.row_ranks() > 1 && options_.rows == row_exchange::sparsity_aware) plan_lists(cost, multiplied);
  words_of_x_ = sums_go() ? cost.received_in_x_layout(options_).words
                          : predicted_.words - predicted_sums_.words - cost.received_of_a(options_).words;
  plan_stages(multiplied);
}

template <class T, class Device>
void product_plan<T, Device>::plan_lists(const spmm_cost<T, Device>& cost,
                                         const local::csr_tiles<T, Device>& a) {
  const auto& m = blocks_.m;
  const auto needed = share_lists(m, groups_, a_->needed());
  if (options_.ranks_of_node > 1)
    by_node_ = lists_by_node(m, groups_, needed, options_.ranks_of_node, width_);
  std::vector<local_index> steps;  // of rows
  if (chunks() > 1) steps = chunks_of_rows(m.queue(), a, chunks(), blocks_.flow);
  if (slices() > 1) steps = a_->sliced(slices()).slice();
  lists_ = by_node_ ? by_node_.across
                    : std::make_shared<const chunk_lists<Device>>(
                          m, groups_, needed, steps, std::max(chunks(), slices()), chunks() > 1, width_);
  const int me = static_cast<int>(blocks_.own_tile());
  traffic along_row = lists_->received(blocks_.flow, me, local::sent_of_row(options_.encoding, width_));
  if (by_node_) {
    between_nodes_ = along_row;
    along_row += by_node_.inside->received(blocks_.flow, me, width_);
  }
  predicted_ += along_row - cost.received_along_row(options_);
}

template <class T, class Device>
void product_plan<T, Device>::choose_steps(global_index needed_bytes) {
  const auto& m = blocks_.m;
  if (options_.chunks == 1 && options_.slices == 0) options_.slices = 1;  // in a single piece, as requested
  options_.chunks =
      merges_ && !a_->tiles().is_counted()
          ? static_cast<int>(chunks_in_effect(m, options_.chunks, static_cast<std::size_t>(needed_bytes)))
          : 1;
  if (!merges_ || !blocks_stay() || options_.chunks > 1 || options_.ranks_of_node > 1) {
    options_.slices = 1;
    return;
  }
  const local::tile_shape& merged = a_->merged_shape();
  options_.slices =
      static_cast<int>(slices_in_effect(m, options_.slices, static_cast<std::size_t>(merged.widths[1]),
                                        merged.entries_of_tile(0), merged.nonzeros, merged.rows));
}

template <class T, class Device>
const local::csr_tiles<T, Device>& product_plan<T, Device>::plan_blocks(multiplied_blocks all) {
  const auto& m = blocks_.m;
  const std::size_t own = blocks_.own_tile();
  groups_ = std::move(all.groups);
  const local::csr_tiles<T, Device>& a = merges_ ? a_->merged(slices(), blocks_stay()) : a_->tiles();
  if (merges_ && blocks_stay()) all.shapes = {a};
  const bool compact = options_.rows == row_exchange::sparsity_aware && !merges_ && a.count() > 1;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (std::size_t r = 0; compact && r < groups_[g].rows.size(); ++r)
      if (r != own) all.shapes[g].widths[r] = static_cast<local_index>(groups_[g].needed[r]);
    nonzeros_ += all.shapes[g].nonzeros;
  }
  std::span<const local_index> sent;
  if (compact) sent = a_->compacted();
  if (!compact && all.shapes.size() > 1) sent = merges_ ? a.structure.span() : a_->contiguous();
  stream_ = std::make_unique<block_stream<T, Device>>(
      m, std::move(all.shapes), compact ? a.structure_at(sent.data()) : a.located(), sent,
      compact ? a_->compacted_values() : a.stored_values());
  return a;
}

template <class T, class Device>
void product_plan<T, Device>::plan_stages(const local::csr_tiles<T, Device>& a) {
  const std::size_t own = merges_ ? 0 : blocks_.own_tile();
  const auto ranks = static_cast<std::size_t>(blocks_.row_ranks());
  const bool whole_sums = sums_go() && !lists_;  // the owner then takes part in its own sum
  if (ranks > 1 && !merges_)
    for (std::size_t t = 0; t < ranks; ++t)
      if (!sums_go() || whole_sums || t != own)
        stages_.push_back({t, 0, lists_ ? 0 : t, true, sums_go() || t != own});
  for (std::size_t j = 0; j < chunks() * slices() && merges_; ++j)
    stages_.push_back(chunks() > 1 ? product_stage{1, j, j, true} : product_stage{1 + j, 0, j, true});
  if (chunks() > 1 && groups_.size() == 1)
    entries_ = entries_of_chunks(blocks_.m.queue(), a.parts(1), chunks());
  tiles_ = groups_.size() * (merges_ ? 1 + slices() : ranks);
  // Own rows are multiplied while others arrive; own sums are computed while others are sent.
  if (!sums_go()) stages_.insert(stages_.begin(), product_stage{own});
  if (sums_go() && (!whole_sums || ranks == 1)) stages_.push_back({own});
}

}  // namespace partita::algebra::detail

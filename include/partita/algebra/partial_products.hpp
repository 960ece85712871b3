// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Partial products of a GEMM and their sums over ranks.

#include <utility>
#include <vector>

#include "partita/local/chunked.hpp"
#include "partita/local/chunked_gemm.hpp"
#include "partita/matrix/dense.hpp"
#include "partita/partition/gemm_choice.hpp"
#include "partita/transfer/block_exchange.hpp"

namespace partita::algebra::detail {

/// The products of blocks under a schedule that sums over ranks, stage by stage: computed in the order in
/// which they are reduce-scattered, so that nothing is packed.
template <class T, class Device>
class partial_products {
 public:
  partial_products(const mesh<Device>& m, const partition::gemm_problem& p,
                   const partition::gemm_blocks& blocks, const partition::gemm_sums& sums)
      : mesh_(m), problem_(p), sums_(sums) {
    global_index product = 0, summed = 0;
    for (global_index s = 0; s < blocks.stages.without(partition::gemm_index::k); ++s) {
      stages_.push_back(stage_of(blocks, s));
      product = std::max(product, stages_.back().whole.size());
      if (!sums.scatter.empty() && !stages_.back().in_place)
        summed = std::max(summed, stages_.back().owned.size());
    }
    product_ = buffer<T, Device>(m.queue(), static_cast<std::size_t>(product));
    summed_ = buffer<T, Device>(m.queue(), static_cast<std::size_t>(summed));
  }

  /// The product of a stage = alpha op(a) op(b) + beta times itself.
  void multiply(std::size_t stage, T alpha, matrix_view<const T> a, matrix_view<const T> b, T beta) {
    const auto part = [](matrix_view<const T> x, bool of_rows, interval all, interval some) {
      const auto begin = static_cast<local_index>(some.begin - all.begin),
                 size = static_cast<local_index>(some.size());
      return of_rows ? x.block(begin, 0, size, x.cols) : x.block(0, begin, x.rows, size);
    };
    const stage_sums& s = stages_[stage];
    for (const piece& p : s.pieces)
      if (p.block.size() > 0)
        local::chunked::gemm(mesh_.queue(), problem_.transposed_a, problem_.transposed_b, alpha,
                             part(a, !problem_.transposed_a, s.whole.rows, p.block.rows),
                             part(b, problem_.transposed_b, s.whole.cols, p.block.cols), beta,
                             transfer::view_of(product_.data() + p.begin, p.block));
  }

  /// Reduce-scatters the product of a stage: c = sum + beta c, in the part of c that the stage computes.
  void scatter_into(std::size_t stage, T beta, matrix_view<T> c) {
    const stage_sums& s = stages_[stage];
    const auto& q = mesh_.queue();
    const matrix_view<T> target = transfer::part_of(c, problem_.c.block(mesh_.at()), s.owned);
    const base::linear_combination<T> add{1, beta};
    const auto size = static_cast<std::size_t>(s.owned.size());
    if (s.in_place) {
      const matrix_view<T> mine = transfer::view_of(product_.data() + s.own_piece, s.owned);
      if (beta != 0)
        local::chunked::zip(q, add, matrix_view<const T>(mine), matrix_view<const T>(target), mine);
      return scatter(s, std::span<T>(target.data, size));
    }
    scatter(s, summed_.span().first(size));
    const matrix_view<const T> sums = transfer::view_of(summed_.data(), s.owned);
    if (beta == 0) return local::chunked::copy(q, sums, target);
    local::chunked::zip(q, add, sums, matrix_view<const T>(target), target);
  }
  /// The sums of a schedule that redistributes them.
  matrix_view<const T> sums() {
    const stage_sums& s = stages_[0];
    if (sums_.scatter.empty()) return transfer::view_of(product_.data(), s.whole);
    scatter(s, summed_.span());
    return transfer::view_of(summed_.data(), s.owned);
  }

  /// What this rank receives in the reduce-scatters.
  traffic predicted() const {
    traffic v;
    comm::collective op;
    op.kind = operation::reduce_scatter;
    for (const stage_sums& s : stages_) {
      op.count = s.owned.size();
      v += received(op, partition::rank_in_group(mesh_.shape(), sums_.scatter, mesh_.at()),
                    mesh_.shape().size(sums_.scatter));
    }
    return v;
  }

 private:
  /// Consecutive elements of the product buffer that are one block.
  struct piece {
    partition::rectangle block;
    std::size_t begin;
  };
  struct stage_sums {
    partition::rectangle whole, owned;  ///< before and after the sums
    std::vector<piece> pieces;          ///< each computed by one local product
    std::vector<global_index> counts;   ///< elements that each rank keeps
    std::size_t own_piece = 0;          ///< where those of this rank begin
    bool in_place = false;              ///< whether they are contiguous in C
  };

  stage_sums stage_of(const partition::gemm_blocks& blocks, global_index stage) const {
    const coordinates at = mesh_.at();
    stage_sums s;
    s.whole = blocks.of_c(at, stage);
    s.owned = sums_.owned(problem_, blocks, at, stage);
    s.in_place = !sums_.redistributes && s.owned.cols == problem_.c.block(at).cols;
    std::size_t begin = 0;
    bool rows_in_order = true;
    global_index row = s.whole.rows.begin;
    for (int q = 0; !sums_.scatter.empty() && q < mesh_.shape().size(sums_.scatter); ++q) {
      const coordinates other = partition::group_member(mesh_.shape(), sums_.scatter, at, q);
      const partition::rectangle block = sums_.owned(problem_, blocks, other, stage);
      if (other == at) s.own_piece = begin;
      s.pieces.push_back({block, begin});
      s.counts.push_back(block.size());
      begin += static_cast<std::size_t>(block.size());
      if (block.size() == 0) continue;
      rows_in_order = rows_in_order && block.cols == s.whole.cols && block.rows.begin == row;
      row = block.rows.end;
    }
    if (rows_in_order) s.pieces = {{s.whole, 0}};
    return s;
  }
  void scatter(const stage_sums& s, std::span<T> mine) {
    mesh_.along(sums_.scatter)
        .reduce_scatter(std::as_const(product_).span().first(comm::total_of(std::span(s.counts))), s.counts,
                        mine);
  }

  mesh<Device> mesh_;
  partition::gemm_problem problem_;
  partition::gemm_sums sums_;
  std::vector<stage_sums> stages_;
  buffer<T, Device> product_, summed_;
};

}  // namespace partita::algebra::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Rows of a matrix whose columns are partitioned over the ranks, as the input of a layer.

#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "partita/algebra/dropout.hpp"
#include "partita/algebra/row_products.hpp"
#include "partita/algebra/spmm.hpp"

namespace partita::algebra {

namespace detail {

/// Dropout of entries whose columns begin at `first`.
template <class T>
struct dropped_columns {
  base::dropped<T> drop;
  global_index first;
  constexpr T operator()(global_index i, global_index j, T x) const { return drop(i, j + first, x); }
};

}  // namespace detail

/// H (n x f): the rows that this rank needs of a matrix whose columns are partitioned over P ranks. Rank r
/// has columns c_r of the rows of all ranks, stacked in rank order: S_r (sum of n_q x |c_r|), on a mesh of
/// one rank. A product with a replicated weight is a sum over the ranks, H W = sum over r of S_r W(c_r, :),
/// of which each rank gets its own rows; so H itself is never sent. Its gradient is not sent either: dS_r =
/// G W(c_r, :)^T, where G, the gradients of all ranks, comes from weight_gradient_part.
///
/// Collective over the ranks: gemm, weight_gradient_part and the constructor. Source: P3 (Gandhi, Iyer, OSDI
/// 2021), section 3.2.
template <class T, class Device>
class column_slices {
 public:
  using matrix = dense<T, vertex_rows, Device>;
  using sparse_matrix = sparse<T, dynamic_layout, Device>;

  /// `counts`: the rows of each rank; `columns`: this rank's columns, out of `width`; `vertices`: the vertex
  /// of each row of `slices`, in the device's memory, for dropout masks. `ranks` and `vertices` must outlive
  /// this object. Throws shape_error unless the slices have the rows of all ranks and these columns.
  column_slices(const partita::mesh<Device>& ranks, std::vector<global_index> counts, interval columns,
                global_index width, std::shared_ptr<const matrix> slices,
                const global_index* vertices = nullptr)
      : ranks_(ranks),
        counts_(std::move(counts)),
        columns_(columns),
        width_(width),
        slices_(std::move(slices)),
        vertices_(vertices),
        rows_(blocking::even(counts_[static_cast<std::size_t>(ranks.rank())], slices_->mesh().shape(),
                             nesting::rows)) {
    const matrix_shape wanted{std::accumulate(counts_.begin(), counts_.end(), global_index{0}),
                              columns_.size()};
    if (slices_->shape() != wanted)
      base::throw_error<shape_error>({"slices of ", wanted, " cannot be stored in ", slices_->shape()});
  }

  /// Sets the blocks of all ranks, as one block diagonal matrix, by which `aggregated` multiplies;
  /// `targets`: the number of rows of each rank's block, which are also its first columns; `rounds`: whether
  /// what is multiplied by them is rounded to base::bfloat16.
  void multiply_by(sparse_matrix blocks, std::vector<global_index> targets, bool rounds = false) {
    blocks_.emplace(std::move(blocks));
    target_counts_ = std::move(targets);
    rounds_ = rounds;
  }

  /// Every weight_gradient_part then also passes to `add` a summand of d loss / d S_r, of the shape of
  /// `slices`, for the weight of the last product; so do the slices made from these.
  void collect_gradient(std::function<void(matrix&)> add) { collect_ = std::move(add); }

  const partita::mesh<Device>& mesh() const { return slices_->mesh(); }
  matrix_shape shape() const { return {rows_.size(), width_}; }
  const blocking& row_blocking() const { return rows_; }

  /// A H for the blocks given to multiply_by. Local; no communication.
  column_slices& aggregated() {
    if (!aggregated_) {
      auto product = std::make_shared<matrix>(mesh(), blocks_->row_blocking(), slices_->col_blocking());
      multiply(*blocks_, *slices_, *product, rounds_);  // (sum of targets, columns here)
      column_slices result = like(std::move(product));
      if (collect_)
        result.collect_ = [blocks = *blocks_, to = slices_->row_blocking(), add = collect_,
                           rounds = rounds_](matrix& d) {
          matrix up(d.mesh(), to, d.col_blocking());
          multiply(transposed(blocks), d, up, rounds);  // (sum of n_q, columns here)
          add(up);
        };
      aggregated_ = std::make_shared<column_slices>(std::move(result));
    }
    return *aggregated_;
  }
  /// The first rows of each rank, as many as its block has. Local; no communication.
  column_slices& targets() {
    if (!targets_) {
      auto first = std::make_shared<matrix>(mesh(), blocks_->row_blocking(), slices_->col_blocking());
      for_targets(counts_, target_counts_, [&](local_index all, local_index target, local_index count) {
        copy(mesh().queue(), rows(*slices_, all, count), rows(*first, target, count));
      });
      column_slices result = like(std::move(first));
      if (collect_)
        result.collect_ = [counts = counts_, targets = target_counts_, to = slices_->row_blocking(),
                           add = collect_](matrix& d) {
          matrix up(d.mesh(), to, d.col_blocking());  // (sum of n_q, columns here)
          fill(up, T(0));
          for_targets(counts, targets, [&](local_index all, local_index target, local_index count) {
            copy(d.mesh().queue(), rows(std::as_const(d), target, count), rows(up, all, count));
          });
          add(up);
        };
      targets_ = std::make_shared<column_slices>(std::move(result));
    }
    return *targets_;
  }
  /// The same rows after dropout, keyed by vertices and columns of H. Local; no communication.
  column_slices after_dropout(const dropout_mask& mask) const {
    const dropout_mask of_slices = mask.of(vertices_);
    auto kept = std::make_shared<matrix>(mesh(), slices_->row_blocking(), slices_->col_blocking());
    const detail::dropped_columns<T> drop{of_slices.template function<T>(), columns_.begin};
    transform_indexed(*slices_, *kept, drop);
    column_slices result(ranks_, counts_, columns_, width_, std::move(kept), vertices_);
    result.blocks_ = blocks_;
    result.target_counts_ = target_counts_;
    result.rounds_ = rounds_;
    if (collect_)
      result.collect_ = [drop, add = collect_](matrix& d) {
        transform_indexed(d, d, drop);
        add(d);
      };
    return result;
  }

  /// Y = clamp(H W + beta Y + bias) (n x b). What travels: a reduce-scatter of (sum of n_q) b elements.
  friend void gemm(column_slices& h, const dense<T, replicated, Device>& w, matrix& y,
                   const std::type_identity_t<epilogue<T, Device>>& e = {}) {
    h.multiply(w, y, e);
  }
  /// dW(c_r, :) = S_r^T G, G the gradients of all ranks, and 0 in other rows; dbias = the column sums of this
  /// rank's G, unless null: this rank's contributions. What travels: an all-gather of G.
  friend void weight_gradient_part(column_slices& h, const matrix& g, dense<T, replicated, Device>& dw,
                                   dense<T, replicated, Device>* dbias = nullptr) {
    h.gradient(g, dw);
    if (dbias != nullptr) column_sums_part(g, *dbias);
  }

 private:
  /// y = a x, or a times x rounded. Throws error where the device has no such products.
  static void multiply(const sparse_matrix& a, const matrix& x, matrix& y, bool rounds) {
    if (!rounds) return spmm_plan<T, Device>(a, x)(x, y);
    if constexpr (multiplies_bfloat16<T, Device>) {
      dense<base::bfloat16, vertex_rows, Device> rounded(x.mesh(), x.row_blocking(), x.col_blocking());
      copy(x, rounded);
      spmm_plan<T, Device, base::bfloat16>(a, rounded)(rounded, y);
    } else {
      throw error("products with operands of bfloat16 are for float");
    }
  }
  /// body(first row of rank q, first of its targets, number of these) for each rank.
  template <class Body>
  static void for_targets(const std::vector<global_index>& counts, const std::vector<global_index>& targets,
                          Body body) {
    local_index all = 0, target = 0;
    for (std::size_t q = 0; q < counts.size(); ++q) {
      body(all, target, static_cast<local_index>(targets[q]));
      all += static_cast<local_index>(counts[q]);
      target += static_cast<local_index>(targets[q]);
    }
  }
  template <class Matrix>
  static auto rows(Matrix& x, local_index first, local_index count) {
    const auto all = x.local();
    return all.block(first, 0, count, all.cols);
  }
  template <class Matrix>
  auto own_rows(Matrix& w) const {
    return rows(w, static_cast<local_index>(columns_.begin), static_cast<local_index>(columns_.size()));
  }
  column_slices like(std::shared_ptr<const matrix> slices) const {
    return column_slices(ranks_, target_counts_, columns_, width_, std::move(slices));
  }
  std::vector<global_index> elements(global_index width) const {
    std::vector<global_index> sizes;
    for (const global_index n : counts_) sizes.push_back(n * width);
    return sizes;
  }

  void multiply(const dense<T, replicated, Device>& w, matrix& y, const epilogue<T, Device>& e) {
    weight_ = &w;
    const auto& q = mesh().queue();
    matrix parts(mesh(), {slices_->shape().rows, y.shape().cols}),
        sum(mesh(), y.row_blocking(), y.col_blocking());
    local::chunked::gemm(q, false, false, T(1), slices_->local(), own_rows(w), T(0),
                         parts.local());  // (sum of n_q, b)
    ranks_.along(partition::every_axis)
        .reduce_scatter(parts.values(), elements(y.shape().cols), sum.values());  // (n, b)
    partita::algebra::detail::finish<T>(q, std::as_const(sum).local(),
                                        partita::algebra::detail::epilogue_of_block(T(1), e, y), y.local());
  }
  void gradient(const matrix& g, dense<T, replicated, Device>& dw) const {
    matrix all(mesh(), {slices_->shape().rows, g.shape().cols});  // (sum of n_q, b)
    ranks_.along(partition::every_axis).all_gather(g.values(), elements(g.shape().cols), all.values());
    fill(dw, T(0));
    local::chunked::gemm(mesh().queue(), true, false, T(1), slices_->local(), std::as_const(all).local(),
                         T(0),
                         own_rows(dw));  // (columns here, b)
    if (!collect_) return;
    matrix ds(mesh(), slices_->row_blocking(), slices_->col_blocking());
    local::chunked::gemm(mesh().queue(), false, true, T(1), std::as_const(all).local(), own_rows(*weight_),
                         T(0),
                         ds.local());  // (sum of n_q, columns here)
    collect_(ds);
  }

  partita::mesh<Device> ranks_;
  std::vector<global_index> counts_, target_counts_;
  interval columns_;
  global_index width_;
  std::shared_ptr<const matrix> slices_;
  const global_index* vertices_;
  blocking rows_;
  std::optional<sparse_matrix> blocks_;
  bool rounds_ = false;  ///< what is multiplied by them
  std::function<void(matrix&)> collect_;
  const dense<T, replicated, Device>* weight_ = nullptr;  ///< of the last product
  std::shared_ptr<column_slices> aggregated_, targets_;   ///< made on first use
};

}  // namespace partita::algebra

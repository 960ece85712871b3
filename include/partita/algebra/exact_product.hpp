// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The product of a reproducible mesh.

#include <array>
#include <memory>
#include <span>
#include <utility>

#include "partita/algebra/exact_sums.hpp"
#include "partita/algebra/product.hpp"

namespace partita::algebra::detail {

/// A product in stages whose Y has the same bits for every arrangement: the sums of its stages are of double
/// on a common grid, for double matrices on two. Where rows of X travel, the stages form both; where sums
/// travel, they run once for each.
///
/// Collective over the mesh: constructor and call. What travels: what the stages send, rows of X once, sums
/// as doubles and for double matrices twice, where these travel also A's blocks; and what common_grid sends.
template <class T, class Device>
class exact_product final : public product<T, T> {
 public:
  /// `terms`: the largest number of terms in an element of Y.
  exact_product(spmm_blocks<Device> blocks, std::shared_ptr<local::tile_analysis<T, Device>> a,
                const spmm_options& options, global_index terms)
      : mesh_(blocks.m), stages_(adding(std::move(blocks)), std::move(a), options), terms_(terms) {}

  void operator()(matrix_view<const T> x, matrix_view<T> y, const local::spmm_epilogue<T>& e) override {
    const auto& q = stages_.queue();
    const auto grid =
        common_grid(mesh_, magnitude(q, stages_.plan().a().stored_values()), magnitude(q, x), terms_);
    const auto size = static_cast<std::size_t>(y.rows) * static_cast<std::size_t>(y.cols);
    sums_.reset(q, base::exact_sums<T> * size);
    const views sums = views_of_levels<T>(sums_.data(), y.rows, y.cols);
    if (stages_.plan().sums_go())
      send_sums(stages_.arranged(x), grid, sums);
    else
      send_rows(x, grid, sums);
    round_sums(q, std::span<const double>(sums_.span()), e.alpha, std::span<T>(y.data, size));
  }
  product_facts facts() const override {
    const product_plan<T, Device>& plan = stages_.plan();
    const traffic once = plan.sums_go() ? stages_.predicted_change() : plan.predicted_stages();
    const global_index passes = plan.sums_go() ? base::exact_sums<T> : 1;
    return {plan.options(),
            once + global_index{base::exact_sums<T>} * (plan.predicted() - once) + predicted_grid(mesh_),
            passes * plan.predicted_between_nodes(),
            plan.words_of_x(),
            plan.multiplications(),
            plan.summed()};
  }

 private:
  using views = std::array<matrix_view<double>, base::exact_sums<T>>;

  void send_sums(matrix_view<const T> x, const base::exact_grid& grid, const views& sums) {
    base::for_exact_parts<T>(grid, [&](int level, auto rounding) {
      const matrix_view<double>& of_level = sums[static_cast<std::size_t>(level)];
      stages_.for_stages_of(x, stages_.begin(of_level), 0,
                            [&](std::size_t, const auto& part, auto from, double beta, auto to) {
                              exact_spmm_transposed(stages_.queue(), part.entries, from, rounding, beta, to);
                            });
      stages_.finish(of_level);
    });
  }
  void send_rows(matrix_view<const T> x, const base::exact_grid& grid, const views& sums) {
    const auto& q = stages_.queue();
    views parts = sums;
    for (std::size_t level = 1; level < parts.size(); ++level)
      if (const auto to = stages_.begin(sums[level]); to.data != sums[level].data) {
        fine_.grow(q, static_cast<std::size_t>(to.rows) * static_cast<std::size_t>(to.cols));
        parts[level] = {fine_.data(), to.rows, to.cols, to.cols};
      }
    parts[0] = stages_.begin(sums[0]);
    stages_.for_stages(x, parts[0], 0,
                       [&](std::size_t, const auto& part, auto from, double beta, matrix_view<double> to) {
                         views rows;
                         for (std::size_t level = 0; level < rows.size(); ++level)
                           rows[level] = {parts[level].data + (to.data - parts[0].data), to.rows, to.cols,
                                          parts[level].row_stride};
                         exact_spmm(q, part.entries, from, grid, beta, rows);
                       });
    stages_.finish(sums[0]);
    for (std::size_t level = 1; level < parts.size(); ++level) {
      if (const auto to = stages_.begin(sums[level]); to.data != parts[level].data)
        copy(q,
             std::as_const(fine_).span().first(static_cast<std::size_t>(to.rows) *
                                               static_cast<std::size_t>(to.cols)),
             std::span(to.data, static_cast<std::size_t>(to.rows) * static_cast<std::size_t>(to.cols)));
      stages_.finish(sums[level]);
    }
  }

  static spmm_blocks<Device> adding(spmm_blocks<Device> blocks) {
    blocks.m = blocks.m.with_exact_sums();
    return blocks;
  }

  mesh<Device> mesh_;
  product_stages<T, Device, double, T> stages_;
  global_index terms_;
  buffer<double, Device> sums_,
      fine_;  ///< fine_: the fine sums, while the buffers of the stages have the coarse ones
};

}  // namespace partita::algebra::detail

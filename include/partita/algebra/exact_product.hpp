// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The product of a reproducible mesh.

#include <memory>
#include <span>

#include "partita/algebra/exact_sums.hpp"
#include "partita/algebra/product.hpp"

namespace partita::algebra::detail {

/// A product in stages whose Y has the same bits for every arrangement: the stages run with sums of double
/// on a common grid, and for double matrices a second time with the remainders.
///
/// Collective over the mesh: constructor and call. What travels: what the stages send, once for float and
/// twice for double, with sums as doubles, and what common_grid sends.
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
    base::for_exact_parts<T>(grid, [&](int level, auto rounding) {
      const matrix_view<double> sums{sums_.data() + static_cast<std::size_t>(level) * size, y.rows, y.cols,
                                     y.cols};
      stages_.for_stages(x, stages_.begin(sums), 0,
                         [&](std::size_t, const auto& part, auto from, double beta, auto to) {
                           if (stages_.plan().sums_go())
                             exact_spmm_transposed(q, part.entries, from, rounding, beta, to);
                           else
                             exact_spmm(q, part.entries, from, rounding, beta, to);
                         });
      stages_.finish(sums);
    });
    round_sums(q, std::span<const double>(sums_.span()), e.alpha, std::span<T>(y.data, size));
  }
  product_facts facts() const override {
    constexpr global_index times = base::exact_sums<T>;
    const product_plan<T, Device>& plan = stages_.plan();
    return {plan.options(), times * plan.predicted() + predicted_grid(mesh_),
            times * plan.predicted_between_nodes(), times * plan.words_of_x(), plan.multiplications()};
  }

 private:
  static spmm_blocks<Device> adding(spmm_blocks<Device> blocks) {
    blocks.m = blocks.m.with_exact_sums();
    return blocks;
  }

  mesh<Device> mesh_;
  product_stages<T, Device, double, T> stages_;
  global_index terms_;
  buffer<double, Device> sums_;
};

}  // namespace partita::algebra::detail

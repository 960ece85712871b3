// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Rows that kernels read in products whose sums go.

#include <memory>

#include "partita/algebra/needed_exchange.hpp"
#include "partita/algebra/product_plan.hpp"
#include "partita/transfer/redistribution.hpp"

namespace partita::algebra::detail {

/// For the tiles of A, one after the other, the rows of X whose gradients a product with A^T sums: X as for
/// A X, in the layout of the product. Along row, the rows whose sums are exchanged, or whole sub-blocks, are
/// sent, each while the tile before it is multiplied. The plan must outlive this object.
template <class T, class Device>
class tile_rows {
 public:
  explicit tile_rows(const product_plan<T, Device>& of) : plan_(of) {
    const spmm_blocks<Device>& b = plan_.blocks();
    const layout to = b.exchanged(plan_.options());
    if (!partition::same_blocks(b.m.shape(), b.dense, to)) {
      change_ = std::make_unique<redistribution<T, Device>>(b.m, b.cols, b.features, b.dense, to);
      changed_ = buffer<T, Device>(b.m.queue(), static_cast<std::size_t>(change_->new_block().size()));
    }
    if (plan_.lists())
      coming_ = std::make_unique<needed_exchange<T, Device>>(b.m, plan_.lists(), row_flow::rows_come, false);
    else if (b.row_ranks() > 1)
      coming_ = std::make_unique<whole_exchange<T, Device>>(b.m, plan_.groups(), plan_.width());
  }

  /// Begins with the first tile.
  void start(matrix_view<const T> x) {
    x_ = x;
    if (change_) {
      const matrix_view<T> to = transfer::view_of(changed_.data(), change_->new_block());
      (*change_)(x, to);
      x_ = to;
    }
    arrived_ = 0;
    if (coming_) coming_->start(0, x_);
  }
  /// The rows for tile t, valid until the next call; tiles must be requested in the order of the plan.
  matrix_view<const T> operator()(std::size_t t) {
    if (t != plan_.blocks().own_tile() && plan_.lists()) return coming_->arrive(0, t);
    const std::size_t tiles = plan_.groups()[0].rows.size();
    for (; coming_ && !plan_.lists() && arrived_ <= t; ++arrived_) {
      come_ = coming_->arrive(arrived_, arrived_);
      if (arrived_ + 1 < tiles) coming_->start(arrived_ + 1, x_);
    }
    return t == plan_.blocks().own_tile() ? plan_.own_rows(0, x_) : come_;
  }

  /// What this rank receives in one round, in closed form.
  traffic predicted() const {
    const spmm_blocks<Device>& b = plan_.blocks();
    const row_group& group = plan_.groups()[0];
    return transfer::received_rows(plan_.lists() ? group.needed : group.rows, plan_.width(),
                                   static_cast<int>(b.own_tile())) +
           redistribution<T, Device>::predicted(b.m, b.cols, b.features, b.dense,
                                                b.exchanged(plan_.options()));
  }

 private:
  const product_plan<T, Device>& plan_;
  std::unique_ptr<redistribution<T, Device>> change_;
  buffer<T, Device> changed_;
  std::unique_ptr<row_traffic<T>> coming_;
  matrix_view<const T> x_, come_;
  std::size_t arrived_ = 0;
};

}  // namespace partita::algebra::detail

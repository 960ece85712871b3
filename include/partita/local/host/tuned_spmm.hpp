// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Repeated products with the same sparse blocks, with their rows in another order where that pays.

#include <algorithm>
#include <optional>
#include <vector>

#include "partita/local/host/row_order.hpp"
#include "partita/local/host/spmm.hpp"
#include "partita/local/tuned_spmm.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"
#include "partita/memory/out_of_core.hpp"

namespace partita::local {

/// The epilogue of a x for blocks that are multiplied repeatedly. The second product with a block looks, on a
/// sample of it, whether another order of its rows pays within 20 products, and finds this order if so; that
/// costs a few products then, and a few hundredths of one otherwise. Every row is summed as the kernel spmm
/// does, so that y has the same bits. Only square blocks are reordered on their own account, whose rows are
/// those of x too, where x exceeds 32 MiB. An order takes 12 bytes per row and 4 per entry of a; none is
/// made where they exceed the budget of the queue, nor where passes go in chunks.
template <class T>
class tuned_spmm<T, on_host::host> {
 public:
  explicit tuned_spmm(local::row_order order = local::row_order::automatic, bool repeats = true)
      : order_(repeats ? order : local::row_order::natural) {}

  /// See the kernel spmm_fused.
  void operator()(const device_queue<on_host::host>& q, local::csr_view<T> a, local::input_view<T> x,
                  const local::spmm_epilogue<T>& fusion, matrix_view<T> y) {
    local::require_product("spmm", a, x, y, "a x");
    const on_host::ordered_rows* const rows = find(q, a, x.cols);
    on_host::spmm_detail::multiply<T>("spmm", q, rows == nullptr ? a : rows->of(a), x, fusion, y,
                                      rows == nullptr ? nullptr : rows->places());
  }

  /// Whether the rows of a block are in another order.
  bool reorders() const {
    return std::any_of(blocks_.begin(), blocks_.end(), [](const block& b) { return b.order.has_value(); });
  }

 private:
  struct block {
    const local_index *offsets, *columns;
    local_index rows, width;
    int products = 0;
    std::optional<on_host::ordered_rows> order;
  };

  /// The order of a block, or null for the natural one.
  const on_host::ordered_rows* find(const device_queue<on_host::host>& q, const local::csr_view<T>& a,
                                    local_index width) {
    if (order_ == local::row_order::natural || a.nonzeros() == 0 || width == 0) return nullptr;
    const on_host::order_problem p{
        a.rows, a.cols, a.offsets, a.columns, std::int64_t{width} * int{sizeof(T)}, q.threads()};
    const bool forced = order_ == local::row_order::clustered;
    if (!forced && p.cols * p.row_bytes < p.last_bytes) return nullptr;
    block& b = block_of(a, width);
    if (++b.products == (forced ? 1 : 2) && local::runs_whole(q) &&
        q.meter()->fits(on_host::ordered_rows::bytes(p)))
      choose(q, p, forced, b.order);
    return b.order ? &*b.order : nullptr;
  }
  block& block_of(const local::csr_view<T>& a, local_index width) {
    for (block& b : blocks_)
      if (b.offsets == a.offsets && b.columns == a.columns && b.rows == a.rows && b.width == width) return b;
    return blocks_.emplace_back(block{a.offsets, a.columns, a.rows, width, 0, {}});
  }
  static void choose(const device_queue<on_host::host>& q, const on_host::order_problem& p, bool forced,
                     std::optional<on_host::ordered_rows>& rows) {
    if (!forced && !on_host::order_may_pay(p)) return;
    rows.emplace(q, p, p.rows == p.cols ? on_host::clustered_order(p) : on_host::order_by_first_column(p));
    if (!forced && !on_host::order_pays(p, on_host::fetched_per_entry(p, false),
                                        on_host::fetched_per_entry(rows->of(p), false)))
      rows.reset();
  }

  local::row_order order_;
  std::vector<block> blocks_;
};

}  // namespace partita::local

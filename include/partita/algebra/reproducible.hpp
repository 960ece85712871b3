// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Queues that make their meshes reproducible.

#include <algorithm>
#include <memory>
#include <vector>

#include "partita/algebra/attention/ordered.hpp"
#include "partita/algebra/exact_edge_products.hpp"
#include "partita/algebra/exact_max_gradient.hpp"
#include "partita/algebra/exact_messages.hpp"
#include "partita/algebra/exact_product.hpp"
#include "partita/algebra/exact_row_sums.hpp"
#include "partita/algebra/exact_sums.hpp"

namespace partita {

namespace algebra {

/// Sums of terms on a grid that is the same for every arrangement; attention in a fixed order.
template <class T, class Device>
class exact_verbs final : public reproducible_verbs<T, Device> {
 public:
  using base_class = reproducible_verbs<T, Device>;
  using typename base_class::mesh;
  using typename base_class::vertex_block;
  using typename base_class::weights;

  double sum(const addends<T, Device>& x) const override {
    return detail::exact_total<T>(x.mesh, x.axes, x.block, x.shape.rows * x.shape.cols);
  }
  void column_sums(const addends<T, Device>& x, std::span<T> sums) const override {
    const auto& q = x.mesh.queue();
    const auto grid = detail::common_grid(x.mesh, magnitude(q, x.block), 1, x.shape.rows);
    detail::sum_over_ranks(x.mesh, x.axes, grid, sums, [&](auto part, double* to) {
      std::fill_n(to, sums.size(), 0.0);
      exact_column_sums(q, x.block, part, to + x.columns.begin);
    });
  }
  void inner(const addends<T, Device>& x, const addends<T, Device>& g, weights& dw) const override {
    const auto& q = g.mesh.queue();
    sum_inner(magnitude(q, x.block), g, dw,
              [&](const auto& grid, const auto& sums) { exact_inner(q, x.block, g.block, grid, sums); });
  }
  void inner(const local::csr_slices<T>& x, const vertex_block& g, weights& dw) const override {
    const auto& q = g.mesh().queue();
    double largest = 0;
    for (const local::csr_slice<T>& slice : x)
      largest = std::max(
          largest,
          magnitude(q, std::span(slice.entries.values, static_cast<std::size_t>(slice.entries.nonzeros()))));
    sum_inner(largest, g, dw, [&](const auto& grid, const auto& sums) {
      for (const local::csr_slice<T>& slice : x) {
        auto rows = sums;
        for (matrix_view<double>& of_level : rows) of_level = slice.rows_of(of_level);
        exact_spmm(q, slice.entries, g.local(), grid, 0.0, rows);
      }
    });
  }
  double cross_entropy(const vertex_block& logits, const local_index* labels, T scale,
                       vertex_block& gradient) const override {
    const mesh& m = logits.mesh();
    std::vector<double> losses(static_cast<std::size_t>(logits.local().rows));
    row_losses(m.queue(), logits.local(), labels, scale, gradient.local(), losses.data());
    const matrix_view<const double> all{losses.data(), logits.local().rows, 1};
    return detail::exact_total<double>(m, vertex_rows.used(), all, logits.shape().rows);
  }
  void entry_row_sums(const edge_matrix<T, Device>& e, matrix_view<T> sums) const override {
    const mesh& m = e.mesh();
    const auto& q = m.queue();
    const std::span<T> all(sums.data,
                           static_cast<std::size_t>(sums.rows) * static_cast<std::size_t>(sums.cols));
    const auto grid = detail::common_grid(m, magnitude(q, e.values()), 1, e.pattern().shape().cols);
    detail::sum_over_ranks(m, e.pattern().layout().cols, grid, all, [&](auto part, double* to) {
      std::fill_n(to, all.size(), 0.0);
      e.for_parts([&](std::size_t, const local::csr_slice<T>& of) {
        exact_entry_sums(q, of.entries, e.heads(), of.values_in(e.values().data(), e.heads()), part,
                         of.rows_of(matrix_view<double>{to, sums.rows, sums.cols}));
      });
    });
  }
  traffic predicted_sum(const mesh& m, axis_set axes, global_index elements) const override {
    return detail::predicted_grid(m) + detail::predicted_sums<T>(m, axes, elements);
  }

  std::unique_ptr<detail::product<T, T>> make_product(const detail::spmm_blocks<Device>& blocks,
                                                      std::shared_ptr<local::tile_analysis<T, Device>> a,
                                                      const spmm_options& options,
                                                      global_index terms) const override {
    return std::make_unique<detail::exact_product<T, Device>>(blocks, std::move(a), options, terms);
  }
  std::unique_ptr<max_gradient<T, Device>> make_max_gradient(const mesh& m, const blocking& sources,
                                                             const std::vector<global_index>& needed,
                                                             global_index terms) const override {
    return std::make_unique<exact_max_gradient<T, Device>>(m, sources, needed, terms);
  }
  std::unique_ptr<list_sums<T, Device>> make_list_sums(
      const dense<T, dynamic_layout, Device>& x) const override {
    return std::make_unique<exact_row_sums<T, Device>>(x);
  }
  std::unique_ptr<attention_way<T, Device>> make_attention(const sparse<T, dynamic_layout, Device>& a,
                                                           const score_shape& shape, local_index head_width,
                                                           int hops) const override {
    return std::make_unique<ordered_attention<T, Device>>(a, shape, head_width, hops);
  }
  std::unique_ptr<reproducible_messages<T, Device>> make_messages(
      const sparse<T, dynamic_layout, Device>& pattern, layout l, layout spread,
      const blocking& features) const override {
    return std::make_unique<exact_messages<T, Device>>(pattern, l, spread, features);
  }
  std::unique_ptr<edge_products<T, Device>> make_edge_products(
      std::shared_ptr<detail::edge_schedule<T, Device>> rows_come) const override {
    return std::make_unique<exact_edge_products<T, Device>>(std::move(rows_come));
  }

 private:
  /// dw = the sums over the ranks of what fill(grid, sums) writes, sums of products of numbers up to `of_x`
  /// with elements of g.
  template <class Fill>
  static void sum_inner(double of_x, const addends<T, Device>& g, weights& dw, const Fill& fill) {
    const auto grid = detail::common_grid(g.mesh, of_x, magnitude(g.mesh.queue(), g.block), g.shape.rows);
    detail::sum_over_ranks(g.mesh, g.axes, dw.values(), [&](double* sums) {
      fill(grid, detail::views_of_levels<T>(sums, dw.local().rows, dw.local().cols));
    });
  }
};

}  // namespace algebra

/// A copy of q, with its threads and memory, whose meshes are reproducible. With such a queue on all ranks,
/// spmm, spmm_plan, products with replicated weights and their gradients, sum, column_sums, maxima over
/// neighbours, messages and scores of edges, softmaxes, products and sums of edge matrices, attention, losses
/// and scores have the same bits for every policy, mesh, number of ranks and number of threads. Any other
/// verb whose sums would depend on these throws error. For the host.
template <class Device>
device_queue<Device> reproducible(const device_queue<Device>& q) {
  const auto with_verbs = [](const device_queue<Device>& to, auto number) {
    using T = decltype(number);
    return to.with(make_ordered_products<T>(to))
        .template with<algebra::reproducible_verbs<T, Device>>(
            std::make_shared<algebra::exact_verbs<T, Device>>());
  };
  return with_verbs(with_verbs(q, float()), double())
      .with(std::make_shared<memory::reproducible_sums<Device>>(memory::reproducible_sums<Device>{q}));
}

}  // namespace partita

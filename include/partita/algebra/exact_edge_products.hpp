// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Products with values of edges on a reproducible mesh.

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "partita/algebra/edge_schedule.hpp"
#include "partita/algebra/exact_messages.hpp"
#include "partita/local/chunked.hpp"

namespace partita::algebra {

namespace detail {

/// e x: its sums over rows and over columns, and the slope by e, are products with edge values and their
/// gradients.
struct edge_times_source {
  template <class X>
  constexpr X operator()(const X& x, const X& e) const {
    return e * x;
  }
};

}  // namespace detail

/// The products and sampled products of messages e x, which exact_messages adds up.
///
/// Collective over the mesh: constructor and all but predicted members. What travels: rows as in
/// edge_spmm_plan and sddmm_plan, and sums as in exact_messages.
template <class T, class Device>
class exact_edge_products final : public edge_products<T, Device> {
  using outputs = local::message_function<T>;

 public:
  using typename edge_products<T, Device>::edges;
  using typename edge_products<T, Device>::operand;

  /// See reproducible_verbs.
  explicit exact_edge_products(std::shared_ptr<detail::edge_schedule<T, Device>> rows_come)
      : schedule_(std::move(rows_come)),
        spread_(*schedule_),
        sums_(schedule_->pattern(), schedule_->operands(), schedule_->spread(), schedule_->features()),
        ones_(queue(), static_cast<std::size_t>(plan().width())) {
    local::chunked::fill(queue(), T(1), rows_of_ones(1).block(0, 0, 1, width()));
  }

  void multiply(const edges& e, const operand& x, matrix_view<T> y) override {
    local::chunked::fill(queue(), T(0), y);
    place(&e, x, {});
    sums_.begin(parts_, message_, false);
    sums_.add_rows(parts_, message_, 0, y);
  }
  void multiply_transposed(const edges& e, const operand& y, matrix_view<T> x) override {
    local::chunked::fill(queue(), T(0), x);
    place(&e, {}, y ? spread_(*y) : as_operand(schedule_->pattern().local()->rows));
    sums_.begin(parts_, message_, true);
    sums_.add_columns(parts_, message_, x);
  }
  void sample(matrix_view<const T> y, matrix_view<const T> x, edges& e, T beta) override {
    const std::span<T> values = e.values();
    std::transform(values.begin(), values.end(), values.begin(),
                   [=](T value) { return beta == T(0) ? T(0) : beta * value; });
    place(nullptr, x, spread_(y));
    sums_.begin(parts_, message_, true);
    sums_.add_heads(parts_, message_, outputs::edge, schedule_->slice(e), values);
  }

  traffic predicted_multiply(bool has_operand) const override {
    return (has_operand ? plan().predicted_stages() : traffic{}) + sums_.predicted_begin(1) +
           sums_.predicted_rows();
  }
  traffic predicted_transposed(bool has_operand) const override {
    return (has_operand ? spread_.predicted() : traffic{}) + sums_.predicted_begin(3) +
           sums_.predicted_columns();
  }
  traffic predicted_sample() const override {
    return plan().predicted_stages() + spread_.predicted() + sums_.predicted_begin(3) +
           sums_.predicted_heads(schedule_->heads());
  }

 private:
  const device_queue<Device>& queue() const { return schedule_->stages().queue(); }
  const auto& plan() const { return schedule_->stages().plan(); }
  local_index width() const { return static_cast<local_index>(plan().width()); }
  matrix_view<T> rows_of_ones(local_index rows) { return {ones_.data(), rows, width(), 0}; }
  matrix_view<const T> as_operand(local_index rows) { return rows_of_ones(rows); }

  /// The messages of all parts: values of e, or 1, times the rows of X, or 1, with the gradients of their
  /// sums.
  void place(const edges* e, const operand& x, matrix_view<const T> gradients) {
    parts_.clear();
    const auto add = [&](std::size_t t, const local::csr_slice<T>& part, matrix_view<const T> sources) {
      local::message_operands<T> of{.sources = sources};
      if (e != nullptr) {
        of.slice = schedule_->slice(*e);
        of.values = part.values_in(e->values().data(), of.slice.heads);
      }
      local::message_gradient<T> gradient;
      if (gradients.data != nullptr) gradient.rows = part.rows_of(gradients);
      parts_.push_back({t, part, of, gradient});
    };
    if (x)
      return schedule_->stages().for_stages(*x, {}, 0,
                                            [&](std::size_t t, const auto& part, auto rows, T, auto) {
                                              add(t, part, kept_(queue(), parts_, t, rows));
                                            });
    const auto& tiles = plan().a();
    for (std::size_t t = 0; t < tiles.count(); ++t)
      for (const local::csr_slice<T>& part : tiles.parts(t)) add(t, part, as_operand(part.entries.cols));
  }

  std::shared_ptr<detail::edge_schedule<T, Device>> schedule_;
  detail::spread_rows<T, Device> spread_;
  exact_messages<T, Device> sums_;
  buffer<T, Device> ones_;
  detail::kept_rows<T, Device> kept_;
  std::vector<message_part<T>> parts_;
  detail::edge_times_source times_;
  local::message_function_of<detail::edge_times_source, T> message_{times_};
};

}  // namespace partita::algebra

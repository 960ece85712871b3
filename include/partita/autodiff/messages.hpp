// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Messages with a function of one's own, on variables.

#include "partita/algebra/messages.hpp"
#include "partita/autodiff/tape.hpp"

namespace partita::autodiff {

namespace detail {

/// Z of a message_plan, of sources, of targets if these are others, and of an edge matrix if there is one.
template <class T, class Device, class Function>
class message_node final : public node<T, Device> {
  using base = node<T, Device>;
  using typename base::slot;

 public:
  message_node(std::vector<slot*> from, slot& to, const sparse<T, dynamic_layout, Device>& pattern,
               Function f, const algebra::message_options& options)
      : base(std::move(from), to),
        plan_(pattern, to.at.layout, to.at.cols, std::move(f), options),
        edges_(this->from().back()->pattern ? this->from().back() : nullptr) {}

  void settle() override {
    if (!sources().needs_gradient) unwanted_sources_.allocate(sources().at);
    if (!targets().needs_gradient) unwanted_targets_.allocate(targets().at);
  }
  void forward() override {
    plan_.forward(sources().value->any(), targets().value->any(), values(), this->to().value->any());
  }
  void backward() override {
    const bool of_edges = edges_ != nullptr && edges_->needs_gradient;
    plan_.backward(sources().value->any(), targets().value->any(), values(), this->to().gradient->any(),
                   sum_of(sources(), unwanted_sources_), sum_of(targets(), unwanted_targets_),
                   of_edges ? &edges_->sum().own_edges() : nullptr);
  }
  traffic predicted_forward() const override { return plan_.predicted_forward(); }
  traffic predicted_backward() const override {
    return plan_.predicted_backward(edges_ != nullptr && edges_->needs_gradient);
  }
  bool keeps_output() const override { return false; }

 private:
  slot& sources() const { return this->in(); }
  slot& targets() const {
    slot& second = this->in(this->from().size() > 1 ? 1 : 0);
    return &second == edges_ ? sources() : second;
  }
  const edge_matrix<T, Device>* values() const {
    return edges_ == nullptr ? nullptr : &edges_->value->edges();
  }
  static dense<T, dynamic_layout, Device>& sum_of(slot& x, matrix_views<T, Device>& unwanted) {
    return x.needs_gradient ? x.sum().any() : unwanted.any();
  }

  algebra::message_plan<T, Device, Function> plan_;
  slot* edges_;
  matrix_views<T, Device> unwanted_sources_, unwanted_targets_;
};

template <class T, class Device, class Function>
variable<T, Device> record_messages(const sparse<T, dynamic_layout, Device>& pattern,
                                    const std::vector<variable<T, Device>>& from, Function f,
                                    const algebra::message_options& options) {
  const variable<T, Device>& x = from.front();
  return x.on().template record<message_node<T, Device, Function>>(
      {x.on().mesh(), x.layout(), pattern.row_blocking(), x.col_blocking()}, from, false, pattern,
      std::move(f), options);
}

}  // namespace detail

/// Z(v, j) = the sum, or the mean, over the entries (v, u) of the pattern, of f(X(u, j), X(v, j), e(v, u,
/// head of j)), of a function of generic arithmetic; see algebra::message_plan. The messages are not stored.
/// Adjoints, of X as source and as target and of e, follow from f. Collective over the mesh. What travels:
/// see there, in each direction.
template <class T, class Device, class Function>
variable<T, Device> messages(const std::type_identity_t<sparse<T, dynamic_layout, Device>>& pattern,
                             variable<T, Device> x, edge_variable<T, Device> e, Function f,
                             const algebra::message_options& options = {}) {
  return detail::record_messages<T, Device>(pattern, {x, e.recorded()}, std::move(f), options);
}
/// The same without an edge matrix, or with targets of their own.
template <class T, class Device, class Function>
variable<T, Device> messages(const std::type_identity_t<sparse<T, dynamic_layout, Device>>& pattern,
                             variable<T, Device> x, Function f,
                             const algebra::message_options& options = {}) {
  return detail::record_messages<T, Device>(pattern, {x}, std::move(f), options);
}
template <class T, class Device, class Function>
variable<T, Device> messages(const std::type_identity_t<sparse<T, dynamic_layout, Device>>& pattern,
                             variable<T, Device> sources, variable<T, Device> targets,
                             edge_variable<T, Device> e, Function f,
                             const algebra::message_options& options = {}) {
  return detail::record_messages<T, Device>(pattern, {sources, targets, e.recorded()}, std::move(f), options);
}

}  // namespace partita::autodiff

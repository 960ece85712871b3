// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Messages and edge scores with a user-defined function, on variables.

#include "partita/algebra/message_scores.hpp"
#include "partita/algebra/messages.hpp"
#include "partita/autodiff/tape.hpp"

namespace partita::autodiff {

/// Inputs of a message besides the rows of the sources. Without targets, the sources are also the targets.
template <class T, class Device>
struct message_inputs {
  std::optional<variable<T, Device>> targets = {};
  std::optional<edge_variable<T, Device>> edges = {};
  std::optional<variable<T, Device>> parameters = {};  ///< replicated; see algebra::with_parameters
};

namespace detail {

/// The result of a message_plan or a message_scores_plan.
template <class T, class Device, class Plan, class Form>
class message_node final : public node<T, Device> {
  using base = node<T, Device>;
  using typename base::slot;

 public:
  /// Which of the optional inputs follow the sources in `from`.
  struct parts {
    explicit parts(const message_inputs<T, Device>& with)
        : targets(with.targets.has_value()),
          edges(with.edges.has_value()),
          parameters(with.parameters.has_value()) {}
    bool targets, edges, parameters;
  };

  template <class Function, class Options>
  message_node(std::vector<slot*> from, slot& to, const sparse<T, dynamic_layout, Device>& pattern, parts has,
               Function f, const Options& options)
      : base(std::move(from), to),
        plan_(pattern, this->in().at.layout, this->in().at.cols, std::move(f), options),
        targets_(has.targets ? &this->in(1) : &this->in()),
        edges_(has.edges ? &this->in(has.targets ? 2 : 1) : nullptr),
        parameters_(has.parameters ? this->from().back() : nullptr) {}

  void forward() override {
    plan_.forward(this->in().value->any(), targets_->value->any(), edges_ ? &edges_->value->edges() : nullptr,
                  Form::write(*this->to().value), parameters_ ? &parameters_->value->whole() : nullptr);
  }
  void backward() override {
    plan_.backward_part(this->in().value->any(), targets_->value->any(),
                        edges_ ? &edges_->value->edges() : nullptr, Form::read(*this->to().gradient),
                        sum_of(this->in()), sum_of(*targets_),
                        needs(edges_) ? &edges_->sum().own_edges() : nullptr,
                        parameters_ ? &parameters_->value->whole() : nullptr,
                        needs(parameters_) ? &parameters_->sum().whole() : nullptr);
  }
  traffic predicted_forward() const override { return plan_.predicted_forward(); }
  traffic predicted_backward() const override {
    return plan_.predicted_backward_part(
        {needs(&this->in()), needs(targets_), needs(edges_), needs(parameters_)});
  }
  bool keeps_output() const override { return false; }

 private:
  static bool needs(const slot* x) { return x != nullptr && x->needs_gradient; }
  static dense<T, dynamic_layout, Device>* sum_of(slot& x) {
    return x.needs_gradient ? &x.sum().any() : nullptr;
  }

  Plan plan_;
  slot *targets_, *edges_, *parameters_;
};

template <class T, class Device>
std::vector<variable<T, Device>> all_of(variable<T, Device> sources, const message_inputs<T, Device>& with) {
  std::vector<variable<T, Device>> all{sources};
  if (with.targets) all.push_back(*with.targets);
  if (with.edges) all.push_back(with.edges->recorded());
  if (with.parameters) all.push_back(*with.parameters);
  return all;
}

}  // namespace detail

/// Z(v, j) = the sum, the mean, the maximum or the minimum, over the entries (v, u) of the pattern, of f(X(u,
/// j), T(v, j), e(v, u, head of j), P(., j)). f uses generic arithmetic and takes only the inputs given; see
/// algebra::message_plan. The messages are not stored. The adjoints of X, T, e and P follow from f.
/// Collective over the mesh. What travels: see there, in each direction.
template <class T, class Device, class Function>
variable<T, Device> messages(const std::type_identity_t<sparse<T, dynamic_layout, Device>>& pattern,
                             variable<T, Device> x,
                             const std::type_identity_t<message_inputs<T, Device>>& with, Function f,
                             const algebra::message_options& options = {}) {
  using plan = algebra::message_plan<T, Device, Function>;
  using node = detail::message_node<T, Device, plan, detail::whole_matrix>;
  return x.on().template record<node>({x.on().mesh(), x.layout(), pattern.row_blocking(), x.col_blocking()},
                                      detail::all_of(x, with), false, pattern, typename node::parts(with),
                                      std::move(f), options);
}
/// The same with X at both ends, without edges or with an edge variable.
template <class T, class Device, class Function>
variable<T, Device> messages(const std::type_identity_t<sparse<T, dynamic_layout, Device>>& pattern,
                             variable<T, Device> x, Function f,
                             const algebra::message_options& options = {}) {
  return messages(pattern, x, {}, std::move(f), options);
}
template <class T, class Device, class Function>
variable<T, Device> messages(const std::type_identity_t<sparse<T, dynamic_layout, Device>>& pattern,
                             variable<T, Device> x, edge_variable<T, Device> e, Function f,
                             const algebra::message_options& options = {}) {
  return messages(pattern, x, {.edges = e}, std::move(f), options);
}

/// s(v, u, h) = the sum over the columns j of head h of f(X(u, j), T(v, j), e(v, u, head of j), P(., j)), see
/// algebra::message_scores_plan; e may have other columns than s. Adjoints follow from f. Collective over the
/// mesh. What travels: see there, in each direction.
template <class T, class Device, class Function>
edge_variable<T, Device> message_scores(
    const std::type_identity_t<sparse<T, dynamic_layout, Device>>& pattern, variable<T, Device> x,
    const std::type_identity_t<message_inputs<T, Device>>& with, Function f,
    algebra::message_scores_options options = {}) {
  using plan = algebra::message_scores_plan<T, Device, Function>;
  using node = detail::message_node<T, Device, plan, detail::whole_edges>;
  if (with.edges) options.edge_columns = with.edges->columns();
  return x.on().template record<node>(pattern.stored_for("message_scores"), options.heads,
                                      detail::all_of(x, with), false, pattern, typename node::parts(with),
                                      std::move(f), options);
}

}  // namespace partita::autodiff

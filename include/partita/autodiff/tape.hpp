// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A tape over the verbs: a forward pass that is written once runs forward and backward many times.

#include "partita/autodiff/product.hpp"
#include "partita/autodiff/shared_memory.hpp"
#include "partita/autodiff/variable.hpp"

namespace partita::autodiff {

/// Records verbs on variables, runs them, and derives the gradients of parameters and inputs from that of a
/// result. Plans are made and memory is allocated during recording and the first run; later runs neither
/// analyse nor allocate. Results of constants alone are computed only in the first forward. Only gradients
/// that a parameter or an input needs are computed.
///
/// Verbs that follow a product and have one reader each (a bias, relu, dropout, a sum) are computed in its
/// pass and its memory. Collective over the mesh: recording, forward and backward. What travels: what the
/// verbs send (see each verb), and one all-reduce of the gradients of all parameters that have no gradient of
/// their own (parameter(w)).
template <class T, class Device>
class tape {
 public:
  using variable = autodiff::variable<T, Device>;
  using edge_variable = autodiff::edge_variable<T, Device>;
  using edges = edge_matrix<T, Device>;
  using weight = dense<T, replicated, Device>;
  using matrix = dense<T, dynamic_layout, Device>;
  using slot = detail::slot<T, Device>;

  /// `products`: makes the products of spmm; by default spmm makes its own plans.
  explicit tape(const partita::mesh<Device>& m, product_maker<T, Device> products = {})
      : mesh_(m), products_(std::move(products)) {}
  tape(const tape&) = delete;
  tape& operator=(const tape&) = delete;

  const partita::mesh<Device>& mesh() const { return mesh_; }

  /// A matrix whose entries do not change and that needs no gradient. x must outlive the tape.
  template <layout L>
  variable constant(const dense<T, L, Device>& x) {
    slot& s = add_slot({mesh_, x.layout(), x.row_blocking(), x.col_blocking()}, false, false);
    s.value->see(x);
    return {*this, s};
  }
  template <layout L>
  variable constant(const dense<T, L, Device>&&) = delete;
  /// A matrix whose entries are read again in each forward, with its gradient. x must outlive the tape.
  template <layout L>
  variable input(const dense<T, L, Device>& x) {
    slot& s = add_slot({mesh_, x.layout(), x.row_blocking(), x.col_blocking()}, true, true);
    s.value->see(x);
    return {*this, s};
  }
  template <layout L>
  variable input(const dense<T, L, Device>&&) = delete;
  /// A matrix with whole rows, set with give() before each forward. `varies`: each forward has another one.
  variable input(const blocking& rows, const blocking& cols, bool varies, bool needs_gradient) {
    return {*this, add_slot({mesh_, vertex_rows, rows, cols}, needs_gradient, varies)};
  }
  /// As constant and input, for an edge matrix with all columns.
  edge_variable constant(const edges& e) { return seen(e, false); }
  edge_variable constant(const edges&&) = delete;
  edge_variable input(const edges& e) { return seen(e, true); }
  edge_variable input(const edges&&) = delete;
  /// A replicated matrix to be learned; every call with w returns the same variable. gradient() is its
  /// gradient, summed over the ranks. w must outlive the tape.
  variable parameter(weight& w) {
    if (slot* const known = slot_of(w)) return {*this, *known};
    slot& s = add_slot({mesh_, replicated, w.row_blocking(), w.col_blocking()}, true, true);
    s.weight = &w;
    own_.push_back(&s);
    return {*this, s};
  }
  /// The same, but this rank's contribution to the gradient is written to `gradient`.
  variable parameter(weight& w, weight& gradient) {
    if (slot* const known = slot_of(w)) return {*this, *known};
    slot& s = add_slot({mesh_, replicated, w.row_blocking(), w.col_blocking()}, true, true);
    s.weight = &w;
    s.weight_gradient = &gradient;
    return {*this, s};
  }
  /// Keeps the entries of x after forward, so that value(x) can be read.
  variable keep(variable x) {
    unsettle();
    ++x.slot_->uses;
    x.slot_->kept = true;
    return x;
  }
  /// Keeps x, which a constant views, alive as long as the tape.
  void own(std::shared_ptr<const void> x) { owned_.push_back(std::move(x)); }
  edge_variable keep(edge_variable e) { return edge_variable(keep(e.recorded())); }

  /// Sets x to h for the next forward. If x was recorded as not varying, its dependents are computed again,
  /// unless h is constant and was so before.
  void give(variable x, const algebra::operand<T, Device>& h) {
    slot& s = *x.slot_;
    const bool same = s.given && s.given->constant() && h.constant() && settled_;
    if (!s.varies && !same) fixed_computed_ = false;
    s.given = h;
    if (same && !s.varies && fixed_computed_) return;
    const bool as_given = is_read_as_given(s, h);
    if (h.slices() != nullptr && !as_given)
      base::throw_error<error>({"slices of the columns of an input of ", h.shape(),
                                " can be multiplied, with A and then with a weight, and nothing else"});
    be_sliced(s, h.slices() != nullptr);
    if (as_given && !is_dense(h)) return;
    if (!s.written_out) s.written_out.emplace();
    s.value->see((*s.written_out)(h));
  }

  /// Computes x in z, which has the same rows and columns, if no verb reads it there later (the caller may
  /// then overwrite z); otherwise returns false.
  bool compute_in(variable x, dense<T, vertex_rows, Device>& z) {
    settle();
    slot& to = *x.slot_;
    if (to.producer == nullptr || !to.varies || !to.kept || to.uses != 1) return false;
    if (any_in_memory_of(to, [](const auto& n) { return n.keeps_output(); })) return false;
    to.value->see(z);
    return true;
  }
  /// Fuses the ReLU and the dropout of `behind`, as they are in each forward, into the pass that computes x.
  /// Returns false if compute_in would refuse x, or if that pass cannot apply them. `behind` must outlive the
  /// tape.
  bool end_with(variable x, const epilogue<T, Device>& behind) {
    return x.slot_->producer->performer().end_with(behind);
  }
  /// Frees the gradients, and all results that the next forward computes again.
  void release() {
    for (const auto& s : slots_) {
      if (s->producer != nullptr && s->varies) s->value->release();
      if (s->weight == nullptr) s->gradient->release();
      s->spare.release();
    }
  }
  /// backward(z, dz), writing the gradient of the input x to dx.
  template <layout L>
  void backward(variable z, const dense<T, L, Device>& dz, variable x, dense<T, vertex_rows, Device>& dx) {
    x.slot_->gradient->see(dx);
    backward(z, dz);
    x.slot_->gradient->see_own();
  }

  /// Computes all variables that vary; the first call also computes the others.
  void forward(const step& now = {}) {
    settle();
    for (const auto& s : slots_) {
      if (s->weight != nullptr) s->value->see(*s->weight);
      if (s->producer == nullptr || !s->producer->computes() || s->sliced) continue;
      if (!s->value->bound()) s->allocate(*s->value);
    }
    for (const auto& n : nodes_) n->begin(now);
    for (const auto& n : nodes_)
      if (n->to().varies || !fixed_computed_) n->forward();
    fixed_computed_ = true;
  }
  /// Computes the gradients of a loss of the last forward, or of a sum of losses.
  void backward(const scalar<T, Device>& loss) {
    begin_backward();
    for (const auto& [factor, of] : loss.terms()) {
      of->weigh(of->to().written ? of->weight() + factor : factor);
      of->to().written = true;
    }
    run_backward();
  }
  /// Computes the gradients from dz, the gradient of a result z of the last forward.
  template <layout L>
  void backward(variable z, const dense<T, L, Device>& dz) {
    slot& to = *z.slot_;
    const bool as_it_is = is_place_of(dz, to) && to.needs_gradient && to.kept && to.uses == 1 &&
                          !any_in_memory_of(to, [](const auto& n) { return n.overwrites_gradient(); });
    if (as_it_is) to.gradient->see(dz);
    begin_backward();
    to.written = as_it_is;
    if (!as_it_is) to.give([&](auto& d) { partita::copy(dz, d.any()); });
    run_backward();
    if (as_it_is) to.gradient->see_own();
  }

  /// The value of a variable in the last forward. Throws error for a result that was not kept.
  const matrix& value(variable x) const { return kept(x).value->any(); }
  const edges& value(edge_variable e) const { return kept(e.recorded()).value->edges(); }
  /// The same, for a variable with whole rows.
  const dense<T, vertex_rows, Device>& rows(variable x) const {
    if (x.layout() != vertex_rows)
      base::throw_error<shape_error>({"a variable of ", x.shape(), " with (", to_string(x.layout()),
                                      ") does not have whole rows; redistribute it to vertex_rows"});
    return kept(x).rows();
  }
  /// The gradient of a parameter or of an input in the last backward. Throws error for another variable.
  const matrix& gradient(variable x) const { return with_gradient(x).gradient->any(); }
  const edges& gradient(edge_variable e) const { return with_gradient(e.recorded()).gradient->edges(); }

  /// What this rank receives in one steady forward, and in one backward.
  traffic predicted_forward() const {
    traffic v;
    for (const auto& n : nodes_)
      if (n->to().varies) v += n->predicted_forward();
    return v;
  }
  traffic predicted_backward() const {
    traffic v;
    global_index elements = 0;
    for (const auto& n : nodes_)
      if (n->to().needs_gradient) v += n->predicted_backward();
    for (const slot* s : own_) elements += s->at.shape().rows * s->at.shape().cols;
    if (!own_.empty()) v += algebra::predicted_sum_of_parts<T>(mesh_, elements);
    return v;
  }

  /// For verbs: the slot of a variable; a product; and a node of class Node, constructed with the slots of
  /// its inputs, its own slot and further arguments.
  static slot& slot_of(variable x) { return *x.slot_; }
  std::shared_ptr<product<T, Device>> make_product(const sparse<T, dynamic_layout, Device>& a, layout l,
                                                   const blocking& columns, bool backward) {
    if (products_)
      if (auto made = products_(a, l, columns, backward)) return made;
    return planned_(backward ? transposed(a) : a, l, columns);
  }
  template <class Node, class... More>
  variable record(const detail::place<Device>& at, const std::vector<variable>& from, bool varies,
                  More&&... more) {
    return {*this, append<Node>(at, from, varies, std::forward<More>(more)...).to()};
  }
  /// The same for a node that makes an edge matrix.
  template <class Node, class... More>
  edge_variable record(const sparse<T, dynamic_layout, Device>& pattern, local_index columns,
                       const std::vector<variable>& from, bool varies, More&&... more) {
    Node& made = append<Node>(place_of(pattern, columns), from, varies, std::forward<More>(more)...);
    made.to().pattern = pattern;
    return edge_variable({*this, made.to()});
  }
  /// A loss of z.
  template <class Node, class... More>
  scalar<T, Device> record_loss(variable z, More&&... more) {
    const blocking one = blocking::even(1, mesh_.shape(), nesting::rows),
                   column = blocking::even(1, mesh_.shape(), nesting::cols);
    return append<Node>({mesh_, replicated, one, column}, {z}, false, std::forward<More>(more)...);
  }

 private:
  template <class Node, class... More>
  Node& append(const detail::place<Device>& at, const std::vector<variable>& from, bool varies,
               More&&... more) {
    std::vector<slot*> slots;
    bool needs = false;
    for (const variable& x : from) {
      if (&x.on() != this) throw error("a verb was given variables of two tapes");
      slots.push_back(x.slot_);
      ++x.slot_->uses;
      varies = varies || x.slot_->varies;
      needs = needs || x.slot_->needs_gradient;
    }
    slot& to = add_slot(at, needs, varies);
    auto made = std::make_unique<Node>(std::move(slots), to, std::forward<More>(more)...);
    Node& made_here = *made;
    to.producer = made.get();
    made->be_number(nodes_.size());
    nodes_.push_back(std::move(made));
    return made_here;
  }
  slot& add_slot(const detail::place<Device>& at, bool needs_gradient, bool varies) {
    unsettle();
    slots_.push_back(std::make_unique<slot>(slot{at, needs_gradient, varies}));
    return *slots_.back();
  }
  /// An edge matrix: only its columns have a place on the mesh.
  detail::place<Device> place_of(const sparse<T, dynamic_layout, Device>& pattern,
                                 local_index columns) const {
    return {mesh_, pattern.layout(), pattern.row_blocking(),
            blocking::even(columns, mesh_.shape(), nesting::cols)};
  }
  edge_variable seen(const edges& e, bool is_input) {
    slot& s = add_slot(place_of(e.pattern(), e.heads()), is_input, is_input);
    s.pattern = e.pattern();
    s.value->see(e);
    return edge_variable({*this, s});
  }
  static slot& kept(variable x) {
    if (x.slot_->producer != nullptr && !x.slot_->kept)
      base::throw_error<error>({"a result of ", x.shape(),
                                " was overwritten by what follows it; keep() it on the tape before forward"});
    return *x.slot_;
  }
  static slot& with_gradient(variable x) {
    if (!x.slot_->needs_gradient) base::throw_error<error>({"a constant of ", x.shape(), " has no gradient"});
    if (x.slot_->producer != nullptr)
      base::throw_error<error>(
          {"the gradient of a result of ", x.shape(), " is not kept, only those of inputs and parameters"});
    return *x.slot_;
  }
  static bool is_place_of(const auto& x, const slot& s) {
    return x.layout() == s.at.layout && x.row_blocking() == s.at.rows && x.col_blocking() == s.at.cols;
  }
  /// Whether any node that computes in the memory of `to` has `property`.
  bool any_in_memory_of(const slot& to, auto property) const {
    return std::ranges::any_of(slots_, [&](const auto& s) {
      return &s->computed_in() == &to && s->producer != nullptr && property(*s->producer);
    });
  }
  slot* slot_of(const weight& w) const {
    for (const auto& s : slots_)
      if (s->weight == &w) return s.get();
    return nullptr;
  }
  void unsettle() {
    if (settled_) throw error("a tape cannot record once it has run");
  }
  static bool is_dense(const algebra::operand<T, Device>& h) {
    return h.visit(
        [](const auto& x) { return std::is_same_v<decltype(x), const dense<T, vertex_rows, Device>&>; });
  }
  /// Whether every reader of s reads it in the form of h, and so do those to which it hands slices on.
  bool is_read_as_given(const slot& s, const algebra::operand<T, Device>& h) const {
    return !s.kept && std::ranges::all_of(nodes_, [&](const auto& n) {
      const auto reads = std::ranges::count(n->from(), &s);
      if (reads == 0) return true;
      return reads == 1 && n->from().front() == &s && n->reads_as_given(h) &&
             (!n->hands_on_slices() || is_read_as_given(n->to(), h));
    });
  }
  void be_sliced(slot& s, bool sliced) {
    s.sliced = sliced;
    for (const auto& n : nodes_)
      if (n->from().front() == &s && n->hands_on_slices()) be_sliced(n->to(), sliced);
  }
  void settle() {
    if (settled_) return;
    settled_ = true;
    for (const auto& n : nodes_) n->settle();
    for (std::size_t k = slots_.size(); k-- > 0;) {
      slot& s = *slots_[k];
      if (s.in_place == nullptr) continue;
      s.value = s.in_place->value;
      s.gradient = s.in_place->gradient;
    }
    using lifetime = detail::lifetime<T, Device>;
    const std::vector<lifetime> lifetimes = detail::lifetimes(slots_, nodes_);
    detail::share_memory(lifetimes, &lifetime::keeps_value, &slot::value);
    detail::share_memory(lifetimes, &lifetime::keeps_gradient, &slot::gradient);
    global_index elements = 0;
    for (const slot* s : own_) elements += s->at.shape().rows * s->at.shape().cols;
    gradients_ = buffer<T, Device>(mesh_.queue(), static_cast<std::size_t>(elements));
    std::size_t first = 0;
    for (slot* s : own_) {
      const auto size = static_cast<std::size_t>(s->at.shape().rows * s->at.shape().cols);
      weight part = weight::view(mesh_, s->at.rows, s->at.cols, gradients_.span().subspan(first, size));
      s->gradient->see(part);
      first += size;
    }
  }
  void begin_backward() {
    if (!settled_) throw error("backward needs a preceding forward of this tape");
    for (const auto& s : slots_) {
      s->written = false;
      if (s->weight_gradient != nullptr) s->gradient->see(*s->weight_gradient);
      if (s->sliced || (s->producer != nullptr && !s->producer->computes())) continue;
      if (s->needs_gradient && s->weight == nullptr && !s->gradient->bound()) s->allocate(*s->gradient);
    }
  }
  void run_backward() {
    for (std::size_t k = nodes_.size(); k-- > 0;)
      if (nodes_[k]->to().written) nodes_[k]->backward();
    for (const auto& s : slots_)
      if (s->needs_gradient && s->producer == nullptr && !s->sliced) s->sum();
    if (!own_.empty()) algebra::sum_parts(mesh_, gradients_.span());
  }

  partita::mesh<Device> mesh_;
  product_maker<T, Device> products_;
  detail::planned_products<T, Device> planned_;
  std::vector<std::unique_ptr<slot>> slots_;
  std::vector<std::unique_ptr<detail::node<T, Device>>> nodes_;
  std::vector<std::shared_ptr<const void>> owned_;
  std::vector<slot*> own_;  ///< the parameters whose gradients the tape sums
  buffer<T, Device> gradients_;
  bool settled_ = false, fixed_computed_ = false;
};

}  // namespace partita::autodiff

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What plans of messages share: the stages in which rows come and sums go, and the gradients.

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "partita/algebra/edge_schedule.hpp"
#include "partita/algebra/message_parameters.hpp"
#include "partita/algebra/reproducible_verbs.hpp"
#include "partita/algebra/tile_rows.hpp"
#include "partita/local/chunked_messages.hpp"

namespace partita::algebra {

/// The operands of messages whose gradients are wanted.
struct wanted_gradients {
  bool sources = true, targets = true, edges = true, parameters = true;
};

namespace detail {

/// The stages of messages of `Function` over a pattern, see message_plan.
template <class T, class Device, class Function>
class message_core {
 public:
  using edges = edge_matrix<T, Device>;
  using schedule = edge_schedule<T, Device>;
  using parameters = dense<T, replicated, Device>;
  static constexpr bool reads_targets = local::reads_targets<Function, T>;
  /// The operands of a call; pointers may be null.
  struct operands {
    matrix_view<const T> sources, targets;
    const edges* e;
    const parameters* p;
  };
  /// Where the wanted gradients go. `sums`: dp gets the sum over all ranks.
  struct gradients {
    std::optional<matrix_view<T>> sources, targets;
    edges* e;
    parameters* p;
    bool sums;

    template <class X>
    static std::optional<matrix_view<T>> to(X* x) {
      return x == nullptr ? std::nullopt : std::optional<matrix_view<T>>(x->local());
    }
  };

  message_core(const sparse<T, dynamic_layout, Device>& pattern, layout l, const blocking& features,
               Function f, local_index heads, row_exchange rows)
      : f_(std::move(f)),
        come_(std::make_unique<schedule>(possible(pattern), l, features, heads, rows)),
        go_(std::make_unique<schedule>(pattern, l, features, heads, backward_rows(rows), row_flow::sums_go)),
        targets_(*come_),
        rows_(std::make_unique<tile_rows<T, Device>>(go_->stages().plan())),
        source_gradient_(pattern.mesh(), l, pattern.col_blocking(), features),
        target_gradient_(pattern.mesh(), l, pattern.row_blocking(), features),
        parameters_(pattern.mesh(),
                    {static_cast<global_index>(local::parameter_count<Function>()), features.size()},
                    pattern.layout().used() | come_->spread().cols, come_->stages().plan().columns()) {
    if (const auto* const verbs = reproducible_verbs_of<T>(pattern.mesh())) {
      exact_ = verbs->make_messages(pattern, l, come_->spread(), features);
      gradient_rows_.emplace(*come_);
      return;
    }
    go_->stages().plan().for_parts([&](std::size_t number, const local::csr_slice<T>& part) {
      go_->passes().prepare_inverse(go_->stages().queue(), number, part.entries);
    });
  }

  Function& function() { return f_; }
  const schedule& come() const { return *come_; }
  schedule& come() { return *come_; }
  const sparse<T, dynamic_layout, Device>& pattern() const { return come_->pattern(); }
  const device_queue<Device>& queue() const { return come_->stages().queue(); }
  /// The rows of this rank's tiles, and the columns computed here.
  matrix_shape block() const { return {pattern().local()->rows, come_->stages().plan().width()}; }
  /// The ranks whose columns may belong to the same head.
  const communicator& along_slices() const { return pattern().mesh().along(come_->spread().cols); }

  template <class X, class Y>
  void require(const X& sources, const Y& targets, const edges* e, const parameters* p) const {
    if (e != nullptr) come_->require(*e);
    come_->require(sources, pattern().col_blocking());
    if (reads_targets) come_->require(targets, pattern().row_blocking());
    parameters_.require(p);
  }
  template <class X, class Y>
  void require_gradients(const edges* e, const X* dsources, const Y* dtargets, const edges* de,
                         const parameters* dp) const {
    if (dsources != nullptr) go_->require(*dsources, pattern().col_blocking());
    if (reads_targets && dtargets != nullptr) go_->require(*dtargets, pattern().row_blocking());
    if (dp != nullptr) parameters_.require(dp);
    if (de == nullptr) return;
    go_->require(*de);
    if (e == nullptr || e->heads() != de->heads() || e->first_head() != de->first_head())
      throw shape_error("the gradient of an edge matrix has the heads of that matrix");
    require_all_heads(*de, come_->heads());
  }
  /// Throws shape_error unless e has all heads, if ranks share their columns.
  void require_all_heads(const edges& e, local_index heads) const {
    if (along_slices().size() > 1 && e.heads() != heads)
      throw shape_error("sums over the columns of heads need values of all heads where ranks share columns");
  }

  /// The messages of a reproducible mesh, else null; and f for them.
  reproducible_messages<T, Device>* exact() { return exact_.get(); }
  const reproducible_messages<T, Device>* exact() const { return exact_.get(); }
  local::message_function_of<Function, T> exact_function() const {
    return local::message_function_of<Function, T>(f_);
  }
  /// The parts of forward for it, with gradient(tile, part): weights of rows and names of entries.
  template <class Gradient>
  const std::vector<message_part<T>>& exact_parts(const operands& x, const Gradient& gradient) {
    parts_.clear();
    forward(x, {}, [&](std::size_t, std::size_t t, const auto& part, const auto& of, T, auto) {
      parts_.push_back(
          {t, part, of.at(of.values, kept_(queue(), parts_, t, of.sources), of.targets), gradient(t, part)});
    });
    return parts_;
  }

  /// Calls kernel(number, tile, part, operands, beta, sums) for all parts of all tiles.
  template <class Kernel>
  void forward(const operands& x, matrix_view<T> sums, const Kernel& kernel) {
    const matrix_view<const T> targets = reads_targets ? targets_(x.targets) : matrix_view<const T>();
    const matrix_view<const T> p = parameters_.columns(x.p);
    std::size_t number = 0;
    come_->stages().for_stages(
        x.sources, sums, 0, [&](std::size_t t, const local::csr_slice<T>& part, auto rows, T beta, auto out) {
          kernel(number++, t, part, of_part(part, x.e, rows, part.rows_of(targets), p), beta, out);
        });
  }

  /// Adds to the gradients `to`. `travels`: what is sent to A's rows, the gradient of sums or, if there are
  /// none, the targets; gradient(tile, part, these rows of it) is a message_gradient.
  template <class Gradient>
  void backward(const operands& x, const gradients& to, matrix_view<const T> travels, bool has_rows,
                const Gradient& gradient) {
    if (exact_) return backward_exactly(x, to, travels, has_rows, gradient);
    const matrix_view<const T> targets =
        reads_targets && has_rows ? targets_(x.targets) : matrix_view<const T>();
    const matrix_view<const T> p = parameters_.columns(x.p);
    auto& go = go_->stages();
    std::optional<matrix_view<T>> of_sources, of_targets;
    if (to.sources) of_sources = go.begin(source_gradient_.local());
    if (reads_targets && to.targets) {
      of_targets = come_->stages().begin(target_gradient_.local());
      local::chunked::fill(queue(), T(0), *of_targets);
    }
    if (to.e != nullptr && along_slices().rank() > 0)  // only the first rank's old values count
      clear(queue(), to.e->values());
    const matrix_view<T> of_parameters = parameters_.begin();
    rows_->start(x.sources);
    std::size_t number = 0;
    go.for_stages(travels, of_sources, 0,
                  [&](std::size_t t, const local::csr_slice<T>& part, auto rows, T beta, auto out) {
                    const local::message_operands<T> of =
                        of_part(part, x.e, (*rows_)(t), has_rows ? part.rows_of(targets) : rows, p);
                    const local::message_gradient<T> g = gradient(t, part, rows);
                    add_row_gradients(number, part, of, g, of_targets, to, of_parameters);
                    if (of_sources)
                      local::chunked::message_source_gradients(go.queue(), go_->passes(), number,
                                                               part.entries, f_, of, g, beta, out);
                    ++number;
                  });
    if (of_sources) go.finish(source_gradient_.local());
    if (of_targets) come_->stages().finish(target_gradient_.local());
    if (to.e != nullptr && along_slices().size() > 1) along_slices().all_reduce(to.e->values());
    if (to.p != nullptr) parameters_.finish(*to.p, to.sums);
    if (of_sources) add(source_gradient_, *to.sources);
    if (of_targets) add(target_gradient_, *to.targets);
  }

  traffic predicted_stages() const {
    return come_->stages().plan().predicted_stages() + (reads_targets ? targets_.predicted() : traffic());
  }
  /// The sums over ranks that share rows of A.
  traffic predicted_row_sums() const {
    const auto& plan = come_->stages().plan();
    const traffic all = plan.predicted(), stages = plan.predicted_stages();
    return {all.words - stages.words, all.messages - stages.messages};
  }
  traffic predicted_backward(bool has_rows, const wanted_gradients& of) const {
    if (exact_) {
      traffic all = rows_->predicted() + exact_->predicted_begin(3 + parameters_.rows());
      if (of.sources) all += exact_->predicted_columns();
      if (has_rows) all += gradient_rows_->predicted();
      if (reads_targets) all += targets_.predicted();
      if (reads_targets && of.targets) all += exact_->predicted_rows();
      if (of.edges) all += exact_->predicted_heads(come_->heads());
      return of.parameters ? all + exact_->predicted_parameters(parameters_.elements()) : all;
    }
    const auto& go = go_->stages();
    traffic all = rows_->predicted() + (of.sources ? go.plan().predicted() : go.predicted_change());
    if (reads_targets && has_rows) all += targets_.predicted();
    if (reads_targets && of.targets) all += predicted_row_sums();
    if (of.edges) all += predicted_head_sums(come_->heads());
    return of.parameters ? all + parameters_.predicted() : all;
  }
  /// The sums of values of entries over the ranks with columns of the same head.
  traffic predicted_head_sums(local_index heads) const {
    return pattern().mesh().all_reduced(come_->spread().cols,
                                        static_cast<global_index>(pattern().local()->nonzeros) * heads);
  }

 private:
  using outputs = local::message_function<T>;

  static const sparse<T, dynamic_layout, Device>& possible(const sparse<T, dynamic_layout, Device>& pattern) {
    static_assert(
        requires(const device_queue<Device>& q, local::csr_view<T> a, Function f,
                 local::message_operands<T> of, matrix_view<const T> x,
                 matrix_view<T> y) { message_sums(q, a, f, of, x, T(0), y); },
        "this device has no kernels for messages");
    return pattern;
  }

  /// Which rows are exchanged in backward: needed ones if forward does so, or if that sends less for sums.
  row_exchange backward_rows(row_exchange asked) const {
    if (reproducible_verbs_of<T>(come_->pattern().mesh())) return row_exchange::full;
    const row_exchange there = come_->stages().plan().options().rows;
    return there == row_exchange::sparsity_aware ? there : asked;
  }
  /// The operands of messages for a part of a tile.
  local::message_operands<T> of_part(const local::csr_slice<T>& part, const edges* e,
                                     matrix_view<const T> sources, matrix_view<const T> targets,
                                     matrix_view<const T> p) const {
    const matrix_view<const T> none{nullptr, part.entries.rows, 0, 0};
    const local::head_slice slice = e == nullptr ? local::head_slice{0, 1, 0} : come_->slice(*e);
    return {slice, e == nullptr ? nullptr : part.values_in(e->values().data(), slice.heads), sources,
            reads_targets ? targets : none, p};
  }
  template <class Gradient>
  void backward_exactly(const operands& x, const gradients& to, matrix_view<const T> travels, bool has_rows,
                        const Gradient& gradient) {
    const matrix_view<const T> targets = reads_targets ? targets_(x.targets) : matrix_view<const T>(),
                               rows = has_rows ? (*gradient_rows_)(travels) : matrix_view<const T>(),
                               p = parameters_.columns(x.p);
    const auto& tiles = go_->stages().plan().a();
    rows_->start(x.sources);
    parts_.clear();
    for (std::size_t t = 0; t < tiles.count(); ++t) {
      const matrix_view<const T> sources = (*rows_)(t);
      for (const local::csr_slice<T>& part : tiles.parts(t))
        parts_.push_back({t, part,
                          of_part(part, x.e, kept_(queue(), parts_, t, sources), part.rows_of(targets), p),
                          gradient(t, part, part.rows_of(rows))});
    }
    const auto f = exact_function();
    exact_->begin(parts_, f, true);
    if (to.sources) exact_->add_columns(parts_, f, *to.sources);
    if (reads_targets && to.targets) exact_->add_rows(parts_, f, outputs::target, *to.targets);
    if (to.e != nullptr) exact_->add_heads(parts_, f, outputs::edge, come_->slice(*to.e), to.e->values());
    if (to.p == nullptr) return;
    exact_->add_parameters(parts_, f, parameters_.all_sums());
    parameters_.add(*to.p);
  }
  void add_row_gradients(std::size_t number, const local::csr_slice<T>& part,
                         const local::message_operands<T>& of, const local::message_gradient<T>& g,
                         const std::optional<matrix_view<T>>& of_targets, const gradients& to,
                         matrix_view<T> of_parameters) {
    if (!of_targets && to.e == nullptr && to.p == nullptr) return;
    const matrix_view<T> none{nullptr, part.entries.rows, 0, 0};
    T* const of_values = to.e == nullptr ? nullptr : part.values_in(to.e->values().data(), of.slice.heads);
    local::chunked::message_row_gradients(queue(), go_->passes(), number, part.entries, f_, of, g,
                                          of_targets ? part.rows_of(*of_targets) : none, of_values,
                                          of_parameters);
  }
  static void clear(const device_queue<Device>& q, std::span<T> x) {
    for (std::size_t n; !x.empty(); x = x.subspan(n)) {
      n = std::min(x.size(), base::max_tile_entries);
      local::chunked::fill(q, T(0), matrix_view<T>{x.data(), static_cast<local_index>(n), 1, 1});
    }
  }
  void add(const dense<T, dynamic_layout, Device>& gradient, matrix_view<T> to) {
    local::chunked::zip(queue(), base::linear_combination<T>{1, 1}, gradient.local(),
                        matrix_view<const T>(to), to);
  }

  Function f_;
  std::unique_ptr<schedule> come_, go_;  ///< forward: rows of X come; backward: sums for them go
  spread_rows<T, Device> targets_;
  std::unique_ptr<tile_rows<T, Device>> rows_;
  dense<T, dynamic_layout, Device> source_gradient_, target_gradient_;
  message_parameters<T, Device> parameters_;

  // For a reproducible mesh
  std::unique_ptr<reproducible_messages<T, Device>> exact_;
  std::optional<spread_rows<T, Device>> gradient_rows_;
  kept_rows<T, Device> kept_;
  std::vector<message_part<T>> parts_;
};

/// What plans of messages have in common: f, and what this rank receives in one backward. Plan must have
/// predicted_forward().
template <class Plan, class T, class Device, class Function>
class planned_messages {
 public:
  /// f, whose members may be changed.
  Function& function() { return core_.function(); }

  /// What this rank receives in one backward, in closed form, with or without the gradients of e and of the
  /// parameters; the latter are summed over all ranks.
  traffic predicted_backward(bool of_edges = true,
                             bool of_parameters = local::parameter_count<Function>() > 0) const {
    return core_.predicted_backward(has_rows_, {.edges = of_edges, .parameters = of_parameters});
  }
  /// What this rank receives in one backward_part.
  traffic predicted_backward_part(wanted_gradients of) const {
    of.parameters = of.parameters && core_.exact() != nullptr;
    return core_.predicted_backward(has_rows_, of);
  }
  /// What this rank receives in one forward and one backward.
  traffic predicted(bool of_edges = true, bool of_parameters = local::parameter_count<Function>() > 0) const {
    return static_cast<const Plan&>(*this).predicted_forward() + predicted_backward(of_edges, of_parameters);
  }

 protected:
  using core = message_core<T, Device, Function>;
  /// `has_rows`: whether the result has rows, whose gradient goes to A's rows, or values of entries.
  template <class... Planned>
  explicit planned_messages(bool has_rows, Planned&&... with)
      : core_(std::forward<Planned>(with)...), has_rows_(has_rows) {}

  core core_;

 private:
  bool has_rows_;
};

}  // namespace detail

}  // namespace partita::algebra

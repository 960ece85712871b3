// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Message passing with a function of one's own, whose gradient follows from it, under every policy.

#include <memory>
#include <utility>
#include <vector>

#include "partita/algebra/edge_schedule.hpp"
#include "partita/algebra/tile_rows.hpp"
#include "partita/local/chunked_messages.hpp"

namespace partita::algebra {

/// How the messages that reach a vertex become one row: their sum, or their mean, 0 without any.
enum class message_reduction : std::uint8_t { sum, mean };

/// What a message_plan is planned with.
struct message_options {
  local_index heads = 1;  ///< columns of the edge matrix: 1, or a number that divides the width, or the width
  message_reduction reduction = message_reduction::sum;
  row_exchange rows = row_exchange::automatic;  ///< of forward; backward moves whole sub-blocks
};

/// Planned messages along the entries (v, u) of a pattern, Z(v, j) = sum over u of f(X(u, j), T(v, j), e(v,
/// u, head of j)), or their mean, and the gradients of X, T and e, which follow from f: `f` is a function of
/// generic arithmetic (base/dual.hpp) of three numbers, or of two, the first and the third, if T has no part
/// in it. Without an edge matrix the third one is 1. X (k x w) has a row for each column of the pattern, T
/// and Z (m x w) have one for each of its rows, in a layout that the pattern can multiply, with the heads
/// side by side; where X is also T the pattern is square. No more than rows of X for one tile is stored
/// besides: the messages never are. For weights that a softmax gives, edge_softmax and edge_spmm_plan.
///
/// Collective over the mesh: constructor, forward and backward. What travels: forward, X as in spmm with A
/// stationary, all of T's rows to the ranks that share them if f reads them, and the sums. Backward: the
/// gradient of Z and, if f reads it, T to the ranks that share their rows, whole sub-blocks of X along row,
/// and sums for these and for T; an all-reduce of the gradient of e along the axes that partition columns of
/// a head; edge values otherwise never. On the host. Throws shape_error for layouts that cannot be
/// multiplied, heads that do not divide the width, and operands that do not match the plan; error on a
/// reproducible mesh, where sums over tiles would have other bits on every mesh.
///
/// Source: message passing as in Gilmer et al. (ICML 2017), section 2; forward-mode derivatives: Griewank and
/// Walther, Evaluating Derivatives (SIAM 2008), chapter 3.
template <class T, class Device, class Function>
class message_plan {
 public:
  using edges = edge_matrix<T, Device>;
  /// Whether f reads the rows of the targets.
  static constexpr bool reads_targets = std::is_invocable_v<const Function&, T, T, T>;

  /// For operands in layout `l`, with columns partitioned by `features`.
  template <layout A>
  message_plan(const sparse<T, A, Device>& pattern, layout l, const blocking& features, Function f,
               message_options options = {})
      : message_plan(pattern.stored_for("message_plan"), l, features, std::move(f), options, 0) {}
  /// For operands like x.
  template <layout A, layout X>
  message_plan(const sparse<T, A, Device>& pattern, const dense<T, X, Device>& x, Function f,
               message_options options = {})
      : message_plan(pattern, x.layout(), x.col_blocking(), std::move(f), options) {}

  /// f, to change its parameters.
  Function& function() { return f_; }
  /// The heads whose columns this rank computes with; edge matrices need no other values here.
  interval heads_here() const { return come_->heads_here(); }

  /// z from x for both sides, and an edge matrix.
  template <layout X, layout Z>
  void forward(const dense<T, X, Device>& x, const edges& e, dense<T, Z, Device>& z) {
    forward(x, x, &e, z);
  }
  template <layout X, layout Z>
  void forward(const dense<T, X, Device>& x, dense<T, Z, Device>& z) {
    forward(x, x, nullptr, z);
  }
  /// z from rows of the sources and rows of the targets; e may be null.
  template <layout X, layout Y, layout Z>
  void forward(const dense<T, X, Device>& sources, const dense<T, Y, Device>& targets, const edges* e,
               dense<T, Z, Device>& z) {
    require(sources, targets, e, z);
    sums(sources.local(), targets.local(), e, z.local());
  }

  /// dx += the gradient of x as source and as target, and de += that of e, from the operands of forward and
  /// the gradient of its result.
  template <layout X, layout Z, layout G>
  void backward(const dense<T, X, Device>& x, const edges& e, const dense<T, Z, Device>& dz,
                dense<T, G, Device>& dx, edges& de) {
    backward(x, x, &e, dz, dx, dx, &de);
  }
  template <layout X, layout Z, layout G>
  void backward(const dense<T, X, Device>& x, const dense<T, Z, Device>& dz, dense<T, G, Device>& dx) {
    backward(x, x, nullptr, dz, dx, dx, nullptr);
  }
  /// The same for sources and targets of their own; e may be null, and de if its gradient is not wanted.
  template <layout X, layout Y, layout Z, layout G, layout H>
  void backward(const dense<T, X, Device>& sources, const dense<T, Y, Device>& targets, const edges* e,
                const dense<T, Z, Device>& dz, dense<T, G, Device>& dsources, dense<T, H, Device>& dtargets,
                edges* de) {
    require(sources, targets, e, dz);
    go_->require(dsources, go_->pattern().col_blocking());
    if (reads_targets) go_->require(dtargets, go_->pattern().row_blocking());
    if (de != nullptr) require_gradient(e, *de);
    gradients(sources.local(), targets.local(), e, dz.local(), de);
    add(source_gradient_, dsources.local());
    if (reads_targets) add(target_gradient_, dtargets.local());
  }

  /// What this rank receives in one forward, in closed form.
  traffic predicted_forward() const {
    return come_->stages().plan().predicted() + (reads_targets ? targets_.predicted() : traffic());
  }
  /// What this rank receives in one backward, with or without the gradient of e, in closed form.
  traffic predicted_backward(bool of_edges = true) const {
    const auto& come = come_->stages().plan();
    traffic all = go_->stages().plan().predicted() + rows_->predicted();
    if (reads_targets) {
      all += targets_.predicted();
      all += traffic{come.predicted().words - come.predicted_stages().words,
                     come.predicted().messages - come.predicted_stages().messages};
    }
    return of_edges ? all + predicted_edge_sums() : all;
  }
  /// In both.
  traffic predicted(bool of_edges = true) const { return predicted_forward() + predicted_backward(of_edges); }

 private:
  using schedule = detail::edge_schedule<T, Device>;
  using block = dense<T, dynamic_layout, Device>;

  message_plan(const sparse<T, dynamic_layout, Device>& pattern, layout l, const blocking& features,
               Function f, message_options o, int)
      : f_(std::move(f)),
        come_(std::make_unique<schedule>(possible(pattern), l, features, o.heads, o.rows)),
        go_(std::make_unique<schedule>(pattern, l, features, o.heads, row_exchange::full,
                                       detail::row_flow::sums_go)),
        targets_(*come_),
        rows_(std::make_unique<detail::tile_rows<T, Device>>(go_->stages().plan())),
        source_gradient_(pattern.mesh(), l, pattern.col_blocking(), features),
        target_gradient_(pattern.mesh(), l, pattern.row_blocking(), features) {
    if (o.reduction == message_reduction::mean) weigh(pattern);
    const auto& tiles = go_->stages().plan().a();
    std::size_t number = 0;
    for (std::size_t t = 0; t < tiles.count(); ++t)
      for (const local::csr_slice<T>& part : tiles.parts(t))
        go_->passes().prepare_inverse(go_->stages().queue(), number++, part.entries);
  }

  static const sparse<T, dynamic_layout, Device>& possible(const sparse<T, dynamic_layout, Device>& pattern) {
    static_assert(
        requires(const device_queue<Device>& q, local::csr_view<T> a, Function f, matrix_view<const T> x,
                 matrix_view<T> y) { message_sums(q, a, local::head_slice(), f, x.data, x, x, x, T(0), y); },
        "messages are for the host: this device has no kernels for them");
    memory::refuse_reproducible(pattern.mesh().queue(), "message_plan");
    return pattern;
  }

  /// The weights of a mean: one over the number of entries of a row of A on all ranks.
  void weigh(const sparse<T, dynamic_layout, Device>& pattern) {
    const auto& q = pattern.mesh().queue();
    const auto& tiles = *pattern.local();
    const local::entry_lists entries = tiles.entries(q);
    std::vector<global_index> counts(static_cast<std::size_t>(tiles.rows), 0);
    for (std::size_t t = 0; t < tiles.count(); ++t)
      for (std::size_t i = 0; i < counts.size(); ++i)
        counts[i] += static_cast<global_index>(entries.end(t, i) - entries.begin(t, i));
    const communicator& others = pattern.mesh().control(pattern.layout().cols);
    if (others.size() > 1) others.all_reduce(counts);
    std::vector<T> weights;
    for (const global_index n : counts)
      weights.push_back(T(1) / static_cast<T>(std::max<global_index>(n, 1)));
    weights_ = buffer<T, Device>(q, weights.size());
    copy(q, std::span<const T>(weights), weights_.span());
  }

  template <class X, class Y, class Z>
  void require(const X& sources, const Y& targets, const edges* e, const Z& z) const {
    if (e != nullptr) come_->require(*e);
    come_->require(sources, come_->pattern().col_blocking());
    if (reads_targets) come_->require(targets, come_->pattern().row_blocking());
    come_->require(z, come_->pattern().row_blocking());
  }
  void require_gradient(const edges* e, const edges& de) const {
    go_->require(de);
    if (e == nullptr || e->heads() != de.heads() || e->first_head() != de.first_head())
      throw shape_error("the gradient of an edge matrix has the heads of that matrix");
    if (along_slices().size() > 1 && de.heads() != go_->heads())
      throw shape_error(
          "the gradient of an edge matrix needs values of all heads where ranks share their columns");
  }
  /// The ranks whose columns may be of the same head.
  const communicator& along_slices() const { return go_->pattern().mesh().along(go_->spread().cols); }
  traffic predicted_edge_sums() const {
    const auto& m = go_->pattern().mesh();
    comm::collective sums;
    sums.kind = operation::all_reduce;
    sums.count = static_cast<global_index>(go_->pattern().local()->nonzeros) * go_->heads();
    const axis_set axes = go_->spread().cols;
    return received(sums, partition::rank_in_group(m.shape(), axes, m.at()), m.shape().size(axes));
  }

  /// What the messages of a part of a tile are made of.
  local::message_operands<T> operands(const local::csr_slice<T>& part, const edges* e,
                                      matrix_view<const T> sources, matrix_view<const T> targets) const {
    const matrix_view<const T> none{nullptr, part.entries.rows, 0, 0};
    const matrix_view<const T> weights{weights_.data(), come_->pattern().local()->rows, 1, 1};
    const local::head_slice slice = e == nullptr ? local::head_slice{0, 1, 0} : come_->slice(*e);
    return {slice, e == nullptr ? nullptr : part.values_in(e->values().data(), slice.heads), sources,
            reads_targets ? part.rows_of(targets) : none, weights_.size() > 0 ? part.rows_of(weights) : none};
  }

  void sums(matrix_view<const T> x, matrix_view<const T> y, const edges* e, matrix_view<T> z) {
    const matrix_view<const T> targets = reads_targets ? targets_(y) : matrix_view<const T>();
    auto& stages = come_->stages();
    std::size_t number = 0;
    stages.for_stages(x, stages.begin(z), 0,
                      [&](std::size_t, const local::csr_slice<T>& part, auto rows, T beta, auto out) {
                        local::chunked::message_sums(stages.queue(), come_->passes(), number++, part.entries,
                                                     f_, operands(part, e, rows, targets), beta, out);
                      });
    stages.finish(z);
  }

  /// Those of X and T in source_gradient_ and target_gradient_; adds that of e to de.
  void gradients(matrix_view<const T> x, matrix_view<const T> y, const edges* e, matrix_view<const T> dz,
                 edges* de) {
    const matrix_view<const T> targets = reads_targets ? targets_(y) : matrix_view<const T>();
    auto &come = come_->stages(), &go = go_->stages();
    const auto& q = go.queue();
    matrix_view<T> of_targets;
    if (reads_targets) {
      of_targets = come.begin(target_gradient_.local());
      local::chunked::fill(q, T(0), of_targets);
    }
    if (de != nullptr && along_slices().rank() > 0)  // the others add theirs to what the first one has
      clear(q, de->values());
    rows_->start(x);
    std::size_t number = 0;
    go.for_stages(dz, go.begin(source_gradient_.local()), 0,
                  [&](std::size_t t, const local::csr_slice<T>& part, auto of_rows, T beta, auto out) {
                    const local::message_operands<T> of = operands(part, e, (*rows_)(t), targets);
                    add_row_gradients(number, part, of, of_rows, of_targets, de);
                    local::chunked::message_source_gradients(q, go_->passes(), number++, part.entries, f_, of,
                                                             of_rows, beta, out);
                  });
    go.finish(source_gradient_.local());
    if (reads_targets) come.finish(target_gradient_.local());
    if (de != nullptr && along_slices().size() > 1) along_slices().all_reduce(de->values());
  }
  void add_row_gradients(std::size_t number, const local::csr_slice<T>& part,
                         const local::message_operands<T>& of, matrix_view<const T> of_rows,
                         matrix_view<T> of_targets, edges* de) {
    if (!reads_targets && de == nullptr) return;
    const matrix_view<T> none{nullptr, part.entries.rows, 0, 0};
    T* const of_values = de == nullptr ? nullptr : part.values_in(de->values().data(), of.slice.heads);
    local::chunked::message_row_gradients(go_->stages().queue(), go_->passes(), number, part.entries, f_, of,
                                          of_rows, reads_targets ? part.rows_of(of_targets) : none,
                                          of_values);
  }
  static void clear(const device_queue<Device>& q, std::span<T> x) {
    for (std::size_t n; !x.empty(); x = x.subspan(n)) {
      n = std::min(x.size(), base::max_tile_entries);
      local::chunked::fill(q, T(0), matrix_view<T>{x.data(), static_cast<local_index>(n), 1, 1});
    }
  }
  void add(const block& gradient, matrix_view<T> to) {
    local::chunked::zip(go_->stages().queue(), base::linear_combination<T>{1, 1}, gradient.local(),
                        matrix_view<const T>(to), to);
  }

  Function f_;
  std::unique_ptr<schedule> come_, go_;  ///< rows of X come, forward; sums for them go, backward
  detail::spread_rows<T, Device> targets_;
  std::unique_ptr<detail::tile_rows<T, Device>> rows_;
  block source_gradient_, target_gradient_;
  buffer<T, Device> weights_;  ///< of the rows of A, for a mean
};

template <class T, layout A, layout X, class Device, class Function>
message_plan(const sparse<T, A, Device>&, const dense<T, X, Device>&, Function)
    -> message_plan<T, Device, Function>;
template <class T, layout A, layout X, class Device, class Function>
message_plan(const sparse<T, A, Device>&, const dense<T, X, Device>&, Function, message_options)
    -> message_plan<T, Device, Function>;
template <class T, layout A, class Device, class Function>
message_plan(const sparse<T, A, Device>&, layout, const blocking&, Function, message_options = {})
    -> message_plan<T, Device, Function>;

}  // namespace partita::algebra

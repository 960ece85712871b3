// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Scores of edges by a user-defined function, differentiated automatically, under every policy.

#include <algorithm>
#include <utility>

#include "partita/algebra/message_core.hpp"

namespace partita::algebra {

/// The options of a message_scores_plan.
struct message_scores_options {
  local_index heads = 1;                        ///< columns of the scores: a number that divides the width
  local_index edge_columns = 0;                 ///< of the edge matrix, divide the width; 0: as many as heads
  row_exchange rows = row_exchange::automatic;  ///< in both directions
};

/// Planned scores of the entries (v, u) of a pattern, s(v, u, h) = the sum over the columns j of head h of
/// f(X(u, j), T(v, j), e(v, u, head of j), P(., j)), and the gradients of X, T, e and P, which follow from f.
/// Operands and f as in message_plan; e may have other columns than s, at most those of X.
///
/// The scores of GATv2 are f = p[0] leaky_relu(x + t + e), those of a transformer x t / sqrt(d) + e / d for
/// heads of d columns; with as many heads as columns, s is a function of the ends of an edge, column by
/// column.
///
/// Collective over the mesh: constructor, forward and backward. What travels: in forward, X as in spmm with
/// A stationary, all of T's rows to the ranks that share them if f reads them, and an all-reduce of s along
/// the axes that partition the columns of a head. In backward: T to the ranks that share its rows, even if f
/// does not read it, X's rows along row as in forward, sums for these and, if f reads it, for T; all-reduces
/// of e's gradient, as of s, and of P's, K w elements, unless only this rank's part is wanted. On a
/// reproducible mesh, and what it throws: as message_plan; also shape_error if ranks share columns of a
/// head, unless s has all heads.
///
/// Source: Brody, Alon, Yahav (ICLR 2022), equation 7; Vaswani et al. (NeurIPS 2017), section 3.2.1.
template <class T, class Device, class Function>
class message_scores_plan
    : public detail::planned_messages<message_scores_plan<T, Device, Function>, T, Device, Function> {
  using planned = detail::planned_messages<message_scores_plan, T, Device, Function>;
  using typename planned::core;

 public:
  using edges = edge_matrix<T, Device>;
  using parameters = dense<T, replicated, Device>;
  static constexpr bool reads_targets = core::reads_targets;

  /// For operands in layout `l`, with columns partitioned by `features`.
  template <layout A>
  message_scores_plan(const sparse<T, A, Device>& pattern, layout l, const blocking& features, Function f,
                      message_scores_options options = {})
      : planned(false, pattern.stored_for("message_scores_plan"), l, features, std::move(f),
                options.edge_columns > 0 ? options.edge_columns : options.heads, options.rows),
        heads_(options.heads),
        head_width_(width_of(features, options.heads)) {}
  /// For operands like x.
  template <layout A, layout X>
  message_scores_plan(const sparse<T, A, Device>& pattern, const dense<T, X, Device>& x, Function f,
                      message_scores_options options = {})
      : message_scores_plan(pattern, x.layout(), x.col_blocking(), std::move(f), options) {}

  using planned::function;

  /// s from rows of the sources and rows of the targets; e may be null, and p if f has no parameters.
  template <layout X, layout Y>
  void forward(const dense<T, X, Device>& sources, const dense<T, Y, Device>& targets, const edges* e,
               edges& s, const parameters* p = nullptr) {
    core_.require(sources, targets, e, p);
    require(s);
    if (core_.exact() != nullptr) return sum_exactly({sources.local(), targets.local(), e, p}, s);
    T* const values = s.values().data();
    core_.forward({sources.local(), targets.local(), e, p}, {},
                  [&](std::size_t number, std::size_t, const auto& part, const auto& of, T, auto) {
                    local::chunked::message_scores(core_.queue(), core_.come().passes(), number, part.entries,
                                                   function(), of, slice(s),
                                                   part.values_in(values, s.heads()));
                  });
    if (core_.along_slices().size() > 1) core_.along_slices().all_reduce(s.values());
  }

  /// dsources, dtargets, de and dp += the gradients, from the operands of forward and the gradient of its
  /// result; e and p may be null, and de and dp if these gradients are not wanted.
  template <layout X, layout Y, layout G, layout H>
  void backward(const dense<T, X, Device>& sources, const dense<T, Y, Device>& targets, const edges* e,
                const edges& ds, dense<T, G, Device>& dsources, dense<T, H, Device>& dtargets, edges* de,
                const parameters* p = nullptr, parameters* dp = nullptr) {
    differentiate(sources, targets, e, ds, &dsources, &dtargets, de, p, dp, true);
  }
  /// As above, but dp += what this rank contributes to the gradient of p, see sum_parts; dsources and
  /// dtargets may be null, too.
  template <layout X, layout Y>
  void backward_part(const dense<T, X, Device>& sources, const dense<T, Y, Device>& targets, const edges* e,
                     const edges& ds, dense<T, dynamic_layout, Device>* dsources,
                     dense<T, dynamic_layout, Device>* dtargets, edges* de, const parameters* p,
                     parameters* dp) {
    differentiate(sources, targets, e, ds, dsources, dtargets, de, p, dp, false);
  }

  /// What this rank receives in one forward, in closed form.
  traffic predicted_forward() const {
    const auto* const exact = core_.exact();
    return core_.predicted_stages() + (exact == nullptr
                                           ? core_.predicted_head_sums(heads_)
                                           : exact->predicted_begin(1) + exact->predicted_heads(heads_));
  }

 private:
  static local_index width_of(const blocking& features, local_index heads) {
    if (heads < 1 || features.size() % heads != 0)
      base::throw_error<shape_error>({heads, " heads do not divide a width of ", features.size()});
    return base::to_local(features.size() / heads, "the width of a head");
  }
  interval heads_here() const { return local::heads_of(core_.come().stages().plan().columns(), head_width_); }
  void require(const edges& s) const {
    const interval heads{s.first_head(), s.first_head() + s.heads()};
    const bool own = s.pattern().local() == core_.pattern().local();
    if (!own || (heads != interval{0, heads_} && heads != heads_here()))
      base::throw_error<shape_error>({"scores over a pattern of ", core_.pattern().shape(), " and ", heads_,
                                      " heads were given values of ", s.heads(), " heads over a pattern of ",
                                      s.pattern().shape(), (own ? "" : ", which is a different pattern")});
    core_.require_all_heads(s, heads_);
  }
  local::head_slice slice(const edges& s) const {
    const auto first = static_cast<local_index>(core_.come().stages().plan().columns().begin);
    return {s.heads(), head_width_, first - s.first_head() * head_width_};
  }

  void sum_exactly(const typename core::operands& x, edges& s) {
    const auto& parts =
        core_.exact_parts(x, [](std::size_t, const auto&) { return local::message_gradient<T>{}; });
    const auto f = core_.exact_function();
    std::fill(s.values().begin(), s.values().end(), T(0));
    core_.exact()->begin(parts, f, false);
    core_.exact()->add_heads(parts, f, 0, slice(s), s.values());
  }
  template <class X, class Y, class G, class H>
  void differentiate(const X& sources, const Y& targets, const edges* e, const edges& ds, G* dsources,
                     H* dtargets, edges* de, const parameters* p, parameters* dp, bool sums) {
    core_.require(sources, targets, e, p);
    core_.come().require(targets, core_.pattern().row_blocking());
    core_.require_gradients(e, dsources, dtargets, de, dp);
    require(ds);
    core_.backward(
        {sources.local(), targets.local(), e, p},
        {core::gradients::to(dsources), core::gradients::to(dtargets), de, dp, sums}, targets.local(), false,
        [&](std::size_t, const local::csr_slice<T>& part, matrix_view<const T>) {
          const matrix_view<const T> none{nullptr, part.entries.rows, 0, 0};
          return local::message_gradient<T>{.rows = none,
                                            .weights = none,
                                            .winners = {nullptr, part.entries.rows, 0, 0},
                                            .names = nullptr,
                                            .first_name = 0,
                                            .scores = part.values_in(ds.values().data(), ds.heads()),
                                            .of_scores = slice(ds)};
        });
  }

  using planned::core_;
  local_index heads_, head_width_;
};

template <class T, layout A, layout X, class Device, class Function>
message_scores_plan(const sparse<T, A, Device>&, const dense<T, X, Device>&, Function)
    -> message_scores_plan<T, Device, Function>;
template <class T, layout A, layout X, class Device, class Function>
message_scores_plan(const sparse<T, A, Device>&, const dense<T, X, Device>&, Function, message_scores_options)
    -> message_scores_plan<T, Device, Function>;
template <class T, layout A, class Device, class Function>
message_scores_plan(const sparse<T, A, Device>&, layout, const blocking&, Function,
                    message_scores_options = {}) -> message_scores_plan<T, Device, Function>;

}  // namespace partita::algebra

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Message passing with a user-defined function, differentiated automatically, under every policy.

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "partita/algebra/message_core.hpp"

namespace partita::algebra {

/// f with K parameters per column, passed as the array p[0] ... p[K - 1] in its last argument; a named type
/// may instead have a member `static constexpr int parameters = K`.
template <int K, class Function>
local::parametrised<K, Function> with_parameters(Function f) {
  return local::parametrised<K, Function>(std::move(f));
}

/// How the messages to a vertex are reduced to one row: sum, mean, or column-wise maximum or minimum; 0
/// without messages.
enum class message_reduction : std::uint8_t { sum, mean, max, min };

/// Options of a message_plan.
struct message_options {
  local_index heads = 1;  ///< columns of the edge matrix: 1, the width, or a number that divides it
  message_reduction reduction = message_reduction::sum;
  row_exchange rows = row_exchange::automatic;  ///< in both directions
};

namespace detail {

/// This rank's best message, or, without one, a value that loses against all others.
template <class T>
struct own_candidate {
  matrix_view<const local_index> winners;
  constexpr T operator()(local_index i, local_index j, T best) const {
    return winners(i, j) < 0 ? -std::numeric_limits<T>::infinity() : best;
  }
};
/// Which entry has the best message of all ranks: a larger candidate means a smaller column.
template <class T>
struct rank_of_candidate {
  matrix_view<const T> own, all;
  constexpr local_index operator()(local_index i, local_index j, local_index winner) const {
    const T mine = own(i, j), best = all(i, j);
    const bool is_best = mine == best || (mine != mine && best != best);
    return winner >= 0 && is_best ? std::numeric_limits<local_index>::max() - winner : -1;
  }
};
/// The winner, from its candidate number.
struct name_of_candidate {
  constexpr local_index operator()(local_index rank) const {
    return rank < 0 ? -1 : std::numeric_limits<local_index>::max() - rank;
  }
};
/// `sign` times the value if there is a winner, else 0.
template <class T>
struct won_value {
  matrix_view<const local_index> winners;
  T sign;
  constexpr T operator()(local_index i, local_index j, T value) const {
    return winners(i, j) < 0 ? T(0) : sign * value;
  }
};

}  // namespace detail

/// Planned messages along the entries (v, u) of a pattern, Z(v, j) = sum over u of f(X(u, j), T(v, j), e(v,
/// u, head of j), P(., j)), or the mean, maximum or minimum over u, and the gradients of X, T, e and P,
/// derived from f. `f` is a function in generic arithmetic (base/dual.hpp) of three numbers (of the first and
/// the third only, if it ignores T) and of an array if it has parameters (with_parameters). Without an edge
/// matrix the third argument is 1. X (k x w) has one row per column of the pattern, T and Z (m x w) one per
/// row, in a layout the pattern can multiply, heads side by side; if X also serves as T, the pattern is
/// square. P (K x c) has one row per parameter, and each of its c columns serves w / c columns of X. Messages
/// are never stored: the extra memory is at most the rows of X for one tile. Ties in a maximum go to the
/// entry with the smallest column, and only it gets the gradient. For softmax weights see
/// message_scores_plan, edge_softmax and edge_spmm_plan.
///
/// Collective over the mesh: constructor, forward and backward. What travels: in forward, X as in spmm with A
/// stationary, all of T's rows to the ranks that share them if f reads them, and the sums; for maxima two
/// all-reduces, of values and of entries, over the ranks that share rows of A. In backward: the gradient of Z
/// and, if f reads it, T to the ranks that share their rows, X's rows along row as in forward, and sums for X
/// and T; an all-reduce of e's gradient along the axes that partition the columns of a head; one of K w
/// elements for P's gradient, unless only this rank's part is wanted; never edge values otherwise; no sums
/// for unwanted gradients. On a reproducible mesh sums are sent as doubles, twice for double, after an
/// all-reduce of the largest terms; maxima and rows as usual; both forms of backward give P's whole gradient.
/// On devices f needs a named type and a constexpr call operator. Throws shape_error for layouts that cannot
/// be multiplied, heads that do not divide the width, and operands that do not match the plan.
///
/// Source: message passing as in Gilmer et al. (ICML 2017), section 2; forward-mode derivatives: Griewank and
/// Walther, Evaluating Derivatives (SIAM 2008), chapter 3.
template <class T, class Device, class Function>
class message_plan : public detail::planned_messages<message_plan<T, Device, Function>, T, Device, Function> {
  using planned = detail::planned_messages<message_plan, T, Device, Function>;
  using typename planned::core;

 public:
  using edges = edge_matrix<T, Device>;
  using parameters = dense<T, replicated, Device>;
  /// Whether f reads the rows of the targets.
  static constexpr bool reads_targets = core::reads_targets;

  /// For operands in layout `l` with columns partitioned by `features`.
  template <layout A>
  message_plan(const sparse<T, A, Device>& pattern, layout l, const blocking& features, Function f,
               message_options options = {})
      : planned(true, pattern.stored_for("message_plan"), l, features, std::move(f), options.heads,
                options.rows),
        reduction_(options.reduction) {
    if (reduction_ == message_reduction::mean) weigh();
    if (chooses()) prepare_winners(l, features);
  }
  /// For operands with the layout and blocking of x.
  template <layout A, layout X>
  message_plan(const sparse<T, A, Device>& pattern, const dense<T, X, Device>& x, Function f,
               message_options options = {})
      : message_plan(pattern, x.layout(), x.col_blocking(), std::move(f), options) {}

  using planned::function;
  /// The heads whose columns this rank computes; edge matrices need values only for these.
  interval heads_here() const { return core_.come().heads_here(); }

  /// z from x (as source and target), and from an edge matrix and parameters, if any.
  template <layout X, layout Z>
  void forward(const dense<T, X, Device>& x, dense<T, Z, Device>& z) {
    forward(x, x, nullptr, z);
  }
  template <layout X, layout Z>
  void forward(const dense<T, X, Device>& x, const edges& e, dense<T, Z, Device>& z) {
    forward(x, x, &e, z);
  }
  template <layout X, layout Z>
  void forward(const dense<T, X, Device>& x, const edges& e, const parameters& p, dense<T, Z, Device>& z) {
    forward(x, x, &e, z, &p);
  }
  /// z from source rows and target rows; e may be null, and so may p if f has no parameters.
  template <layout X, layout Y, layout Z>
  void forward(const dense<T, X, Device>& sources, const dense<T, Y, Device>& targets, const edges* e,
               dense<T, Z, Device>& z, const parameters* p = nullptr) {
    core_.require(sources, targets, e, p);
    core_.come().require(z, core_.pattern().row_blocking());
    const typename core::operands x{sources.local(), targets.local(), e, p};
    if (chooses())
      choose(x, z.local());
    else
      sum(x, z.local());
  }

  /// dx += the gradient of x as source and target, de += that of e, dp += that of p, given the operands of
  /// forward and the gradient of its result. A maximum uses the winners of the last forward.
  template <layout X, layout Z, layout G>
  void backward(const dense<T, X, Device>& x, const dense<T, Z, Device>& dz, dense<T, G, Device>& dx) {
    backward(x, x, nullptr, dz, dx, dx, nullptr);
  }
  template <layout X, layout Z, layout G>
  void backward(const dense<T, X, Device>& x, const edges& e, const dense<T, Z, Device>& dz,
                dense<T, G, Device>& dx, edges& de) {
    backward(x, x, &e, dz, dx, dx, &de);
  }
  template <layout X, layout Z, layout G>
  void backward(const dense<T, X, Device>& x, const edges& e, const parameters& p,
                const dense<T, Z, Device>& dz, dense<T, G, Device>& dx, edges& de, parameters& dp) {
    backward(x, x, &e, dz, dx, dx, &de, &p, &dp);
  }
  /// The same with separate sources and targets; e and p may be null, as may de and dp if these gradients are
  /// not wanted.
  template <layout X, layout Y, layout Z, layout G, layout H>
  void backward(const dense<T, X, Device>& sources, const dense<T, Y, Device>& targets, const edges* e,
                const dense<T, Z, Device>& dz, dense<T, G, Device>& dsources, dense<T, H, Device>& dtargets,
                edges* de, const parameters* p = nullptr, parameters* dp = nullptr) {
    differentiate(sources, targets, e, dz, &dsources, &dtargets, de, p, dp, true);
  }
  /// As above, but dp += this rank's contribution to the gradient of p, see sum_parts; dsources and dtargets
  /// may also be null.
  template <layout X, layout Y, layout Z>
  void backward_part(const dense<T, X, Device>& sources, const dense<T, Y, Device>& targets, const edges* e,
                     const dense<T, Z, Device>& dz, dense<T, dynamic_layout, Device>* dsources,
                     dense<T, dynamic_layout, Device>* dtargets, edges* de, const parameters* p,
                     parameters* dp) {
    differentiate(sources, targets, e, dz, dsources, dtargets, de, p, dp, false);
  }

  /// What this rank receives in one forward, in closed form.
  traffic predicted_forward() const {
    const traffic rows = core_.predicted_stages();
    if (chooses()) return rows + predicted_choice();
    const auto* const exact = core_.exact();
    if (exact != nullptr) return rows + exact->predicted_begin(1) + exact->predicted_rows();
    return rows + core_.predicted_row_sums();
  }

 private:
  bool chooses() const { return reduction_ > message_reduction::mean; }
  const communicator& sharing_rows() const {
    return core_.pattern().mesh().along(core_.pattern().layout().cols);
  }

  /// The weights of a mean: 1 / the number of entries in a row of A, over all ranks.
  void weigh() {
    const auto& pattern = core_.pattern();
    const auto& q = core_.queue();
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
  void prepare_winners(layout l, const blocking& features) {
    const auto& pattern = core_.pattern();
    base::to_local(pattern.shape().cols, "the number of sources of a maximum");
    const matrix_shape block = core_.block();
    const auto size = static_cast<std::size_t>(block.rows * block.cols);
    best_ = buffer<T, Device>(core_.queue(), size);
    all_ = buffer<T, Device>(core_.queue(), size);
    winners_ = buffer<local_index, Device>(core_.queue(), size);
    keep_ = std::make_unique<redistribution<T, Device>>(pattern.mesh(), pattern.row_blocking(), features,
                                                        core_.come().spread(), l);
  }
  template <class E>
  matrix_view<E> in_block(E* numbers) const {
    const matrix_shape block = core_.block();
    const auto cols = static_cast<local_index>(block.cols);
    return {numbers, static_cast<local_index>(block.rows), cols, cols};
  }
  matrix_view<const T> weights_of(const local::csr_slice<T>& part) const {
    const matrix_view<const T> all{weights_.data(), core_.pattern().local()->rows, 1, 1};
    return weights_.size() > 0 ? part.rows_of(all) : matrix_view<const T>{nullptr, part.entries.rows, 0, 0};
  }
  const local_index* names_of(const local::csr_slice<T>& part) const {
    return core_.pattern().local()->columns_of(part);
  }
  local_index first_name(std::size_t t) const {
    return static_cast<local_index>(core_.pattern().tile_columns(t).begin);
  }

  void sum(const typename core::operands& x, matrix_view<T> z) {
    if (core_.exact() != nullptr) return sum_exactly(x, z);
    auto& stages = core_.come().stages();
    core_.forward(x, stages.begin(z),
                  [&](std::size_t number, std::size_t, const auto& part, const auto& of, T beta, auto out) {
                    local::chunked::message_sums(core_.queue(), core_.come().passes(), number, part.entries,
                                                 function(), of, weights_of(part), beta, out);
                  });
    stages.finish(z);
  }

  void sum_exactly(const typename core::operands& x, matrix_view<T> z) {
    const auto& parts = core_.exact_parts(x, [&](std::size_t, const auto& part) {
      return local::message_gradient<T>{{}, weights_of(part)};
    });
    const auto f = core_.exact_function();
    local::chunked::fill(core_.queue(), T(0), z);
    core_.exact()->begin(parts, f, false);
    core_.exact()->add_rows(parts, f, 0, z);
  }

  /// The maximum over this rank's entries, then over all ranks that share the rows; minima negate the
  /// values.
  void choose(const typename core::operands& x, matrix_view<T> z) {
    const auto& q = core_.queue();
    const T sign = reduction_ == message_reduction::min ? T(-1) : T(1);
    const matrix_view<T> best = in_block(best_.data()), all = in_block(all_.data());
    const matrix_view<local_index> winners = in_block(winners_.data());
    local::chunked::fill(q, T(0), best);
    local::chunked::fill(q, local_index{-1}, winners);
    find_largest(x, sign, best, winners);
    const matrix_view<const local_index> names = winners;
    local::chunked::transform_indexed(q, detail::own_candidate<T>{names}, best, all);

    if (sharing_rows().size() > 1) {
      sharing_rows().all_reduce(all_.span(), reduction::max);
      local::chunked::transform_indexed(q, detail::rank_of_candidate<T>{best, all}, names, winners);
      sharing_rows().all_reduce(winners_.span(), reduction::max);
      local::chunked::transform(q, detail::name_of_candidate{}, names, winners);
    }
    local::chunked::transform_indexed(q, detail::won_value<T>{names, sign}, all, all);
    (*keep_)(matrix_view<const T>(all), z);
  }
  void find_largest(const typename core::operands& x, T sign, matrix_view<T> best,
                    matrix_view<local_index> winners) {
    if (core_.exact() != nullptr) {
      const auto& parts = core_.exact_parts(x, [&](std::size_t t, const auto& part) {
        return local::message_gradient<T>{{}, {}, {}, names_of(part), first_name(t)};
      });
      return core_.exact()->choose(parts, core_.exact_function(), sign, best, winners);
    }
    core_.forward(x, {}, [&](std::size_t number, std::size_t t, const auto& part, const auto& of, T, auto) {
      local::chunked::message_largest(core_.queue(), core_.come().passes(), number, part.entries, function(),
                                      of, sign, names_of(part), first_name(t), part.rows_of(best),
                                      part.rows_of(winners));
    });
  }
  traffic predicted_choice() const {
    const global_index elements = core_.block().rows * core_.block().cols;
    return 2 * core_.pattern().mesh().all_reduced(core_.pattern().layout().cols, elements) +
           keep_->predicted();
  }

  template <class X, class Y, class Z, class G, class H>
  void differentiate(const X& sources, const Y& targets, const edges* e, const Z& dz, G* dsources,
                     H* dtargets, edges* de, const parameters* p, parameters* dp, bool sums) {
    core_.require(sources, targets, e, p);
    core_.come().require(dz, core_.pattern().row_blocking());
    core_.require_gradients(e, dsources, dtargets, de, dp);
    const matrix_view<const local_index> winners = in_block(std::as_const(winners_).data());
    core_.backward({sources.local(), targets.local(), e, p},
                   {core::gradients::to(dsources), core::gradients::to(dtargets), de, dp, sums}, dz.local(),
                   true, [&](std::size_t t, const local::csr_slice<T>& part, matrix_view<const T> rows) {
                     local::message_gradient<T> g{rows, weights_of(part), {nullptr, part.entries.rows, 0, 0}};
                     if (!chooses()) return g;
                     g.winners = part.rows_of(winners);
                     g.names = names_of(part);
                     g.first_name = first_name(t);
                     return g;
                   });
  }

  using planned::core_;
  message_reduction reduction_;
  buffer<T, Device> weights_;                        ///< one per row of A, for a mean
  buffer<T, Device> best_, all_;                     ///< of this rank, and of all ranks that share its rows
  buffer<local_index, Device> winners_;              ///< their columns; -1 without a message
  std::unique_ptr<redistribution<T, Device>> keep_;  ///< for maxima, to the layout of z
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

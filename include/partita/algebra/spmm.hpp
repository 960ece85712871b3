// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Y = A X for every partition policy, by a single schedule whose communication steps vanish on axes of size
/// 1.

#include <string>
#include <variant>

#include "partita/algebra/epilogue.hpp"
#include "partita/algebra/exact_spmm.hpp"
#include "partita/local/chunked.hpp"
#include "partita/transfer/layout_change.hpp"

namespace partita {

namespace detail {

/// For the types only; layouts known at run time are assumed to be multipliable.
template <layout A, layout X>
inline constexpr bool may_be_multipliable = A == dynamic_layout || X == dynamic_layout ||
                                            partition::multipliable(A, X);

template <class T, layout A, class Device>
[[noreturn]] void throw_unfit(const sparse<T, A, Device>& a, layout x) {
  throw_error<shape_error>(
      {"A of ", a.shape(), " with ", a.layout(), " and X with ", x,
       " cannot be multiplied: the axes that partition A do not match those that partition X"});
}

}  // namespace detail

/// The layout in which A multiplies X: X's own if A can multiply it in place, else A's operand layout. Throws
/// shape_error.
template <class T, layout A, class Device>
layout multiplied_layout(const sparse<T, A, Device>& a, layout x) {
  if (partition::multipliable(a.layout(), x)) return x;
  const layout named = a.operand_layout().value_or(x);
  if (partition::multipliable(a.layout(), named)) return named;
  detail::throw_unfit(a, x);
}

/// A planned Y = A X (m x f = m x k times k x f), X and Y in the same layout. For A^T pass transposed(A): its
/// own blocks multiply if it is stored, else those of A, read the other way.
///
/// Collective over the mesh: constructor and call. What travels: see spmm_schedule, and transposed_schedule
/// for an A^T that is not stored; if A cannot multiply X in place, X is redistributed to the layout of A's
/// policy, and Y back (free when the blocks are the same on this mesh). When only needed rows are exchanged,
/// a second copy of A's block is kept, with its remote tiles merged. Operands in far memory pass through the
/// window of the queue in chunks of A's rows; the first call makes a copy of A's structure, in these chunks,
/// for each combination of operands that are far, and throws budget_error where the window does not hold an
/// entry with its rows twice. On a reproducible mesh they are addressed where they are, and sums travel as
/// doubles, see exact_product. Throws shape_error naming shapes and layouts when A and X do not match.
template <class T, class Device>
class spmm_plan {
 public:
  /// For X and Y like x.
  template <layout A, layout X>
  spmm_plan(const sparse<T, A, Device>& a, const dense<T, X, Device>& x, spmm_options options = {},
            std::source_location where = std::source_location::current())
      : spmm_plan(a, x.layout(), columns_of(a, x), options, where) {
    static_assert(detail::may_be_multipliable<A, X>,
                  "these layouts of A and X cannot be multiplied: the axes that partition A do not match "
                  "those that partition X");
  }
  /// For X and Y in layout `l`, with columns partitioned by `features`.
  template <layout A>
  spmm_plan(const sparse<T, A, Device>& a, layout l, const blocking& features, spmm_options options = {},
            std::source_location where = std::source_location::current())
      : spmm_plan(comm::call_site(where), a, l, features, options) {}

  /// y = A x.
  template <layout X, layout Y>
  void operator()(const dense<T, X, Device>& x, dense<T, Y, Device>& y,
                  std::source_location where = std::source_location::current()) {
    (*this)(1, x, 0, y, where);
  }
  /// y = alpha A x + beta y; beta = 0 overwrites y. See below.
  template <layout X, layout Y>
  void operator()(std::type_identity_t<T> alpha, const dense<T, X, Device>& x, std::type_identity_t<T> beta,
                  dense<T, Y, Device>& y, std::source_location where = std::source_location::current()) {
    (*this)(alpha, x, y, {.beta = beta}, where);
  }
  /// y = drop(clamp(alpha A x + e.beta y + e.bias)), see epilogue; e.beta = 0 overwrites y. Same
  /// communication. The epilogue is applied in the pass of the last local product if no partial products are
  /// summed across ranks behind it and that pass is not a library's; otherwise in one pass after the sums. If
  /// they are summed, e.beta != 0 takes one more block of y as scratch memory, allocated in the first such
  /// call. On devices alpha != 1 multiplies by the built-in kernel, not by cuSPARSE.
  template <layout X, layout Y>
  void operator()(std::type_identity_t<T> alpha, const dense<T, X, Device>& x, dense<T, Y, Device>& y,
                  const std::type_identity_t<epilogue<T, Device>>& e,
                  std::source_location where = std::source_location::current()) {
    const comm::call_site scope(where);
    require(x, y);
    local::spmm_epilogue<T> all = detail::epilogue_of_block(alpha, e, y);
    if (finishes()) return multiply(x, all, y);
    const local::spmm_epilogue<T> product{.alpha = alpha, .beta = accumulates() ? e.beta : T(0)};
    all.alpha = 1;
    if (product.beta == e.beta) {
      multiply(x, product, y);
      all.beta = 0;
      if (all.ends()) detail::finish<T>(y.mesh().queue(), y.local(), all, y.local());
      return;
    }
    if (!product_) product_.emplace(y.mesh(), y.layout(), y.row_blocking(), y.col_blocking());
    multiply(x, product, *product_);  // (m, f)
    detail::finish<T>(y.mesh().queue(), product_->local(), all, y.local());
  }

  /// What (*this)(x, y) will move between near and far memory, by the closed forms of its operations (see
  /// far_rehearsal); nothing without far memory. It is planned for these operands, and y is undefined
  /// afterwards. Collective over the mesh. What travels: what does in a call.
  template <layout X, layout Y>
  far_forecast forecast(const dense<T, X, Device>& x, dense<T, Y, Device>& y,
                        std::source_location where = std::source_location::current()) {
    far_forecast found;
    auto* const channel = far_of(y.mesh().queue());
    if (channel == nullptr) return found;
    const far_rehearsal rehearsal(*channel, found);
    (*this)(x, y, where);
    return found;
  }
  /// How this rank multiplies: "A X in (row; col), Y stationary, needed rows of X are exchanged: 120 words
  /// are received and 4800 multiplied". For chunks and far bytes: forecast(x, y).explain().
  std::string explain() const;

  /// What this rank receives in one call, in closed form.
  traffic predicted() const {
    return std::visit([](const auto& s) { return s.predicted(); }, schedule_) + change_.predicted();
  }
  /// Nonzeros multiplied by this rank in one call, times the columns of X they are multiplied with.
  global_index multiplications() const {
    return std::visit([](const auto& s) { return s.multiplications(); }, schedule_);
  }
  /// The options in effect, with `automatic` resolved.
  spmm_options options() const {
    return std::visit([](const auto& s) { return s.options(); }, schedule_);
  }

 private:
  using schedule = typename detail::product_schedules<T, Device>::type;

  template <layout X, layout Y>
  void require(const dense<T, X, Device>& x, const dense<T, Y, Device>& y) const {
    std::visit(
        [&](const auto& s) {
          s.require(x.row_blocking(), x.col_blocking(), y.row_blocking(), y.col_blocking());
        },
        schedule_);
    if (x.layout() != layout_ || y.layout() != layout_)
      throw_error<shape_error>({"spmm planned for X and Y with ", layout_, " was given X with ", x.layout(),
                                " and Y with ", y.layout()});
    detail::require_distinct("spmm", x, y);
  }
  /// Whether products can be added to y, and the epilogue follow, in the pass that multiplies.
  bool accumulates() const {
    return !change_.travels() && std::visit([](const auto& s) { return s.accumulates(); }, schedule_);
  }
  bool finishes() const {
    return !change_.travels() && std::visit([](const auto& s) { return s.finishes(); }, schedule_);
  }
  void run(matrix_view<const T> x, const local::spmm_epilogue<T>& e, matrix_view<T> y) {
    std::visit([&](auto& s) { s(x, y, e); }, schedule_);
  }
  template <layout A>
  static schedule schedule_of(const sparse<T, A, Device>& a, const blocking& features, layout inner,
                              spmm_options options) {
    if constexpr (local::sums_exactly<Device>)
      if (a.mesh().reproducible()) {
        using exact = detail::exact_product<T, Device>;
        const auto block = a.is_stored() ? a.local() : transposed(a).local();
        const global_index terms = a.shape().cols;
        if (a.is_stored())
          return exact(a.mesh(), block, of_stored<typename exact::straight>(a, features, inner, options),
                       terms);
        return exact(a.mesh(), block, of_transposed<typename exact::transposed>(a, features, inner, options),
                     terms);
      }
    if (a.is_stored()) return of_stored<detail::spmm_schedule<T, Device>>(a, features, inner, options);
    return of_transposed<detail::transposed_schedule<T, Device>>(a, features, inner, options);
  }
  template <class Schedule, layout A>
  static Schedule of_stored(const sparse<T, A, Device>& a, const blocking& features, layout inner,
                            spmm_options options) {
    return Schedule(a.mesh(), a.local(), a.row_blocking(), a.col_blocking(), features, a.layout(), inner,
                    options);
  }
  template <class Schedule, layout A>
  static Schedule of_transposed(const sparse<T, A, Device>& a, const blocking& features, layout inner,
                                spmm_options options) {
    return Schedule(a.mesh(), transposed(a).local(), a.col_blocking(), a.row_blocking(), features, a.layout(),
                    inner, options);
  }
  /// y = the part of an epilogue of A x that the multiplying pass can have.
  template <layout X, layout Y>
  void multiply(const dense<T, X, Device>& x, const local::spmm_epilogue<T>& e, dense<T, Y, Device>& y) {
    if (!change_.travels()) return run(x.local(), e, y.local());
    change_.to_inner(x, *x_);          // (k, f), in the operand layout of A
    run(x_->local(), e, y_->local());  // (m, f)
    change_.to_outer(*y_, y);
  }
  /// The columns of X, if A can multiply it.
  template <layout A, layout X>
  static const blocking& columns_of(const sparse<T, A, Device>& a, const dense<T, X, Device>& x) {
    if (x.shape().rows != a.shape().cols)
      throw_error<shape_error>({"spmm: A of ", a.shape(), " cannot multiply X of ", x.shape()});
    if (!(x.mesh().shape() == a.mesh().shape()))
      throw_error<shape_error>({"spmm: A of ", a.shape(), " is on mesh ", a.mesh().shape(), ", X of ",
                                x.shape(), " on mesh ", x.mesh().shape()});
    if (!(x.row_blocking() == a.col_blocking()))
      throw_error<shape_error>({"spmm: the rows of X of ", x.shape(),
                                " are not in the blocks of the columns of A of ", a.shape(),
                                "; give both the same blocking"});
    return x.col_blocking();
  }
  template <layout A>
  spmm_plan(const comm::call_site&, const sparse<T, A, Device>& a, layout l, const blocking& features,
            spmm_options options)
      : layout_(l),
        inner_(multiplied_layout(a, l)),
        schedule_(schedule_of(a, features, inner_, options)),
        change_(a.mesh(), a.col_blocking(), a.row_blocking(), features, l, inner_) {
    if (!change_.travels()) return;
    x_.emplace(a.mesh(), inner_, a.col_blocking(), features);
    y_.emplace(a.mesh(), inner_, a.row_blocking(), features);
  }

  layout layout_, inner_;
  schedule schedule_;
  transfer::layout_change<T, Device> change_;
  std::optional<dense<T, dynamic_layout, Device>> x_, y_, product_;  // the last for accumulation into y
};

template <class T, class Device>
std::string spmm_plan<T, Device>::explain() const {
  const spmm_options how = options();
  return base::sentence_of({"A X with ", inner_, change_.travels() ? ", where X comes and Y goes" : "", ", ",
                            how.stationary == stationary::a ? "A stationary, " : "Y stationary, ",
                            how.rows == row_exchange::full ? "whole blocks" : "needed rows",
                            " of X are exchanged: ", predicted().words, " words are received and ",
                            multiplications(), " multiplied"});
}

/// Y = A X (m x f), planned and run once. Collective over the mesh. Communication and exceptions: see
/// spmm_plan.
template <class T, layout A, layout X, class Device>
dense<T, X, Device> spmm(const sparse<T, A, Device>& a, const dense<T, X, Device>& x,
                         spmm_options options = {},
                         std::source_location where = std::source_location::current()) {
  spmm_plan multiply(a, x, options, where);
  dense<T, X, Device> y(a.mesh(), x.layout(), a.row_blocking(), x.col_blocking());
  multiply(x, y, where);
  return y;
}
/// Y = alpha A X + beta Y (m x f), planned and run once; beta = 0 overwrites Y. Collective over the mesh.
/// Communication and exceptions: see spmm_plan.
template <class T, layout A, layout X, layout Y, class Device>
void spmm(std::type_identity_t<T> alpha, const sparse<T, A, Device>& a, const dense<T, X, Device>& x,
          std::type_identity_t<T> beta, dense<T, Y, Device>& y, spmm_options options = {},
          std::source_location where = std::source_location::current()) {
  spmm_plan(a, x, options, where)(alpha, x, beta, y, where);
}

}  // namespace partita

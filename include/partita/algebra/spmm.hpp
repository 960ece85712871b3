// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Y = A X for every partition policy, by a single schedule whose communication steps vanish on axes of size
/// 1.

#include <algorithm>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "partita/algebra/epilogue.hpp"
#include "partita/algebra/product.hpp"
#include "partita/local/chunked.hpp"
#include "partita/memory/far_forecast.hpp"
#include "partita/transfer/layout_change.hpp"

namespace partita {

namespace algebra::detail {

/// Decided from the types alone; layouts known only at run time are assumed to be multipliable.
template <layout A, layout X>
inline constexpr bool may_be_multipliable = A == dynamic_layout || X == dynamic_layout ||
                                            partition::multipliable(A, X);

/// What is sent along row, in the words of explain().
inline const char* what_travels(row_exchange rows, bool sums) {
  if (rows == row_exchange::full) return sums ? "whole blocks of sums" : "whole blocks of X";
  if (rows == row_exchange::cover) return "rows of X and of sums that cover A";
  return sums ? "needed rows of sums" : "needed rows of X";
}

/// The layout in which A multiplies an X in layout l: `named`, or l if it keeps rows whole and partitions
/// them by the axes that partition A; then rows stay on their ranks, and sums of partial products go to the
/// owners of Y's rows. For an A that may move along col, the one with less traffic at the busiest rank.
/// Collective over the mesh. What travels: for such an A see spmm_cost, and a sum of two integers.
template <class T, class Device>
layout least_moved(const multiplied_matrix<T, Device>& a, layout l, layout named, const blocking& features,
                   spmm_options options) {
  const mesh_shape shape = a.mesh.shape();
  const layout whole = partition::full_width(a.layout);
  if (partition::same_blocks(shape, l, named) || !partition::same_blocks(shape, l, whole) ||
      shape.size(whole.rows) < shape.size())  // otherwise ranks with the same rows would all compute the same
    return named;
  const spmm_blocks<Device> moving = a.blocks(features, named);
  if (!moving.col_cut() || options.stationary == stationary::a || options.rows == row_exchange::cover)
    return whole;
  if (options.stationary == stationary::c) return named;
  if (!hands_on(shape, options.ranks_of_node)) options.ranks_of_node = 1;
  const auto received = [&](const spmm_blocks<Device>& blocks) {
    const spmm_cost<T, Device> cost(blocks, *a.tiles,
                                    blocks.row_ranks() > 1 && options.rows != row_exchange::full);
    return cost.received_under(cost.choose(options)).words;
  };
  const auto change = [&](const blocking& rows, layout from, layout to) {
    return redistribution<T, Device>::predicted(a.mesh, rows, features, from, to).words;
  };
  global_index words[] = {received(a.blocks(features, whole)),
                          received(moving) + change(a.cols, l, named) + change(a.rows, named, l)};
  a.mesh.world().all_reduce(words, reduction::max);
  return words[0] <= words[1] ? whole : named;
}

template <class T, layout A, class Device>
[[noreturn]] void throw_unfit(const sparse<T, A, Device>& a, layout x) {
  base::throw_error<shape_error>(
      {"A of ", a.shape(), " with ", a.layout(), " and X with ", x,
       " cannot be multiplied: the axes that partition A do not match those that partition X"});
}

}  // namespace algebra::detail

namespace algebra {

/// Whether an A of T can multiply an X of base::bfloat16 on this device.
template <class T, class Device>
inline constexpr bool multiplies_bfloat16 = std::is_same_v<T, float>&& local::multiplies_bfloat16<Device>;

/// The layout in which A multiplies X: X's own if A can multiply it in place, else A's operand layout. Throws
/// shape_error.
template <class T, layout A, class Device>
layout multiplied_layout(const sparse<T, A, Device>& a, layout x) {
  if (partition::multipliable(a.layout(), x)) return x;
  const layout named = a.operand_layout().value_or(x);
  if (partition::multipliable(a.layout(), named)) return named;
  detail::throw_unfit(a, x);
}

}  // namespace algebra

/// A planned Y = A X (m x f = m x k times k x f), X and Y in the same layout. For A^T pass transposed(A): if
/// A^T is stored, its blocks are multiplied, otherwise A's blocks are read transposed.
///
/// Collective over the mesh: constructor and call. What travels: see product_stages. If A can multiply X
/// neither in place nor, at lower cost, in whole rows where they are (see least_moved), X is redistributed to
/// the layout of A's policy, and Y back (free if the blocks are the same on this mesh). If only needed rows
/// are exchanged, a second copy of A's block is kept, with its remote tiles merged. Operands in far memory
/// are streamed through the queue's window in chunks of A's rows. The first call copies A's structure into
/// these chunks, once for each combination of far operands; it throws budget_error if the window cannot hold
/// one entry with its rows twice. On a reproducible mesh far operands are accessed in place, and sums are
/// sent as doubles, see exact_product. An X of base::bfloat16 for A and Y of float is sent in that format: as
/// many words, 2 bytes each. All sums are in float; on the host they have the same bits as if X were given as
/// floats. If such an X or its A is far, operands are accessed in place. Throws error for such an X on a
/// reproducible mesh, and shape_error naming shapes and layouts if A and X do not match.
template <class T, class Device, class Stored = T>
class spmm_plan {
  static_assert(std::is_same_v<Stored, T> ||
                    (std::is_same_v<T, float> && std::is_same_v<Stored, base::bfloat16>),
                "X of a product has the numbers of A, or is of bfloat16 for an A of float");
  static_assert(std::is_same_v<Stored, T> || algebra::multiplies_bfloat16<T, Device>,
                "products with an X of bfloat16 are for the host and CUDA devices");

 public:
  /// For X and Y with the layout and blocking of x.
  template <layout A, layout X>
  spmm_plan(const sparse<T, A, Device>& a, const dense<Stored, X, Device>& x, spmm_options options = {},
            std::source_location where = std::source_location::current())
      : spmm_plan(a, x.layout(), columns_of(a, x), options, where) {
    static_assert(algebra::detail::may_be_multipliable<A, X>,
                  "these layouts of A and X cannot be multiplied: the axes that partition A do not match "
                  "those that partition X");
  }
  /// For X and Y in layout `l`, with columns partitioned by `features`.
  template <layout A>
  spmm_plan(const sparse<T, A, Device>& a, layout l, const blocking& features, spmm_options options = {},
            std::source_location where = std::source_location::current())
      : spmm_plan(comm::call_site(where), algebra::detail::multiplied_matrix<T, Device>::of(a), l,
                  algebra::multiplied_layout(a, l), features, options) {}

  /// y = A x.
  template <layout X, layout Y>
  void operator()(const dense<Stored, X, Device>& x, dense<T, Y, Device>& y,
                  std::source_location where = std::source_location::current()) {
    const comm::call_site scope(where);
    require(x, y);
    if (!change_.travels()) return (*product_)(x.local(), y.local(), {});
    multiply(x.local(), {}, y.local());
  }
  /// y = alpha A x + beta y; beta = 0 overwrites y. See below.
  template <layout X, layout Y>
  void operator()(std::type_identity_t<T> alpha, const dense<Stored, X, Device>& x,
                  std::type_identity_t<T> beta, dense<T, Y, Device>& y,
                  std::source_location where = std::source_location::current()) {
    (*this)(alpha, x, y, {.beta = beta}, where);
  }
  /// y = drop(clamp(alpha A x + e.beta y + e.bias)), see epilogue; e.beta = 0 overwrites y. Same
  /// communication. The epilogue is fused into the last local product if no sums across ranks follow it and
  /// no vendor library computes it; otherwise it is a separate pass after the sums. With such sums, e.beta !=
  /// 0 needs one more block of y as scratch memory, allocated in the first such call. On devices alpha != 1
  /// uses the built-in kernel, not cuSPARSE.
  template <layout X, layout Y>
  void operator()(std::type_identity_t<T> alpha, const dense<Stored, X, Device>& x, dense<T, Y, Device>& y,
                  const std::type_identity_t<epilogue<T, Device>>& e,
                  std::source_location where = std::source_location::current()) {
    const comm::call_site scope(where);
    require(x, y);
    run(x.local(), algebra::detail::epilogue_of_block(alpha, e, y), y.local());
  }

  /// The bytes that (*this)(x, y) will move between near and far memory, from the closed forms of its
  /// operations (see far_rehearsal); empty without far memory. Plans for these operands and leaves y
  /// undefined. Collective over the mesh. What travels: the same as in a call.
  template <layout X, layout Y>
  far_forecast forecast(const dense<Stored, X, Device>& x, dense<T, Y, Device>& y,
                        std::source_location where = std::source_location::current()) {
    return memory::rehearsed(y.mesh().queue(), [&] { (*this)(x, y, where); });
  }
  /// How this rank multiplies, e.g. "A X in (row; col), Y stationary, needed rows of X are exchanged, sums
  /// are taken along depth: 120 words are received and 4800 multiplied". For chunks and far bytes see
  /// forecast(x, y).explain().
  std::string explain() const;

  /// What this rank receives in one call, in closed form.
  traffic predicted() const { return product_->facts().predicted + change_.predicted(); }
  /// The part of predicted() that comes from other nodes, if spmm_options::ranks_of_node is in effect.
  traffic predicted_between_nodes() const { return product_->facts().between_nodes; }
  /// The number of these words that are elements of X, of sizeof(Stored) bytes each.
  global_index predicted_words_of_x() const {
    return product_->facts().words_of_x + change_.predicted_inner().words;
  }
  /// The nonzeros this rank multiplies in one call, times the columns of X they are multiplied by.
  global_index multiplications() const { return product_->facts().multiplications; }
  /// The options in effect, with `automatic` resolved.
  spmm_options options() const { return product_->facts().options; }

 private:
  template <layout X, layout Y>
  void require(const dense<Stored, X, Device>& x, const dense<T, Y, Device>& y) const {
    require(x.layout(), x.row_blocking(), x.col_blocking(), y.layout(), y.row_blocking(), y.col_blocking());
    algebra::detail::require_distinct("spmm", x, y);
  }
  void require(layout x, const blocking& x_rows, const blocking& x_cols, layout y, const blocking& y_rows,
               const blocking& y_cols) const;
  /// y = the epilogue e of A x, on this rank's blocks.
  void run(matrix_view<const Stored> x, local::spmm_epilogue<T> e, matrix_view<T> y);
  /// y = A x with the part of the epilogue that can be fused into the multiplying pass.
  void multiply(matrix_view<const Stored> x, const local::spmm_epilogue<T>& e, matrix_view<T> y);
  /// The column blocking of X. Throws unless A can multiply X.
  template <layout A, layout X>
  static const blocking& columns_of(const sparse<T, A, Device>& a, const dense<Stored, X, Device>& x) {
    if (x.shape().rows != a.shape().cols)
      base::throw_error<shape_error>({"spmm: A of ", a.shape(), " cannot multiply X of ", x.shape()});
    if (!(x.mesh().shape() == a.mesh().shape()))
      base::throw_error<shape_error>({"spmm: A of ", a.shape(), " is on mesh ", a.mesh().shape(), ", X of ",
                                      x.shape(), " on mesh ", x.mesh().shape()});
    if (!(x.row_blocking() == a.col_blocking()))
      base::throw_error<shape_error>({"spmm: the rows of X of ", x.shape(),
                                      " are not in the blocks of the columns of A of ", a.shape(),
                                      "; give both the same blocking"});
    return x.col_blocking();
  }
  spmm_plan(const comm::call_site&, const algebra::detail::multiplied_matrix<T, Device>& a, layout l,
            layout inner, const blocking& features, const spmm_options& options);

  device_queue<Device> queue_;
  layout layout_, inner_;
  blocking rows_, cols_, features_;
  std::unique_ptr<algebra::detail::product<T, Stored>> product_;
  transfer::layout_change<T, Device, Stored> change_;
  std::vector<std::vector<interval>> rows_sent_;  // of Y, in each part on its way to its layout
  std::optional<dense<Stored, dynamic_layout, Device>> x_;
  std::optional<dense<T, dynamic_layout, Device>> y_;
  buffer<T, Device> scratch_;  // a block of y, to accumulate into it
};

template <class T, class Device, class Stored>
spmm_plan<T, Device, Stored>::spmm_plan(const comm::call_site&,
                                        const algebra::detail::multiplied_matrix<T, Device>& a, layout l,
                                        layout inner, const blocking& features, const spmm_options& options)
    : queue_(a.mesh.queue()),
      layout_(l),
      inner_(algebra::detail::least_moved(a, l, inner, features, options)),
      rows_(a.rows),
      cols_(a.cols),
      features_(features),
      product_(algebra::detail::make_product<Stored>(a, features, inner_, options)),
      change_(a.mesh, a.cols, a.rows, features, l, inner_,
              algebra::detail::parts_of_result<T>(a.mesh, a.rows.size(), features.size())) {
  if (!change_.travels()) return;
  x_.emplace(a.mesh, inner_, a.cols, features);
  y_.emplace(a.mesh, inner_, a.rows, features);
  if (change_.parts() == 1) return;
  rows_sent_ = change_.rows_of_parts();
  product_->plan_chunks(rows_sent_);
}

template <class T, class Device, class Stored>
void spmm_plan<T, Device, Stored>::require(layout x, const blocking& x_rows, const blocking& x_cols, layout y,
                                           const blocking& y_rows, const blocking& y_cols) const {
  algebra::detail::require_operands(rows_, cols_, features_, x_rows, x_cols, y_rows, y_cols);
  if (x != layout_ || y != layout_)
    base::throw_error<shape_error>(
        {"spmm planned for X and Y with ", layout_, " was given X with ", x, " and Y with ", y});
}

template <class T, class Device, class Stored>
void spmm_plan<T, Device, Stored>::run(matrix_view<const Stored> x, local::spmm_epilogue<T> e,
                                       matrix_view<T> y) {
  const algebra::detail::product_facts facts = product_->facts();
  if (!change_.travels() && facts.fuses_epilogue) return multiply(x, e, y);
  const local::spmm_epilogue<T> first{.alpha = e.alpha,
                                      .beta = !change_.travels() && facts.supports_beta ? e.beta : T(0)};
  e.alpha = 1;
  if (first.beta == e.beta) {
    multiply(x, first, y);
    e.beta = 0;
    if (e.has_activation()) algebra::detail::finish<T>(queue_, y, e, y);
    return;
  }
  scratch_.grow(queue_, static_cast<std::size_t>(y.rows) * static_cast<std::size_t>(y.cols));
  const matrix_view<T> sums{scratch_.data(), y.rows, y.cols, y.cols};
  multiply(x, first, sums);
  algebra::detail::finish<T>(queue_, sums, e, y);
}

template <class T, class Device, class Stored>
void spmm_plan<T, Device, Stored>::multiply(matrix_view<const Stored> x, const local::spmm_epilogue<T>& e,
                                            matrix_view<T> y) {
  if (!change_.travels()) return (*product_)(x, y, e);
  change_.to_inner(x, x_->local());          // (k, f), in the operand layout of A
  const matrix_view<T> inner = y_->local();  // (m, f)
  if (change_.parts() == 1) {
    (*product_)(x_->local(), inner, e);
    return change_.to_outer(inner, y);
  }
  product_->in_chunks(x_->local(), inner, e, {rows_sent_, [&](std::size_t j) { change_.send(j, inner, y); }});
  change_.finish(inner, y);
}

template <class T, class Device, class Stored>
std::string spmm_plan<T, Device, Stored>::explain() const {
  const spmm_options how = options();
  const axis_set summed = product_->facts().summed;
  return base::sentence_of(
      {"A X with ", inner_, change_.travels() ? ", where X comes and Y goes" : "", ", ",
       how.stationary == stationary::a ? "A stationary, " : "Y stationary, ",
       algebra::detail::what_travels(how.rows, summed.contains(axis::row)), " are exchanged",
       how.encoding == local::row_encoding::exact ? ""
                                                  : base::sentence_of({" in ", local::name_of(how.encoding)}),
       how.ranks_of_node > 1 ? ", once for each node" : "",
       summed.empty() ? "" : ", sums are taken along " + partition::name_of(summed), ": ", predicted().words,
       " words are received and ", multiplications(), " multiplied",
       product_->facts().reorders ? ", rows of A in another order" : ""});
}

/// Y = A X (m x f), planned and run once. Collective over the mesh. Communication and exceptions: see
/// spmm_plan.
template <class T, layout A, class Stored, layout X, class Device>
dense<T, X, Device> spmm(const sparse<T, A, Device>& a, const dense<Stored, X, Device>& x,
                         spmm_options options = {},
                         std::source_location where = std::source_location::current()) {
  spmm_plan multiply(a, x, options, where);
  dense<T, X, Device> y(a.mesh(), x.layout(), a.row_blocking(), x.col_blocking());
  multiply(x, y, where);
  return y;
}
/// Y = alpha A X + beta Y (m x f), planned and run once; beta = 0 overwrites Y. Collective over the mesh.
/// Communication and exceptions: see spmm_plan.
template <class T, layout A, class Stored, layout X, layout Y, class Device>
void spmm(std::type_identity_t<T> alpha, const sparse<T, A, Device>& a, const dense<Stored, X, Device>& x,
          std::type_identity_t<T> beta, dense<T, Y, Device>& y, spmm_options options = {},
          std::source_location where = std::source_location::current()) {
  spmm_plan(a, x, options, where)(alpha, x, beta, y, where);
}

}  // namespace partita

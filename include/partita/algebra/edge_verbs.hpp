// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Element-wise functions, products with replicated weights and sums of edge matrices (entries x k, one row
/// per entry of the pattern, in tile order), under every policy. Sums count each entry of the pattern once,
/// even if several ranks hold its tile; edge matrices then have all k columns.

#include <cmath>
#include <optional>

#include "partita/algebra/dropout.hpp"
#include "partita/algebra/edge_matrix.hpp"
#include "partita/algebra/gemm_operand.hpp"
#include "partita/algebra/reproducible_verbs.hpp"
#include "partita/local/chunked.hpp"
#include "partita/local/chunked_edges.hpp"
#include "partita/local/chunked_gemm.hpp"
#include "partita/local/chunked_sums.hpp"
#include "partita/local/row_products.hpp"

namespace partita {

namespace algebra::detail {

/// Throws shape_error unless the matrices have the same pattern.
template <class A, class B>
void require_same_edges(const char* what, const A& a, const B& b) {
  if (a.pattern().local() == b.pattern().local()) return;
  base::throw_error<shape_error>({what, ": edge matrices over patterns of ", a.pattern().shape(), " and ",
                                  b.pattern().shape(), "; they must share one pattern"});
}
/// The same, and also unless they hold the same columns.
template <class A, class B>
void require_same_values(const char* what, const A& a, const B& b) {
  require_same_edges(what, a, b);
  if (a.heads() == b.heads() && a.first_head() == b.first_head()) return;
  base::throw_error<shape_error>({what, ": edge matrices of ", a.heads(), " and ", b.heads(),
                                  " columns, from column ", a.first_head(), " and ", b.first_head()});
}
/// Throws shape_error unless y has the columns of E W, where W is `weight`.
template <class E, class Y>
void require_edge_product(const char* what, const E& e, matrix_shape weight, const Y& y) {
  require_same_edges(what, e, y);
  if (e.first_head() == 0 && y.first_head() == 0 && e.heads() == weight.rows && y.heads() == weight.cols)
    return;
  base::throw_error<shape_error>({what, ": an edge matrix of ", e.heads(), " columns times ", weight,
                                  " does not fit one of ", y.heads(), " columns"});
}

/// The axes along which ranks hold different entries of the pattern.
template <class T, class Device>
axis_set entry_axes(const edge_matrix<T, Device>& e) {
  return e.pattern().layout().used();
}

/// Whether this rank, of those that hold its entries, is the one that counts them.
template <class T, class Device>
bool counts_entries(const edge_matrix<T, Device>& e) {
  const auto& m = e.mesh();
  return partition::rank_in_group(m.shape(), partition::every_axis - entry_axes(e), m.at()) == 0;
}

/// visit(views of runs of e's and more's entries), where each run is short enough for local indices.
template <class Visit, class E, class... More>
void for_entry_rows(Visit visit, E& e, More&... more) {
  const auto widest = static_cast<std::size_t>(std::max({e.heads(), more.heads()..., local_index{1}}));
  const std::size_t entries = e.pattern().local()->nonzeros;
  const auto rows = [](auto& m, std::size_t first, local_index count) {
    const auto k = static_cast<std::size_t>(m.heads());
    return matrix_view<std::remove_pointer_t<decltype(m.values().data())>>{m.values().data() + first * k,
                                                                           count, m.heads(), m.heads()};
  };
  local::for_runs(entries, std::max<std::size_t>(e.mesh().tile_entries() / widest, 1),
                  [&](std::size_t first, local_index count) {
                    visit(rows(e, first, count), rows(more, first, count)...);
                  });
}

/// The number of the pattern's entries. Collective over the ranks that own different entries.
template <class T, class Device>
global_index all_entries(const edge_matrix<T, Device>& e) {
  return e.mesh().control(entry_axes(e)).all_reduce(static_cast<global_index>(e.pattern().local()->nonzeros));
}
/// `all`: see all_entries.
template <class T, class Device>
addends<T, Device> addends_of(const edge_matrix<T, Device>& e, global_index all) {
  const auto entries = base::to_local(e.pattern().local()->nonzeros, "the entries of a rank's tiles");
  const interval columns{0, e.heads()};
  return {
      e.mesh(), entry_axes(e), {e.values().data(), entries, e.heads(), e.heads()}, columns, {all, e.heads()}};
}

/// Dropout of the value of an entry in a part.
template <class T>
struct dropped_edge_value {
  base::dropped<T> keep;
  global_index first_row, first_column;
  local_index columns;
  const local_index* global_columns = nullptr;  ///< of the entries' columns, if they are renumbered
  constexpr T operator()(local_index v, local_index u, local_index h, T value) const {
    if (global_columns != nullptr) u = global_columns[u];
    return keep(first_row + v, keep.vertex(first_column + u) * columns + h, value);
  }
};

/// The sums of the columns of this rank's entries.
template <class T, class Device>
void sum_columns_here(const edge_matrix<T, Device>& e, dense<T, replicated, Device>& sums) {
  const auto& q = e.mesh().queue();
  if (e.values().empty()) return fill(sums, T(0));
  std::optional<dense<T, replicated, Device>> of_run;
  for_entry_rows(
      [&](auto rows) {
        const bool first = rows.data == e.values().data();
        if (!first && !of_run) of_run.emplace(e.mesh(), sums.shape());
        local::chunked::column_sums(q, rows, first ? sums.local().data : of_run->local().data);
        if (!first) zip(sums, *of_run, sums, std::plus<>{});
      },
      e);
}

/// dw = X^T G, over this rank's entries.
template <class T, class Device>
void multiply_inner_here(const edge_matrix<T, Device>& x, const edge_matrix<T, Device>& g,
                         dense<T, replicated, Device>& dw) {
  fill(dw, T(0));
  for_entry_rows(
      [&](auto rows, auto gradients) {
        local::chunked::gemm(x.mesh().queue(), true, false, T(1), rows, gradients, T(1), dw.local());
      },
      x, g);
}

template <class T, class Device>
void require_column_sums(const edge_matrix<T, Device>& e, const dense<T, replicated, Device>& sums) {
  if (sums.shape() != matrix_shape{1, e.heads()})
    base::throw_error<shape_error>(
        {"column sums of ", e.heads(), " columns of edges cannot be stored in ", sums.shape()});
}

}  // namespace algebra::detail

/// y(e, h) = value. Local; no communication.
template <class T, class Device>
void fill(edge_matrix<T, Device>& y, std::type_identity_t<T> value) {
  algebra::detail::for_entry_rows([&](auto rows) { local::chunked::fill(y.mesh().queue(), value, rows); }, y);
}

/// y = x. Local; no communication. Throws shape_error unless both have the same pattern and columns.
template <class T, class Device>
void copy(const edge_matrix<T, Device>& x, edge_matrix<T, Device>& y) {
  algebra::detail::require_same_values("copy", x, y);
  algebra::detail::for_entry_rows(
      [&](auto from, auto to) { local::chunked::copy(x.mesh().queue(), from, to); }, x, y);
}

/// y(e, h) += bias(0, h); bias is 1 x k on every rank. Local; no communication. Throws shape_error.
template <class T, class Device>
void add_row(const dense<T, replicated, Device>& bias, edge_matrix<T, Device>& y) {
  if (bias.shape() != matrix_shape{1, y.heads()})
    base::throw_error<shape_error>(
        {"a row of ", bias.shape(), " cannot be added to ", y.heads(), " columns of edges"});
  algebra::detail::for_entry_rows(
      [&](auto rows) { local::chunked::add_row(y.mesh().queue(), bias.local().data, rows); }, y);
}

namespace algebra {

/// first = the first entries of e, and e += first there; the pattern of `first` is the first rows of e's
/// pattern. On a mesh of one rank; local.
template <class T, class Device>
void copy_first(const edge_matrix<T, Device>& e, edge_matrix<T, Device>& first) {
  detail::for_entry_rows([&](auto to, auto from) { local::chunked::copy(e.mesh().queue(), from, to); }, first,
                         e);
}
template <class T, class Device>
void add_first(const edge_matrix<T, Device>& first, edge_matrix<T, Device>& e) {
  detail::for_entry_rows(
      [&](auto from, auto to) { local::chunked::zip(e.mesh().queue(), std::plus<>{}, to, from, to); }, first,
      e);
}

/// Dropout of edge matrices over one pattern; planned in the first call.
template <class T, class Device>
class edge_dropout {
 public:
  /// y(v, u, h) = x(v, u, h) / (1 - p), or 0 with probability p, for all k columns; y may alias x. Choices
  /// depend on the edge u -> v and the column, as in edge_scores, and not on the number of ranks. Local; no
  /// communication. Throws shape_error unless both have the same pattern and columns.
  void operator()(const edge_matrix<T, Device>& x, edge_matrix<T, Device>& y, const dropout_mask& mask) {
    detail::require_same_values("dropout", x, y);
    const auto& a = x.pattern();
    const auto& q = x.mesh().queue();
    std::size_t number = 0;
    x.for_parts([&](std::size_t t, const local::csr_slice<T>& part) {
      local::csr_view<T> entries = part.entries;
      entries.columns = a.local()->columns_of(part);
      entries.cols = static_cast<local_index>(a.tile_columns(t).size());
      const global_index first_row = a.row_range().begin + part.first_row;
      passes_(
          q, number++, entries, {.global_columns = true},
          [&](const local::edge_chunk<T>& c, const T* from, T* to) {
            const detail::dropped_edge_value<T> f{mask.function<T>(), first_row + c.first_row,
                                                  a.tile_columns(t).begin, x.heads(), c.global_columns};
            edge_apply(q, c.pattern, x.heads(), f, from, to);
          },
          local::reads_entries(part.values_in(x.values().data(), x.heads()), x.heads()),
          local::writes_entries(part.values_in(y.values().data(), y.heads()), y.heads()));
    });
  }

 private:
  local::entry_passes<Device> passes_;
};

}  // namespace algebra

/// See algebra::edge_dropout.
template <class T, class Device>
void dropout(const edge_matrix<T, Device>& x, edge_matrix<T, Device>& y, const dropout_mask& mask) {
  algebra::edge_dropout<T, Device>()(x, y, mask);
}

/// y(e, h) = f(x(e, h)); y may alias x. Local; no communication. Throws shape_error unless both have the same
/// pattern and columns.
template <class T, class Device, class Function>
void transform(const edge_matrix<T, Device>& x, edge_matrix<T, Device>& y, Function f) {
  algebra::detail::require_same_values("transform", x, y);
  algebra::detail::for_entry_rows(
      [&](auto from, auto to) { local::chunked::transform(x.mesh().queue(), f, from, to); }, x, y);
}

/// y(e, h) = f(a(e, h), b(e, h)); y may alias a and b. Local; no communication. Throws as transform does.
template <class T, class Device, class Function>
void zip(const edge_matrix<T, Device>& a, const edge_matrix<T, Device>& b, edge_matrix<T, Device>& y,
         Function f) {
  algebra::detail::require_same_values("zip", a, b);
  algebra::detail::require_same_values("zip", a, y);
  algebra::detail::for_entry_rows(
      [&](auto left, auto right, auto to) { local::chunked::zip(a.mesh().queue(), f, left, right, to); }, a,
      b, y);
}

/// Y = X W + beta Y, see epilogue of a row product (entries x h = entries x k times k x h), with `bias` (1 x
/// h) added and clamped at 0 if `relu`. Local; no communication. Throws shape_error.
template <class T, class Device>
void gemm(const edge_matrix<T, Device>& x, const dense<T, replicated, Device>& w, edge_matrix<T, Device>& y,
          const dense<T, replicated, Device>* bias = nullptr, bool relu = false,
          std::type_identity_t<T> beta = 0) {
  algebra::detail::require_edge_product("gemm", x, w.shape(), y);
  if (bias != nullptr && bias->shape() != matrix_shape{1, w.shape().cols})
    base::throw_error<shape_error>({"gemm: a bias of ", bias->shape(), " for rows of ", w.shape().cols});
  local::spmm_epilogue<T> end{.beta = beta, .relu = relu};
  if (bias != nullptr) end.bias = bias->local().data;
  algebra::detail::for_entry_rows(
      [&](auto from, auto to) { local::row_product<T>(x.mesh().queue(), from, w.local(), end, to); }, x, y);
}
/// Y = G W^T + beta Y (entries x k = entries x h times h x k), the adjoint in X. Local; no communication.
/// Throws shape_error.
template <class T, class Device>
void gemm(const edge_matrix<T, Device>& g, algebra::transposed_dense<T, replicated, Device> w,
          edge_matrix<T, Device>& y, std::type_identity_t<T> beta = 0) {
  algebra::detail::require_edge_product("gemm", g, {w.matrix.shape().cols, w.matrix.shape().rows}, y);
  algebra::detail::for_entry_rows(
      [&](auto from, auto to) {
        local::transposed_row_product<T>(g.mesh().queue(), from, w.matrix.local(), beta, to);
      },
      g, y);
}

/// The sum of all values of all ranks' entries, on every rank. Collective over the mesh. What travels: an
/// all-reduce of one element over the ranks that own different entries.
template <class T, class Device>
T sum(const edge_matrix<T, Device>& e, std::source_location where = std::source_location::current()) {
  const comm::call_site scope(where);
  if (const auto* const verbs = algebra::reproducible_verbs_of<T>(e.mesh()))
    return static_cast<T>(verbs->sum(algebra::detail::addends_of(e, algebra::detail::all_entries(e))));
  T total[] = {0};
  algebra::detail::for_entry_rows(
      [&](auto rows) { total[0] += static_cast<T>(local::chunked::sum(e.mesh().queue(), rows)); }, e);
  if (const auto& group = e.mesh().control(algebra::detail::entry_axes(e)); group.size() > 1)
    group.all_reduce(total);
  return total[0];
}

/// sums(0, h) = the sum of e(., h) over all ranks' entries, 1 x k on every rank: the gradient of a bias.
/// Collective over the mesh. What travels: an all-reduce of k elements over the ranks that own different
/// entries. Throws shape_error.
template <class T, class Device>
void column_sums(const edge_matrix<T, Device>& e, dense<T, replicated, Device>& sums,
                 std::source_location where = std::source_location::current()) {
  const comm::call_site scope(where);
  algebra::detail::require_column_sums(e, sums);
  if (const auto* const verbs = algebra::reproducible_verbs_of<T>(e.mesh()))
    return verbs->column_sums(algebra::detail::addends_of(e, algebra::detail::all_entries(e)), sums.values());
  algebra::detail::sum_columns_here(e, sums);
  e.mesh().sum_along(algebra::detail::entry_axes(e), sums.values());
}

/// The sum of x(e, h) y(e, h) over all ranks' entries, on every rank. Collective over the mesh. What travels:
/// an all-reduce of one element over the ranks that own different entries. Throws shape_error.
template <class T, class Device>
T dot(const edge_matrix<T, Device>& x, const edge_matrix<T, Device>& y,
      std::source_location where = std::source_location::current()) {
  const comm::call_site scope(where);
  algebra::detail::require_same_values("dot", x, y);
  T total[] = {0};
  algebra::detail::for_entry_rows(
      [&](auto left, auto right) { total[0] += local::chunked::dot(x.mesh().queue(), left, right); }, x, y);
  if (const auto& group = x.mesh().control(algebra::detail::entry_axes(x)); group.size() > 1)
    group.all_reduce(total);
  return total[0];
}

/// sqrt(dot(e, e)), without scaling. Collective over the mesh, as dot.
template <class T, class Device>
T norm(const edge_matrix<T, Device>& e, std::source_location where = std::source_location::current()) {
  return std::sqrt(dot(e, e, where));
}

namespace algebra {

/// f(x(e, h), y(e, h), more(e, h) ...) updates the values of y and more, in one pass; none of them may alias
/// another. Local; no communication. Throws shape_error unless all have the same pattern and columns.
template <class T, class Device, class Function, class... More>
void update(const edge_matrix<T, Device>& x, Function f, edge_matrix<T, Device>& y, More&... more) {
  detail::require_same_values("update", x, y);
  (detail::require_same_values("update", x, more), ...);
  detail::for_entry_rows(
      [&](auto from, auto... to) { local::chunked::update(x.mesh().queue(), f, from, to...); }, x, y,
      more...);
}

/// dW = X^T G (k x h = k x entries times entries x h), the adjoint of gemm in W, on every rank.
///
/// Collective over the mesh. What travels: an all-reduce of k h elements over the ranks that own different
/// entries; on a reproducible mesh predicted_part_of_edges. Throws shape_error.
template <class T, class Device>
void weight_gradient(const edge_matrix<T, Device>& x, const edge_matrix<T, Device>& g,
                     dense<T, replicated, Device>& dw,
                     std::source_location where = std::source_location::current()) {
  const comm::call_site scope(where);
  detail::require_edge_product("weight_gradient", x, dw.shape(), g);
  if (const auto* const verbs = reproducible_verbs_of<T>(x.mesh())) {
    const global_index all = detail::all_entries(x);
    return verbs->inner(detail::addends_of(x, all), detail::addends_of(g, all), dw);
  }
  detail::multiply_inner_here(x, g, dw);
  x.mesh().sum_along(detail::entry_axes(x), dw.values());
}

/// This rank's contributions to column_sums and weight_gradient: 0 on all but one of the ranks with the same
/// entries. Local; on a reproducible mesh the whole sums, see sum_parts. Throws as these do.
template <class T, class Device>
void column_sums_part(const edge_matrix<T, Device>& e, dense<T, replicated, Device>& sums) {
  if (reproducible_verbs_of<T>(e.mesh()) != nullptr) return column_sums(e, sums);
  detail::require_column_sums(e, sums);
  if (!detail::counts_entries(e)) return fill(sums, T(0));
  detail::sum_columns_here(e, sums);
}
template <class T, class Device>
void weight_gradient_part(const edge_matrix<T, Device>& x, const edge_matrix<T, Device>& g,
                          dense<T, replicated, Device>& dw) {
  if (reproducible_verbs_of<T>(x.mesh()) != nullptr) return weight_gradient(x, g, dw);
  detail::require_edge_product("weight_gradient_part", x, dw.shape(), g);
  if (!detail::counts_entries(x)) return fill(dw, T(0));
  detail::multiply_inner_here(x, g, dw);
}
/// What this rank receives in either of these for this number of elements.
template <class T, class Device>
traffic predicted_part_of_edges(const sparse<T, dynamic_layout, Device>& pattern, global_index elements) {
  const auto& m = pattern.mesh();
  const auto* const verbs = reproducible_verbs_of<T>(m);
  if (verbs == nullptr) return {};
  comm::collective entries;
  entries.kind = operation::all_reduce;
  entries.count = 1;
  const axis_set axes = pattern.layout().used();
  return verbs->predicted_sum(m, axes, elements) +
         received(entries, partition::rank_in_group(m.shape(), axes, m.at()), m.shape().size(axes));
}

}  // namespace algebra

}  // namespace partita

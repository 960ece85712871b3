// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Row reductions of an edge matrix: sums, maxima, the softmax and its gradient.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "partita/algebra/edge_matrix.hpp"
#include "partita/algebra/reproducible_verbs.hpp"
#include "partita/base/function.hpp"
#include "partita/local/chunked.hpp"
#include "partita/local/chunked_edges.hpp"
#include "partita/local/pass.hpp"

namespace partita {

namespace algebra::detail {

/// f(value, rows(i, h)) for the value of head h of an entry in row i.
template <class Function, class T>
struct with_value_of_row {
  Function f;
  matrix_view<const T> rows;

  constexpr T operator()(local_index i, local_index, local_index h, T value) const {
    return f(value, rows(i, h));
  }
};

/// exp(x - y).
struct exponential_of_difference {
  template <class T>
  constexpr T operator()(T x, T y) const {
    return std::exp(x - y);
  }
};

/// out = f(left, right) for all values of e, in runs short enough for local indices.
template <class Function, class T, class Device>
void zip_values(const edge_matrix<T, Device>& e, Function f, const T* left, const T* right, T* out) {
  const std::size_t most = e.mesh().tile_entries();
  for (std::size_t at = 0; at < e.values().size(); at += most) {
    const auto size = static_cast<local_index>(std::min(most, e.values().size() - at));
    local::chunked::zip(e.mesh().queue(), f, matrix_view<const T>{left + at, 1, size, size},
                        matrix_view<const T>{right + at, 1, size, size},
                        matrix_view<T>{out + at, 1, size, size});
  }
}

/// out = f(in, value of the entry's row in `rows`) for every entry of e's pattern and each head. Local; no
/// communication.
template <class Function, class T, class Device>
void apply_rows(local::entry_passes<Device>& passes, const edge_matrix<T, Device>& e, Function f,
                matrix_view<T> rows, const T* in, T* out) {
  const auto& q = e.mesh().queue();
  const local_index heads = e.heads();
  std::size_t number = 0;
  e.for_parts([&](std::size_t, const local::csr_slice<T>& part) {
    passes(
        q, number++, part.entries, {},
        [&](const local::edge_chunk<T>& c, matrix_view<const T> of_rows, const T* from, T* to) {
          edge_apply(q, c.pattern, heads, with_value_of_row<Function, T>{f, of_rows}, from, to);
        },
        local::reads(part.rows_of(rows)), local::reads_entries(part.values_in(in, heads), heads),
        local::writes_entries(part.values_in(out, heads), heads));
  });
}

/// fold_rows, with passes planned once for several calls.
template <class T, class Device>
void fold_rows(local::entry_passes<Device>& passes, const edge_matrix<T, Device>& e, matrix_view<T> rows,
               reduction how) {
  if (const auto* const verbs = reproducible_verbs_of<T>(e.mesh()); verbs != nullptr && how == reduction::sum)
    return verbs->entry_row_sums(e, rows);
  const auto fold = [&](auto f) {
    std::size_t number = 0;
    e.for_parts([&](std::size_t, const local::csr_slice<T>& part) {
      local::chunked::edge_row_fold(e.mesh().queue(), passes, number++, part.entries, e.heads(), f,
                                    part.values_in(e.values().data(), e.heads()), part.rows_of(rows));
    });
  };
  if (how == reduction::max)
    fold(base::larger_of{});
  else
    fold(std::plus<>{});
  const std::size_t size = static_cast<std::size_t>(rows.rows) * static_cast<std::size_t>(rows.cols);
  if (const auto& group = e.mesh().along(e.pattern().layout().cols); group.size() > 1)
    group.all_reduce(std::span<T>(rows.data, size), how);
}

}  // namespace algebra::detail

/// rows(v, h) = f over e(v, u, h) for the entries of row v on all ranks; `how` selects f, and rows
/// (rows of this rank x heads) must be initialised to its neutral element. Collective over the mesh. What
/// travels: an all-reduce over the ranks that share a row; nothing when A's columns are not partitioned.
template <class T, class Device>
void fold_rows(const edge_matrix<T, Device>& e, matrix_view<T> rows, reduction how) {
  local::entry_passes<Device> passes;
  algebra::detail::fold_rows(passes, e, rows, how);
}

namespace algebra {

/// A planned softmax of the entries of every row of a pattern, for each of `heads` columns, and its gradient.
///
/// Collective over the mesh: forward and backward. What travels: all-reduces of one number per row and head
/// over the ranks that share the row, two in forward and one in backward; nothing if A's columns are not
/// partitioned. On a reproducible mesh sums are sent as doubles, twice for double, after an all-reduce of the
/// largest term. Throws shape_error for another pattern or other columns.
template <class T, class Device>
class edge_softmax_plan {
 public:
  using edges = edge_matrix<T, Device>;

  edge_softmax_plan(const sparse<T, dynamic_layout, Device>& pattern, local_index heads)
      : pattern_(pattern.stored_for("edge_softmax_plan")),
        heads_(heads),
        top_(pattern.mesh().queue(), rows() * static_cast<std::size_t>(heads)),
        sum_(pattern.mesh().queue(), rows() * static_cast<std::size_t>(heads)) {}

  /// e(v, u) = exp(e(v, u)) / sum over u' of exp(e(v, u')), over the entries of row v on all ranks; in place.
  void forward(edges& e) {
    require(e);
    const auto& q = e.mesh().queue();
    const matrix_view<T> top = of_rows(top_), sum = of_rows(sum_);
    local::chunked::fill(q, std::numeric_limits<T>::lowest(), top);
    local::chunked::fill(q, T(0), sum);
    T* const values = e.values().data();
    detail::fold_rows(passes_, e, top, reduction::max);
    detail::apply_rows(passes_, e, detail::exponential_of_difference{}, top, values, values);
    detail::fold_rows(passes_, e, sum, reduction::sum);
    detail::apply_rows(passes_, e, std::divides<>{}, sum, values, values);
  }
  /// d(v, u) = alpha(v, u) (d(v, u) - sum over u' of alpha(v, u') d(v, u')), alpha the softmax; in place.
  void backward(const edges& alpha, edges& d) {
    require(alpha);
    require(d);
    const matrix_view<T> sum = of_rows(sum_);
    const T* const a = alpha.values().data();
    T* const values = d.values().data();
    products_.grow(d.mesh().queue(), d.values().size());
    detail::zip_values(d, std::multiplies<>{}, a, values, values);  // alpha d
    local::chunked::fill(d.mesh().queue(), T(0), sum);
    detail::fold_rows(passes_, d, sum, reduction::sum);
    detail::apply_rows(passes_, d, std::multiplies<>{}, sum, a, products_.data());
    detail::zip_values(d, std::minus<>{}, values, std::as_const(products_).data(), values);
  }

  /// What this rank receives in forward and in backward, in closed form.
  traffic predicted_forward() const { return predicted_fold() + predicted_backward(); }
  traffic predicted_backward() const {
    const auto* const verbs = reproducible_verbs_of<T>(pattern_.mesh());
    if (verbs == nullptr) return predicted_fold();
    return verbs->predicted_sum(pattern_.mesh(), pattern_.layout().cols,
                                static_cast<global_index>(rows()) * heads_);
  }

 private:
  traffic predicted_fold() const {
    const auto& m = pattern_.mesh();
    const axis_set axes = pattern_.layout().cols;
    comm::collective op;
    op.kind = operation::all_reduce;
    op.count = static_cast<global_index>(rows()) * heads_;
    return received(op, partition::rank_in_group(m.shape(), axes, m.at()), m.shape().size(axes));
  }
  std::size_t rows() const { return static_cast<std::size_t>(pattern_.local()->rows); }
  matrix_view<T> of_rows(buffer<T, Device>& b) const {
    return {b.data(), static_cast<local_index>(rows()), heads_, heads_};
  }
  void require(const edges& e) const {
    if (e.pattern().local() == pattern_.local() && e.heads() == heads_) return;
    base::throw_error<shape_error>({"a softmax of ", heads_, " columns over a pattern of ", pattern_.shape(),
                                    " was given ", e.heads(), " over one of ", e.pattern().shape()});
  }

  sparse<T, dynamic_layout, Device> pattern_;
  local_index heads_;
  buffer<T, Device> top_, sum_, products_;  ///< one per row; one per value
  local::entry_passes<Device> passes_;
};

}  // namespace algebra

/// e = the softmax over the entries of each row, for each head; in place: see edge_softmax_plan::forward.
template <class T, class Device>
void edge_softmax(edge_matrix<T, Device>& e) {
  algebra::edge_softmax_plan<T, Device>(e.pattern(), e.heads()).forward(e);
}
/// Turns d, the gradient with respect to the softmax alpha, into the gradient with respect to its input; in
/// place: see edge_softmax_plan::backward.
template <class T, class Device>
void edge_softmax_gradient(const edge_matrix<T, Device>& alpha, edge_matrix<T, Device>& d) {
  algebra::edge_softmax_plan<T, Device>(d.pattern(), d.heads()).backward(alpha, d);
}

}  // namespace partita

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Kernels on the entries of a pattern with what they do to their operands, by the kernels' names (see
/// pass.hpp). Rows whose entries are in one chunk have the bits that the kernel gives them; sums over the
/// entries of a column are sums of the chunks' sums, in their order.
///
/// `edges` and `number` as in entry_passes; a's values are not read.

#include <cmath>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "partita/base/function.hpp"
#include "partita/local/csr_inverse.hpp"
#include "partita/local/head_slice.hpp"
#include "partita/local/host/aggregate.hpp"
#include "partita/local/host/edge_products.hpp"
#include "partita/local/host/edges.hpp"
#include "partita/local/pass.hpp"

namespace partita::local::chunked {

namespace detail {

/// log(exp(a) + exp(b)).
struct log_of_sum {
  template <class T>
  constexpr T operator()(T a, T b) const {
    const T larger = a > b ? a : b, smaller = a > b ? b : a;
    return larger + std::log1p(std::exp(smaller - larger));
  }
};

/// Adds to numbers of entries; -1 stays.
struct later_entry {
  local_index by;
  constexpr local_index operator()(local_index e) const { return e < 0 ? e : e + by; }
};

/// The columns of entries in place of their numbers; -1 stays.
struct column_of_entry {
  const local_index* columns;
  const local_index* names;  ///< of the columns, if these are renumbered
  constexpr local_index operator()(local_index e) const {
    return e < 0 ? e : names == nullptr ? columns[e] : names[columns[e]];
  }
};

/// The sum of the gradients that row first_name + i has won, from those before it in its own place if `adds`.
template <class T>
struct sum_of_won {
  const local_index *offsets, *columns;
  matrix_view<const local_index> winners;
  matrix_view<const T> gradients;
  local_index first_name;
  bool adds;
  constexpr T operator()(local_index i, local_index j, T so_far) const {
    T sum = adds ? so_far : T(0);
    for (local_index e = offsets[i]; e < offsets[i + 1]; ++e)
      if (winners(columns[e], j) == first_name + i) sum += gradients(columns[e], j);
    return sum;
  }
};

/// Whether a number wins against the largest so far: the first NaN does.
template <class T>
constexpr bool wins(T now, T so_far) {
  return !(now <= so_far) && so_far == so_far;
}
/// The winner of two pieces of a row, and its value.
template <class T>
struct winner_of_two {
  const T *earlier, *later;
  const local_index* entries;  ///< of the later one
  constexpr local_index operator()(local_index, local_index j, local_index e) const {
    return wins(later[j], earlier[j]) ? entries[j] : e;
  }
};
struct value_of_two {
  template <class T>
  constexpr T operator()(T earlier, T later) const {
    return wins(later, earlier) ? later : earlier;
  }
};

/// A block of one row in a buffer.
template <class T, class Device>
matrix_view<T> one_row(const device_queue<Device>& q, buffer<T, Device>& memory, local_index cols) {
  memory.grow(q, static_cast<std::size_t>(cols));
  return {memory.data(), 1, cols, cols};
}

}  // namespace detail

/// The kernel edge_log_sum; the pieces of a row are joined.
template <class T, class Device>
void edge_log_sum(const device_queue<Device>& q, entry_passes<Device>& edges, std::size_t number,
                  const csr_view<T>& a, local_index heads, scalar<T> slope, input_view<T> source,
                  input_view<T> target, matrix_view<T> log_sum, local_index all_heads = 0) {
  buffer<T, Device> memory;
  edges(
      q, number, a, {.what = "edge log sum"},
      [&](const edge_chunk<T>& c, matrix_view<const T> s, matrix_view<const T> t, matrix_view<T> out) {
        if (!c.splits_first_row) return edge_log_sum(q, c.pattern, heads, slope, s, t, out, all_heads);
        const matrix_view<T> piece = detail::one_row(q, memory, heads);
        edge_log_sum(q, c.pattern, heads, slope, s, t, piece, all_heads);
        zip(q, detail::log_of_sum{}, matrix_view<const T>(out), matrix_view<const T>(piece), out);
      },
      gathers(source), reads(target), writes(log_sum));
}

/// The kernel edge_softmax_gradient, but edges is consumed, and dtarget is always overwritten.
template <class T, class Device>
void edge_softmax_gradient(const device_queue<Device>& q, entry_passes<Device>& passes, std::size_t number,
                           const csr_view<T>& a, local_index heads, scalar<T> slope, input_view<T> source,
                           input_view<T> target, input_view<T> log_sum, input_view<T> row_dot, scalar<T> beta,
                           scalar<T>* edges, matrix_view<T> dsource, matrix_view<T> dtarget) {
  passes(
      q, number, a, {.inverse = true, .what = "edge softmax gradient"},
      [&](const edge_chunk<T>& c, matrix_view<const T> s, matrix_view<T> ds, matrix_view<const T> t,
          matrix_view<const T> sums, matrix_view<const T> dots, matrix_view<T> dt, T* g) {
        const T of_columns = c.beta_of_columns(beta), of_rows = c.beta_of_rows(T(0));
        const T both = of_columns != 0 || of_rows != 0 ? T(1) : T(0);
        if (both != of_columns) fill(q, T(0), ds);
        if (both != of_rows) fill(q, T(0), dt);
        const csr_inverse_view inverse = c.is_whole ? passes.inverse(q, number, a) : c.inverse;
        edge_softmax_gradient(q, c.pattern, inverse, heads, slope, s, t, sums, dots, both, g, ds, dt);
      },
      gathers(source), adds(dsource, beta), reads(target), reads(log_sum), reads(row_dot), writes(dtarget),
      consumes_entries(edges, heads));
}

/// The kernel edge_row_dot within a pass, for rows that are written; the sums of the pieces of a row are
/// added.
template <class T, class Device>
void edge_row_dot(const device_queue<Device>& q, const edge_chunk<T>& c, local_index heads,
                  const scalar<T>* u, const scalar<T>* v, matrix_view<T> out) {
  if (!c.splits_first_row) return edge_row_dot(q, c.pattern, heads, u, v, out);
  buffer<T, Device> memory;
  const matrix_view<T> piece = detail::one_row(q, memory, heads);
  edge_row_dot(q, c.pattern, heads, u, v, piece);
  zip(q, base::linear_combination<T>{1, 1}, matrix_view<const T>(out), matrix_view<const T>(piece), out);
}

/// Whether the kernels have the row sums of alpha d within the pass that needs them.
template <class T, class Device>
inline constexpr bool fuses_rows = requires(const device_queue<Device>& q, const csr_view<T>& a,
                                            csr_inverse_view inverse, matrix_view<const T> x, T* d,
                                            matrix_view<T> dx) {
  edge_softmax_gradient_of_rows(q, a, inverse, 1, T(0), x, x, x, T(0), d, dx, dx);
};

/// Whether that pass can change the gradients by a function first.
template <class T, class Device, class F>
inline constexpr bool changes_rows = requires(const device_queue<Device>& q, const csr_view<T>& a,
                                              csr_inverse_view inverse, matrix_view<const T> x, T* d,
                                              matrix_view<T> dx, F first) {
  edge_softmax_gradient_of_rows(q, a, inverse, 1, T(0), x, x, x, T(0), d, dx, dx, first);
};

/// What edge_softmax_gradient_of_rows works with: row_dots (rows of a x heads) and alpha (entries x heads)
/// may have any values.
template <class T>
struct row_gradient_memory {
  matrix_view<T> row_dots;
  T* alpha;
};

/// The kernel edge_softmax_gradient_of_rows, in which edges is consumed, and dtarget always overwritten.
/// If `changes`, before(first row, names of its columns) is a function for edge_apply that changes the values
/// of edges first. Where the device has no such kernel, or passes go in chunks, the
/// softmax and the rows' sums of alpha d are computed in one pass, what needs these in another.
template <class T, class Device, class Before>
void edge_softmax_gradient_of_rows(const device_queue<Device>& q, entry_passes<Device>& passes,
                                   std::size_t number, const csr_view<T>& a, local_index heads,
                                   scalar<T> slope, input_view<T> source, input_view<T> target,
                                   input_view<T> log_sum, scalar<T> beta, bool changes, const Before& before,
                                   scalar<T>* edges, matrix_view<T> dsource, matrix_view<T> dtarget,
                                   const std::type_identity_t<row_gradient_memory<T>>& memory) {
  if constexpr (fuses_rows<T, Device>)
    if (runs_whole(q))
      return passes(
          q, number, a, {.what = "edge softmax gradient of rows"},
          [&](const edge_chunk<T>&, matrix_view<const T>, matrix_view<const T>, matrix_view<T>, T*) {
            if (beta != T(0)) fill(q, T(0), dtarget);  // whose rows are in this part only
            const auto with = [&](const auto&... first) {
              edge_softmax_gradient_of_rows(q, a, passes.inverse(q, number, a), heads, slope, source, target,
                                            log_sum, beta, edges, dsource, dtarget, first...);
            };
            if (!changes) return with();
            const auto first = before(local_index{0}, static_cast<const local_index*>(nullptr));
            if constexpr (changes_rows<T, Device, decltype(first)>) {
              with(first);
            } else {
              edge_apply(q, a, heads, first, edges, edges);
              with();
            }
          },
          gathers(source), reads(target), adds(dsource, beta), consumes_entries(edges, heads));
  passes(
      q, number, a, {.global_columns = changes, .what = "edge softmax of rows"},
      [&](const edge_chunk<T>& c, matrix_view<const T> s, matrix_view<const T> t, matrix_view<const T> sums,
          matrix_view<T> dots, T* d, T* alpha) {
        if (changes) edge_apply(q, c.pattern, heads, before(c.first_row, c.global_columns), d, d);
        edge_softmax(q, c.pattern, heads, slope, s, t, sums, alpha);
        edge_row_dot(q, c, heads, alpha, d, dots);
      },
      gathers(source), reads(target), reads(log_sum), writes(memory.row_dots),
      entry_operand(edges, heads, true, changes), scratch_entries(memory.alpha, heads));
  edge_softmax_gradient(q, passes, number, a, heads, slope, source, target, log_sum, memory.row_dots, beta,
                        edges, dsource, dtarget);
}

/// The kernel edge_row_fold.
template <class F, class T, class Device>
void edge_row_fold(const device_queue<Device>& q, entry_passes<Device>& edges, std::size_t number,
                   const csr_view<T>& a, local_index heads, F f, const scalar<T>* values,
                   matrix_view<T> out) {
  edges(
      q, number, a, {.what = "edge row fold"},
      [&](const edge_chunk<T>& c, const T* from, matrix_view<T> to) {
        edge_row_fold(q, c.pattern, heads, f, from, to);
      },
      reads_entries(values, heads), updates(out));
}

/// The kernel edge_multiply.
template <class T, class Device>
void edge_multiply(const device_queue<Device>& q, entry_passes<Device>& edges, std::size_t number,
                   const csr_view<T>& a, head_slice s, const scalar<T>* values, input_view<T> x,
                   scalar<T> beta, matrix_view<T> y) {
  edges(
      q, number, a, {.what = "edge product"},
      [&](const edge_chunk<T>& c, const T* of_entries, matrix_view<const T> of_columns, matrix_view<T> to) {
        edge_multiply(q, c.pattern, s, of_entries, of_columns, c.beta_of_rows(beta), to);
      },
      reads_entries(values, s.heads), gathers(x), result(y, beta));
}

/// The kernel edge_multiply_transposed, for a in place of its inverse.
template <class T, class Device>
void edge_multiply_transposed(const device_queue<Device>& q, entry_passes<Device>& edges, std::size_t number,
                              const csr_view<T>& a, head_slice s, const scalar<T>* values, input_view<T> y,
                              scalar<T> beta, matrix_view<T> x) {
  edges(
      q, number, a, {.inverse = true, .what = "transposed edge product"},
      [&](const edge_chunk<T>& c, const T* of_entries, matrix_view<const T> of_rows, matrix_view<T> to) {
        const csr_inverse_view inverse = c.is_whole ? edges.inverse(q, number, a) : c.inverse;
        edge_multiply_transposed(q, inverse, s, of_entries, of_rows, c.beta_of_columns(beta), to);
      },
      reads_entries(values, s.heads), reads(y), adds(x, beta));
}

/// The kernel edge_dot.
template <class T, class Device>
void edge_dot(const device_queue<Device>& q, entry_passes<Device>& edges, std::size_t number,
              const csr_view<T>& a, head_slice s, input_view<T> y, input_view<T> x, scalar<T> beta,
              T* values) {
  edges(
      q, number, a, {.what = "edge dot"},
      [&](const edge_chunk<T>& c, matrix_view<const T> of_rows, matrix_view<const T> of_columns, T* to) {
        edge_dot(q, c.pattern, s, of_rows, of_columns, beta, to);
      },
      reads(y), gathers(x),
      beta == T(0) ? writes_entries(values, s.heads) : updates_entries(values, s.heads));
}

/// Whether the gradient of a maximum is gathered, by max_gather, not scattered.
template <class Device>
bool gathers_maxima(const device_queue<Device>& q) {
  return !runs_whole(q) && multiplies_parts(q);
}

/// The kernel max_aggregate; the winners of the pieces of a row are compared. On a queue that gathers_maxima
/// arg has the columns of the winners in place of their entries.
template <class T, class Device>
void max_aggregate(const device_queue<Device>& q, entry_passes<Device>& edges, std::size_t number,
                   const csr_view<T>& a, input_view<T> x, matrix_view<T> y, matrix_view<local_index> arg) {
  using indices = matrix_view<local_index>;
  buffer<T, Device> memory;
  buffer<local_index, Device> more;
  const bool names_columns = gathers_maxima(q);
  const auto find = [&](const edge_chunk<T>& c, matrix_view<const T> of_columns, matrix_view<T> largest,
                        indices where) {
    max_aggregate(q, c.pattern, of_columns, largest, where);
    if (names_columns)
      transform(q, detail::column_of_entry{c.pattern.columns, c.global_columns},
                matrix_view<const local_index>(where), where);
    else if (c.first_entry != 0)
      transform(q, detail::later_entry{c.first_entry}, matrix_view<const local_index>(where), where);
  };
  edges(
      q, number, a, {.global_columns = names_columns, .what = "maximum"},
      [&](const edge_chunk<T>& c, matrix_view<const T> of_columns, matrix_view<T> largest, indices where) {
        if (!c.splits_first_row) return find(c, of_columns, largest, where);
        const matrix_view<T> piece = detail::one_row(q, memory, y.cols);
        const indices of_piece = detail::one_row(q, more, y.cols);
        find(c, of_columns, piece, of_piece);
        transform_indexed(q, detail::winner_of_two<T>{largest.data, piece.data, of_piece.data},
                          matrix_view<const local_index>(where), where);
        zip(q, detail::value_of_two{}, matrix_view<const T>(largest), matrix_view<const T>(piece), largest);
      },
      gathers(x), writes(y), writes(arg));
}

/// Whether max_scatter takes the inverse of a pattern.
template <class T, class Device>
inline constexpr bool scatters_by_inverse =
    !std::is_same_v<decltype(max_scatter_pattern(std::declval<const device_queue<Device>&>(), csr_view<T>{})),
                    csr_view<T>>;

/// The kernel max_scatter, for a in place of its max_scatter_pattern, on a queue that does not gather maxima.
template <class T, class Device>
void max_scatter(const device_queue<Device>& q, entry_passes<Device>& edges, std::size_t number,
                 const csr_view<T>& a, matrix_view<const local_index> arg, input_view<T> dy,
                 matrix_view<T> dx) {
  edges(
      q, number, a, {.what = "maximum gradient"},
      [&](const edge_chunk<T>&, matrix_view<const local_index>, matrix_view<const T>, matrix_view<T>) {
        if constexpr (scatters_by_inverse<T, Device>)
          max_scatter(q, edges.inverse(q, number, a), arg, dy, dx);
        else
          max_scatter(q, a, arg, dy, dx);
      },
      reads(arg), reads(dy), adds(dx, T(1)));
}

/// dx(i, j) = the sum of dy(v, j) over the entries (i, v) of row i with arg(v, j) = first + i, in their
/// order: the gradient of max_aggregate on a queue that gathers_maxima. `transposed`: rows of the transpose
/// of its pattern, from row `first` on, in which no entry is twice.
template <class T, class Device>
void max_gather(const device_queue<Device>& q, entry_passes<Device>& edges, std::size_t number,
                const csr_view<T>& transposed, local_index first, matrix_view<const local_index> arg,
                input_view<T> dy, matrix_view<T> dx) {
  edges(
      q, number, transposed, {.what = "maximum gradient"},
      [&](const edge_chunk<T>& c, matrix_view<const T> gradients, matrix_view<const local_index> winners,
          matrix_view<T> to) {
        const detail::sum_of_won<T> sum{c.pattern.offsets, c.pattern.columns,   winners,
                                        gradients,         first + c.first_row, c.splits_first_row};
        transform_indexed(q, sum, matrix_view<const T>(to), to);
      },
      gathers(dy), gathers(arg), writes(dx));
}

/// The kernel edge_apply_multiply: in one pass or, where passes go in chunks, after store(number), which has
/// to make the values.
template <class T, class Device, class F, class Store>
void edge_apply_multiply(const device_queue<Device>& q, entry_passes<Device>& edges, std::size_t number,
                         const csr_view<T>& a, head_slice s, const F& f, const Store& store,
                         scalar<T>* values, input_view<T> x, scalar<T> beta, matrix_view<T> y) {
  if (runs_whole(q))
    return edges(
        q, number, a, {.what = "edge function product"},
        [&](const edge_chunk<T>&, matrix_view<const T>, matrix_view<T>) {
          edge_apply_multiply(q, a, s, f, values, x, beta, y);
        },
        gathers(x), result(y, beta));
  store(number);
  edge_multiply<T>(q, edges, number, a, s, values, x, beta, y);
}

}  // namespace partita::local::chunked

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The kernels of messages with what they do to their operands, by the kernels' names (see pass.hpp).

#include <cstddef>

#include "partita/local/csr_inverse.hpp"
#include "partita/local/head_slice.hpp"
#include "partita/local/host/messages.hpp"
#include "partita/local/pass.hpp"

namespace partita::local {

/// What messages along the entries of a pattern are made of, and how their sums are weighted: values of
/// entries, rows of the patterns' columns, and of its rows. What is not there has no heads, or no columns.
template <class T>
struct message_operands {
  head_slice slice;
  const T* values;
  matrix_view<const T> sources, targets, weights;
};

namespace chunked {

/// The kernel message_sums.
template <class F, class T, class Device>
void message_sums(const device_queue<Device>& q, entry_passes<Device>& edges, std::size_t number,
                  const csr_view<T>& a, const F& f, const message_operands<T>& of, scalar<T> beta,
                  matrix_view<T> y) {
  edges(
      q, number, a, {},
      [&](const edge_chunk<T>& c, const T* values, matrix_view<const T> sources, matrix_view<const T> targets,
          matrix_view<const T> weights, matrix_view<T> to) {
        message_sums(q, c.pattern, of.slice, f, values, sources, targets, weights, c.beta_of_rows(beta), to);
      },
      reads_entries(of.values, of.slice.heads), gathers(of.sources), reads(of.targets), reads(of.weights),
      result(y, beta));
}

/// The kernel message_row_gradients.
template <class F, class T, class Device>
void message_row_gradients(const device_queue<Device>& q, entry_passes<Device>& edges, std::size_t number,
                           const csr_view<T>& a, const F& f, const message_operands<T>& of,
                           input_view<T> gradients, matrix_view<T> dtargets, T* dvalues) {
  edges(
      q, number, a, {},
      [&](const edge_chunk<T>& c, const T* values, matrix_view<const T> sources, matrix_view<const T> targets,
          matrix_view<const T> weights, matrix_view<const T> of_rows, matrix_view<T> to, T* to_values) {
        message_row_gradients(q, c.pattern, of.slice, f, values, sources, targets, weights, of_rows, to,
                              dvalues == nullptr ? dvalues : to_values);
      },
      reads_entries(of.values, of.slice.heads), gathers(of.sources), reads(of.targets), reads(of.weights),
      reads(gradients), updates(dtargets), updates_entries(dvalues, dvalues == nullptr ? 0 : of.slice.heads));
}

/// The kernel message_source_gradients, for a in place of its inverse.
template <class F, class T, class Device>
void message_source_gradients(const device_queue<Device>& q, entry_passes<Device>& edges, std::size_t number,
                              const csr_view<T>& a, const F& f, const message_operands<T>& of,
                              input_view<T> gradients, scalar<T> beta, matrix_view<T> dsources) {
  edges(
      q, number, a, {.inverse = true},
      [&](const edge_chunk<T>& c, const T* values, matrix_view<const T> sources, matrix_view<const T> targets,
          matrix_view<const T> weights, matrix_view<const T> of_rows, matrix_view<T> to) {
        const csr_inverse_view inverse = c.is_whole ? edges.inverse(q, number, a) : c.inverse;
        message_source_gradients(q, inverse, of.slice, f, values, sources, targets, weights, of_rows,
                                 c.beta_of_columns(beta), to);
      },
      reads_entries(of.values, of.slice.heads), gathers(of.sources), reads(of.targets), reads(of.weights),
      reads(gradients), adds(dsources, beta));
}

}  // namespace chunked

}  // namespace partita::local

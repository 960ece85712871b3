// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The kernels of messages with what they do to their operands, by the kernels' names (see pass.hpp).

#include <cstddef>

#include "partita/local/csr_inverse.hpp"
#include "partita/local/host/message_gradients.hpp"
#include "partita/local/host/messages.hpp"
#include "partita/local/message_operands.hpp"
#include "partita/local/pass.hpp"

namespace partita::local::chunked {

/// The kernel message_sums.
template <class F, class T, class Device>
void message_sums(const device_queue<Device>& q, entry_passes<Device>& edges, std::size_t number,
                  const csr_view<T>& a, const F& f, const message_operands<T>& of, input_view<T> weights,
                  scalar<T> beta, matrix_view<T> y) {
  edges(
      q, number, a, {.what = "message sums"},
      [&](const edge_chunk<T>& c, const T* values, matrix_view<const T> sources, matrix_view<const T> targets,
          matrix_view<const T> of_rows, matrix_view<T> to) {
        message_sums(q, c.pattern, f, of.at(values, sources, targets), of_rows, c.beta_of_rows(beta), to);
      },
      reads_entries(of.values, of.slice.heads), gathers(of.sources), reads(of.targets), reads(weights),
      result(y, beta));
}

/// The kernel message_largest.
template <class F, class T, class Device>
void message_largest(const device_queue<Device>& q, entry_passes<Device>& edges, std::size_t number,
                     const csr_view<T>& a, const F& f, const message_operands<T>& of, scalar<T> sign,
                     const local_index* names, local_index first_name, matrix_view<T> y,
                     matrix_view<local_index> winners) {
  edges(
      q, number, a, {.what = "message maximum"},
      [&](const edge_chunk<T>& c, const T* values, matrix_view<const T> sources, matrix_view<const T> targets,
          matrix_view<T> to, matrix_view<local_index> where) {
        message_largest(q, c.pattern, f, of.at(values, sources, targets), sign, names + c.first_entry,
                        first_name, to, where);
      },
      reads_entries(of.values, of.slice.heads), gathers(of.sources), reads(of.targets), updates(y),
      updates(winners));
}

/// The kernel message_scores.
template <class F, class T, class Device>
void message_scores(const device_queue<Device>& q, entry_passes<Device>& edges, std::size_t number,
                    const csr_view<T>& a, const F& f, const message_operands<T>& of, head_slice to,
                    T* scores) {
  edges(
      q, number, a, {.what = "message scores"},
      [&](const edge_chunk<T>& c, const T* values, matrix_view<const T> sources, matrix_view<const T> targets,
          T* of_entries) {
        message_scores(q, c.pattern, f, of.at(values, sources, targets), to, of_entries);
      },
      reads_entries(of.values, of.slice.heads), gathers(of.sources), reads(of.targets),
      writes_entries(scores, to.heads));
}

/// The kernel message_row_gradients.
template <class F, class T, class Device>
void message_row_gradients(const device_queue<Device>& q, entry_passes<Device>& edges, std::size_t number,
                           const csr_view<T>& a, const F& f, const message_operands<T>& of,
                           const message_gradient<T>& g, matrix_view<T> dtargets, T* dvalues,
                           matrix_view<T> dparameters) {
  edges(
      q, number, a, {.what = "message row gradients"},
      [&](const edge_chunk<T>& c, const T* values, matrix_view<const T> sources, matrix_view<const T> targets,
          matrix_view<const T> rows, matrix_view<const T> weights, matrix_view<const local_index> winners,
          const T* scores, matrix_view<T> to, T* to_values) {
        message_row_gradients(q, c.pattern, f, of.at(values, sources, targets),
                              g.at(rows, weights, winners, scores, c.first_entry), to,
                              dvalues == nullptr ? dvalues : to_values, dparameters);
      },
      reads_entries(of.values, of.slice.heads), gathers(of.sources), reads(of.targets), reads(g.rows),
      reads(g.weights), reads(g.winners), reads_entries(g.scores, g.of_scores.heads), updates(dtargets),
      updates_entries(dvalues, dvalues == nullptr ? 0 : of.slice.heads));
}

/// The kernel message_source_gradients, for a in place of its inverse.
template <class F, class T, class Device>
void message_source_gradients(const device_queue<Device>& q, entry_passes<Device>& edges, std::size_t number,
                              const csr_view<T>& a, const F& f, const message_operands<T>& of,
                              const message_gradient<T>& g, scalar<T> beta, matrix_view<T> dsources) {
  edges(
      q, number, a, {.inverse = true, .what = "message source gradients"},
      [&](const edge_chunk<T>& c, const T* values, matrix_view<const T> sources, matrix_view<const T> targets,
          matrix_view<const T> rows, matrix_view<const T> weights, matrix_view<const local_index> winners,
          const local_index* names, const T* scores, matrix_view<T> to) {
        const csr_inverse_view inverse = c.is_whole ? edges.inverse(q, number, a) : c.inverse;
        message_gradient<T> here = g.at(rows, weights, winners, scores, 0);
        here.names = names;
        message_source_gradients(q, inverse, f, of.at(values, sources, targets), here,
                                 c.beta_of_columns(beta), to);
      },
      reads_entries(of.values, of.slice.heads), gathers(of.sources), reads(of.targets), reads(g.rows),
      reads(g.weights), reads(g.winners), reads_entries(g.names, g.names == nullptr ? 0 : 1),
      reads_entries(g.scores, g.of_scores.heads), adds(dsources, beta));
}

}  // namespace partita::local::chunked

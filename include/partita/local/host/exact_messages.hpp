// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What messages add to sums on reproducible queues, term by term, with the same bits on every mesh.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "partita/local/host/edge_parts.hpp"
#include "partita/local/message_function.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

/// Calls visit(i, e, first, count, terms) for the entries e of rows i of a, where terms[k][j] is output k of
/// f in column first + j, times factor(i, e, first + j): its slopes, or its messages alone. Rows are shared
/// by threads if `by_rows`.
template <class T, class Factor, class Visit>
inline void exact_message_terms(const device_queue<host>& q, const local::message_function<T>& f,
                                const local::csr_view<T>& a, const local::message_operands<T>& of,
                                const Factor& factor, bool slopes, bool by_rows, const Visit& visit) {
  using function = local::message_function<T>;
  const auto rows = [&](local_index begin, local_index end) {
    std::vector<typename function::numbers> p(f.parameters()), terms(slopes ? 3 + f.parameters() : 1);
    typename function::inputs x{};
    x.parameters = p.data();
    const auto load = [](auto& to, local_index count, const auto& at) {
      for (local_index j = 0; j < count; ++j) to[static_cast<std::size_t>(j)] = at(j);
    };
    for (local_index i = begin; i < end; ++i)
      for (local_index first = 0; first < of.sources.cols; first += function::columns) {
        const local_index count = std::min(function::columns, of.sources.cols - first);
        if (f.reads_targets()) load(x.target, count, [&](auto j) { return of.targets(i, first + j); });
        for (std::size_t k = 0; k < p.size(); ++k)
          load(p[k], count, [&](auto j) { return of.parameters(static_cast<local_index>(k), first + j); });
        for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e) {
          load(x.source, count, [&](auto j) { return of.sources(a.columns[e], first + j); });
          load(x.edge, count, [&](auto j) {
            if (of.slice.heads == 0) return T(1);
            return edge_values(of.values, e, of.slice.heads)[of.slice.head_of(first + j)];
          });
          load(x.factor, count, [&](auto j) { return factor(i, e, first + j); });
          if (slopes)
            f.slopes(x, terms.data());
          else
            f.messages(x, terms[0]);
          visit(i, e, first, count, std::as_const(terms));
        }
      }
  };
  if (by_rows)
    run_entry_rows(q.threads(), a, 16 * std::int64_t{of.sources.cols}, rows);
  else
    rows(0, a.rows);
}

}  // namespace partita::on_host

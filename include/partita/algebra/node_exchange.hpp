// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The exchange of needed rows on two levels: a row is sent to a node once, and handed on inside it.
///
/// Sources: aggregation by nodes in SuperGCN (arXiv:2411.16025), SHIRO (arXiv:2512.20178).

#include "partita/algebra/needed_exchange.hpp"
#include "partita/algebra/node_lists.hpp"
#include "partita/local/chunked.hpp"

namespace partita::algebra::detail {

/// Needed rows of X for merged tiles, in two exchanges of needed rows: one across nodes and then one inside
/// each. In the other direction, sums for these rows are added inside a node, in the order of its ranks, and
/// their owners add what nodes send, in the order of the nodes. The exchange across nodes overlaps the
/// multiply of the rank's own tile; the one inside does not. Rows of `code` are encoded only across nodes.
/// The ledger has the names "row between nodes" and "row inside nodes" for the axes.
template <class T, class Device>
class node_exchange final : public row_traffic<T> {
 public:
  node_exchange(const mesh<Device>& m, const node_lists<Device>& lists, row_flow flow, const row_code& code)
      : queue_(m.queue()),
        across_(m.along(axis::row).named("row between nodes"), queue_, lists.across, flow, true, code),
        inside_(m.along(axis::row).named("row inside nodes"), queue_, lists.inside, flow, true) {}

  void start(std::size_t n, matrix_view<const T> x) override { across_.start(n, x); }
  matrix_view<const T> arrive(std::size_t n, std::size_t t) override {
    inside_.start(n, across_.arrive(n, t));
    return inside_.arrive(n, t);
  }

  matrix_view<T> sums(std::size_t n, std::size_t t) override { return inside_.sums(n, t); }
  void leave(std::size_t n, std::size_t t, matrix_view<T> sums) override {
    const matrix_view<T> of_node = across_.sums(n, t);
    if constexpr (requires(T sum) { sum += sum; })  // not for types that only store numbers
      local::chunked::fill(queue_, T(0), of_node);
    inside_.leave(n, t, sums);
    inside_.finish(n, of_node);
    across_.leave(n, t, sums);
  }
  void finish(std::size_t k, matrix_view<T> sums) override { across_.finish(k, sums); }

 private:
  device_queue<Device> queue_;
  needed_exchange<T, Device> across_, inside_;
};

}  // namespace partita::algebra::detail

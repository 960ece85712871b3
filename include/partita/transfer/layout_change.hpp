// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Redistribution between the layout of the operands and the one a product multiplies in.

#include <algorithm>
#include <memory>
#include <vector>

#include "partita/transfer/redistribution.hpp"

namespace partita::transfer {

/// Planned redistributions X -> X' and Y' -> Y between two layouts; empty when both give the same blocks on
/// this mesh. Y goes in parts, each an even share of the rows of every rank's block of Y, so that one travels
/// while another one is computed. `Stored`: the type of the numbers of X.
///
/// Collective over the mesh: constructor and members. What travels: see redistribution.
template <class T, class Device, class Stored = T>
class layout_change {
 public:
  /// The rows of X are partitioned by `in`, those of Y by `out`, and the columns of both by `features`. X and
  /// Y are in layout `outer`, X' and Y' in `inner`. Of the `parts` of Y there is one where nothing travels.
  layout_change(const mesh<Device>& m, const blocking& in, const blocking& out, const blocking& features,
                layout outer, layout inner, std::size_t parts = 1) {
    if (partition::same_blocks(m.shape(), outer, inner)) return;
    const partition::route route =
        partition::on_mesh(partition::route_between(inner, outer), outer, m.shape());
    if (route.group.empty()) parts = 1;
    outer_ = partition::block_of(out, features, outer, m.at());
    to_inner_ = std::make_unique<redistribution<Stored, Device>>(m, in, features, outer, inner);
    to_outer_ = std::make_unique<block_exchange<T, Device>>(
        m, partition::exchange(
               m.shape(), route, m.at(),
               [&](coordinates q) { return partition::block_of(out, features, inner, q); },
               [&](coordinates q, global_index j) {
                 const partition::rectangle whole = partition::block_of(out, features, outer, q);
                 return partition::rectangle{base::part_of(whole.rows, j, static_cast<global_index>(parts)),
                                             whole.cols};
               },
               static_cast<global_index>(parts)));
  }

  /// Whether the two layouts have different blocks; to_inner and to_outer may only be called if so.
  bool travels() const { return to_inner_ != nullptr; }
  void to_inner(matrix_view<const Stored> x, matrix_view<Stored> inner) { (*to_inner_)(x, inner); }
  void to_outer(matrix_view<const T> inner, matrix_view<T> y) {
    for (std::size_t j = 0; j < parts(); ++j) send(j, inner, y);
    finish(inner, y);
  }

  /// The parts of Y; and the rows of this rank's block of Y' that go in each of them.
  std::size_t parts() const { return to_outer_ ? to_outer_->stages() : 1; }
  std::vector<std::vector<interval>> rows_of_parts() const {
    std::vector<std::vector<interval>> all(parts());
    const global_index first = to_outer_->plan().owned.rows.begin;
    for (std::size_t j = 0; j < all.size(); ++j)
      for (const partition::rectangle& r : to_outer_->plan().stages[j].send) {
        const interval rows{r.rows.begin - first, r.rows.end - first};
        if (r.size() > 0 && std::ranges::find(all[j], rows) == all[j].end()) all[j].push_back(rows);
      }
    return all;
  }
  /// to_outer part by part, in order, the last one waited for by finish.
  void send(std::size_t j, matrix_view<const T> inner, matrix_view<T> y) {
    to_outer_->start(j, inner);
    if (j > 0) receive(j - 1, inner, y);
  }
  void finish(matrix_view<const T> inner, matrix_view<T> y) { receive(parts() - 1, inner, y); }

  /// What this rank receives in one to_inner and one to_outer.
  traffic predicted() const {
    return to_inner_ ? to_inner_->predicted() + to_outer_->predicted() : traffic{};
  }
  /// What it receives in one to_inner.
  traffic predicted_inner() const { return to_inner_ ? to_inner_->predicted() : traffic{}; }

 private:
  void receive(std::size_t j, matrix_view<const T> inner, matrix_view<T> y) {
    to_outer_->finish(j, inner, part_of(y, outer_, to_outer_->plan().stages[j].block));
  }

  partition::rectangle outer_;  ///< this rank's block of Y
  std::unique_ptr<redistribution<Stored, Device>> to_inner_;
  std::unique_ptr<block_exchange<T, Device>> to_outer_;
};

}  // namespace partita::transfer

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Redistribution of a dense matrix a part of its rows at a time.

#include <vector>

#include "partita/transfer/block_exchange.hpp"

namespace partita::transfer {

/// A redistribution in stages: stage s brings the rows `parts[s]` of Y, the same intervals on every rank. The
/// stages are started and finished in order, at most two at a time, so that one travels while another is
/// computed.
///
/// Collective over the mesh: constructor and members. What travels: in all stages what a redistribution
/// receives, if the parts are disjoint and cover the rows.
template <class T, class Device>
class staged_redistribution {
 public:
  staged_redistribution(const mesh<Device>& m, const blocking& rows, const blocking& cols, layout from,
                        layout to, std::vector<interval> parts)
      : to_(partition::block_of(rows, cols, to, m.at())),
        blocks_(m, plan_of(m.shape(), m.at(), rows, cols, from, to, parts)) {}

  std::size_t stages() const { return blocks_.stages(); }
  /// Sends the rows of stage s of x, this rank's block in the source layout.
  void start(std::size_t s, matrix_view<const T> x) { blocks_.start(s, x); }
  /// Writes the rows of stage s to y, this rank's block in the target layout; x as for start.
  void finish(std::size_t s, matrix_view<const T> x, matrix_view<T> y) {
    blocks_.finish(s, x, part_of(y, to_, blocks_.plan().stages[s].block));
  }
  /// What this rank receives in all stages.
  traffic predicted() const { return blocks_.predicted(); }

 private:
  static partition::exchange plan_of(mesh_shape m, coordinates at, const blocking& rows, const blocking& cols,
                                     layout from, layout to, const std::vector<interval>& parts) {
    return partition::exchange(
        m, partition::on_mesh(partition::route_between(from, to), to, m), at,
        [&](coordinates q) { return partition::block_of(rows, cols, from, q); },
        [&](coordinates q, global_index s) {
          const partition::rectangle whole = partition::block_of(rows, cols, to, q);
          return partition::rectangle{intersection(whole.rows, parts[static_cast<std::size_t>(s)]),
                                      whole.cols};
        },
        static_cast<global_index>(parts.size()));
  }

  partition::rectangle to_;
  block_exchange<T, Device> blocks_;
};

}  // namespace partita::transfer

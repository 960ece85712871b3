// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Redistribution of a dense matrix from one layout to another; the route follows from the two layouts alone.

#include <vector>

#include "partita/transfer/block_exchange.hpp"

namespace partita {

/// A planned redistribution: Y = X in another layout, and with other blockings if these are given. Planned
/// once, it then runs allocation-free.
///
/// Collective over the mesh: constructor and call. What travels: nothing when the target only slices;
/// otherwise each rank receives the part of its new block that it does not hold, from ranks that differ in
/// the axes of the route's group.
template <class T, class Device>
class redistribution {
 public:
  redistribution(const mesh<Device>& m, const blocking& rows, const blocking& cols, layout from, layout to)
      : redistribution(m, {rows, cols, from}, {rows, cols, to}) {}
  redistribution(const mesh<Device>& m, const partition::block_layout& from,
                 const partition::block_layout& to)
      : from_(from), to_(to), blocks_(m, plan_of(m.shape(), m.at(), from, to)) {}

  /// Y = X. Throws shape_error unless X and Y are as planned.
  template <layout From, layout To>
  void operator()(const dense<T, From, Device>& x, dense<T, To, Device>& y,
                  std::source_location where = std::source_location::current()) {
    const comm::call_site scope(where);
    require(x, from_);
    require(y, to_);
    (*this)(x.local(), y.local());
  }
  /// The same on local blocks, both contiguous: x in the source layout, y in the target layout.
  void operator()(matrix_view<const T> x, matrix_view<T> y);

  /// What this rank receives in one call.
  traffic predicted() const { return blocks_.predicted(); }
  /// The same without a plan.
  static traffic predicted(const mesh<Device>& m, const blocking& rows, const blocking& cols, layout from,
                           layout to);

  /// This rank's block in the source and in the target layout.
  partition::rectangle old_block() const { return blocks_.plan().owned; }
  partition::rectangle new_block() const { return blocks_.plan().stages[0].block; }

 private:
  static partition::exchange plan_of(mesh_shape m, coordinates at, const partition::block_layout& from,
                                     const partition::block_layout& to);
  template <layout L>
  static void require(const dense<T, L, Device>& x, const partition::block_layout& planned) {
    if (partition::block_layout{x.row_blocking(), x.col_blocking(), x.layout()} == planned) return;
    base::throw_error<shape_error>({"a redistribution planned for ", planned.shape(), ", ", planned.axes,
                                    ", was given a matrix of ", x.shape(), ", ", x.layout(),
                                    "; shape, layout and blockings must match the plan"});
  }

  partition::block_layout from_, to_;
  transfer::block_exchange<T, Device> blocks_;
};

template <class T, class Device>
void redistribution<T, Device>::operator()(matrix_view<const T> x, matrix_view<T> y) {
  blocks_.start(0, x);
  blocks_.finish(0, x, y);
}

template <class T, class Device>
traffic redistribution<T, Device>::predicted(const mesh<Device>& m, const blocking& rows,
                                             const blocking& cols, layout from, layout to) {
  const axis_set group = partition::route_between(from, to).group;
  const partition::rectangle mine = partition::block_of(rows, cols, to, m.at());
  traffic v;
  for (int q = 0; q < m.shape().size(group); ++q) {
    const coordinates other = partition::group_member(m.shape(), group, m.at(), q);
    const global_index size = intersection(partition::block_of(rows, cols, from, other), mine).size();
    if (other != m.at() && size > 0) v += {size, 1};
  }
  return v;
}

template <class T, class Device>
partition::exchange redistribution<T, Device>::plan_of(mesh_shape m, coordinates at,
                                                       const partition::block_layout& from,
                                                       const partition::block_layout& to) {
  if (!(from.shape() == to.shape()))
    base::throw_error<shape_error>(
        {"a matrix of ", from.shape(), " cannot be redistributed to one of ", to.shape()});
  const auto old_block = [from](coordinates q) { return from.block(q); };
  const auto new_block = [to](coordinates q) { return to.block(q); };
  const bool same_blockings = from.rows == to.rows && from.cols == to.cols;
  const partition::route r =
      same_blockings ? partition::on_mesh(partition::route_between(from.axes, to.axes), to.axes, m)
                     : partition::route_of_blocks(m, from.axes.used(), old_block, new_block);
  return partition::exchange(
      m, r, at, old_block, [&](coordinates q, global_index) { return new_block(q); }, 1);
}

/// Y = X in layout `to`, on the same mesh with the same blockings. Collective over the mesh. What travels:
/// see redistribution.
template <layout From, class T, class Device>
dense<T, dynamic_layout, Device> redistribute(const dense<T, From, Device>& x, layout to,
                                              std::source_location where = std::source_location::current()) {
  const comm::call_site scope(where);
  dense<T, dynamic_layout, Device> y(x.mesh(), to, x.row_blocking(), x.col_blocking());
  redistribution<T, Device>(x.mesh(), x.row_blocking(), x.col_blocking(), x.layout(), to)(x.local(),
                                                                                          y.local());
  return y;
}
/// As above, with a static layout.
template <layout To, class T, layout From, class Device>
dense<T, To, Device> redistribute(const dense<T, From, Device>& x,
                                  std::source_location where = std::source_location::current()) {
  return dense<T, To, Device>(redistribute(x, To, where));
}

}  // namespace partita

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Redistribution of a dense matrix from one layout to another; the route follows from the two layouts alone.

#include <vector>

#include "partita/local/kernels.hpp"
#include "partita/matrix/dense.hpp"
#include "partita/partition/route.hpp"

namespace partita {

namespace partition {

/// A rectangle of a global matrix.
struct rectangle {
  interval rows;
  interval cols;

  constexpr global_index size() const { return rows.size() * cols.size(); }
};

constexpr rectangle intersection(rectangle a, rectangle b) {
  return {intersection(a.rows, b.rows), intersection(a.cols, b.cols)};
}

/// The block of a matrix owned by the rank at `at` in layout `l`.
inline rectangle block_of(const blocking& rows, const blocking& cols, layout l, coordinates at) {
  return {rows.block(l.rows, at), cols.block(l.cols, at)};
}

/// Whether every rank has the same block in both layouts, that is, they differ only in axes of size 1.
constexpr bool same_blocks(mesh_shape m, layout a, layout b) {
  const auto alike = [m](axis_set s, axis_set t) { return m.size(s - t) == 1 && m.size(t - s) == 1; };
  return alike(a.rows, b.rows) && alike(a.cols, b.cols);
}

}  // namespace partition

/// A planned redistribution: Y = X in another layout. Planned once, it then runs allocation-free.
///
/// Collective over the mesh: constructor and call. What travels: nothing when the target only slices;
/// otherwise each rank receives the part of its new block that it does not hold, from ranks that differ in
/// the axes of the route's group.
template <class T, class Device>
class redistribution {
 public:
  redistribution(const mesh<Device>& m, const blocking& rows, const blocking& cols, layout from, layout to)
      : mesh_(m), rows_(rows), cols_(cols), from_(from), to_(to), route_(partition::route_between(from, to)) {
    const coordinates me = mesh_.at();
    old_ = partition::block_of(rows, cols, from, me);
    new_ = partition::block_of(rows, cols, to, me);
    const int members = mesh_.shape().size(route_.group);
    for (int q = 0; q < members; ++q) {
      const coordinates other = partition::group_member(mesh_.shape(), route_.group, me, q);
      send_.push_back(intersection(old_, partition::block_of(rows, cols, to, other)));
      recv_.push_back(intersection(partition::block_of(rows, cols, from, other), new_));
      send_counts_.push_back(send_.back().size());
      recv_counts_.push_back(recv_.back().size());
    }
    if (travels()) {
      const bool one_block = route_.kind == partition::movement::all_gather;
      outgoing_ = buffer<T, Device>(mesh_.queue(), comm::total_of(one_block ? std::span(send_counts_).first(1)
                                                                            : std::span(send_counts_)));
      incoming_ = buffer<T, Device>(mesh_.queue(), comm::total_of(recv_counts_));
    }
  }

  /// Y = X. Throws shape_error unless X is in the source layout and Y in the target layout, with the planned
  /// blockings.
  template <layout From, layout To>
  void operator()(const dense<T, From, Device>& x, dense<T, To, Device>& y,
                  std::source_location where = std::source_location::current()) {
    const comm::call_site scope(where);
    require(x, from_);
    require(y, to_);
    (*this)(x.local(), y.local());
  }
  /// The same on local blocks: x in the source layout, y in the target layout.
  void operator()(matrix_view<const T> x, matrix_view<T> y) {
    const auto& q = mesh_.queue();
    if (!travels()) return copy(q, part(x, old_, recv_[0]), part(y, new_, recv_[0]));
    const communicator& group = mesh_.along(route_.group);
    if (route_.kind == partition::movement::all_gather) {
      pack(q, part(x, old_, send_[0]), outgoing_.data());
      group.all_gather(outgoing_.span(), recv_counts_, incoming_.span());
    } else {
      T* to = outgoing_.data();
      for (const partition::rectangle& r : send_) {
        pack(q, part(x, old_, r), to);
        to += r.size();
      }
      group.all_to_all(outgoing_.span(), send_counts_, incoming_.span(), recv_counts_);
    }
    const T* from = incoming_.data();
    for (const partition::rectangle& r : recv_) {
      unpack(q, from, part(y, new_, r));
      from += r.size();
    }
  }

  /// What this rank receives in one call.
  traffic predicted() const { return predicted(mesh_, rows_, cols_, from_, to_); }
  /// The same without a plan.
  static traffic predicted(const mesh<Device>& m, const blocking& rows, const blocking& cols, layout from,
                           layout to) {
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

  /// This rank's block in the source and in the target layout.
  partition::rectangle old_block() const { return old_; }
  partition::rectangle new_block() const { return new_; }

 private:
  template <layout L>
  void require(const dense<T, L, Device>& x, layout planned) const {
    if (x.layout() == planned && x.row_blocking() == rows_ && x.col_blocking() == cols_) return;
    throw_error<shape_error>({"a redistribution planned for ", matrix_shape{rows_.size(), cols_.size()}, ", ",
                              planned, ", was given a matrix of ", x.shape(), ", ", x.layout(),
                              "; shape, layout and blockings must match the plan"});
  }
  bool travels() const { return send_.size() > 1; }
  template <class U>
  static matrix_view<U> part(matrix_view<U> whole, const partition::rectangle& of,
                             const partition::rectangle& r) {
    return whole.block(static_cast<local_index>(r.rows.begin - of.rows.begin),
                       static_cast<local_index>(r.cols.begin - of.cols.begin),
                       static_cast<local_index>(r.rows.size()), static_cast<local_index>(r.cols.size()));
  }

  mesh<Device> mesh_;
  blocking rows_, cols_;
  layout from_, to_;
  partition::route route_;
  partition::rectangle old_, new_;
  std::vector<partition::rectangle> send_, recv_;
  std::vector<global_index> send_counts_, recv_counts_;
  buffer<T, Device> outgoing_, incoming_;
};

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

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What ranks exchange so that each, owning one block of a matrix, obtains another one.

#include <algorithm>
#include <vector>

#include "partita/base/function_reference.hpp"
#include "partita/partition/block_layout.hpp"
#include "partita/partition/route.hpp"

namespace partita::partition {

namespace detail {

/// `at` with coordinate 0 along the axes of s.
constexpr coordinates at_origin_of(axis_set s, coordinates at) {
  for (const axis a : all_axes)
    if (s.contains(a)) at[a] = 0;
  return at;
}

/// The axes along which the two coordinates differ.
constexpr axis_set differing(coordinates a, coordinates b) {
  axis_set s;
  for (const axis x : all_axes)
    if (a[x] != b[x]) s = s | x;
  return s;
}

}  // namespace detail

/// The rectangle of the rank at given coordinates, and what a stage brings to it.
using block_of_rank = base::function_reference<rectangle(coordinates)>;
using block_of_stage = base::function_reference<rectangle(coordinates, global_index)>;

/// The route from the blocks `from`, which the axes of `used` partition, to the blocks `to`. A rank receives
/// from ranks with its own coordinates along all other axes, where the matrix is replicated. The group has no
/// axis along which nothing travels. from(at), to(at): the rectangle of the rank at these coordinates.
inline route route_of_blocks(mesh_shape m, axis_set used, const block_of_rank& from,
                             const block_of_rank& to) {
  route r;
  axis_set several;
  for (const axis a : all_axes)
    if (used.contains(a) && m[a] > 1) several = several | a;
  for (int rank = 0; rank < m.size() && r.group != several; ++rank) {
    const rectangle wanted = to(m.at(rank));
    for (int q = 0; q < m.size(several) && wanted.size() > 0; ++q) {
      const coordinates source = group_member(m, several, m.at(rank), q);
      if (intersection(from(source), wanted).size() > 0)
        r.group = r.group | detail::differing(source, m.at(rank));
    }
  }
  if (r.group.empty()) return r;
  r.kind = movement::all_gather;
  for (int rank = 0; rank < m.size(); ++rank)
    if (to(m.at(rank)) != to(detail::at_origin_of(r.group, m.at(rank)))) r.kind = movement::all_to_all;
  return r;
}

/// Number of elements that a stage packs, receives and unpacks; 0 where that is not necessary.
struct exchange_sizes {
  global_index packed = 0, incoming = 0, unpacked = 0;

  /// The larger of each.
  friend constexpr exchange_sizes max(exchange_sizes a, exchange_sizes b) {
    return {std::max(a.packed, b.packed), std::max(a.incoming, b.incoming), std::max(a.unpacked, b.unpacked)};
  }
  /// Of a rank that owns the block from(at) and needs to(at). Nothing is packed if an all-gather sends whole
  /// rows of the block, nothing unpacked if the parts received are whole rows in the order of the group.
  static exchange_sizes of(mesh_shape m, route r, coordinates at, const block_of_rank& from,
                           const block_of_rank& to) {
    if (r.group.empty()) return {};
    const rectangle owned = from(at), block = to(at), mine = intersection(owned, block);
    exchange_sizes n;
    global_index row = block.rows.begin;
    bool in_place = true;
    for (int q = 0; q < m.size(r.group); ++q) {
      const coordinates other = group_member(m, r.group, at, q);
      if (r.kind == movement::all_to_all) n.packed += intersection(owned, to(other)).size();
      const rectangle part = intersection(from(other), block);
      if (part.size() == 0) continue;
      n.incoming += part.size();
      in_place = in_place && part.cols == block.cols && part.rows.begin == row;
      row = part.rows.end;
    }
    if (r.kind == movement::all_gather && mine.cols != owned.cols && mine.rows.size() > 1)
      n.packed = mine.size();
    if (!in_place) n.unpacked = block.size();
    return n;
  }
};

/// Number of elements in buffers, given the largest sizes of all stages; the next stage's message is in
/// flight while a stage is processed.
constexpr global_index buffered(exchange_sizes largest, global_index stages) {
  return (stages > 1 ? 2 : 1) * (largest.packed + largest.incoming) + largest.unpacked;
}

/// What one rank sends to and receives from each member of a route's group, in one or several stages. Each
/// stage brings one part of the new block.
struct exchange {
  struct stage {
    rectangle block;  ///< the part of the new block
    std::vector<rectangle> send, recv;
    exchange_sizes sizes;
  };

  /// In `count` stages, to(at, s) being what stage s brings to the rank at these coordinates.
  exchange(mesh_shape m, route r, coordinates at, const block_of_rank& from, const block_of_stage& to,
           global_index count)
      : how(r), owned(from(at)) {
    for (global_index s = 0; s < count; ++s) {
      const auto part = [&](coordinates q) { return to(q, s); };
      stage next{part(at), {}, {}, exchange_sizes::of(m, r, at, from, part)};
      for (int q = 0; travels() && q < m.size(how.group); ++q) {
        const coordinates other = group_member(m, how.group, at, q);
        next.send.push_back(intersection(owned, part(other)));
        next.recv.push_back(intersection(from(other), next.block));
      }
      largest = max(largest, next.sizes);
      stages.push_back(std::move(next));
    }
  }

  bool travels() const { return !how.group.empty(); }

  route how;
  rectangle owned;
  std::vector<stage> stages;
  exchange_sizes largest;
};

}  // namespace partita::partition

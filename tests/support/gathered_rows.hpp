// SPDX-License-Identifier: Apache-2.0
#pragma once
// What ranks ask for of the rows of a matrix, and what they then receive, from the definition.
#include <set>

#include "partita/transfer/gather_rows.hpp"
#include "support/matrices.hpp"

namespace test_support {

using namespace partita;

using id_list = std::vector<global_index>;
using row_block = host_dense<double, vertex_rows>;

/// What a rank asks for in list c of round `round`: ids in any order, with repeats; some lists are empty, and
/// so are all lists of rank 1.
inline id_list ids_of(int rank, std::size_t c, std::uint64_t round, global_index rows) {
  id_list ids;
  const auto count = rank == 1 || rows == 0 ? 0 : base::random_bits(round, rank, static_cast<int>(c)) % 14;
  for (std::uint64_t i = 0; i < count; ++i)
    ids.push_back(static_cast<global_index>(base::random_bits(round + c, rank, static_cast<global_index>(i)) %
                                            static_cast<std::uint64_t>(rows)));
  return ids;
}
inline std::vector<id_list> lists_of(int rank, std::size_t count, std::uint64_t round, global_index rows) {
  std::vector<id_list> lists;
  for (std::size_t c = 0; c < count; ++c) lists.push_back(ids_of(rank, c, round, rows));
  return lists;
}

/// A matrix, who asks for what in it, and what a rank then receives, counted from the definition.
struct problem {
  mesh_shape mesh;
  partition::block_layout x;
  transfer::gathered_columns columns;
  std::size_t lists;
  std::uint64_t round;

  interval wanted(coordinates at) const {
    return columns == transfer::gathered_columns::whole ? interval{0, x.cols.size()} : x.block(at).cols;
  }
  bool communicates(axis a) const {
    return x.axes.rows.contains(a) ||
           (columns == transfer::gathered_columns::whole && x.axes.cols.contains(a));
  }
  /// Whether two ranks are in one group.
  bool together(coordinates a, coordinates b) const {
    bool same = true;
    for (const axis s : partition::all_axes) same = same && (communicates(s) || a[s] == b[s]);
    return same;
  }
  bool copies(coordinates a, coordinates b) const {
    bool same = true;
    for (const axis s : partition::all_axes) same = same && (!x.axes.used().contains(s) || a[s] == b[s]);
    return same;
  }
  std::set<global_index> distinct(coordinates at) const {
    std::set<global_index> ids;
    for (const id_list& list : lists_of(mesh.rank(at), lists, round, x.rows.size()))
      ids.insert(list.begin(), list.end());
    return ids;
  }
  /// Of the distinct rows that `at` asks for, those in the rows of `owner`, where that has wanted columns.
  std::set<global_index> asked(coordinates at, coordinates owner) const {
    std::set<global_index> ids;
    if (!intersection(x.block(owner).cols, wanted(at)).empty())
      for (const global_index id : distinct(at))
        if (x.block(owner).rows.contains(id)) ids.insert(id);
    return ids;
  }
  /// Rows of its block that a rank has sums for.
  global_index summed(coordinates owner) const {
    std::set<global_index> ids;
    for (int q = 0; q < mesh.size(); ++q)
      if (together(owner, mesh.at(q))) ids.merge(asked(mesh.at(q), owner));
    return static_cast<global_index>(ids.size());
  }

  /// visit(other rank) for those of the group.
  void for_others(coordinates me, auto visit) const {
    for (int q = 0; q < mesh.size(); ++q)
      if (mesh.at(q) != me && together(me, mesh.at(q))) visit(mesh.at(q));
  }
  static traffic message(global_index words) { return words > 0 ? traffic{words, 1} : traffic{}; }

  traffic gathers(coordinates me) const {
    traffic v;
    for_others(me, [&](coordinates q) {
      v += message(std::ssize(asked(me, q)) * intersection(x.block(q).cols, wanted(me)).size());
    });
    return v;
  }
  traffic assigns(coordinates me) const {
    traffic v;
    for_others(me, [&](coordinates q) { v += traffic{1, 1} + message(std::ssize(asked(q, me))); });
    return v;
  }
  traffic scatters(coordinates me) const {
    traffic v;
    const global_index width = x.block(me).cols.size();
    for_others(me, [&](coordinates q) { v += message(std::ssize(asked(q, me)) * width); });
    for (int q = 0; q < mesh.size(); ++q)
      if (mesh.at(q) != me && copies(me, mesh.at(q))) v += message(summed(mesh.at(q)) * width);
    return v;
  }
  /// What copies tell each other once.
  traffic lists_of_copies(coordinates me) const {
    traffic v;
    for (int q = 0; q < mesh.size(); ++q)
      if (mesh.at(q) != me && copies(me, mesh.at(q))) v += traffic{1, 1} + message(summed(mesh.at(q)));
    return v;
  }
  global_index remote(coordinates me) const {
    global_index count = 0;
    const partition::rectangle own = x.block(me);
    for (const global_index id : distinct(me))
      if (!wanted(me).empty() && (!own.rows.contains(id) || own.cols != wanted(me))) ++count;
    return count;
  }
};

}  // namespace test_support

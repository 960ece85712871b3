// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The stages of Y = A X on one rank, as algebra/product_stages.hpp runs them with whole blocks exchanged.

#include <string>
#include <vector>

#include "partita/algebra/spmm_cost.hpp"
#include "partita/partition/policies.hpp"

namespace draw {

/// A rectangle of a matrix, and the rank that it is from.
struct piece {
  partita::interval rows, cols;
  int rank = 0;
};

/// What one stage uses of Y, A and X; `sum`: the partial Y that it puts together with those of other ranks.
struct stage {
  std::string title, note;
  std::vector<piece> y, a, x, sum;
};

/// A policy on a mesh, with A (n x n) and X (n x f) cut evenly.
struct scene {
  partita::policy p;
  partita::mesh_shape shape;
  partita::global_index n, f;

  partita::blocking rows() const { return partita::blocking::even(n, shape, partita::nesting::rows); }
  partita::blocking features() const { return partita::blocking::even(f, shape, partita::nesting::cols); }
  bool cut_by_row() const { return p.sparse.rows.contains(partita::axis::row); }
  bool cut_by_col() const { return p.sparse.cols.contains(partita::axis::col); }

  partita::interval rows_of_a(partita::coordinates at) const { return rows().block(p.sparse.rows, at); }
  /// The columns of a rank's tile `r`: sub-block (depth, col) of row block r of X.
  partita::interval columns_of_a(partita::coordinates at, int r) const {
    at.row = r;
    return rows().block(partita::partition::column_cut(p.sparse), at);
  }
  int tiles() const { return cut_by_row() ? shape.row : 1; }

  std::vector<piece> block_of_a(partita::coordinates at) const {
    std::vector<piece> block;
    for (int t = 0; t < tiles(); ++t) block.push_back({rows_of_a(at), columns_of_a(at, t), shape.rank(at)});
    return block;
  }
  piece block_of_x(partita::coordinates at) const {
    return {rows().block(p.dense.rows, at), features().block(p.dense.cols, at), shape.rank(at)};
  }
};

namespace detail {

inline std::string list_of(const std::vector<int>& ranks) {
  std::string list = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < ranks.size(); ++i)
    list += (i == 0 ? " " : i + 1 < ranks.size() ? ", " : " and ") + std::to_string(ranks[i]);
  return list;
}

inline std::vector<int> others_along(partita::mesh_shape m, partita::axis along, partita::coordinates me) {
  std::vector<int> others;
  partita::coordinates at = me;
  for (at[along] = 0; at[along] < m[along]; ++at[along])
    if (at[along] != me[along]) others.push_back(m.rank(at));
  return others;
}

/// What a stage receives: `a` and `x` are the ranks from which A and X come, this one where they do not.
inline std::string arrivals(int me, int a, int x) {
  if (a != me) return "A from rank " + std::to_string(a) + " along col";
  if (x != me) return "X from rank " + std::to_string(x) + " along row";
  return "nothing arrives";
}

}  // namespace detail

/// The stages on the rank at `me`, with A or X and Y moving along col.
inline std::vector<stage> stages_of(const scene& s, partita::coordinates me, bool a_stays) {
  using partita::axis;
  const auto& m = s.shape;
  const int rank = m.rank(me);
  const bool stays = a_stays && s.cut_by_col();
  const piece mine = s.block_of_x(me);
  const partita::interval height = s.rows_of_a(me), all{0, s.f}, width = stays ? all : mine.cols;
  std::vector<stage> stages;

  if (stays) {
    stage wide{"X to full width", "", {}, {}, {}, {}};
    for (int c = 0; c < m.col; ++c) {
      const piece from = s.block_of_x({me.row, c, me.depth});
      wide.x.push_back({s.columns_of_a(me, me.row), from.cols, from.rank});
    }
    wide.note = "all-to-all along col with " + detail::list_of(detail::others_along(m, axis::col, me));
    stages.push_back(wide);
  }
  for (int k = 0; k < (s.cut_by_col() && !stays ? m.col : 1); ++k) {
    partita::coordinates owner = me;
    if (s.cut_by_col() && !stays) owner.col = k;
    for (int i = 0; i < s.tiles(); ++i) {
      const int t = i == 0 ? me.row : i <= me.row ? i - 1 : i;  // the own tile first
      partita::coordinates sender = me;
      if (s.cut_by_row()) sender.row = t;
      const partita::interval columns = s.columns_of_a(owner, t);
      stages.push_back({"Y += A X",
                        detail::arrivals(rank, i == 0 ? m.rank(owner) : rank, m.rank(sender)),
                        {{height, width, rank}},
                        {{height, columns, m.rank(owner)}},
                        {{columns, width, m.rank(sender)}},
                        {}});
    }
  }
  const auto sum = [&](const char* how, axis along, partita::interval rows, partita::interval before) {
    const auto others = detail::others_along(m, along, me);
    const std::string note =
        std::string("along ") + partita::partition::name_of(along) + " with " + detail::list_of(others);
    stages.push_back({how, note, {{rows, mine.cols, rank}}, {}, {}, {{height, before, rank}}});
  };
  if (stays) sum("Y: reduce-scatter", axis::col, height, all);
  if (s.p.sparse.cols.contains(axis::depth))
    sum(s.p.dense.rows.contains(axis::depth) ? "Y: reduce-scatter" : "Y: all-reduce", axis::depth, mine.rows,
        mine.cols);
  return stages;
}

}  // namespace draw

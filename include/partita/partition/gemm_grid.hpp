// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The mesh, the layouts and the schedule of a product, chosen from its shape alone.

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "partita/partition/gemm_choice.hpp"

namespace partita::partition {

/// A product whose operands are spread evenly where its schedule needs them.
struct gemm_grid {
  gemm_problem problem;
  gemm_choice choice;
};

/// C (m x n) = A (m x k) B (k x n) on a grid of pm x pn x pk ranks, which are the mesh's row, col and depth:
/// i by row, j by col, k by depth. Each matrix is cut by the two axes of its indices, and its blocks by the
/// third axis, so that every rank owns 1/P of it and gathers, or reduces, along the third axis only.
inline gemm_problem problem_on_grid(global_index m, global_index n, global_index k, mesh_shape grid) {
  using enum axis;
  return {grid, evenly({m, k}, grid, {row | col, depth}), evenly({k, n}, grid, {depth, col | row}),
          evenly({m, n}, grid, {row | depth, col})};
}

/// The grid whose busiest rank receives least, of all with pm pn pk = `ranks`, with at most `limit` elements
/// in buffers: without a limit, as many as the blocks need; among equals, one with stages along k. A rank
/// receives about
///
///     mk/(pm pk) (1 - 1/pn) + kn/(pk pn) (1 - 1/pm) + mn/(pm pn) (1 - 1/pk)
///
/// elements. Throws error if no grid is within the limit. Source: Kwasniewski et al. (SC19).
inline gemm_grid choose_grid(global_index m, global_index n, global_index k, int ranks,
                             std::optional<global_index> limit = {}) {
  constexpr gemm_schedule by_axis{axis::row, axis::col, axis::depth};
  const auto moves_less = [](const gemm_grid& a, const gemm_grid& b) {
    return a.choice.words < b.choice.words;
  };
  std::vector<gemm_grid> grids;
  for (int pm = 1; pm <= ranks; ++pm)
    for (int pn = 1; pn <= ranks / pm; ++pn) {
      if (ranks % (pm * pn) != 0) continue;
      const gemm_problem p = problem_on_grid(m, n, k, {pm, pn, ranks / (pm * pn)});
      const gemm_grid grid{p, detail::choices_under(p, by_axis).front()};
      grids.insert(std::upper_bound(grids.begin(), grids.end(), grid, moves_less), grid);
    }
  std::optional<gemm_grid> best;
  for (gemm_grid& g : grids) {
    if (best && g.choice.words > best->choice.words) break;
    if (!detail::set_stages(g.problem, g.choice, limit.value_or(std::numeric_limits<global_index>::max())))
      continue;
    const auto& stages = g.choice.blocks.stages;
    if (!best || (stages.along == gemm_index::k && best->choice.blocks.stages.along != gemm_index::k))
      best = g;
  }
  if (!best)
    base::throw_error<error>({"no grid of ", ranks, " ranks multiplies ", matrix_shape{m, k}, " by ",
                              matrix_shape{k, n}, " with ", limit.value_or(0), " elements in buffers"});
  return *best;
}

}  // namespace partita::partition

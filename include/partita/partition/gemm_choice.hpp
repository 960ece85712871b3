// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The choice of a schedule: the one whose busiest rank receives least within a limit on memory.

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "partita/partition/gemm_schedule.hpp"

namespace partita::partition {

/// The routes of a product's exchanges.
struct gemm_routes {
  gemm_routes(const gemm_problem& p, const gemm_blocks& blocks, const gemm_sums& sums)
      : a(route_of_blocks(
            p.mesh, p.a.axes.used(), [&](coordinates q) { return p.a.block(q); },
            [&](coordinates q) { return blocks.of_a(q); })),
        b(route_of_blocks(
            p.mesh, p.b.axes.used(), [&](coordinates q) { return p.b.block(q); },
            [&](coordinates q) { return blocks.of_b(q); })) {
    if (sums.redistributes)
      c = route_of_blocks(
          p.mesh, blocks.axes.i | blocks.axes.j | sums.scatter,
          [&](coordinates q) { return sums.owned(p, blocks, q); },
          [&](coordinates q) { return p.c.block(q); });
  }

  route a, b, c;  ///< c: from the summed blocks
};

/// A schedule, and its cost on the busiest rank.
struct gemm_choice {
  gemm_blocks blocks;
  gemm_sums sums;
  global_index words = 0;     ///< received
  global_index buffered = 0;  ///< elements in buffers
  double multiplications = 0;
};

namespace detail {

/// Whether the two blockings have the same blocks when the axes of `by` partition them.
inline bool same_cut(mesh_shape m, const blocking& a, const blocking& b, axis_set by) {
  if (a == b) return true;
  for (int q = 0; q < m.size(by); ++q)
    if (const coordinates at = group_member(m, by, {}, q); a.block(by, at) != b.block(by, at)) return false;
  return true;
}

/// The schedules that differ on a mesh: each axis with several ranks partitions i, j, k or nothing.
inline std::vector<gemm_schedule> schedules_on(mesh_shape m) {
  std::vector<gemm_schedule> all{{}};
  for (const axis a : all_axes) {
    if (m[a] == 1) continue;
    std::vector<gemm_schedule> longer;
    for (const gemm_schedule& s : all) {
      longer.push_back(s);
      longer.push_back({s.i | a, s.j, s.k});
      longer.push_back({s.i, s.j | a, s.k});
      longer.push_back({s.i, s.j, s.k | a});
    }
    all = std::move(longer);
  }
  return all;
}

/// A schedule with the blocks of either matrix that has the index, where these differ.
inline std::vector<gemm_choice> choices_under(const gemm_problem& p, gemm_schedule s) {
  const auto either = [&](const blocking& one, const blocking& other, axis_set by) {
    std::vector<const blocking*> distinct{&one};
    if (!same_cut(p.mesh, one, other, by)) distinct.push_back(&other);
    return distinct;
  };
  std::vector<gemm_choice> choices;
  for (const blocking* i : either(p.i_of_a(), p.c.rows, s.i))
    for (const blocking* j : either(p.j_of_b(), p.c.cols, s.j))
      for (const blocking* k : either(p.k_of_a(), p.k_of_b(), s.k)) {
        gemm_choice c{{s, *i, *j, *k, p.transposed_a, p.transposed_b}, {}};
        c.sums = sums_of(p, c.blocks);
        for (int rank = 0; rank < p.mesh.size(); ++rank) {
          const coordinates at = p.mesh.at(rank);
          c.words = std::max(c.words, words_of(p, c.blocks, c.sums, at).sum());
          c.multiplications =
              std::max(c.multiplications, static_cast<double>(c.blocks.of_c(at).size()) *
                                              static_cast<double>(c.blocks.range(gemm_index::k, at).size()));
        }
        choices.push_back(std::move(c));
      }
  return choices;
}

/// Elements in buffers on the busiest rank: of what does not depend on the number of stages, and of the rest.
struct gemm_buffers {
  global_index fixed = 0, staged = 0;
};

/// Those of the exchange that brings the blocks to(at, stage).
inline global_index exchange_buffers(const gemm_problem& p, const route& r, coordinates at,
                                     const block_layout& from, const block_of_stage& to,
                                     global_index stages) {
  exchange_sizes largest;
  for (global_index s = 0; s < stages && !r.group.empty(); ++s)
    largest = max(largest, exchange_sizes::of(
                               p.mesh, r, at, [&](coordinates q) { return from.block(q); },
                               [&](coordinates q) { return to(q, s); }));
  return buffered(largest, stages);
}

/// Those of partial products and their sums.
inline global_index product_buffers(const gemm_problem& p, const gemm_choice& c, const gemm_routes& routes,
                                    coordinates at) {
  const auto& [scatter, reduce, redistributes] = c.sums;
  if (scatter.empty() && !redistributes) return 0;
  const global_index stages = c.blocks.stages.without(gemm_index::k);
  global_index product = 0, summed = 0;
  for (global_index s = 0; s < stages; ++s) {
    product = std::max(product, c.blocks.of_c(at, s).size());
    const rectangle owned = c.sums.owned(p, c.blocks, at, s);
    if (redistributes ? !scatter.empty() : owned.cols != p.c.block(at).cols)
      summed = std::max(summed, owned.size());
  }
  if (!redistributes) return product + summed;
  return product + summed +
         buffered(exchange_sizes::of(
                      p.mesh, routes.c, at, [&](coordinates q) { return c.sums.owned(p, c.blocks, q); },
                      [&](coordinates q) { return p.c.block(q); }),
                  1);
}

inline gemm_buffers buffers_of(const gemm_problem& p, const gemm_choice& c, const gemm_routes& routes) {
  gemm_buffers most;
  const gemm_stages& stages = c.blocks.stages;
  for (int rank = 0; rank < p.mesh.size(); ++rank) {
    const coordinates at = p.mesh.at(rank);
    gemm_buffers here;
    const auto add = [&](gemm_index lacking, global_index n) {
      (stages.along == lacking ? here.fixed : here.staged) += n;
    };
    add(gemm_index::j,
        exchange_buffers(
            p, routes.a, at, p.a, [&](coordinates q, global_index s) { return c.blocks.of_a(q, s); },
            stages.without(gemm_index::j)));
    add(gemm_index::i,
        exchange_buffers(
            p, routes.b, at, p.b, [&](coordinates q, global_index s) { return c.blocks.of_b(q, s); },
            stages.without(gemm_index::i)));
    add(gemm_index::k, product_buffers(p, c, routes, at));
    most = {std::max(most.fixed, here.fixed), std::max(most.staged, here.staged)};
  }
  return most;
}

/// Traverses the index in the fewest stages, a power of two, with at most `limit` elements in buffers.
/// Returns whether there is such a number.
inline bool set_stages(const gemm_problem& p, gemm_choice& c, const gemm_routes& routes, gemm_index along,
                       global_index limit) {
  global_index longest = 1;
  for (int rank = 0; rank < p.mesh.size(); ++rank)
    longest = std::max(longest, c.blocks.range(along, p.mesh.at(rank)).size());
  c.blocks.stages = {along, 1};
  for (global_index next = 1, factor = 2;; next *= factor, factor = 2) {
    c.blocks.stages.count = std::min(next, longest);
    const gemm_buffers n = buffers_of(p, c, routes);
    c.buffered = n.fixed + n.staged;
    if (c.buffered <= limit) return true;
    if (n.fixed >= limit || n.staged == 0 || next >= longest) return false;
    while (2 * factor <= n.staged / (limit - n.fixed)) factor *= 2;
  }
}

/// Stages along k or, if these do not suffice, along j or i, where blocks of C are traversed.
inline bool set_stages(const gemm_problem& p, gemm_choice& c, global_index limit) {
  const gemm_routes routes(p, c.blocks, c.sums);
  if (set_stages(p, c, routes, gemm_index::k, limit)) return true;
  const gemm_choice along_k = c;
  for (const gemm_index x : {gemm_index::j, gemm_index::i})
    if (!c.sums.redistributes && set_stages(p, c, routes, x, limit)) return true;
  c = along_k;
  return false;
}

}  // namespace detail

/// The elements that C, A and B take together on the busiest rank.
inline global_index elements_of(const gemm_problem& p) {
  global_index most = 0;
  for (int rank = 0; rank < p.mesh.size(); ++rank) {
    const coordinates at = p.mesh.at(rank);
    most = std::max(most, p.a.block(at).size() + p.b.block(at).size() + p.c.block(at).size());
  }
  return most;
}

/// The schedule whose busiest rank receives least with at most `limit` elements in buffers, in as few stages
/// as this allows; among equals, the one that multiplies least. Stages move no more elements. If none is
/// within the limit, the one with the smallest buffers. `given`: only this schedule. Arithmetic on shapes;
/// local, and the same on all ranks. Source: the search over processor grids of Kwasniewski et al. (SC19),
/// over axes of a given mesh.
inline gemm_choice choose(const gemm_problem& p, global_index limit,
                          std::optional<gemm_schedule> given = {}) {
  const auto moves_less = [](const gemm_choice& a, const gemm_choice& b) {
    return a.words < b.words || (a.words == b.words && a.multiplications < b.multiplications);
  };
  std::vector<gemm_choice> choices;
  for (const gemm_schedule& s : given ? std::vector{*given} : detail::schedules_on(p.mesh))
    for (gemm_choice& c : detail::choices_under(p, s))
      choices.insert(std::upper_bound(choices.begin(), choices.end(), c, moves_less), std::move(c));
  for (gemm_choice& c : choices)
    if (detail::set_stages(p, c, limit)) return c;
  return *std::min_element(choices.begin(), choices.end(), [](const gemm_choice& a, const gemm_choice& b) {
    return a.buffered < b.buffered;
  });
}

}  // namespace partita::partition

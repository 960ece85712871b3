// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every mesh that a policy may have on a number of ranks, and running a body on each.
#include <vector>

#include "partita/memory/host.hpp"
#include "partita/partition/policies.hpp"
#include "support/ranks.hpp"

namespace test_support {

inline std::vector<partita::mesh_shape> meshes_of(const partita::policy& p, int ranks) {
  const auto most = [&](partita::axis a) { return p.used().contains(a) ? ranks : 1; };
  std::vector<partita::mesh_shape> meshes;
  for (int depth = 1; depth <= most(partita::axis::depth); ++depth)
    for (int col = 1; col <= most(partita::axis::col); ++col)
      if (ranks % (depth * col) == 0 && ranks / (depth * col) <= most(partita::axis::row))
        meshes.push_back({ranks / (depth * col), col, depth});
  return meshes;
}

/// body(policy, mesh shape) for each named policy on each of its meshes of each of these numbers of ranks;
/// sanitizers see every mesh of up to four ranks, and the default one of six.
template <class Ranks, class Body>
void for_each_mesh(const Ranks& rank_counts, Body body) {
  for (const partita::policy& p : partita::named_policies)
    for (int ranks : rank_counts)
      if (sees(ranks))
        for (partita::mesh_shape shape : meshes_of(p, ranks))
          if (!sanitized || ranks <= 4 || shape == partita::default_mesh(p, ranks)) body(p, shape);
}

/// The same, but beyond eight ranks, for sanitizers beyond two, on a policy's default mesh alone.
template <class Ranks, class Body>
void for_each_usual_mesh(const Ranks& rank_counts, Body body) {
  for_each_mesh(rank_counts, [&](const partita::policy& p, partita::mesh_shape shape) {
    if (shape.size() <= (sanitized ? 2 : 8) || shape == partita::default_mesh(p, shape.size()))
      body(p, shape);
  });
}

}  // namespace test_support

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every mesh that a policy may have on a number of ranks, and running a body on each.

#include "partita/comm/mesh.hpp"
#include "partita/memory/host.hpp"
#include "partita/partition/policies.hpp"
#include "support/ranks.hpp"

namespace test_support {

using host_mesh = partita::mesh<partita::host>;

/// body(mesh) on as many threads as the mesh has places.
void with_mesh(partita::mesh_shape shape, auto body) {
  on_threads(shape.size(), [&](const partita::communicator& c) { body(host_mesh(c, shape)); });
}
/// The same, but of meshes of three axes sanitizers see one.
void on_mesh(partita::mesh_shape shape, auto body) {
  if (sees(shape.size()) || shape == partita::mesh_shape{2, 2, 2}) with_mesh(shape, body);
}

/// Checks that act(mesh) on all places of a mesh together ends with exactly an `Error` whose message contains
/// `part`.
template <class Error, class Act>
void expect_error(partita::mesh_shape shape, std::string_view part, Act act) {
  expect_error<Error>(part, [&] { with_mesh(shape, act); });
}

/// body(policy, mesh shape) for each named policy on each of its meshes of each of these numbers of ranks;
/// sanitizers see every mesh of two ranks, and of every other policy the default one of four, of the others
/// that of six.
void for_each_mesh(const auto& rank_counts, auto body) {
  int number = 0;
  for (const partita::policy& p : partita::named_policies) {
    ++number;
    for (int ranks : rank_counts)
      if (sees(ranks))
        for (partita::mesh_shape shape : partita::partition::meshes_of(p, ranks))
          if (!sees_fewer_meshes() || ranks <= 2 ||
              ((number + ranks / 2) % 2 == 0 && shape == partita::default_mesh(p, ranks)))
            body(p, shape);
  }
}

/// body(mesh, policy) on all places of each of these meshes.
void on_each_mesh(const auto& rank_counts, auto body) {
  for_each_mesh(rank_counts, [&](const partita::policy& p, partita::mesh_shape shape) {
    with_mesh(shape, [&](const host_mesh& m) { body(m, p); });
  });
}

/// As for_each_mesh, but beyond eight ranks, for sanitizers beyond two, on a policy's default mesh alone.
void for_each_usual_mesh(const auto& rank_counts, auto body) {
  for_each_mesh(rank_counts, [&](const partita::policy& p, partita::mesh_shape shape) {
    if (shape.size() <= (sees_fewer_meshes() ? 2 : 8) || shape == partita::default_mesh(p, shape.size()))
      body(p, shape);
  });
}
void on_usual_meshes(const auto& rank_counts, auto body) {
  for_each_usual_mesh(rank_counts, [&](const partita::policy& p, partita::mesh_shape shape) {
    with_mesh(shape, [&](const host_mesh& m) { body(m, p); });
  });
}

}  // namespace test_support

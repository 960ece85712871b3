// SPDX-License-Identifier: Apache-2.0
#include "arrangement.hpp"

#include <cstdio>
#include <cstdlib>

#include "partita/partition/policies.hpp"

namespace {

partita::mesh_shape parse_mesh(const std::string& text) {
  partita::mesh_shape m;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%dx%dx%d%c", &m.row, &m.col, &m.depth, &rest) != 3 || m.row < 1 ||
      m.col < 1 || m.depth < 1)
    throw usage_error("a mesh is written as ROWxCOLxDEPTH, like 2x2x1, not '" + text + "'");
  return m;
}

}  // namespace

std::optional<arrangement> arrangement_of(const std::string& policy_name,
                                          const std::optional<std::string>& mesh,
                                          std::optional<int> replication, int ranks) try {
  if (policy_name == "auto") {
    if (mesh || replication) throw usage_error("--mesh and --replication need a --policy other than auto");
    return {};
  }
  const partita::policy& p = partita::find_policy(policy_name);
  const arrangement how{policy_name, mesh ? parse_mesh(*mesh) : partita::default_mesh(p, ranks, replication)};
  partita::require_mesh(p, how.mesh, ranks);
  if (replication && how.mesh.depth != *replication)
    throw usage_error("mesh " + to_string(how.mesh) + " has depth " + std::to_string(how.mesh.depth) +
                      ", not replication " + std::to_string(*replication));
  return how;
} catch (const partita::mesh_error& e) {
  throw usage_error(e.what());
}

bool in_mpi_job() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (std::getenv(name) != nullptr) return true;
  return false;
}

// SPDX-License-Identifier: Apache-2.0
#include "arrangement.hpp"

#include <cstdio>
#include <cstdlib>
#include <utility>

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

/// How launchers tell a process the size of its job and its rank; srun sets SLURM_STEP_NUM_TASKS, a batch
/// script alone does not.
constexpr std::pair<const char*, const char*> launchers[] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                                                             {"PMI_SIZE", "PMI_RANK"},
                                                             {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"},
                                                             {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"}};

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

void refuse_separate_runs() {
  for (const auto& [size_name, rank_name] : launchers) {
    const char *size = std::getenv(size_name), *rank = std::getenv(rank_name);
    if (size == nullptr || rank == nullptr || std::atoi(size) < 2) continue;
    if (std::atoi(rank) > 0) std::exit(0);
    throw usage_error("the " + std::string(size) +
                      " processes of this job would each run alone; --comm mpi makes them ranks of one run");
  }
}

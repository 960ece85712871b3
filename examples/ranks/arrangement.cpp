// SPDX-License-Identifier: Apache-2.0
#include "arrangement.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

namespace {

partita::mesh_shape parse_mesh(const std::string& text) {
  partita::mesh_shape m;
  const char *at = text.data(), *const end = at + text.size();
  for (int* const extent : {&m.row, &m.col, &m.depth}) {
    const auto [rest, failed] = std::from_chars(at, end, *extent);
    const bool ends_well = extent == &m.depth ? rest == end : rest != end && *rest == 'x';
    if (failed != std::errc() || !ends_well || *extent < 1)
      throw usage_error(
          "a mesh is written as ROWxCOLxDEPTH, like 2x2x1, in whole numbers from 1 to 2147483647, not '" +
          text + "'");
    at = rest + 1;
  }
  return m;
}

/// How launchers tell a process the size of its job and its rank; srun sets SLURM_STEP_NUM_TASKS, a batch
/// script alone does not.
constexpr std::pair<const char*, const char*> launchers[] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                                                             {"PMI_SIZE", "PMI_RANK"},
                                                             {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"},
                                                             {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"}};

struct place {
  int size = 1, rank = 0;
};

/// Where this process is in the job that a launcher has started; alone, if none has started several.
place place_in_job() {
  for (const auto& [size_name, rank_name] : launchers) {
    const char *size = std::getenv(size_name), *rank = std::getenv(rank_name);
    if (size != nullptr && rank != nullptr && std::atoi(size) > 1) return {std::atoi(size), std::atoi(rank)};
  }
  return {};
}

}  // namespace

std::optional<arrangement> arrangement_of(const std::string& policy_name,
                                          const std::optional<std::string>& mesh,
                                          std::optional<int> replication, int ranks) try {
  require_possible(ranks);
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

void require_possible(int ranks) {
  const int most = std::max(1024, 8 * static_cast<int>(std::thread::hardware_concurrency()));
  if (ranks > std::max(most, place_in_job().size))
    throw usage_error(std::to_string(ranks) + " ranks are more than the " + std::to_string(most) +
                      " threads that this machine may have; --comm mpi spreads ranks over several");
}

void require_ranks(std::optional<int> asked, int of_job) {
  if (asked && *asked != of_job)
    throw usage_error("--ranks " + std::to_string(*asked) + ", but the MPI job has " +
                      std::to_string(of_job) + (of_job == 1 ? " process" : " processes") +
                      ": start it with mpirun -n " + std::to_string(*asked));
}

std::string degenerate_mesh(const arrangement& how) {
  const partita::policy& p = partita::find_policy(how.policy);
  const partita::axis_set idle = p.used() - partita::partition::axes_with_ranks(how.mesh);
  if (how.mesh.size() == 1 || idle.empty()) return {};
  const std::string_view same = partita::partition::same_policy(p, how.mesh);
  const std::string what = same.empty() ? "it cuts nothing along " + partita::partition::name_of(idle)
                                        : "the same as " + std::string(same);
  return how.policy + " on " + std::to_string(how.mesh.size()) + " ranks is a " + to_string(how.mesh) +
         " mesh: " + what;
}

std::optional<std::chrono::milliseconds> time_limit(std::optional<double> timeout) {
  if (!timeout) return {};
  return std::chrono::milliseconds(std::llround(1000 * *timeout));
}

bool in_mpi_job() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (std::getenv(name) != nullptr) return true;
  return false;
}

int ranks_of_job() { return place_in_job().size; }

bool first_of_job() { return place_in_job().rank == 0; }

void refuse_separate_runs() {
  const auto [size, rank] = place_in_job();
  if (size == 1) return;
  if (rank > 0) std::exit(0);
  throw usage_error("the " + std::to_string(size) +
                    " processes of this job would each run alone; --comm mpi makes them ranks of one run");
}

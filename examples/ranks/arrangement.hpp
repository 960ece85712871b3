// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Policies, meshes and jobs as command lines name them; shared by the programs.

#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "partita/comm/communicator.hpp"
#include "partita/partition/policies.hpp"

/// The words given are wrong: exit code 2.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A policy and the mesh it runs on.
struct arrangement {
  std::string policy;
  partita::mesh_shape mesh;
};

/// The policy on the mesh that is written ("2x2x1"), or on its nearest one for `ranks` ranks; nothing for the
/// policy `auto`. Throws usage_error when they do not fit.
std::optional<arrangement> arrangement_of(const std::string& policy, const std::optional<std::string>& mesh,
                                          std::optional<int> replication, int ranks);

/// Throws usage_error for more ranks than this job has, or than threads could be started.
void require_possible(int ranks);

/// Throws usage_error when --ranks asks for another number than an MPI job has.
void require_ranks(std::optional<int> asked, int of_job);

/// A sentence when several ranks leave an axis of the policy with one; nothing otherwise.
std::string degenerate_mesh(const arrangement& how);

/// The limit of a wait that --timeout gives in seconds, or nothing.
std::optional<std::chrono::milliseconds> time_limit(std::optional<double> timeout);

/// `body` on every rank of an MPI job, its exit code; a sentence and 1 when this program was built without
/// MPI. `native`: with MPI's own collectives.
int run_mpi(int argc, char** argv, std::optional<double> timeout, bool native,
            const std::function<int(partita::communicator)>& body);

/// Whether mpirun, or a batch system in its place, has started this process.
bool in_mpi_job();

/// The processes of the job that mpirun, or a batch system in its place, has started; 1 without one.
int ranks_of_job();

/// True in the first process of a job, and in one that no launcher has started. Where the command line is
/// wrong, the first process says so; the others end quietly, with exit code 0, so that it is heard.
bool first_of_job();

/// For programs that run as threads: throws usage_error when this process is the first of several that
/// mpirun, or a batch system in its place, has started; ends one of the others quietly, with exit code 0, so
/// that the first is heard.
void refuse_separate_runs();

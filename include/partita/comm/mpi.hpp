// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Ranks as processes of an MPI job.

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdio>
#include <numeric>
#include <thread>

#include "partita/comm/communicator.hpp"
#include "partita/comm/mpi_transport.hpp"

namespace partita::mpi {

struct options {
  /// Whether every operation is compared between the ranks before it starts: a mismatch is an error that
  /// names ranks and lines, not a hang.
  bool checked = comm::checked_by_default;
  /// Whether MPI gets pointers to memory of devices, where it says that it takes them. What it says is not
  /// enough: CUDA-aware Open MPI takes them in non-blocking collectives over UCX alone, and between processes
  /// of one machine memory of pools needs a recent UCX. Elsewhere blocks go through page-locked memory.
  bool device_pointers = false;
};

namespace detail {

inline std::shared_ptr<mpi_transport> world_transport(MPI_Comm comm, options o) {
  int initialized = 0;
  check(MPI_Initialized(&initialized), "MPI_Initialized");
  if (initialized == 0) throw communication_error("MPI is not initialized: see partita::mpi::run");
  owned_comm copy = duplicate(comm, "partita");
  std::vector<int> ranks(static_cast<std::size_t>(copy.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  auto shared = std::make_shared<job>();
  shared->checked = o.checked;
  shared->device_pointers = o.device_pointers && cuda_aware();
  return std::make_shared<mpi_transport>(std::move(copy), std::move(shared), std::move(ranks));
}

/// Says on stderr why this rank failed and ends the job. Errors that every rank has are said by the lowest
/// one: the others are a little late and are ended before.
[[noreturn]] inline void end_job(std::string why) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::this_thread::sleep_for(std::chrono::milliseconds(std::min(100, 25 * rank)));
  std::replace(why.begin(), why.end(), '\n', ' ');
  const std::string line = "partita: rank " + std::to_string(rank) + ": " + why + "\n";
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::terminate();
}

}  // namespace detail

/// All ranks of `comm`, which must all call, over duplicates of it. MPI must be initialized, and an exception
/// that leaves a rank must end the job: run() does both.
inline communicator world(MPI_Comm comm = MPI_COMM_WORLD, options o = {}) {
  return communicator(detail::world_transport(comm, o), "world");
}

/// Initializes MPI, calls `body(communicator)`, finalizes, and returns what body returned, or 0. A rank whose
/// body throws writes the error as one line on stderr and ends the whole job by MPI_Abort with exit code 1:
/// the one place where this library writes and exits, since the other ranks could not be freed otherwise. A
/// rank that ends while others go on with the world is an error where checked; else, and in groups split from
/// it, they wait for ever.
template <class Body>
int run(int& argc, char**& argv, Body body, options o = {}) {
  int provided = 0;
  detail::check(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
  int code = 0;
  try {
    const std::shared_ptr<mpi_transport> everyone = detail::world_transport(MPI_COMM_WORLD, o);
    const communicator world(everyone, "world");
    if constexpr (std::same_as<decltype(body(world)), void>)
      body(world);
    else
      code = body(world);
    everyone->end();
  } catch (const std::exception& e) {
    detail::end_job(e.what());
  } catch (...) {
    detail::end_job("what was thrown is not a std::exception");
  }
  MPI_Finalize();
  return code;
}

}  // namespace partita::mpi

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Ranks as processes of an MPI job.

#include <concepts>
#include <numeric>

#include "partita/comm/communicator.hpp"
#include "partita/comm/mpi_end.hpp"
#include "partita/comm/mpi_transport.hpp"

namespace partita::mpi {

/// All ranks of `comm`, which must all call, over duplicates of it, one of which lives until MPI_Finalize.
/// MPI must be initialized; run() does that.
///
/// No rank waits for ever. An operation throws communication_error, which names ranks, the operation and the
/// line of its call, where ranks call different operations, where a rank that must take part has called
/// MPI_Finalize, and after options::time_limit. A rank that calls std::exit instead of MPI_Finalize says so
/// on stderr and ends the job by MPI_Abort, and so does one that calls MPI_Finalize after an operation
/// failed. An exception that leaves main, or a signal, ends a rank as the MPI implementation has it: most
/// launchers then end the job, else the others do so at their time limit. Not bounded are this call itself,
/// which MPI blocks until every rank of `comm` calls, and MPI_Finalize, until every rank calls or fails.
inline communicator world(MPI_Comm comm = MPI_COMM_WORLD, options o = {}) {
  int initialized = 0;
  detail::check(MPI_Initialized(&initialized), "MPI_Initialized");
  if (initialized == 0) throw communication_error("MPI is not initialized: see partita::mpi::run");
  const auto shared = std::make_shared<detail::job>(comm, o);
  detail::owned_comm copy = detail::duplicate(comm, "partita");
  std::vector<int> ranks(static_cast<std::size_t>(copy.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  detail::register_job(shared);
  return communicator(
      std::make_shared<mpi_transport>(std::move(copy), shared, std::move(ranks), std::uint64_t{0}), "world");
}

/// Initializes MPI, calls `body(communicator)` with world(), finalizes, and returns what body returned, or 0.
///
/// However a rank ends while others wait for it, the job ends with an exit code other than 0 and one line a
/// rank on stderr that names the rank, and the operation and the line of its call where one is concerned: a
/// body that throws, returns early, calls std::exit, or crashes by a signal for which the program has no
/// handler of its own. This is the one place where this library writes and exits (by MPI_Abort with code 1,
/// or by the signal), since the other ranks could not be freed otherwise; what mpirun then adds is its own.
template <class Body>
int run(int& argc, char**& argv, Body body, options o = {}) {
  detail::crash_reporter crashes;
  int provided = 0;
  detail::check(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
  crashes.arm();
  int code = 0;
  try {
    const communicator everyone = world(MPI_COMM_WORLD, o);
    if constexpr (std::same_as<decltype(body(everyone)), void>)
      body(everyone);
    else
      code = body(everyone);
  } catch (const std::exception& e) {
    detail::end_job(e.what());
  } catch (...) {
    detail::end_job("what was thrown is not a std::exception");
  }
  MPI_Finalize();
  return code;
}

}  // namespace partita::mpi

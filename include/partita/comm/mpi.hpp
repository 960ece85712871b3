// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Ranks as processes of an MPI job.

#include <concepts>
#include <numeric>
#include <string_view>

#include "partita/comm/communicator.hpp"
#include "partita/comm/mpi_end.hpp"
#include "partita/comm/mpi_transport.hpp"

namespace partita::mpi {

namespace detail {

/// How MPI_Get_library_version begins for the mpi.h used in this compilation; empty unless that is Open MPI
/// or MPICH.
inline std::string compiled_library() {
#if defined(OPEN_MPI)
  return "Open MPI v" + std::to_string(OMPI_MAJOR_VERSION) + ".";
#elif defined(MPICH_VERSION)
  return "MPICH";
#else
  return {};
#endif
}

/// Throws communication_error unless the loaded library, as named by MPI_Get_library_version, has the same
/// types and constants as the `compiled` one. Libraries derived from MPICH share MPICH's.
inline void require_library(std::string_view compiled, std::string_view loaded) {
  const bool of_open_mpi = compiled.starts_with("Open MPI");
  if (compiled.empty() || (of_open_mpi ? loaded.starts_with(compiled) : !loaded.starts_with("Open MPI")))
    return;
  base::throw_error<communication_error>({"this program was compiled for ", compiled, of_open_mpi ? "x" : "",
                                          ", and the MPI that was loaded is ",
                                          loaded.substr(0, loaded.find_first_of(",\n")),
                                          "; start it with the libraries of the former"});
}

inline void require_library() {
  char loaded[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  check(MPI_Get_library_version(loaded, &length), "MPI_Get_library_version");
  require_library(compiled_library(), {loaded, static_cast<std::size_t>(length)});
}

}  // namespace detail

/// A communicator over all ranks of `comm`. Collective over `comm`. Works on duplicates of it, one of which
/// is freed in MPI_Finalize. MPI must be initialized; run() does that.
///
/// Waits are bounded: an operation throws communication_error, naming the ranks, the operation and its call
/// site, if ranks call different operations, if a participating rank has called MPI_Finalize, if a process on
/// the same node has died, and after options::time_limit, when it names the missing ranks. A rank that calls
/// std::exit instead of MPI_Finalize, or MPI_Finalize after a failed operation, reports it on stderr and
/// calls MPI_Abort. What happens after an exception escapes main, or after a signal, is up to the MPI
/// implementation: most launchers kill the job; otherwise the other ranks fail at their time limit. Not
/// bounded: this call, until every rank of `comm` has called it, and MPI_Finalize, until every rank has
/// called it or failed. Throws communication_error if the loaded MPI is not the one used in compilation.
inline communicator world(MPI_Comm comm = MPI_COMM_WORLD, options o = {}) {
  int initialized = 0;
  detail::check(MPI_Initialized(&initialized), "MPI_Initialized");
  if (initialized == 0) throw communication_error("MPI is not initialized: see partita::mpi::run");
  detail::require_library();
  if (o.device_pointers && o.collectives == collectives::native)
    throw communication_error("native collectives of MPI are for host memory, not for device pointers");
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
/// If a rank ends while others wait for it (its body throws, returns early, calls std::exit, or crashes by a
/// signal that the program does not handle), the job ends with a nonzero exit code and one line per rank on
/// stderr, naming the rank and, if one is involved, the operation and its call site. This is the only place
/// where the library writes to stderr and exits (MPI_Abort with code 1, or the signal): there is no other
/// way to release the remaining ranks. mpirun adds messages of its own.
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

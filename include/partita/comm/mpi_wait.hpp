// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How a rank waits for MPI when the ranks of its machine outnumber the cores.

#include <thread>

#include "partita/comm/cores.hpp"
#include "partita/comm/mpi_call.hpp"

namespace partita::mpi::detail {

/// Whether the given ranks on this machine are more than the cores that they may use between them.
/// Collective.
inline bool outnumber_cores(MPI_Comm ranks) {
  MPI_Comm here = MPI_COMM_NULL;
  check(MPI_Comm_split_type(ranks, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here), "MPI_Comm_split_type");
  const owned_comm machine(here, "partita machine");
  comm::core_set cores = comm::usable_cores();
  check(MPI_Allreduce(MPI_IN_PLACE, cores.data(), static_cast<int>(cores.size()), MPI_UINT8_T, MPI_BOR,
                      machine.get()),
        "MPI_Allreduce");
  return machine.size() > comm::count(cores);
}

/// MPI_Wait. Where `yields`, the core is given up between looks: most of MPI's own waits keep it, so that the
/// rank that is waited for gets it only when the time slice ends.
inline int wait(MPI_Request* request, MPI_Status* status, bool yields) {
  if (!yields) return MPI_Wait(request, status);
  for (int done = 0;;) {
    const int code = MPI_Test(request, &done, status);
    if (code != MPI_SUCCESS || done != 0) return code;
    std::this_thread::yield();
  }
}

}  // namespace partita::mpi::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts what this process receives from other ranks at MPI's profiling interface, to compare with the
// ledger. Include in one translation unit of a program: it replaces the call of MPI by which operations
// receive. The communicators of checks are not counted.

#include "partita/comm/mpi_call.hpp"

namespace test_support {

/// Bytes received from other ranks since the program started.
inline std::int64_t& mpi_bytes_received() {
  static std::int64_t bytes = 0;
  return bytes;
}

namespace detail {

inline bool is_counted(MPI_Comm comm) {
  char name[MPI_MAX_OBJECT_NAME] = {};
  int length = 0;
  PMPI_Comm_get_name(comm, name, &length);
  return std::strcmp(name, partita::mpi::detail::check_comm_name) != 0;
}

inline int rank_in(MPI_Comm comm) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  return rank;
}

inline void count_message(int source, int count, MPI_Datatype type, MPI_Comm comm) {
  if (!is_counted(comm) || source == rank_in(comm)) return;
  int size = 0;
  PMPI_Type_size(type, &size);
  mpi_bytes_received() += static_cast<std::int64_t>(count) * size;
}

}  // namespace detail

}  // namespace test_support

extern "C" {

int MPI_Irecv(void* data, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request* request) {
  test_support::detail::count_message(source, count, type, comm);
  return PMPI_Irecv(data, count, type, source, tag, comm, request);
}

}  // extern "C"

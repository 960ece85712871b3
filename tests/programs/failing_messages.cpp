// SPDX-License-Identifier: Apache-2.0
/// Preloaded into each rank of an MPI job: fails one call of MPI by its number, and counts all of them.
///
/// PARTITA_FAILING_MESSAGE is "KIND RANK NUMBER": on this rank the call of this KIND with this NUMBER, from
/// 0, answers MPI_ERR_OTHER and does nothing else. A completion is an MPI_Test that completes a request. A
/// rank leaves `calls-RANK` in its working folder: a line "failed CALL PEER" at once, and in MPI_Finalize
/// "count KIND RANK CALLS" of each kind.

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

namespace {

enum kind { send, receive, completion, collective, group, kinds };
constexpr std::array<const char*, kinds> names{"send", "receive", "completion", "collective", "group"};

/// Of this process, which calls MPI from one thread.
struct state {
  int rank = -1;
  std::array<long, kinds> calls{};
  std::array<char, 32> failing_kind{};
  int failing_rank = -1;
  long failing_number = -1;

  state() {
    const char *const of_job = std::getenv("OMPI_COMM_WORLD_RANK"), *const fails = std::getenv(
                                                                        "PARTITA_FAILING_MESSAGE");
    if (of_job != nullptr) rank = std::atoi(of_job);
    if (fails != nullptr)
      std::sscanf(fails, "%31s %d %ld", failing_kind.data(), &failing_rank, &failing_number);
  }
  std::FILE* file(const char* mode) const {
    return std::fopen(("calls-" + std::to_string(rank)).c_str(), mode);
  }
};
state& here() {
  static state s;
  return s;
}

bool fails(kind k, const char* call, int peer = -1) {
  state& s = here();
  if (s.calls[k]++ != s.failing_number || s.rank != s.failing_rank ||
      std::strcmp(names[k], s.failing_kind.data()) != 0)
    return false;
  if (std::FILE* const f = s.file("w")) {
    std::fprintf(f, "failed %s %d\n", call, peer);
    std::fclose(f);
  }
  return true;
}

}  // namespace

extern "C" {

int MPI_Isend(const void* from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* r) {
  return fails(send, "MPI_Isend", to) ? MPI_ERR_OTHER : PMPI_Isend(from, count, type, to, tag, comm, r);
}
int MPI_Irecv(void* to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* r) {
  return fails(receive, "MPI_Irecv", from) ? MPI_ERR_OTHER : PMPI_Irecv(to, count, type, from, tag, comm, r);
}
int MPI_Imrecv(void* to, int count, MPI_Datatype type, MPI_Message* message, MPI_Request* r) {
  return fails(receive, "MPI_Imrecv") ? MPI_ERR_OTHER : PMPI_Imrecv(to, count, type, message, r);
}
int MPI_Test(MPI_Request* r, int* complete, MPI_Status* status) {
  const bool counts = *r != MPI_REQUEST_NULL;
  const int code = PMPI_Test(r, complete, status);
  return counts && *complete != 0 && fails(completion, "MPI_Test") ? MPI_ERR_OTHER : code;
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request* r) {
  return fails(collective, "MPI_Ibarrier") ? MPI_ERR_OTHER : PMPI_Ibarrier(comm, r);
}
int MPI_Ibcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* r) {
  return fails(collective, "MPI_Ibcast") ? MPI_ERR_OTHER : PMPI_Ibcast(data, count, type, root, comm, r);
}
int MPI_Iallgatherv(const void* from, int count, MPI_Datatype type, void* to, const int* counts,
                    const int* offsets, MPI_Datatype as, MPI_Comm comm, MPI_Request* r) {
  return fails(collective, "MPI_Iallgatherv")
             ? MPI_ERR_OTHER
             : PMPI_Iallgatherv(from, count, type, to, counts, offsets, as, comm, r);
}
int MPI_Ialltoallv(const void* from, const int* counts, const int* offsets, MPI_Datatype type, void* to,
                   const int* their_counts, const int* their_offsets, MPI_Datatype as, MPI_Comm comm,
                   MPI_Request* r) {
  return fails(collective, "MPI_Ialltoallv")
             ? MPI_ERR_OTHER
             : PMPI_Ialltoallv(from, counts, offsets, type, to, their_counts, their_offsets, as, comm, r);
}
int MPI_Ireduce_scatter(const void* from, void* to, const int* counts, MPI_Datatype type, MPI_Op op,
                        MPI_Comm comm, MPI_Request* r) {
  return fails(collective, "MPI_Ireduce_scatter") ? MPI_ERR_OTHER
                                                  : PMPI_Ireduce_scatter(from, to, counts, type, op, comm, r);
}
int MPI_Iallreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request* r) {
  return fails(collective, "MPI_Iallreduce") ? MPI_ERR_OTHER
                                             : PMPI_Iallreduce(from, to, count, type, op, comm, r);
}
int MPI_Allreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return fails(collective, "MPI_Allreduce") ? MPI_ERR_OTHER : PMPI_Allreduce(from, to, count, type, op, comm);
}
int MPI_Allgather(const void* from, int count, MPI_Datatype type, void* to, int their_count, MPI_Datatype as,
                  MPI_Comm comm) {
  return fails(collective, "MPI_Allgather") ? MPI_ERR_OTHER
                                            : PMPI_Allgather(from, count, type, to, their_count, as, comm);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* copy) {
  return fails(group, "MPI_Comm_dup") ? MPI_ERR_OTHER : PMPI_Comm_dup(comm, copy);
}
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* part) {
  return fails(group, "MPI_Comm_split") ? MPI_ERR_OTHER : PMPI_Comm_split(comm, color, key, part);
}
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* part) {
  return fails(group, "MPI_Comm_split_type") ? MPI_ERR_OTHER
                                             : PMPI_Comm_split_type(comm, type, key, info, part);
}

int MPI_Finalize() {
  const int code = PMPI_Finalize();
  const state& s = here();
  if (std::FILE* const f = s.file("a")) {
    for (std::size_t k = 0; k < kinds; ++k)
      if (s.calls[k] > 0) std::fprintf(f, "count %s %d %ld\n", names[k], s.rank, s.calls[k]);
    std::fclose(f);
  }
  return code;
}

}  // extern "C"

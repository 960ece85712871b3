// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The processes of an MPI job on this node, and whether one of them has died.

#include <array>
#include <cstdint>
#include <poll.h>
#include <unistd.h>
#include <vector>

#include "partita/base/system.hpp"
#include "partita/comm/mpi_call.hpp"

namespace partita::mpi::detail {

/// Notices that a process of the same node has ended, long before a launcher ends the others: Open MPI waits
/// for a second and then kills them, often without a word. Processes in another space of process numbers are
/// not watched, and none is on a system without file descriptors of processes.
class node_processes {
 public:
  /// Collective over `comm`, whose ranks name the processes.
  explicit node_processes(MPI_Comm comm) {
    MPI_Comm shared = MPI_COMM_NULL;
    check(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared), "MPI_Comm_split_type");
    const owned_comm node(shared, check_comm_name);
    int rank = 0;
    check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
    const process mine{rank, getpid(), base::system::process_namespace()};
    std::vector<process> all(static_cast<std::size_t>(node.size()));
    check(MPI_Allgather(mine.data(), 3, MPI_INT64_T, all.data(), 3, MPI_INT64_T, node.get()),
          "MPI_Allgather");
    for (const process& p : all)
      if (p[0] != rank && p[2] == mine[2] && p[2] != 0) watch(p);
  }
  node_processes(const node_processes&) = delete;
  node_processes& operator=(const node_processes&) = delete;
  ~node_processes() {
    for (const pollfd& f : files_) close(f.fd);
  }

  /// The rank of a process that has ended, or -1.
  int ended() {
    if (files_.empty() || poll(files_.data(), files_.size(), 0) <= 0) return -1;
    std::size_t k = 0;
    while (files_[k].revents == 0) ++k;
    return ranks_[k];
  }

 private:
  using process = std::array<std::int64_t, 3>;  ///< rank, process number, and the space of such numbers

  void watch(const process& p) {
    const int file = base::system::descriptor_of_process(static_cast<pid_t>(p[1]));
    if (file < 0) return;
    files_.push_back({file, POLLIN, 0});
    ranks_.push_back(static_cast<int>(p[0]));
  }

  std::vector<pollfd> files_;
  std::vector<int> ranks_;  ///< of each file
};

}  // namespace partita::mpi::detail

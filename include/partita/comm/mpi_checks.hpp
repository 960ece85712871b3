// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How the ranks of an MPI group compare their operations.

#include <vector>

#include "partita/comm/mpi_call.hpp"
#include "partita/comm/signature.hpp"

namespace partita::mpi::detail {

using partita::detail::signature;

/// Compares operations over a communicator of its own, with blocking calls.
class checker {
 public:
  checker(MPI_Comm comm, std::vector<int> world_ranks)
      : comm_(duplicate(comm, check_comm_name)),
        all_(world_ranks.size()),
        world_ranks_(std::move(world_ranks)) {}

  MPI_Comm comm() const { return comm_.get(); }

  /// Throws communication_error, the same on every rank, unless all ranks bring the same signature.
  void agree(const signature& mine) {
    check(MPI_Allgather(&mine, bytes, MPI_BYTE, all_.data(), bytes, MPI_BYTE, comm_.get()), "MPI_Allgather");
    partita::detail::require_agreement(all_, world_ranks_);
  }

  /// Throws communication_error on a rank that expects other counts than are sent.
  void agree_on_counts(const comm::collective& op, int rank) {
    counts_.resize(all_.size());
    check(MPI_Alltoall(op.input_counts.data(), 1, MPI_INT64_T, counts_.data(), 1, MPI_INT64_T, comm_.get()),
          "MPI_Alltoall");
    partita::detail::require_counts(op, counts_, rank, world_ranks_);
  }

  /// Throws communication_error unless the message that arrived is the one that `op` receives.
  void agree_on_message(const comm::collective& op, int rank, const signature& sent) const {
    if (sent.count != op.count || sent.type != static_cast<std::int32_t>(op.type))
      throw_error<communication_error>({"ranks disagree: rank ", name(rank), " calls ", describe(op), " for ",
                                        op.count, " elements, rank ", name(op.peer), " calls ", sent.text(),
                                        " with ", sent.count});
  }

 private:
  static constexpr int bytes = sizeof(signature);

  std::string name(int rank) const { return std::to_string(world_ranks_[static_cast<std::size_t>(rank)]); }

  owned_comm comm_;
  std::vector<signature> all_;
  std::vector<global_index> counts_;
  std::vector<int> world_ranks_;
};

}  // namespace partita::mpi::detail

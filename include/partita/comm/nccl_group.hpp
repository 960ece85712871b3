// SPDX-License-Identifier: Apache-2.0
#pragma once
/// One rank's view of an NCCL group, for host and device memory: the parent transport and the NCCL
/// communicator.

#include <span>
#include <vector>

#include "partita/comm/communicator.hpp"
#include "partita/comm/nccl_stream.hpp"
#include "partita/comm/signature.hpp"

namespace partita::nccl::detail {

/// A communicator over the parent for operations that are not recorded in the ledger.
inline communicator unaccounted(std::shared_ptr<comm::transport> parent) { return {std::move(parent), ""}; }

class group {
 public:
  /// `comm` is null for a group of one rank. `world_ranks` name the ranks in errors.
  group(std::shared_ptr<detail::nccl_stream> shared, std::shared_ptr<comm::transport> host,
        std::shared_ptr<owned_comm> comm, std::vector<int> world_ranks)
      : stream_(std::move(shared)),
        host_(std::move(host)),
        comm_(std::move(comm)),
        world_ranks_(std::move(world_ranks)) {}

  int rank() const { return host_->rank(); }
  int size() const { return host_->size(); }
  detail::nccl_stream& stream() const { return *stream_; }
  comm::transport& host() const { return *host_; }
  const std::shared_ptr<comm::transport>& shared_host() const { return host_; }
  const owned_comm& comm() const { return *comm_; }

  /// Splits the parent and the NCCL communicator alike. Collective over the group. Drains this rank's
  /// operations first: ncclCommSplit can deadlock next to pending ones. Communication over the parent: an
  /// all-gather of one world rank per member.
  std::shared_ptr<group> split(int color, int key, std::source_location where) const {
    stream_->require_alive();
    std::shared_ptr<comm::transport> host = host_->split(color, key, where);
    std::vector<int> members =
        unaccounted(host).all_gather(world_ranks_[static_cast<std::size_t>(rank())], where);
    std::shared_ptr<owned_comm> comm;
    if (comm_) {
      stream_->drain();
      ncclConfig_t config = configuration();
      const int nccl_color = members.size() > 1 ? members.front() : NCCL_SPLIT_NOCOLOR;
      comm = stream_->make("ncclCommSplit", comm_.get(), [&](ncclComm_t* made) {
        return ncclCommSplit(comm_->get(), nccl_color, host->rank(), made, &config);
      });
    }
    return std::make_shared<group>(stream_, std::move(host), std::move(comm), std::move(members));
  }

  /// Throws communication_error unless all ranks are about to start the same operation. Communication over
  /// the parent: an all-gather of signatures; for all_to_all also an all-to-all of the counts.
  void agree(const comm::collective& op) const {
    const auto mine = partita::comm::detail::signature_of(op);
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&mine);
    const auto all = unaccounted(host_).all_gather(std::span(bytes, sizeof(mine)), op.where);
    std::vector<partita::comm::detail::signature> signatures(static_cast<std::size_t>(size()));
    std::memcpy(signatures.data(), all.data(), all.size());
    partita::comm::detail::require_agreement(signatures, world_ranks_);
    if (op.kind != operation::all_to_all) return;
    const auto sent = unaccounted(host_).all_to_all(op.input_counts, op.where);
    partita::comm::detail::require_counts(op, sent, rank(), world_ranks_);
  }

 private:
  std::shared_ptr<detail::nccl_stream> stream_;
  std::shared_ptr<comm::transport> host_;
  std::shared_ptr<owned_comm> comm_;
  std::vector<int> world_ranks_;
};

}  // namespace partita::nccl::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What one rank has of a group over NCCL, whatever memory its operations are on: its end of the parent, and
/// of NCCL's communicator.

#include <span>
#include <vector>

#include "partita/comm/communicator.hpp"
#include "partita/comm/nccl_stream.hpp"
#include "partita/comm/signature.hpp"

namespace partita::nccl::detail {

/// The ranks of a parent, for operations that no ledger has.
inline communicator unaccounted(std::shared_ptr<transport> parent) { return {std::move(parent), ""}; }

class group {
 public:
  /// `comm` is null where the rank is alone. `world_ranks` are the ranks' names in errors.
  group(std::shared_ptr<detail::nccl_stream> shared, std::shared_ptr<transport> host,
        std::shared_ptr<owned_comm> comm, std::vector<int> world_ranks)
      : stream_(std::move(shared)),
        host_(std::move(host)),
        comm_(std::move(comm)),
        world_ranks_(std::move(world_ranks)) {}

  int rank() const { return host_->rank(); }
  int size() const { return host_->size(); }
  detail::nccl_stream& stream() const { return *stream_; }
  transport& host() const { return *host_; }
  const std::shared_ptr<transport>& shared_host() const { return host_; }
  const owned_comm& comm() const { return *comm_; }

  /// The parent and NCCL are split alike. Waits for this rank's operations: NCCL may dead-lock when it splits
  /// beside them. What travels over the parent: one world rank from each member.
  std::shared_ptr<group> split(int color, int key, std::source_location where) const {
    stream_->require_alive();
    std::shared_ptr<transport> host = host_->split(color, key, where);
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

  /// Throws communication_error unless all ranks are about to start the same operation. What travels over the
  /// parent: what each rank calls; of an all_to_all also how much it gives to each.
  void agree(const comm::collective& op) const {
    const auto mine = partita::detail::signature_of(op);
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&mine);
    const auto all = unaccounted(host_).all_gather(std::span(bytes, sizeof(mine)), op.where);
    std::vector<partita::detail::signature> signatures(static_cast<std::size_t>(size()));
    std::memcpy(signatures.data(), all.data(), all.size());
    partita::detail::require_agreement(signatures, world_ranks_);
    if (op.kind != operation::all_to_all) return;
    const auto sent = unaccounted(host_).all_to_all(op.input_counts, op.where);
    partita::detail::require_counts(op, sent, rank(), world_ranks_);
  }

 private:
  std::shared_ptr<detail::nccl_stream> stream_;
  std::shared_ptr<transport> host_;
  std::shared_ptr<owned_comm> comm_;
  std::vector<int> world_ranks_;
};

}  // namespace partita::nccl::detail

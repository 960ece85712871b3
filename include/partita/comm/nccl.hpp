// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Ranks with one GPU each, over NCCL. Set up from any communicator of the same ranks over memory of the
/// host: MPI on several nodes, MPI or threads on one.

#include "partita/comm/communicator.hpp"
#include "partita/comm/nccl_transport.hpp"

namespace partita::nccl {

/// The ranks of `parent`: operations on memory of the host are its, and on_memory(device_memory) those on the
/// device of `q`, which no other rank may use. Every rank of the parent must call, on the thread that uses
/// `q`.
///
/// Operations on the device are enqueued on a stream of their own that waits for the rank's queue where they
/// start, and for which the queue waits where they are waited for. The host does not wait until an operation
/// is done, but until NCCL has launched it: the communicator is one that does not block, for which NCCL
/// starts a thread an operation (15 to 50 us of the host, and connections to peers when they are first used).
/// A blocking one would launch sooner, and never return where a peer has failed. What fails there, and what
/// is not complete after the time limit, ends waits of `q`, and every later operation, with a
/// communication_error that names the operation, as does the failure of the parent. A checked communicator
/// also compares every operation between the ranks before it starts, at the price of a host's collective.
/// Throws communication_error when a call of NCCL fails, as where two ranks have the same device.
///
/// What travels over the parent: NCCL's 128 bytes from rank 0. The ledger has none of it.
/// Source: NVIDIA, NCCL user guide, "Creating a communicator with options" and "Fault tolerance".
inline communicator world(const communicator& parent, const device_queue<cuda_device>& q, options o = {},
                          std::source_location where = std::source_location::current()) {
  const std::shared_ptr<transport> host = parent.transport()->on_memory(nullptr);
  ncclUniqueId id{};
  if (host->rank() == 0) detail::check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  detail::unaccounted(host).broadcast(
      std::span(reinterpret_cast<std::uint8_t*>(id.internal), NCCL_UNIQUE_ID_BYTES), 0, where);

  int version = 0;
  detail::check(ncclGetVersion(&version), "ncclGetVersion");
  if (version < detail::least_version)
    throw communication_error("NCCL " + detail::version_text(version) + " is too old: partita needs " +
                              detail::version_text(detail::least_version));
  const auto stream = std::make_shared<detail::nccl_stream>(q, host, o);
  q.watch(stream);
  std::shared_ptr<detail::owned_comm> comm;
  if (host->size() > 1) {
    ncclConfig_t config = detail::configuration();
    comm = stream->make("ncclCommInitRankConfig", nullptr, [&](ncclComm_t* made) {
      return ncclCommInitRankConfig(made, host->size(), id, host->rank(), &config);
    });
  }
  std::vector<int> ranks(static_cast<std::size_t>(host->size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return parent.with_transport(std::make_shared<detail::host_transport>(
      std::make_shared<detail::group>(stream, host, std::move(comm), std::move(ranks))));
}

}  // namespace partita::nccl

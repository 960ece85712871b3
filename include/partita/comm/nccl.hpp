// SPDX-License-Identifier: Apache-2.0
#pragma once
/// One GPU per rank, over NCCL. Bootstrapped from any communicator of the same ranks over host memory: MPI
/// across nodes, MPI or threads within one.

#include "partita/comm/communicator.hpp"
#include "partita/comm/nccl_transport.hpp"

namespace partita::nccl {

/// Adds NCCL to `parent`: operations on host memory use the parent, those through on_memory(device_memory)
/// use NCCL on the device of `q`, which no other rank may use. Collective over `parent`, on the thread that
/// uses `q`.
///
/// Device operations are enqueued on a separate stream, ordered with the rank's queue by events at start and
/// wait. The host does not wait for completion, only for NCCL's launch: the communicator is nonblocking, for
/// which NCCL starts a thread per operation (15 to 50 us on the host, plus connection setup on first use). A
/// blocking communicator would launch faster but would hang if a peer failed. A failed operation, one that
/// exceeds the time limit, or a failure of the parent aborts waits of `q` and all later operations; the
/// communication_error names the operation. A checked communicator also compares every operation across ranks
/// before it starts, at the cost of a host collective. Throws communication_error if an NCCL call fails, e.g.
/// if two ranks use the same device.
///
/// Communication: broadcast of NCCL's 128-byte id over the parent, not recorded in the ledger. Source:
/// NVIDIA, NCCL user guide, "Creating a communicator with options" and "Fault tolerance".
inline communicator world(const communicator& parent, const device_queue<cuda_device>& q, options o = {},
                          std::source_location where = std::source_location::current()) {
  const std::shared_ptr<comm::transport> host = parent.transport()->on_memory(nullptr);
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

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Threads as MPI would be: transports that know memory of the host only, or take pointers to a device's
// without its queue, with staging in front of them.

#include "partita/comm/staged.hpp"
#include "partita/comm/threads.hpp"
#include "support/forwarding_transport.hpp"

namespace test_support {

struct host_only {};

/// Stages over another transport, as MPI's does: all that is not the host's, or, where an object of type
/// Access lets operations reach the device while it lives, what `staged_transport` stages even then.
template <class Access>
class staging_transport final : public forwarding_transport,
                                public std::enable_shared_from_this<staging_transport<Access>> {
 public:
  using forwarding_transport::forwarding_transport;

  std::uint64_t start(const partita::comm::collective& op) override {
    [[maybe_unused]] const Access access;
    return inner_->start(op);
  }
  void finish(const partita::comm::collective& op, std::uint64_t token) override {
    [[maybe_unused]] const Access access;
    inner_->finish(op, token);
  }
  std::shared_ptr<partita::comm::transport> split(int color, int key, std::source_location where) override {
    return std::make_shared<staging_transport>(inner_->split(color, key, where));
  }
  std::shared_ptr<partita::comm::transport> on_memory(
      std::shared_ptr<partita::comm::device_memory> memory) override {
    if (!memory) return this->shared_from_this();
    return std::make_shared<partita::comm::staged_transport>(this->shared_from_this(), std::move(memory),
                                                             !std::is_same_v<Access, host_only>);
  }
};

/// The ranks of `c`, which stage for memory of a device.
template <class Access = host_only>
partita::communicator staging(const partita::communicator& c) {
  return {std::make_shared<staging_transport<Access>>(c.transport()), c.axis(),
          std::shared_ptr<partita::ledger>(std::make_shared<partita::communicator>(c), &c.ledger())};
}

}  // namespace test_support

#pragma once
// Threads as MPI would be: transports that know memory of the host only, or take pointers to a device's
// without its queue, with staging in front of them.
#include <cuda_runtime_api.h>

#include "partita/comm/staged.hpp"
#include "partita/comm/threads.hpp"

namespace test_support {

/// Stages over another transport, as MPI's does. Where it is `aware` of devices, its operations reach their
/// memory at once, without regard to what is enqueued.
class staging_transport final : public partita::transport,
                                public std::enable_shared_from_this<staging_transport> {
 public:
  staging_transport(std::shared_ptr<partita::transport> inner, bool aware)
      : inner_(std::move(inner)), aware_(aware) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::uint64_t start(const partita::collective& op) override { return inner_->start(op); }
  void finish(const partita::collective& op, std::uint64_t token) override {
    if (!aware_) return inner_->finish(op, token);
    const stand_in::opened_arena opened;
    inner_->finish(op, token);
  }
  void abandon(const partita::collective& op, std::uint64_t token) noexcept override {
    inner_->abandon(op, token);
  }
  std::shared_ptr<partita::transport> split(int color, int key) override {
    return std::make_shared<staging_transport>(inner_->split(color, key), aware_);
  }
  std::shared_ptr<partita::transport> over(std::shared_ptr<partita::device_memory> memory) override {
    if (!memory) return shared_from_this();
    return std::make_shared<partita::staged_transport>(shared_from_this(), std::move(memory), aware_);
  }

 private:
  std::shared_ptr<partita::transport> inner_;
  bool aware_;
};

/// The ranks of `c`, which stage for memory of a device.
inline partita::communicator staging(const partita::communicator& c, bool aware = false) {
  return {std::make_shared<staging_transport>(c.model(), aware), c.axis(),
          std::shared_ptr<partita::ledger>(std::make_shared<partita::communicator>(c), &c.ledger())};
}

}  // namespace test_support

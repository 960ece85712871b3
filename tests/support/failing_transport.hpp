// SPDX-License-Identifier: Apache-2.0
#pragma once
// A transport of which one operation fails.

#include "support/forwarding_transport.hpp"

namespace test_support {

/// What goes wrong on a rank, in the operations of its world and of all groups that are split from it.
struct fault {
  std::optional<partita::operation> kind;  ///< none: nothing
  int after = 0;                           ///< so many of this kind succeed before
  bool shortens = false;                   ///< the operation expects an element too few; otherwise:
  std::function<void()> act = [] { throw std::runtime_error("the cable broke"); };
};

class failing_transport final : public forwarding_transport {
 public:
  failing_transport(std::shared_ptr<partita::comm::transport> inner, std::shared_ptr<fault> what)
      : forwarding_transport(std::move(inner)), fault_(std::move(what)) {}

  std::uint64_t start(const partita::comm::collective& op) override {
    if (!fault_->shortens || !is_due(op)) return inner_->start(op);
    shortened_ = inner_->start(shorter(op));
    return *shortened_;
  }
  void finish(const partita::comm::collective& op, std::uint64_t token) override {
    if (shortened_ == token) return inner_->finish(shorter(op), token);
    if (fault_->shortens || !is_due(op)) return inner_->finish(op, token);
    inner_->abandon(op, token);
    fault_->act();
  }
  std::shared_ptr<partita::comm::transport> split(int color, int key, std::source_location where) override {
    return std::make_shared<failing_transport>(inner_->split(color, key, where), fault_);
  }
  std::shared_ptr<partita::comm::transport> on_memory(
      std::shared_ptr<partita::comm::device_memory> memory) override {
    return std::make_shared<failing_transport>(inner_->on_memory(std::move(memory)), fault_);
  }

 private:
  bool is_due(const partita::comm::collective& op) {
    return fault_->kind == op.kind && size() > 1 && fault_->after-- == 0;
  }
  static partita::comm::collective shorter(partita::comm::collective op) {
    --op.count;
    return op;
  }

  std::shared_ptr<fault> fault_;
  std::optional<std::uint64_t> shortened_;
};

/// The same ranks as `c`, on this one of which `what` goes wrong.
inline partita::communicator failing(const partita::communicator& c, std::shared_ptr<fault> what) {
  return c.with_transport(std::make_shared<failing_transport>(c.transport(), std::move(what)));
}

}  // namespace test_support

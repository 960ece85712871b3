// SPDX-License-Identifier: Apache-2.0
#pragma once
// A transport that hands everything to another one: what a test changes, it overrides.

#include "partita/comm/communicator.hpp"

namespace test_support {

class forwarding_transport : public partita::comm::transport {
 public:
  explicit forwarding_transport(std::shared_ptr<partita::comm::transport> inner) : inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::uint64_t start(const partita::comm::collective& op) override { return inner_->start(op); }
  void finish(const partita::comm::collective& op, std::uint64_t token) override {
    inner_->finish(op, token);
  }
  void abandon(const partita::comm::collective& op, std::uint64_t token) noexcept override {
    inner_->abandon(op, token);
  }
  std::shared_ptr<partita::comm::transport> split(int color, int key, std::source_location where) override {
    return inner_->split(color, key, where);
  }
  std::shared_ptr<partita::comm::transport> on_memory(
      std::shared_ptr<partita::comm::device_memory> memory) override {
    return inner_->on_memory(std::move(memory));
  }
  void check() const override { inner_->check(); }

 protected:
  std::shared_ptr<partita::comm::transport> inner_;
};

}  // namespace test_support

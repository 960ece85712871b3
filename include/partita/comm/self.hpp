// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Communicator of a single rank.

#include "partita/comm/communicator.hpp"

namespace partita {

namespace comm::detail {

class self_transport final : public transport {
 public:
  explicit self_transport(std::shared_ptr<comm::device_memory> memory = nullptr)
      : memory_(std::move(memory)) {}

  int rank() const override { return 0; }
  int size() const override { return 1; }

  std::uint64_t start(const comm::collective& op) override {
    if (op.kind == operation::send || op.kind == operation::receive)
      base::throw_error<communication_error>(
          {describe(op), ": point-to-point messages need at least two ranks"});
    if (op.kind == operation::all_to_all && op.input_counts[0] != op.output_counts[0])
      base::throw_error<communication_error>({"rank 0 expects ", op.output_counts[0], " elements in ",
                                              describe(op), ", but sends itself ", op.input_counts[0]});
    if (op.input == nullptr || op.output == nullptr || op.count == 0) return 0;
    if (memory_)
      memory_->copy(op.input, op.output, op.bytes(op.count));
    else
      std::memcpy(op.output, op.input, op.bytes(op.count));
    return 0;
  }
  void finish(const comm::collective&, std::uint64_t) override {}
  void abandon(const comm::collective&, std::uint64_t) noexcept override {}
  std::shared_ptr<transport> split(int, int, std::source_location) override { return on_memory(memory_); }
  std::shared_ptr<transport> on_memory(std::shared_ptr<comm::device_memory> memory) override {
    return std::make_shared<self_transport>(std::move(memory));
  }

 private:
  std::shared_ptr<comm::device_memory> memory_;
};

}  // namespace comm::detail

namespace self {

/// A communicator of this rank alone (as MPI_COMM_SELF).
inline communicator world() {
  return communicator(std::make_shared<comm::detail::self_transport>(), "world");
}

}  // namespace self

}  // namespace partita

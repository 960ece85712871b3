// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Device memory over a host transport: data is staged through page-locked memory.

#include <vector>

#include "partita/comm/transport.hpp"

namespace partita::comm {

/// Transport for device memory on top of a host transport, `inner`.
///
/// start downloads what the rank sends and waits for that copy; work enqueued between start and finish
/// overlaps with the communication, and received data is uploaded in queue order. If `inner` accepts device
/// pointers (`direct`, e.g. GPU-aware MPI), operations without a reduction are passed through once the queue
/// has been synchronised; reductions are always staged, since `inner` computes them on the host.
class staged_transport final : public transport {
 public:
  staged_transport(std::shared_ptr<transport> inner, std::shared_ptr<device_memory> memory,
                   bool direct = false)
      : inner_(std::move(inner)), memory_(std::move(memory)), direct_(direct) {}
  staged_transport(const staged_transport&) = delete;
  staged_transport& operator=(const staged_transport&) = delete;
  /// Waits for pending uploads. Blocks of abandoned operations are leaked, since peers may still write to
  /// them.
  ~staged_transport() override {
    for (auto& pending : pending_) {
      if (!pending->free) {
        static_cast<void>(pending.release());
        continue;
      }
      try {
        memory_->synchronize(*pending->moved);
      } catch (const error&) {  // the device failed, or waits for ranks that failed
      }
    }
  }

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }

  std::uint64_t start(const collective& op) override {
    const std::uint64_t token = free_operation();
    pending_operation& pending = *pending_[token];
    pending.direct = direct_ && op.kind != operation::reduce_scatter && op.kind != operation::all_reduce;
    pending.inner = op;
    if (!pending.direct) stage(op, pending);
    if (pending.direct || sent_elements(op) > 0) {
      memory_->record(*pending.moved);
      memory_->synchronize(*pending.moved);
    }
    pending.token = inner_->start(pending.inner);
    return token;
  }

  void finish(const collective& op, std::uint64_t token) override {
    pending_operation& pending = *pending_[token];
    inner_->finish(pending.inner, pending.token);
    if (!pending.direct && received_elements(op) > 0) {
      memory_->upload(pending.inner.output, op.output, op.bytes(received_elements(op)));
      memory_->record(*pending.moved);
    }
    pending.free = true;
  }

  void abandon(const collective&, std::uint64_t token) noexcept override {
    inner_->abandon(pending_[token]->inner, pending_[token]->token);
  }
  std::shared_ptr<transport> split(int color, int key, std::source_location where) override {
    return std::make_shared<staged_transport>(inner_->split(color, key, where), memory_, direct_);
  }
  std::shared_ptr<transport> on_memory(std::shared_ptr<device_memory> memory) override {
    return inner_->on_memory(std::move(memory));
  }
  void check() const override { inner_->check(); }

 private:
  /// An operation in flight.
  struct pending_operation {
    explicit pending_operation(const device_memory& memory)
        : input(memory.make_host_block()), output(memory.make_host_block()), moved(memory.make_event()) {}

    std::unique_ptr<device_memory::host_block> input, output;
    std::unique_ptr<device_memory::event> moved;  ///< recorded after the last copy from or to these blocks
    collective inner;
    std::uint64_t token = 0;
    bool direct = false;
    bool free = true;
  };

  /// Number of elements that this rank sends, and receives.
  global_index sent_elements(const collective& op) const {
    switch (op.kind) {
      case operation::broadcast:
        return rank() == op.peer ? op.count : 0;
      case operation::reduce_scatter:
      case operation::all_to_all:
        return offset_of(op.input_counts, size());
      case operation::receive:
        return 0;
      default:
        return op.count;
    }
  }
  global_index received_elements(const collective& op) const {
    switch (op.kind) {
      case operation::broadcast:
        return rank() == op.peer ? 0 : op.count;
      case operation::all_gather:
      case operation::all_to_all:
        return offset_of(op.output_counts, size());
      case operation::send:
        return 0;
      default:
        return op.count;
    }
  }

  /// The lowest-numbered free slot, so that a repeated sequence of operations reuses blocks of the right
  /// size. Waits for its last upload.
  std::uint64_t free_operation() {
    std::size_t token = 0;
    while (token < pending_.size() && !pending_[token]->free) ++token;
    if (token == pending_.size()) pending_.push_back(std::make_unique<pending_operation>(*memory_));
    memory_->synchronize(*pending_[token]->moved);
    pending_[token]->free = false;
    return token;
  }

  /// Redirects the inner operation to host blocks and enqueues the download of what this rank sends.
  void stage(const collective& op, pending_operation& pending) const {
    const bool in_place = op.kind == operation::all_reduce;
    pending.inner.output = pending.output->reserve(op.bytes(in_place ? op.count : received_elements(op)));
    if (in_place) {
      memory_->download(op.output, pending.inner.output, op.bytes(sent_elements(op)));
    } else {
      std::byte* const input = pending.input->reserve(op.bytes(sent_elements(op)));
      memory_->download(op.input, input, op.bytes(sent_elements(op)));
      pending.inner.input = input;
    }
  }

  std::shared_ptr<transport> inner_;
  std::shared_ptr<device_memory> memory_;
  bool direct_;
  std::vector<std::unique_ptr<pending_operation>> pending_;
};

}  // namespace partita::comm

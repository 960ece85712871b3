// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Memory of a device over a transport that was made for memory of the host: what travels goes through
/// page-locked memory.

#include <vector>

#include "partita/comm/transport.hpp"

namespace partita::comm {

/// A transport for memory of a device over one of the host, `inner`, whose operations it uses.
///
/// start waits for the rank's queue where the rank sends something: that must lie on the host before it can
/// travel. Nothing else is waited for, so what is enqueued between start and finish runs while it travels;
/// what arrives is uploaded in the order of the queue. Where `inner` takes pointers to the device itself
/// (`direct`), operations that only move elements go there without a detour, after all work of the queue;
/// reductions take the detour all the same, since `inner` adds up on the host.
class staged_transport final : public transport {
 public:
  staged_transport(std::shared_ptr<transport> inner, std::shared_ptr<device_memory> memory,
                   bool direct = false)
      : inner_(std::move(inner)), memory_(std::move(memory)), direct_(direct) {}
  staged_transport(const staged_transport&) = delete;
  staged_transport& operator=(const staged_transport&) = delete;
  /// Waits for uploads that are under way. What was given up may be written by others as long as the program
  /// runs.
  ~staged_transport() override {
    for (auto& pending : pending_) {
      if (!pending->free) {
        static_cast<void>(pending.release());
        continue;
      }
      try {
        memory_->synchronize(*pending->moved);
      } catch (const error&) {  // the device does nothing any more, or waits for ranks that failed
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
  /// An operation under way.
  struct pending_operation {
    explicit pending_operation(const device_memory& memory)
        : input(memory.make_host_block()), output(memory.make_host_block()), moved(memory.make_event()) {}

    std::unique_ptr<device_memory::host_block> input, output;
    std::unique_ptr<device_memory::event> moved;  ///< behind the last copy from or to these blocks
    collective inner;
    std::uint64_t token = 0;
    bool direct = false;
    bool free = true;
  };

  /// Elements that this rank sends, and that it receives.
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

  /// The free one of the lowest number, so that a program that repeats itself finds blocks of the right
  /// sizes; its last upload is done.
  std::uint64_t free_operation() {
    std::size_t token = 0;
    while (token < pending_.size() && !pending_[token]->free) ++token;
    if (token == pending_.size()) pending_.push_back(std::make_unique<pending_operation>(*memory_));
    memory_->synchronize(*pending_[token]->moved);
    pending_[token]->free = false;
    return token;
  }

  /// Makes the inner operation one on blocks of the host, and enqueues the download of what this rank sends.
  void stage(const collective& op, pending_operation& pending) const {
    const bool in_place = op.kind == operation::broadcast || op.kind == operation::all_reduce;
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

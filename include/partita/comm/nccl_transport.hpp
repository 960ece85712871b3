// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Transports over NCCL: host memory through the parent transport, device memory through NCCL.

#include <span>
#include <vector>

#include "partita/comm/nccl_group.hpp"
#include "partita/comm/self.hpp"
#include "partita/comm/staged.hpp"

namespace partita::nccl::detail {

/// Operations on device memory. Each is enqueued as a whole when it starts, so that all ranks issue the same
/// NCCL calls in the same order; finish makes the rank's queue wait for it, and the host waits only for the
/// launch. Reductions add in rank order, bitwise equal to the other transports.
///
/// Point-to-point messages are staged through page-locked memory and the parent, since NCCL has no tags.
class device_transport final : public comm::transport {
 public:
  /// Throws communication_error if `memory` is not on the group's device.
  device_transport(std::shared_ptr<const group> g, std::shared_ptr<comm::device_memory> memory)
      : group_(std::move(g)), memory_(std::move(memory)), messages_(group_->shared_host(), memory_) {
    if (const comm::device_memory& mine = stream().memory(); mine.name() != memory_->name())
      throw communication_error("NCCL was set up for " + mine.name() + ", not for " + memory_->name());
  }

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  void check() const override { stream().require_alive(); }

  std::uint64_t start(const comm::collective& op) override {
    stream().require_alive();
    if (is_message(op)) return messages_.start(op);
    if (stream().is_together() && (op.kind == operation::reduce_scatter || op.kind == operation::all_reduce))
      throw communication_error(describe(op) + " cannot start together with other operations");
    if (stream().settings().checked) group_->agree(op);
    pending_operation& pending = stream().open(op, *memory_);
    try {
      enqueue(op);
    } catch (...) {  // enqueued parts may still use the caller's memory
      wait_on(pending);
      throw;
    }
    stream().close(pending);
    return reinterpret_cast<std::uintptr_t>(&pending);
  }
  void finish(const comm::collective& op, std::uint64_t token) override {
    if (!is_message(op)) {
      pending_operation& pending = *reinterpret_cast<pending_operation*>(token);
      memory_->wait_on(pending.done);
      pending.waited_for = true;
    }
    stream().require_alive();
    if (is_message(op)) messages_.finish(op, token);
  }
  void abandon(const comm::collective& op, std::uint64_t token) noexcept override {
    stream().give_up("a rank gave up its " + describe(op) + " before it was complete");
    if (is_message(op)) return messages_.abandon(op, token);
    wait_on(*reinterpret_cast<pending_operation*>(token));
  }
  void open_together() override {
    stream().require_alive();
    stream().open_together();
  }
  void close_together() override { stream().close_together(group_->comm()); }
  std::shared_ptr<comm::transport> split(int color, int key, std::source_location where) override {
    return on_group_memory(group_->split(color, key, where), memory_);
  }
  std::shared_ptr<comm::transport> on_memory(std::shared_ptr<comm::device_memory> memory) override {
    return on_group_memory(group_, std::move(memory));
  }

  /// The group's transport for device memory, or for host memory if `memory` is null.
  static std::shared_ptr<comm::transport> on_group_memory(std::shared_ptr<const group> g,
                                                          std::shared_ptr<comm::device_memory> memory);

 private:
  struct piece {
    std::byte* at;
    global_index count;
  };

  static bool is_message(const comm::collective& op) {
    return op.kind == operation::send || op.kind == operation::receive;
  }
  static std::byte* at(const void* memory, const comm::collective& op, global_index offset) {
    return static_cast<std::byte*>(const_cast<void*>(memory)) + op.bytes(offset);
  }
  detail::nccl_stream& stream() const { return group_->stream(); }

  /// Makes the rank's queue wait for everything enqueued on the stream.
  void wait_on(pending_operation& pending) noexcept {
    try {
      stream().close(pending);
      memory_->wait_on(pending.done);
    } catch (const device_error&) {  // the device has failed
    }
  }

  void settle(const comm::collective& op, ncclResult_t code, const char* call) const {
    stream().settle(group_->comm(), code, [&] {
      return describe(op) + partita::comm::detail::text_of_group(op.axis) + ": " + call;
    });
  }

  void enqueue(const comm::collective& op) {
    switch (op.kind) {
      case operation::broadcast: {
        std::byte* const here = at(rank() == op.peer ? op.input : op.output, op, 0);
        return settle(op,
                      ncclBroadcast(here, here, elements(op.count), datatype(op.type), op.peer,
                                    group_->comm().get(), stream().get()),
                      "ncclBroadcast");
      }
      case operation::all_gather:
        return gather(op, op.input, op.output_counts);
      case operation::all_to_all: {
        const interval mine = block(op.input_counts, rank());
        stream().memory().copy(at(op.input, op, mine.begin),
                               at(op.output, op, block(op.output_counts, rank()).begin),
                               op.bytes(mine.size()));
        return exchange(
            op, [&](int q) { return piece_of(op, op.input, block(op.input_counts, q)); },
            [&](int q) { return piece_of(op, op.output, block(op.output_counts, q)); });
      }
      case operation::reduce_scatter:
        return reduce(
            op, op.input, [&](int q) { return block(op.input_counts, q); }, op.output);
      case operation::all_reduce: {
        const auto share = [&](int q) { return comm::share_of(op.count, q, size()); };
        reduce(op, op.output, share, at(op.output, op, share(rank()).begin));
        shares_.clear();
        for (int q = 0; q < size(); ++q) shares_.push_back(share(q).size());
        return gather(op, at(op.output, op, share(rank()).begin), shares_);
      }
      case operation::send:
      case operation::receive:
        return;
    }
  }

  static std::size_t elements(global_index count) { return static_cast<std::size_t>(count); }
  static interval block(std::span<const global_index> counts, int q) {
    const global_index begin = comm::offset_of(counts, q);
    return {begin, begin + counts[static_cast<std::size_t>(q)]};
  }
  static piece piece_of(const comm::collective& op, const void* memory, interval which) {
    return {at(memory, op, which.begin), which.size()};
  }

  /// Sends to(q) to and receives from(q) from every other rank q, in one group call; empty pieces are
  /// skipped.
  template <class To, class From>
  void exchange(const comm::collective& op, To to, From from) const {
    const ncclComm_t comm = group_->comm().get();
    call_group calls;
    for (int q = 0; q < size() && calls.healthy(); ++q) {
      if (q == rank()) continue;
      if (const piece p = to(q); p.count > 0)
        calls.add(ncclSend(p.at, elements(p.count), datatype(op.type), q, comm, stream().get()), "ncclSend");
      if (const piece p = from(q); p.count > 0)
        calls.add(ncclRecv(p.at, elements(p.count), datatype(op.type), q, comm, stream().get()), "ncclRecv");
    }
    const ncclResult_t code = calls.close();
    settle(op, code, calls.last());
  }

  /// op.output = the blocks of all ranks; `mine` is this rank's.
  void gather(const comm::collective& op, const void* mine, std::span<const global_index> counts) const {
    if (std::ranges::all_of(counts, [&](global_index n) { return n == counts.front(); }))
      return settle(op,
                    ncclAllGather(mine, op.output, elements(counts.front()), datatype(op.type),
                                  group_->comm().get(), stream().get()),
                    "ncclAllGather");
    const interval own = block(counts, rank());
    stream().memory().copy(mine, at(op.output, op, own.begin), op.bytes(own.size()));
    exchange(
        op,
        [&](int) {
          return piece{at(mine, op, 0), own.size()};
        },
        [&](int q) { return piece_of(op, op.output, block(counts, q)); });
  }

  /// sum = reduction over ranks, in rank order, of their block rank() of `input`.
  template <class Blocks>
  void reduce(const comm::collective& op, const void* input, Blocks blocks, void* sum) {
    const interval mine = blocks(rank());
    std::byte* const scratch = stream().scratch(elements(size()) * op.bytes(mine.size()));
    const auto taken = [&](int q) {
      return piece{scratch + elements(q) * op.bytes(mine.size()), mine.size()};
    };
    exchange(
        op, [&](int q) { return piece_of(op, input, blocks(q)); }, taken);
    sources_.clear();
    for (int q = 0; q < size(); ++q)
      sources_.push_back(q == rank() ? at(input, op, mine.begin) : taken(q).at);
    stream().memory().reduce(op.type, op.reduce, sources_, sum, mine.size());
  }

  std::shared_ptr<const group> group_;
  std::shared_ptr<comm::device_memory> memory_;
  comm::staged_transport messages_;
  std::vector<global_index> shares_;
  std::vector<const void*> sources_;
};

/// Operations on host memory, forwarded to the parent.
class host_transport final : public comm::transport {
 public:
  explicit host_transport(std::shared_ptr<const group> g) : group_(std::move(g)) {}

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  void check() const override { group_->host().check(); }

  std::uint64_t start(const comm::collective& op) override { return group_->host().start(op); }
  void finish(const comm::collective& op, std::uint64_t token) override { group_->host().finish(op, token); }
  void abandon(const comm::collective& op, std::uint64_t token) noexcept override {
    group_->host().abandon(op, token);
  }
  std::shared_ptr<comm::transport> split(int color, int key, std::source_location where) override {
    return std::make_shared<host_transport>(group_->split(color, key, where));
  }
  std::shared_ptr<comm::transport> on_memory(std::shared_ptr<comm::device_memory> memory) override {
    return device_transport::on_group_memory(group_, std::move(memory));
  }

 private:
  std::shared_ptr<const group> group_;
};

inline std::shared_ptr<comm::transport> device_transport::on_group_memory(
    std::shared_ptr<const group> g, std::shared_ptr<comm::device_memory> memory) {
  if (!memory) return std::make_shared<host_transport>(std::move(g));
  if (g->size() == 1) return std::make_shared<partita::comm::detail::self_transport>(std::move(memory));
  return std::make_shared<device_transport>(std::move(g), std::move(memory));
}

}  // namespace partita::nccl::detail

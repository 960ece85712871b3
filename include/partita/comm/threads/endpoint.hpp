// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A rank's endpoint in a thread_group: copies and reductions on posted buffers, in host memory or on a
/// shared device. On a device the host never blocks; a rank's stream waits for events on its peers' streams.

#include <array>
#include <vector>

#include "partita/comm/device_memory.hpp"

namespace partita::comm::detail {

/// A rank's progress in an operation, as events. Unused on the host, where calls are synchronous.
struct operation_events {
  enum stage : std::size_t {
    posted,   ///< its send buffer is ready
    reduced,  ///< its share of an all-reduce is reduced
    read      ///< it has read its peers' buffers
  };
  struct event {
    std::unique_ptr<comm::device_memory::event> point;
    bool recorded = false;
  };

  event& operator[](stage s) { return of_stage[s]; }
  const event& operator[](stage s) const { return of_stage[s]; }

  std::array<event, 3> of_stage;
};

class thread_endpoint;

/// A rank's posted operation; empty while `endpoint` is null.
struct posted_operation {
  comm::collective op;
  std::shared_ptr<const thread_endpoint> endpoint;
};

/// One rank of a thread_group, with its queue and events.
class thread_endpoint {
 public:
  /// Maximum number of operations of a group in flight.
  static constexpr std::uint64_t in_flight = 8;

  /// `memory` is null if buffers are in host memory.
  explicit thread_endpoint(int rank, std::shared_ptr<comm::device_memory> memory = nullptr)
      : rank_(rank), memory_(std::move(memory)) {
    for (operation_events& e : events_) e = make_events();
  }

  int rank() const { return rank_; }
  bool on_host() const { return memory_ == nullptr; }
  /// " on cuda device 0"; empty on the host.
  std::string device_name() const { return memory_ ? " on " + memory_->name() : ""; }
  bool shares_place_with(const thread_endpoint& other) const {
    return memory_ && other.memory_ ? memory_->name() == other.memory_->name() : memory_ == other.memory_;
  }

  /// Events of operation `sequence`.
  operation_events& events(std::uint64_t sequence) { return events_[sequence % in_flight]; }
  const operation_events& events(std::uint64_t sequence) const { return events_[sequence % in_flight]; }
  /// Events for a message, reused from return_events().
  std::unique_ptr<operation_events> borrow_events() {
    if (spare_.empty()) return std::make_unique<operation_events>(make_events());
    std::unique_ptr<operation_events> events = std::move(spare_.back());
    spare_.pop_back();
    return events;
  }
  void return_events(std::unique_ptr<operation_events> events) { spare_.push_back(std::move(events)); }

  /// Records that the work producing the send buffer is enqueued, and resets the later stages.
  void begin(operation_events& mine) const {
    mine[operation_events::reduced].recorded = mine[operation_events::read].recorded = false;
    record(mine, operation_events::posted);
  }
  void record(operation_events& mine, operation_events::stage s) const {
    if (memory_) memory_->record(*mine[s].point);
    mine[s].recorded = true;
  }
  /// Makes this rank's queue wait for that stage, if it was recorded.
  void wait_on(const operation_events& events, operation_events::stage s) const {
    if (memory_ && events[s].recorded) memory_->wait_on(*events[s].point);
  }
  /// The same for every other rank in operation `sequence`.
  void wait_on(std::span<const posted_operation> posts, std::uint64_t sequence,
               operation_events::stage s) const {
    for (const posted_operation& p : posts)
      if (p.endpoint && p.endpoint.get() != this) wait_on(p.endpoint->events(sequence), s);
  }

  void copy(const void* from, void* to, std::size_t bytes) const {
    if (bytes == 0) return;
    if (memory_)
      memory_->copy(from, to, bytes);
    else
      std::memcpy(to, from, bytes);
  }

  /// Reduces the share of `rank` in an all-reduce in place: until then no other rank reads that part of any
  /// buffer.
  void reduce_share(std::span<const posted_operation> posts, int rank) {
    const comm::collective& op = posts[static_cast<std::size_t>(rank)].op;
    const interval share = comm::share_of(op.count, rank, static_cast<int>(posts.size()));
    sources_.clear();
    for (const posted_operation& p : posts) sources_.push_back(at(p.op.output, op, share.begin));
    reduce(op, at(op.output, op, share.begin), share.size());
  }

  /// Copies or reduces what `rank` receives in an operation other than broadcast; for all_reduce, the other
  /// ranks' shares.
  void collect(std::span<const posted_operation> posts, int rank) {
    const comm::collective& op = posts[static_cast<std::size_t>(rank)].op;
    if (op.kind == operation::reduce_scatter) {
      sources_.clear();
      for (const posted_operation& p : posts)
        sources_.push_back(at(p.op.input, op, comm::offset_of(op.input_counts, rank)));
      return reduce(op, op.output, op.count);
    }
    const int size = static_cast<int>(posts.size());
    for (int q = 0; q < size; ++q) {
      const comm::collective& sent = posts[static_cast<std::size_t>(q)].op;
      if (op.kind == operation::all_reduce) {
        const interval share = comm::share_of(op.count, q, size);
        if (q != rank)
          copy(at(sent.output, op, share.begin), at(op.output, op, share.begin), op.bytes(share.size()));
        continue;
      }
      const global_index begin =
          op.kind == operation::all_to_all ? comm::offset_of(sent.input_counts, rank) : 0;
      copy(at(sent.input, op, begin), at(op.output, op, comm::offset_of(op.output_counts, q)),
           op.bytes(op.output_counts[static_cast<std::size_t>(q)]));
    }
  }

 private:
  static char* at(void* base, const comm::collective& op, global_index offset) {
    return static_cast<char*>(base) + op.bytes(offset);
  }
  static const char* at(const void* base, const comm::collective& op, global_index offset) {
    return static_cast<const char*>(base) + op.bytes(offset);
  }

  /// to = reduction of the sources, in rank order.
  void reduce(const comm::collective& op, void* to, global_index count) const {
    if (count == 0) return;
    if (memory_)
      memory_->reduce(op.type, op.reduce, sources_, to, count);
    else
      comm::reduce_in_order(op.type, op.reduce, sources_, to, count);
  }

  operation_events make_events() const {
    operation_events events;
    if (memory_)
      for (auto& e : events.of_stage) e.point = memory_->make_event();
    return events;
  }

  int rank_;
  std::shared_ptr<comm::device_memory> memory_;
  std::array<operation_events, in_flight> events_;
  std::vector<std::unique_ptr<operation_events>> spare_;
  std::vector<const void*> sources_;
};

}  // namespace partita::comm::detail

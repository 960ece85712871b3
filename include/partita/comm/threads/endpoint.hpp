// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A rank's end of a thread_group: how it works on what its peers posted, in memory of the host or of a
/// device that the ranks share. On a device the host waits for nothing: one rank's stream waits for events in
/// the streams of others.

#include <array>
#include <vector>

#include "partita/comm/device_memory.hpp"

namespace partita::detail {

/// How far a rank has come in an operation, as events. On the host, work is done when a call returns, and
/// there is nothing to wait for.
struct operation_events {
  enum stage : std::size_t {
    posted,   ///< what it sends is written
    reduced,  ///< its share of an all-reduce is
    read      ///< it has read what the others send
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

/// What a rank brings to an operation; nothing while it has no endpoint.
struct posted_operation {
  comm::collective op;
  std::shared_ptr<const thread_endpoint> endpoint;
};

class thread_endpoint {
 public:
  /// How many operations of a group may be in flight.
  static constexpr std::uint64_t in_flight = 8;

  /// `memory`: null where operations are on memory of the host.
  explicit thread_endpoint(int rank, std::shared_ptr<comm::device_memory> memory = nullptr)
      : rank_(rank), memory_(std::move(memory)) {
    for (operation_events& e : events_) e = make_events();
  }

  int rank() const { return rank_; }
  bool on_host() const { return memory_ == nullptr; }
  /// " on cuda device 0", nothing for the host.
  std::string device_name() const { return memory_ ? " on " + memory_->name() : ""; }
  bool shares_place_with(const thread_endpoint& other) const {
    return memory_ && other.memory_ ? memory_->name() == other.memory_->name() : memory_ == other.memory_;
  }

  /// Events of operation number `sequence`.
  operation_events& events(std::uint64_t sequence) { return events_[sequence % in_flight]; }
  const operation_events& events(std::uint64_t sequence) const { return events_[sequence % in_flight]; }
  /// Events for a message, used again when they were returned.
  std::unique_ptr<operation_events> borrow_events() {
    if (spare_.empty()) return std::make_unique<operation_events>(make_events());
    std::unique_ptr<operation_events> events = std::move(spare_.back());
    spare_.pop_back();
    return events;
  }
  void return_events(std::unique_ptr<operation_events> events) { spare_.push_back(std::move(events)); }

  /// What I send is written by work that my queue has; nothing else has happened yet.
  void begin(operation_events& mine) const {
    mine[operation_events::reduced].recorded = mine[operation_events::read].recorded = false;
    record(mine, operation_events::posted);
  }
  void record(operation_events& mine, operation_events::stage s) const {
    if (memory_) memory_->record(*mine[s].point);
    mine[s].recorded = true;
  }
  /// Work given to my queue from now on begins after that stage, if it was recorded.
  void wait_on(const operation_events& events, operation_events::stage s) const {
    if (memory_ && events[s].recorded) memory_->wait_on(*events[s].point);
  }
  /// The same for every other rank in operation number `sequence`.
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

  /// The share of `rank` in an all-reduce, in place: nobody else reads it in the others' buffers, nor that
  /// rank's own before it is reduced.
  void reduce_share(std::span<const posted_operation> posts, int rank) {
    const comm::collective& op = posts[static_cast<std::size_t>(rank)].op;
    const interval share = comm::share_of(op.count, rank, static_cast<int>(posts.size()));
    sources_.clear();
    for (const posted_operation& p : posts) sources_.push_back(at(p.op.output, op, share.begin));
    reduce(op, at(op.output, op, share.begin), share.size());
  }

  /// What `rank` receives in an operation other than broadcast; in an all-reduce the others' shares.
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

  /// to = the reduction of the sources, in rank order.
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

}  // namespace partita::detail

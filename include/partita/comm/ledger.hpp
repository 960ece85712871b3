// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Record of what a rank receives, by phase, operation and axis.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "partita/comm/operation.hpp"

namespace partita {

/// Number of elements and messages.
struct traffic {
  global_index words = 0;
  global_index messages = 0;

  friend constexpr traffic operator+(traffic a, traffic b) {
    return {a.words + b.words, a.messages + b.messages};
  }
  friend constexpr traffic operator-(traffic a, traffic b) {
    return {a.words - b.words, a.messages - b.messages};
  }
  constexpr traffic& operator+=(traffic b) { return *this = *this + b; }
  friend constexpr traffic operator*(global_index k, traffic a) { return {k * a.words, k * a.messages}; }
  friend constexpr bool operator==(traffic, traffic) = default;
};

namespace comm {

/// Observes the progress of long work: the amount done, and the total. Called on the verb's thread.
using progress = std::function<void(global_index done, global_index all)>;

/// Traffic received by rank `rank` of `size`, with one message per contributing rank:
///
///     broadcast               count, except on the root
///     all_gather, all_to_all  the blocks of the other ranks
///     reduce_scatter          size - 1 blocks of its own size
///     all_reduce              a reduce-scatter and an all-gather of the shares
///     receive                 the message
inline traffic received(const comm::collective& op, int rank, int size) {
  const auto from_others = [rank, size](std::span<const global_index> counts) {
    traffic v;
    for (int q = 0; q < size; ++q)
      if (q != rank && counts[static_cast<std::size_t>(q)] > 0) v += {counts[static_cast<std::size_t>(q)], 1};
    return v;
  };
  const auto of_each = [size](global_index block) {
    return block > 0 ? (size - 1) * traffic{block, 1} : traffic{};
  };
  switch (op.kind) {
    case operation::broadcast:
      return rank == op.peer || op.count == 0 ? traffic{} : traffic{op.count, 1};
    case operation::all_gather:
    case operation::all_to_all:
      return from_others(op.output_counts);
    case operation::reduce_scatter:
      return of_each(op.count);
    case operation::all_reduce: {
      traffic v = of_each(comm::share_of(op.count, rank, size).size());
      for (int q = 0; q < size; ++q)
        if (const auto n = comm::share_of(op.count, q, size).size(); q != rank && n > 0) v += {n, 1};
      return v;
    }
    case operation::send:
      return {};
    case operation::receive:
      return {op.count, 1};
  }
  return {};
}

/// Total for one phase, operation and axis.
struct ledger_entry {
  std::string phase;
  operation kind{};
  std::string axis;
  traffic received;
  global_index bytes = 0;
  double seconds = 0;
};

/// What a rank did and when, in seconds of its ledger's clock: a span, or an operation. The latter is in
/// flight from `begin` to `end`, and waited for from `wait` on.
struct event {
  std::string name;               ///< of an operation: its phase
  std::optional<operation> kind;  ///< for operations only
  std::string axis;
  double begin = 0, wait = 0, end = 0;
  global_index bytes = 0;
};

}  // namespace comm

/// Communication record of one rank, shared by all its communicators. Not thread-safe.
class ledger {
 public:
  void enter(const comm::collective& op, const std::string& axis, traffic v, double seconds) {
    add({phase_, op.kind, axis, v, v.words * static_cast<global_index>(comm::size_of(op.type)), seconds});
  }

  /// The time in seconds, from std::chrono::steady_clock unless the rank has another clock.
  double seconds() const {
    if (clock_) return clock_();
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  void use_clock(std::function<double()> clock) { clock_ = std::move(clock); }

  /// Records events from now on, at most `most`; clear() keeps them.
  void keep_events(std::size_t most) { most_events_ = most; }
  bool keeps_events() const { return events_.size() < most_events_; }
  void keep(comm::event e) {
    if (!keeps_events()) return;
    make_room(open_spans_ + 1);
    events_.push_back(std::move(e));
  }
  /// Reserves memory for the event of a span, because its end must not throw.
  void begin_span() {
    make_room(open_spans_ + 1);
    ++open_spans_;
  }
  void end_span(comm::event e) noexcept {
    --open_spans_;
    if (keeps_events()) events_.push_back(std::move(e));
  }
  const std::vector<comm::event>& events() const { return events_; }

  /// Adds `e` to the entry with the same phase, operation and axis.
  void add(const comm::ledger_entry& e) {
    const auto same = std::ranges::find_if(entries_, [&](const comm::ledger_entry& m) {
      return m.kind == e.kind && m.phase == e.phase && m.axis == e.axis;
    });
    if (same == entries_.end()) return entries_.push_back(e);
    same->received += e.received;
    same->bytes += e.bytes;
    same->seconds += e.seconds;
  }

  /// Sets the phase under which subsequent operations are recorded.
  void set_phase(std::string_view phase) { phase_ = phase; }
  const std::string& phase() const { return phase_; }
  void swap_phase(std::string& other) noexcept { phase_.swap(other); }

  const std::vector<comm::ledger_entry>& entries() const { return entries_; }
  /// Removes the entries and resets the times of phases.
  void clear() {
    entries_.clear();
    for (phase_time& t : times_) t.seconds = 0;  // an open phase needs its own entry when it ends
  }

  /// The time spent in phase_scopes of this name, including communication.
  double seconds_in(std::string_view phase) const {
    for (const phase_time& t : times_)
      if (t.phase == phase) return t.seconds;
    return 0;
  }
  /// Allocates no memory if the phase already has a time.
  void add_seconds(std::string_view phase, double seconds) {
    for (phase_time& t : times_)
      if (t.phase == phase) {
        t.seconds += seconds;
        return;
      }
    times_.push_back({std::string(phase), seconds});
  }

  /// Sets the observer of the entries this rank sends while a matrix is distributed; none by default.
  void observe(comm::progress observer) { observer_ = std::move(observer); }
  const comm::progress& observer() const { return observer_; }

  /// Sum over the entries for which keep(entry) is true.
  template <class Keep>
  traffic total(Keep keep) const {
    traffic v;
    for (const comm::ledger_entry& e : entries_)
      if (keep(e)) v += e.received;
    return v;
  }
  traffic total() const {
    return total([](const comm::ledger_entry&) { return true; });
  }

 private:
  struct phase_time {
    std::string phase;
    double seconds;
  };

  void make_room(std::size_t events) {
    if (events_.capacity() - events_.size() < events)
      events_.reserve(std::max(2 * events_.capacity(), events_.size() + events));
  }

  std::vector<comm::ledger_entry> entries_;
  std::vector<phase_time> times_;
  std::vector<comm::event> events_;
  std::size_t most_events_ = 0, open_spans_ = 0;
  std::string phase_ = "setup";
  std::function<double()> clock_;
  comm::progress observer_;
};

namespace comm {

/// Records the time of its scope as an event, if the ledger records events.
class span {
 public:
  span(ledger& l, std::string_view name) : ledger_(l), name_(name), is_kept_(l.keeps_events()) {
    if (!is_kept_) return;
    event_.name = name;
    l.begin_span();
  }
  span(const span&) = delete;
  span& operator=(const span&) = delete;
  ~span() {
    if (!is_kept_) return;
    event_.begin = event_.wait = begin_;
    event_.end = ledger_.seconds();
    ledger_.end_span(std::move(event_));
  }
  std::string_view name() const { return name_; }
  double begin() const { return begin_; }

 private:
  ledger& ledger_;
  std::string_view name_;
  bool is_kept_;
  event event_;
  double begin_ = ledger_.seconds();
};

/// Sets the phase for the scope of this object, then restores the previous one and adds the time to the
/// phase. The scope is a span of that name, which must outlive it.
class phase_scope {
 public:
  phase_scope(ledger& l, std::string_view phase) : ledger_(l), other_(phase), span_(l, phase) {
    l.add_seconds(phase, 0);
    l.swap_phase(other_);
  }
  phase_scope(const phase_scope&) = delete;
  phase_scope& operator=(const phase_scope&) = delete;
  ~phase_scope() {
    ledger_.add_seconds(span_.name(), ledger_.seconds() - span_.begin());
    ledger_.swap_phase(other_);
  }

 private:
  ledger& ledger_;
  std::string other_;  ///< the phase inside the scope, afterwards the one before
  span span_;
};

}  // namespace comm

}  // namespace partita

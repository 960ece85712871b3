// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A group of thread ranks. Ranks post their buffers and peers read them in place, so a rank leaves an
/// operation only when no peer is reading its memory: on the host, when its peers have finished; on a
/// device, when its queue has been made to wait for them. For small host operations the last rank to arrive
/// performs the whole operation, so that the others wake only once.

#include <algorithm>
#include <array>

#include "partita/comm/signature.hpp"
#include "partita/comm/threads/mailbox.hpp"

namespace partita::comm::detail {

/// A group of ranks that are threads of one process.
class thread_group : public rendezvous {
 public:
  /// Operation s of the group uses slot s mod in_flight, which is recycled when every rank has left it. A
  /// rank that starts it leaves s - in_flight first, if it has not yet, as if it waited for that operation.
  static constexpr std::uint64_t in_flight = thread_endpoint::in_flight;

  thread_group(std::shared_ptr<thread_world> world, std::vector<int> world_ranks)
      : rendezvous(std::move(world), std::move(world_ranks)), next_(index(size()), 0) {
    for (std::uint64_t s = 0; s < in_flight; ++s) slots_[s].reset(s, index(size()));
  }

  std::uint64_t start(const std::shared_ptr<thread_endpoint>& me, const comm::collective& op) {
    lock held(mutex);
    if (op.kind == operation::receive) return messages_.receive(*me, op);
    if (op.kind == operation::send) return messages_.send(me, op);
    const int rank = me->rank();
    const std::uint64_t sequence = next_[index(rank)]++;
    slot& s = slots_[sequence % in_flight];
    posted_operation& mine = s.posts[index(rank)];
    if (s.sequence != sequence && mine.endpoint && !s.left[index(rank)]) {
      const comm::collective oldest = mine.op;
      held.unlock();
      finish(*me, oldest, sequence - in_flight);
      held.lock();
    }
    ++waiting_for_slot_;
    wait(
        held, rank, op, [&] { return s.sequence == sequence; }, [&](int q) { return !s.left[index(q)]; });
    --waiting_for_slot_;
    for (const posted_operation& first : s.posts) {
      if (!first.endpoint) continue;
      require_match(held, {op, me}, first);
      break;
    }
    me->begin(me->events(sequence));
    mine = {op, me};
    const bool complete = ++s.arrived == size();
    try {
      if (complete && is_small(s)) do_for_all(s, *me);
    } catch (...) {  // no peer may read memory that this rank frees
      mine = {};
      --s.arrived;
      throw;
    }
    held.unlock();  // so that woken ranks do not contend for the lock
    if (op.kind == operation::broadcast ? op.peer == rank : complete) changed.notify_all();
    return sequence;
  }

  void finish(thread_endpoint& me, const comm::collective& op, std::uint64_t token) {
    lock held(mutex);
    if (op.kind == operation::send) return messages_.finish_send(held, me, op, token);
    if (op.kind == operation::receive) return messages_.finish_receive(held, me, op, token);
    slot& s = slots_[token % in_flight];
    if (s.sequence != token || s.left[index(me.rank())]) return;  // a later start has waited for it
    guarded(
        held, s.readers,
        [&] { op.kind == operation::broadcast ? broadcast(held, s, me, op) : exchange(held, s, me, op); },
        [&] { wait_on_readers(s, me); });
    s.left[index(me.rank())] = 1;
    for (const char left : s.left)
      if (!left) return;
    s.reset(s.sequence + in_flight, index(size()));
    const bool awaited = waiting_for_slot_ > 0;
    held.unlock();
    if (awaited) changed.notify_all();
  }

  void abandon(thread_endpoint& me, const comm::collective& op, std::uint64_t token) noexcept {
    world()->poison("a rank gave up its " + describe(op) + " before it was complete");
    lock held(mutex);
    try {
      if (op.kind == operation::receive) return;
      if (op.kind == operation::send) return messages_.abandon_send(held, me, token);
      slot& s = slots_[token % in_flight];
      if (s.sequence != token) return;
      wait_for_readers(held, s.readers);
      wait_on_readers(s, me);
    } catch (const device_error&) {  // the device has failed: no peer reads from it
    }
  }

  /// The group of `members` (ranks of this group) formed by split `sequence` under `color`.
  std::shared_ptr<thread_group> subgroup(std::uint64_t sequence, int color, const std::vector<int>& members) {
    const lock held(mutex);
    auto at = forming_.begin();
    while (at != forming_.end() && (at->sequence != sequence || at->color != color)) ++at;
    if (at == forming_.end()) {
      std::vector<int> ranks;
      for (int m : members) ranks.push_back(world_ranks()[index(m)]);
      auto group = std::make_shared<thread_group>(world(), std::move(ranks));
      world()->enlist(group);
      at = forming_.insert(at, {sequence, color, 0, std::move(group)});
    }
    const std::shared_ptr<thread_group> result = at->group;
    if (++at->joined == static_cast<int>(members.size())) forming_.erase(at);
    return result;
  }

 private:
  struct slot {
    std::uint64_t sequence = 0;
    int arrived = 0, reduced = 0, done = 0;
    int readers = 0;  ///< ranks reading posted memory, or enqueuing reads, without the lock
    bool done_for_all = false;
    std::vector<posted_operation> posts;
    std::vector<char> left;
    std::vector<char> barriers;  ///< the number that each rank has reached

    void reset(std::uint64_t number, std::size_t ranks) {
      sequence = number;
      arrived = reduced = done = 0;
      done_for_all = false;
      posts.assign(ranks, {});
      left.assign(ranks, 0);
      barriers.assign(ranks, 0);
    }
  };

  /// A group being formed by split `sequence`.
  struct subgroup_to_be {
    std::uint64_t sequence;
    int color;
    int joined;
    std::shared_ptr<thread_group> group;
  };

  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  static bool equal(std::span<const global_index> a, std::span<const global_index> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

  /// Waits for `ready`, which requires ranks to post into slot s.
  void wait_for_posts(lock& held, slot& s, int me, const comm::collective& op, condition ready) {
    wait(held, me, op, ready, [&](int q) { return !s.posts[index(q)].endpoint; });
  }
  /// Counts this rank at a barrier.
  void come(slot& s, int me, int& counted) {
    ++s.barriers[index(me)];
    if (++counted == size()) changed.notify_all();
  }
  /// Barrier: counts this rank and waits until all ranks are counted.
  void wait_for_all(lock& held, slot& s, int me, const comm::collective& op, int& counted) {
    come(s, me, counted);
    wait(
        held, me, op, [&] { return counted == size(); },
        [&](int q) { return s.barriers[index(q)] < s.barriers[index(me)]; });
  }
  /// Makes this rank's queue wait for its readers; later work on it may overwrite or free the send buffer.
  void wait_on_readers(const slot& s, const thread_endpoint& me) const {
    me.wait_on(s.posts, s.sequence, operation_events::reduced);
    me.wait_on(s.posts, s.sequence, operation_events::read);
  }

  /// Whether one rank doing all the work is faster than waking every rank twice.
  bool is_small(const slot& s) const {
    constexpr std::size_t most = std::size_t{1} << 16;
    std::size_t bytes = 0;
    for (int q = 0; q < size(); ++q) {
      const comm::collective& op = s.posts[index(q)].op;
      if (op.kind == operation::broadcast || !s.posts[index(q)].endpoint->on_host()) return false;
      if (op.kind == operation::all_to_all && !counts_agree(s, q, op)) return false;
      bytes += op.kind == operation::all_gather || op.kind == operation::all_to_all
                   ? op.bytes(comm::offset_of(op.output_counts, size()))
                   : op.bytes(op.count) * index(op.kind == operation::reduce_scatter ? size() : 2);
    }
    return bytes <= most;
  }
  /// The last rank to arrive does the work of all ranks. It holds the lock, so no rank can leave meanwhile.
  void do_for_all(slot& s, thread_endpoint& me) const {
    const bool reduces = s.posts.front().op.kind == operation::all_reduce;
    for (int q = 0; q < size() && reduces; ++q) me.reduce_share(s.posts, q);
    for (int q = 0; q < size(); ++q) me.collect(s.posts, q);
    s.done_for_all = true;
  }

  void broadcast(lock& held, slot& s, thread_endpoint& me, const comm::collective& op) {
    const posted_operation& root = s.posts[index(op.peer)];
    wait_for_posts(held, s, me.rank(), op, [&] { return root.endpoint != nullptr; });
    if (root.endpoint.get() == &me) {
      wait_for_all(held, s, me.rank(), op, s.done);
      return wait_on_readers(s, me);
    }
    {
      const reading unlocked(*this, held, s.readers);
      me.wait_on(root.endpoint->events(s.sequence), operation_events::posted);
      me.copy(root.op.input, op.output, op.bytes(op.count));
      me.record(me.events(s.sequence), operation_events::read);
    }
    come(s, me.rank(), s.done);
  }

  void exchange(lock& held, slot& s, thread_endpoint& me, const comm::collective& op) {
    operation_events& mine = me.events(s.sequence);
    wait_for_posts(held, s, me.rank(), op, [&] { return s.arrived == size(); });
    if (s.done_for_all) return;
    const bool reduces = op.kind == operation::all_reduce;
    if (reduces) {
      {
        const reading unlocked(*this, held, s.readers);
        me.wait_on(s.posts, s.sequence, operation_events::posted);
        me.reduce_share(s.posts, me.rank());
        me.record(mine, operation_events::reduced);
      }
      wait_for_all(held, s, me.rank(), op, s.reduced);
    }
    if (op.kind == operation::all_to_all) require_counts(held, s, me.rank(), op);
    {
      const reading unlocked(*this, held, s.readers);
      me.wait_on(s.posts, s.sequence, reduces ? operation_events::reduced : operation_events::posted);
      me.collect(s.posts, me.rank());
      me.record(mine, operation_events::read);
    }
    wait_for_all(held, s, me.rank(), op, s.done);
    wait_on_readers(s, me);
  }

  void require_match(lock& held, const posted_operation& mine, const posted_operation& other) {
    const comm::collective &a = mine.op, &b = other.op;
    const bool counts_agree = a.kind == operation::broadcast || a.kind == operation::all_reduce
                                  ? a.count == b.count
                              : a.kind == operation::all_gather     ? equal(a.output_counts, b.output_counts)
                              : a.kind == operation::reduce_scatter ? equal(a.input_counts, b.input_counts)
                                                                    : true;
    if (a.kind == b.kind && a.splits == b.splits && a.type == b.type && a.peer == b.peer &&
        a.reduce == b.reduce && counts_agree && mine.endpoint->shares_place_with(*other.endpoint))
      return;
    fail(held, base::sentence_of({"ranks disagree: ", call(mine), ", ", call(other)}));
  }
  /// The counts that ranks send to `rank` in an all_to_all.
  std::vector<global_index> sent_to(const slot& s, int rank) const {
    std::vector<global_index> counts;
    for (const posted_operation& p : s.posts) counts.push_back(p.op.input_counts[index(rank)]);
    return counts;
  }
  /// Whether these counts match what `rank` expects.
  bool counts_agree(const slot& s, int rank, const comm::collective& op) const {
    for (int q = 0; q < size(); ++q)
      if (s.posts[index(q)].op.input_counts[index(rank)] != op.output_counts[index(q)]) return false;
    return true;
  }
  void require_counts(lock& held, const slot& s, int rank, const comm::collective& op) {
    if (counts_agree(s, rank, op)) return;
    fail(held, mismatch_of_counts(op, sent_to(s, rank), rank, world_ranks()));
  }

  std::vector<std::uint64_t> next_;
  std::array<slot, in_flight> slots_;
  mailbox messages_{*this};
  int waiting_for_slot_ = 0;
  std::vector<subgroup_to_be> forming_;
};

}  // namespace partita::comm::detail

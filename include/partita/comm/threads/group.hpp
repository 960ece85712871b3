#pragma once
/// The meeting place of ranks that are threads of one process. A rank posts what it brings to an operation;
/// its peers read that memory where it lies, so a rank leaves an operation only when nobody reads its memory
/// any more: on the host when they are done, on a device when its queue has been told to wait for them. Small
/// operations on the host are done for all by the rank that comes last: the others are woken once.

#include <algorithm>
#include <array>
#include <list>
#include <map>
#include <tuple>

#include "partita/comm/threads/endpoint.hpp"
#include "partita/comm/threads/rendezvous.hpp"

namespace partita::detail {

class thread_group : public rendezvous {
 public:
  /// Operation number s of the group uses slot s mod in_flight, which is free again when every rank has left
  /// it.
  static constexpr std::uint64_t in_flight = thread_endpoint::in_flight;

  thread_group(std::shared_ptr<thread_world> world, std::vector<int> world_ranks)
      : rendezvous(std::move(world), std::move(world_ranks)), next_(world_ranks_.size(), 0) {
    for (std::uint64_t s = 0; s < in_flight; ++s) slots_[s].reset(s, world_ranks_.size());
  }

  int size() const { return static_cast<int>(world_ranks_.size()); }

  std::uint64_t start(const std::shared_ptr<thread_endpoint>& me, const collective& op) {
    std::unique_lock lock(mutex);
    const int rank = me->rank();
    if (op.kind == operation::receive) return ++channels_[{op.peer, rank, op.tag}].received;
    if (op.kind == operation::send) {
      std::unique_ptr<operation_events> events = me->borrow_events();
      me->begin(*events);
      messages_.push_back(
          {++last_message_, ++channels_[{rank, op.peer, op.tag}].sent, {op, me}, std::move(events)});
      changed.notify_all();
      return last_message_;
    }
    const std::uint64_t sequence = next_[index(rank)]++;
    slot& s = slots_[sequence % in_flight];
    posted_operation& mine = s.posts[index(rank)];
    if (s.sequence != sequence && mine.endpoint && !s.left[index(rank)])
      fail(lock, "rank " + name(rank) + " has more than " + std::to_string(in_flight) +
                     " operations in flight at " + describe(op));
    ++waiting_for_slot_;
    wait(
        lock, [&] { return s.sequence == sequence; }, [] { return -1; }, op);
    --waiting_for_slot_;
    const auto first =
        std::ranges::find_if(s.posts, [](const posted_operation& p) { return p.endpoint != nullptr; });
    if (first != s.posts.end()) require_match(lock, {op, me}, *first);
    me->begin(me->events(sequence));
    mine = {op, me};
    const bool complete = ++s.arrived == size();
    if (complete && is_small(s)) do_for_all(s, *me);
    if (op.kind == operation::broadcast ? op.peer == rank : complete) changed.notify_all();
    return sequence;
  }

  void finish(thread_endpoint& me, const collective& op, std::uint64_t token) {
    std::unique_lock lock(mutex);
    if (op.kind == operation::send) return finish_send(lock, me, op, token);
    if (op.kind == operation::receive) return finish_receive(lock, me, op, token);
    slot& s = slots_[token % in_flight];
    guarded(
        lock, s.readers,
        [&] { op.kind == operation::broadcast ? broadcast(lock, s, me, op) : exchange(lock, s, me, op); },
        [&] { wait_on_readers(s, me); });
    s.left[index(me.rank())] = 1;
    if (std::ranges::count(s.left, 1) < size()) return;
    s.reset(s.sequence + in_flight, world_ranks_.size());
    if (waiting_for_slot_ > 0) changed.notify_all();
  }

  void abandon(thread_endpoint& me, const collective& op, std::uint64_t token) noexcept {
    world_->poison("a rank gave up its " + describe(op) + " before it was complete");
    std::unique_lock lock(mutex);
    if (op.kind == operation::receive) return;
    const auto left_alone = [&](const int& readers) { changed.wait(lock, [&] { return readers == 0; }); };
    try {
      if (op.kind == operation::send) {
        const auto m = find_message(token);
        left_alone(m->readers);
        me.wait_on(m->events->read);
      } else {
        slot& s = slots_[token % in_flight];
        left_alone(s.readers);
        wait_on_readers(s, me);
      }
    } catch (const device_error&) {  // the device does nothing any more: nobody reads there
    }
  }

  /// The group of `members` (ranks of this group) that operation `sequence` formed under `color`.
  std::shared_ptr<thread_group> subgroup(std::uint64_t sequence, int color, const std::vector<int>& members) {
    const std::lock_guard lock(mutex);
    const auto key = std::pair(sequence, color);
    auto& [group, taken] = forming_[key];
    if (!group) {
      std::vector<int> world_ranks;
      for (int m : members) world_ranks.push_back(world_ranks_[index(m)]);
      group = std::make_shared<thread_group>(world_, std::move(world_ranks));
      world_->enlist(group);
    }
    const std::shared_ptr<thread_group> result = group;
    if (++taken == static_cast<int>(members.size())) forming_.erase(key);
    return result;
  }

 private:
  struct slot {
    std::uint64_t sequence = 0;
    int arrived = 0, reduced = 0, done = 0;
    int readers = 0;  ///< ranks that read posted memory now, or enqueue that they will, without the lock
    bool done_for_all = false;
    std::vector<posted_operation> posts;
    std::vector<char> left;

    void reset(std::uint64_t number, std::size_t ranks) {
      sequence = number;
      arrived = reduced = done = 0;
      done_for_all = false;
      posts.assign(ranks, {});
      left.assign(ranks, 0);
    }
  };
  struct message {
    std::uint64_t id;
    std::uint64_t number;  ///< in its channel
    posted_operation post;
    std::unique_ptr<operation_events> events;
    int readers = 0;
    bool received = false;
  };
  /// Messages of one pair of ranks and one tag: number k that was sent is number k that is received.
  struct channel {
    std::uint64_t sent = 0, received = 0;
  };
  /// wait for ranks that have yet to post into slot s.
  template <class Ready>
  void wait_for_posts(std::unique_lock<std::mutex>& lock, slot& s, const collective& op, Ready ready) {
    const auto absent = [&] {
      for (int q = 0; q < size(); ++q)
        if (!s.posts[index(q)].endpoint && world_->has_ended(world_ranks_[index(q)])) return q;
      return -1;
    };
    wait(lock, ready, absent, op);
  }
  void count(int& counter) {
    if (++counter == size()) changed.notify_all();
  }

  /// What I send to the others may be overwritten, or freed, by work given to my queue from now on.
  void wait_on_readers(const slot& s, const thread_endpoint& me) const {
    me.wait_on(s.posts, s.sequence, &operation_events::reduced);
    me.wait_on(s.posts, s.sequence, &operation_events::read);
  }

  /// Whether one rank does the work of all sooner than it wakes them, twice each.
  bool is_small(const slot& s) const {
    constexpr std::size_t most = std::size_t{1} << 16;
    std::size_t bytes = 0;
    for (int q = 0; q < size(); ++q) {
      const collective& op = s.posts[index(q)].op;
      if (op.kind == operation::broadcast || !s.posts[index(q)].endpoint->on_host()) return false;
      if (op.kind == operation::all_to_all && !counts_agree(s, q, op)) return false;
      bytes += op.kind == operation::all_gather || op.kind == operation::all_to_all
                   ? op.bytes(offset_of(op.output_counts, size()))
                   : op.bytes(op.count) * index(op.kind == operation::reduce_scatter ? size() : 2);
    }
    return bytes <= most;
  }
  /// The last rank to come does what every rank would do. It has the lock, so none can leave meanwhile.
  void do_for_all(slot& s, thread_endpoint& me) const {
    const bool reduces = s.posts.front().op.kind == operation::all_reduce;
    for (int q = 0; q < size() && reduces; ++q) me.reduce_share(s.posts, q);
    for (int q = 0; q < size(); ++q) me.collect(s.posts, q);
    s.done_for_all = true;
  }

  void broadcast(std::unique_lock<std::mutex>& lock, slot& s, thread_endpoint& me, const collective& op) {
    const posted_operation& root = s.posts[index(op.peer)];
    wait_for_posts(lock, s, op, [&] { return root.endpoint != nullptr; });
    if (root.endpoint.get() != &me) {
      const reading unlocked(*this, lock, s.readers);
      me.wait_on(root.endpoint->events(s.sequence).posted);
      me.copy(root.op.output, op.output, op.bytes(op.count));
      me.record(me.events(s.sequence).read);
    }
    count(s.done);
    if (root.endpoint.get() != &me) return;
    wait_for_posts(lock, s, op, [&] { return s.done == size(); });
    wait_on_readers(s, me);
  }

  void exchange(std::unique_lock<std::mutex>& lock, slot& s, thread_endpoint& me, const collective& op) {
    operation_events& mine = me.events(s.sequence);
    auto given = &operation_events::posted;
    wait_for_posts(lock, s, op, [&] { return s.arrived == size(); });
    if (s.done_for_all) return;
    if (op.kind == operation::all_reduce) {
      {
        const reading unlocked(*this, lock, s.readers);
        me.wait_on(s.posts, s.sequence, given);
        me.reduce_share(s.posts, me.rank());
        me.record(mine.reduced);
      }
      count(s.reduced);
      wait_for_posts(lock, s, op, [&] { return s.reduced == size(); });
      given = &operation_events::reduced;
    }
    if (op.kind == operation::all_to_all) require_counts(lock, s, me.rank(), op);
    {
      const reading unlocked(*this, lock, s.readers);
      me.wait_on(s.posts, s.sequence, given);
      me.collect(s.posts, me.rank());
      me.record(mine.read);
    }
    count(s.done);
    wait_for_posts(lock, s, op, [&] { return s.done == size(); });
    wait_on_readers(s, me);
  }

  void require_match(std::unique_lock<std::mutex>& lock, const posted_operation& mine,
                     const posted_operation& other) {
    const collective &a = mine.op, &b = other.op;
    const bool counts_agree =
        a.kind == operation::broadcast || a.kind == operation::all_reduce ? a.count == b.count
        : a.kind == operation::all_gather     ? std::ranges::equal(a.output_counts, b.output_counts)
        : a.kind == operation::reduce_scatter ? std::ranges::equal(a.input_counts, b.input_counts)
                                              : true;
    if (a.kind == b.kind && a.splits == b.splits && a.type == b.type && a.peer == b.peer &&
        a.reduce == b.reduce && counts_agree && mine.endpoint->shares_place_with(*other.endpoint))
      return;
    fail(lock, "ranks disagree: " + call(mine) + ", " + call(other));
  }
  /// Whether `rank` expects what the others send it.
  bool counts_agree(const slot& s, int rank, const collective& op) const {
    for (int q = 0; q < size(); ++q)
      if (s.posts[index(q)].op.input_counts[index(rank)] != op.output_counts[index(q)]) return false;
    return true;
  }
  void require_counts(std::unique_lock<std::mutex>& lock, const slot& s, int rank, const collective& op) {
    for (int q = 0; q < size(); ++q)
      if (const auto sent = s.posts[index(q)].op.input_counts[index(rank)];
          sent != op.output_counts[index(q)])
        fail(lock, "ranks disagree: rank " + name(rank) + " expects " +
                       std::to_string(op.output_counts[index(q)]) + " elements in " + describe(op) +
                       ", rank " + name(q) + " sends " + std::to_string(sent));
  }
  std::string call(const posted_operation& p) const {
    const std::string elements = p.op.splits ? "" : " with " + std::to_string(p.op.count) + " elements";
    return "rank " + name(p.endpoint->rank()) + " calls " + describe(p.op) + elements + p.endpoint->place();
  }

  std::list<message>::iterator find_message(std::uint64_t id) {
    return std::ranges::find(messages_, id, &message::id);
  }
  void finish_send(std::unique_lock<std::mutex>& lock, thread_endpoint& me, const collective& op,
                   std::uint64_t token) {
    const auto m = find_message(token);
    const auto wait_on_reader = [&] { me.wait_on(m->events->read); };
    guarded(
        lock, m->readers,
        [&] {
          wait(
              lock, [&] { return m->received; }, [&] { return op.peer; }, op);
          wait_on_reader();
        },
        wait_on_reader);
    me.return_events(std::move(m->events));
    messages_.erase(m);
  }
  void finish_receive(std::unique_lock<std::mutex>& lock, thread_endpoint& me, const collective& op,
                      std::uint64_t number) {
    auto m = messages_.end();
    const auto arrived = [&] {
      m = std::ranges::find_if(messages_, [&](const message& c) {
        return c.post.endpoint->rank() == op.peer && c.post.op.peer == me.rank() && c.post.op.tag == op.tag &&
               c.number == number;
      });
      return m != messages_.end();
    };
    wait(
        lock, arrived, [&] { return op.peer; }, op);
    if (m->post.op.count != op.count || m->post.op.type != op.type ||
        !me.shares_place_with(*m->post.endpoint))
      fail(lock, "ranks disagree: rank " + name(me.rank()) + " calls " + describe(op) + " for " +
                     std::to_string(op.count) + " elements" + me.place() + ", " + call(m->post));
    {
      const reading unlocked(*this, lock, m->readers);
      me.wait_on(m->events->posted);
      me.copy(m->post.op.input, op.output, op.bytes(op.count));
      me.record(m->events->read);
    }
    m->received = true;
    changed.notify_all();
  }

  std::vector<std::uint64_t> next_;
  std::array<slot, in_flight> slots_;
  std::list<message> messages_;
  std::uint64_t last_message_ = 0;
  int waiting_for_slot_ = 0;
  std::map<std::tuple<int, int, int>, channel> channels_;  ///< by sender, receiver, tag
  std::map<std::pair<std::uint64_t, int>, std::pair<std::shared_ptr<thread_group>, int>> forming_;
};

}  // namespace partita::detail

#pragma once
/// The meeting place of ranks that are threads of one process. A rank posts what it brings to an operation;
/// its peers read that memory where it lies, so a rank leaves an operation only when nobody reads its memory
/// any more.

#include <algorithm>
#include <array>
#include <list>
#include <map>
#include <tuple>

#include "partita/comm/thread_world.hpp"
#include "partita/comm/transport.hpp"

namespace partita::detail {

class thread_group : public wakeable {
 public:
  /// Operation number s of the group uses slot s mod in_flight, which is free again when every rank has left
  /// it.
  static constexpr std::uint64_t in_flight = 8;

  thread_group(std::shared_ptr<thread_world> world, std::vector<int> world_ranks)
      : world_(std::move(world)), world_ranks_(std::move(world_ranks)), next_(world_ranks_.size(), 0) {
    for (std::uint64_t s = 0; s < in_flight; ++s) slots_[s].reset(s, world_ranks_.size());
  }

  int size() const { return static_cast<int>(world_ranks_.size()); }

  std::uint64_t start(int rank, const collective& op) {
    std::unique_lock lock(mutex);
    if (op.kind == operation::receive) return ++channels_[{op.peer, rank, op.tag}].received;
    if (op.kind == operation::send) {
      messages_.push_back({++last_message_, ++channels_[{rank, op.peer, op.tag}].sent, rank, op, 0, false});
      changed.notify_all();
      return last_message_;
    }
    const std::uint64_t sequence = next_[index(rank)]++;
    slot& s = slots_[sequence % in_flight];
    if (s.sequence != sequence && s.posted[index(rank)] && !s.left[index(rank)])
      fail(lock, "rank " + name(rank) + " has more than " + std::to_string(in_flight) +
                     " operations in flight at " + describe(op));
    wait(
        lock, nullptr, [&] { return s.sequence == sequence; }, [] { return -1; }, op);
    const auto first = std::find(s.posted.begin(), s.posted.end(), 1);
    if (first != s.posted.end())
      require_match(lock, op, rank, s.posts[static_cast<std::size_t>(first - s.posted.begin())],
                    static_cast<int>(first - s.posted.begin()));
    s.posts[index(rank)] = op;
    s.posted[index(rank)] = 1;
    if (++s.arrived == size() || op.kind == operation::broadcast) changed.notify_all();
    return sequence;
  }

  void finish(int rank, const collective& op, std::uint64_t token) {
    std::unique_lock lock(mutex);
    if (op.kind == operation::send) return finish_send(lock, op, token);
    if (op.kind == operation::receive) return finish_receive(lock, rank, op, token);
    slot& s = slots_[token % in_flight];
    if (op.kind == operation::broadcast) {
      const collective& root = s.posts[index(op.peer)];
      meet(lock, s, op, [&] { return s.posted[index(op.peer)] != 0; });
      if (rank != op.peer) read(lock, s.readers, [&] { copy(root.output, op.output, op, op.count); });
      step(s.done);
      if (rank == op.peer) meet(lock, s, op, [&] { return s.done == size(); });
    } else {
      meet(lock, s, op, [&] { return s.arrived == size(); });
      if (op.kind == operation::all_reduce) {
        read(lock, s.readers, [&] { reduce_share(s, rank, op); });
        step(s.reduced);
        meet(lock, s, op, [&] { return s.reduced == size(); });
      }
      if (op.kind == operation::all_to_all) require_counts(lock, s, rank, op);
      read(lock, s.readers, [&] { collect(s, rank, op); });
      step(s.done);
      meet(lock, s, op, [&] { return s.done == size(); });
    }
    s.left[index(rank)] = 1;
    if (std::ranges::count(s.left, 1) < size()) return;
    s.reset(s.sequence + in_flight, world_ranks_.size());
    changed.notify_all();
  }

  void abandon(const collective& op, std::uint64_t token) noexcept {
    world_->poison("a rank gave up its " + describe(op) + " before it was complete");
    std::unique_lock lock(mutex);
    if (op.kind == operation::receive) return;
    const int& readers =
        op.kind == operation::send ? find_message(token)->readers : slots_[token % in_flight].readers;
    changed.wait(lock, [&] { return readers == 0; });
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
    int readers = 0;  ///< ranks that read posted memory now, without the lock
    std::vector<collective> posts;
    std::vector<char> posted, left;

    void reset(std::uint64_t number, std::size_t ranks) {
      sequence = number;
      arrived = reduced = done = 0;
      posts.resize(ranks);
      posted.assign(ranks, 0);
      left.assign(ranks, 0);
    }
  };
  struct message {
    std::uint64_t id;
    std::uint64_t number;  ///< in its channel
    int from;
    collective op;
    int readers;
    bool received;
  };
  /// Messages of one pair of ranks and one tag: number k that was sent is number k that is received.
  struct channel {
    std::uint64_t sent = 0, received = 0;
  };

  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  std::string name(int rank) const { return std::to_string(world_ranks_[index(rank)]); }

  static void copy(const void* from, void* to, const collective& op, global_index count) {
    if (count > 0) std::memcpy(to, from, op.bytes(count));
  }
  static char* at(void* base, const collective& op, global_index offset) {
    return static_cast<char*>(base) + op.bytes(offset);
  }
  static const char* at(const void* base, const collective& op, global_index offset) {
    return static_cast<const char*>(base) + op.bytes(offset);
  }

  /// Fails the world; leaves when nobody reads my memory any more.
  [[noreturn]] void fail(std::unique_lock<std::mutex>& lock, const std::string& what,
                         const int* readers = nullptr) {
    lock.unlock();
    const auto error = std::make_exception_ptr(communication_error(what));
    world_->poison(what, error);
    lock.lock();
    if (readers != nullptr) changed.wait(lock, [&] { return *readers == 0; });
    std::rethrow_exception(error);
  }

  /// Waits for `ready`. A failed world, or a rank (told by `missing`, -1 for none) that ended too early, is
  /// an error.
  template <class Ready, class Missing>
  void wait(std::unique_lock<std::mutex>& lock, const int* readers, Ready ready, Missing missing,
            const collective& op) {
    for (;;) {
      if (world_->poisoned()) {
        if (readers != nullptr) changed.wait(lock, [&] { return *readers == 0; });
        throw poisoned_error("another rank failed: " + world_->message());
      }
      if (ready()) return;
      if (const int rank = missing(); rank >= 0 && world_->has_ended(world_ranks_[index(rank)]))
        fail(lock, "rank " + name(rank) + " ended without taking part in " + describe(op), readers);
      changed.wait(lock);
    }
  }
  /// wait for ranks that have yet to post into slot s.
  template <class Ready>
  void meet(std::unique_lock<std::mutex>& lock, slot& s, const collective& op, Ready ready) {
    const auto absent = [&] {
      for (int q = 0; q < size(); ++q)
        if (!s.posted[index(q)] && world_->has_ended(world_ranks_[index(q)])) return q;
      return -1;
    };
    wait(lock, &s.readers, ready, absent, op);
  }
  /// Reads posted memory without the lock.
  template <class Work>
  void read(std::unique_lock<std::mutex>& lock, int& readers, Work work) {
    ++readers;
    lock.unlock();
    work();
    lock.lock();
    if (--readers == 0 && world_->poisoned()) changed.notify_all();
  }
  void step(int& counter) {
    if (++counter == size()) changed.notify_all();
  }

  void require_match(std::unique_lock<std::mutex>& lock, const collective& mine, int rank,
                     const collective& other, int other_rank) {
    const bool counts_agree =
        mine.kind == operation::broadcast || mine.kind == operation::all_reduce ? mine.count == other.count
        : mine.kind == operation::all_gather     ? std::ranges::equal(mine.output_counts, other.output_counts)
        : mine.kind == operation::reduce_scatter ? std::ranges::equal(mine.input_counts, other.input_counts)
                                                 : true;
    if (mine.kind == other.kind && mine.type == other.type && mine.peer == other.peer &&
        mine.reduce == other.reduce && counts_agree)
      return;
    const auto with_count = [](const collective& c) {
      return describe(c) + " with " + std::to_string(c.count) + " elements";
    };
    fail(lock, "ranks disagree: rank " + name(rank) + " calls " + with_count(mine) + ", rank " +
                   name(other_rank) + " calls " + with_count(other));
  }
  void require_counts(std::unique_lock<std::mutex>& lock, const slot& s, int rank, const collective& op) {
    for (int q = 0; q < size(); ++q)
      if (const auto sent = s.posts[index(q)].input_counts[index(rank)]; sent != op.output_counts[index(q)])
        fail(lock,
             "ranks disagree: rank " + name(rank) + " expects " + std::to_string(op.output_counts[index(q)]) +
                 " elements in " + describe(op) + ", rank " + name(q) + " sends " + std::to_string(sent),
             &s.readers);
  }

  /// In place: only I read this share of the others' buffers, and nobody else reads mine until it is reduced.
  void reduce_share(const slot& s, int rank, const collective& op) {
    const interval mine = share_of(op.count, rank, size());
    std::vector<const void*> shares;
    for (const collective& post : s.posts) shares.push_back(at(post.output, op, mine.begin));
    reduce_in_order(op.type, op.reduce, shares, at(op.output, op, mine.begin), mine.size());
  }

  void collect(const slot& s, int rank, const collective& op) {
    if (op.kind == operation::reduce_scatter) {
      std::vector<const void*> blocks;
      for (const collective& post : s.posts)
        blocks.push_back(at(post.input, op, offset_of(op.input_counts, rank)));
      return reduce_in_order(op.type, op.reduce, blocks, op.output, op.count);
    }
    for (int q = 0; q < size(); ++q) {
      const collective& post = s.posts[index(q)];
      if (op.kind == operation::all_gather) {
        copy(post.input, at(op.output, op, offset_of(op.output_counts, q)), op, op.output_counts[index(q)]);
      } else if (op.kind == operation::all_to_all) {
        copy(at(post.input, op, offset_of(post.input_counts, rank)),
             at(op.output, op, offset_of(op.output_counts, q)), op, op.output_counts[index(q)]);
      } else if (q != rank) {
        const interval share = share_of(op.count, q, size());
        copy(at(post.output, op, share.begin), at(op.output, op, share.begin), op, share.size());
      }
    }
  }

  std::list<message>::iterator find_message(std::uint64_t id) {
    return std::find_if(messages_.begin(), messages_.end(), [&](const message& m) { return m.id == id; });
  }
  void finish_send(std::unique_lock<std::mutex>& lock, const collective& op, std::uint64_t token) {
    const auto m = find_message(token);
    wait(
        lock, &m->readers, [&] { return m->received; }, [&] { return op.peer; }, op);
    messages_.erase(m);
  }
  void finish_receive(std::unique_lock<std::mutex>& lock, int rank, const collective& op,
                      std::uint64_t number) {
    auto m = messages_.end();
    const auto arrived = [&] {
      m = std::find_if(messages_.begin(), messages_.end(), [&](const message& c) {
        return c.from == op.peer && c.op.peer == rank && c.op.tag == op.tag && c.number == number;
      });
      return m != messages_.end();
    };
    wait(
        lock, nullptr, arrived, [&] { return op.peer; }, op);
    if (m->op.count != op.count || m->op.type != op.type)
      fail(lock, "ranks disagree: rank " + name(rank) + " calls " + describe(op) + " for " +
                     std::to_string(op.count) + " elements, rank " + name(op.peer) + " calls " +
                     describe(m->op) + " with " + std::to_string(m->op.count));
    read(lock, m->readers, [&] { copy(m->op.input, op.output, op, op.count); });
    m->received = true;
    changed.notify_all();
  }

  std::shared_ptr<thread_world> world_;
  std::vector<int> world_ranks_;
  std::vector<std::uint64_t> next_;
  std::array<slot, in_flight> slots_;
  std::list<message> messages_;
  std::uint64_t last_message_ = 0;
  std::map<std::tuple<int, int, int>, channel> channels_;  ///< by sender, receiver, tag
  std::map<std::pair<std::uint64_t, int>, std::pair<std::shared_ptr<thread_group>, int>> forming_;
};

}  // namespace partita::detail

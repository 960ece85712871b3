#pragma once
/// A rank's seat in a thread_group: how it works on what its peers posted, in memory of the host or of a
/// device that the ranks share. On a device the host waits for nothing: the work of one rank's queue follows
/// marks in the work of others.

#include <array>
#include <vector>

#include "partita/comm/device_memory.hpp"

namespace partita::detail {

/// A point in the work that one rank gave its queue; on the host work is done when a call returns, and there
/// is nothing to wait for.
struct thread_mark {
  std::unique_ptr<device_memory::mark> point;
  bool recorded = false;
};

/// How far a rank has come in an operation.
struct thread_marks {
  thread_mark posted;   ///< what it gives is written
  thread_mark reduced;  ///< its share of an all-reduce is
  thread_mark read;     ///< it has read what the others give
};

class thread_seat;

/// What a rank brings to an operation; nothing while it has no seat.
struct thread_post {
  collective op;
  std::shared_ptr<const thread_seat> seat;
};

class thread_seat {
 public:
  /// How many operations of a group may be in flight.
  static constexpr std::uint64_t in_flight = 8;

  /// `memory`: null where operations are on memory of the host.
  explicit thread_seat(int rank, std::shared_ptr<device_memory> memory = nullptr)
      : rank_(rank), memory_(std::move(memory)) {
    for (thread_marks& m : marks_) m = make_marks();
  }

  int rank() const { return rank_; }
  bool on_host() const { return memory_ == nullptr; }
  /// " on cuda device 0", nothing for the host.
  std::string place() const { return memory_ ? " on " + memory_->name() : ""; }
  bool shares_place_with(const thread_seat& other) const {
    return memory_ && other.memory_ ? memory_->name() == other.memory_->name() : memory_ == other.memory_;
  }

  /// Marks of operation number `sequence`.
  thread_marks& marks(std::uint64_t sequence) { return marks_[sequence % in_flight]; }
  const thread_marks& marks(std::uint64_t sequence) const { return marks_[sequence % in_flight]; }
  /// Marks for a message, used again when they were given back.
  std::unique_ptr<thread_marks> take_marks() {
    if (spare_.empty()) return std::make_unique<thread_marks>(make_marks());
    std::unique_ptr<thread_marks> marks = std::move(spare_.back());
    spare_.pop_back();
    return marks;
  }
  void give_back(std::unique_ptr<thread_marks> marks) { spare_.push_back(std::move(marks)); }

  /// What I give is written by work that my queue has; nothing else has happened yet.
  void begin(thread_marks& mine) const {
    mine.reduced.recorded = mine.read.recorded = false;
    record(mine.posted);
  }
  void record(thread_mark& mark) const {
    if (memory_) memory_->record(*mark.point);
    mark.recorded = true;
  }
  /// Work given to my queue from now on begins after `mark`, if that was recorded.
  void follow(const thread_mark& mark) const {
    if (memory_ && mark.recorded) memory_->wait_for(*mark.point);
  }
  /// The same for a mark of each rank in operation number `sequence`.
  void follow(std::span<const thread_post> posts, std::uint64_t sequence,
              thread_mark thread_marks::*mark) const {
    for (const thread_post& p : posts)
      if (p.seat && p.seat.get() != this) follow(p.seat->marks(sequence).*mark);
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
  void reduce_share(std::span<const thread_post> posts, int rank) {
    const collective& op = posts[static_cast<std::size_t>(rank)].op;
    const interval share = share_of(op.count, rank, static_cast<int>(posts.size()));
    sources_.clear();
    for (const thread_post& p : posts) sources_.push_back(at(p.op.output, op, share.begin));
    reduce(op, at(op.output, op, share.begin), share.size());
  }

  /// What `rank` gets of an operation other than broadcast; of an all-reduce the others' shares.
  void collect(std::span<const thread_post> posts, int rank) {
    const collective& op = posts[static_cast<std::size_t>(rank)].op;
    if (op.kind == operation::reduce_scatter) {
      sources_.clear();
      for (const thread_post& p : posts)
        sources_.push_back(at(p.op.input, op, offset_of(op.input_counts, rank)));
      return reduce(op, op.output, op.count);
    }
    const int size = static_cast<int>(posts.size());
    for (int q = 0; q < size; ++q) {
      const collective& given = posts[static_cast<std::size_t>(q)].op;
      if (op.kind == operation::all_reduce) {
        const interval share = share_of(op.count, q, size);
        if (q != rank)
          copy(at(given.output, op, share.begin), at(op.output, op, share.begin), op.bytes(share.size()));
        continue;
      }
      const global_index begin =
          op.kind == operation::all_to_all ? offset_of(given.input_counts, rank) : global_index{0};
      copy(at(given.input, op, begin), at(op.output, op, offset_of(op.output_counts, q)),
           op.bytes(op.output_counts[static_cast<std::size_t>(q)]));
    }
  }

 private:
  static char* at(void* base, const collective& op, global_index offset) {
    return static_cast<char*>(base) + op.bytes(offset);
  }
  static const char* at(const void* base, const collective& op, global_index offset) {
    return static_cast<const char*>(base) + op.bytes(offset);
  }

  /// to = the reduction of the sources, in rank order.
  void reduce(const collective& op, void* to, global_index count) const {
    if (count == 0) return;
    if (memory_)
      memory_->reduce(op.type, op.reduce, sources_, to, count);
    else
      reduce_in_order(op.type, op.reduce, sources_, to, count);
  }

  thread_marks make_marks() const {
    thread_marks m;
    if (memory_)
      for (thread_mark* mark : {&m.posted, &m.reduced, &m.read}) mark->point = memory_->make_mark();
    return m;
  }

  int rank_;
  std::shared_ptr<device_memory> memory_;
  std::array<thread_marks, in_flight> marks_;
  std::vector<std::unique_ptr<thread_marks>> spare_;
  std::vector<const void*> sources_;
};

}  // namespace partita::detail

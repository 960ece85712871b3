// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Operations as point-to-point messages.
///
/// MPI's collectives are not used unless asked for (mpi_native.hpp): on a mismatch they print to stderr or
/// never return, and their reductions have no fixed order. Mismatched operations use different tags, so their
/// messages never match.

#include <cstddef>
#include <vector>

#include "partita/comm/mpi_job.hpp"

namespace partita::mpi::detail {

/// A communicator and its properties. `names` are its ranks' numbers in the world.
struct endpoints {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, size = 1;
  std::span<const int> names;
  bool device_pointers = false;  ///< blocks may be in device memory, read by MPI alone

  int name(int q) const { return names[static_cast<std::size_t>(q)]; }
};

/// Throws communication_error if what this rank, `name` in the world, sends to itself is not what it expects.
inline void require_own_counts(const comm::collective& op, int rank, int name) {
  const global_index sent = op.input_counts[static_cast<std::size_t>(rank)],
                     expected = op.output_counts[static_cast<std::size_t>(rank)];
  if (sent != expected)
    base::throw_error<communication_error>(
        {describe(op), ": rank ", name, " sends ", sent, " elements to itself and expects ", expected});
}

class exchange final : public in_flight {
 public:
  /// Starts the first messages. The buffers of `op` must outlive the operation, until advance() returns true.
  /// Throws communication_error if an MPI call fails.
  void start(const endpoints& at, const comm::collective& op, int tag) {
    at_ = at;
    op_ = op;
    tag_ = tag;
    next_ = 0;
    half_ = halves(op.kind);
    messages_.clear();
    children_.clear();
    fit(op.count, op);
    switch (op.kind) {
      case operation::broadcast:
        return start_broadcast();
      case operation::all_gather:
        copy_own(op.input, op.output, op.output_counts, comm::offset_of(op.output_counts, at.rank));
        return gather(op.input, op.output_counts);
      case operation::all_to_all:
        return trade();
      case operation::reduce_scatter:
        return start_reduction(op.input, op.input_counts);
      case operation::all_reduce:
        shares_.clear();
        for (int q = 0; q < at.size; ++q) shares_.push_back(comm::share_of(op.count, q, at.size).size());
        return start_reduction(op.output, shares_);
      case operation::send:
        return send(op.peer, op.input, 0, op.count);
      case operation::receive:
        return receive(op.peer, op.output, op.count);
    }
  }

  bool advance() override {
    for (;;) {
      for (; next_ < messages_.size(); ++next_)
        if (!settle(next_)) return false;
      if (half_ == 0) return true;
      finish_half();
    }
  }

  std::vector<int> missing() const override {
    std::vector<int> ranks;
    for (std::size_t i = next_; i < messages_.size(); ++i) {
      int complete = 0;
      check(MPI_Request_get_status(messages_[i].request, &complete, MPI_STATUS_IGNORE), op_);
      if (complete == 0) ranks.push_back(at_.name(messages_[i].peer));
    }
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
  }
  int next() const override { return next_ < messages_.size() ? at_.name(messages_[next_].peer) : -1; }

 private:
  static constexpr std::size_t segment_bytes = 64 << 10;
  static constexpr global_index most_segments = 256;
  static constexpr int small_group = 4;  ///< ranks

  struct message {
    MPI_Request request = MPI_REQUEST_NULL;
    int peer = 0;
    global_index count = 0;
    bool incoming = false;
  };

  /// Completes the operation after the last message.
  static int halves(operation kind) {
    return kind == operation::all_reduce ? 2 : kind == operation::reduce_scatter ? 1 : 0;
  }
  std::byte* at(void* base, global_index elements) const {
    return static_cast<std::byte*>(base) + op_.bytes(elements);
  }
  const std::byte* at(const void* base, global_index elements) const {
    return static_cast<const std::byte*>(base) + op_.bytes(elements);
  }

  void receive(int from, void* to, global_index count) {
    if (count == 0) return;
    message& m = messages_.emplace_back(message{MPI_REQUEST_NULL, from, count, true});
    check(MPI_Irecv(to, fit(count, op_), datatype(op_.type), from, tag_, at_.comm, &m.request), op_, true,
          at_.name(from));
  }
  void send(int to, const void* base, global_index offset, global_index count) {
    if (count == 0) return;
    message& m = messages_.emplace_back(message{MPI_REQUEST_NULL, to, count, false});
    check(MPI_Isend(at(base, offset), fit(count, op_), datatype(op_.type), to, tag_, at_.comm, &m.request),
          op_, false, at_.name(to));
  }

  /// Whether message `i` is complete.
  bool settle(std::size_t i) {
    message& m = messages_[i];
    int complete = 0;
    MPI_Status status;
    const int code = MPI_Test(&m.request, &complete, &status);
    if (m.incoming && is_truncation(code)) disagree(m, "more");
    check(code, op_, m.incoming, at_.name(m.peer));
    if (complete == 0) return false;
    if (m.incoming) {
      int arrived = 0;
      check(MPI_Get_count(&status, datatype(op_.type), &arrived), op_);
      if (arrived != m.count) disagree(m, arrived == MPI_UNDEFINED ? "others" : std::to_string(arrived));
      if (!children_.empty()) forward(i);
    }
    return true;
  }
  [[noreturn]] void disagree(const message& m, const std::string& sent) const {
    base::throw_error<communication_error>({"ranks disagree: rank ", at_.name(at_.rank), " expects ", m.count,
                                            " elements in ", describe(op_), ", rank ", at_.name(m.peer),
                                            " sends ", sent});
  }

  /// This rank's own block.
  void copy_own(const void* from, void* base, std::span<const global_index> counts, global_index offset) {
    const global_index count = counts[static_cast<std::size_t>(at_.rank)];
    if (at_.device_pointers) {
      receive(at_.rank, at(base, offset), count);
      send(at_.rank, from, 0, count);
    } else if (count > 0) {
      std::memmove(at(base, offset), from, op_.bytes(count));
    }
  }
  int rank_before(int steps) const { return (at_.rank - steps + at_.size) % at_.size; }
  int rank_after(int steps) const { return (at_.rank + steps) % at_.size; }

  /// Receives all blocks of op.output except this rank's own, `mine`.
  void gather(const void* mine, std::span<const global_index> counts) {
    place_blocks(counts);
    for (int d = 1; d < at_.size; ++d) {
      const auto q = static_cast<std::size_t>(rank_before(d));
      receive(static_cast<int>(q), at(op_.output, offsets_[q]), counts[q]);
    }
    for (int d = 1; d < at_.size; ++d)
      send(rank_after(d), mine, 0, counts[static_cast<std::size_t>(at_.rank)]);
  }
  void place_blocks(std::span<const global_index> counts) {
    offsets_.clear();
    global_index offset = 0;
    for (const global_index n : counts) {
      offsets_.push_back(offset);
      offset += n;
    }
  }
  void send_blocks(const void* input, std::span<const global_index> counts) {
    place_blocks(counts);
    for (int d = 1; d < at_.size; ++d) {
      const auto q = static_cast<std::size_t>(rank_after(d));
      send(static_cast<int>(q), input, offsets_[q], counts[q]);
    }
  }
  void trade() {
    const auto me = static_cast<std::size_t>(at_.rank);
    require_own_counts(op_, at_.rank, at_.name(at_.rank));
    place_blocks(op_.output_counts);
    for (int d = 1; d < at_.size; ++d) {
      const auto q = static_cast<std::size_t>(rank_before(d));
      receive(static_cast<int>(q), at(op_.output, offsets_[q]), op_.output_counts[q]);
    }
    copy_own(at(op_.input, comm::offset_of(op_.input_counts, at_.rank)), op_.output, op_.output_counts,
             offsets_[me]);
    send_blocks(op_.input, op_.input_counts);
  }

  /// Receives this rank's block of every other rank's `input` into the scratch buffer.
  void start_reduction(const void* input, std::span<const global_index> counts) {
    const global_index mine = counts[static_cast<std::size_t>(at_.rank)];
    const std::size_t bytes = op_.bytes(mine);
    if (scratch_.size() < static_cast<std::size_t>(at_.size) * bytes)
      scratch_.resize(static_cast<std::size_t>(at_.size) * bytes);
    const std::byte* const own = at(input, comm::offset_of(counts, at_.rank));
    pieces_.assign(static_cast<std::size_t>(at_.size), own);
    for (int d = 1; d < at_.size; ++d) {
      const auto q = static_cast<std::size_t>(rank_before(d));
      std::byte* const piece = scratch_.data() + q * bytes;
      pieces_[q] = piece;
      receive(static_cast<int>(q), piece, mine);
    }
    send_blocks(input, counts);
  }
  void finish_half() {
    const bool scattered = op_.kind == operation::reduce_scatter;
    if (scattered || half_ == 2) {
      const interval share = comm::share_of(op_.count, at_.rank, at_.size);
      std::byte* const sum = at(op_.output, scattered ? 0 : share.begin);
      comm::reduce_in_order(op_.type, op_.reduce, pieces_, sum, scattered ? op_.count : share.size());
      if (!scattered) {
        ++tag_;
        gather(sum, shares_);
      }
    }
    --half_;
  }

  /// Linear in small groups; otherwise a binomial tree for small data, a segmented chain for large. Source:
  /// Pjesivac-Grbovic et al., "Performance analysis of MPI collective operations", Cluster Computing 10
  /// (2007).
  void start_broadcast() {
    const int place = (at_.rank - op_.peer + at_.size) % at_.size;
    const auto rank_at = [&](int p) { return (p + op_.peer) % at_.size; };
    int parent = 0;
    segments_ = 1;
    if (at_.size <= small_group) {
      for (int p = 1; place == 0 && p < at_.size; ++p) children_.push_back(rank_at(p));
    } else if (op_.bytes(op_.count) < 2 * segment_bytes) {
      parent = place & (place - 1);
      int reach = 1;
      while (reach < at_.size && (place & reach) == 0) reach *= 2;
      for (reach /= 2; reach > 0; reach /= 2)
        if (place + reach < at_.size) children_.push_back(rank_at(place + reach));
    } else {
      parent = place - 1;
      segments_ = std::min(most_segments, static_cast<global_index>(op_.bytes(op_.count) / segment_bytes));
      if (place + 1 < at_.size) children_.push_back(rank_at(place + 1));
    }
    for (global_index s = 0; s < segments_; ++s) {
      const interval piece = segment(s);
      if (place > 0)
        receive(rank_at(parent), at(op_.output, piece.begin), piece.size());
      else
        forward(static_cast<std::size_t>(s));
    }
  }
  interval segment(global_index s) const {
    return comm::share_of(op_.count, static_cast<int>(s), static_cast<int>(segments_));
  }
  void forward(std::size_t s) {
    const interval piece = segment(static_cast<global_index>(s));
    const void* const from = at_.rank == op_.peer ? op_.input : op_.output;
    for (const int child : children_) send(child, from, piece.begin, piece.size());
  }

  endpoints at_;
  comm::collective op_;
  int tag_ = 0;
  int half_ = 0;
  std::size_t next_ = 0;
  std::vector<message> messages_;
  std::vector<int> children_;
  global_index segments_ = 1;
  std::vector<global_index> shares_, offsets_;
  std::vector<std::byte> scratch_;
  std::vector<const void*> pieces_;  ///< of every rank, this rank's block, in rank order
};

}  // namespace partita::mpi::detail

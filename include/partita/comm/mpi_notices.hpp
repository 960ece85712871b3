// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Notices that MPI ranks exchange while they wait or leave, and the errors concluded from them.

#include <algorithm>
#include <chrono>
#include <list>
#include <map>
#include <set>
#include <vector>

#include "partita/comm/late.hpp"
#include "partita/comm/mpi_call.hpp"
#include "partita/comm/signature.hpp"

namespace partita::mpi::detail {

using partita::comm::detail::signature;

/// Count of the operations that this rank has started on a group, or of messages with one tag between two of
/// its ranks. All ranks number them in the same order.
struct series {
  static constexpr std::size_t remembered = 8;

  std::uint64_t id = 0;
  std::uint64_t started = 0;
  std::vector<signature> last;  ///< ring buffer, for groups only

  void add(const signature& s) {
    if (last.size() < remembered) last.resize(remembered);
    last[started++ % remembered] = s;
  }
  /// This rank's signature of operation `number`, from 1; null if no longer known.
  const signature* at(std::uint64_t number) const {
    const bool known = number >= 1 && number <= started && number + remembered > started && !last.empty();
    return known ? &last[(number - 1) % remembered] : nullptr;
  }
};

/// An operation that a rank waits for.
struct awaited {
  std::uint64_t series = 0;  ///< id of the sequence that counts it
  std::uint64_t number = 0;  ///< its number in that sequence, from 1
  signature what;
  std::span<const int> ranks;  ///< world ranks that must participate
  std::source_location where;
  std::string_view axis{};  ///< of the group

  std::string text() const { return what.text() + partita::comm::detail::text_of_group(axis); }
};

/// Operations started by this rank, and the latest notices of the others.
class notices {
  using clock = std::chrono::steady_clock;

 public:
  /// Collective over `comm`.
  explicit notices(MPI_Comm comm)
      : control_(duplicate(comm, check_comm_name)), rank_(control_.rank()), size_(control_.size()) {}

  MPI_Comm comm() const { return control_.get(); }
  int rank() const { return rank_; }

  /// References stay valid.
  series& series_of(std::uint64_t id) {
    series& s = series_[id];
    s.id = id;
    return s;
  }

  /// Notifies the participants of what this rank waits for, and that the message of `next` is missing.
  void tell_waiting(const awaited& a, int next) {
    for (const int q : a.ranks)
      if (q != rank_) tell(q, notice{0, next, a.series, a.number, 0, a.what});
  }
  /// The same to all ranks of the world.
  void tell_all_waiting(const awaited& a, int next) {
    for (int q = 0; q < size_; ++q)
      if (q != rank_) tell(q, notice{0, next, a.series, a.number, 0, a.what});
  }
  /// Announces that this rank is leaving.
  void tell_leaving() {
    for (int q = 0; q < size_; ++q)
      if (q != rank_) tell(q, notice{1, -1, 0, 0, 0, {}});
  }
  /// Whether all notices sent have been read; releases those that have.
  bool all_sent() {
    std::erase_if(letters_, complete);
    return letters_.empty();
  }
  /// Receives pending notices.
  void hear() {
    for (int any = 1; any != 0;) {
      MPI_Message message;
      MPI_Status status;
      check(MPI_Improbe(MPI_ANY_SOURCE, 0, control_.get(), &any, &message, &status), "MPI_Improbe");
      if (any == 0) continue;
      int bytes = 0;
      check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
      letter& l = arriving_.emplace_back();
      l.rank = status.MPI_SOURCE;
      l.bytes.resize(static_cast<std::size_t>(bytes));
      check(MPI_Imrecv(l.bytes.data(), bytes, MPI_BYTE, &message, &l.request), "MPI_Imrecv");
    }
    for (; !arriving_.empty() && complete(arriving_.front()); arriving_.pop_front()) read(arriving_.front());
  }

  /// Throws if the awaited operation, missing the message of `next`, can no longer complete.
  void require_possible(const awaited& a, int next) const {
    require_same_operations();
    for (const int q : a.ranks) {
      const auto found = heard_.find(q);
      if (found == heard_.end() || found->second.has_started(a.series, a.number)) continue;
      const notice& said = found->second.said;
      if (said.left != 0)
        base::throw_error<communication_error>({"rank ", q, " ended without taking part in ", a.what.text()});
      if (next == q && said.next == rank_ && !has_started(said.series, said.number))
        base::throw_error<communication_error>({"ranks wait for each other: rank ", q, " in ",
                                                said.what.text(), ", rank ", rank_, " in ", a.what.text()});
    }
  }
  /// Throws: this rank has waited in `a` for longer than `limit` for messages of the ranks `missing`. It
  /// names those that are absent from `a`, and what each of them waits in that has told so since `lately`.
  [[noreturn]] void fail_late(const awaited& a, std::chrono::milliseconds limit,
                              const std::vector<int>& missing, clock::time_point lately) const {
    const std::vector<int> absent = absent_from(a, missing);
    std::string elsewhere;
    for (const int q : absent)
      if (const auto found = heard_.find(q); found != heard_.end() && found->second.at > lately &&
                                             !found->second.has_started(a.series, a.number))
        elsewhere += "; rank " + std::to_string(q) + " waits in " + found->second.said.what.text();
    throw communication_error(partita::comm::detail::late(rank_, limit, absent, a.text()) + elsewhere);
  }
  /// Throws if another rank waits in an operation that does not match this rank's.
  void require_same_operations() const {
    for (const auto& [q, other] : heard_) {
      const auto found = other.said.left != 0 ? series_.end() : series_.find(other.said.series);
      const signature* mine = found == series_.end() ? nullptr : found->second.at(other.said.number);
      if (mine != nullptr && !mine->agrees_with(other.said.what))
        throw communication_error(partita::comm::detail::disagreement(q, other.said.what, rank_, *mine));
    }
  }

 private:
  /// Header of a notice, followed by the list of sequences.
  struct notice {
    std::int32_t left = 0, next = -1;
    std::uint64_t series = 0, number = 0, listed = 0;
    signature what;
  };
  struct listed_series {
    std::uint64_t id = 0, started = 0;
  };
  /// Latest notice of another rank.
  struct heard {
    notice said;
    std::map<std::uint64_t, std::uint64_t> started;
    clock::time_point at;

    bool has_started(std::uint64_t series, std::uint64_t number) const {
      const auto found = started.find(series);
      return found != started.end() && found->second >= number;
    }
  };
  struct letter {
    int rank = 0;  ///< sender or receiver
    std::vector<std::byte> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  static bool complete(letter& l) {
    int yes = 0;
    check(MPI_Test(&l.request, &yes, MPI_STATUS_IGNORE), "MPI_Test");
    return yes != 0;
  }
  void read(const letter& l) {
    heard& from = heard_[l.rank];
    from.at = clock::now();
    std::memcpy(&from.said, l.bytes.data(), sizeof(notice));
    const std::byte* at = l.bytes.data() + sizeof(notice);
    for (std::uint64_t i = 0; i < from.said.listed; ++i, at += sizeof(listed_series)) {
      listed_series entry;
      std::memcpy(&entry, at, sizeof(entry));
      from.started[entry.id] = entry.started;
    }
  }
  void tell(int rank, notice said) {
    all_sent();
    said.listed = series_.size();
    letter& l = letters_.emplace_back();
    l.rank = rank;
    l.bytes.resize(sizeof(notice) + series_.size() * sizeof(listed_series));
    std::memcpy(l.bytes.data(), &said, sizeof(notice));
    std::byte* at = l.bytes.data() + sizeof(notice);
    for (const auto& [id, s] : series_) {
      const listed_series entry{id, s.started};
      std::memcpy(at, &entry, sizeof(entry));
      at += sizeof(entry);
    }
    check(MPI_Isend(l.bytes.data(), static_cast<int>(l.bytes.size()), MPI_BYTE, rank, 0, control_.get(),
                    &l.request),
          "MPI_Isend");
  }

  /// Of the ranks `missing`, those that have not said to be in operation `a`; where all are, of the ranks
  /// that these wait for in it, and so on.
  std::vector<int> absent_from(const awaited& a, const std::vector<int>& missing) const {
    std::set<int> asked(missing.begin(), missing.end());
    for (int step = 0; step < size_; ++step) {
      std::set<int> absent, next;
      for (const int q : asked) {
        const auto found = heard_.find(q);
        if (found == heard_.end() || !found->second.has_started(a.series, a.number)) {
          absent.insert(q);
        } else if (const notice& said = found->second.said; said.series == a.series &&
                                                            said.number == a.number && said.next >= 0 &&
                                                            said.next != rank_) {
          next.insert(said.next);
        }
      }
      if (!absent.empty()) return {absent.begin(), absent.end()};
      asked = std::move(next);
    }
    return missing;
  }

  bool has_started(std::uint64_t series, std::uint64_t number) const {
    const auto found = series_.find(series);
    return found != series_.end() && found->second.started >= number;
  }

  owned_comm control_;
  int rank_, size_;
  std::map<std::uint64_t, series> series_;
  std::map<int, heard> heard_;
  std::list<letter> letters_, arriving_;
};

}  // namespace partita::mpi::detail

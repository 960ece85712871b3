// SPDX-License-Identifier: Apache-2.0
#pragma once
/// State shared by all groups split from one MPI world, and the one wait loop.
///
/// Every wait of the library is wait(): a loop over MPI_Test that never blocks in MPI. While waiting, a rank
/// receives notices over a control communicator (which ranks have left, what others wait for) and throws if
/// its operation can no longer complete.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "partita/comm/call_site.hpp"
#include "partita/comm/cores.hpp"
#include "partita/comm/mpi_node.hpp"
#include "partita/comm/mpi_notices.hpp"
#include "partita/comm/transport.hpp"

namespace partita::mpi {

/// Who moves the blocks of broadcasts, gathers, all-to-alls and reductions.
enum class collectives : std::uint8_t {
  messages,  ///< this library, by messages between pairs; sums in the order of ranks
  native     ///< MPI's own collectives, for an MPI that knows its network: hierarchies of nodes, offload
};

struct options {
  /// Compare every operation across ranks before it starts. Without this, a mismatch is still an error, but
  /// is detected only if a rank is left waiting, one second later.
  bool checked = comm::checked_by_default;
  /// Pass device pointers to MPI if it is CUDA-aware; between processes of one node, memory from CUDA pools
  /// needs a recent UCX. Otherwise blocks are staged through page-locked memory.
  bool device_pointers = false;
  /// With `native`, sums of floating-point numbers are in an order that MPI chooses, the same bits on all
  /// ranks; all blocks of an operation together may have INT_MAX elements at most; and device_pointers are
  /// refused. A mismatch that is not `checked` is then what MPI makes of it, unless a rank is left waiting.
  /// An error at the time limit names those ranks of the group that have not said that they are there.
  mpi::collectives collectives = mpi::collectives::messages;
  /// Limit of one wait. Must exceed the longest computation between two operations of any rank. Ranks that
  /// have waited for half of it say so to all others, for the error to name those that nothing is heard of.
  std::chrono::milliseconds time_limit = std::chrono::minutes(10);
};

namespace detail {

/// An operation that makes progress only inside MPI calls.
class in_flight {
 public:
  virtual ~in_flight() = default;
  /// Makes progress without blocking; true when complete.
  virtual bool advance() = 0;
  /// World rank whose message is missing, or -1.
  virtual int next() const = 0;
  /// World ranks with which messages are incomplete, in order.
  virtual std::vector<int> missing() const = 0;
};

/// The operation this process started last, for reports of abnormal termination.
struct last_call {
  const char* kind = nullptr;
  std::source_location where;
};
inline last_call& last_call_of_process() {
  static last_call call;
  return call;
}

class job {
  using clock = std::chrono::steady_clock;

 public:
  /// Collective over `comm`.
  job(MPI_Comm comm, options o) : told_(comm), options_(o), node_(comm) {
    options_.device_pointers = o.device_pointers && cuda_aware();
    int* limit = nullptr;
    int found = 0;
    detail::check(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &found), "MPI_Comm_get_attr");
    while (found != 0 && tag_bits_ < 30 && (2 << tag_bits_) - 1 <= *limit) ++tag_bits_;
    if (shares_cores(comm)) tests_before_yield_ = 16;
  }
  job(const job&) = delete;
  job& operator=(const job&) = delete;

  bool checked() const { return options_.checked; }
  bool native() const { return options_.collectives == collectives::native; }
  bool device_pointers() const { return options_.device_pointers; }
  bool failed() const { return !failure_.empty(); }
  void require_alive() const {
    if (failed()) throw communication_error(failure_);
  }
  /// Makes every later operation of this rank throw `reason`, since operations in flight cannot be
  /// cancelled; the first reason is kept.
  void fail(const std::string& why) {
    if (!failed()) failure_ = why;
  }

  detail::series& series_of(std::uint64_t id) { return told_.series_of(id); }

  /// Tag of the messages of operation `number` of a group. Mismatched operations get different tags; the
  /// lowest bit distinguishes the two halves of an operation.
  int tag_of(std::uint64_t number, std::uint64_t hash) const {
    const int number_bits = std::min(12, (tag_bits_ - 1) / 2), hash_bits = tag_bits_ - 1 - number_bits;
    const std::uint64_t low = number & ((1u << number_bits) - 1), high = hash & ((1u << hash_bits) - 1);
    return static_cast<int>((high << number_bits | low) << 1);
  }

  void enlist(in_flight* operation) { in_flight_.push_back(operation); }
  void dismiss(in_flight* operation) {
    std::erase_if(in_flight_, [=](const in_flight* other) { return other == operation; });
  }

  /// Waits until `operation` is complete. Throws communication_error if it can no longer complete or exceeds
  /// the time limit; this rank has then failed.
  void wait(const awaited& a, in_flight& operation) {
    require_alive();
    try {
      for (int test = 0; test < tests_before_yield_; ++test)
        if (operation.advance()) return;
      wait_long(a, operation);
    } catch (const std::exception& e) {
      fail(comm::task_scope::named(e.what()));
      throw communication_error(failure_);
    }
  }

  /// Announces that this rank starts no more operations.
  void begin_leaving() {
    require_alive();
    left_ = clock::now();
    detail::check(MPI_Ibarrier(told_.comm(), &leaving_), "MPI_Ibarrier");
  }
  /// Whether all ranks of the world are leaving and have read all notices. Throws if a rank waits in an
  /// operation that does not match this rank's.
  bool poll_leaving() {
    told_.hear();
    int all = 0;
    detail::check(MPI_Test(&leaving_, &all, MPI_STATUS_IGNORE), "MPI_Test");
    if (all == 0) {
      if (!told_leaving_ && clock::now() - left_ > grace) {
        told_leaving_ = true;
        told_.tell_leaving();
      }
      told_.require_same_operations();
    } else if (all_leave_) {
      return true;
    } else if (told_.all_sent()) {
      all_leave_ = true;
      detail::check(MPI_Ibarrier(told_.comm(), &leaving_), "MPI_Ibarrier");
    }
    return false;
  }

 private:
  static constexpr auto patience = std::chrono::seconds(1);      ///< before waiting ranks are notified
  static constexpr auto grace = std::chrono::milliseconds(100);  ///< for ranks to leave at different times
  static constexpr auto rhythm = std::chrono::milliseconds(1);   ///< of polling for notices

  /// Whether this node has more ranks than cores available to them.
  static bool shares_cores(MPI_Comm comm) {
    MPI_Comm shared = MPI_COMM_NULL;
    detail::check(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared),
                  "MPI_Comm_split_type");
    const owned_comm machine(shared, check_comm_name);
    comm::core_set cores = comm::usable_cores();
    detail::check(MPI_Allreduce(MPI_IN_PLACE, cores.data(), static_cast<int>(cores.size()), MPI_BYTE, MPI_BOR,
                                machine.get()),
                  "MPI_Allreduce");
    return machine.size() > comm::count(cores);
  }

  void wait_long(const awaited& a, in_flight& operation) {
    const clock::time_point begin = clock::now();
    clock::time_point looked = begin, told = begin;
    int told_next = -2;
    bool told_all = false;
    for (int test = 1; !operation.advance(); ++test) {
      std::this_thread::yield();
      if (test % 16 != 0) continue;
      for (std::size_t i = 0; i < in_flight_.size(); ++i) in_flight_[i]->advance();
      const clock::time_point now = clock::now();
      if (now - looked < rhythm) continue;
      looked = now;
      told_.hear();
      if (const int next = operation.next(); now - told > patience && told_next != next) {
        told = now;
        told_next = next;
        told_.tell_waiting(a, next);
      }
      if (!told_all && now - begin > options_.time_limit / 2) {
        told_all = true;
        told_.tell_all_waiting(a, operation.next());
      }
      told_.require_possible(a, operation.next());
      if (const int rank = node_.ended(); rank >= 0)
        base::throw_error<communication_error>({"rank ", rank, " has died; this one was in ", a.what.text()});
      if (now - begin > options_.time_limit)
        if (const std::vector<int> missing = operation.missing(); !missing.empty())
          told_.fail_late(a, options_.time_limit, missing, now - options_.time_limit * 3 / 4);
    }
  }

  notices told_;
  options options_;
  node_processes node_;
  int tag_bits_ = 1;
  int tests_before_yield_ = 256;
  std::string failure_;  ///< why no further operation can succeed, or empty
  std::vector<in_flight*> in_flight_;
  MPI_Request leaving_ = MPI_REQUEST_NULL;
  clock::time_point left_;
  bool told_leaving_ = false, all_leave_ = false;
};

}  // namespace detail

}  // namespace partita::mpi

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The ranks that this process runs: threads that wait for work, or this process as one rank.

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <vector>

#include "partita/comm/communicator.hpp"
#include "partita/comm/mesh.hpp"
#include "partita/partition/policies.hpp"

namespace partita::python {

/// What a rank does: its place among the ranks of this process, from 0, and its communicator.
using rank_work = std::function<void(std::size_t place, const communicator& world)>;

class team {
 public:
  /// Ranks as threads of this process, which wait until run gives them work. One rank is the caller itself.
  explicit team(int ranks);
  /// This process as one rank of `world`.
  explicit team(const communicator& world);
  ~team();

  int size() const { return worlds_.front().size(); }
  /// The ranks of this process.
  std::size_t places() const { return worlds_.size(); }
  /// The number of this process's first rank.
  int first_rank() const { return worlds_.front().rank(); }
  /// Whether an error has ended its threads.
  bool has_ended() const { return ended_; }
  /// What the ranks of this process have received. Local, while nothing runs.
  traffic received() const;

  /// The work on every rank of this process; returns when all have done it. The interpreter's lock, which the
  /// caller has, is free meanwhile. `wait` is called several times a second where the ranks are threads.
  /// Throws what the first rank threw; the threads have ended then, and every later call throws error.
  void run(const rank_work& work, const std::function<void()>& wait = {});

 private:
  void serve(const communicator& world);

  std::vector<communicator> worlds_;
  std::mutex call_;  ///< one call of run at a time
  std::mutex mutex_;
  std::condition_variable changed_;
  const rank_work* work_ = nullptr;
  std::uint64_t number_ = 0;  ///< of the work
  std::size_t busy_ = 0;      ///< ranks that have not done it
  bool ends_ = false, ended_ = false;
  std::exception_ptr failure_;
  std::future<void> runner_;  ///< waits for its threads when it is destroyed, before the rest
};

/// Where the ranks of a call compute.
struct place {
  std::string policy = "row_1d";
  std::string mesh;  ///< RxCxD; empty: the policy's default
  int threads = 0;   ///< of each rank; 0: its share of the cores

  /// The mesh of `ranks` ranks. Throws mesh_error.
  mesh_shape shape(int ranks) const;
  /// Makes the queue of one of `ranks` ranks, with the dense products of a BLAS where this was built with
  /// one. Called before ranks run, which may be bound to their cores then.
  std::function<device_queue<host>()> queues(int ranks) const;
};

/// The ranks that this process was given, or null.
std::shared_ptr<team>& shared_team();
/// The ranks of now: one, unless there are others, or as many threads as before where an error has ended
/// them.
std::shared_ptr<team> current();

}  // namespace partita::python

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Google Benchmark over several ranks.
///
/// A loop that each rank ends when its own clock says so leaves collectives without a partner. Here all ranks
/// agree before each batch of iterations whether there is one, and all know the same time of it: from when
/// the last rank has begun until the last one has ended. A batch lasts long enough that agreeing does not
/// count.

#include <algorithm>
#include <benchmark/benchmark.h>
#include <chrono>
#include <functional>
#include <optional>

#include "partita/comm/threads.hpp"
#include "partita/train/summary.hpp"

namespace bench {

/// The ledger of some rank is not what was predicted. Thrown by all ranks or by none.
struct traffic_error : partita::error {
  using error::error;
};

/// What every rank of a benchmark does. Over threads only rank 0 has a state; over MPI every process has its
/// own.
using rank_body = std::function<void(const partita::communicator& world, benchmark::State* state)>;

/// Runs benchmarks on threads, or on the ranks of a job.
class launcher {
 public:
  launcher() = default;
  explicit launcher(partita::communicator job) : job_(std::move(job)) {}

  /// An error skips the benchmark. A rank of a job that fails alone cannot tell the others: its error goes
  /// on.
  void run(int ranks, benchmark::State& state, const rank_body& body) {
    try {
      if (job_)
        body(*job_, &state);
      else
        partita::threads::run(ranks, [&](const partita::communicator& world) {
          body(world, world.rank() == 0 ? &state : nullptr);
        });
    } catch (const traffic_error& e) {
      skip(state, e.what());
    } catch (const partita::error& e) {
      if (job_) throw;
      skip(state, e.what());
    }
  }
  int skipped() const { return skipped_; }

 private:
  void skip(benchmark::State& state, const char* why) {
    state.SkipWithError(why);
    ++skipped_;
  }

  std::optional<partita::communicator> job_;
  int skipped_ = 0;
};

/// What the ranks receive.
struct traffic {
  partita::nn::over_ranks words, predicted, messages;  ///< words received, words that were predicted
};

/// What the ranks receive in one run of `work`. Every rank must call, with its own prediction. Throws
/// traffic_error.
inline traffic count(const partita::communicator& world, partita::traffic predicted,
                     const std::function<void()>& work) {
  partita::ledger& account = world.ledger();
  account.clear();
  work();
  const partita::traffic received = account.total();
  const traffic t{partita::nn::summarize(world, received.words),
                  partita::nn::summarize(world, predicted.words),
                  partita::nn::summarize(world, received.messages)};
  if (const auto wrong = partita::nn::summarize(world, received != predicted).total; wrong != 0)
    throw traffic_error("on " + std::to_string(wrong) + " of " + std::to_string(world.size()) +
                        " ranks the traffic is not as predicted: " + std::to_string(t.words.total) +
                        " words in all, predicted " + std::to_string(t.predicted.total));
  return t;
}

/// Seconds from when the last rank begins until the last one has done `work` as often as `runs` says, the
/// same on all ranks. Every rank must call.
inline double time_of(const partita::communicator& world, int runs, const std::function<void()>& work) {
  partita::global_index nothing[] = {0};
  world.all_reduce(std::span<partita::global_index>(nothing));
  const auto begin = std::chrono::steady_clock::now();
  for (int run = 0; run < runs; ++run) work();
  world.all_reduce(std::span<partita::global_index>(nothing));
  double seconds[] = {std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
  world.all_reduce(std::span<double>(seconds), partita::reduction::max);
  return seconds[0];
}

/// Does `work` on every rank for as long as the state asks, in batches of about 5 ms. Every rank must call.
inline void measure(const partita::communicator& world, benchmark::State* state,
                    const std::function<void()>& work) {
  const int batch = static_cast<int>(std::clamp(5e-3 / time_of(world, 1, work), 1.0, 1e4));
  for (;;) {
    const bool mine = state != nullptr && state->KeepRunningBatch(batch);
    partita::global_index go[] = {mine};
    world.all_reduce(std::span<partita::global_index>(go), partita::reduction::max);
    if (state != nullptr && mine != (go[0] != 0))
      throw partita::communication_error("the ranks disagree about the number of iterations");
    if (go[0] == 0) return;
    const double seconds = time_of(world, batch, work);
    if (state != nullptr) state->SetIterationTime(seconds);
  }
}

/// Enters the figures of a measured operation: what the ranks receive in one run, and the rates at which all
/// of them together compute and touch memory.
inline void report(benchmark::State* state, const traffic& t, double flops, double bytes) {
  if (state == nullptr) return;
  const auto rate = [](double amount) {
    return benchmark::Counter(amount, benchmark::Counter::kIsIterationInvariantRate);
  };
  auto& counters = state->counters;
  counters["words_max"] = static_cast<double>(t.words.max_rank);
  counters["words_total"] = static_cast<double>(t.words.total);
  counters["words_predicted"] = static_cast<double>(t.predicted.total);
  counters["messages"] = static_cast<double>(t.messages.total);
  if (flops > 0) counters["flops"] = rate(flops);
  counters["bytes_touched"] = rate(bytes);
}

}  // namespace bench

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Google Benchmark over several ranks.
///
/// If each rank ended its loop by its own clock, collectives would be left without a partner. Here all ranks
/// agree before each batch of iterations whether to run it, and all report the same time: from the last
/// rank's start to the last rank's end. Batches are long enough to make the cost of agreeing negligible.

#include <algorithm>
#include <benchmark/benchmark.h>
#include <chrono>
#include <functional>
#include <optional>

#include "partita/comm/threads.hpp"
#include "partita/train/summary.hpp"

namespace bench {

/// A rank's ledger differs from the prediction. Thrown by all ranks or by none.
struct traffic_error : partita::error {
  using error::error;
};

/// The body of a benchmark on every rank. With threads only rank 0 has a state; with MPI every process has
/// its own.
using rank_body = std::function<void(const partita::communicator& world, benchmark::State* state)>;

/// Runs benchmarks on threads, or on the ranks of an MPI job.
class launcher {
 public:
  launcher() = default;
  explicit launcher(partita::communicator job) : job_(std::move(job)) {}

  /// An error skips the benchmark. In an MPI job a rank that fails alone cannot notify the others, so its
  /// error propagates.
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

/// The traffic of all ranks.
struct traffic {
  partita::nn::max_and_total words, predicted, messages;  ///< words received, words predicted
};

/// The traffic of all ranks in one run of `work`. Collective; each rank passes its own prediction. Throws
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

/// Seconds from the last rank's start to the last rank's completion of `runs` runs of `work`, the same on all
/// ranks. Collective.
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

/// Runs `work` on every rank for as long as the state requests, in batches of about 5 ms. Collective.
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

/// Records the counters of a measured operation: the traffic of one run, and the aggregate rates of flops and
/// memory accesses over all ranks.
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

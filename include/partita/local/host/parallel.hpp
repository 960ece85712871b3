// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Host threading: a persistent thread team per rank, not created if one thread suffices.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "partita/base/function_reference.hpp"
#include "partita/base/index.hpp"
#include "partita/local/host/instructions.hpp"

namespace partita::on_host {

using base::function_reference;

/// Captures the first exception thrown by several threads, for rethrowing on the calling thread.
class first_exception {
 public:
  void guard(function_reference<void()> f) noexcept {
    try {
      f();
    } catch (...) {
      if (!taken_.exchange(true)) caught_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (caught_) std::rethrow_exception(caught_);
  }

 private:
  std::atomic<bool> taken_{false};
  std::exception_ptr caught_;
};

/// A team of persistent worker threads, owned by the thread that created it. Idle workers spin for some
/// microseconds and then sleep, so that they do not hold cores on a busy machine.
class worker_team {
 public:
  worker_team() = default;
  worker_team(const worker_team&) = delete;
  worker_team& operator=(const worker_team&) = delete;
  ~worker_team() {
    work_ = nullptr;
    for (const auto& w : workers_) w->begin();
    for (const auto& w : workers_) w->thread.join();
  }

  /// Runs f(0) on the calling thread and f(1), ..., f(parts - 1) on the workers; nested calls run serially.
  /// Rethrows the first exception of f; throws std::system_error if a thread cannot be created.
  void run(int parts, function_reference<void(int)> f) {
    if (std::exchange(running_, true)) {
      for (int part = 0; part < parts; ++part) f(part);
      return;
    }
    first_exception failure;
    failure.guard([&] { grow(static_cast<std::size_t>(parts) - 1); });
    const auto guarded = [&](int part) { failure.guard([&] { f(part); }); };
    const function_reference<void(int)> work = guarded;
    work_ = &work;
    const std::span awake(workers_.data(), std::min(static_cast<std::size_t>(parts) - 1, workers_.size()));
    for (const auto& w : awake) w->begin();
    guarded(0);
    for (const auto& w : awake) w->wait();
    running_ = false;
    failure.rethrow();
  }

 private:
  /// Counts of the runs requested and completed.
  struct alignas(64) worker {
    std::atomic<std::uint32_t> begun{0}, done{0};
    std::thread thread;

    void begin() { count(begun); }
    void wait() const {
      for (std::uint32_t seen = done; seen != begun;) seen = next(done, seen);
    }
    static void count(std::atomic<std::uint32_t>& counter) {
      counter.fetch_add(1, std::memory_order_release);
      counter.notify_one();
    }
    /// Waits until the counter differs from `seen`; returns its value.
    static std::uint32_t next(const std::atomic<std::uint32_t>& counter, std::uint32_t seen) {
      using clock = std::chrono::steady_clock;
      for (const auto end = clock::now() + std::chrono::microseconds(20); clock::now() < end;)
        if (const std::uint32_t now = counter.load(std::memory_order_acquire); now != seen) return now;
      counter.wait(seen, std::memory_order_acquire);
      return counter.load(std::memory_order_acquire);
    }
  };

  void grow(std::size_t workers) {
    workers_.reserve(workers);  // so that nothing fails once a thread runs
    while (workers_.size() < workers) {
      auto w = std::make_unique<worker>();
      w->thread = std::thread([this, &me = *w, part = static_cast<int>(workers_.size()) + 1] {
        for (std::uint32_t seen = worker::next(me.begun, 0); work_ != nullptr;
             seen = worker::next(me.begun, seen)) {
          (*work_)(part);
          worker::count(me.done);
        }
      });
      workers_.push_back(std::move(w));
    }
  }

  std::vector<std::unique_ptr<worker>> workers_;
  const function_reference<void(int)>* work_ = nullptr;
  bool running_ = false;
};

/// Runs f(0), ..., f(parts - 1), each on its own thread. Rethrows the first exception.
inline void run_parts(int parts, function_reference<void(int)> f) {
  if (parts <= 1) {
    if (parts == 1) f(0);
    return;
  }
  static thread_local worker_team team;
  team.run(parts, f);
}

/// Runs f(0), ..., f(tasks - 1), in no particular order: a thread runs its share of consecutive tasks, the
/// same in every call, and then those that others have not begun. What it wrote first is therefore mostly
/// what it reads later.
inline void run_tasks(int threads, int tasks, function_reference<void(int)> f) {
  const int parts = std::min(threads, tasks);
  if (parts <= 1) {
    for (int task = 0; task < tasks; ++task) f(task);
    return;
  }
  struct alignas(64) share {
    std::atomic<int> next;
    int end;
  };
  std::vector<share> shares(static_cast<std::size_t>(parts));
  const auto cut = [&](int part) { return static_cast<int>(std::int64_t{tasks} * part / parts); };
  for (int part = 0; part < parts; ++part) {
    share& s = shares[static_cast<std::size_t>(part)];
    s.next.store(cut(part), std::memory_order_relaxed);
    s.end = cut(part + 1);
  }
  run_parts(parts, [&](int part) {
    for (int k = 0; k < parts; ++k) {
      share& s = shares[static_cast<std::size_t>((part + k) % parts)];
      for (int task; (task = s.next.fetch_add(1, std::memory_order_relaxed)) < s.end;) f(task);
    }
  });
}

/// Runs f(begin, end) on up to `threads` equal ranges of [0, rows), each worth at least `grain` elements.
inline void run_rows(int threads, local_index rows, std::int64_t row_work,
                     function_reference<void(local_index, local_index)> f) {
  constexpr std::int64_t grain = 16384;
  const std::int64_t work = rows * std::max<std::int64_t>(row_work, 1);
  const int parts = static_cast<int>(std::clamp<std::int64_t>(work / grain, 1, threads));
  const auto cut = [&](int p) {
    return static_cast<local_index>(static_cast<std::int64_t>(rows) * p / parts);
  };
  run_parts(parts, [&](int part) { f(cut(part), cut(part + 1)); });
}

/// Runs f(i) for all rows. Each part uses its own copy of f, which the compiler can keep in registers.
template <class F>
inline void for_rows(int threads, local_index rows, std::int64_t row_work, const F& f) {
  run_rows(threads, rows, row_work, [&f](local_index begin, local_index end) {
    const F row = f;
    for (local_index i = begin; i < end; ++i) row(i);
  });
}

/// Blocks of rows whose number and boundaries depend on the number of rows only, so that sums over them do
/// not depend on the number of threads.
struct sum_blocks {
  static constexpr local_index most = 64;
  static constexpr local_index smallest = 256;

  explicit sum_blocks(local_index all_rows)
      : rows(all_rows),
        size(std::max(smallest, all_rows / most + 1)),
        count(rows / size + (rows % size != 0)) {}

  local_index begin(local_index block) const { return block * size; }
  local_index end(local_index block) const { return rows - begin(block) < size ? rows : begin(block) + size; }

  local_index rows;
  local_index size;
  local_index count;
};

/// Sum over all blocks, in order, of f(begin, end), or of f(std::integral_constant<instruction_set,
/// I>)(begin, end) for the set I that kernels use.
template <class Sum, class F>
inline Sum sum_by_blocks(int threads, local_index rows, std::int64_t row_work, const F& f) {
  const sum_blocks blocks(rows);
  std::array<Sum, sum_blocks::most> partial{};
  const auto run = [&](auto instructions, const auto& of_block) {
    const auto sums = [&partial, blocks, of_block](local_index from, local_index to) {
      for (local_index c = from; c < to; ++c)
        partial[static_cast<std::size_t>(c)] = of_block(blocks.begin(c), blocks.end(c));
    };
    run_rows(threads, blocks.count, std::max<std::int64_t>(row_work, 1) * blocks.size,
             [&](local_index from, local_index to) { run_with<instructions>(sums, from, to); });
  };
  with_instructions([&](auto instructions) {
    if constexpr (std::is_invocable_v<const F&, local_index, local_index>)
      run(instructions, f);
    else
      run(instructions, f(instructions));
  });
  Sum total{};
  for (local_index c = 0; c < blocks.count; ++c) total += partial[static_cast<std::size_t>(c)];
  return total;
}

}  // namespace partita::on_host

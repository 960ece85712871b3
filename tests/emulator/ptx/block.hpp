// SPDX-License-Identifier: Apache-2.0
#pragma once
// Blocks of a grid: warps that take turns, and the barriers at which they meet.
#include <atomic>
#include <chrono>

#include "warp.hpp"

namespace emulator::ptx {

/// Runs blocks one after another, on one thread of the host; its memory is used again for the next one.
class block_runner {
 public:
  /// Before the blocks of a launch. One that runs longer fails: a kernel may wait for what never comes.
  void begin(std::chrono::seconds patience);
  /// Throws fault.
  void run(const launch& what, std::uint64_t number);

  std::uint64_t instructions() const { return state_.instructions; }
  std::uint64_t warp_instructions() const { return state_.warp_instructions; }
  const block_state& state() const { return state_; }

 private:
  struct turn {
    std::unique_ptr<warp> runs;
    pause last = pause::slice;
  };

  void run_warps();
  /// Lets threads go on from the barriers that all have reached.
  void pass_barriers();
  void check_time(const warp& w) const;
  std::unique_ptr<warp> take_warp();

  std::chrono::seconds patience_{};
  std::chrono::steady_clock::time_point start_;
  block_state state_;
  std::vector<turn> turns_;
  std::vector<std::unique_ptr<warp>> spare_;
};

/// What a grid has cost.
struct account {
  std::uint64_t instructions = 0;       ///< of threads
  std::uint64_t warp_instructions = 0;  ///< of warps: what a card would issue
  traffic moved;
  std::uint64_t distinct_sectors = 0;  ///< touched at all

  account& operator+=(const account& other) {
    instructions += other.instructions, warp_instructions += other.warp_instructions;
    moved += other.moved, distinct_sectors += other.distinct_sectors;
    return *this;
  }
};

/// Runs all blocks, on `workers` threads of the host. Throws fault.
account run_grid(const launch& what, unsigned workers, std::chrono::seconds patience);

}  // namespace emulator::ptx

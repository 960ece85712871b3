// SPDX-License-Identifier: Apache-2.0
#include "block.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>

namespace emulator::ptx {

std::unique_ptr<warp> block_runner::take_warp() {
  if (spare_.empty()) return std::make_unique<warp>();
  std::unique_ptr<warp> w = std::move(spare_.back());
  spare_.pop_back();
  return w;
}

void block_runner::begin(std::chrono::seconds patience) {
  patience_ = patience;
  start_ = std::chrono::steady_clock::now();
  for (turn& t : turns_)  // of a launch that failed
    if (t.runs) spare_.push_back(std::move(t.runs));
  turns_.clear();
  for (const auto& w : spare_) w->clear_plans();
  state_.instructions = state_.warp_instructions = 0;
  state_.moved = {};
  state_.sectors.clear();
}

void block_runner::run(const launch& what, std::uint64_t number) {
  state_.what = &what;
  state_.number = number;
  state_.at = place_in(what.grid, number);
  state_.shared.clear(what.kernel->shared_bytes + what.dynamic_shared);
  state_.phase = 0;
  state_.known = {};
  turns_.clear();
  const unsigned warps = (state_.threads() + warp_size - 1) / warp_size;
  for (unsigned n = 0; n < warps; ++n) {
    turns_.emplace_back();
    turn& t = turns_.back();
    t.runs = take_warp();
    t.runs->begin(state_, n);
    t.last = t.runs->run();
    if (t.last == pause::ended) spare_.push_back(std::move(t.runs));
  }
  run_warps();
}

void block_runner::run_warps() {
  const auto all = [&](pause p) {
    return std::ranges::all_of(turns_, [&](const turn& t) { return t.last == p; });
  };
  while (!all(pause::ended)) {
    bool moved = false;
    for (turn& t : turns_) {
      if (t.last != pause::slice) continue;
      check_time(*t.runs);
      t.last = t.runs->run();
      if (t.last == pause::ended) spare_.push_back(std::move(t.runs));
      moved = true;
    }
    if (!moved) pass_barriers();
  }
}

/// Every thread waits at a barrier or has ended.
void block_runner::pass_barriers() {
  const operation* first = nullptr;
  warp* owner = nullptr;
  unsigned first_lane = 0, waiting = 0, holding = 0;
  for (const turn& t : turns_)
    for (lane_mask m = t.last == pause::barrier ? t.runs->live() : 0; m != 0; m &= m - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(m));
      const operation& o = t.runs->barrier_of(lane);
      ++waiting;
      if (first == nullptr) {
        first = &o;
        owner = t.runs.get();
        first_lane = lane;
      } else if (first != &o) {
        t.runs->fail(
            lane, o,
            "waits at this barrier while others wait at that of line " + std::to_string(first->source->line));
      }
      holding +=
          o.meets != meeting::none && (t.runs->mask(o.a) >> lane & 1) == o.count;  // 0: the voter inverted
    }
  if (waiting < state_.threads())
    owner->fail(first_lane, *first,
                "waits at a barrier that " + std::to_string(state_.threads() - waiting) + " of " +
                    std::to_string(state_.threads()) +
                    " threads of the block never reach, since they have ended");
  for (turn& t : turns_) {
    const lane_mask live = t.runs->live();
    if (first->meets == meeting::any) t.runs->set(first->d, live, holding > 0 ? every_lane : 0);
    if (first->meets == meeting::all) t.runs->set(first->d, live, holding == waiting ? every_lane : 0);
    if (first->meets == meeting::count)
      std::fill_n(t.runs->lanes<std::uint32_t>(first->d), warp_size, holding);
    t.runs->pass_barrier();
    t.last = pause::slice;
  }
  ++state_.phase;
}

void block_runner::check_time(const warp& w) const {
  if (std::chrono::steady_clock::now() - start_ < patience_) return;
  const auto lane = static_cast<unsigned>(std::countr_zero(w.live()));
  w.fail(lane, w.barrier_of(lane), "runs for more than " + std::to_string(patience_.count()) + " s");
}

namespace {

/// Runners with the memory of earlier launches.
class spare_runners {
 public:
  std::unique_ptr<block_runner> take() {
    const std::lock_guard lock(mutex_);
    if (all_.empty()) return std::make_unique<block_runner>();
    std::unique_ptr<block_runner> r = std::move(all_.back());
    all_.pop_back();
    return r;
  }
  void give(std::unique_ptr<block_runner> r) {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(r));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<block_runner>> all_;
};

spare_runners& spare() {
  static spare_runners* const only = new spare_runners;
  return *only;
}

/// So few blocks are not worth a thread.
constexpr std::uint64_t blocks_of_a_worker = 4;

}  // namespace

account run_grid(const launch& what, unsigned workers, std::chrono::seconds patience) {
  const std::uint64_t blocks = what.grid.size();
  std::atomic<std::uint64_t> next = 0;
  std::mutex mutex;
  account total;
  std::unordered_set<std::uint64_t> sectors;
  std::exception_ptr failure;
  const auto work = [&] {
    std::unique_ptr<block_runner> runner = spare().take();
    runner->begin(patience);
    try {
      for (std::uint64_t b = next++; b < blocks; b = next++) runner->run(what, b);
    } catch (...) {
      next = blocks;
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    total.instructions += runner->instructions();
    total.warp_instructions += runner->warp_instructions();
    total.moved += runner->state().moved;
    sectors.insert(runner->state().sectors.begin(), runner->state().sectors.end());
    spare().give(std::move(runner));
  };
  std::vector<std::thread> others;
  for (unsigned n = 1; n < std::min<std::uint64_t>(workers, blocks / blocks_of_a_worker); ++n)
    others.emplace_back(work);
  work();
  for (std::thread& t : others) t.join();
  if (failure) std::rethrow_exception(failure);
  total.distinct_sectors = sectors.size();
  return total;
}

}  // namespace emulator::ptx

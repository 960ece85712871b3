// SPDX-License-Identifier: Apache-2.0
#pragma once
// What tests ask of the emulator beside what CUDA's own interfaces offer. A program that includes this runs
// on the emulator alone.
#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <functional>
#include <map>
#include <string>

namespace emulator {

/// How often a function of the runtime or of a library was called, by all threads; "NCCL's launch" is what a
/// call, or a group of them, launches on a communicator.
std::uint64_t calls(const std::string& name);

/// What a steady state must not do, or not often; differences of two such counts tell.
struct counters {
  std::uint64_t device_synchronisations = 0;
  std::uint64_t stream_synchronisations = 0;  ///< with those for an event, and copies of pageable memory
  std::uint64_t allocations = 0;              ///< on a device or page-locked
  std::uint64_t launches = 0;

  friend counters operator-(counters a, counters b) {
    return {a.device_synchronisations - b.device_synchronisations,
            a.stream_synchronisations - b.stream_synchronisations, a.allocations - b.allocations,
            a.launches - b.launches};
  }
};
counters count();

/// The call `name`, after as many that succeed, fails with `code`: once. Launches are called "a kernel's
/// launch".
void make_fail(const std::string& name, cudaError_t code, int successes_before = 0);
/// Forgets what enqueued work did wrong, which every later call would answer, and says what it was.
std::string take_failure();

/// How many devices there are: one unless a test wants others.
void set_device_count(int devices);
/// How much memory each device has; 4 GiB unless a test wants less.
void set_device_memory(std::size_t bytes);
/// Bytes of live device memory.
std::size_t bytes_in_use();

/// Whether races between threads of a launch, and between streams, are looked for: slow.
void look_for_races(bool on);
/// How long a kernel may run, and a host may wait for what nobody gives.
void set_patience(int seconds);

/// What launches of one kernel have cost so far.
struct kernel_cost {
  std::uint64_t launches = 0, threads = 0, instructions = 0, warp_instructions = 0;
  /// Sectors of 32 bytes that instructions of warps touch, and how many different ones a launch does.
  std::uint64_t load_sectors = 0, store_sectors = 0, distinct_sectors = 0;
  std::uint64_t loads = 0, wide_loads = 0;  ///< of warps; wide ones have 16 bytes for each thread

  kernel_cost& operator+=(const kernel_cost& o) {
    return combine(o, [](auto& a, auto b) { a += b; });
  }
  kernel_cost& operator-=(const kernel_cost& o) {
    return combine(o, [](auto& a, auto b) { a -= b; });
  }

 private:
  template <class F>
  kernel_cost& combine(const kernel_cost& o, F f) {
    for (const auto member :
         {&kernel_cost::launches, &kernel_cost::threads, &kernel_cost::instructions,
          &kernel_cost::warp_instructions, &kernel_cost::load_sectors, &kernel_cost::store_sectors,
          &kernel_cost::distinct_sectors, &kernel_cost::loads, &kernel_cost::wide_loads})
      f(this->*member, o.*member);
    return *this;
  }
};
/// By the kernel's demangled name.
std::map<std::string, kernel_cost> kernel_costs();
/// Whether launches from now on count sectors and loads, too: slower.
void look_at_sectors(bool on);

/// Lets the host touch device memory while it lives: for tests that look into it.
class opened_arena {
 public:
  opened_arena();
  opened_arena(const opened_arena&) = delete;
  opened_arena& operator=(const opened_arena&) = delete;
  ~opened_arena();
};

/// Work for a stream that is no kernel.
cudaError_t enqueue(cudaStream_t s, std::function<void()> work);

/// After so many calls of NCCL that succeed, the next one of the rank on `device` never ends.
void make_nccl_hang(int device, int calls_before = 0);
/// The same, and the rank's communicator reports an asynchronous error.
void make_nccl_fail(int device, int code, int calls_before = 0);

}  // namespace emulator

#pragma once
// The stand-in's devices: streams whose work is put off until somebody waits for it, so that a wait that is
// missing gives stale or poisoned data, the same every time.
//
// A stream is a queue of steps. They run when a host thread waits for the stream, or for an event behind
// them, or asks how far it is, on whatever thread that is and one at a time under one lock; a step that waits
// for another stream's event runs that stream up to there first. A step may say that it cannot run yet, as it
// needs what another host thread has not enqueued: whoever waits then sleeps until something new is there.
//
// What this cannot show: that work really overlaps, or how fast it is; a missing wait where the order in
// which the host waits happens to be right; what the host does to page-locked memory between two calls.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "cuda_types.h"
#include "device_arena.hpp"

struct CUstream_st {
  int device = 0;
  std::deque<std::function<bool()>> steps;  ///< each returns false when it must be tried again later
  std::uint64_t given = 0, done = 0;
  bool running = false;  ///< its first step is being tried now
};
struct CUevent_st {
  int device = 0;
  bool timed = false;
  std::shared_ptr<CUstream_st> stream;  ///< null until it is recorded
  std::uint64_t position = 0;           ///< steps of the stream that lie before the mark
  std::shared_ptr<std::chrono::steady_clock::time_point> time;
};
struct CUmemPoolHandle_st {
  int device = 0;
};

namespace stand_in {

using stream = CUstream_st;
using event = CUevent_st;

/// Everything there is. Its members want the lock to be held, and steps, which run under it, call nothing
/// else.
class machine {
 public:
  static machine& instance() {
    static machine* const only = new machine;
    return *only;
  }

  std::mutex mutex;
  device_arena arena;
  int devices = 1;
  std::chrono::seconds patience{120};  ///< a host that waits so long while nothing happens gives up
  std::map<stream*, std::shared_ptr<stream>> streams;
  std::set<event*> events;
  std::map<const void*, std::size_t> pinned;  ///< page-locked memory: bytes by address
  cudaError_t failure = cudaSuccess;          ///< of work that was enqueued; every later call says so

  std::shared_ptr<stream> find(cudaStream_t s) const {
    const auto found = streams.find(s);
    return found == streams.end() ? nullptr : found->second;
  }
  void enqueue(stream& s, std::function<bool()> step) {
    s.steps.push_back(std::move(step));
    ++s.given;
  }

  /// Runs steps of `s` until `position` of them are done; false when one cannot run yet.
  bool advance(stream& s, std::uint64_t position) {
    while (s.done < position) {
      if (s.running) return false;
      s.running = true;
      const bool complete = attempt(s.steps.front());
      s.running = false;
      if (!complete) return false;
      s.steps.pop_front();
      ++s.done;
      ++progress_;
    }
    return true;
  }

  /// Runs steps for a host that waits, and wakes the others that do when they may have become ready.
  bool run(stream& s, std::uint64_t position) {
    if (s.done >= position) return true;
    const std::uint64_t before = progress_;
    arena.open();
    const bool reached = advance(s, position);
    arena.close();
    if (progress_ != before) changed.notify_all();
    return reached;
  }

  /// Runs what can be run on every stream: calls that free memory at once wait for the device.
  void run_everything() {
    for (const auto& [handle, s] : streams) run(*s, s->given);
  }

  /// Returns when `position` steps of `s` are done.
  cudaError_t wait_for(std::unique_lock<std::mutex>& lock, stream& s, std::uint64_t position) {
    while (!run(s, position))
      if (!sleep(lock, patience)) {
        std::fprintf(stderr, "stand-in: a stream waits for what nobody enqueues\n");
        return failure = cudaErrorLaunchTimeout;
      }
    return failure;
  }
  /// Makes one step of progress where there is one, and says how things stand.
  cudaError_t query(std::unique_lock<std::mutex>& lock, stream& s, std::uint64_t position) {
    if (s.done >= position) return failure;
    if (!run(s, s.done + 1)) sleep(lock, std::chrono::milliseconds(1));
    return failure != cudaSuccess ? failure : s.done >= position ? cudaSuccess : cudaErrorNotReady;
  }

  /// Something is there that a step may have waited for.
  void announce() {
    ++progress_;
    changed.notify_all();
  }
  /// Waits for an announcement or progress by another thread; false after `time`.
  template <class Duration>
  bool sleep(std::unique_lock<std::mutex>& lock, Duration time) {
    const std::uint64_t before = progress_;
    return changed.wait_until(lock, std::chrono::system_clock::now() + time,
                              [&] { return progress_ != before; });
  }

  /// Counts a call, and says what it must fail with, if so.
  cudaError_t enter(const char* name) {
    ++calls_[name];
    const auto planned = planned_.find(name);
    if (planned == planned_.end()) return failure;
    if (planned->second.first-- > 0) return failure;
    const cudaError_t code = planned->second.second;
    planned_.erase(planned);
    return code;
  }
  std::uint64_t calls(const std::string& name) const {
    const auto found = calls_.find(name);
    return found == calls_.end() ? 0 : found->second;
  }
  void plan_failure(const std::string& name, cudaError_t code, int successes_before) {
    planned_[name] = {successes_before, code};
  }

 private:
  machine() = default;

  bool attempt(const std::function<bool()>& step) {
    try {
      return step();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "stand-in: enqueued work threw: %s\n", e.what());
      failure = cudaErrorLaunchFailure;
      return true;
    }
  }

  std::condition_variable changed;
  std::uint64_t progress_ = 0;
  std::map<std::string, std::uint64_t> calls_;
  std::map<std::string, std::pair<int, cudaError_t>> planned_;
};

inline int& current_device() {
  static thread_local int device = 0;
  return device;
}
inline cudaError_t& last_error() {
  static thread_local cudaError_t code = cudaSuccess;
  return code;
}

/// act(machine, lock) as the call `name` of the runtime: counted, made to fail where a test wants it, its
/// error kept for cudaGetLastError.
template <class Act>
cudaError_t call(const char* name, Act act) {
  machine& m = machine::instance();
  std::unique_lock lock(m.mutex);
  cudaError_t code = m.enter(name);
  if (code == cudaSuccess) code = act(m, lock);
  if (code != cudaSuccess) last_error() = code;
  return code;
}

/// Work for a stream: a kernel, under the name by which it can be counted and made to fail.
inline cudaError_t launch(cudaStream_t s, std::function<void()> work,
                          const char* name = "a kernel's launch") {
  return call(name, [&](machine& m, std::unique_lock<std::mutex>&) {
    const auto found = m.find(s);
    if (!found || found->device != current_device()) return cudaErrorInvalidResourceHandle;
    m.enqueue(*found, [work = std::move(work)] {
      work();
      return true;
    });
    return cudaSuccess;
  });
}
/// The same for work that is no kernel.
inline cudaError_t enqueue(cudaStream_t s, std::function<void()> work) {
  return launch(s, std::move(work), "stand_in::enqueue");
}

/// Lets the host touch device memory while it lives: for tests that look into it.
class opened_arena {
 public:
  opened_arena() { change(&device_arena::open); }
  opened_arena(const opened_arena&) = delete;
  opened_arena& operator=(const opened_arena&) = delete;
  ~opened_arena() { change(&device_arena::close); }

 private:
  static void change(void (device_arena::*how)()) {
    machine& m = machine::instance();
    const std::lock_guard lock(m.mutex);
    (m.arena.*how)();
  }
};

/// How often a function of the runtime was called, by all threads.
inline std::uint64_t calls(const std::string& name) {
  machine& m = machine::instance();
  const std::lock_guard lock(m.mutex);
  return m.calls(name);
}

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
inline counters count() {
  machine& m = machine::instance();
  const std::lock_guard lock(m.mutex);
  counters c;
  c.device_synchronisations = m.calls("cudaDeviceSynchronize");
  for (const char* name : {"cudaStreamSynchronize", "cudaEventSynchronize", "a pageable copy"})
    c.stream_synchronisations += m.calls(name);
  for (const char* name : {"cudaMalloc", "cudaMallocAsync", "cudaMallocFromPoolAsync", "cudaMallocHost"})
    c.allocations += m.calls(name);
  c.launches = m.calls("a kernel's launch");
  return c;
}

/// The call `name`, after as many that succeed, fails with `code`: once.
inline void make_fail(const std::string& name, cudaError_t code, int successes_before = 0) {
  machine& m = machine::instance();
  const std::lock_guard lock(m.mutex);
  m.plan_failure(name, code, successes_before);
}

/// How many devices there are: one unless a test wants others.
inline void set_device_count(int devices) {
  machine& m = machine::instance();
  const std::lock_guard lock(m.mutex);
  m.devices = devices;
}

/// Bytes of live device memory.
inline std::size_t bytes_in_use() {
  machine& m = machine::instance();
  const std::lock_guard lock(m.mutex);
  return m.arena.in_use();
}

}  // namespace stand_in

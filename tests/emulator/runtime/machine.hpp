// SPDX-License-Identifier: Apache-2.0
#pragma once
// The emulated devices: streams whose work is put off until somebody waits for it, so that a wait that is
// missing gives stale or poisoned data, the same every time.
//
// A stream is a queue of steps. They run when a host thread waits for the stream, or for an event behind
// them, or asks how far it is, on whatever thread that is and one at a time under one lock; a step that waits
// for another stream's event runs that stream up to there first. A step may say that it cannot run yet, as it
// needs what another host thread has not enqueued: whoever waits then sleeps until something new is there.
//
// What this cannot show: that work really overlaps, or how fast it is; a missing wait where the order in
// which the host waits happens to be right, unless races are looked for; what the host does to page-locked
// memory between two calls.
#include <chrono>
#include <condition_variable>
#include <cuda_runtime_api.h>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "arena.hpp"
#include "capture.hpp"
#include "order.hpp"

struct CUstream_st {
  struct step {
    std::function<bool()> run;                     ///< returns false when it must be tried again later
    std::shared_ptr<const emulator::clock> after;  ///< what the host knew to be done when it gave the step
  };

  int device = 0;
  int number = 0;  ///< among all streams
  std::string name;
  bool blocking = false;  ///< keeps order with the default stream
  std::deque<step> steps;
  std::uint64_t given = 0, done = 0;
  bool running = false;                           ///< its first step is being tried now
  emulator::clock clock;                          ///< what is certainly done before its next step
  std::shared_ptr<const emulator::clock> joined;  ///< the host's that is part of it
  std::shared_ptr<emulator::capture> capture;     ///< that takes its work, if one does
};
struct CUevent_st {
  int device = 0;
  bool timed = false;
  std::shared_ptr<CUstream_st> stream;  ///< null until it is recorded, and of a capture
  std::uint64_t position = 0;           ///< steps of the stream that lie before the event
  std::shared_ptr<emulator::clock> clock;
  std::shared_ptr<std::chrono::steady_clock::time_point> time;
  std::shared_ptr<emulator::capture> capture;  ///< that it was recorded in, and what lies before it there
  std::map<const CUstream_st*, std::size_t> before;
};
struct CUmemPoolHandle_st : emulator::memory_pool {};

namespace emulator {

using stream = CUstream_st;
using event = CUevent_st;

/// Everything there is. Its members want the lock to be held, and steps, which run under it, call nothing
/// else.
class machine {
 public:
  static machine& instance();

  std::mutex mutex;
  device_arena arena;
  int devices = 1;
  std::chrono::seconds patience{
      120};  ///< a host that waits so long while nothing happens gives up, and a kernel
  std::map<stream*, std::shared_ptr<stream>> streams;
  std::set<event*> events;
  std::set<memory_pool*> pools;
  std::set<const void*> of_graphs;            ///< blocks that graphs allocated and nobody has freed
  std::map<const void*, std::size_t> pinned;  ///< page-locked memory: bytes by address
  cudaError_t failure = cudaSuccess;          ///< of work that was enqueued; every later call says so
  std::string failure_text;
  race_log races;

  std::shared_ptr<stream> add_stream(int device, bool blocking, const std::string& name);
  /// Of a handle, which may mean the default stream of the current device; null where there is none.
  std::shared_ptr<stream> find(cudaStream_t s);
  memory_pool& default_pool(int device);

  /// Of a stream that captures, into its list.
  void enqueue(stream& s, std::function<bool()> step);
  /// One that can run at once.
  void enqueue_work(stream& s, std::function<void()> work) {
    enqueue(s, [work = std::move(work)] { return work(), true; });
  }
  /// Runs steps of `s` until `position` of them are done; false when one cannot run yet.
  bool advance(stream& s, std::uint64_t position);
  /// The same for a host that waits; wakes others that do when they may have become ready.
  bool run(stream& s, std::uint64_t position);
  /// Runs what can be run on every stream: calls that free memory at once wait for the device.
  void run_everything();
  /// Returns when `position` steps of `s` are done.
  cudaError_t wait_for(std::unique_lock<std::mutex>& lock, stream& s, std::uint64_t position);
  /// Makes one step of progress where there is one, and says how things stand.
  cudaError_t query(std::unique_lock<std::mutex>& lock, stream& s, std::uint64_t position);
  /// Throws refused_call for what some capture's mode forbids the calling thread.
  void require_no_capture(const char* what);
  /// The host knows that all before `position` is done, and whatever is given from now on comes after.
  void observe(const clock& c);

  /// Memory of a device for work that is no kernel, where the emulator finds it. Throws ptx::fault unless it
  /// lies within a block, and was written before it is read.
  template <class T>
  const T* reading(const T* memory, std::size_t count, const char* what) {
    touch(memory, count * sizeof(T), false, what);
    return arena.reached(memory);
  }
  template <class T>
  T* writing(T* memory, std::size_t count, const char* what) {
    touch(memory, count * sizeof(T), true, what);
    return arena.reached(memory);
  }

  /// Something is there that a step may have waited for.
  void announce();
  /// Waits for an announcement or progress by another thread; false after `time`.
  bool sleep(std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds time);

  /// Counts a call, and says what it must fail with, if so.
  cudaError_t enter(const std::string& name);
  std::uint64_t calls(const std::string& name) const;
  void plan_failure(const std::string& name, cudaError_t code, int successes_before);
  /// What work that was enqueued did wrong.
  void fail(cudaError_t code, const std::string& text);
  /// Prints what a call refuses, once if it does so again and again.
  void complain(const std::string& text);
  /// When the program ends: does what nobody waited for.
  void finish();

 private:
  machine();

  bool attempt(stream& s);
  void touch(const void* memory, std::size_t bytes, bool writes, const char* what);

  std::condition_variable changed_;
  std::uint64_t progress_ = 0;
  int next_number_ = 0;
  std::string complaint_;
  std::shared_ptr<const clock> host_;
  std::map<int, std::shared_ptr<stream>> default_streams_;
  std::map<int, std::unique_ptr<CUmemPoolHandle_st>> default_pools_;
  std::map<std::string, std::uint64_t> calls_;
  std::map<std::string, std::pair<int, cudaError_t>> planned_;
};

int& current_device();
cudaError_t& last_error();
/// The last call of this thread that failed with a sentence, which stays until another one fails.
struct explained_error {
  cudaError_t code = cudaSuccess;
  std::string text;
  bool fresh = false;  ///< of the call that is under way
};
explained_error& last_explained();
inline cudaError_t fail_with(cudaError_t code, const std::string& text) {
  last_explained() = {code, text, true};
  return code;
}
/// The same, and prints it.
inline cudaError_t refuse_with(cudaError_t code, const std::string& text) {
  machine::instance().complain(text);
  return fail_with(code, text);
}

/// act(machine, lock), which returns an error or nothing, as the call `name` of the runtime: counted, made to
/// fail where a test wants it, its error kept for cudaGetLastError.
template <class Act>
cudaError_t call(const char* name, Act act) {
  machine& m = machine::instance();
  std::unique_lock lock(m.mutex);
  cudaError_t code = m.enter(name);
  if (code == cudaSuccess) {
    try {
      if constexpr (std::is_void_v<decltype(act(m, lock))>)
        act(m, lock);
      else
        code = act(m, lock);
    } catch (const refused_call& refused) {
      code = refuse_with(refused.code, std::string(name) + ": " + refused.text);
    }
  }
  if (code == cudaSuccess) return code;
  last_error() = code;
  if (!std::exchange(last_explained().fresh, false)) last_explained() = {};
  return code;
}

/// Work for a stream under the name by which it can be counted and made to fail.
cudaError_t enqueue_work(cudaStream_t s, const char* name, std::function<void()> work);

}  // namespace emulator

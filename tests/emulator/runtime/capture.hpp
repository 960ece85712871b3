// SPDX-License-Identifier: Apache-2.0
#pragma once
// Capture: what streams are asked for between cudaStreamBeginCapture and cudaStreamEndCapture is listed, in
// the order of the calls, and done in that order, on one stream, each time the graph is launched.
#include <cuda_runtime_api.h>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace emulator {

/// A call that is refused, from wherever that is found: call() answers with it.
struct refused_call {
  cudaError_t code;
  std::string text;
};

/// The list, and the memory that it allocates, which lives as long as it does.
struct recorded_work {
  std::vector<std::function<bool()>> steps;
  std::vector<void*> memory;

  recorded_work() = default;
  recorded_work(const recorded_work&) = delete;
  recorded_work& operator=(const recorded_work&) = delete;
  ~recorded_work();
};

/// One that is under way.
struct capture {
  using stream = CUstream_st;

  stream* origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  bool ended = false, broken = false;
  std::shared_ptr<recorded_work> work = std::make_shared<recorded_work>();
  /// Of each stream that takes part, how much of what each other one has been given lies before its next
  /// work.
  std::map<const stream*, std::map<const stream*, std::size_t>> before;

  void add(const stream* s, std::function<bool()> step) {
    work->steps.push_back(std::move(step));
    ++before[s][s];
  }
  /// The next work of `s` comes after what `known` says.
  void follow(const stream* s, const std::map<const stream*, std::size_t>& known) {
    for (const auto& [other, count] : known) before[s][other] = std::max(before[s][other], count);
  }
  /// Whether the origin comes after all that other streams were given.
  bool is_joined() {
    auto& known = before[origin];
    for (const auto& [s, of_it] : before)
      if (const auto own = of_it.find(s); own != of_it.end() && known[s] < own->second) return false;
    return true;
  }
  /// Throws refused_call, and the capture is of no use from now on.
  [[noreturn]] void refuse(cudaError_t code, const std::string& text) {
    broken = true;
    throw refused_call{code, text + " while a stream captures"};
  }
};

}  // namespace emulator

struct CUgraph_st {
  std::shared_ptr<emulator::recorded_work> work;
};
struct CUgraphExec_st {
  std::shared_ptr<emulator::recorded_work> work;
};

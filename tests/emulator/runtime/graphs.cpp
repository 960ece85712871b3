// SPDX-License-Identifier: Apache-2.0
// Capture and graphs of the emulated runtime.
#include "machine.hpp"

namespace emulator {

recorded_work::~recorded_work() {
  machine& m = machine::instance();
  for (void* const memory : this->memory)
    if (m.of_graphs.erase(memory) > 0 && m.arena.retire(memory)) {
      m.races.forget(memory, m.arena.find(memory)->bytes);
      m.arena.release(memory);
    }
}

void machine::require_no_capture(const char* what) {
  for (const auto& [handle, s] : streams)
    if (s->capture && s->capture->origin == handle &&
        (s->capture->mode == cudaStreamCaptureModeGlobal ||
         (s->capture->mode == cudaStreamCaptureModeThreadLocal &&
          s->capture->thread == std::this_thread::get_id())))
      s->capture->refuse(cudaErrorStreamCaptureUnsupported, std::string(what) + " is not allowed");
}

}  // namespace emulator

using emulator::call;
using emulator::refuse_with;

extern "C" {

cudaError_t CUDARTAPI cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return call("cudaStreamBeginCapture", [&](auto& m, auto&) {
    if (handle == nullptr || handle == cudaStreamLegacy)
      return refuse_with(cudaErrorStreamCaptureUnsupported, "the legacy stream cannot be captured");
    const auto s = m.find(handle);
    if (!s) return cudaErrorInvalidResourceHandle;
    if (s->capture) return refuse_with(cudaErrorIllegalState, s->name + " captures already");
    s->capture = std::make_shared<emulator::capture>();
    s->capture->origin = s.get();
    s->capture->mode = mode;
    s->capture->thread = std::this_thread::get_id();
    s->capture->before[s.get()];
    return cudaSuccess;
  });
}
cudaError_t CUDARTAPI cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  return call("cudaStreamEndCapture", [&](auto& m, auto&) {
    *graph = nullptr;
    const auto s = m.find(handle);
    if (!s) return cudaErrorInvalidResourceHandle;
    const auto c = s->capture;
    if (!c) return refuse_with(cudaErrorIllegalState, s->name + " does not capture");
    if (c->origin != s.get())
      return refuse_with(cudaErrorStreamCaptureUnmatched, "the capture did not begin on " + s->name);
    if (c->mode != cudaStreamCaptureModeRelaxed && c->thread != std::this_thread::get_id())
      return refuse_with(cudaErrorStreamCaptureWrongThread, "another thread began the capture");
    c->ended = true;
    auto work = std::move(c->work);  // events know the capture for longer
    for (const auto& [other, of_it] : m.streams)
      if (of_it->capture == c) of_it->capture.reset();
    if (c->broken)
      return refuse_with(cudaErrorStreamCaptureInvalidated, "an earlier error ended the capture");
    if (!c->is_joined())
      return refuse_with(cudaErrorStreamCaptureUnjoined,
                         "the capture's first stream does not wait for another one's work");
    *graph = new CUgraph_st{std::move(work)};
    return cudaSuccess;
  });
}
cudaError_t CUDARTAPI cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  return call("cudaStreamIsCapturing", [&](auto& m, auto&) {
    const auto s = m.find(handle);
    if (!s) return cudaErrorInvalidResourceHandle;
    *status = !s->capture          ? cudaStreamCaptureStatusNone
              : s->capture->broken ? cudaStreamCaptureStatusInvalidated
                                   : cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}

cudaError_t CUDARTAPI cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  return call("cudaGraphInstantiate", [&](auto&, auto&) {
    if (graph == nullptr) return cudaErrorInvalidValue;
    *made = new CUgraphExec_st{graph->work};
    return cudaSuccess;
  });
}
cudaError_t CUDARTAPI cudaGraphInstantiateWithFlags(cudaGraphExec_t* made, cudaGraph_t graph,
                                                    unsigned long long flags) {
  return cudaGraphInstantiate(made, graph, flags);
}
cudaError_t CUDARTAPI cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t handle) {
  return call("cudaGraphLaunch", [&](auto& m, auto&) {
    const auto s = m.find(handle);
    if (!s || graph == nullptr) return cudaErrorInvalidResourceHandle;
    if (s->capture) s->capture->refuse(cudaErrorStreamCaptureUnsupported, "a graph is launched");
    for (const auto& step : graph->work->steps) m.enqueue(*s, [work = graph->work, &step] { return step(); });
    return cudaSuccess;
  });
}
cudaError_t CUDARTAPI cudaGraphExecDestroy(cudaGraphExec_t graph) {
  return call("cudaGraphExecDestroy", [&](auto&, auto&) { delete graph; });
}
cudaError_t CUDARTAPI cudaGraphDestroy(cudaGraph_t graph) {
  return call("cudaGraphDestroy", [&](auto&, auto&) { delete graph; });
}

}  // extern "C"

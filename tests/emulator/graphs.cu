// SPDX-License-Identifier: Apache-2.0
// Capture: what a graph does each time, and what is refused while a stream captures.
#include <algorithm>
#include <string>

#include "emulator/control.hpp"
#include "emulator/planted_faults.hpp"

using namespace planted;

namespace {

__global__ void add_one(const int* from, int* to) { to[threadIdx.x] = from[threadIdx.x] + 1; }

/// Page-locked numbers.
struct pinned {
  explicit pinned(int count) {
    require(cudaMallocHost(&data, static_cast<std::size_t>(count) * sizeof(int)));
  }
  pinned(const pinned&) = delete;
  pinned& operator=(const pinned&) = delete;
  ~pinned() { cudaFreeHost(data); }

  int* data = nullptr;
};

struct event {
  event() { require(cudaEventCreateWithFlags(&handle, cudaEventDisableTiming)); }
  event(const event&) = delete;
  event& operator=(const event&) = delete;
  ~event() { cudaEventDestroy(handle); }

  cudaEvent_t handle = nullptr;
};

cudaStreamCaptureStatus status_of(cudaStream_t s) {
  cudaStreamCaptureStatus status{};
  require(cudaStreamIsCapturing(s, &status));
  return status;
}

/// The graph of what work() enqueues on `s`.
template <class Work>
cudaGraphExec_t recorded(cudaStream_t s, const Work& work) {
  require(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  work();
  cudaGraph_t graph = nullptr;
  require(cudaStreamEndCapture(s, &graph));
  cudaGraphExec_t made = nullptr;
  require(cudaGraphInstantiate(&made, graph, 0));
  require(cudaGraphDestroy(graph));
  return made;
}

/// What `call` answers while a stream captures, which must end the capture, and says why.
template <class Call>
cudaError_t refused(cudaStream_t s, cudaStreamCaptureMode mode, const Call& call, std::string& why) {
  require(cudaStreamBeginCapture(s, mode));
  const cudaError_t code = call();
  why = cudaGetErrorString(code);
  static_cast<void>(cudaGetLastError());
  CHECK(status_of(s) == cudaStreamCaptureStatusInvalidated);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(s, &graph) == cudaErrorStreamCaptureInvalidated);
  CHECK(graph == nullptr);
  static_cast<void>(cudaGetLastError());
  return code;
}

}  // namespace

TEST_CASE(
    "what is captured is not done, and a graph does it at each launch, with what host memory has then") {
  const stream s, t;
  const event forked, joined;
  const pinned in(32), out(32);
  const values<int> a(32), b(32);
  const std::size_t in_use = emulator::bytes_in_use();
  int* inside = nullptr;
  const cudaGraphExec_t graph = recorded(s.handle, [&] {
    require(cudaMemcpyAsync(a.data(), in.data, 32 * sizeof(int), cudaMemcpyDefault, s.handle));
    require(cudaEventRecord(forked.handle, s.handle));
    require(cudaStreamWaitEvent(t.handle, forked.handle, 0));
    CHECK(status_of(t.handle) == cudaStreamCaptureStatusActive);
    add_one<<<1, 16, 0, t.handle>>>(a.data(), b.data());
    require(cudaMemsetAsync(b.data() + 16, 0, 16 * sizeof(int), s.handle));
    require(cudaEventRecord(joined.handle, t.handle));
    require(cudaStreamWaitEvent(s.handle, joined.handle, 0));
    require(cudaMallocAsync(&inside, 32 * sizeof(int), s.handle));
    add_one<<<1, 32, 0, s.handle>>>(b.data(), inside);
    require(cudaMemcpyAsync(out.data, inside, 32 * sizeof(int), cudaMemcpyDefault, s.handle));
    require(cudaFreeAsync(inside, s.handle));
  });
  CHECK(status_of(t.handle) == cudaStreamCaptureStatusNone);
  std::fill_n(out.data, 32, 7);
  require(cudaStreamSynchronize(s.handle));
  CHECK(out.data[0] == 7);
  const std::uint64_t launches = emulator::count().launches;
  for (const int first : {10, 20}) {
    for (int k = 0; k < 32; ++k) in.data[k] = first + k;
    require(cudaGraphLaunch(graph, s.handle));
    require(cudaStreamSynchronize(s.handle));
    for (int k = 0; k < 32; ++k) CHECK(out.data[k] == (k < 16 ? first + k + 2 : 1));
  }
  CHECK(emulator::count().launches == launches);
  require(cudaGraphExecDestroy(graph));
  CHECK(emulator::bytes_in_use() == in_use);
}

TEST_CASE("a fault of a kernel in a graph is that of the launch which finds it") {
  const stream s;
  const values<int> a(32), b(32);
  const cudaGraphExec_t graph =
      recorded(s.handle, [&] { add_one<<<1, 32, 0, s.handle>>>(a.data(), b.data()); });
  check_contains(fault_of([&] { require(cudaGraphLaunch(graph, s.handle)); }),
                 {"never written", "add_one(int const*, int*)"});
  require(cudaGraphExecDestroy(graph));
}

TEST_CASE("while a stream captures, what would wait or depend on work outside is refused, and ends it") {
  const stream s, other;
  const event outside, inside;
  const values<int> a(32);
  int host[32] = {};
  std::string why;
  require(cudaEventRecord(outside.handle, other.handle));
  const auto check = [&](cudaStreamCaptureMode mode, cudaError_t code, const char* reason, auto call) {
    CHECK(refused(s.handle, mode, call, why) == code);
    check_contains(why, {reason, "while a stream captures"});
  };
  const auto unsupported = cudaErrorStreamCaptureUnsupported;
  check(cudaStreamCaptureModeRelaxed, unsupported, "waits for stream",
        [&] { return cudaStreamSynchronize(s.handle); });
  check(cudaStreamCaptureModeRelaxed, unsupported, "asks for stream",
        [&] { return cudaStreamQuery(s.handle); });
  check(cudaStreamCaptureModeRelaxed, unsupported, "waits for stream",
        [] { return cudaDeviceSynchronize(); });
  check(cudaStreamCaptureModeRelaxed, unsupported, "waits for stream",
        [&] { return cudaMemcpyAsync(a.data(), host, sizeof host, cudaMemcpyHostToDevice, s.handle); });
  check(cudaStreamCaptureModeRelaxed, cudaErrorStreamCaptureIsolation, "from before it",
        [&] { return cudaStreamWaitEvent(s.handle, outside.handle, 0); });
  for (const auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal}) {
    check(mode, unsupported, "cudaMalloc", [&] {
      void* memory = nullptr;
      return cudaMalloc(&memory, 4);
    });
    check(mode, unsupported, "a query", [&] { return cudaEventQuery(outside.handle); });
  }
  require(cudaStreamBeginCapture(s.handle, cudaStreamCaptureModeRelaxed));
  const values<int> allowed(1);
  require(cudaEventRecord(inside.handle, s.handle));
  CHECK(cudaEventSynchronize(inside.handle) == cudaErrorCapturedEvent);
  CHECK(cudaEventQuery(inside.handle) == cudaErrorCapturedEvent);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(other.handle, &graph) == cudaErrorIllegalState);
  require(cudaStreamWaitEvent(other.handle, inside.handle, 0));
  CHECK(cudaStreamEndCapture(other.handle, &graph) == cudaErrorStreamCaptureUnmatched);
  CHECK(cudaStreamEndCapture(s.handle, &graph) == cudaErrorStreamCaptureUnjoined);
  CHECK(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeRelaxed) == unsupported);
  static_cast<void>(cudaGetLastError());
}

TEST_CASE("the default stream may not be used while a stream captures that keeps order with it") {
  cudaStream_t blocking = nullptr;
  require(cudaStreamCreate(&blocking));
  std::string why;
  const values<int> a(32);
  const auto set = [&] { return cudaMemsetAsync(a.data(), 0, 4, nullptr); };
  CHECK(refused(blocking, cudaStreamCaptureModeRelaxed, set, why) == cudaErrorStreamCaptureImplicit);
  check_contains(why, {"the default stream is used"});
  require(cudaStreamDestroy(blocking));
  const stream s;
  require(cudaStreamBeginCapture(s.handle, cudaStreamCaptureModeRelaxed));
  require(set());
  cudaGraph_t graph = nullptr;
  require(cudaStreamEndCapture(s.handle, &graph));
  require(cudaGraphDestroy(graph));
}

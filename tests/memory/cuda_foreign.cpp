// SPDX-License-Identifier: Apache-2.0
// Queues on streams and with memory of somebody else, on the emulator's devices.
#include <doctest/doctest.h>

#include "emulator/control.hpp"
#include "partita/memory/cuda.hpp"
#include "partita/memory/cuda_launch.hpp"
#include "support/filled_memory.hpp"
#include "support/ranks.hpp"

namespace test_cuda_foreign {

using partita::buffer, partita::cuda_device, partita::device_queue;
using test_support::download, test_support::expect_error, test_support::fill, test_support::filled,
    test_support::increment;

/// A stream of somebody else, who destroys it, and memory of an allocator that counts.
struct foreigner {
  cudaStream_t stream = nullptr;
  std::size_t given = 0, taken = 0;

  foreigner() { CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess); }
  foreigner(const foreigner&) = delete;
  ~foreigner() { CHECK(cudaStreamDestroy(stream) == cudaSuccess); }
  partita::on_cuda::foreign_stream with_memory(std::size_t askew = 0) {
    return {stream,
            [this, askew](std::size_t bytes, cudaStream_t on) {
              CHECK(on == stream);
              void* memory = nullptr;
              if (bytes == 400) throw std::bad_alloc();
              if (bytes == 800) return memory;
              CHECK(cudaMallocAsync(&memory, bytes + askew, on) == cudaSuccess);
              given += bytes;
              return static_cast<void*>(static_cast<char*>(memory) + askew);
            },
            [this, askew](void* memory, std::size_t bytes, cudaStream_t on) {
              CHECK(cudaFreeAsync(static_cast<char*>(memory) - askew, on) == cudaSuccess);
              taken += bytes;
            }};
  }
};

TEST_CASE("a queue adopts a stream, whose own work comes before and after, and leaves it alive") {
  foreigner other;
  int* theirs = nullptr;
  CHECK(cudaMallocAsync(&theirs, 40, other.stream) == cudaSuccess);
  CHECK(cudaMemsetAsync(theirs, 0, 40, other.stream) == cudaSuccess);
  {
    const device_queue<cuda_device> q(0, partita::on_cuda::foreign_stream{other.stream});
    CHECK(q.stream() == other.stream);
    buffer<int, cuda_device> b(q, 10);
    partita::on_cuda::launch(q, 10, increment{theirs, b.data()});
    CHECK(cudaMemcpyAsync(theirs, b.data(), 40, cudaMemcpyDeviceToDevice, other.stream) == cudaSuccess);
    partita::on_cuda::launch(q, 10, increment{theirs, b.data()});
    CHECK(download(q, b) == std::vector<int>(10, 2));
  }
  CHECK(cudaFreeAsync(theirs, other.stream) == cudaSuccess);
  CHECK(cudaStreamSynchronize(other.stream) == cudaSuccess);
}

TEST_CASE("a foreign allocator gives and takes what a queue's buffers have") {
  foreigner other;
  {
    const device_queue<cuda_device> q(0, other.with_memory());
    {
      buffer<int, cuda_device> a(q, 10), b(q, 33);
      CHECK(other.given == 172);
      CHECK(q.meter()->current() == 172);
      partita::on_cuda::launch(q, 33, fill{b.data(), 4});
      CHECK(download(q, b) == filled(33, 4));
    }
    CHECK(other.taken == 172);
    q.recycle_memory();
    { const buffer<int, cuda_device> a(q, 10); }
    CHECK(other.taken == 212);
    CHECK_THROWS_AS((buffer<int, cuda_device>(q, 100)), std::bad_alloc);
    expect_error<partita::device_error>("a foreign allocator gave no memory for a buffer of 800 bytes",
                                        [&] { buffer<int, cuda_device>(q, 200); });
    CHECK(q.meter()->current() == 0);
    const device_queue<cuda_device> askew(0, other.with_memory(128));
    expect_error<partita::device_error>("gave memory not aligned to 256 bytes for a buffer of 12 bytes",
                                        [&] { buffer<int, cuda_device>(askew, 3); });
    CHECK(askew.meter()->current() == 0);
    auto half = other.with_memory();
    half.release = nullptr;
    expect_error<partita::error>("a foreign allocator needs both allocate and release",
                                 [&] { device_queue<cuda_device>(0, half); });
  }
  CHECK(other.given == other.taken);
}

TEST_CASE("a queue waits for a foreign stream, and that stream for it") {
  foreigner other;
  const device_queue<cuda_device> q, theirs(0, partita::on_cuda::foreign_stream{other.stream});
  buffer<int, cuda_device> a(q, 10), b(q, 10), c(q, 10);
  q.synchronize();
  partita::on_cuda::launch(theirs, 10, fill{a.data(), 1});
  q.wait_for(other.stream);
  partita::on_cuda::launch(q, 10, increment{a.data(), b.data()});
  q.make_wait(other.stream);
  q.make_wait(q.stream());
  partita::on_cuda::launch(theirs, 10, increment{b.data(), c.data()});
  CHECK(download(theirs, c) == filled(10, 3));
}

}  // namespace test_cuda_foreign

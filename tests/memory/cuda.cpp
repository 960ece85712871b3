// SPDX-License-Identifier: Apache-2.0
// Memory, streams, events and waits of the place cuda, on the emulator's devices.
#include "partita/memory/cuda.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emulator/control.hpp"
#include "partita/memory/cuda_launch.hpp"
#include "partita/memory/cuda_sort.hpp"
#include "support/filled_memory.hpp"
#include "support/ranks.hpp"

namespace test_cuda_memory {

using partita::buffer, partita::cuda_device, partita::device_queue, partita::on_cuda::cuda_event;
using test_support::download, test_support::expect_error, test_support::fill, test_support::filled,
    test_support::increment;

bool aligned(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 256 == 0; }

TEST_CASE("a runtime of another major version is refused") {
  partita::on_cuda::require_runtime();
  partita::on_cuda::require_runtime(CUDART_VERSION + 10);
  CHECK_THROWS_AS(partita::on_cuda::require_runtime(CUDART_VERSION + 1000), partita::device_error);
}

TEST_CASE("a budget bounds what is live on a queue") {
  const device_queue<cuda_device> q;
  q.limit_memory(64);
  const buffer<int, cuda_device> a(q, 10);
  expect_error<partita::budget_error>(
      "a buffer of 28 bytes does not fit into the budget of 64 bytes beside buffers of 40 bytes: at least 68 "
      "bytes are needed",
      [&] { buffer<int, cuda_device>(q, 7); });
  CHECK(q.meter()->current() == 40);
  CHECK(buffer<int, cuda_device>(q, 6).size() == 6);
  CHECK(q.meter()->peak() == 64);
}

TEST_CASE("buffers own aligned memory that the meter counts, and release it") {
  const device_queue<cuda_device> q;
  const std::size_t before = emulator::bytes_in_use();
  {
    buffer<double, cuda_device> a(q, 3), b(q, 1000);
    const buffer<double, cuda_device> none(q, 0);
    CHECK(aligned(a.data()));
    CHECK(aligned(b.data()));
    CHECK(a.data() + 3 <= b.data());
    CHECK(none.data() == nullptr);
    CHECK(q.meter()->current() == 1003 * sizeof(double));
    CHECK(q.meter()->allocations() == 2);
    b = std::move(a);
    CHECK(b.size() == 3);
    CHECK(emulator::bytes_in_use() - before >= 3 * sizeof(double));
  }
  CHECK(q.meter()->current() == 0);
  CHECK(q.meter()->peak() == 1003 * sizeof(double));
  CHECK(emulator::bytes_in_use() == before);
}

TEST_CASE("a buffer outlives its queue") {
  buffer<int, cuda_device> b;
  {
    const device_queue<cuda_device> q;
    b = buffer<int, cuda_device>(q, 5);
  }
  CHECK(b.size() == 5);
}

TEST_CASE("reset allocates nothing when the capacity suffices") {
  const device_queue<cuda_device> q;
  buffer<float, cuda_device> b(q, 100);
  const auto before = emulator::count();
  const float* const memory = b.data();
  for (const std::size_t size : {50U, 100U, 1U, 0U, 99U}) {
    b.reset(q, size);
    CHECK(b.size() == size);
    CHECK(b.data() == memory);
  }
  CHECK((emulator::count() - before).allocations == 0);
  b.reset(q, 101);
  CHECK((emulator::count() - before).allocations == 1);
}

TEST_CASE("copies both ways and within the device, kernels between them") {
  const device_queue<cuda_device> q;
  for (const int n : {0, 1, 36, 37, 38, 1000}) {
    CAPTURE(n);
    const auto size = static_cast<std::size_t>(n);
    std::vector<int> source(size);
    std::iota(source.begin(), source.end(), -5);
    buffer<int, cuda_device> a(q, size), b(q, size), c(q, size);
    partita::copy(q, std::span<const int>(source), a.span());
    partita::on_cuda::launch(q, n, increment{a.data(), b.data()});
    partita::copy(q, std::span<const int>(b.span()), c.span());
    for (int& v : source) ++v;
    CHECK(download(q, c) == source);
    if (n > 0) CHECK(partita::on_cuda::read(q, c.data() + n - 1) == source.back());
  }
}

TEST_CASE("memory that was never written is not read") {
  const device_queue<cuda_device> q;
  const buffer<int, cuda_device> fresh(q, 9);
  expect_error<partita::device_error>("a copy of 36 bytes reads memory that was never written",
                                      [&] { download(q, fresh); });
  CHECK(!emulator::take_failure().empty());
}

TEST_CASE("scratch keeps its memory from call to call") {
  const device_queue<cuda_device> q;
  CHECK(aligned(partita::on_cuda::scratch<double>(q, 10)));
  const auto before = emulator::count();
  for (std::size_t n : {1U, 10U, 7U}) CHECK(partita::on_cuda::scratch<double>(q, n) != nullptr);
  CHECK(partita::on_cuda::scratch<float>(q, 20) != nullptr);
  CHECK((emulator::count() - before).allocations == 0);
}

TEST_CASE("an event holds another queue back, and without it memory is read too early") {
  for (const bool waits : {true, false}) {
    CAPTURE(waits);
    const device_queue<cuda_device> first, second;
    buffer<int, cuda_device> a(first, 100), b(second, 100);
    first.synchronize();
    partita::on_cuda::launch(first, 100, fill{a.data(), 7});
    partita::on_cuda::cuda_event filled_now(*first.owner());
    CHECK(filled_now.reached());
    filled_now.record(*first.owner());
    if (waits) filled_now.make_wait(second.stream());
    partita::on_cuda::launch(second, 100, increment{a.data(), b.data()});
    if (waits) {
      CHECK(download(second, b) == filled(100, 8));
    } else {
      expect_error<partita::device_error>("was never written", [&] { download(second, b); });
      CHECK(!emulator::take_failure().empty());
    }
    first.synchronize();
    CHECK(filled_now.reached());
    CHECK(download(first, a) == filled(100, 7));
  }
}

TEST_CASE("an event is reached when the work before it is done, and asking leaves no error behind") {
  const device_queue<cuda_device> q;
  buffer<int, cuda_device> a(q, 10);
  q.synchronize();
  partita::on_cuda::cuda_event mark(*q.owner());
  partita::on_cuda::launch(q, 10, fill{a.data(), 0});
  partita::on_cuda::launch(q, 10, increment{a.data(), a.data()});
  mark.record(*q.owner());
  CHECK(!mark.reached());
  partita::on_cuda::launch(q, 10, increment{a.data(), a.data()});
  while (!mark.reached()) {
  }
  CHECK(download(q, a) == filled(10, 2));
}

TEST_CASE("synchronising is counted, and never done for the whole device") {
  const device_queue<cuda_device> q;
  const auto before = emulator::count();
  buffer<int, cuda_device> a(q, 10);
  partita::on_cuda::launch(q, 10, fill{a.data(), 0});
  CHECK((emulator::count() - before).stream_synchronisations == 0);
  q.synchronize();
  const auto spent = emulator::count() - before;
  CHECK(spent.stream_synchronisations == 1);
  CHECK(spent.device_synchronisations == 0);
  CHECK(spent.launches == 1);
  CHECK(spent.allocations == 1);
}

TEST_CASE("errors name the call") {
  using partita::device_error;
  expect_error<device_error>("cudaSetDevice failed: cudaErrorInvalidDevice",
                             [] { device_queue<cuda_device> q(1); });
  expect_error<device_error>("cudaSetDevice failed", [] { device_queue<cuda_device> q(-1); });
  emulator::set_device_count(0);
  expect_error<device_error>("cudaErrorNoDevice", [] { device_queue<cuda_device> q; });
  emulator::set_device_count(1);
  const device_queue<cuda_device> q;
  buffer<int, cuda_device> a(q, 10);
  int value = 0;
  emulator::make_fail("cudaMemcpyAsync", cudaErrorInvalidValue);
  expect_error<device_error>("cudaMemcpyAsync failed: cudaErrorInvalidValue",
                             [&] { value = partita::on_cuda::read(q, a.data()); });
  emulator::make_fail("cudaMallocAsync", cudaErrorUnknown, 1);
  const buffer<int, cuda_device> enough(q, 1);
  expect_error<device_error>("cudaMallocAsync failed: cudaErrorUnknown",
                             [&] { buffer<int, cuda_device> b(q, 1); });
  expect_error<device_error>("cudaMallocAsync failed: cudaErrorMemoryAllocation",
                             [&] { buffer<int, cuda_device> b(q, std::size_t{1} << 40); });
  emulator::make_fail("a kernel's launch", cudaErrorLaunchFailure);
  expect_error<device_error>("a kernel's launch failed: cudaErrorLaunchFailure", [&] {
    partita::on_cuda::launch(q, 10, fill{a.data(), 1});
  });
  emulator::make_fail("cudaStreamSynchronize", cudaErrorLaunchFailure);
  expect_error<device_error>("cudaStreamSynchronize failed: cudaErrorLaunchFailure",
                             [&] { q.synchronize(); });
  partita::on_cuda::launch(q, 10, fill{a.data(), 1});
  CHECK(download(q, a) == filled(10, 1));
}

TEST_CASE("queues of several devices on one thread, and one on another thread, need no current device") {
  emulator::set_device_count(2);
  {
    const device_queue<cuda_device> first(0), second(1);
    expect_error<partita::device_error>("a stream of device 1 cannot be adopted by a queue of device 0", [&] {
      device_queue<cuda_device>(0, partita::on_cuda::foreign_stream{second.stream()});
    });
    int current = -1;
    CHECK(cudaGetDevice(&current) == cudaSuccess);
    CHECK(current == 0);
    CHECK(second.device() == 1);
    buffer<int, cuda_device> a(second, 4), b(first, 4);
    cudaPointerAttributes attributes;
    CHECK(cudaPointerGetAttributes(&attributes, a.data()) == cudaSuccess);
    CHECK(attributes.type == cudaMemoryTypeDevice);
    CHECK(attributes.device == 1);
    partita::on_cuda::launch(second, 4, fill{a.data(), 1});
    partita::on_cuda::launch(first, 4, fill{b.data(), 2});
    partita::on_cuda::cuda_event mark(*second.owner());
    mark.record(*second.owner());
    mark.make_wait(first.stream());
    expect_error<partita::device_error>("an event of device 1 cannot be recorded on device 0",
                                        [&] { mark.record(*first.owner()); });
    buffer<int, cuda_device> values(second, 4), other_keys(second, 4), other_values(second, 4);
    partita::on_cuda::launch(second, 4, fill{values.data(), 3});
    partita::on_cuda::sorted_pairs<int, int> pairs{a.data(), values.data(), other_keys.data(),
                                                   other_values.data()};
    partita::on_cuda::sort_pairs(second, 4, 8, pairs);
    partita::on_cuda::launch(second, 4, fill{a.data(), 1});
    std::thread([&] {
      partita::on_cuda::launch(second, 4, increment{a.data(), a.data()});
      partita::on_cuda::cuda_event there(*second.owner());
      there.record(*second.owner());
      CHECK(download(second, a) == filled(4, 2));
    }).join();
    first.synchronize();
    CHECK(mark.reached());
    CHECK(download(first, b) == filled(4, 2));
  }
  emulator::set_device_count(1);
}

TEST_CASE("what one queue has freed serves another") {
  emulator::set_device_memory(1100 * sizeof(double));  // variables of modules have some of it
  {
    const device_queue<cuda_device> first, second;
    { const buffer<double, cuda_device> most(first, 850); }
    const buffer<double, cuda_device> again(second, 850);
    expect_error<partita::device_error>("cudaMallocAsync failed: cudaErrorMemoryAllocation",
                                        [&] { buffer<double, cuda_device> more(first, 300); });
  }
  emulator::set_device_memory(std::size_t{4} << 30);
}

TEST_CASE(
    "a pool keeps what is freed when a queue synchronises, and gives it up before an allocation fails") {
  cudaMemPool_t pool = nullptr;
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0) == cudaSuccess);
  const auto held = [&] {
    std::uint64_t bytes = 0;
    CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &bytes) == cudaSuccess);
    return bytes;
  };
  emulator::set_device_memory(1100 * sizeof(double));  // variables of modules have some of it
  {
    const device_queue<cuda_device> q;
    { const buffer<double, cuda_device> most(q, 800); }
    q.synchronize();
    CHECK(held() >= 800 * sizeof(double));
    void* other = nullptr;  // as a library of the vendor would ask for it
    CHECK(cudaMalloc(&other, 800 * sizeof(double)) == cudaErrorMemoryAllocation);
    static_cast<void>(cudaGetLastError());
    const buffer<double, cuda_device> a(q, 500), b(q, 500);
  }
  emulator::set_device_memory(std::size_t{4} << 30);
}

TEST_CASE("a threshold that the program has set for a pool stays") {
  cudaMemPool_t pool = nullptr;
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0) == cudaSuccess);
  std::uint64_t some = 4096, found = 0, none = 0;
  CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &some) == cudaSuccess);
  const device_queue<cuda_device> q;
  CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &found) == cudaSuccess);
  CHECK(found == 4096);
  CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &none) == cudaSuccess);
}

struct give_up : partita::on_cuda::queue_watcher {
  int checks = 0;
  void check() override {
    if (++checks == 3) throw partita::communication_error("waited too long for a broadcast");
  }
};

TEST_CASE("a watcher ends a wait, and only while it lives") {
  const device_queue<cuda_device> q;
  buffer<int, cuda_device> a(q, 10);
  const auto watcher = std::make_shared<give_up>();
  q.watch(watcher);
  q.synchronize();
  for (int k = 0; k < 10; ++k) partita::on_cuda::launch(q, 10, fill{a.data(), k});
  expect_error<partita::communication_error>("waited too long for a broadcast", [&] { q.synchronize(); });
  CHECK(watcher->checks == 3);
  CHECK(download(q, a) == filled(10, 9));
  CHECK(watcher->checks > 3);
}

TEST_CASE("a watcher ends a wait for an event too") {
  const device_queue<cuda_device> q;
  buffer<int, cuda_device> a(q, 10);
  const auto watcher = std::make_shared<give_up>();
  q.watch(watcher);
  partita::on_cuda::cuda_event mark(*q.owner());
  q.synchronize(mark);
  for (int k = 0; k < 10; ++k) partita::on_cuda::launch(q, 10, fill{a.data(), k});
  mark.record(*q.owner());
  expect_error<partita::communication_error>("waited too long for a broadcast", [&] { q.synchronize(mark); });
  q.synchronize(mark);
  CHECK(mark.reached());
}

TEST_CASE("a watcher that is gone is not asked") {
  const device_queue<cuda_device> q;
  q.watch(std::make_shared<give_up>());
  buffer<int, cuda_device> a(q, 10);
  for (int k = 0; k < 10; ++k) partita::on_cuda::launch(q, 10, fill{a.data(), k});
  CHECK(download(q, a) == filled(10, 9));
}

/// The signal that ends a child process which runs `act`, or 0.
int signal_of(auto act) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int s : {SIGSEGV, SIGBUS, SIGABRT}) std::signal(s, SIG_DFL);
    act();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST_CASE("a host that touches device memory dies; a kernel that writes behind its own is an error") {
  const device_queue<cuda_device> q;
  buffer<int, cuda_device> a(q, 10);
  partita::on_cuda::launch(q, 10, fill{a.data(), 0});
  q.synchronize();
  volatile int* const memory = a.data();
  CHECK(signal_of([] {}) == 0);
  CHECK(signal_of([&] { static_cast<void>(memory[0]); }) == SIGSEGV);
  CHECK(signal_of([&] { memory[9] = 1; }) == SIGSEGV);
  CHECK(signal_of([&] {
          const emulator::opened_arena looking;
          if (memory[9] != 27) std::abort();
        }) == 0);
  partita::on_cuda::launch(q, 11, fill{a.data(), 0});
  expect_error<partita::device_error>("is out of bounds: 0 bytes behind a block of 40 bytes",
                                      [&] { q.synchronize(); });
  CHECK(!emulator::take_failure().empty());
}

}  // namespace test_cuda_memory

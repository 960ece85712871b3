// Memory, streams, events and waits of the place cuda, on the stand-in's devices.
#include <csignal>
#include <cstdint>
#include <doctest/doctest.h>
#include <numeric>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "partita/memory/cuda.hpp"
#include "partita/memory/cuda_launch.hpp"
#include "support/ranks.hpp"

namespace test_cuda_memory {

using partita::buffer;
using partita::cuda;
using partita::cuda_event;
using partita::queue;
using test_support::expect_error;

namespace {

/// data[t] = 3 t + start.
struct fill {
  int* data;
  int start;
  constexpr void operator()(std::int64_t t) const { data[t] = static_cast<int>(3 * t) + start; }
};
/// to[t] = from[t] + 1.
struct increment {
  const int* from;
  int* to;
  constexpr void operator()(std::int64_t t) const { to[t] = from[t] + 1; }
};

std::vector<int> filled(int count, int start) {
  std::vector<int> v;
  for (int t = 0; t < count; ++t) v.push_back(3 * t + start);
  return v;
}

std::vector<int> download(const queue<cuda>& q, const buffer<int, cuda>& b) {
  std::vector<int> v(b.size());
  partita::copy(q, b.span(), std::span<int>(v));
  return v;
}

bool aligned(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 256 == 0; }

}  // namespace

TEST_CASE("buffers own aligned memory that the meter counts, and release it") {
  const queue<cuda> q;
  const std::size_t before = stand_in::bytes_in_use();
  {
    buffer<double, cuda> a(q, 3), b(q, 1000);
    const buffer<double, cuda> none(q, 0);
    CHECK(aligned(a.data()));
    CHECK(aligned(b.data()));
    CHECK(a.data() + 3 <= b.data());
    CHECK(none.data() == nullptr);
    CHECK(q.meter()->current() == 1003 * sizeof(double));
    CHECK(q.meter()->allocations() == 2);
    b = std::move(a);
    CHECK(b.size() == 3);
    CHECK(stand_in::bytes_in_use() - before >= 3 * sizeof(double));
  }
  CHECK(q.meter()->current() == 0);
  CHECK(q.meter()->peak() == 1003 * sizeof(double));
  CHECK(stand_in::bytes_in_use() == before);
}

TEST_CASE("a buffer outlives its queue") {
  buffer<int, cuda> b;
  {
    const queue<cuda> q;
    b = buffer<int, cuda>(q, 5);
  }
  CHECK(b.size() == 5);
}

TEST_CASE("reset allocates nothing when the capacity suffices") {
  const queue<cuda> q;
  buffer<float, cuda> b(q, 100);
  const auto before = stand_in::count();
  const float* const memory = b.data();
  for (const std::size_t size : {50U, 100U, 1U, 0U, 99U}) {
    b.reset(q, size);
    CHECK(b.size() == size);
    CHECK(b.data() == memory);
  }
  CHECK((stand_in::count() - before).allocations == 0);
  b.reset(q, 101);
  CHECK((stand_in::count() - before).allocations == 1);
}

TEST_CASE("copies both ways and within the device, kernels between them") {
  const queue<cuda> q;
  for (const int n : {0, 1, 36, 37, 38, 1000}) {
    CAPTURE(n);
    const auto size = static_cast<std::size_t>(n);
    std::vector<int> source(size);
    std::iota(source.begin(), source.end(), -5);
    buffer<int, cuda> a(q, size), b(q, size), c(q, size);
    partita::copy(q, std::span<const int>(source), a.span());
    partita::detail::launch(q, n, increment{a.data(), b.data()});
    partita::copy(q, std::span<const int>(b.span()), c.span());
    for (int& v : source) ++v;
    CHECK(download(q, c) == source);
    if (n > 0) CHECK(partita::read(q, c.data() + n - 1) == source.back());
  }
}

TEST_CASE("fresh and released memory is poison") {
  const queue<cuda> q;
  const buffer<int, cuda> fresh(q, 9);
  CHECK(download(q, fresh) == std::vector<int>(9, -1));
}

TEST_CASE("scratch keeps its memory from call to call") {
  const queue<cuda> q;
  CHECK(aligned(partita::scratch<double>(q, 10)));
  const auto before = stand_in::count();
  for (std::size_t n : {1U, 10U, 7U}) CHECK(partita::scratch<double>(q, n) != nullptr);
  CHECK(partita::scratch<float>(q, 20) != nullptr);
  CHECK((stand_in::count() - before).allocations == 0);
}

TEST_CASE("an event holds another queue back, and without it stale data shows") {
  for (const bool waits : {true, false}) {
    CAPTURE(waits);
    const queue<cuda> first, second;
    buffer<int, cuda> a(first, 100), b(second, 100);
    first.synchronize();
    partita::detail::launch(first, 100, fill{a.data(), 7});
    cuda_event filled_now;
    CHECK(filled_now.reached());
    filled_now.record(first.stream());
    if (waits) filled_now.hold_back(second.stream());
    partita::detail::launch(second, 100, increment{a.data(), b.data()});
    CHECK(download(second, b) == (waits ? filled(100, 8) : std::vector<int>(100, 0)));
    first.synchronize();
    CHECK(filled_now.reached());
    CHECK(download(first, a) == filled(100, 7));
  }
}

TEST_CASE("an event is reached when the work before it is done, and asking leaves no error behind") {
  const queue<cuda> q;
  buffer<int, cuda> a(q, 10);
  q.synchronize();
  cuda_event mark;
  partita::detail::launch(q, 10, fill{a.data(), 0});
  partita::detail::launch(q, 10, increment{a.data(), a.data()});
  mark.record(q.stream());
  CHECK(!mark.reached());
  partita::detail::launch(q, 10, increment{a.data(), a.data()});
  while (!mark.reached()) {
  }
  CHECK(download(q, a) == filled(10, 2));
}

TEST_CASE("synchronising is counted, and never done for the whole device") {
  const queue<cuda> q;
  const auto before = stand_in::count();
  buffer<int, cuda> a(q, 10);
  partita::detail::launch(q, 10, fill{a.data(), 0});
  CHECK((stand_in::count() - before).stream_synchronisations == 0);
  q.synchronize();
  const auto spent = stand_in::count() - before;
  CHECK(spent.stream_synchronisations == 1);
  CHECK(spent.device_synchronisations == 0);
  CHECK(spent.launches == 1);
  CHECK(spent.allocations == 1);
}

TEST_CASE("errors name the call") {
  using partita::device_error;
  expect_error<device_error>("cudaSetDevice failed: cudaErrorInvalidDevice", [] { queue<cuda> q(1); });
  expect_error<device_error>("cudaSetDevice failed", [] { queue<cuda> q(-1); });
  stand_in::set_device_count(0);
  expect_error<device_error>("cudaErrorNoDevice", [] { queue<cuda> q; });
  stand_in::set_device_count(1);
  const queue<cuda> q;
  buffer<int, cuda> a(q, 10);
  int value = 0;
  stand_in::make_fail("cudaMemcpyAsync", cudaErrorInvalidValue);
  expect_error<device_error>("cudaMemcpyAsync failed: cudaErrorInvalidValue",
                             [&] { value = partita::read(q, a.data()); });
  stand_in::make_fail("cudaMallocFromPoolAsync", cudaErrorMemoryAllocation, 1);
  const buffer<int, cuda> enough(q, 1);
  expect_error<device_error>("cudaMallocFromPoolAsync failed: cudaErrorMemoryAllocation",
                             [&] { buffer<int, cuda> b(q, 1); });
  expect_error<device_error>("cudaMallocFromPoolAsync failed: cudaErrorMemoryAllocation",
                             [&] { buffer<int, cuda> b(q, std::size_t{1} << 40); });
  stand_in::make_fail("a kernel's launch", cudaErrorLaunchFailure);
  expect_error<device_error>("a kernel's launch failed: cudaErrorLaunchFailure", [&] {
    partita::detail::launch(q, 10, fill{a.data(), 1});
  });
  stand_in::make_fail("cudaStreamSynchronize", cudaErrorLaunchFailure);
  expect_error<device_error>("cudaStreamSynchronize failed: cudaErrorLaunchFailure",
                             [&] { q.synchronize(); });
  partita::detail::launch(q, 10, fill{a.data(), 1});
  CHECK(download(q, a) == filled(10, 1));
}

TEST_CASE("several devices: queues, events and pools keep to theirs") {
  stand_in::set_device_count(2);
  {
    const queue<cuda> first(0), second(1);
    CHECK(second.device() == 1);
    const buffer<int, cuda> a(second, 4);
    cudaPointerAttributes attributes;
    CHECK(cudaPointerGetAttributes(&attributes, a.data()) == cudaSuccess);
    CHECK(attributes.type == cudaMemoryTypeDevice);
    CHECK(attributes.device == 1);
    cuda_event mark;
    expect_error<partita::device_error>("cudaEventRecord failed", [&] { mark.record(first.stream()); });
    mark.record(second.stream());
    mark.hold_back(first.stream());
    first.synchronize();
    CHECK(mark.reached());
  }
  stand_in::set_device_count(1);
  CHECK(cudaSetDevice(0) == cudaSuccess);
}

namespace {

struct give_up : partita::queue_watcher {
  int checks = 0;
  void check() override {
    if (++checks == 3) throw partita::communication_error("waited too long for a broadcast");
  }
};

}  // namespace

TEST_CASE("a watcher ends a wait, and only while it lives") {
  const queue<cuda> q;
  buffer<int, cuda> a(q, 10);
  const auto watcher = std::make_shared<give_up>();
  q.watch(watcher);
  q.synchronize();
  for (int k = 0; k < 10; ++k) partita::detail::launch(q, 10, fill{a.data(), k});
  expect_error<partita::communication_error>("waited too long for a broadcast", [&] { q.synchronize(); });
  CHECK(watcher->checks == 3);
  CHECK(download(q, a) == filled(10, 9));
  CHECK(watcher->checks > 3);
}

TEST_CASE("a watcher ends a wait for an event too") {
  const queue<cuda> q;
  buffer<int, cuda> a(q, 10);
  const auto watcher = std::make_shared<give_up>();
  q.watch(watcher);
  cuda_event mark;
  q.synchronize(mark);
  for (int k = 0; k < 10; ++k) partita::detail::launch(q, 10, fill{a.data(), k});
  mark.record(q.stream());
  expect_error<partita::communication_error>("waited too long for a broadcast", [&] { q.synchronize(mark); });
  q.synchronize(mark);
  CHECK(mark.reached());
}

TEST_CASE("a watcher that is gone is not asked") {
  const queue<cuda> q;
  q.watch(std::make_shared<give_up>());
  buffer<int, cuda> a(q, 10);
  for (int k = 0; k < 10; ++k) partita::detail::launch(q, 10, fill{a.data(), k});
  CHECK(download(q, a) == filled(10, 9));
}

namespace {

/// The signal that ends a child process which runs `act`, or 0.
template <class Act>
int signal_of(Act act) {
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

}  // namespace

TEST_CASE("a host that touches device memory dies; kernels that write behind theirs are found") {
  const queue<cuda> q;
  buffer<int, cuda> a(q, 10);
  partita::detail::launch(q, 10, fill{a.data(), 0});
  q.synchronize();
  volatile int* const memory = a.data();
  CHECK(signal_of([] {}) == 0);
  CHECK(signal_of([&] { static_cast<void>(memory[0]); }) == SIGSEGV);
  CHECK(signal_of([&] { memory[9] = 1; }) == SIGSEGV);
  CHECK(signal_of([&] {
          const stand_in::opened_arena looking;
          if (memory[9] != 27) std::abort();
        }) == 0);
  CHECK(signal_of([&] {
          partita::detail::launch(q, 11, fill{a.data(), 0});
          a = buffer<int, cuda>();
          q.synchronize();
        }) == SIGABRT);
}

}  // namespace test_cuda_memory

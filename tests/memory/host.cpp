// SPDX-License-Identifier: Apache-2.0
// Buffers and queues of the host.
#include "partita/memory/host.hpp"

#include <doctest/doctest.h>

#include "support/ranks.hpp"

namespace test_host_memory {

using namespace test_support;
using host_queue = device_queue<host>;

TEST_CASE_TEMPLATE("host: buffers are aligned, counted and released", T, std::int32_t, float, double) {
  const host_queue q;
  const auto& meter = *q.meter();
  {
    buffer<T, host> a(q, 5), b(q, 3), none(q, 0);
    CHECK(reinterpret_cast<std::uintptr_t>(a.data()) % 64 == 0);
    CHECK(none.data() == nullptr);
    CHECK(meter.current() == 8 * sizeof(T));
    CHECK(meter.allocations() == 2);
    T* const place = a.data();
    b = std::move(a);
    CHECK(b.data() == place);
    CHECK(b.size() == 5);
    CHECK(meter.current() == 5 * sizeof(T));
  }
  CHECK(meter.current() == 0);
  CHECK(meter.peak() == 8 * sizeof(T));
}

TEST_CASE("host: a large buffer holds what is written to it, in large pages or not") {
  const host_queue q;
  buffer<std::uint64_t, host> x(q, (std::size_t{4} << 20) + 3);
  for (std::size_t i = 0; i < x.size(); i += 511) x.data()[i] = i;
  bool same = true;
  for (std::size_t i = 0; i < x.size(); i += 511) same = same && x.data()[i] == i;
  CHECK(same);
}

TEST_CASE("host: a budget bounds live buffers, and the error says what is needed") {
  const host_queue q;
  const auto& meter = *q.meter();
  q.limit_memory(100);
  {
    const buffer<std::byte, host> a(q, 60);
    expect_error<budget_error>(
        "a buffer of 41 bytes does not fit into the budget of 100 bytes beside buffers of 60 bytes: at least "
        "101 bytes are needed",
        [&] { buffer<std::byte, host>(q, 41); });
    CHECK(meter.current() == 60);
    CHECK(buffer<std::byte, host>(q, 40).size() == 40);
  }
  CHECK(buffer<std::byte, host>(q, 100).size() == 100);
  CHECK(meter.peak() == 100);
  const buffer<std::byte, host> more = [&] {
    const buffer<std::byte, host> a(q, 60);
    q.limit_memory(50);  // what is live stays
    expect_error<budget_error>(
        "a buffer of 1 bytes does not fit into the budget of 50 bytes beside buffers of 60 bytes: at least "
        "61 bytes are needed",
        [&] { buffer<std::byte, host>(q, 1); });
    q.limit_memory(160);
    return buffer<std::byte, host>(q, 100);
  }();
  CHECK(meter.current() == 100);
}

TEST_CASE("host: what is kept for buffers to come makes room for larger ones") {
  const host_queue q;
  q.recycle_memory();
  q.limit_memory(100);
  { const buffer<std::byte, host> small(q, 40), larger(q, 50); }
  CHECK(q.meter()->current() == 90);
  { const buffer<std::byte, host> large(q, 100); }
  CHECK(q.meter()->current() == 100);
  CHECK(q.meter()->allocations() == 3);
}

TEST_CASE("host: recycled memory serves again, grows, and is counted until the queue ends") {
  const host_queue q;
  const buffer<double, host> before(q, 7);
  q.recycle_memory();
  const auto& meter = *q.meter();
  double* const place = buffer<double, host>(q, 100).data();
  CHECK(buffer<double, host>(q, 90).data() == place);  // smaller, at least three quarters
  CHECK(meter.allocations() == 2);
  CHECK(meter.current() == 107 * sizeof(double));
  CHECK(buffer<double, host>(q, 70).data() != place);  // less
  CHECK(meter.allocations() == 3);
  {
    const buffer<double, host> first(q, 95), second(q, 95);  // one of them grows from 70
    CHECK(first.data() == place);
    CHECK(meter.allocations() == 4);
    CHECK(meter.current() == (7 + 100 + 95) * sizeof(double));
  }
  for (int step = 0; step < 5; ++step) {
    const buffer<double, host> first(q, 90 + static_cast<std::size_t>(step)), second(q, 95);
    CHECK(meter.allocations() == 4);
  }
  CHECK(meter.peak() == (7 + 100 + 95) * sizeof(double));
}

TEST_CASE("host: a peak begins anew from what lives now") {
  const host_queue q;
  const buffer<double, host> kept(q, 2);
  buffer<double, host>(q, 100);
  CHECK(q.meter()->peak() == 102 * sizeof(double));
  q.meter()->restart_peak();
  CHECK(q.meter()->peak() == 2 * sizeof(double));
  buffer<double, host>(q, 3);
  CHECK(q.meter()->peak() == 5 * sizeof(double));
}

TEST_CASE("host: reset allocates only where the capacity does not suffice") {
  const host_queue q;
  buffer<double, host> a(q, 8);
  double* const place = a.data();
  a.reset(q, 3);
  CHECK(a.size() == 3);
  a.reset(q, 8);
  CHECK(a.data() == place);
  CHECK(q.meter()->allocations() == 1);
  a.reset(q, 9);
  CHECK(a.size() == 9);
  CHECK(q.meter()->allocations() == 2);
  CHECK(q.meter()->current() == 9 * sizeof(double));
}

TEST_CASE("host: growing adds at least a sixteenth to the capacity") {
  const host_queue q;
  buffer<double, host> a(q, 160);
  a.grow(q, 161);
  CHECK(a.size() == 161);
  CHECK(q.meter()->current() == 170 * sizeof(double));
  CHECK(q.meter()->peak() == 170 * sizeof(double));  // the old memory was released before
  a.grow(q, 170);
  a.grow(q, 1);
  CHECK(q.meter()->allocations() == 2);
  CHECK(a.size() == 1);
  a.grow(q, 1000);
  CHECK(q.meter()->current() == 1000 * sizeof(double));
}

TEST_CASE("host: each page of fresh memory is touched by the one thread that it is for") {
  const device_queue<host> q(4);
  for (const std::size_t size : {0, 1, 1023, 1024, 1025, 10000}) {
    CAPTURE(size);
    buffer<float, host> fresh(q, size);
    std::vector<int> touched(size, 0);
    for (int part = 0; part < 4; ++part) {
      std::fill_n(fresh.data(), size, 1.0F);
      touch_pages(q, fresh.span(), part, 4);
      for (std::size_t k = 0; k < size; ++k) {
        if (fresh.data()[k] != 0) continue;
        ++touched[k];
        CHECK(k >= size * static_cast<std::size_t>(part) / 4);
        CHECK(k < size * (static_cast<std::size_t>(part) + 1) / 4);
      }
    }
    for (std::size_t k = 0; k < size; ++k) REQUIRE(touched[k] == (k % 1024 == 0 ? 1 : 0));
  }
}

TEST_CASE("host: copies, and queues that share a meter") {
  const host_queue q(2), same = q;
  CHECK(same.threads() == 2);
  CHECK(same.meter() == q.meter());
  buffer<float, host> a(q, 3);
  const std::vector<float> given{1, 2, 3};
  copy(q, std::span(given), a.span());
  CHECK(std::vector<float>(a.span().begin(), a.span().end()) == given);
  expect_error<mesh_error>("a host queue needs at least one thread, not 0", [] { host_queue(0); });
}

}  // namespace test_host_memory

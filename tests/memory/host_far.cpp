// SPDX-License-Identifier: Apache-2.0
// Far memory of host queues.
#include "partita/memory/host_far.hpp"

#include <doctest/doctest.h>

#include "partita/memory/mapped_store.hpp"
#include "support/far_store.hpp"
#include "support/ranks.hpp"

namespace test_host_far {

using namespace test_support;
using host_queue = device_queue<host>;

TEST_CASE("far memory: what is large or does not fit is far, and goes back") {
  const host_queue q;
  q.limit_memory(1000);
  const auto store = new_far_store();
  use_far(q, {.store = store, .window = 512, .from = 200});
  CHECK(q.meter()->current() == 512);
  {
    buffer<std::byte, host> small(q, 199), large(q, 200), beyond(q, 199), full(q, 199);
    CHECK(!store->contains(small.data()));
    CHECK(store->contains(large.data()));
    CHECK(!store->contains(beyond.data()));
    CHECK(store->contains(full.data()));
    CHECK(q.meter()->current() == 512 + 2 * 199);
    std::fill(large.span().begin(), large.span().end(), std::byte{7});
    CHECK(large.data()[199] == std::byte{7});
  }
  CHECK(q.meter()->current() == 512);
  const host_queue other;
  other.limit_memory(500);
  expect_error<budget_error>(
      "a buffer of 512 bytes does not fit into the budget of 500 bytes beside buffers of 0 bytes: at least "
      "512 bytes are needed",
      [&] { use_far(other, {.store = store, .window = 512}); });
}

TEST_CASE("far memory: a task moves rows while the queue computes, and its failure is that of wait") {
  const host_queue q;
  const auto store = new_far_store();
  const far_options options{.store = store, .window = 1024, .from = 600};
  memory::far_channel<host> channel(q, options);
  q.owner()->use_far(options);
  CHECK(channel.slot_bytes() == 512);
  CHECK(channel.slot(1) == channel.slot(0) + 512);
  buffer<std::int32_t, host> x(q, 300);
  REQUIRE(channel.is_far(x.data()));
  CHECK(!channel.is_far(channel.slot(0)));
  for (std::int32_t i = 0; i < 300; ++i) x.data()[i] = i;
  auto* const near = reinterpret_cast<std::int32_t*>(channel.slot(0));
  channel.start([&] { channel.move({near, 8, x.data() + 10, 40, 8, 3}); });  // two of every ten
  channel.wait();
  for (std::int32_t i = 0; i < 6; ++i) CHECK(near[i] == 10 + i / 2 * 10 + i % 2);
  channel.start([&] { channel.move({x.data(), 8, near, 8, 8, 3}); });
  channel.wait();
  CHECK(x.data()[5] == 31);
  CHECK(channel.traffic().read == 24);
  CHECK(channel.traffic().written == 24);
  channel.start([] { throw error("the disk is gone"); });
  expect_error<error>("the disk is gone", [&] { channel.wait(); });
  channel.wait();  // nothing to wait for
}

/// Notes which of its bytes are expected.
struct noting_store final : far_store {
  std::vector<std::byte> memory = std::vector<std::byte>(std::size_t{1} << 20);
  std::vector<std::pair<std::ptrdiff_t, std::size_t>> expected;
  void* allocate(std::size_t) override { return memory.data(); }
  void release(void*, std::size_t) noexcept override {}
  bool contains(const void* a) const override {
    return a >= memory.data() && a < memory.data() + memory.size();
  }
  void expect(const void* a, std::size_t bytes) noexcept override {
    expected.emplace_back(static_cast<const std::byte*>(a) - memory.data(), bytes);
  }
};

TEST_CASE("far memory: rows that are near each other are asked for at once") {
  const host_queue q;
  const auto store = std::make_shared<noting_store>();
  memory::far_channel<host> channel(q, {.store = store, .window = 512});
  local::operand x{.data = store->memory.data(), .rows = 400, .cols = 512, .stride = 512};
  const auto asked = [&](const std::vector<local_index>& rows) {
    store->expected.clear();
    channel.expect(x, rows);
    return store->expected;
  };
  using ranges = std::vector<std::pair<std::ptrdiff_t, std::size_t>>;
  CHECK(asked({}) == ranges());
  CHECK(asked({3}) == ranges{{1536, 512}});
  CHECK(asked({3, 4, 12, 21, 30, 399}) == ranges{{1536, 5120}, {10752, 512}, {15360, 512}, {204288, 512}});
  CHECK(asked({7, 9, 5, 5}) == ranges{{3584, 1536}, {2560, 512}});
  std::vector<std::byte> near(512);
  x.data = near.data();
  channel.expect(x, std::vector<local_index>{0});
  CHECK(store->expected.size() == 2);
}

TEST_CASE("far memory: an emulated rate bounds transfers from below") {
  const host_queue q;
  const auto store = new_far_store();
  const far_options options{.store = store, .window = 1 << 16, .from = 1 << 10, .bytes_per_second = 1e6};
  memory::far_channel<host> channel(q, options);
  q.owner()->use_far(options);
  const buffer<std::byte, host> x(q, 20000);
  channel.start([&] { channel.move({channel.slot(0), 20000, x.data(), 20000, 20000, 1}); });
  channel.wait();
  CHECK(channel.traffic().transfer >= 0.02);
  CHECK(channel.traffic().exposed > 0);
}

}  // namespace test_host_far

// NCCL between ranks that are threads with a device each, on the stand-in: the laws of a communicator, the
// calls that are made, and how failures end.
#include <atomic>
#include <doctest/doctest.h>
#include <vector>

#include "partita/comm/mesh.hpp"
#include "partita/comm/nccl.hpp"
#include "support/communicator_laws.hpp"
#include "support/device_room.hpp"
#include "support/ranks.hpp"

namespace laws = test_support::laws;
using partita::communication_error;
using partita::communicator;
using partita::cuda;
using partita::global_index;
using partita::queue;
using partita::request;
using test_support::on_threads;

namespace {

constexpr std::array some_rank_counts = {1, 2, 3, 4, 6};
const partita::nccl::options unchecked{.time_limit = std::chrono::minutes(1), .checked = false};
const partita::nccl::options impatient{.time_limit = std::chrono::milliseconds(500), .checked = false};

/// body(world, queue) on as many threads, each with a device of its own.
template <class Body>
void on_devices(int ranks, const partita::nccl::options& o, Body body) {
  stand_in::set_device_count(ranks);
  on_threads(ranks, [&](const communicator& c) {
    const queue<cuda> q(c.rank());
    body(partita::nccl::world(c, q, o), q);
  });
  stand_in::set_device_count(1);
  cudaSetDevice(0);
}

/// How often each of these was called by all ranks.
struct call_counts {
  std::uint64_t all_gather = stand_in::calls("ncclAllGather"), broadcast = stand_in::calls("ncclBroadcast"),
                send = stand_in::calls("ncclSend"), receive = stand_in::calls("ncclRecv"),
                groups = stand_in::calls("ncclGroupStart"), splits = stand_in::calls("ncclCommSplit"),
                own_sums = stand_in::calls("ncclAllReduce") + stand_in::calls("ncclReduceScatter");

  call_counts since(const call_counts& before) const {
    call_counts d = *this;
    d.all_gather -= before.all_gather, d.broadcast -= before.broadcast, d.send -= before.send;
    d.receive -= before.receive, d.groups -= before.groups, d.splits -= before.splits;
    d.own_sums -= before.own_sums;
    return d;
  }
};

/// Like test_support::expect_error, but it may take its time: others must find out, too.
template <class Error, class Act>
void expect_error(const std::string& part, Act act) {
  std::string what = "nothing was thrown";
  bool right_type = false;
  try {
    act();
  } catch (const std::exception& e) {
    what = e.what();
    right_type = typeid(e) == typeid(Error);
  }
  CHECK_MESSAGE(right_type, "not the expected exception: ", what);
  CHECK_MESSAGE(what.find(part) != std::string::npos, "expected '", part, "' in: ", what);
}

std::vector<global_index> equal_counts(int ranks, global_index n) {
  return std::vector<global_index>(static_cast<std::size_t>(ranks), n);
}

}  // namespace

TEST_CASE("memory of the host") {
  for (int ranks : {1, 3}) {
    CAPTURE(ranks);
    on_devices(ranks, {}, [](const communicator& c, const queue<cuda>&) { laws::on_the_host(c); });
  }
}

TEST_CASE("memory of devices") {
  for (int ranks : some_rank_counts) {
    CAPTURE(ranks);
    on_devices(ranks, unchecked,
               [](const communicator& c, const queue<cuda>& q) { laws::all(laws::on_a_device(c, q)); });
  }
}

TEST_CASE("memory of devices, checked") {
  on_devices(4, {.checked = true},
             [](const communicator& c, const queue<cuda>& q) { laws::all(laws::on_a_device(c, q)); });
}

TEST_CASE("host and device in turn, and back from the device to the host") {
  on_devices(3, unchecked, [](const communicator& c, const queue<cuda>& q) {
    const laws::device_room room = laws::on_a_device(c, q);
    laws::several_in_flight(room);
    laws::several_in_flight(laws::host_room{c});
    laws::several_in_flight(laws::host_room{room.c.over(nullptr)});
    laws::several_in_flight(room.with(room.c.split(c.rank() % 2, 0, "half")));
  });
}

TEST_CASE("a mesh has communicators for both places") {
  on_devices(4, unchecked, [](const communicator& c, const queue<cuda>& q) {
    const partita::mesh<cuda> m(c, {2, 2, 1}, q);
    const laws::device_room room = laws::on_a_device(c, q);
    for (const partita::axis_set s : {partita::axis_set(partita::axis::row), partita::every_axis}) {
      laws::several_in_flight(room.with(m.along(s)));
      laws::several_in_flight(laws::host_room{m.control(s)});
    }
  });
}

TEST_CASE("which calls of NCCL an operation is") {
  constexpr int p = 4;
  const auto counted = [&](auto act) {
    call_counts before, after;
    on_devices(p, unchecked, [&](const communicator& c, const queue<cuda>& q) {
      const laws::device_room room = laws::on_a_device(c, q);
      auto data = room.template make<double>(64), more = room.template make<double>(64);
      c.all_gather(std::span<const int>(), equal_counts(p, 0), std::span<int>());
      if (c.rank() == 0) before = call_counts();
      c.all_gather(std::span<const int>(), equal_counts(p, 0), std::span<int>());
      act(room.c, data, more);
      q.synchronize();
      c.all_gather(std::span<const int>(), equal_counts(p, 0), std::span<int>());
      if (c.rank() == 0) after = call_counts();
      c.all_gather(std::span<const int>(), equal_counts(p, 0), std::span<int>());
    });
    return after.since(before);
  };

  const call_counts equal = counted([](const communicator& c, auto& data, auto& more) {
    c.all_gather(data.in().first(16), equal_counts(p, 16), more.out());
  });
  CHECK(equal.all_gather == p);
  CHECK(equal.groups == 0);

  const call_counts uneven = counted([](const communicator& c, auto& data, auto& more) {
    const std::vector<global_index> counts = {3, 0, 5, 1};
    const auto n = static_cast<std::size_t>(counts[static_cast<std::size_t>(c.rank())]);
    c.all_gather(data.in().first(n), counts, more.out().first(9));
  });
  CHECK(uneven.all_gather == 0);
  CHECK(uneven.groups == p);
  CHECK(uneven.send == 9);  // three others from each of the three that have something
  CHECK(uneven.receive == 9);

  const call_counts sum = counted([](const communicator& c, auto& data, auto&) { c.all_reduce(data.out()); });
  CHECK(sum.groups == p);
  CHECK(sum.send == p * (p - 1));
  CHECK(sum.all_gather == p);
  CHECK(sum.own_sums == 0);

  const call_counts copies = counted([](const communicator& c, auto& data, auto&) {
    c.broadcast(data.out(), 2);
    c.broadcast(data.out().first(0), 1);
  });
  CHECK(copies.broadcast == 2 * p);
  CHECK(copies.groups == 0);

  const call_counts split =
      counted([](const communicator& c, auto&, auto&) { c.split(c.rank() / 2, 0, "half"); });
  CHECK(split.splits == p);
}

TEST_CASE("a steady state allocates nothing and the host waits for nothing") {
  std::atomic<std::uint64_t> allocations{0}, waits{0};
  on_devices(4, unchecked, [&](const communicator& c, const queue<cuda>& q) {
    const laws::device_room room = laws::on_a_device(c, q);
    auto data = room.make<float>(1000), more = room.make<float>(250);
    const auto epoch = [&] {
      room.c.all_reduce(data.out());
      room.c.reduce_scatter(data.in(), equal_counts(4, 250), more.out());
      room.c.all_gather(more.in(), equal_counts(4, 250), data.out());
      room.c.broadcast(data.out(), 3);
    };
    for (int warm = 0; warm < 2; ++warm) {
      epoch();
      q.synchronize();
    }
    c.all_gather(std::span<const int>(), equal_counts(4, 0), std::span<int>());
    const auto before = stand_in::count();
    c.all_gather(std::span<const int>(), equal_counts(4, 0), std::span<int>());
    epoch();
    c.all_gather(std::span<const int>(), equal_counts(4, 0), std::span<int>());
    const auto spent = stand_in::count() - before;
    c.all_gather(std::span<const int>(), equal_counts(4, 0), std::span<int>());
    q.synchronize();
    allocations += spent.allocations;
    waits += spent.stream_synchronisations + spent.device_synchronisations;
  });
  CHECK(allocations == 0);
  CHECK(waits == 0);
}

TEST_CASE("the rank's queue goes on while an operation waits for others") {
  on_devices(2, unchecked, [](const communicator& c, const queue<cuda>& q) {
    const laws::device_room room = laws::on_a_device(c, q);
    auto mine = room.put(std::vector<int>{c.rank() + 5}), all = room.make<int>(2), other = room.make<int>(3);
    const std::vector<global_index> ones = equal_counts(2, 1);
    q.synchronize();
    request r;
    if (c.rank() == 0) {
      r = room.c.start_all_gather(mine.in(), ones, all.out());
      other.spoil();
      CHECK(other.get() == std::vector<int>(3, 77));
    }
    c.all_gather(std::span<const int>(), equal_counts(2, 0), std::span<int>());
    if (c.rank() == 1) r = room.c.start_all_gather(mine.in(), ones, all.out());
    r.wait();
    CHECK(all.get() == std::vector<int>{5, 6});
  });
}

TEST_CASE("what disagrees is found before it starts where checked") {
  on_devices(3, {.checked = true}, [](const communicator& c, const queue<cuda>& q) {
    const laws::device_room room = laws::on_a_device(c, q);
    auto data = room.make<int>(5);
    expect_error<communication_error>("ranks disagree: rank 2 calls broadcast of i32 (nccl_laws.cpp",
                                      [&] { room.c.broadcast(data.out().first(c.rank() == 2 ? 4 : 5), 0); });
  });
}

TEST_CASE("what disagrees is an error of the wait where not") {
  on_devices(3, unchecked, [](const communicator& c, const queue<cuda>& q) {
    const laws::device_room room = laws::on_a_device(c, q);
    auto data = room.make<int>(5);
    expect_error<communication_error>("broadcast of i32 (nccl_laws.cpp", [&] {
      room.c.broadcast(data.out().first(c.rank() == 2 ? 4 : 5), 0);
      q.synchronize();
    });
    expect_error<communication_error>("broadcast of i32 (nccl_laws.cpp",
                                      [&] { room.c.all_reduce(data.out()); });
  });
}

TEST_CASE("an operation that never ends is an error that names it") {
  for (const int hanging : {0, 2}) {
    stand_in::make_nccl_hang(hanging, 1);
    on_devices(3, impatient, [](const communicator& c, const queue<cuda>& q) {
      const laws::device_room room = laws::on_a_device(c, q);
      auto data = room.make<double>(6), more = room.make<double>(6);
      room.c.broadcast(data.out(), 1);
      q.synchronize();
      expect_error<communication_error>("all_gather of f64 (nccl_laws.cpp", [&] {
        room.c.all_gather(data.in().first(2), equal_counts(3, 2), more.out());
        room.c.all_reduce(data.out());
        q.synchronize();
      });
      expect_error<communication_error>("over NCCL is not complete after 500 ms",
                                        [&] { room.c.broadcast(data.out(), 0); });
    });
  }
}

TEST_CASE("a rank that does not come is an error that names the operation") {
  on_devices(2, impatient, [](const communicator& c, const queue<cuda>& q) {
    const laws::device_room room = laws::on_a_device(c, q);
    auto data = room.make<double>(6);
    if (c.rank() == 0)
      expect_error<communication_error>("all_reduce of f64 (nccl_laws.cpp", [&] {
        room.c.all_reduce(data.out());
        q.synchronize();
      });
    c.all_gather(std::span<const int>(), equal_counts(2, 0), std::span<int>());
  });
}

TEST_CASE("an asynchronous error names the operation and NCCL's reason") {
  stand_in::make_nccl_fail(1, ncclRemoteError);
  std::atomic<int> seen{0};
  expect_error<communication_error>("all_reduce of f64 (nccl_laws.cpp", [&] {
    on_devices(3, unchecked, [&](const communicator& c, const queue<cuda>& q) {
      const laws::device_room room = laws::on_a_device(c, q);
      auto data = room.make<double>(6);
      c.all_gather(std::span<const int>(), equal_counts(3, 0), std::span<int>());
      try {
        room.c.all_reduce(data.out());
        q.synchronize();
      } catch (const partita::poisoned_error&) {
        ++seen;
        throw;
      } catch (const communication_error& e) {
        CHECK(c.rank() == 1);
        CHECK(std::string(e.what()).find("remote process exited") != std::string::npos);
        ++seen;
        throw;
      }
    });
  });
  CHECK(seen == 3);
}

TEST_CASE("a rank that fails elsewhere ends the others' waits") {
  expect_error<partita::input_error>("no such file", [] {
    on_devices(3, unchecked, [](const communicator& c, const queue<cuda>& q) {
      const laws::device_room room = laws::on_a_device(c, q);
      auto data = room.make<double>(6);
      if (c.rank() == 1) throw partita::input_error("no such file");
      room.c.all_reduce(data.out());
      q.synchronize();
    });
  });
}

TEST_CASE("an operation that is given up fails the group, and its memory may go") {
  on_devices(2, impatient, [](const communicator& c, const queue<cuda>& q) {
    const laws::device_room room = laws::on_a_device(c, q);
    {
      auto data = room.make<double>(6);
      const request r = room.c.start_all_reduce(data.out());
    }
    auto data = room.make<double>(6);
    expect_error<communication_error>("a rank gave up its all_reduce of f64 (nccl_laws.cpp",
                                      [&] { room.c.all_reduce(data.out()); });
  });
}

TEST_CASE("groups that cannot be made, and calls that fail") {
  expect_error<communication_error>("duplicate GPU detected", [] {
    on_threads(2, [](const communicator& c) {
      const queue<cuda> q;
      partita::nccl::world(c, q);
    });
  });
  stand_in::make_fail("ncclCommInitRankConfig", cudaErrorUnknown);
  expect_error<communication_error>("ncclCommInitRankConfig failed: unhandled cuda error", [] {
    on_devices(3, unchecked, [](const communicator&, const queue<cuda>&) {});
  });
  for (const char* call : {"ncclSend", "ncclGroupEnd", "ncclAllGather"}) {
    CAPTURE(call);
    stand_in::make_fail(call, cudaErrorUnknown, 2);
    expect_error<communication_error>("all_reduce of f64 (nccl_laws.cpp", [] {
      on_devices(3, unchecked, [](const communicator& c, const queue<cuda>& q) {
        const laws::device_room room = laws::on_a_device(c, q);
        auto data = room.make<double>(6);
        room.c.all_reduce(data.out());
        q.synchronize();
      });
    });
  }
  stand_in::make_fail("ncclGetUniqueId", cudaErrorUnknown);
  expect_error<communication_error>("ncclGetUniqueId failed: unhandled cuda error", [] {
    on_devices(3, unchecked, [](const communicator&, const queue<cuda>&) {});
  });
  stand_in::set_device_count(3);
  expect_error<communication_error>("NCCL was set up for cuda device 1, not for cuda device 2", [] {
    on_threads(2, [](const communicator& c) {
      const queue<cuda> q(c.rank()), other(2);
      partita::nccl::world(c, q, unchecked).over(device_memory_of(c.rank() == 1 ? other : q));
    });
  });
  stand_in::set_device_count(1);
  cudaSetDevice(0);
}

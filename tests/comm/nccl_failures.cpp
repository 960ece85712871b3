// SPDX-License-Identifier: Apache-2.0
// NCCL on the emulator: the calls that are made, what they cost, and how failures end.

#include "emulator/control.hpp"
#include "partita/algebra/block_stream.hpp"
#include "partita/comm/mesh.hpp"
#include "support/nccl_devices.hpp"

namespace test_nccl_failures {

namespace laws = test_support::laws;
using namespace test_support;

const partita::nccl::options impatient{.time_limit = std::chrono::milliseconds(500), .checked = false};

void on_devices(int ranks, const partita::nccl::options& o, auto body) {
  emulator::set_device_count(ranks);
  test_support::on_nccl_devices(ranks, o, body);
  emulator::set_device_count(1);
}

/// body(fixture, queue, six numbers, communicator of the host) on every rank.
void with_numbers(int ranks, const partita::nccl::options& o, auto body) {
  on_devices(ranks, o, [&](const communicator& c, const device_queue<cuda_device>& q) {
    const laws::device_fixture fixture = laws::on_a_device(c, q);
    auto data = fixture.make<double>(6);
    body(fixture, q, data, c);
  });
}

/// How often each of these was called by all ranks.
struct call_counts {
  std::uint64_t all_gather = emulator::calls("ncclAllGather"), broadcast = emulator::calls("ncclBroadcast"),
                send = emulator::calls("ncclSend"), receive = emulator::calls("ncclRecv"),
                groups = emulator::calls("ncclGroupStart"), launches = emulator::calls("NCCL's launch"),
                splits = emulator::calls("ncclCommSplit"),
                own_sums = emulator::calls("ncclAllReduce") + emulator::calls("ncclReduceScatter");

  call_counts since(const call_counts& before) const {
    call_counts d = *this;
    d.all_gather -= before.all_gather, d.broadcast -= before.broadcast, d.send -= before.send;
    d.receive -= before.receive, d.groups -= before.groups, d.splits -= before.splits;
    d.launches -= before.launches;
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

TEST_CASE("which calls of NCCL an operation is") {
  constexpr int p = 4;
  const auto counted = [&](auto act) {
    call_counts before, after;
    on_devices(p, unchecked, [&](const communicator& c, const device_queue<cuda_device>& q) {
      const laws::device_fixture fixture = laws::on_a_device(c, q);
      auto data = fixture.template make<double>(64), more = fixture.template make<double>(64);
      c.all_gather(std::span<const int>(), equal_counts(p, 0), std::span<int>());
      if (c.rank() == 0) before = call_counts();
      c.all_gather(std::span<const int>(), equal_counts(p, 0), std::span<int>());
      act(fixture.c, data, more);
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
  CHECK(copies.launches == p);  // the second one has nothing

  const call_counts together = counted([](const communicator& c, auto& data, auto& more) {
    const std::vector<global_index> ones = equal_counts(p, 1);
    request first, second, third;
    c.together([&] {
      first = c.start_broadcast(data.out().first(5), 2);
      second = c.start_broadcast(more.out(), 0);
      third = c.start_all_to_all(data.in().last(p), ones, data.out().subspan(8, p), ones);
    });
    for (request* const r : {&first, &second, &third}) r->wait();
  });
  CHECK(together.broadcast == 2 * p);
  CHECK(together.groups == 2 * p);  // one of them in the other
  CHECK(together.launches == p);

  const call_counts split =
      counted([](const communicator& c, auto&, auto&) { c.split(c.rank() / 2, 0, "half"); });
  CHECK(split.splits == p);
}

TEST_CASE("a block of A that moves is one launch, with its structure and its values") {
  constexpr int p = 3;
  std::atomic<std::uint64_t> launches{0};
  on_devices(p, unchecked, [&](const communicator& c, const device_queue<cuda_device>& q) {
    const mesh<cuda_device> m(c, {1, p, 1}, q);
    const local::tile_shape shape{2, {4}, 3, {}, {3}};
    const std::vector<local_index> my_structure(shape.structure_size(), c.rank());
    const std::vector<double> my_values(3, c.rank() + 0.5);
    buffer<local_index, cuda_device> structure(q, my_structure.size());
    buffer<double, cuda_device> values(q, my_values.size());
    copy(q, std::span(my_structure), structure.span());
    copy(q, std::span(my_values), values.span());
    algebra::detail::block_stream<double, cuda_device> blocks(
        m, std::vector(p, shape), shape.structure_at(structure.data()), std::as_const(structure).span(),
        std::as_const(values).span());
    const auto meet = [&] { c.all_gather(std::span<const int>(), equal_counts(p, 0), std::span<int>()); };
    meet();
    const std::uint64_t before = emulator::calls("NCCL's launch");
    meet();
    blocks.start(0);
    for (int k = 0; k < p; ++k) {
      blocks.arrive(static_cast<std::size_t>(k));
      if (k + 1 < p) blocks.start(static_cast<std::size_t>(k) + 1);
      const auto part = *blocks.parts(static_cast<std::size_t>(k), 0);
      std::vector<local_index> columns(3);
      std::vector<double> numbers(3);
      copy(q, std::span(part.entries.columns, 3), std::span(columns));
      copy(q, std::span(part.entries.values, 3), std::span(numbers));
      CHECK(columns == std::vector<local_index>(3, k));
      CHECK(numbers == std::vector<double>(3, k + 0.5));
    }
    meet();
    if (c.rank() == 0) launches = emulator::calls("NCCL's launch") - before;
    meet();
  });
  CHECK(launches == p * p);
}

TEST_CASE("sums do not start together with other operations over NCCL") {
  with_numbers(2, unchecked, [&](const auto& fixture, const auto&, auto& data, const communicator&) {
    expect_error<communication_error>("cannot start together", [&] {
      fixture.c.together([&] { fixture.c.start_all_reduce(data.out()).wait(); });
    });
  });
}

TEST_CASE("a steady state allocates nothing and the host waits for nothing") {
  std::atomic<std::uint64_t> allocations{0}, waits{0};
  on_devices(4, unchecked, [&](const communicator& c, const device_queue<cuda_device>& q) {
    const laws::device_fixture fixture = laws::on_a_device(c, q);
    auto data = fixture.make<float>(1000), more = fixture.make<float>(250);
    const auto epoch = [&] {
      fixture.c.all_reduce(data.out());
      fixture.c.reduce_scatter(data.in(), equal_counts(4, 250), more.out());
      fixture.c.all_gather(more.in(), equal_counts(4, 250), data.out());
      fixture.c.broadcast(data.out(), 3);
    };
    for (int warm = 0; warm < 2; ++warm) {
      epoch();
      q.synchronize();
    }
    c.all_gather(std::span<const int>(), equal_counts(4, 0), std::span<int>());
    const auto before = emulator::count();
    c.all_gather(std::span<const int>(), equal_counts(4, 0), std::span<int>());
    epoch();
    c.all_gather(std::span<const int>(), equal_counts(4, 0), std::span<int>());
    const auto spent = emulator::count() - before;
    c.all_gather(std::span<const int>(), equal_counts(4, 0), std::span<int>());
    q.synchronize();
    allocations += spent.allocations;
    waits += spent.stream_synchronisations + spent.device_synchronisations;
  });
  CHECK(allocations == 0);
  CHECK(waits == 0);
}

TEST_CASE("what disagrees is an error of the wait where not") {
  on_devices(3, unchecked, [](const communicator& c, const device_queue<cuda_device>& q) {
    const laws::device_fixture fixture = laws::on_a_device(c, q);
    auto data = fixture.make<int>(5);
    expect_error<communication_error>("broadcast of i32 (nccl_failures.cpp", [&] {
      fixture.c.broadcast(data.out().first(c.rank() == 2 ? 4 : 5), 0);
      q.synchronize();
    });
    expect_error<communication_error>("broadcast of i32 (nccl_failures.cpp",
                                      [&] { fixture.c.all_reduce(data.out()); });
  });
}

TEST_CASE("an operation that never ends is an error that names it") {
  for (const int hanging : {0, 2}) {
    emulator::make_nccl_hang(hanging, 1);
    with_numbers(3, impatient, [](const auto& fixture, const auto& q, auto& data, const auto&) {
      auto more = fixture.template make<double>(6);
      fixture.c.broadcast(data.out(), 1);
      q.synchronize();
      expect_error<communication_error>("all_gather of f64 (nccl_failures.cpp", [&] {
        fixture.c.all_gather(data.in().first(2), equal_counts(3, 2), more.out());
        fixture.c.all_reduce(data.out());
        q.synchronize();
      });
      expect_error<communication_error>("over NCCL is not complete after 500 ms",
                                        [&] { fixture.c.broadcast(data.out(), 0); });
    });
  }
}

TEST_CASE("a rank that does not come is an error that names the operation") {
  with_numbers(2, impatient, [](const auto& fixture, const auto& q, auto& data, const communicator& c) {
    if (c.rank() == 0)
      expect_error<communication_error>("all_reduce of f64 (nccl_failures.cpp", [&] {
        fixture.c.all_reduce(data.out());
        q.synchronize();
      });
    c.all_gather(std::span<const int>(), equal_counts(2, 0), std::span<int>());
  });
}

TEST_CASE("an asynchronous error names the operation and NCCL's reason, and the others leave") {
  emulator::make_nccl_fail(1, ncclRemoteError);
  expect_error<communication_error>("all_reduce of f64 (nccl_failures.cpp", [] {
    with_numbers(3, unchecked, [](const auto& fixture, const auto& q, auto& data, const communicator& c) {
      const auto sum = [&] {
        fixture.c.all_reduce(data.out());
        q.synchronize();
      };
      if (c.rank() != 1) return sum();
      expect_error<communication_error>("remote process exited or there was a network error", sum);
      fixture.c.all_reduce(data.out());
    });
  });
}

TEST_CASE("a rank that fails elsewhere ends the others' waits") {
  expect_error<partita::input_error>("no such file", [] {
    with_numbers(3, unchecked, [](const auto& fixture, const auto& q, auto& data, const communicator& c) {
      if (c.rank() == 1) throw partita::input_error("no such file");
      fixture.c.all_reduce(data.out());
      q.synchronize();
    });
  });
}

TEST_CASE("an operation that is given up fails the group, and its memory may go") {
  on_devices(2, impatient, [](const communicator& c, const device_queue<cuda_device>& q) {
    const laws::device_fixture fixture = laws::on_a_device(c, q);
    {
      auto data = fixture.make<double>(6);
      const request r = fixture.c.start_all_reduce(data.out());
    }
    auto data = fixture.make<double>(6);
    expect_error<communication_error>("a rank gave up its all_reduce of f64 (nccl_failures.cpp",
                                      [&] { fixture.c.all_reduce(data.out()); });
  });
}

TEST_CASE("groups that cannot be made, and calls that fail") {
  expect_error<communication_error>("duplicate GPU detected", [] {
    on_threads(2, [](const communicator& c) {
      const device_queue<cuda_device> q;
      partita::nccl::world(c, q);
    });
  });
  emulator::make_fail("ncclCommInitRankConfig", cudaErrorUnknown);
  expect_error<communication_error>("ncclCommInitRankConfig failed: unhandled cuda error", [] {
    on_devices(3, unchecked, [](const communicator&, const device_queue<cuda_device>&) {});
  });
  for (const char* call : {"ncclSend", "ncclGroupEnd", "ncclAllGather"}) {
    CAPTURE(call);
    emulator::make_fail(call, cudaErrorUnknown, 2);
    expect_error<communication_error>("all_reduce of f64 (nccl_failures.cpp", [] {
      with_numbers(3, unchecked, [](const auto& fixture, const auto& q, auto& data, const auto&) {
        fixture.c.all_reduce(data.out());
        q.synchronize();
      });
    });
  }
  emulator::make_fail("ncclGetUniqueId", cudaErrorUnknown);
  expect_error<communication_error>("ncclGetUniqueId failed: unhandled cuda error", [] {
    on_devices(3, unchecked, [](const communicator&, const device_queue<cuda_device>&) {});
  });
  emulator::set_device_count(3);
  expect_error<communication_error>("NCCL was set up for cuda device 1, not for cuda device 2", [] {
    on_threads(2, [](const communicator& c) {
      const device_queue<cuda_device> q(c.rank()), other(2);
      partita::nccl::world(c, q, unchecked).on_memory(device_memory_of(c.rank() == 1 ? other : q));
    });
  });
  emulator::set_device_count(1);
  cudaSetDevice(0);
}

TEST_CASE("groups that an exception destroys leave the world as it was, or end it with an error") {
  on_devices(4, unchecked, [](const communicator& c, const device_queue<cuda_device>& q) {
    const laws::device_fixture fixture = laws::on_a_device(c, q);
    try {
      const partita::mesh<cuda_device> m(c, {2, 2, 1}, q);
      throw partita::input_error("this policy has no room");
    } catch (const partita::input_error&) {
    }
    auto data = fixture.put(std::vector<double>(6, c.rank()));
    fixture.c.all_reduce(data.out());
    CHECK(data.get() == std::vector<double>(6, 6));
  });
  // Where others are still waited for, nothing can be waited for.
  expect_error<communication_error>("destroyed while waiting for other ranks", [] {
    with_numbers(2, unchecked, [](const auto& fixture, const auto& q, auto& data, const communicator& c) {
      if (c.rank() == 0) {
        const auto group = fixture.with(fixture.c.split(0, 0, "all"));
        auto lost = fixture.template make<double>(6);
        try {
          group.c.all_reduce(lost.out());
          throw partita::input_error("no such file");
        } catch (const partita::input_error&) {
        }
      } else {
        fixture.c.split(0, 0, "all");
      }
      fixture.c.all_reduce(data.out());
      q.synchronize();
    });
  });
}

TEST_CASE("a group is split while operations are under way") {
  on_devices(4, unchecked, [](const communicator& c, const device_queue<cuda_device>& q) {
    const laws::device_fixture fixture = laws::on_a_device(c, q);
    auto data = fixture.put(std::vector<double>(6, 1));
    request under_way = fixture.c.start_all_reduce(data.out());
    const communicator half = fixture.c.split(c.rank() / 2, 0, "half");
    under_way.wait();
    half.all_reduce(data.out());
    CHECK(data.get() == std::vector<double>(6, 8));
  });
}

TEST_CASE("a mesh makes no communicator that nobody asks for, nor for axes that part nobody") {
  using partita::axis;
  const auto splits = [](partita::mesh_shape shape, std::vector<axis> axes = {axis::row}) {
    const std::uint64_t before = emulator::calls("ncclCommSplit");
    on_devices(4, unchecked, [&](const communicator& c, const device_queue<cuda_device>& q) {
      const partita::mesh<cuda_device> m(c, shape, q);
      for (const axis asked : axes) CHECK(m.along(asked).size() == shape[asked]);
      CHECK(m.along(axis::row).axis() == "row");
      CHECK(m.along(partita::partition::every_axis).size() == 4);
    });
    return (emulator::calls("ncclCommSplit") - before) / 4;
  };
  CHECK(splits({4, 1, 1}) == 0);
  CHECK(splits({1, 1, 4}) == 0);
  CHECK(splits({2, 2, 1}) == 1);
  CHECK(splits({2, 1, 2}) == 1);
  CHECK(splits({2, 1, 2}, {axis::row, axis::col, axis::depth, axis::row}) == 2);
}

}  // namespace test_nccl_failures

// SPDX-License-Identifier: Apache-2.0
// What communicators ask of the device's runtime, counted by the emulator: a steady state makes nothing, and
// nobody waits who need not. And staging over a transport that reaches the device itself.

#include "emulator/control.hpp"
#include "laws/communicator_laws.hpp"
#include "laws/on_the_device.hpp"
#include "partita/comm/self.hpp"
#include "support/ranks.hpp"
#include "support/staged_threads.hpp"

namespace test_comm_device_steady {

namespace laws = test_support::laws;
using partita::communicator, partita::request, test_support::on_threads, test_support::staging;

/// Lets threads, which copy on the host, reach the device's memory, as MPI does where it is aware of devices.
using aware = emulator::opened_arena;

/// Every operation, again and again on the same blocks of a device.
class busy_room {
 public:
  explicit busy_room(const communicator& c)
      : fixture_(laws::on_a_device(c)), ones_(static_cast<std::size_t>(c.size()), 1) {}

  const laws::device_fixture& fixture() const { return fixture_; }

  void work() {
    const communicator& c = fixture_.c;
    const int next = (c.rank() + 1) % c.size(), previous = (c.rank() + c.size() - 1) % c.size();
    c.all_gather(one_.in(), laws::in(ones_), all_.out());
    c.all_to_all(all_.in(), laws::in(ones_), crossed_.out(), laws::in(ones_));
    c.reduce_scatter(crossed_.in(), laws::in(ones_), one_.out());
    c.all_reduce(all_.out(), partita::reduction::max);
    request first = c.start_broadcast(crossed_.out(), 0), second = c.start_broadcast(all_.out(), 0);
    first.wait();
    second.wait();
    if (c.size() == 1) return;
    request sent = c.start_send(one_.in(), next);
    c.receive(arrived_.out(), previous);
    sent.wait();
  }

 private:
  laws::device_fixture fixture_;
  std::vector<partita::global_index> ones_;
  laws::device_block<double> one_ = fixture_.make<double>(1), arrived_ = fixture_.make<double>(1),
                             all_ = fixture_.make<double>(ones_.size()),
                             crossed_ = fixture_.make<double>(ones_.size());
};

/// What the runtime of the device is asked for by all ranks while they work, once they are warm.
struct steady_state {
  emulator::counters calls;
  std::uint64_t events = 0, buffers = 0;
};
steady_state observe(const communicator& c, const communicator& staged_or_not) {
  busy_room busy(staged_or_not);
  const auto meet = [&] {
    std::array<std::int32_t, 1> nothing{};
    c.all_reduce(std::span<std::int32_t>(nothing));
  };
  const auto now = [&] {
    meet();
    const steady_state s{emulator::count(), emulator::calls("cudaEventCreateWithFlags"),
                         busy.fixture().pool->queue.meter()->allocations()};
    meet();
    return s;
  };
  busy.work();
  const steady_state before = now();
  for (int round = 0; round < 20; ++round) busy.work();
  const steady_state after = now();
  return {after.calls - before.calls, after.events - before.events, after.buffers - before.buffers};
}

void check_nothing_is_made(const steady_state& s) {
  CHECK(s.calls.allocations == 0);
  CHECK(s.calls.device_synchronisations == 0);
  CHECK(s.events == 0);
  CHECK(s.buffers == 0);
}

TEST_CASE("threads that stage only what they add") {
  for (int ranks : {1, 2, 3, 5}) {
    CAPTURE(ranks);
    on_threads(ranks,
               [](const communicator& c) { laws::on_the_device(laws::on_a_device(staging<aware>(c))); });
  }
}

TEST_CASE("once warm, one rank and threads wait for no stream and make nothing") {
  for (int ranks : {1, 2, 4}) {
    CAPTURE(ranks);
    on_threads(ranks, [](const communicator& c) {
      const steady_state s = observe(c, c);
      check_nothing_is_made(s);
      CHECK(s.calls.stream_synchronisations == 0);
    });
  }
  const communicator alone = partita::self::world();
  const steady_state s = observe(alone, alone);
  check_nothing_is_made(s);
  CHECK(s.calls.stream_synchronisations == 0);
}

TEST_CASE("once warm, staging makes nothing") {
  on_threads(3, [](const communicator& c) { check_nothing_is_made(observe(c, staging(c))); });
  on_threads(3, [](const communicator& c) { check_nothing_is_made(observe(c, staging<aware>(c))); });
}

TEST_CASE("staging waits where an operation starts, not where it ends") {
  on_threads(1, [](const communicator& c) {
    const laws::device_fixture fixture = laws::on_a_device(staging(c));
    auto data = fixture.put(std::vector<float>{1, 2, 3}), other = fixture.make<float>(3);
    request sum = fixture.c.start_all_reduce(data.out());
    other.spoil();  // runs while the operation is under way
    const auto before = emulator::count();
    sum.wait();
    CHECK((emulator::count() - before).stream_synchronisations == 0);
    CHECK(data.get() == std::vector<float>{1, 2, 3});
  });
}

}  // namespace test_comm_device_steady

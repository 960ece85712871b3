// SPDX-License-Identifier: Apache-2.0
// The laws of a communicator over NCCL, between threads with a device each.

#include "laws/on_the_device.hpp"
#include "laws/on_the_host.hpp"
#include "partita/comm/mesh.hpp"
#include "support/nccl_devices.hpp"

namespace test_nccl_laws {

namespace laws = test_support::laws;
using namespace test_support;

/// Those of 1, 2, 3, 4 and 6 ranks that have a device each; two must have.
std::vector<int> rank_counts() {
  int devices = 0;
  REQUIRE(cudaGetDeviceCount(&devices) == cudaSuccess);
  REQUIRE(devices >= 2);
  std::vector<int> counts = {1, 2, 3, 4, 6};
  std::erase_if(counts, [&](int ranks) { return ranks > devices; });
  return counts;
}
int most_ranks() { return rank_counts().back(); }

TEST_CASE("memory of the host") {
  for (const int ranks : {1, most_ranks()}) {
    CAPTURE(ranks);
    on_nccl_devices(ranks, {},
                    [](const communicator& c, const device_queue<cuda_device>&) { laws::on_the_host(c); });
  }
}

TEST_CASE("memory of devices") {
  for (const int ranks : rank_counts()) {
    CAPTURE(ranks);
    on_nccl_devices(ranks, unchecked, [](const communicator& c, const device_queue<cuda_device>& q) {
      laws::on_the_device(laws::on_a_device(c, q));
    });
  }
}

TEST_CASE("memory of devices, checked") {
  on_nccl_devices(most_ranks(), {.checked = true},
                  [](const communicator& c, const device_queue<cuda_device>& q) {
                    laws::on_the_device(laws::on_a_device(c, q));
                  });
}

TEST_CASE("host and device in turn, and back from the device to the host") {
  on_nccl_devices(most_ranks(), unchecked, [](const communicator& c, const device_queue<cuda_device>& q) {
    const laws::device_fixture fixture = laws::on_a_device(c, q);
    laws::several_in_flight(fixture);
    laws::several_in_flight(laws::host_fixture{c});
    laws::several_in_flight(laws::host_fixture{fixture.c.on_memory(nullptr)});
    laws::several_in_flight(fixture.with(fixture.c.split(c.rank() % 2, 0, "half")));
  });
}

TEST_CASE("a mesh has communicators for both places") {
  on_nccl_devices(2 * (most_ranks() / 2), unchecked,
                  [](const communicator& c, const device_queue<cuda_device>& q) {
                    const partita::mesh<cuda_device> m(c, {c.size() / 2, 2, 1}, q);
                    const laws::device_fixture fixture = laws::on_a_device(c, q);
                    for (const partita::axis_set s :
                         {partita::axis_set(partita::axis::row), partita::partition::every_axis}) {
                      laws::several_in_flight(fixture.with(m.along(s)));
                      laws::several_in_flight(laws::host_fixture{m.control(s)});
                    }
                  });
}

TEST_CASE("the rank's queue goes on while an operation waits for others") {
  on_nccl_devices(2, unchecked, [](const communicator& c, const device_queue<cuda_device>& q) {
    const laws::device_fixture fixture = laws::on_a_device(c, q);
    auto mine = fixture.put(std::vector<int>{c.rank() + 5}), all = fixture.make<int>(2),
         other = fixture.make<int>(3);
    const std::vector<global_index> ones = equal_counts(2, 1);
    q.synchronize();
    request r;
    if (c.rank() == 0) {
      r = fixture.c.start_all_gather(mine.in(), ones, all.out());
      other.spoil();
      CHECK(other.get() == std::vector<int>(3, 77));
    }
    c.all_gather(std::span<const int>(), equal_counts(2, 0), std::span<int>());
    if (c.rank() == 1) r = fixture.c.start_all_gather(mine.in(), ones, all.out());
    r.wait();
    CHECK(all.get() == std::vector<int>{5, 6});
  });
}

TEST_CASE("what disagrees is found before it starts where checked") {
  on_nccl_devices(
      most_ranks(), {.checked = true}, [](const communicator& c, const device_queue<cuda_device>& q) {
        const laws::device_fixture fixture = laws::on_a_device(c, q);
        auto data = fixture.make<int>(5);
        expect_error<communication_error>("ranks disagree: rank 1 calls broadcast of i32 (nccl.cpp", [&] {
          fixture.c.broadcast(data.out().first(c.rank() == 1 ? 4 : 5), 0);
        });
      });
}

}  // namespace test_nccl_laws

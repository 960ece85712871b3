// SPDX-License-Identifier: Apache-2.0
// Clusters that are not there: the time of operations against closed forms, and what overlaps.
#include "partita/comm/emulated.hpp"

#include <doctest/doctest.h>

#include "laws/on_the_host.hpp"
#include "partita/comm/threads.hpp"

namespace test_emulated {

using namespace partita;

/// Latency and bandwidth such that seconds are known to a microsecond beside the processor time of a test.
constexpr emulated::machine of_nodes(int ranks) {
  return {.ranks_of_node = ranks, .inside = {10, 1e3}, .between = {1000, 1}};
}

/// What `act` takes, in seconds of the machine, on each of p ranks.
template <class Act>
std::vector<double> seconds_of(int p, const emulated::machine& m, Act act) {
  std::vector<double> seconds(static_cast<std::size_t>(p));
  threads::run(p, [&](const communicator& threads) {
    const communicator c = emulated::cluster(threads, m);
    const double begin = c.ledger().seconds();
    act(c);
    seconds[static_cast<std::size_t>(c.rank())] = c.ledger().seconds() - begin;
  });
  return seconds;
}

/// The processor time of a test is not known, but far below this.
bool about(double seconds, double expected) { return seconds >= expected && seconds < expected + 1; }

TEST_CASE("emulated cluster: the time of each operation") {
  const std::vector<global_index> counts(4, 100);
  std::vector<float> block(100), all(400);  // 400 bytes, 1600
  // Ranks 0, 1 and 2, 3 on a node each, so that the ring crosses twice; of the network each has a half.
  for (const double s : seconds_of(4, of_nodes(2), [&](const communicator& c) {
         std::vector<float> mine(block), of_all(all);
         c.all_gather(mine, counts, of_all);
       }))
    CHECK(about(s, 2 * 1000 + 1200 / .5));
  for (const double s : seconds_of(4, of_nodes(4), [&](const communicator& c) {
         std::vector<float> mine(block), of_all(all);
         c.all_gather(mine, counts, of_all);
       }))
    CHECK(about(s, 2 * 10 + 1200 / 1e3));
  for (const double s : seconds_of(4, of_nodes(1), [&](const communicator& c) {
         std::vector<float> mine(block);
         c.all_reduce(mine);
       }))
    CHECK(about(s, 2 * 1000 + 2 * 300));
  for (const double s : seconds_of(4, of_nodes(1), [&](const communicator& c) {
         std::vector<float> to(all), from(all);
         c.all_to_all(to, counts, from, counts);
       }))
    CHECK(about(s, 2 * 1000 + 1200));
  const std::vector<double> pair = seconds_of(2, of_nodes(1), [&](const communicator& c) {
    std::vector<float> message(block);
    c.rank() == 0 ? c.send(message, 1) : c.receive(message, 0);
  });
  CHECK(about(pair[0], 1400));
  CHECK(about(pair[1], 1400));
}

TEST_CASE(
    "emulated cluster: a rank waits for those that send to it, and what is computed meanwhile overlaps") {
  emulated::machine m = of_nodes(1);
  m.between = {0, 1};
  m.slower = 1e7;
  std::vector<double> computed(2);
  const std::vector<double> seconds = seconds_of(2, m, [&](const communicator& c) {
    std::vector<float> data(100);
    request r = c.start_broadcast(data, 0);
    const double begin = c.ledger().seconds();
    volatile double sum = 0;
    while (c.rank() == 1 && c.ledger().seconds() - begin < 1e4) sum = sum + 1;
    computed[static_cast<std::size_t>(c.rank())] = c.ledger().seconds() - begin;
    r.wait();
  });
  CHECK(computed[1] >= 1e4);
  CHECK(seconds[1] < computed[1] + 400 + 1e5);  // of which the last is the time of what is not counted
  CHECK(seconds[0] >= 400);
}

TEST_CASE("emulated cluster: the laws of a communicator") {
  threads::run(3, [](const communicator& c) {
    test_support::laws::on_the_host(emulated::cluster(c, {.ranks_of_node = 2, .between = {1e-6, 1e9}}));
  });
}

TEST_CASE("emulated cluster: groups that are split from it, results and ledgers as of the ranks below") {
  threads::run(4, [](const communicator& threads) {
    const communicator c = emulated::cluster(threads, {.ranks_of_node = 2, .between = {1, 1}});
    const communicator pair = c.split(c.rank() / 2, c.rank(), "pair");
    const communicator across = c.split(c.rank() % 2, c.rank(), "across");
    const double begin = c.ledger().seconds();
    CHECK(pair.all_reduce(c.rank()) == (c.rank() < 2 ? 1 : 5));
    CHECK(c.ledger().seconds() - begin < .5);
    CHECK(across.all_reduce(c.rank()) == (c.rank() % 2 == 0 ? 2 : 4));
    CHECK(c.ledger().seconds() - begin >= 1);
    CHECK(c.ledger().total([](const comm::ledger_entry& e) { return e.axis == "across"; }).words == 1);
    CHECK(c.ledger().total().messages == 2);
  });
  CHECK_THROWS_AS(
      threads::run(1, [](const communicator& c) { (void)emulated::cluster(c, {.ranks_of_node = 0}); }),
      mesh_error);
}

TEST_CASE("emulated cluster: in real time ranks sleep") {
  const auto seconds = seconds_of(2, {.between = {.02, 1e9}, .in_real_time = true},
                                  [](const communicator& c) { c.all_reduce(1); });
  CHECK(seconds[0] >= .02);
  CHECK(seconds[1] >= .02);
}

}  // namespace test_emulated

// SPDX-License-Identifier: Apache-2.0
// Clusters that are not there: the time of operations against closed forms, and what overlaps.
#include "partita/comm/emulated.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <memory>

#include "laws/on_the_host.hpp"
#include "partita/comm/threads.hpp"
#include "partita/local/chunked.hpp"
#include "partita/local/kernels.hpp"

namespace test_emulated {

using namespace partita;

/// A machine whose processors are so fast that only operations take time.
emulated::machine of_nodes(int ranks, emulated::link inside = {10, 1e3}, emulated::link between = {1000, 1}) {
  return {.ranks_of_node = ranks, .inside = inside, .between = between, .slower = 1e-12};
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

/// But for rounding, and for 1e-12 of the processor time of a test.
bool about(double seconds, double expected) { return std::abs(seconds - expected) < 1e-3; }

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

TEST_CASE("emulated cluster: what is done between the start of an operation and the wait for it overlaps") {
  // Ranks 0, 1 and 2, 3 on a node each; across nodes 400 bytes take 1000 + 400 / .5 s, inside 400 000 take 10
  // + 4000 s.
  const auto seconds = [](bool overlap) {
    return seconds_of(4, of_nodes(2, {10, 100}), [&](const communicator& c) {
      const communicator pair = c.split(c.rank() / 2, c.rank(), "pair");
      const communicator across = c.split(c.rank() % 2, c.rank(), "across");
      std::vector<float> message(100), sums(100'000);
      request r = across.start_broadcast(message, 0);
      if (!overlap) r.wait();
      pair.all_reduce(sums);
      r.wait();
    });
  };
  for (const double s : seconds(true)) CHECK(about(s, 10 + 4000));
  for (const double s : seconds(false)) CHECK(about(s, 1000 + 800 + 10 + 4000));
}

TEST_CASE("emulated cluster: a rank's clock goes on with its processor time") {
  threads::run(1, [](const communicator& threads) {
    const communicator c = emulated::cluster(threads, {.slower = 1e6});
    const double begin = c.ledger().seconds();
    volatile double sum = 0;
    while (c.ledger().seconds() == begin) sum = sum + 1;
    CHECK(c.ledger().seconds() > begin);
  });
}

TEST_CASE("emulated cluster: the laws of a communicator") {
  threads::run(3, [](const communicator& c) {
    test_support::laws::on_the_host(emulated::cluster(c, {.ranks_of_node = 2, .between = {1e-6, 1e9}}));
  });
}

TEST_CASE("emulated cluster: groups that are split from it, results and ledgers as of the ranks below") {
  threads::run(4, [](const communicator& threads) {
    const communicator c = emulated::cluster(threads, of_nodes(2, {}, {1, 1}));
    const communicator pair = c.split(c.rank() / 2, c.rank(), "pair");
    const communicator across = c.split(c.rank() % 2, c.rank(), "across");
    const double begin = c.ledger().seconds();
    CHECK(pair.all_reduce(c.rank()) == (c.rank() < 2 ? 1 : 5));
    CHECK(about(c.ledger().seconds() - begin, 0));
    CHECK(across.all_reduce(c.rank()) == (c.rank() % 2 == 0 ? 2 : 4));
    CHECK(c.ledger().seconds() - begin >= 1 - 1e-3);
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

/// A machine on which such a fill, and one of a row, takes 4 s, and messages nothing.
emulated::machine with_fill(const memory::kernel_call& call) {
  memory::kernel_rates rates;
  rates.add(call, 4);
  rates.add({.kernel = call.kernel, .rows = 1, .row_bytes = call.bytes, .bytes = call.bytes}, 4);
  constexpr emulated::link none{0, std::numeric_limits<double>::infinity()};
  return {.inside = none,
          .between = none,
          .slower = .5,
          .kernels = std::make_shared<const memory::kernel_rates>(std::move(rates))};
}

TEST_CASE("emulated cluster: charged kernels take what was measured, and nothing else takes time") {
  threads::run(2, [](const communicator& threads) {
    const communicator c = emulated::cluster(
        threads, with_fill({.kernel = "rows: fill", .rows = 3, .row_bytes = 16, .bytes = 48}));
    const auto q = emulated::charged(c, device_queue<host>());
    std::vector<double> x(6);
    const auto fill = [&] { local::chunked::fill(q, 7.0, matrix_view<double>{x.data(), 3, 2, 2}); };
    volatile double sum = 0;
    for (int k = 0; k < 100'000; ++k) sum = sum + 1;
    (void)c.all_reduce(1);
    CHECK(c.ledger().seconds() == 0);
    fill();
    CHECK(c.ledger().seconds() == 2);
    CHECK(x == std::vector<double>(6, 7));
    if (c.rank() == 0) fill();
    (void)c.all_reduce(1);
    CHECK(c.ledger().seconds() == 4);
    local::chunked::fill(q, 7.0, matrix_view<double>{x.data(), 0, 2, 2});
    CHECK(c.ledger().seconds() == 4);
    CHECK_THROWS_AS(local::by_rows(
                        q, "unknown", [](auto) {}, local::writes(matrix_view<double>{x.data(), 3, 2, 2})),
                    input_error);
  });
}

TEST_CASE(
    "emulated cluster: a rehearsal runs no kernel but fills of a row, and moves counts but no numbers") {
  threads::run(2, [](const communicator& threads) {
    const communicator c = emulated::cluster(
        threads, with_fill({.kernel = "rows: fill", .rows = 3, .row_bytes = 16, .bytes = 48}));
    const auto q = emulated::charged(c, device_queue<host>());
    std::vector<double> x(6), row(6), sums(40, 1);
    std::vector<std::int64_t> counts(40, 1);
    {
      const emulated::rehearsal nothing_computed(c);
      local::chunked::fill(q, 7.0, matrix_view<double>{x.data(), 3, 2, 2});
      local::chunked::fill(q, 7.0, matrix_view<double>{row.data(), 1, 6, 6});
      c.all_reduce(sums);
      c.all_reduce(counts);
      CHECK(c.all_reduce(1.5) == 3);  // by such numbers ranks agree
    }
    CHECK(c.ledger().seconds() == 4);
    CHECK(x == std::vector<double>(6, 0));
    CHECK(row == std::vector<double>(6, 7));
    CHECK(sums == std::vector<double>(40, 1));
    CHECK(counts == std::vector<std::int64_t>(40, 2));
    local::chunked::fill(q, 7.0, matrix_view<double>{x.data(), 3, 2, 2});
    c.all_reduce(sums);
    CHECK(x == std::vector<double>(6, 7));
    CHECK(sums == std::vector<double>(40, 2));
  });
}

TEST_CASE("emulated cluster: kernels are charged on a cluster that has measurements of them") {
  threads::run(1, [](const communicator& threads) {
    const device_queue<host> q;
    CHECK_THROWS_AS(emulated::charged(threads, q), error);
    CHECK_THROWS_AS(emulated::charged(emulated::cluster(threads, {}), q), error);
    CHECK_THROWS_AS(emulated::rehearsal{threads}, error);
  });
}

}  // namespace test_emulated

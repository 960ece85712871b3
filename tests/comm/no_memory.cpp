// SPDX-License-Identifier: Apache-2.0
// A rank that finds no memory, in any operation: the others are told of it, and nothing else happens.
#include <atomic>
#include <doctest/doctest.h>
#include <numeric>

#include "partita/comm/emulated.hpp"
#include "partita/comm/ledger.hpp"
#include "partita/comm/threads.hpp"
#include "support/failing_memory.hpp"

namespace test_comm_no_memory {

using namespace partita;
using namespace test_support;

constexpr int ranks = 3;
using numbers = std::vector<double>;

TEST_CASE("ledger: spans and phases end without memory") {
  const std::string long_name(40, 'n'), other_name(50, 'm');
  std::size_t most_events = 0;
  const long allocations = fail_every_allocation([&](long number) {
    ledger account;
    account.keep_events(100);
    const failing_allocation one(number);
    try {
      const comm::phase_scope phase(account, long_name);
      for (int layer = 0; layer < 5; ++layer) {
        const comm::phase_scope inner(account, other_name);
        const comm::span within(account, long_name);
        account.keep({});
        account.clear();
      }
    } catch (const std::bad_alloc&) {
    }
    CHECK(account.phase() == "setup");
    most_events = std::max(most_events, account.events().size());
    return failing_allocation::has_failed();
  });
  CHECK(allocations > 10);
  CHECK(most_events == 16);
}

/// Every operation, on few elements and on many.
void communicate(const communicator& c) {
  const auto rank = static_cast<double>(c.rank());
  for (const std::size_t n : {std::size_t{4}, std::size_t{40000}}) {
    numbers mine(n, rank), three(3 * n), others(3 * n), sum(n, 1);
    const std::vector<global_index> counts(ranks, static_cast<global_index>(n));
    c.all_reduce(sum);
    c.all_gather(mine, counts, three);
    c.reduce_scatter(three, counts, mine);
    c.all_to_all(three, counts, others, counts);
    c.broadcast(sum, 1);
    const communicator part = c.split(c.rank() % 2, 0, "part");
    part.all_reduce(sum);
    request sent = c.start_send(mine, (c.rank() + 1) % ranks);
    c.receive(sum, (c.rank() + ranks - 1) % ranks);
    sent.wait();
  }
}

long fail_every_allocation_of(int failing, const std::function<communicator(const communicator&)>& of) {
  return fail_every_allocation([&](long number) {
    std::atomic<bool> failed = false;
    std::string end = "well";
    try {
      threads::run(ranks,
                   [&](const communicator& world) {
                     const communicator c = of(world);
                     if (c.rank() != failing) return communicate(c);
                     const failing_allocation one(number);
                     try {
                       communicate(c);
                     } catch (...) {
                       failed = failing_allocation::has_failed();
                       throw;
                     }
                     failed = failing_allocation::has_failed();
                   },
                   {.pins = false});
    } catch (const std::bad_alloc&) {
      end = "no memory";
    } catch (const std::exception& e) {
      end = e.what();
    }
    CHECK(end == (failed ? "no memory" : "well"));
    return failed.load();
  });
}

TEST_CASE("threads: a rank without memory ends the run, wherever it is") {
  for (int failing = 0; failing < ranks; ++failing)
    CHECK(fail_every_allocation_of(failing, [](const communicator& world) { return world; }) > 20);
}

TEST_CASE("threads: so does one of an emulated machine") {
  for (int failing = 0; failing < ranks; ++failing)
    CHECK(fail_every_allocation_of(
              failing, [](const communicator& world) { return emulated::cluster(world, {}); }) > 20);
}

}  // namespace test_comm_no_memory

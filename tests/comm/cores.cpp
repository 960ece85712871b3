// SPDX-License-Identifier: Apache-2.0
#include "partita/comm/cores.hpp"

#include <doctest/doctest.h>
#include <sched.h>

using namespace partita;

TEST_CASE("a thread sees the cores that it is bound to") {
  const comm::core_set before = comm::usable_cores();
  CHECK(comm::count(before) >= 1);
  CHECK(comm::count(before) == static_cast<int>(std::thread::hardware_concurrency()));
  std::size_t last = 8 * before.size() - 1;
  while (!comm::contains(before, last)) --last;

  comm::core_set bound{};
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
    bound = comm::usable_cores();
  }).join();
  CHECK(comm::count(bound) == 1);
  CHECK(comm::contains(bound, last));
  CHECK(comm::usable_cores() == before);
}

TEST_CASE("shares of cores are disjoint, differ by one core at most, and are all of them") {
  comm::core_set cores{};
  for (const std::size_t core : {0, 2, 3, 7, 64, 65, 1000})
    cores[core / 8] |= static_cast<std::uint8_t>(1u << core % 8);
  for (int parts = 1; parts <= 7; ++parts) {
    comm::core_set all{};
    for (int part = 0; part < parts; ++part) {
      const comm::core_set share = comm::share_of(cores, part, parts);
      CHECK(comm::count(share) >= 7 / parts);
      CHECK(comm::count(share) <= (7 + parts - 1) / parts);
      for (std::size_t i = 0; i < all.size(); ++i) {
        CHECK((all[i] & share[i]) == 0);
        all[i] |= share[i];
      }
    }
    CHECK(all == cores);
  }
  CHECK(comm::share_of(cores, 3, 8) == cores);
}

TEST_CASE("a thread and those it creates are bound for a scope") {
  const comm::core_set before = comm::usable_cores();
  const comm::core_set last = comm::share_of(before, comm::count(before) - 1, comm::count(before));
  {
    const comm::bound_to scope(last);
    CHECK(comm::usable_cores() == last);
    std::thread([&] { CHECK(comm::usable_cores() == last); }).join();
  }
  CHECK(comm::usable_cores() == before);
}

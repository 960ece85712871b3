// SPDX-License-Identifier: Apache-2.0
#include "partita/comm/cores.hpp"

#include <doctest/doctest.h>

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

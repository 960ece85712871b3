// SPDX-License-Identifier: Apache-2.0
// Tasks beside a rank's own work.
#include "partita/base/background.hpp"

#include <doctest/doctest.h>

#include "partita/local/parallel.hpp"
#include "support/ranks.hpp"

namespace test_background {

using namespace partita;

TEST_CASE("tasks run one after the other on one thread, with a team, and their exceptions arrive") {
  std::thread::id first;
  int sum = 0;
  base::background beside;  // ends before what its tasks refer to
  beside.wait();
  for (int k = 0; k < 5; ++k) {
    beside.start([&] {
      if (k == 0) first = std::this_thread::get_id();
      CHECK(first == std::this_thread::get_id());
      int parts[3] = {};
      local::run_parts(3, [&](int part) { parts[part] = part + k; });
      for (const int p : parts) sum += p;
    });
    beside.wait();
  }
  CHECK(first != std::this_thread::get_id());
  CHECK(sum == 5 * 3 + 3 * 10);

  beside.start([] { throw error("of a task"); });
  CHECK_THROWS_WITH_AS(beside.wait(), "of a task", error);
  beside.start([&] { sum = 1; });
  CHECK_THROWS_AS(beside.start([] {}), error);
  beside.wait();
  CHECK(sum == 1);
  beside.start([&] { sum = 2; });  // not waited for
}

}  // namespace test_background

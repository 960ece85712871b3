// SPDX-License-Identifier: Apache-2.0
// The laws of a communicator over threads.
#include "partita/comm/threads.hpp"

#include <doctest/doctest.h>

#include "laws/on_the_host.hpp"
#include "support/ranks.hpp"

namespace test_comm_laws {

namespace laws = test_support::laws;
using namespace partita;

TEST_CASE("threads") {
  for (int ranks : test_support::rank_counts) {
    CAPTURE(ranks);
    if (test_support::sees(ranks))
      test_support::on_threads(ranks, [](const communicator& c) { laws::on_the_host(c); });
  }
}

TEST_CASE("ranks are bound to disjoint cores where there are enough, or not at all") {
  const comm::core_set all = comm::usable_cores();
  for (const int ranks : {1, 2, comm::count(all), comm::count(all) + 1})
    for (const bool pins : {true, false}) {
      std::vector<comm::core_set> seen(static_cast<std::size_t>(ranks));
      threads::run(ranks,
                   [&](const communicator& world) {
                     seen[static_cast<std::size_t>(world.rank())] = comm::usable_cores();
                   },
                   {.pins = pins});
      for (int rank = 0; rank < ranks; ++rank)
        CHECK(seen[static_cast<std::size_t>(rank)] ==
              (pins && ranks <= comm::count(all) ? comm::share_of(all, rank, ranks) : all));
      CHECK(comm::usable_cores() == all);
    }
}

}  // namespace test_comm_laws

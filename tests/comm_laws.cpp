// The laws of a communicator over one rank alone and over threads.
#include <doctest/doctest.h>

#include "partita/comm/self.hpp"
#include "support/communicator_laws.hpp"
#include "support/ranks.hpp"

namespace test_comm_laws {

namespace laws = test_support::laws;

TEST_CASE("one rank alone") { laws::on_the_host(partita::self::world()); }

TEST_CASE("threads") {
  for (int ranks : test_support::rank_counts) {
    CAPTURE(ranks);
    if (test_support::sees(ranks)) test_support::on_threads(ranks, laws::on_the_host);
  }
}

}  // namespace test_comm_laws

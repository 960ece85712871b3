// SPDX-License-Identifier: Apache-2.0
// The laws of a communicator over threads.
#include "partita/comm/threads.hpp"

#include <doctest/doctest.h>

#include "laws/on_the_host.hpp"
#include "support/ranks.hpp"

namespace test_comm_laws {

namespace laws = test_support::laws;

TEST_CASE("threads") {
  for (int ranks : test_support::rank_counts) {
    CAPTURE(ranks);
    if (test_support::sees(ranks)) test_support::on_threads(ranks, laws::on_the_host);
  }
}

}  // namespace test_comm_laws

// SPDX-License-Identifier: Apache-2.0
// The laws over memory of a device: one rank, threads that share it, threads behind staging.

#include "laws/on_the_device.hpp"
#include "partita/comm/self.hpp"
#include "support/ranks.hpp"
#include "support/staged_threads.hpp"

namespace test_comm_device_laws {

namespace laws = test_support::laws;
using partita::communicator, test_support::on_threads;

void on_a_device(const communicator& c) { laws::on_the_device(laws::on_a_device(c)); }

TEST_CASE("one rank alone") { on_a_device(partita::self::world()); }

TEST_CASE("threads") {
  for (int ranks : {1, 2, 3, 4, 6, 9}) {
    CAPTURE(ranks);
    on_threads(ranks, on_a_device);
  }
}

TEST_CASE("threads that stage") {
  for (int ranks : {1, 2, 3, 5}) {
    CAPTURE(ranks);
    on_threads(ranks, [](const communicator& c) { on_a_device(test_support::staging(c)); });
  }
}

}  // namespace test_comm_device_laws

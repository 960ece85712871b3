// SPDX-License-Identifier: Apache-2.0
// The laws of a communicator over one rank alone.
#include "partita/comm/self.hpp"

#include <doctest/doctest.h>

#include "laws/on_the_host.hpp"

namespace test_comm_self {

TEST_CASE("one rank alone") { test_support::laws::on_the_host(partita::self::world()); }

}  // namespace test_comm_self

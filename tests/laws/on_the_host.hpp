// SPDX-License-Identifier: Apache-2.0
#pragma once
// All laws of a communicator over memory of the host, compiled once for all that test one.
#include "partita/comm/communicator.hpp"

namespace test_support::laws {

/// Every rank of the communicator calls.
void on_the_host(const partita::communicator& c);

}  // namespace test_support::laws

// SPDX-License-Identifier: Apache-2.0
#pragma once
// All laws of a communicator over memory of a device, compiled once for all that test one.
#include "support/device_fixture.hpp"

namespace test_support::laws {

/// Every rank of the communicator calls.
void on_the_device(const device_fixture& fixture);

}  // namespace test_support::laws

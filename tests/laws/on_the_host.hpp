// SPDX-License-Identifier: Apache-2.0
#pragma once
// All laws of a communicator over memory of the host, compiled once for all that test one.
#include "laws/law_values.hpp"

namespace test_support::laws {

/// Every rank of the communicator calls.
void on_the_host(const host_fixture& fixture);
inline void on_the_host(const communicator& c) { on_the_host(host_fixture{c}); }

}  // namespace test_support::laws

// SPDX-License-Identifier: Apache-2.0
#include "laws/on_the_host.hpp"

#include "laws/communicator_laws.hpp"
#include "laws/range_laws.hpp"

void test_support::laws::on_the_host(const host_fixture& fixture) {
  all(fixture);
  ranges(fixture.c);
  returned(fixture);
}

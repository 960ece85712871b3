// SPDX-License-Identifier: Apache-2.0
#include "laws/on_the_host.hpp"

#include "laws/communicator_laws.hpp"
#include "laws/range_laws.hpp"

void test_support::laws::on_the_host(const communicator& c) {
  all(host_fixture{c});
  ranges(c);
  returned(c);
}

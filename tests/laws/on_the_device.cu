// SPDX-License-Identifier: Apache-2.0
#include "laws/communicator_laws.hpp"
#include "laws/on_the_device.hpp"

void test_support::laws::on_the_device(const device_fixture& fixture) { all(fixture); }

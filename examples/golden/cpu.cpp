// SPDX-License-Identifier: Apache-2.0
#include "../ranks/compiled.hpp"
#include "place.hpp"

void compare_on_cpu(const partita::communicator& world, const golden_command& c,
                    const std::vector<golden_case>& cases, const case_observer& observe) {
  compare_at(partita::mesh<partita::host>(world, mesh_of(c, world.size())), c, cases, observe);
}

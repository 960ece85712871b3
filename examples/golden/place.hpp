// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Golden cases at one place, in either precision.

#include "../ranks/precision.hpp"
#include "compare.hpp"
#include "run.hpp"

/// The mesh that is asked for.
inline partita::mesh_shape mesh_of(const golden_command& c, int ranks) {
  return arrangement_of(c.policy, c.mesh, {}, ranks)->mesh;
}

/// Every rank must call.
template <class Device>
void compare_at(const partita::mesh<Device>& m, const golden_command& c,
                const std::vector<golden_case>& cases, const case_observer& observe) {
  const partita::policy& p = partita::find_policy(c.policy);
  for (const golden_case& g : cases)
    observe(g, in_precision(c.precision,
                            [&](auto zero) { return compare_golden<decltype(zero)>(m, g, g.options, p); }));
}

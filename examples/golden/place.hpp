#pragma once
/// Golden cases at one place, in either precision.

#include "compare.hpp"
#include "run.hpp"

/// Every rank must call.
template <class Place>
void compare_at(const partita::communicator& world, const partita::queue<Place>& queue,
                const golden_command& c, const std::vector<golden_case>& cases,
                const case_observer& observe) {
  const partita::mesh<Place> m(world, arrangement_of(c.policy, c.mesh, {}, world.size())->mesh, queue);
  for (const golden_case& g : cases)
    observe(g, c.precision == "f64"
                   ? compare_golden(m, g, g.options, partita::operators_of<double>(m, c.policy))
                   : compare_golden(m, g, g.options, partita::operators_of<float>(m, c.policy)));
}

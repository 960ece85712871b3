// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include <partita/partition/policies.hpp>
#include <partita/version.hpp>

int main() {
  const bool right = partita::default_mesh(partita::grid_2d, 4) == partita::mesh_shape{2, 2, 1};
  std::printf("partita %d.%d: %s\n", partita::version::major, partita::version::minor,
              right ? "all is right" : "something is wrong");
  return right ? 0 : 1;
}

#include <cstdio>

#include "partita/partition/policies.hpp"
#include "run.hpp"

namespace {

partita::mesh_shape parse_mesh(const std::string& text) {
  partita::mesh_shape m;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%dx%dx%d%c", &m.row, &m.col, &m.depth, &rest) != 3 || m.row < 1 ||
      m.col < 1 || m.depth < 1)
    throw usage_error("a mesh is written as ROWxCOLxDEPTH, like 2x2x1, not '" + text + "'");
  return m;
}

}  // namespace

std::optional<arrangement> arrangement_of(const command& c, int ranks) try {
  if (c.policy == "auto") {
    if (c.mesh || c.replication)
      throw usage_error("--mesh and --replication need a --policy other than auto");
    return {};
  }
  arrangement how{c.policy, {}};
  partita::visit_policy(c.policy, [&](auto policy) {
    using policy_type = decltype(policy);
    how.mesh = c.mesh ? parse_mesh(*c.mesh) : partita::default_mesh<policy_type>(ranks, c.replication);
    partita::require_mesh<policy_type>(how.mesh, ranks);
    if (c.replication && how.mesh.depth != *c.replication)
      throw usage_error("mesh " + to_string(how.mesh) + " has depth " + std::to_string(how.mesh.depth) +
                        ", not replication " + std::to_string(*c.replication));
  });
  return how;
} catch (const partita::mesh_error& e) {
  throw usage_error(e.what());
}

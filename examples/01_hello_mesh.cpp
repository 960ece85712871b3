// SPDX-License-Identifier: Apache-2.0
/// Ranks are arranged in a mesh with three named axes: row, col and depth. Along each axis, a rank has a
/// communicator with the ranks that differ from it only in that coordinate.

#include <array>
#include <cstdio>
#include <vector>

#include <partita/partita.hpp>

using namespace partita;

/// The world ranks along one axis, by an all-gather. Collective over the axis.
std::vector<global_index> ranks_along(const mesh<host>& m, axis a) {
  return m.along(a).all_gather(global_index{m.rank()});
}

/// The same from the mesh shape alone, without communication.
std::vector<global_index> expected_along(mesh_shape shape, axis a, coordinates at) {
  std::vector<global_index> all;
  for (at[a] = 0; at[a] < shape[a]; ++at[a]) all.push_back(shape.rank(at));
  return all;
}

void print_mesh(mesh_shape shape) {
  std::printf("%d ranks on a mesh of %s:\n", shape.size(), to_string(shape).c_str());
  for (int depth = 0; depth < shape.depth; ++depth) {
    std::printf("\n  depth %d ", depth);
    for (int col = 0; col < shape.col; ++col) std::printf("  col %d", col);
    for (int row = 0; row < shape.row; ++row) {
      std::printf("\n    row %d ", row);
      for (int col = 0; col < shape.col; ++col) std::printf("%7d", shape.rank({row, col, depth}));
    }
    std::printf("\n");
  }
}

int main() {
  constexpr mesh_shape shape{.row = 2, .col = 3, .depth = 2};
  print_mesh(shape);

  // heard[rank][axis]; ranks are threads here, and each writes only its own element.
  std::array<std::array<std::vector<global_index>, 3>, shape.size()> heard;
  threads::run(shape.size(), [&](const communicator& world) {
    const mesh<host> m(world, shape);
    for (std::size_t a = 0; a < 3; ++a)
      heard[static_cast<std::size_t>(m.rank())][a] = ranks_along(m, partition::all_axes[a]);
  });

  constexpr int speaker = 7;
  constexpr coordinates here = shape.at(speaker);
  std::printf("\nrank %d stands at row %d, col %d, depth %d\n", speaker, here.row, here.col, here.depth);
  bool right = true;
  for (std::size_t a = 0; a < 3; ++a) {
    std::printf("  along %-5s it talks with", partition::name_of(partition::all_axes[a]));
    for (const global_index rank : heard[speaker][a]) std::printf(" %d", static_cast<int>(rank));
    std::printf("\n");
    for (std::size_t r = 0; r < heard.size(); ++r)
      right = right &&
              heard[r][a] == expected_along(shape, partition::all_axes[a], shape.at(static_cast<int>(r)));
  }
  std::printf("\nevery rank %s where the shape says\n", right ? "stands" : "does NOT stand");
  return right ? 0 : 1;
}

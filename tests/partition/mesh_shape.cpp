// SPDX-License-Identifier: Apache-2.0
// Ranks and their places on the axes of a mesh.
#include "partita/partition/mesh_shape.hpp"

#include <set>

#include "support/matrices.hpp"

namespace test_mesh_shape {

using namespace test_support;

TEST_CASE("mesh: ranks, coordinates and members are bijections") {
  for (int r = 1; r <= 4; ++r)
    for (mesh_shape m : every_small_mesh()) {
      m.row = r;
      std::set<int> seen;
      CHECK(m.size() == m.row * m.col * m.depth);
      for (int i = 0; i < m.row; ++i)
        for (int j = 0; j < m.depth; ++j)
          for (int k = 0; k < m.col; ++k) {
            const coordinates at{i, k, j};
            CHECK(m.rank(at) == static_cast<int>(seen.size()));  // col fastest, then depth, then row
            CHECK(m.at(m.rank(at)) == at);
            seen.insert(m.rank(at));
          }
      CHECK(static_cast<int>(seen.size()) == m.size());
      std::size_t wrong = 0;
      for (unsigned bits = 0; bits < 8; ++bits)
        for (int q = 0; q < m.size(); ++q) {
          const axis_set s(bits);
          const coordinates at = m.at(q);
          wrong += partition::group_member(m, s, at, partition::rank_in_group(m, s, at)) != at;
          int previous = -1;
          for (int p = 0; p < m.size(s); ++p) {
            const coordinates other = partition::group_member(m, s, at, p);
            wrong += partition::rank_in_group(m, s, other) != p;
            for (axis a : partition::all_axes) wrong += !s.contains(a) && other[a] != at[a];
            wrong += m.rank(other) <= previous;  // counted as ranks are
            previous = m.rank(other);
          }
        }
      CHECK_MESSAGE(wrong == 0, to_string(m));
    }
  CHECK(mesh_shape{2, 3, 4}.size(axis::row | axis::depth) == 8);
  CHECK(mesh_shape{2, 3, 4}.size(axis_set()) == 1);
  CHECK(to_string(mesh_shape{2, 3, 4}) == "2x3x4");
}

}  // namespace test_mesh_shape

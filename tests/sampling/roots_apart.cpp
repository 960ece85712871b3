// SPDX-License-Identifier: Apache-2.0
// Roots set apart have the neighbourhoods that each has alone, whoever else is sampled, and share no vertex.
#include "partita/sampling/roots_apart.hpp"

#include "partita/sampling/layer_sampler.hpp"
#include "partita/sampling/neighbour_sampler.hpp"
#include "support/samples.hpp"

namespace test_roots_apart {

using namespace test_support;
using sampling::graph;

/// The vertices that root r of a sample depends on, those of H_0.
std::set<local_index> reached(const sample& s, local_index r) {
  std::set<local_index> all{r};
  for (std::size_t l = s.blocks.size(); l-- > 0;) {
    const std::set<local_index> targets = all;
    for (const local_index i : targets)
      for (auto e = s.blocks[l].offsets[std::size_t(i)]; e < s.blocks[l].offsets[std::size_t(i) + 1]; ++e)
        all.insert(s.blocks[l].columns[std::size_t(e)]);
  }
  return all;
}

/// S_1 (... S_L applied to the rows of a matrix that is a function of the vertex), for each root.
std::vector<double> outputs(const sample& s) {
  std::vector<double> h;
  for (const global_index v : s.vertices) h.push_back(element(v, 3, 2));
  for (const auto& b : s.blocks) {
    std::vector<double> z(static_cast<std::size_t>(b.rows), 0);
    for (std::size_t i = 0; i < z.size(); ++i)
      for (auto e = std::size_t(b.offsets[i]); e < std::size_t(b.offsets[i + 1]); ++e)
        z[i] += b.values[e] * h[std::size_t(b.columns[e])];
    h = std::move(z);
  }
  return h;
}

void expect_apart(sampling::sampler<double>& draw, const std::vector<global_index>& roots) {
  sample together, apart, alone, alone_apart;
  draw(roots, 3, together);
  sampling::roots_apart(together, apart);
  CHECK(apart.sampled_edges == together.sampled_edges);
  for (std::size_t l = 0; l < apart.blocks.size(); ++l) {
    const auto& b = apart.blocks[l];
    CHECK(b.offsets.size() == static_cast<std::size_t>(b.rows) + 1);
    CHECK(b.columns.size() == static_cast<std::size_t>(b.offsets.back()));
    CHECK(b.rows == (l + 1 < apart.blocks.size() ? apart.blocks[l + 1].cols : std::ssize(roots)));
    for (std::size_t i = 0; i + 1 < b.offsets.size(); ++i)
      for (auto e = std::size_t(b.offsets[i]) + 1; e < std::size_t(b.offsets[i + 1]); ++e)
        CHECK(b.columns[e - 1] < b.columns[e]);
  }
  CHECK(std::ssize(apart.vertices) == apart.blocks[0].cols);
  CHECK(largest_difference(outputs(apart), outputs(together)) < 1e-12);
  std::set<local_index> seen;
  std::size_t vertices = 0, entries = 0;
  for (std::size_t r = 0; r < roots.size(); ++r) {
    CHECK(apart.vertices[r] == roots[r]);
    const auto mine = reached(apart, local_index(r));
    seen.insert(mine.begin(), mine.end());
    draw(std::span(roots).subspan(r, 1), 3, alone);
    vertices += alone.vertices.size();
    for (const auto& b : alone.blocks) entries += b.columns.size();
    CHECK(mine.size() == alone.vertices.size());
  }
  CHECK(seen.size() == vertices);  // none is shared
  CHECK(apart.vertices.size() == vertices);
  std::size_t found = 0;
  for (const auto& b : apart.blocks) found += b.columns.size();
  CHECK(found == entries);
}

TEST_CASE("roots set apart are those of samples of one root each") {
  const graph<double> g = test_graph(67);
  sampling::neighbour_sampler<double> neighbours(g, {.fanouts = {4, 3, 2}, .seed = 5, .keep_diagonal = true});
  sampling::layer_sampler<double> layers(g, {.budgets = {20, 12}, .seed = 5});
  for (const std::vector<global_index>& roots :
       {std::vector<global_index>{}, {8}, {31, 8, 3, 5, 0, 66}, {1, 2, 4, 6, 7, 9, 10, 11, 12, 13, 14}}) {
    expect_apart(neighbours, roots);
    expect_apart(layers, roots);
  }
}

}  // namespace test_roots_apart

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Graphs to sample from, and samples in global indices.
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "partita/comm/self.hpp"
#include "partita/memory/host.hpp"
#include "partita/sampling/block.hpp"
#include "partita/sampling/graph.hpp"
#include "support/matrices.hpp"

namespace test_support {

using partita::sampling::graph;
using sample = partita::sampling::sample<double>;

/// Directed, weighted: about one entry in seven; row 3 and column 4 (mod 11) are empty, 5 (mod 13) is
/// isolated, every fourth vertex has a loop, vertex 8 an edge from all others.
inline std::vector<triplet<double>> graph_entries(global_index n) {
  std::vector<triplet<double>> entries;
  for (global_index v = 0; v < n; ++v)
    for (global_index u = 0; u < n; ++u) {
      const bool none = v % 11 == 3 || u % 11 == 4 || v % 13 == 5 || u % 13 == 5;
      const bool edge = v == u ? v % 4 == 0 : v == 8 || partita::base::random_bits(17, v, u) % 7 == 0;
      if (!none && edge) entries.push_back({v, u, std::cos(static_cast<double>(v + 2 * u))});
    }
  return entries;
}
/// Weights of the same entries, between 1/2 and 9/2.
inline std::vector<triplet<double>> graph_weights(global_index n) {
  std::vector<triplet<double>> weights = graph_entries(n);
  for (auto& e : weights) e.value = 2.5 + 4 * element(e.row, e.col, 5);
  return weights;
}

/// The test graph of n vertices on this mesh.
inline graph<double> test_graph(const host_mesh& m, const partita::policy& p, global_index n,
                                bool weighted = false) {
  const auto distributed = [&](const std::vector<triplet<double>>& entries) {
    return distribute(m, p, {n, n}, share(entries, m));
  };
  const auto a = distributed(graph_entries(n));
  return weighted ? graph<double>(a, distributed(graph_weights(n))) : graph<double>(a);
}
/// The same on one rank.
inline graph<double> test_graph(global_index n, bool weighted = false) {
  return test_graph(host_mesh(partita::self::world(), {1, 1, 1}), partita::row_1d, n, weighted);
}

/// Rows of A, or of a sample's block, by global indices.
using global_rows = std::map<global_index, std::map<global_index, double>>;

inline global_rows by_rows(const std::vector<triplet<double>>& entries) {
  global_rows rows;
  for (const auto& e : entries) rows[e.row][e.col] = e.value;
  return rows;
}
inline global_rows by_rows(const sample& s, std::size_t layer) {
  const auto& b = s.blocks[layer];
  global_rows rows;
  for (std::size_t i = 0; i < static_cast<std::size_t>(b.rows); ++i) {
    auto& row = rows[s.vertices[i]];
    for (auto e = static_cast<std::size_t>(b.offsets[i]); e < static_cast<std::size_t>(b.offsets[i + 1]); ++e)
      row[s.vertices[static_cast<std::size_t>(b.columns[e])]] = b.values[e];
  }
  return rows;
}

/// Checks what every sample of hops promises: prefixes, ascending columns, distinct vertices, roots first.
inline void check_sample(const sample& s, const std::vector<global_index>& roots) {
  REQUIRE(!s.blocks.empty());
  CHECK(s.blocks.back().rows == static_cast<partita::local_index>(roots.size()));
  CHECK(std::equal(roots.begin(), roots.end(), s.vertices.begin()));
  CHECK(s.blocks.front().cols == static_cast<partita::local_index>(s.vertices.size()));
  CHECK(std::set<global_index>(s.vertices.begin(), s.vertices.end()).size() == s.vertices.size());
  std::size_t faults = 0;
  for (std::size_t l = 0; l < s.blocks.size(); ++l) {
    const auto& b = s.blocks[l];
    CHECK(b.rows <= b.cols);
    if (l > 0) CHECK(s.blocks[l - 1].rows == b.cols);
    REQUIRE(b.offsets.size() == static_cast<std::size_t>(b.rows) + 1);
    CHECK(b.offsets.front() == 0);
    CHECK(static_cast<std::size_t>(b.offsets.back()) == b.columns.size());
    CHECK(b.values.size() == b.columns.size());
    for (std::size_t i = 0; i < static_cast<std::size_t>(b.rows); ++i)
      for (partita::local_index e = b.offsets[i]; e < b.offsets[i + 1]; ++e) {
        const partita::local_index c = b.columns[static_cast<std::size_t>(e)];
        faults +=
            c < 0 || c >= b.cols || (e > b.offsets[i] && c <= b.columns[static_cast<std::size_t>(e) - 1]);
      }
  }
  CHECK(faults == 0);
}

/// Roots of rank r: every third vertex from r on, none on rank 2.
inline std::vector<global_index> roots_of(int r, global_index n) {
  std::vector<global_index> roots;
  for (global_index v = n - 1 - r; r != 2 && v >= 0; v -= 3 + r) roots.push_back(v);
  return roots;
}

/// What rank `me` receives while all ranks make these samples of hops from a cut graph: in each hop a count
/// from every other rank and the vertices asked about, and for each of its own targets that others have the
/// number of entries, their columns and values.
inline global_index hop_words(const graph<double>& cut, const std::vector<sample>& samples, std::size_t me) {
  global_index words = 0;
  for (std::size_t l = 0; l < samples[me].blocks.size() && samples.size() > 1; ++l) {
    words += static_cast<global_index>(samples.size()) - 1;
    for (std::size_t q = 0; q < samples.size(); ++q) {
      const auto& b = samples[q].blocks[l];
      for (std::size_t i = 0; i < static_cast<std::size_t>(b.rows); ++i) {
        const std::size_t owner = cut.owner(samples[q].vertices[i]);
        if (q != me && owner == me) words += 1;
        if (q == me && owner != me) words += 1 + 2 * (b.offsets[i + 1] - b.offsets[i]);
      }
    }
  }
  return words;
}

/// One sample of a sampler that is made for it.
template <class Sampler, class Options>
sample sampled_by(const graph<double>& g, const Options& o, const std::vector<global_index>& roots,
                  std::uint64_t epoch = 3) {
  Sampler sampler(g, o);
  sample s;
  sampler(roots, epoch, s);
  return s;
}

/// The vertices below n.
inline std::vector<global_index> vertices_below(global_index n) {
  std::vector<global_index> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), global_index{0});
  return all;
}

/// A sampler gives one sample with any number of threads, and again and again in the same memory.
template <class Sampler, class Options>
void check_threads(const graph<double>& g, Options o, const std::vector<global_index>& roots) {
  const sample expected = sampled_by<Sampler>(g, o, roots);
  for (const int threads : {2, 3}) {
    o.threads = threads;
    Sampler sampler(g, o);
    sample s;
    std::thread([&] { sampler(roots, 3, s); }).join();
    const auto memory = [&] {
      return std::vector<const void*>{s.blocks[0].columns.data(), s.blocks[0].offsets.data(),
                                      s.blocks[1].values.data(), s.vertices.data(), s.weights.data()};
    };
    const auto before = memory();
    for (int again = 0; again < 3; ++again) sampler(roots, 3, s);
    CHECK(memory() == before);
    CHECK((s == expected));
  }
}

/// Whether the sample of all roots is the union of those of each; draw(roots) samples `layers` layers.
bool is_union_of_roots(const sample& together, const std::vector<global_index>& roots, std::size_t layers,
                       const auto& draw) {
  std::vector<global_rows> joint(layers);
  for (const global_index root : roots) {
    const sample alone = draw(std::vector<global_index>{root});
    for (std::size_t l = 0; l < layers; ++l) joint[l].merge(by_rows(alone, l));
  }
  bool same = true;
  for (std::size_t l = 0; l < layers; ++l) same = same && by_rows(together, l) == joint[l];
  return same;
}

}  // namespace test_support

// SPDX-License-Identifier: Apache-2.0
// Vertices in chunks: every row of every chunk is one vertex, whatever the blocks of rows and the chunks are.
#include "partita/train/chunks.hpp"

#include <tuple>

#include "support/datasets.hpp"
#include "support/matrices.hpp"

namespace test_chunks {

using namespace test_support;

constexpr mesh_shape meshes[] = {{1, 1, 1}, {3, 1, 1}, {2, 2, 1}, {2, 1, 3}, {3, 2, 2}};

blocking even(global_index n, mesh_shape m) { return blocking::even(n, m, nesting::rows); }
/// The first of all blocks empty, each other one a vertex more than the one before, the last what is left.
blocking uneven(global_index n, mesh_shape m) {
  std::vector<global_index> sizes(static_cast<std::size_t>(m.size()));
  global_index left = n;
  for (std::size_t r = 0; r < sizes.size(); ++r) {
    sizes[r] = r + 1 == sizes.size() ? left : std::min(left, static_cast<global_index>(r));
    left -= sizes[r];
  }
  return blocking::given(sizes, m, nesting::rows);
}

/// Chunk 1 of more than two is empty.
std::vector<int> scattered(global_index n, int chunks) {
  std::vector<int> chunk_of;
  for (global_index v = 0; v < n; ++v) {
    const auto c = static_cast<int>(base::random_bits(2, v, 0) % static_cast<std::uint64_t>(chunks));
    chunk_of.push_back(c == 1 && chunks > 2 ? 0 : c);
  }
  return chunk_of;
}

global_index owner(const blocking& rows, global_index v) {
  return static_cast<global_index>(rows.owner(vertex_rows.rows, v));
}

/// Whether `found` has what the definition says: vertices sorted by rank, chunk and number.
void check(const io::dataset& d, const blocking& rows, const std::vector<int>& chunk_of, int chunks) {
  const nn::chunked_vertices found(d, rows, chunk_of, chunks);
  REQUIRE(found.count() == static_cast<std::size_t>(chunks));
  CHECK(found.rows() == rows);
  const auto chunk = [&](global_index v) { return chunk_of[static_cast<std::size_t>(v)]; };
  std::vector<global_index> sorted(static_cast<std::size_t>(d.vertices));
  std::iota(sorted.begin(), sorted.end(), global_index{0});
  std::ranges::sort(sorted, {}, [&](global_index v) { return std::tuple(owner(rows, v), chunk(v), v); });
  CHECK(found.vertices() == sorted);

  std::vector<std::vector<global_index>> rows_of_chunks(found.count());
  global_index row = 0;
  for (int r = 0; r < rows.shape().size(); ++r) {
    const interval block = rows.block(vertex_rows.rows, rows.shape().at(r));
    for (std::size_t c = 0; c < found.count(); ++c) {
      const interval part = found.part(r, c), local = found.local_part(r, c);
      CHECK(part.begin == row);
      CHECK(local.begin == row - block.begin);
      CHECK(local.size() == part.size());
      CHECK(found.rows(c).block(vertex_rows.rows, rows.shape().at(r)) ==
            interval{std::ssize(rows_of_chunks[c]), std::ssize(rows_of_chunks[c]) + part.size()});
      for (; row < part.end; ++row) {
        const global_index v = sorted[static_cast<std::size_t>(row)];
        CHECK(owner(rows, v) == r);
        CHECK(chunk(v) == static_cast<int>(c));
        CHECK(found.place(row) == std::pair(c, std::ssize(rows_of_chunks[c])));
        rows_of_chunks[c].push_back(v);
      }
    }
    CHECK(row == block.end);
  }
  CHECK(row == d.vertices);
  for (std::size_t c = 0; c < found.count(); ++c) {
    CHECK(found.vertices(c) == rows_of_chunks[c]);
    CHECK(found.rows(c).size() == std::ssize(rows_of_chunks[c]));
  }

  const io::dataset& of = found.data();
  for (std::size_t i = 0; i < sorted.size(); ++i)
    CHECK(of.labels[i] == d.labels[static_cast<std::size_t>(sorted[i])]);
  REQUIRE(of.edges.size() == d.edges.size());
  CHECK(of.edge_weights == d.edge_weights);
  for (std::size_t e = 0; e < d.edges.size(); ++e) {
    CHECK(sorted[static_cast<std::size_t>(of.edges[e].source)] == d.edges[e].source);
    CHECK(sorted[static_cast<std::size_t>(of.edges[e].target)] == d.edges[e].target);
  }
}

/// Edges into the first vertices.
io::dataset skewed(global_index n) {
  io::dataset d;
  d.name = "skewed";
  d.vertices = n;
  for (global_index v = 0; v < n; ++v)
    for (global_index u = 0; u < n / (v + 1); ++u) d.edges.push_back({u, v});
  return d;
}

TEST_CASE("each row of the whole is one row of a chunk, and each row of a chunk is one vertex") {
  for (const global_index n : {1, 5, 23}) {
    const io::dataset d = directed_graph(n);
    for (const mesh_shape m : meshes)
      for (const int chunks : {1, 2, 5, 29}) {
        INFO("n ", n, ", m ", to_string(m), ", chunks ", chunks);
        for (const blocking& rows : {even(n, m), uneven(n, m)}) {
          check(d, rows, scattered(n, chunks), chunks);
          nn::pipeline_options o;
          o.stages = 2;
          o.chunks = chunks;
          check(d, rows, nn::vertex_chunks(d, rows, o), chunks);
        }
      }
  }
}

TEST_CASE("even chunks are consecutive vertices of each block, of which none has two more than another") {
  for (const global_index n : {4, 37, 101})
    for (const mesh_shape m : meshes)
      for (const int chunks : {1, 3, 8}) {
        io::dataset d;
        d.vertices = n;
        nn::pipeline_options o;
        o.stages = 2;
        o.chunks = chunks == 8 ? 0 : chunks;  // four a stage
        const blocking rows = even(n, m);
        const std::vector<int> found = nn::vertex_chunks(d, rows, o);
        for (int r = 0; r < m.size(); ++r) {
          const interval block = rows.block(vertex_rows.rows, m.at(r));
          const auto begin = found.begin() + block.begin, end = found.begin() + block.end;
          CHECK(std::is_sorted(begin, end));
          std::vector<std::ptrdiff_t> sizes;
          for (int c = 0; c < chunks; ++c) sizes.push_back(std::count(begin, end, c));
          CHECK(std::accumulate(sizes.begin(), sizes.end(), std::ptrdiff_t{0}) == block.size());
          CHECK(*std::ranges::max_element(sizes) - *std::ranges::min_element(sizes) <= 1);
        }
      }
}

TEST_CASE("chunks by nonzeros differ from their share by no more than the heaviest vertex") {
  const io::dataset d = skewed(60);
  std::vector<global_index> weights(60, 1);
  for (const io::edge& e : d.edges) ++weights[static_cast<std::size_t>(e.target)];
  const auto most_apart = [&](nn::chunk_cut cut, const blocking& rows, interval block) {
    nn::pipeline_options o;
    o.stages = 2;
    o.chunks = 4;
    o.cut = cut;
    const std::vector<int> chunk_of = nn::vertex_chunks(d, rows, o);
    std::vector<double> sums(4, 0);
    for (global_index v = block.begin; v < block.end; ++v)
      sums[static_cast<std::size_t>(chunk_of[static_cast<std::size_t>(v)])] +=
          static_cast<double>(weights[static_cast<std::size_t>(v)]);
    const double share = std::accumulate(sums.begin(), sums.end(), 0.0) / 4;
    double most = 0;
    for (const double s : sums) most = std::max(most, std::abs(s - share));
    return most;
  };
  for (const mesh_shape m : {mesh_shape{1, 1, 1}, mesh_shape{2, 1, 1}}) {
    const blocking rows = even(60, m);
    for (int r = 0; r < m.size(); ++r) {
      const interval block = rows.block(vertex_rows.rows, m.at(r));
      const double heaviest = static_cast<double>(weights[static_cast<std::size_t>(block.begin)]);
      CHECK(most_apart(nn::chunk_cut::nonzeros, rows, block) <= heaviest);
      if (r == 0) CHECK(most_apart(nn::chunk_cut::even, rows, block) > heaviest);
    }
  }
}

TEST_CASE(
    "chunks that are given are taken; a number too many or too few, and a chunk that is none, are not") {
  const io::dataset d = directed_graph(7);
  const blocking rows = even(7, {2, 1, 1});
  nn::pipeline_options o;
  o.stages = 1;
  o.chunks = 3;
  o.chunk_of = {2, 2, 0, 2, 0, 0, 2};
  CHECK(nn::vertex_chunks(d, rows, o) == o.chunk_of);
  for (const std::size_t size : {6, 8}) {
    o.chunk_of.resize(size);
    expect_error<shape_error>("directed graph: " + std::to_string(size) + " chunk numbers for 7 vertices",
                              [&] { nn::vertex_chunks(d, rows, o); });
    expect_error<shape_error>(std::to_string(size) + " numbers of 6 parts for 7 vertices",
                              [&] { nn::chunked_vertices(d, rows, o.chunk_of, 3); });
  }
  o.chunk_of.resize(7);
  for (const int none : {3, -1}) {
    o.chunk_of[4] = none;
    expect_error<shape_error>("directed graph: vertex 4 is in chunk " + std::to_string(none) + " of 3",
                              [&] { nn::chunked_vertices(d, rows, o.chunk_of, 3); });
  }
  expect_error<shape_error>("7 numbers of 0 parts", [&] { nn::chunked_vertices(d, rows, o.chunk_of, 0); });
}

}  // namespace test_chunks

// SPDX-License-Identifier: Apache-2.0
/// From files to a product and back to a file: a SNAP edge list in text form, and features in .npy format, of
/// which each rank reads only its own rows.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include <partita/io/graph_text.hpp>
#include <partita/partita.hpp>

using namespace partita;

constexpr global_index n = 500, f = 12;

double feature(global_index v, global_index j) { return std::cos(static_cast<double>(v + 3 * j)); }

/// Sample input: edges.txt, whose ids have gaps, and features.npy (n x f).
void write_input(const std::filesystem::path& folder) {
  std::ofstream edges(folder / "edges.txt");
  edges << "# source target\n";
  for (global_index u = 0; u < n; ++u)
    for (const global_index v : {u + 1, 5 * u + 2}) edges << 10 * u << '\t' << 10 * (v % n) << '\n';
  std::vector<double> values;
  for (global_index v = 0; v < n; ++v)
    for (global_index j = 0; j < f; ++j) values.push_back(feature(v, j));
  io::write_npy(folder / "features.npy", {n, f}, values);
}

/// The sum of the features of each vertex's in-neighbours: sums.npy (n x f).
void aggregate(const communicator& world, const std::filesystem::path& folder) {
  const mesh<host> m(world, default_mesh(grid_2d, world.size()));
  io::edge_list list;  // read by rank 0; any rank may give any entry
  if (world.rank() == 0) list = io::read_edge_list(folder / "edges.txt");
  const global_index vertices = world.broadcast(list.vertices(), 0);
  std::vector<triplet<double>> mine;
  for (const io::edge& e : list.edges) mine.push_back({e.target, e.source, 1.0});
  const auto a = distribute(m, grid_2d, {vertices, vertices}, mine);  // (n/pr, n/pc)

  dense<double, vertex_rows, host> x(m, matrix_shape{vertices, f});  // (n/P, f)
  const auto rows = io::read_npy_rows<double>(folder / "features.npy", x.row_range());
  std::ranges::copy(rows.values, x.values().begin());

  const std::vector<double> y = collect(spmm(a, x));  // (n, f); spmm redistributes x to the grid and y back
  if (world.rank() == 0) io::write_npy(folder / "sums.npy", {vertices, f}, y);
}

int main() {
  const auto folder =
      std::filesystem::temp_directory_path() / ("partita_09." + std::to_string(std::random_device{}()));
  std::filesystem::create_directories(folder);
  write_input(folder);
  threads::run(6, [&](const communicator& world) { aggregate(world, folder); });

  const io::npy_array<double> sums = io::read_npy<double>(folder / "sums.npy");
  std::vector<double> expected(n * f, 0.0);
  for (global_index u = 0; u < n; ++u)
    for (const global_index v : {u + 1, 5 * u + 2})
      for (global_index j = 0; j < f; ++j) expected[static_cast<std::size_t>(v % n * f + j)] += feature(u, j);
  double error = sums.values.size() == expected.size() ? 0 : 1;
  for (std::size_t i = 0; error < 1 && i < expected.size(); ++i)
    error = std::max(error, std::abs(sums.values[i] - expected[i]));
  std::filesystem::remove_all(folder);
  std::printf("sums.npy is %d x %d, its largest error %.1e\n", int(sums.rows()), int(sums.cols()), error);
  return error < 1e-12 ? 0 : 1;
}

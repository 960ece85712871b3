// SPDX-License-Identifier: Apache-2.0
/// Label propagation on an undirected graph: Y = D^-1 A Y, then the rows of the seeds are put back, until
/// nothing changes; D are the row sums of A. The limit is harmonic: each vertex that is no seed has the mean
/// of its neighbours. Source: Zhu and Ghahramani, CMU-CALD-02-107 (2002).

#include <algorithm>

#include "partita/compiled/host.hpp"
#include "partita/io/npy.hpp"
#include "partita/partita.hpp"
#include "solver.hpp"

using namespace partita;

namespace {

constexpr std::int64_t unknown = -1;

/// The class of each vertex, or `unknown`: of the file, or the vertices floor(c n / k) as seeds of class c.
std::vector<std::int64_t> labels_of(const problem& p) {
  const global_index n = p.file.shape.rows, k = p.asked.k;
  const std::string& path = p.asked.labels;
  if (path.empty()) {
    if (k > n)
      throw input_error("--k " + std::to_string(k) + " is more than the " + std::to_string(n) + " vertices");
    std::vector<std::int64_t> labels(static_cast<std::size_t>(n), unknown);
    for (global_index c = 0; c < k; ++c) labels[static_cast<std::size_t>(c * n / k)] = c;
    return labels;
  }
  const io::npy_array<std::int64_t> a = io::read_npy<std::int64_t>(path);
  if (a.shape != std::vector{n})
    throw input_error(path + ": expected a vector of " + std::to_string(n) +
                      " labels, one per vertex, found " + std::to_string(a.values.size()));
  if (std::ranges::min(a.values) < unknown || std::ranges::max(a.values) >= n)
    throw input_error(path + ": a label is neither -1 nor between 0 and " + std::to_string(n - 1));
  if (std::ranges::max(a.values) == unknown) throw input_error(path + ": every label is unknown");
  return a.values;
}

solution propagate(const problem& p) {
  const global_index n = p.file.shape.rows;
  std::vector<std::int64_t> labels;
  together(p.mesh.world(), [&] { labels = labels_of(p); });
  const global_index classes = std::ranges::max(labels) + 1;
  auto a = distribute(p.mesh, p.policy, p.file.shape, p.share(), symmetry::one_way);  // (n/pr, n/pc)
  const auto ones = generate<double>(p.mesh, p.policy.dense, {n, 1}, [](auto, auto) { return 1.0; });
  const std::vector<double> degree = collect(spmm(a, ones));  // (n, 1)
  require_degrees(p.file, degree);
  assign_values(a, [&](global_index i, global_index, double weight) {
    return weight / degree[static_cast<std::size_t>(i)];
  });
  const auto clamped = [&](global_index v, global_index c, double now) {
    const std::int64_t label = labels[static_cast<std::size_t>(v)];
    return label == unknown ? now : label == c ? 1.0 : 0.0;
  };
  auto y = generate<double>(p.mesh, p.policy.dense, {n, classes},
                            [&](auto v, auto c) { return clamped(v, c, 0); });  // (n/pr, C/pc)
  auto next = spmm(a, y);                                                       // (n/pr, C/pc)
  spmm_plan multiply(a, y);
  double change = 1;
  global_index iterations = 0;
  for (; goes_on(p.asked, change, iterations); ++iterations) {
    multiply(y, next);
    transform_indexed(next, next, clamped);
    axpy(-1, next, y);
    change = norm(y);
    std::swap(y, next);
  }
  std::vector<double> all = collect(y);  // (n, C)
  std::vector<global_index> sizes(static_cast<std::size_t>(classes), 0);
  global_index unreached = 0;
  for (auto row = all.begin(); row != all.end(); row += classes) {
    const auto best = std::max_element(row, row + classes);
    if (*best > 0)
      ++sizes[static_cast<std::size_t>(best - row)];
    else
      ++unreached;
  }
  return {{{"n", n},
           {"classes", classes},
           {"seeds", n - std::ranges::count(labels, unknown)},
           {"iterations", iterations},
           {"residual", change},
           {"sizes", sizes},
           {"unreached", unreached}},
          {n, classes},
          std::move(all)};
}

}  // namespace

int main(int argc, char** argv) {
  const description d{
      .name = "label_propagation",
      .what =
          "Label propagation from seeds on an undirected graph. An edge list is taken as undirected,\n"
          "without loops, repeated edges once; another matrix must be symmetric: its absolute values\n"
          "off the diagonal are the weights.",
      .k = "classes, without --labels: the seed of class c is vertex\n"
           "floor(c n / K), from 0, in ascending order of the file's ids",
      .tolerance = "bound of the Frobenius norm of a step's change",
      .labels = "classes of the seeds (n, int64), -1 elsewhere,\nin ascending order of the file's ids",
      .out = "the scores (n x classes); each row's largest is its vertex's class",
      .defaults = {.k = 2, .tolerance = 1e-12, .iterations = 1000000}};
  return run_solver(argc, argv, d, read_graph, propagate);
}

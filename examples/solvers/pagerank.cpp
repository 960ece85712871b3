// SPDX-License-Identifier: Apache-2.0
/// PageRank of a directed graph, by power iteration:
///   x = d A^T D^-1 x + (1 - d + d s) / n,  A(u, v) = the weight of u -> v, D its row sums, d = 0.85,
/// s = what vertices without out-edges have. Source: Page, Brin, Motwani, Winograd (1999).

#include <algorithm>
#include <cmath>
#include <numeric>

#include "partita/compiled/host.hpp"
#include "partita/partita.hpp"
#include "solver.hpp"

using namespace partita;

namespace {

constexpr double damping = 0.85;

double quotient(double a, double b) { return b > 0 ? a / b : 0; }

matrix_file read_links(const std::string& path, unpack_limit limit) {
  matrix_file a = read_square(path, limit);
  for (const triplet<double>& e : a.entries)
    if (e.value < 0)
      a.fail("the weight of " + std::to_string(a.id(e.row)) + " -> " + std::to_string(a.id(e.col)) +
             " is negative");
  return a;
}

/// The first rows of x, largest value first.
std::vector<std::size_t> largest(const std::vector<double>& x, std::size_t most) {
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  most = std::min(most, x.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most), order.end(),
                    [&](std::size_t i, std::size_t j) { return x[i] > x[j] || (x[i] == x[j] && i < j); });
  order.resize(most);
  return order;
}

solution pagerank(const problem& p) {
  const global_index n = p.file.shape.rows;
  const auto a = distribute(p.mesh, p.policy, p.file.shape, p.share());  // (n/pr, n/pc)
  const auto column_of = [&](double value) {
    return generate<double>(p.mesh, p.policy.dense, {n, 1}, [=](auto, auto) { return value; });  // (n/pr, 1)
  };
  auto x = column_of(1.0 / static_cast<double>(n)), next = column_of(0), spread = column_of(0);  // (n/pr, 1)
  const auto degree = spmm(a, column_of(1));                                                     // (n/pr, 1)
  require_degrees(p.file, collect(degree));
  spmm_plan multiply(transposed(a), x);
  double change = 1;
  global_index iterations = 0;
  for (; goes_on(p.asked, change, iterations); ++iterations) {
    zip(x, degree, spread, quotient);
    fill(next, (1 - damping * dot(spread, degree)) / static_cast<double>(n));
    multiply(damping, spread, 1, next);
    zip(next, x, x, [](double now, double before) { return std::abs(now - before); });
    change = sum(x);
    std::swap(x, next);
  }
  std::vector<double> ranks = collect(x);  // (n, 1)
  std::vector<global_index> ids;
  std::vector<double> values;
  for (const std::size_t i : largest(ranks, 10)) {
    ids.push_back(p.file.id(static_cast<global_index>(i)));
    values.push_back(ranks[i]);
  }
  return {{{"n", n}, {"iterations", iterations}, {"residual", change}, {"top", ids}, {"top_values", values}},
          {n},
          std::move(ranks)};
}

}  // namespace

int main(int argc, char** argv) {
  const description d{
      .name = "pagerank",
      .what =
          "PageRank of a directed graph: damping 0.85, uniform personalisation; what vertices without\n"
          "out-edges have is spread over all. An entry (u, v) is the weight of u -> v; repeated\n"
          "edges add up.",
      .tolerance = "bound of the 1-norm of a step's change",
      .out = "the ranks (n), in ascending order of the file's ids",
      .defaults = {.tolerance = 1e-12, .iterations = 1000}};
  return run_solver(argc, argv, d, read_links, pagerank);
}

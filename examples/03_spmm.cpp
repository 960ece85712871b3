// SPDX-License-Identifier: Apache-2.0
/// Y = A X: the layouts determine the communication, the plan predicts its volume, the ledger measures it.

#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include <partita/partita.hpp>

using namespace partita;

constexpr mesh_shape shape{.row = 3, .col = 2};
constexpr global_index n = 1000, f = 10;

/// The edges of a directed graph out of `vertices`: to the next three vertices, and a distant one.
std::vector<triplet<double>> edges(interval vertices) {
  std::vector<triplet<double>> list;
  for (global_index i = vertices.begin; i < vertices.end; ++i)
    for (const global_index j : {i + 1, i + 2, i + 3, 17 * i}) list.push_back({i, j % n, 0.25});
  return list;
}

double feature(global_index i, global_index j) { return std::sin(static_cast<double>(i + 7 * j)); }

double largest_error(const std::vector<double>& y) {
  std::vector<double> expected(n * f, 0.0);  // (n, f)
  for (const auto& e : edges({0, n}))
    for (global_index j = 0; j < f; ++j)
      expected[static_cast<std::size_t>(e.row * f + j)] += e.value * feature(e.col, j);
  double error = 0;
  for (std::size_t i = 0; i < y.size(); ++i) error = std::max(error, std::abs(y[i] - expected[i]));
  return error;
}

int main() {
  struct account {
    traffic predicted, received;
    double error = 0;
  };
  std::array<account, shape.size()> accounts;  // one place for each rank
  threads::run(shape.size(), [&](const communicator& world) {
    const mesh<host> m(world, shape);
    const auto mine = edges(comm::share_of(n, m.rank(), m.size()));  // no matter which rank gives which edge
    const auto a = distribute<grid_2d.sparse>(m, {n, n}, mine);      // (n/pr, n/pc)
    const auto x = generate<grid_2d.dense, double>(m, {n, f}, feature);  // (n/pr, f/pc)
    dense<double, grid_2d.dense, host> y(m, matrix_shape{n, f});         // (n/pr, f/pc)

    spmm_plan multiply(a, x);
    m.ledger().clear();
    multiply(x, y);
    const traffic received = m.ledger().total();
    accounts[static_cast<std::size_t>(m.rank())] = {multiply.predicted(), received,
                                                    largest_error(collect(y))};
  });

  bool right = true;
  std::printf("rank  words predicted  words received  messages  largest error\n");
  for (int rank = 0; rank < shape.size(); ++rank) {
    const auto& [predicted, received, error] = accounts[static_cast<std::size_t>(rank)];
    std::printf("%4d %16d %15d %9d %14.1e\n", rank, int(predicted.words), int(received.words),
                int(received.messages), error);
    right = right && received == predicted && error < 1e-12;
  }
  std::printf("the product and its traffic are %s\n", right ? "as predicted" : "NOT as predicted");
  return right ? 0 : 1;
}

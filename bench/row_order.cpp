// SPDX-License-Identifier: Apache-2.0
// Repeated products on one rank, with the rows of A in their own order and in the one that is chosen: what
// the search costs, what a product gains, and after how many it has paid.
//
// usage: row_order [THREADS [ROUNDS [DATASET_DIRECTORY...]]]
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "partita/local/kernels.hpp"
#include "support/dataset_graph.hpp"
#include "support/graphs.hpp"
#include "support/instructions.hpp"
#include "support/median.hpp"

namespace {

using partita::global_index;
using partita::host;
using partita::local_index;
using partita::local::row_order;

struct csr {
  std::vector<local_index> offsets, columns;
  std::vector<float> values;

  partita::local::csr_view<float> view() const {
    const auto rows = static_cast<local_index>(offsets.size() - 1);
    return {rows, rows, offsets.data(), columns.data(), values.data(), offsets.back()};
  }
};

csr csr_of(const bench::graph& g, bool symmetric) {
  bench::entries list = g.share(0, 1);
  if (symmetric)
    for (std::size_t e = 0, end = list.size(); e < end; ++e)
      list.push_back({list[e].col, list[e].row, list[e].value});
  const auto place = [](const auto& e) { return std::pair(e.row, e.col); };
  std::sort(list.begin(), list.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
  list.erase(std::unique(list.begin(), list.end(),
                         [&](const auto& a, const auto& b) { return place(a) == place(b); }),
             list.end());
  csr a{std::vector<local_index>(static_cast<std::size_t>(g.vertices) + 1, 0), {}, {}};
  for (const auto& e : list) {
    ++a.offsets[static_cast<std::size_t>(e.row) + 1];
    a.columns.push_back(static_cast<local_index>(e.col));
    a.values.push_back(e.value);
  }
  for (std::size_t i = 1; i < a.offsets.size(); ++i) a.offsets[i] += a.offsets[i - 1];
  return a;
}

/// A grid of 2^scale points with these sides, each joined to itself and its neighbours, with the corners or
/// without; its points are named at random, or in order.
bench::graph grid(const std::string& name, std::array<int, 3> scales, bool corners, bool permuted) {
  const int scale = scales[0] + scales[1] + scales[2];
  const auto share = [=](int, int) {
    bench::entries list;
    std::array<global_index, 3> side{}, at{};
    for (std::size_t d = 0; d < 3; ++d) side[d] = global_index{1} << scales[d];
    const auto named = [&](std::array<global_index, 3> p) {
      const global_index v = (p[0] * side[1] + p[1]) * side[2] + p[2];
      return permuted ? bench::renamed(v, scale) : v;
    };
    for (at[0] = 0; at[0] < side[0]; ++at[0])
      for (at[1] = 0; at[1] < side[1]; ++at[1])
        for (at[2] = 0; at[2] < side[2]; ++at[2])
          for (int n = 0; n < 27; ++n) {
            const std::array<int, 3> step{n / 9 - 1, n / 3 % 3 - 1, n % 3 - 1};
            if (!corners && std::abs(step[0]) + std::abs(step[1]) + std::abs(step[2]) > 1) continue;
            std::array<global_index, 3> to = at;
            bool inside = true;
            for (std::size_t d = 0; d < 3; ++d) {
              to[d] += step[d];
              inside = inside && to[d] >= 0 && to[d] < side[d];
            }
            if (inside) list.push_back({named(at), named(to), bench::weight(named(at), named(to))});
          }
    return list;
  };
  return {name, global_index{1} << scale, share};
}

bench::graph uniform(int scale, int edges_per_vertex) {
  const global_index n = global_index{1} << scale;
  const auto share = [=](int, int) {
    bench::entries list;
    for (global_index e = 0; e < n * edges_per_vertex; ++e) {
      const auto draw = [&](int which) {
        return static_cast<global_index>(partita::base::random_uniform(7, e, which) * static_cast<double>(n));
      };
      list.push_back({e / edges_per_vertex, draw(1), 1.0f});
    }
    return list;
  };
  return {"uniform_" + std::to_string(scale), n, share};
}

template <class Work>
double milliseconds(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return 1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

bool measure(const std::string& name, const csr& a, local_index f, const partita::device_queue<host>& q,
             int rounds) {
  const std::size_t size = (a.offsets.size() - 1) * static_cast<std::size_t>(f);
  const auto rows = static_cast<local_index>(a.offsets.size() - 1);
  std::vector<float> x_values(size), natural_values(size), chosen_values(size);
  for (std::size_t i = 0; i < size; ++i) x_values[i] = static_cast<float>(i % 101) / 101;
  const partita::matrix_view<const float> x{x_values.data(), rows, f};
  const partita::matrix_view<float> y{natural_values.data(), rows, f}, z{chosen_values.data(), rows, f};
  const auto multiply = [&](auto& product, const auto& to) {
    return milliseconds([&] { product(q, a.view(), x, {}, to); });
  };
  partita::local::tuned_spmm<float, host> natural(row_order::natural);
  std::vector<double> search, of_natural, of_chosen, of_clustered;
  multiply(natural, y);
  partita::local::tuned_spmm<float, host> clustered(row_order::clustered);
  multiply(clustered, z);
  bool reorders = false, right = true;
  for (int round = 0; round < rounds; ++round) {
    partita::local::tuned_spmm<float, host> chosen;
    multiply(chosen, z);
    const double second = multiply(chosen, z);
    of_natural.push_back(multiply(natural, y));
    of_chosen.push_back(multiply(chosen, z));
    of_clustered.push_back(multiply(clustered, z));
    search.push_back(second - of_chosen.back());
    reorders = chosen.reorders();
    right = right && std::memcmp(natural_values.data(), chosen_values.data(), size * sizeof(float)) == 0;
  }
  const double before = bench::median(of_natural), after = bench::median(of_chosen),
               cost = bench::median(search), forced = bench::median(of_clustered);
  std::printf("%-22s f=%-4d natural %8.2f ms  %-9s %8.2f ms (%.2f x)  choice %7.2f ms (%.3f products)  ",
              name.c_str(), f, before, reorders ? "clustered" : "natural", after, before / after, cost,
              cost / before);
  if (reorders)
    std::printf("pays after %.1f products", cost / (before - after));
  else
    std::printf("clustered would be %.2f x", before / forced);
  std::printf("%s\n", right ? "" : "  WRONG");
  std::fflush(stdout);
  return right;
}

}  // namespace

int main(int argc, char** argv) try {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2, rounds = argc > 2 ? std::atoi(argv[2]) : 9;
  bench::print_instructions();
  const partita::device_queue<host> q(threads);
  bool right = true;
  const auto run = [&](const bench::graph& g, bool symmetric) {
    const csr a = csr_of(g, symmetric);
    for (const local_index f : {16, 32, 64, 128}) right = measure(g.name, a, f, q, rounds) && right;
  };
  run(grid("grid 1024^2, permuted", {0, 10, 10}, false, true), false);
  run(grid("grid 1024^2", {0, 10, 10}, false, false), false);
  run(grid("27 points, permuted", {6, 6, 6}, true, true), false);
  run(bench::rmat(17), false);
  run(bench::rmat(19), true);
  run(uniform(19, 8), true);
  for (int i = 3; i < argc; ++i) run(bench::dataset_graph(argv[i]), true);
  return right ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "row_order: %s\n", e.what());
  return 2;
}

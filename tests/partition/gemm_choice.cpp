// SPDX-License-Identifier: Apache-2.0
// Planning alone, on more ranks than there are here: the chosen grids against the minimum over all grids and
// against the splits of COSMA, and the table of docs/gemm.md.
#include "partita/partition/gemm_choice.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <string>

#include "partita/partition/gemm_grid.hpp"
#include "support/ranks.hpp"

namespace test_gemm_choice {

using namespace partita;
using namespace partita::partition;

namespace {

struct product_shape {
  const char* name;
  global_index m, n, k;
};
constexpr std::array shapes = {
    product_shape{"square", 4096, 4096, 4096},    product_shape{"flat", 16384, 16384, 512},
    product_shape{"tall", 512, 512, 262144},      product_shape{"tall-skinny X R", 1 << 20, 64, 64},
    product_shape{"one large", 32768, 256, 8192}, product_shape{"uneven", 5003, 1237, 2999}};
constexpr int ranks = 64;

double spread(const product_shape& s) {
  return (double(s.m) * double(s.k) + double(s.k) * double(s.n) + double(s.m) * double(s.n)) / ranks;
}

/// What a rank receives on a grid, in the formula.
double on_grid(const product_shape& s, double pm, double pn, double pk) {
  const auto m = double(s.m), n = double(s.n), k = double(s.k);
  return m * k / (pm * pk) * (1 - 1 / pn) + k * n / (pk * pn) * (1 - 1 / pm) +
         m * n / (pm * pn) * (1 - 1 / pk);
}
double least_of_all_grids(const product_shape& s) {
  double least = 1e300;
  for (int pm = 1; pm <= ranks; ++pm)
    for (int pn = 1; pn * pm <= ranks; ++pn)
      if (ranks % (pm * pn) == 0) least = std::min(least, on_grid(s, pm, pn, ranks / (pm * pn)));
  return least;
}

/// What a rank receives in the best sequence of splits as COSMA makes them (Kwasniewski et al., SC19):
/// dimensions are halved sm, sn and sk times, the parts following one after the other, and each part is split
/// among all ranks on one grid, where the blocks of a matrix that several ranks need are gathered (or
/// reduced) whole. `memory`: elements that a rank may hold, 1/P of the three matrices included.
double best_splits(const product_shape& s, double memory) {
  double least = 1e300;
  const auto m = double(s.m), n = double(s.n), k = double(s.k);
  for (int pm = 1; pm <= ranks; pm *= 2)
    for (int pn = 1; pn * pm <= ranks; pn *= 2)
      for (double sm = 1; sm <= 256; sm *= 2)
        for (double sn = 1; sn <= 256; sn *= 2)
          for (double sk = 1; sk <= 256; sk *= 2) {
            const int pk = ranks / (pm * pn);
            const double a = m * k / (pm * pk), b = k * n / (pk * pn), c = m * n / (pm * pn);
            const double held =
                (pn > 1 ? a / (sm * sk) : 0) + (pm > 1 ? b / (sk * sn) : 0) + (pk > 1 ? c / (sm * sn) : 0);
            if (spread(s) + held <= memory)
              least = std::min(least,
                               a * (1 - 1.0 / pn) * sn + b * (1 - 1.0 / pm) * sm + c * (1 - 1.0 / pk) * sk);
          }
  return least;
}

}  // namespace

TEST_CASE("grids for 64 ranks receive at most 1.02 times the minimum of all grids") {
  for (const product_shape& s : shapes) {
    const gemm_grid g = choose_grid(s.m, s.n, s.k, ranks);
    INFO(s.name, ": ", g.choice.words, " on ", to_string(g.problem.mesh));
    CHECK(double(g.choice.words) <= 1.02 * least_of_all_grids(s));
    const gemm_choice planned = choose(g.problem, std::numeric_limits<global_index>::max());
    CHECK(planned.words <= g.choice.words);  // also by the search over all schedules of that mesh
  }
}

TEST_CASE("grids for 64 ranks under limits on memory receive at most 1.1 times what COSMA's splits do") {
  for (const product_shape& s : shapes)
    for (const double factor : {1.25, 1.5, 3.0}) {
      const double limit = factor * spread(s), peer = best_splits(s, limit);
      const gemm_grid g = choose_grid(s.m, s.n, s.k, ranks, static_cast<global_index>(limit - spread(s)));
      INFO(s.name, " with ", factor, " times the matrices: ", g.choice.words, " on ",
           to_string(g.problem.mesh), ", ", g.choice.blocks.stages.count, " stages; COSMA ", peer);
      CHECK(double(g.choice.words) <= 1.1 * peer);
      CHECK(double(g.choice.buffered) <= limit - spread(s));
    }
}

}  // namespace test_gemm_choice

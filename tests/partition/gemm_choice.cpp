// SPDX-License-Identifier: Apache-2.0
// Grids planned for many ranks against the minimum over all, COSMA's splits and docs/gemm.md.
#include "partita/partition/gemm_choice.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "partita/partition/gemm_grid.hpp"

namespace test_gemm_choice {

using namespace partita;
using namespace partita::partition;

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

/// What no algorithm can do without where each rank owns 1/P of each matrix (Al Daas, Ballard, Grigori,
/// Kumar, Rouse, SPAA 2022).
double least_received(const product_shape& s) {
  std::array d{double(s.m), double(s.n), double(s.k)};
  std::ranges::sort(d);
  const auto [least, middle, most] = d;
  const double needed = ranks <= most / middle ? (most * middle + most * least) / ranks + middle * least
                        : ranks <= most * middle / (least * least)
                            ? 2 * std::sqrt(most * middle * least * least / ranks) + most * middle / ranks
                            : 3 * std::pow(most * middle * least / ranks, 2.0 / 3);
  return needed - spread(s);
}

/// The rows for a shape of the table "Words and memory on 64 ranks" in docs/gemm.md, in thousands of
/// elements.
std::string rows_of_table(const product_shape& s) {
  using enum axis;
  constexpr gemm_schedule by_axis{row, col, depth};
  constexpr global_index unlimited = std::numeric_limits<global_index>::max();
  constexpr mesh_shape cube{4, 4, 4};
  const auto thousands = [](double elements) { return std::to_string(std::llround(elements / 1000)); };
  const double each = double(s.m) * double(s.n) * double(s.k) / ranks;
  std::string rows;
  const auto add = [&](const char* algorithm, const gemm_problem& p, const gemm_choice& c) {
    const auto owned = double(elements_of(p)), held = owned + double(c.buffered);
    const auto [along, stages] = c.blocks.stages;
    const std::string in_stages =
        stages > 1 ? base::sentence_of({", ", stages, " stages along ", name_of(along)}) : "";
    rows += base::sentence_of({"| ", algorithm, " | ", p.mesh, in_stages, " | ", thousands(double(c.words)),
                               " | ", thousands(owned), " | ", thousands(double(c.buffered)), " | ",
                               thousands(2 * each / std::sqrt(held)), " |\n"});
  };
  const auto on = [&](mesh_shape grid) { return problem_on_grid(s.m, s.n, s.k, grid); };
  const auto unrestricted = [&](const gemm_problem& p) { return choose(p, unlimited, by_axis); };
  gemm_problem along_one = on({ranks, 1, 1});
  for (const mesh_shape other : {mesh_shape{1, ranks, 1}, mesh_shape{1, 1, ranks}})
    if (unrestricted(on(other)).words < unrestricted(along_one).words) along_one = on(other);
  add("1D", along_one, unrestricted(along_one));
  add("2D", on({8, 8, 1}), unrestricted(on({8, 8, 1})));
  const gemm_problem copies{cube, evenly({s.m, s.k}, cube, {row, col}), evenly({s.k, s.n}, cube, {row, col}),
                            evenly({s.m, s.n}, cube, {row | depth, col})};
  add("2.5D, c = 4", copies, unrestricted(copies));
  add("3D", on(cube), unrestricted(on(cube)));
  const gemm_grid best = choose_grid(s.m, s.n, s.k, ranks);
  add("`choose_grid`", best.problem, best.choice);
  const gemm_grid small = choose_grid(s.m, s.n, s.k, ranks, static_cast<global_index>(spread(s) / 2));
  add("the same, S = 1.5 (mk + kn + mn)/P", small.problem, small.choice);
  return base::sentence_of(
      {"**", s.name, "**: m = ", s.m, ", n = ", s.n, ", k = ", s.k, "; 3 (mnk/P)^(2/3) - (mk + kn + mn)/P = ",
       thousands(3 * std::pow(each, 2.0 / 3) - spread(s)), ", tight bound ", thousands(least_received(s)),
       "\n\n| algorithm | grid | received | owned | buffers | 2mnk/(P sqrt(S)) |\n"
       "|---|---|---|---|---|---|\n",
       rows});
}

TEST_CASE("the chosen grids of the table in docs/gemm.md attain the bound, and the table is the library's") {
  const auto page = std::filesystem::path(__FILE__).parent_path() / "../../docs/gemm.md";
  std::ostringstream text;
  text << std::ifstream(page).rdbuf();
  for (const product_shape& s : std::span(shapes).first(3)) {
    CHECK(double(choose_grid(s.m, s.n, s.k, ranks).choice.words) == doctest::Approx(least_received(s)));
    CHECK_MESSAGE(text.str().find(rows_of_table(s)) != std::string::npos, page.string(), " does not have\n",
                  rows_of_table(s));
  }
}

TEST_CASE("grids for 64 ranks receive at most 1.02 times the minimum of all grids") {
  for (const product_shape& s : shapes) {
    const gemm_grid g = choose_grid(s.m, s.n, s.k, ranks);
    INFO(s.name, ": ", g.choice.words, " on ", to_string(g.problem.mesh));
    CHECK(double(g.choice.words) <= 1.02 * least_of_all_grids(s));
    const gemm_choice planned = choose(g.problem, std::numeric_limits<global_index>::max());
    CHECK(planned.words <= g.choice.words);  // also by the search over all schedules of that mesh
  }
}

TEST_CASE("grids for 64 ranks under limits on memory receive at most 1.01 times what COSMA's splits do") {
  for (const product_shape& s : shapes)
    for (const double factor : {1.25, 1.5, 3.0}) {
      const double limit = factor * spread(s), peer = best_splits(s, limit);
      const gemm_grid g = choose_grid(s.m, s.n, s.k, ranks, static_cast<global_index>(limit - spread(s)));
      INFO(s.name, " with ", factor, " times the matrices: ", g.choice.words, " on ",
           to_string(g.problem.mesh), ", ", g.choice.blocks.stages.count, " stages; COSMA ", peer);
      CHECK(double(g.choice.words) <= 1.01 * peer);
      CHECK(double(g.choice.buffered) <= limit - spread(s));
    }
}

}  // namespace test_gemm_choice

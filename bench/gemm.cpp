// SPDX-License-Identifier: Apache-2.0
/// Distributed dense products, one BLAS thread per rank: partita on every mesh, from several layouts, with
/// the schedule it chooses and with every other one; ScaLAPACK's pdgemm on every process grid with several
/// block sizes; and one CBLAS call with as many threads as there are ranks. All in one job, by turns:
///
///   mpirun -n 2 gemm --shapes 2048,xty --schedules automatic --rounds 31 --json FILE

#include <cstdio>
#include <set>

#include "support/gemm_contenders.hpp"
#include "support/instructions.hpp"
#include "support/json.hpp"
#include "support/median.hpp"
#include "support/options.hpp"

namespace {

using namespace partita;

struct command {
  std::vector<std::string> shapes{"1024", "2048", "flat", "tall", "xty", "xr"};
  std::string schedules = "all";  ///< or automatic
  int rounds = 5;
  int shrink = 1;
  std::string json;
};

command command_of(int argc, char** argv) {
  command c;
  CLI::App app("Distributed dense products against pdgemm and serial CBLAS; under mpirun.", "gemm");
  bench::add_choice(app, "--shapes", c.shapes, c.shapes,
                    "1024^3, 2048^3, 4096 x 4096 x 256, 512 x 512 x 65536, X^T Y and X R of 10^6 x 64");
  bench::add_choice(app, "--schedules", c.schedules, {"all", "automatic"}, "of partita");
  bench::add_number(app, "--rounds", c.rounds, 1, 1000, "products measured of each kind");
  bench::add_number(app, "--shrink", c.shrink, 1, 64, "divides all sizes");
  app.add_option("--json", c.json, "writes the figures to FILE")->option_text("FILE");
  bench::parse(app, argc, argv);
  return c;
}

bench::gemm_problem problem_named(const std::string& name, global_index by) {
  const auto of = [&](global_index m, global_index n, global_index k, bool transposed_a = false) {
    return bench::gemm_problem(name, m / by, n / by, k / by, transposed_a);
  };
  if (name == "1024") return of(1024, 1024, 1024);
  if (name == "2048") return of(2048, 2048, 2048);
  if (name == "flat") return of(4096, 4096, 256);
  if (name == "tall") return of(512, 512, 65536);
  if (name == "xty") return of(64, 64, 1'000'000, true);
  return of(1'000'000, 64, 64);
}

/// The layouts that a program would have its matrices in: all cut by rows; cut into a grid by rows and
/// columns; each matrix spread over its two indices and the third axis, as for a grid of ranks.
std::vector<std::pair<std::string, partition::gemm_problem>> places_of(const bench::gemm_problem& p,
                                                                       mesh_shape m) {
  const bool small_b = p.name() == "xr", small_c = p.name() == "xty";
  const auto placed = [&](layout of_large) {
    return partition::gemm_problem{m,
                                   partition::evenly(p.shape_of_a(), m, of_large),
                                   partition::evenly(p.shape_of_b(), m, small_b ? replicated : of_large),
                                   partition::evenly(p.shape_of_c(), m, small_c ? replicated : of_large),
                                   p.transposed_a(),
                                   false};
  };
  partition::gemm_problem spread = partition::problem_on_grid(p.m(), p.n(), p.k(), m);
  if (p.transposed_a()) {
    spread.a = partition::evenly(p.shape_of_a(), m, {axis::depth, axis::row | axis::col});
    spread.transposed_a = true;
  }
  std::vector<std::pair<std::string, partition::gemm_problem>> all{{"rows", placed(vertex_rows)}};
  const auto add = [&](const std::string& name, const partition::gemm_problem& places) {
    for (const auto& [other, known] : all) {
      bool same = true;
      for (int rank = 0; rank < m.size(); ++rank) {
        const coordinates at = m.at(rank);
        same = same && known.a.block(at) == places.a.block(at) && known.b.block(at) == places.b.block(at) &&
               known.c.block(at) == places.c.block(at);
      }
      if (same) return;
    }
    all.emplace_back(name, places);
  };
  add("grid", placed({axis::row | axis::depth, axis::col}));
  add("spread", spread);
  return all;
}

/// Each axis of several ranks partitions i, j, k or nothing.
std::vector<partition::gemm_schedule> schedules_on(mesh_shape m) {
  std::vector<partition::gemm_schedule> all{{}};
  for (const axis a : partition::all_axes) {
    const auto shorter = all;
    for (const partition::gemm_schedule& s : shorter) {
      if (m[a] == 1) continue;
      all.push_back({s.i | a, s.j, s.k});
      all.push_back({s.i, s.j | a, s.k});
      all.push_back({s.i, s.j, s.k | a});
    }
  }
  return all;
}

using contenders = std::vector<std::unique_ptr<bench::contender>>;

void add_partita(contenders& all, const communicator& world, const bench::gemm_problem& p,
                 bool every_schedule) {
  const device_queue<host> queue(1, blas::faster_gemm());
  for (int row = 1; row <= world.size(); ++row)
    for (int col = 1; row * col <= world.size(); ++col) {
      const mesh_shape shape{row, col, world.size() / (row * col)};
      if (shape.size() != world.size()) continue;
      const mesh<host> m(world, shape, queue);
      for (const auto& [name, places] : places_of(p, shape)) {
        const auto add = [&](std::optional<partition::gemm_schedule> given) {
          all.push_back(std::make_unique<bench::planned_product>(p, m, places, name, given));
        };
        add({});
        if (!every_schedule) continue;
        for (const partition::gemm_schedule& s : schedules_on(shape)) add(s);
      }
    }
}

void add_scalapack([[maybe_unused]] contenders& all, [[maybe_unused]] int ranks,
                   [[maybe_unused]] const bench::gemm_problem& p) {
#ifdef BENCH_WITH_SCALAPACK
  for (int rows = 1; rows <= ranks; ++rows) {
    if (ranks % rows != 0) continue;
    const int cols = ranks / rows;
    std::set<std::array<int, 3>> tried;
    const auto part = [](global_index size, int processes) {
      return static_cast<int>((size + processes - 1) / processes);
    };
    const auto add = [&](int i, int j, int k) {
      if (tried.insert({i, j, k}).second)
        all.push_back(std::make_unique<bench::scalapack_product>(p, rows, cols,
                                                                 bench::scalapack_product::blocks{i, j, k}));
    };
    const int m = part(p.m(), rows), n = part(p.n(), cols),
              k = part(p.k(), p.transposed_a() ? rows : std::max(rows, cols));
    for (const int size : {32, 64, 128, 256}) {
      add(size, size, size);
      if (p.transposed_a()) add(std::min(size, m), std::min(size, n), k);
      if (p.m() > 64 * p.k()) add(m, std::min(size, n), std::min(size, k));
    }
    add(m, n, k);
  }
#endif
}

/// "i by row, k by depth", without the indices that no axis partitions.
std::string shortened(std::string schedule) {
  for (const char* part : {", j by none", ", k by none", "i by none, ", "i by none"})
    if (const auto at = schedule.find(part); at != std::string::npos)
      schedule.erase(at, std::string(part).size());
  return schedule.empty() ? "none" : schedule;
}

/// The median over the rounds of how much faster `x` is than `other`.
double advantage(const bench::contender& x, const bench::contender& other) {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < x.seconds.size(); ++round)
    ratios.push_back(other.seconds[round] / x.seconds[round]);
  return bench::median(ratios);
}

/// Measures by turns. Collective. Throws error if a result is wrong.
bench::json measure(const communicator& world, const bench::gemm_problem& p, const command& c) {
  bench::operand_memory memory{device_queue<host>()};
  contenders all;
  add_partita(all, world, p, c.schedules == "all");
  add_scalapack(all, world.size(), p);
  all.push_back(std::make_unique<bench::serial_product>(p, world));
  for (const auto& x : all) x->reserve(memory);
  for (const auto& x : all) {
    x->prepare(memory);
    x->fill();
    x->multiply();
    const double difference = world.all_reduce(x->difference(), reduction::max);
    if (difference != 0)
      base::throw_error<error>({x->program, " on ", x->mesh, ", ", x->layouts, ", ", x->schedule,
                                ": the result differs by ", std::to_string(difference)});
  }
  for (int round = 0; round < c.rounds; ++round) {
    for (std::size_t next = 0; next < all.size(); ++next) {
      const auto& x = all[round % 2 == 0 ? next : all.size() - 1 - next];
      x->seconds.push_back(x->measure(world));
    }
  }

  const bench::contender& serial = *all.back();
  const bench::contender* peer = nullptr;
  for (const auto& x : all)
    if (x->program == "pdgemm" &&
        (peer == nullptr || bench::median(x->seconds) < bench::median(peer->seconds)))
      peer = x.get();
  bench::json of_problem = bench::json::array();
  if (world.rank() == 0)
    std::printf(
        "\n%s: %lld x %lld x %lld, %d ranks, medians of %d\n%-11s %-9s %-18s %-19s %10s %9s %8s %8s %8s\n",
        p.name().c_str(), static_cast<long long>(p.m()), static_cast<long long>(p.n()),
        static_cast<long long>(p.k()), world.size(), c.rounds, "program", "mesh", "layouts/blocks",
        "schedule", "words", "seconds", "GFlop/s", "/pdgemm", "/serial");
  for (const auto& x : all) {
    const double time = bench::median(x->seconds);
    const double to_peer = peer == nullptr ? 0 : advantage(*x, *peer), to_serial = advantage(*x, serial);
    if (world.rank() == 0)
      std::printf("%-11s %-9s %-18s %-19s %10lld %9.4f %8.1f %8.2f %8.2f%s\n", x->program.c_str(),
                  x->mesh.c_str(), x->layouts.c_str(),
                  x->program == "partita" ? shortened(x->schedule).c_str() : "",
                  static_cast<long long>(x->words), time, 1e-9 * p.flops() / time, to_peer, to_serial,
                  x->automatic ? " automatic" : "");
    of_problem.push_back({{"shape", p.name()},
                          {"m", p.m()},
                          {"n", p.n()},
                          {"k", p.k()},
                          {"ranks", world.size()},
                          {"program", x->program},
                          {"mesh", x->mesh},
                          {"layouts", x->layouts},
                          {"schedule", x->schedule},
                          {"automatic", x->automatic},
                          {"stages", x->stages},
                          {"words", x->program == "partita" ? bench::json(x->words) : bench::json()},
                          {"buffer_bytes", x->buffer_bytes},
                          {"planning_seconds", x->planning},
                          {"seconds", time},
                          {"least_seconds", *std::ranges::min_element(x->seconds)},
                          {"gflops", 1e-9 * p.flops() / time},
                          {"ratio_to_pdgemm", peer == nullptr ? bench::json() : bench::json(to_peer)},
                          {"ratio_to_serial", to_serial}});
  }
  std::fflush(stdout);
  return of_problem;
}

}  // namespace

int main(int argc, char** argv) try {
  const command c = command_of(argc, argv);
  return mpi::run(argc, argv, [&](const communicator& world) {
    if (world.rank() == 0) bench::print_instructions();
#ifndef BENCH_WITH_SCALAPACK
    if (world.rank() == 0) std::puts("pdgemm: not compared, ScaLAPACK was not found");
#endif
    bench::json all = bench::json::array();
    for (const std::string& name : c.shapes)
      for (const auto& figures : measure(world, problem_named(name, c.shrink), c)) all.push_back(figures);
    if (world.rank() == 0) bench::write_json(c.json, all);
  });
} catch (const std::exception& e) {
  std::fprintf(stderr, "gemm: %s\n", e.what());
  return 2;
}

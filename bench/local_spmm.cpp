// SPDX-License-Identifier: Apache-2.0
// SpMM on one R-MAT graph: the library's kernel, the straightforward OpenMP loop over the rows, and the
// reference kernel. Prints ratios of medians at the end.
#include <benchmark/benchmark.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "partita/base/random.hpp"
#include "partita/local/kernels.hpp"
#include "reference/spmm.hpp"
#include "support/instructions.hpp"

namespace {

using partita::local_index;
using partita::matrix_view;
using partita::local::csr_view;

constexpr int scale = 17, edges_per_vertex = 16, repetitions = 11, iterations = 3;
constexpr local_index widths[] = {16, 32, 64, 128, 256};

int thread_count() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

struct graph {
  std::vector<local_index> offsets, columns;
  std::vector<float> values;

  partita::local::csr_view<float> view() const {
    const auto rows = static_cast<local_index>(offsets.size() - 1);
    return {rows, rows, offsets.data(), columns.data(), values.data()};
  }
};

/// R-MAT with the Graph500 parameters: quadrants .57, .19, .19, .05, vertices permuted at random, parallel
/// edges merged.
graph rmat() {
  const std::size_t vertices = std::size_t{1} << scale;
  std::vector<std::uint64_t> name(vertices), edges;
  std::iota(name.begin(), name.end(), 0);
  std::sort(name.begin(), name.end(),
            [](auto a, auto b) { return partita::base::mixed_bits(a) < partita::base::mixed_bits(b); });
  for (std::size_t e = 0; e < vertices * edges_per_vertex; ++e) {
    std::size_t row = 0, col = 0;
    for (int level = 0; level < scale; ++level) {
      const double u = partita::base::random_uniform(1, static_cast<std::int64_t>(e), level);
      row = 2 * row + (u >= 0.76);
      col = 2 * col + ((u >= 0.57 && u < 0.76) || u >= 0.95);
    }
    edges.push_back(name[row] << 32 | name[col]);
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  graph g{std::vector<local_index>(vertices + 1), {}, {}};
  for (const std::uint64_t edge : edges) {
    ++g.offsets[(edge >> 32) + 1];
    g.columns.push_back(static_cast<local_index>(edge & 0xffffffffu));
    g.values.push_back(
        static_cast<float>(partita::base::random_uniform(2, static_cast<std::int64_t>(edge), 0)));
  }
  std::partial_sum(g.offsets.begin(), g.offsets.end(), g.offsets.begin());
  return g;
}

void straightforward(const partita::local::csr_view<float>& a, local_index f, const float* __restrict x,
                     float* __restrict y) {
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic, 64)
#endif
  for (local_index i = 0; i < a.rows; ++i) {
    float* const to = y + static_cast<std::ptrdiff_t>(i) * f;
    std::fill_n(to, f, 0.0f);
    for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e) {
      const float value = a.values[e];
      const float* const from = x + static_cast<std::ptrdiff_t>(a.columns[e]) * f;
      for (local_index j = 0; j < f; ++j) to[j] += value * from[j];
    }
  }
}

/// Shared by the benchmarks: the graph, x, the results for one width, and all measured times.
struct measurement {
  graph g = rmat();
  std::vector<float> x, y, expected;
  local_index f = 0;
  std::map<std::pair<std::string, local_index>, std::vector<double>> seconds;

  void prepare(local_index width) {
    if (f == width) return;
    f = width;
    const std::size_t size = (g.offsets.size() - 1) * static_cast<std::size_t>(f);
    x.resize(size);
    y.resize(size);
    for (std::size_t i = 0; i < size; ++i) x[i] = static_cast<float>(i % 101) / 101;
    expected.resize(size);
    straightforward(g.view(), f, x.data(), expected.data());
  }
  bool right() const {
    for (std::size_t i = 0; i < y.size(); ++i)
      if (!(std::abs(y[i] - expected[i]) <= 1e-4f * (1 + std::abs(expected[i])))) return false;
    return true;
  }
  double median(const std::string& name, local_index width) {
    auto& times = seconds[{name, width}];
    if (times.empty()) return 0;
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                     times.end());
    return times[times.size() / 2];
  }
};

void add(measurement& b, const std::string& name, local_index f, int runs,
         const std::function<void()>& work) {
  const auto measure = [&b, name, f, work](benchmark::State& state) {
    b.prepare(f);
    work();
    if (!b.right()) return state.SkipWithError("wrong result");
    for (auto _ : state) {
      const auto begin = std::chrono::steady_clock::now();
      work();
      const double time = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      state.SetIterationTime(time);
      b.seconds[{name, f}].push_back(time);
    }
    const double entries = static_cast<double>(b.g.columns.size()),
                 rows = static_cast<double>(b.g.offsets.size());
    const double bytes = entries * (4.0 * f + 8) + rows * (4.0 * f + 4);
    state.counters["GB/s"] = benchmark::Counter(1e-9 * bytes, benchmark::Counter::kIsIterationInvariantRate);
  };
  benchmark::RegisterBenchmark((name + "/" + std::to_string(f)).c_str(), measure)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond)
      ->Iterations(runs)
      ->Repetitions(runs == 1 ? 1 : repetitions)
      ->ReportAggregatesOnly(runs != 1);
}

void report(measurement& b) {
  double product = 1;
  int measured = 0;
  std::printf("straightforward / partita, %d threads:", thread_count());
  for (const local_index f : widths) {
    const double ours = b.median("partita", f), theirs = b.median("straightforward", f);
    if (ours == 0 || theirs == 0) continue;
    const double ratio = theirs / ours;
    product *= ratio;
    ++measured;
    std::printf("  f=%d %.2f", f, ratio);
  }
  if (measured > 0) std::printf("  geometric mean %.2f", std::pow(product, 1.0 / measured));
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<char*> arguments(argv, argv + argc);
  std::string interleaved = "--benchmark_enable_random_interleaving=true";
  arguments.insert(arguments.begin() + 1, interleaved.data());
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  bench::print_instructions();
  measurement b;
  const auto view = [&b](std::vector<float>& of) {
    return matrix_view<float>{of.data(), static_cast<local_index>(b.g.offsets.size() - 1), b.f, b.f};
  };
  const partita::device_queue<partita::host> q(thread_count());
  for (const local_index f : widths) {
    add(b, "partita", f, iterations, [&] { spmm(q, b.g.view(), view(b.x), 0, view(b.y)); });
    add(b, "straightforward", f, iterations,
        [&] { straightforward(b.g.view(), b.f, b.x.data(), b.y.data()); });
    add(b, "reference", f, 1, [&] { partita::reference::spmm(b.g.view(), view(b.x), 0, view(b.y)); });
  }
  benchmark::RunSpecifiedBenchmarks();
  bench::print_prefetch_distances();
  report(b);
} catch (const std::exception& e) {
  std::fprintf(stderr, "local_spmm: %s\n", e.what());
  return 2;
}

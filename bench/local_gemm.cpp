// SPDX-License-Identifier: Apache-2.0
// Dense products of one rank: the library's kernels, CBLAS as partita calls it, and one call of CBLAS with
// threads of its own, by turns. Prints GFlop/s and ratios of medians as Markdown.
#include <CLI/CLI.hpp>
#include <array>
#include <cblas.h>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <vector>

#include "partita/local/blas/gemm.hpp"
#include "partita/local/kernels.hpp"
#include "support/instructions.hpp"
#include "support/median.hpp"

namespace {

using partita::host;
using partita::matrix_view;

struct problem {
  const char* name;
  bool transpose_a;
  int m, n, k;
};

/// C = op(A) B of ones, with room for the operands of every contender.
template <class T>
class product {
 public:
  explicit product(const problem& p)
      : p_(p), a_(size(p.m, p.k), 1), b_(size(p.k, p.n), 1), c_(size(p.m, p.n)) {}

  void on(const partita::device_queue<host>& q) {
    const int rows = p_.transpose_a ? p_.k : p_.m, cols = p_.transpose_a ? p_.m : p_.k;
    gemm(q, p_.transpose_a, false, T(1), matrix_view<const T>{a_.data(), rows, cols},
         matrix_view<const T>{b_.data(), p_.k, p_.n}, T(0), matrix_view<T>{c_.data(), p_.m, p_.n});
  }
  void by_library() {
    partita::blas::call<T>({p_.transpose_a, false, p_.m, p_.n, p_.k, T(1), a_.data(),
                            p_.transpose_a ? p_.m : p_.k, b_.data(), p_.n, T(0), c_.data(), p_.n});
  }

 private:
  static std::size_t size(int rows, int cols) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
  }

  problem p_;
  std::vector<T> a_, b_, c_;
};

double seconds(const std::function<void()>& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void set_library_threads([[maybe_unused]] int threads) {
#ifdef OPENBLAS_VERSION
  openblas_set_num_threads(threads);
#endif
}

template <class T>
void compare(const problem& p, int threads, int rounds) {
  product<T> x(p);
  const partita::device_queue<host> tiles(threads), blas(threads, partita::blas_gemm());
  const std::array<std::function<void()>, 3> contenders{[&] { x.on(tiles); }, [&] { x.on(blas); },
                                                        [&] { x.by_library(); }};
  std::array<std::vector<double>, 3> taken;
  for (int round = -1; round < rounds; ++round)
    for (std::size_t k = 0; k < contenders.size(); ++k) {
      set_library_threads(threads);
      const double s = seconds(contenders[k]);
      if (round >= 0) taken[k].push_back(s);
    }
  const double ours = bench::median(taken[0]);
  std::printf("| %s | %s | %d | %.0f | %.2f | %.2f |\n", p.name, sizeof(T) == 4 ? "f32" : "f64", threads,
              2e-9 * p.m * p.n * p.k / ours, bench::median(taken[1]) / ours, bench::median(taken[2]) / ours);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Dense products of one rank by partita's kernels and by the linked CBLAS");
  int threads = 2, rounds = 15, shrink = 1;
  app.add_option("--threads", threads, "the most")->check(CLI::Range(1, 1024));
  app.add_option("--rounds", rounds)->check(CLI::Range(1, 1000));
  app.add_option("--shrink", shrink, "divides the long dimensions")->check(CLI::Range(1, 1024));
  CLI11_PARSE(app, argc, argv);
  bench::print_instructions();
  const int n = (1 << 17) / shrink, square = 1000 / shrink;
  const problem problems[] = {{"X W, 64 x 64", false, n, 64, 64},       {"X W, 64 x 16", false, n, 16, 64},
                              {"X W, 128 x 256", false, n, 256, 128},   {"X W, 100 x 40", false, n, 40, 100},
                              {"X^T Y, 64 x 64", true, 64, 64, n},      {"X^T Y, 128 x 40", true, 128, 40, n},
                              {"1000^3", false, square, square, square}};
  std::printf("| product | type | threads | GFlop/s | CBLAS by partita's threads | CBLAS by its own |\n");
  std::printf("|---|---|---|---|---|---|\n");
  for (int t = 1; t <= threads; t *= 2)
    for (const problem& p : problems) {
      compare<float>(p, t, rounds);
      compare<double>(p, t, rounds);
    }
}

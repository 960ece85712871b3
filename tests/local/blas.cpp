// SPDX-License-Identifier: Apache-2.0
// The CBLAS backend against the reference, through the queue that carries it.
#include <doctest/doctest.h>

#include "partita/base/random.hpp"
#include "partita/local/blas/gemm.hpp"
#include "partita/local/kernels.hpp"
#include "reference/gemm.hpp"
#include "support/sanitized.hpp"

using partita::local_index, partita::matrix_view;

namespace {

/// Small integers, whose products and sums are exact.
template <class T>
std::vector<T> numbers(local_index rows, local_index stride, std::uint64_t seed) {
  std::vector<T> values(static_cast<std::size_t>(rows) * static_cast<std::size_t>(stride));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>(
        std::floor(9 * partita::base::random_uniform(seed, static_cast<std::int64_t>(i), 0)) - 4);
  return values;
}

/// One product of n x n matrices on a queue with so many threads.
void multiply(int threads, local_index n) {
  const partita::device_queue<partita::host> q(threads, partita::blas_gemm());
  const auto a = numbers<double>(n, n, 1);
  auto c = numbers<double>(n, n, 2);
  const matrix_view<const double> av{a.data(), n, n, n};
  gemm(q, false, false, 1.0, av, av, 0.0, matrix_view<double>{c.data(), n, n, n});
}

}  // namespace

TEST_CASE_TEMPLATE("blas gemm agrees with the reference", T, float, double) {
  for (const auto& shape : std::vector<std::array<local_index, 3>>{{1, 1, 1},
                                                                   {5, 7, 3},
                                                                   {33, 17, 65},
                                                                   {0, 3, 2},
                                                                   {3, 0, 2},
                                                                   {3, 2, 0},
                                                                   {1, 40, 9},
                                                                   {64, 1, 100},
                                                                   {1000, 16, 8},
                                                                   {16, 16, 130},
                                                                   {100, 90, 70},
                                                                   {90, 200, 70},
                                                                   {7, 5, 8200}})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        for (const T beta : {T{0}, T(0.5)}) {
          const local_index m = shape[0], n = shape[1], k = shape[2];
          const partita::device_queue<partita::host> q(1 + (m + k) % 3, partita::blas_gemm());
          REQUIRE((partita::on_host::gemm_of<T>(q) != nullptr));
          const local_index ar = ta ? k : m, ac = ta ? m : k, br = tb ? n : k, bc = tb ? k : n;
          auto a = numbers<T>(ar, ac + 2, 1), b = numbers<T>(br, bc + 1, 2), c = numbers<T>(m, n + 3, 3),
               d = c;
          if (beta == 0 && !c.empty()) c[0] = n > 0 ? static_cast<T>(std::nan("")) : c[0];
          const matrix_view<T> av{a.data(), ar, ac, ac + 2}, bv{b.data(), br, bc, bc + 1};
          gemm(q, ta, tb, T(1.5), av, bv, beta, matrix_view<T>{c.data(), m, n, n + 3});
          partita::reference::gemm(ta, tb, T(1.5), av, bv, beta, matrix_view<T>{d.data(), m, n, n + 3});
          double worst = 0;
          for (std::size_t i = 0; i < c.size(); ++i)
            worst = std::fmax(worst, c[i] == c[i] ? std::abs(c[i] - d[i]) : 9);
          INFO("m ", m, ", n ", n, ", k ", k);
          CHECK(worst == 0);
        }
}

/// A dot product as a library with such integers has it.
template <class Int>
double dot(Int n, const double* x, Int, const double* y, Int) {
  return n > 0 ? static_cast<double>(n) * *x * *y : 0;
}

TEST_CASE("a BLAS with integers of another width is refused") {
  using partita::blas::integer_bits, partita::blas::require_integers;
  CHECK(integer_bits(&cblas_ddot) == 32);
  if (test_support::sanitized) return;  // which sees a call by another type than the function's
  CHECK(integer_bits(&dot<std::int32_t>) == 32);
  CHECK(integer_bits(&dot<std::int64_t>) == 64);
  require_integers(&dot<std::int64_t>);
  const auto other = reinterpret_cast<double (*)(int, const double*, int, const double*, int)>(
      reinterpret_cast<void (*)()>(&dot<std::int64_t>));
  CHECK_THROWS_WITH_AS(require_integers(other),
                       "this program was compiled for a BLAS with integers of 32 bits, and the one that was "
                       "loaded has 64; load the other one, in Debian by update-alternatives",
                       partita::error);
}

#ifdef OPENBLAS_VERSION

TEST_CASE("OpenBLAS multiplies on the threads of queues, and the process keeps its own number") {
  openblas_set_num_threads(3);
  std::atomic<bool> seen = false;
  {
    const std::jthread rank([&] {
      while (!seen) multiply(2, 300);
    });
    while (!seen) seen = openblas_get_num_threads() == 1;
  }
  CHECK(openblas_get_num_threads() == 3);
}

TEST_CASE("ranks that multiply at once leave the process as it was") {
  openblas_set_num_threads(3);
  {
    std::vector<std::jthread> ranks;
    for (const int threads : {1, 2, 1, 2})
      ranks.emplace_back([threads] {
        for (int repeat = 0; repeat < 50; ++repeat) multiply(threads, 40);
      });
  }
  CHECK(openblas_get_num_threads() == 3);
  multiply(1, 40);
  CHECK(openblas_get_num_threads() == 3);
}

#endif

// SPDX-License-Identifier: Apache-2.0
// The products of cuda/vendor_link.cu on the emulator, and what is looked up once.
#include <array>

#include "emulator/control.hpp"
#include "local/vendor_link.cu"

namespace test_vendor_calls {

TEST_CASE("algorithms of cublas are chosen once for a shape") {
  const device_queue q(0, partita::cublas_gemm());
  const auto looked_up = [] { return emulator::calls("cublasLtMatmulAlgoGetHeuristic"); };
  const auto before = looked_up();
  check_gemm<float>(q, {5, 7, 3, false, false, false, true, 0}, 0.0F);
  CHECK(looked_up() == before + 1);
  check_gemm<float>(q, {5, 7, 3, false, false, false, true, 0}, 0.5F);
  CHECK(looked_up() == before + 1);
  check_gemm<float>(q, {5, 7, 3, false, false, false, true, 1}, 0.0F);
  check_gemm<double>(q, {5, 7, 3, false, false, false, true, 0}, 0.0);
  check_gemm<float>(q, {5, 7, 3, false, false, true, true, 0}, 0.0F);
  CHECK(looked_up() == before + 4);
}

/// Lookups for products of (rows, k) and (k, 2), or of (rows, k) transposed and (rows, 2), in turn.
std::uint64_t lookups(const device_queue& q, const std::vector<std::array<int, 2>>& products,
                      bool transposed = false) {
  const auto before = emulator::calls("cublasLtMatmulAlgoGetHeuristic");
  for (const auto& [rows, k] : products)
    check_gemm<float>(q, {transposed ? k : rows, 2, transposed ? rows : k, transposed, false, false, true, 0},
                      0.0F);
  return emulator::calls("cublasLtMatmulAlgoGetHeuristic") - before;
}

TEST_CASE("algorithms of cublas serve batches of about as many rows") {
  const device_queue q(0, partita::cublas_gemm());
  CHECK(lookups(q, {{81, 3}, {85, 3}, {95, 3}, {96, 3}}) == 1);  // up to 96
  CHECK(lookups(q, {{97, 3}, {112, 3}, {81, 3}, {96, 3}}) == 1);
  CHECK(lookups(q, {{81, 4}}) == 1);
}

TEST_CASE("an algorithm of cublas that does not run on another number of rows is looked up for that number") {
  const device_queue q(0, partita::cublas_gemm());
  CHECK(lookups(q, {{2064, 3}, {2560, 3}}) == 1);
  CHECK(lookups(q, {{2065, 3}, {2072, 3}, {2065, 3}}) == 1);
}

TEST_CASE("algorithms of cublas serve gradients of weights of about as many rows") {
  const device_queue q(0, partita::cublas_gemm());
  CHECK(lookups(q, {{81, 3}, {85, 3}, {95, 3}, {96, 3}}, true) == 1);
  CHECK(lookups(q, {{97, 3}, {112, 3}, {81, 3}, {96, 3}}, true) == 1);
  CHECK(lookups(q, {{81, 4}}, true) == 1);
  CHECK(lookups(q, {{2064, 3}, {2560, 3}}, true) == 1);
  CHECK(lookups(q, {{2065, 3}, {2072, 3}, {2065, 3}}, true) == 1);  // by eights alone
}

TEST_CASE("algorithms of cublas that were used last are kept") {
  const device_queue q(0, partita::cublas_gemm());
  constexpr auto most = static_cast<int>(partita::cublas::most_plans);
  for (int k = 1; k <= most; ++k) CHECK(lookups(q, {{2, k}}) == 1);
  CHECK(lookups(q, {{2, 1}}) == 0);
  CHECK(lookups(q, {{2, most + 1}, {2, 1}, {2, 3}}) == 1);
  CHECK(lookups(q, {{2, 2}}) == 1);
}

TEST_CASE("an epilogue that cublas does not know is refused, and looked up once") {
  const device_queue q(0, partita::cublas_gemm());
  const on_device<double> memory(q, random_numbers<double>(64, 1));
  const auto before = emulator::calls("cublasLtMatmulAlgoGetHeuristic");
  for (int run = 0; run < 2; ++run)
    CHECK_FALSE(partita::on_cuda::libraries_of(q).gemm<double>()(q, true, false, 4, 4, 2, 1, memory.data(), 4,
                                                                 memory.data() + 8, 4, 0, memory.data() + 16,
                                                                 4, {.column_sums = memory.data() + 32}));
  CHECK(emulator::calls("cublasLtMatmulAlgoGetHeuristic") == before + 1);
}

TEST_CASE("sums of columns are refused where their algorithm would leave the device idle") {
  const device_queue q(0, partita::cublas_gemm());
  for (const int k : {500, 2000}) {
    const on_device<float> a(q, random_numbers<float>(area(k, 4), 1)),
        b(q, random_numbers<float>(area(k, 4), 2)), c(q, random_numbers<float>(16, 3)),
        sums(q, random_numbers<float>(4, 4));
    CHECK(partita::on_cuda::libraries_of(q).gemm<float>()(q, true, false, 4, 4, k, 1, a.data(), 4, b.data(),
                                                          4, 0, c.data(), 4,
                                                          {.column_sums = sums.data()}) == (k == 500));
  }
}

TEST_CASE("a plan of cusparse is prepared once for a shape of operands, and serves other values") {
  const device_queue q(0, partita::cusparse_spmm());
  const auto preparations = [] { return emulator::calls("cusparseSpMM_preprocess"); };
  const auto before = preparations();
  const rows_case<double> a(30, 20, 4);
  const on_device<local_index> offsets(q, a.offsets), columns(q, a.columns);
  std::shared_ptr<void> plan;
  for (const std::uint64_t seed : {21, 22, 23})
    for (const int f : {8, 16}) {
      rows_case<double> same = a;
      same.values = random_numbers<double>(a.values.size(), seed);
      const auto x = random_numbers<double>(area(20, f), seed + 1);
      std::vector<double> expected(area(30, f));
      partita::reference::spmm<double>(same.view(), {x.data(), 20, f, f}, 0, {expected.data(), 30, f, f});
      const on_device<double> values(q, same.values), on_x(q, x), y(q, std::vector<double>(area(30, f)));
      REQUIRE(partita::on_cuda::libraries_of(q).spmm<double>()(q, plan, 30, 20, a.nonzeros(), offsets.data(),
                                                               columns.data(), values.data(), on_x.data(), f,
                                                               f, 0.0, y.data(), f));
      CHECK(distance(y.read(), expected) < 1e-14);
    }
  CHECK(preparations() == before + 2);
}

TEST_CASE("products allocate only when they meet a shape for the first time, and nothing waits for them") {
  const device_queue q(0, partita::cusparse_spmm(partita::cublas_gemm()));
  const rows_case<float> a(30, 20, 0);
  spmm_on_device<float> product(q, a);
  const on_device<float> x(q, random_numbers<float>(area(20, 8), 1)),
      y(q, random_numbers<float>(area(30, 8), 2)), weight(q, random_numbers<float>(area(8, 8), 3)),
      bias(q, random_numbers<float>(8, 4), 1);
  const auto step = [&] {
    REQUIRE(product.run(x, 8, 8, 0, y, 8));
    partita::on_cuda::libraries_of(q).gemm<float>()(q, false, false, 20, 8, 8, 1, x.data(), 8, weight.data(),
                                                    8, 1, y.data(), 8, {bias.data(), true});
  };
  step();
  const emulator::counters before = emulator::count();
  for (int repeat = 0; repeat < 3; ++repeat) step();
  const emulator::counters during = emulator::count() - before;
  CHECK(during.allocations == 0);
  CHECK(during.stream_synchronisations == 0);
  CHECK(during.device_synchronisations == 0);
}

}  // namespace test_vendor_calls

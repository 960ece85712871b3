// SPDX-License-Identifier: Apache-2.0
// The host kernels against the reference: odd sizes, strides, empty blocks, several threads, and the same
// bits for all.
#include <atomic>
#include <set>
#include <stdexcept>

#include "laws/kernel_laws.hpp"

using namespace test_support;

TEST_CASE("parts run once each, on threads that stay") {
  std::set<std::thread::id> threads;
  for (const int parts : {4, 1, 3, 0, 4}) {
    std::vector<std::thread::id> ran(static_cast<std::size_t>(parts));
    partita::on_host::run_parts(
        parts, [&](int part) { ran[static_cast<std::size_t>(part)] = std::this_thread::get_id(); });
    for (const std::thread::id thread : ran) CHECK(thread != std::thread::id());
    if (parts > 0) CHECK(ran[0] == std::this_thread::get_id());
    threads.insert(ran.begin(), ran.end());
  }
  CHECK(threads.size() == 4);
}

TEST_CASE("parts may have parts") {
  std::atomic<int> ran{0};
  for (int round = 0; round < 100; ++round)
    partita::on_host::run_parts(3, [&](int) { partita::on_host::run_parts(2, [&](int) { ++ran; }); });
  CHECK(ran == 600);
}

TEST_CASE("what a part throws, the caller gets, and can go on") {
  for (const int bad : {0, 2}) {
    std::atomic<int> ran{0};
    const auto run = [&](int failing) {
      partita::on_host::run_parts(3, [&](int part) {
        ++ran;
        if (part == failing) throw std::runtime_error("part " + std::to_string(part));
      });
    };
    CHECK_THROWS_WITH(run(bad), ("part " + std::to_string(bad)).c_str());
    CHECK_NOTHROW(run(-1));
    CHECK(ran == 6);
  }
}

TEST_CASE_TEMPLATE("cpu spmm: every width", T, float, double) { spmm_of_every_width<T, host>(); }
TEST_CASE_TEMPLATE("cpu spmm: many rows, and blocks without rows, columns or width", T, float, double) {
  spmm_of_many_rows_and_none<T, host>();
}
TEST_CASE_TEMPLATE("cpu spmm: any alignment", T, float, double) { spmm_at_any_alignment<T, host>(); }
TEST_CASE_TEMPLATE("cpu spmm: long rows", T, float, double) { spmm_of_long_rows<T, host>(); }
TEST_CASE_TEMPLATE("cpu spmm_transposed", T, float, double) { spmm_of_transposed_blocks<T, host>(); }
TEST_CASE_TEMPLATE("cpu spmm: everything fused", T, float, double) { spmm_with_everything_fused<T, host>(); }
TEST_CASE_TEMPLATE("cpu gemm: odd shapes and all transpositions", T, float, double) {
  gemm_of_odd_shapes<T, host>();
}
TEST_CASE_TEMPLATE("cpu gemm_bias_relu", T, float, double) { affine_of_odd_shapes<T, host>(); }
TEST_CASE_TEMPLATE("cpu gradients of gemm_bias_relu", T, float, double) {
  affine_gradients_of_odd_shapes<T, host>();
}
TEST_CASE_TEMPLATE("cpu moves", T, float, double) { moves<T, host>(); }
TEST_CASE_TEMPLATE("cpu elementwise", T, float, double) { elementwise<T, host>(); }
TEST_CASE_TEMPLATE("cpu reductions and softmax", T, float, double) { reductions_and_softmax<T, host>(); }
TEST_CASE_TEMPLATE("cpu maxima show NaN", T, float, double) { maxima_show_nan<T, host>(); }
TEST_CASE_TEMPLATE("cpu loss", T, float, double) { loss<T, host>(); }

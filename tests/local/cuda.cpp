// SPDX-License-Identifier: Apache-2.0
// The kernels of CUDA devices against the reference, compiled by nvcc, on a device or the emulator.
#include "laws/kernel_laws.hpp"
#include "support/stage_cuda.hpp"

namespace test_local_cuda {

using namespace test_support;

TEST_CASE_TEMPLATE("cuda spmm: every width", T, float, double) { spmm_of_every_width<T, cuda_device>(); }
TEST_CASE_TEMPLATE("cuda spmm: entries that are known", T, float, double) {
  spmm_of_known_entries<T, cuda_device>();
}
TEST_CASE_TEMPLATE("cuda spmm: any alignment", T, float, double) { spmm_at_any_alignment<T, cuda_device>(); }
TEST_CASE_TEMPLATE("cuda spmm: everything fused", T, float, double) {
  spmm_with_everything_fused<T, cuda_device>();
}
TEST_CASE_TEMPLATE("cuda spmm_transposed", T, float, double) {
  spmm_of_transposed_blocks<T, cuda_device>();
  const sparse_block<T> a(301, 90);
  const block<T> x(301, 18, 1, placing{}), y(90, 18, 2, placing{});
  agree_with<cuda_device>(
      y, law_tolerance<T>,
      [&](auto& at, auto& r) {
        partita::on_cuda::scatter_detail::add_runs<T>(at.queue, at(a), 100, at(x), T(-2), T(0.5), r.view());
      },
      [&](auto& r) { reference::spmm_transposed(a.view(), x.view(), T(-2), T(0.5), r.view()); });
}
TEST_CASE_TEMPLATE("cuda gemm: odd shapes and all transpositions", T, float, double) {
  gemm_of_odd_shapes<T, cuda_device>();
}
TEST_CASE_TEMPLATE("cuda gemm_bias_relu", T, float, double) { affine_of_odd_shapes<T, cuda_device>(); }
TEST_CASE_TEMPLATE("cuda gradients of gemm_bias_relu", T, float, double) {
  affine_gradients_of_odd_shapes<T, cuda_device>();
}
TEST_CASE_TEMPLATE("cuda moves", T, float, double) { moves<T, cuda_device>(); }
TEST_CASE_TEMPLATE("cuda elementwise", T, float, double) { elementwise<T, cuda_device>(); }
TEST_CASE_TEMPLATE("cuda reductions and softmax", T, float, double) {
  reductions_and_softmax<T, cuda_device>();
}
TEST_CASE_TEMPLATE("cuda maxima show NaN", T, float, double) { maxima_show_nan<T, cuda_device>(); }
TEST_CASE_TEMPLATE("cuda loss", T, float, double) { loss<T, cuda_device>(); }
TEST_CASE("cuda kernels refuse shapes that do not fit, and labels that are no column") {
  refuse_shapes(partita::device_queue<cuda_device>());
  refuse_labels(partita::device_queue<cuda_device>());
  nan_is_never_right(partita::device_queue<cuda_device>());
}
TEST_CASE_TEMPLATE("cuda spmm: long rows", T, float, double) { spmm_of_long_rows<T, cuda_device>(); }
TEST_CASE_TEMPLATE("cuda spmm: many rows, and blocks without rows, columns or width", T, float, double) {
  spmm_of_many_rows_and_none<T, cuda_device>();
}

TEST_CASE("cuda spmm: a cache holds columns of large matrices, the whole of small ones, or too little") {
  using partita::on_cuda::columns_of_pass;
  using partita::on_cuda::device_cache;
  const device_cache cache(std::size_t{50} << 20);
  const auto f32 = [&](local_index rows, local_index cols) {
    return columns_of_pass(cache, partita::matrix_view<const float>{nullptr, rows, cols, cols});
  };
  CHECK(f32(232965, 602) == 32);
  CHECK(f32(100000, 128) == 96);
  CHECK(f32(100000, 98) == 98);
  CHECK(f32(2449029, 128) == 128);
  CHECK(f32(0, 5) == 5);
  CHECK(columns_of_pass(cache, partita::matrix_view<const double>{nullptr, 100000, 128, 128}) == 48);

  const partita::device_queue<cuda_device> q;
  q.extend(std::make_shared<device_cache>(std::size_t{7000}));
  std::vector<std::pair<local_index, local_index>> passes;
  for (const local_index f : {100, 47})
    partita::on_cuda::for_columns(
        q, partita::matrix_view<const float>{nullptr, 40, f, f},
        [&](local_index first, local_index count) { passes.emplace_back(first, count); });
  CHECK(passes ==
        std::vector<std::pair<local_index, local_index>>{{0, 32}, {32, 32}, {64, 36}, {0, 32}, {32, 15}});
}
TEST_CASE_TEMPLATE("cuda spmm: columns in passes, everything fused", T, float, double) {
  spmm_with_everything_fused<T, cuda_device>(
      [](const auto& q) { q.extend(std::make_shared<partita::on_cuda::device_cache>(std::size_t{16000})); });
}
TEST_CASE(
    "cuda spmm: x stored as bfloat16 gives the bits of the floats that it stores, in passes of columns too") {
  spmm_of_bfloat16<cuda_device>([](const auto&) {});
  spmm_of_bfloat16<cuda_device>(
      [](const auto& q) { q.extend(std::make_shared<partita::on_cuda::device_cache>(std::size_t{16000})); });
}
TEST_CASE("cuda: floats are rounded to bfloat16 and back") { roundings_to_bfloat16<cuda_device>(); }
TEST_CASE("cuda folds share rows that have no entries") {
  using partita::on_cuda::share_count;
  CHECK(share_count({3200000, 0, nullptr}, 1) == 100000);
  CHECK(share_count({3200000, 0, nullptr}, 32) == (1 << 21) / 32 + 1);
}

}  // namespace test_local_cuda

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
  const sparse<T> a(301, 90);
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

}  // namespace test_local_cuda

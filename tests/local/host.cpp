// SPDX-License-Identifier: Apache-2.0
// The host kernels against the reference: odd sizes, strides, empty blocks, several threads, and the same
// bits for all.
#include "laws/kernel_laws.hpp"

using namespace test_support;

TEST_CASE_TEMPLATE("cpu spmm: every width", T, float, double) { spmm_of_every_width<T, host>(); }
TEST_CASE_TEMPLATE("cpu spmm: many rows, and blocks without rows, columns or width", T, float, double) {
  spmm_of_many_rows_and_none<T, host>();
}
TEST_CASE_TEMPLATE("cpu spmm: any alignment", T, float, double) { spmm_at_any_alignment<T, host>(); }
TEST_CASE_TEMPLATE("cpu spmm: long rows", T, float, double) { spmm_of_long_rows<T, host>(); }
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

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A prepared cuSPARSE SpMM: descriptors, workspace and preprocessing.

#include <cstddef>
#include <cstdint>
#include <cusparse.h>
#include <memory>
#include <string>

#include "partita/local/view.hpp"
#include "partita/memory/cuda.hpp"

namespace partita::cusparse {

/// Throws device_error naming the call if `status` is an error.
inline void check(cusparseStatus_t status, const char* call, const std::string& operands = "") {
  if (status == CUSPARSE_STATUS_SUCCESS) return;
  throw device_error(std::string(call) + " failed: " + cusparseGetErrorName(status) + ", " +
                     cusparseGetErrorString(status) + operands);
}

/// Per-queue cuSPARSE handle.
class context {
 public:
  explicit context(const device_queue<cuda_device>& q) {
    check(cusparseCreate(&handle_), "cusparseCreate");
    check(cusparseSetStream(handle_, q.stream()), "cusparseSetStream");
  }
  context(const context&) = delete;
  ~context() { cusparseDestroy(handle_); }

  cusparseHandle_t handle() const { return handle_; }

 private:
  cusparseHandle_t handle_ = nullptr;
};

struct destroy {
  void operator()(cusparseSpMatDescr_t matrix) const { cusparseDestroySpMat(matrix); }
  void operator()(cusparseDnMatDescr_t matrix) const { cusparseDestroyDnMat(matrix); }
};
using sparse_descriptor = std::unique_ptr<cusparseSpMatDescr, destroy>;
using dense_descriptor = std::unique_ptr<cusparseDnMatDescr, destroy>;

template <class T>
inline constexpr cudaDataType type_of = sizeof(T) == sizeof(float) ? CUDA_R_32F : CUDA_R_64F;

inline bool is_aligned(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % 16 == 0; }
template <class T>
bool is_aligned(matrix_view<T> x) {
  return is_aligned(x.data) && x.row_stride * std::ptrdiff_t{sizeof(T)} % 16 == 0 && x.row_stride >= x.cols;
}

/// y = a x + beta y with one algorithm for fixed operand shapes, preprocessed by cuSPARSE.
template <class T>
class product {
 public:
  product(const device_queue<cuda_device>& q, local::csr_view<T> a, int nonzeros, matrix_view<const T> x,
          matrix_view<T> y, cusparseSpMMAlg_t algorithm)
      : handle_(q.resource<context>().handle()), algorithm_(algorithm), values_(a.values) {
    operands_ = ", for " + std::string(sizeof(T) == sizeof(float) ? "f32" : "f64") + ", a " +
                std::to_string(a.rows) + " x " + std::to_string(a.cols) + " with " +
                std::to_string(nonzeros) + " nonzeros, x " + std::to_string(x.rows) + " x " +
                std::to_string(x.cols) + " with stride " + std::to_string(x.row_stride) + ", stride of y " +
                std::to_string(y.row_stride);
    cusparseSpMatDescr_t sparse = nullptr;
    check(cusparseCreateCsr(&sparse, a.rows, a.cols, nonzeros, mutable_(a.offsets), mutable_(a.columns),
                            mutable_(a.values), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                            CUSPARSE_INDEX_BASE_ZERO, type_of<T>),
          "cusparseCreateCsr", operands_);
    a_.reset(sparse);
    x_ = describe(x);
    y_ = describe(y);
  }

  /// Allocates the workspace and preprocesses; false if cuSPARSE does not support the operands.
  bool prepare(const device_queue<cuda_device>& q) {
    const T one = 1, zero = 0;
    std::size_t bytes = 0;
    if (!supported(cusparseSpMM_bufferSize(handle_, keep, keep, &one, a_.get(), x_.get(), &zero, y_.get(),
                                           type_of<T>, algorithm_, &bytes),
                   "cusparseSpMM_bufferSize"))
      return false;
    workspace_ = buffer<std::byte, cuda_device>(q, std::max<std::size_t>(bytes, 16));
    return supported(cusparseSpMM_preprocess(handle_, keep, keep, &one, a_.get(), x_.get(), &zero, y_.get(),
                                             type_of<T>, algorithm_, workspace_.data()),
                     "cusparseSpMM_preprocess");
  }

  void run(const T* values, const T* x, T beta, T* y) {
    const T one = 1;
    if (values != values_) {
      check(cusparseSpMatSetValues(a_.get(), mutable_(values)), "cusparseSpMatSetValues", operands_);
      values_ = values;
    }
    check(cusparseDnMatSetValues(x_.get(), mutable_(x)), "cusparseDnMatSetValues", operands_);
    check(cusparseDnMatSetValues(y_.get(), y), "cusparseDnMatSetValues", operands_);
    check(cusparseSpMM(handle_, keep, keep, &one, a_.get(), x_.get(), &beta, y_.get(), type_of<T>, algorithm_,
                       workspace_.data()),
          "cusparseSpMM", operands_);
  }

 private:
  static constexpr cusparseOperation_t keep = CUSPARSE_OPERATION_NON_TRANSPOSE;

  /// Casts away const for descriptors, whose pointers are mutable; the data is only read.
  template <class U>
  static void* mutable_(const U* data) {
    return const_cast<U*>(data);
  }

  template <class U>
  dense_descriptor describe(matrix_view<U> view) const {
    cusparseDnMatDescr_t dense = nullptr;
    check(cusparseCreateDnMat(&dense, view.rows, view.cols, view.row_stride, mutable_(view.data), type_of<T>,
                              CUSPARSE_ORDER_ROW),
          "cusparseCreateDnMat", operands_);
    return dense_descriptor(dense);
  }

  bool supported(cusparseStatus_t status, const char* call) const {
    if (status == CUSPARSE_STATUS_NOT_SUPPORTED) return false;
    check(status, call, operands_);
    return true;
  }

  cusparseHandle_t handle_;
  cusparseSpMMAlg_t algorithm_;
  const T* values_;
  std::string operands_;
  sparse_descriptor a_;
  dense_descriptor x_, y_;
  buffer<std::byte, cuda_device> workspace_;
};

}  // namespace partita::cusparse

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Vendor library products attached to a CUDA queue; the built-in kernels are used where there are none.

#include <cstddef>
#include <memory>

#include "partita/memory/cuda.hpp"

namespace partita::on_cuda {

/// GEMM epilogue: c = act(c + bias), with bias[j] added to column j and act a ReLU if `relu` is set.
/// column_sums[j] is set to the sum of column j of op(B): the bias gradient if op(B) is the gradient of the
/// biased output.
template <class T>
struct vendor_epilogue {
  const T* bias = nullptr;
  bool relu = false;
  T* column_sums = nullptr;
};

/// C = alpha op(A) op(B) + beta C on row-major blocks, followed by the epilogue. Returns false, without side
/// effects, if the epilogue is not supported.
template <class T>
using gemm_function = bool (*)(const device_queue<cuda_device>& q, bool transpose_a, bool transpose_b, int m,
                               int n, int k, T alpha, const T* a, int lda, const T* b, int ldb, T beta, T* c,
                               int ldc, vendor_epilogue<T> epilogue);

/// Y = A X + beta Y with A (rows, cols) in CSR, X (cols, f) and Y (rows, f) row-major. `plan` caches data for
/// this A and is initially null. Returns false if the operands are not supported.
template <class T>
using spmm_function = bool (*)(const device_queue<cuda_device>& q, std::shared_ptr<void>& plan, int rows,
                               int cols, int nonzeros, const int* offsets, const int* columns,
                               const T* values, const T* x, std::ptrdiff_t x_stride, int f, T beta, T* y,
                               std::ptrdiff_t y_stride);

/// Vendor library functions for `device_queue<cuda_device>(device, cuda_libraries{...})`; null entries select
/// the built-in kernels.
struct cuda_libraries {
  using preparation = void (*)(const device_queue<cuda_device>& q);

  gemm_function<float> gemm_f32 = nullptr;
  gemm_function<double> gemm_f64 = nullptr;
  spmm_function<float> spmm_f32 = nullptr;
  spmm_function<double> spmm_f64 = nullptr;
  preparation prepare_gemm = nullptr, prepare_spmm = nullptr;

  /// Creates the handles when the queue is constructed: this allocates, which may synchronise the device and
  /// would deadlock during an exchange that waits for another thread of this process.
  void prepare(const device_queue<cuda_device>& q) const {
    for (const auto prepare : {prepare_gemm, prepare_spmm})
      if (prepare != nullptr) prepare(q);
  }

  template <class T>
  gemm_function<T> gemm() const {
    if constexpr (sizeof(T) == sizeof(float))
      return gemm_f32;
    else
      return gemm_f64;
  }
  template <class T>
  spmm_function<T> spmm() const {
    if constexpr (sizeof(T) == sizeof(float))
      return spmm_f32;
    else
      return spmm_f64;
  }
};

/// The libraries of a queue; empty if it has none.
inline cuda_libraries libraries_of(const device_queue<cuda_device>& q) {
  const cuda_libraries* const given = q.find<cuda_libraries>();
  return given == nullptr ? cuda_libraries() : *given;
}

/// Times work on a queue with CUDA events.
class stopwatch {
 public:
  explicit stopwatch(const device_queue<cuda_device>& q)
      : queue_(q), begin_(*q.owner(), cudaEventDefault), end_(*q.owner(), cudaEventDefault) {}

  /// Time in milliseconds of the work enqueued by f(). Synchronises.
  template <class F>
  float milliseconds(const F& f) {
    float time = 0;
    begin_.record(*queue_.owner());
    f();
    end_.record(*queue_.owner());
    queue_.synchronize();
    on_cuda::check_cuda(cudaEventElapsedTime(&time, begin_.get(), end_.get()), "cudaEventElapsedTime");
    return time;
  }

 private:
  device_queue<cuda_device> queue_;
  cuda_event begin_, end_;
};

}  // namespace partita::on_cuda

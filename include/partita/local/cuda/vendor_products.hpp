// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Products of the vendor's libraries that a queue of a CUDA device is given: the own kernels serve where it
/// has none.

#include <cstddef>
#include <memory>

#include "partita/memory/cuda.hpp"

namespace partita::on_cuda {

/// What a dense product may do to its sums before it stores them: add bias[j] to column j, then cut at 0; or
/// beside them: column_sums[j] = the sum of column j of op(B), the gradient of a bias where op(B) is that of
/// what it was added to.
template <class T>
struct vendor_epilogue {
  const T* bias = nullptr;
  bool relu = false;
  T* column_sums = nullptr;
};

/// C = alpha op(A) op(B) + beta C on row-major blocks, then the epilogue. Returns false, and has done
/// nothing, when it does not know the epilogue.
template <class T>
using gemm_function = bool (*)(const device_queue<cuda_device>& q, bool transpose_a, bool transpose_b, int m,
                               int n, int k, T alpha, const T* a, int lda, const T* b, int ldb, T beta, T* c,
                               int ldc, vendor_epilogue<T> epilogue);

/// Y = A X + beta Y with A (rows, cols) in compressed rows, X (cols, f), Y (rows, f) row-major; `plan` keeps
/// what was looked up for this A and is null at first. Returns false when it cannot serve these operands.
template <class T>
using spmm_function = bool (*)(const device_queue<cuda_device>& q, std::shared_ptr<void>& plan, int rows,
                               int cols, int nonzeros, const int* offsets, const int* columns,
                               const T* values, const T* x, std::ptrdiff_t x_stride, int f, T beta, T* y,
                               std::ptrdiff_t y_stride);

/// The vendor's libraries, with which `device_queue<cuda_device>(device, cuda_libraries{...})` multiplies;
/// null entries mean the own kernels.
struct cuda_libraries {
  using preparation = void (*)(const device_queue<cuda_device>& q);

  gemm_function<float> gemm_f32 = nullptr;
  gemm_function<double> gemm_f64 = nullptr;
  spmm_function<float> spmm_f32 = nullptr;
  spmm_function<double> spmm_f64 = nullptr;
  preparation prepare_gemm = nullptr, prepare_spmm = nullptr;

  /// Makes the handles, when the queue is made: they allocate, for which a device may wait, and that must not
  /// fall into an row_exchange that waits for another thread of this process.
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

/// The libraries of a queue; empty where it has none.
inline cuda_libraries libraries_of(const device_queue<cuda_device>& q) {
  const cuda_libraries* const given = q.find<cuda_libraries>();
  return given == nullptr ? cuda_libraries() : *given;
}

/// Measures work of a queue on its device.
class stopwatch {
 public:
  explicit stopwatch(const device_queue<cuda_device>& q)
      : queue_(q), begin_(*q.owner(), cudaEventDefault), end_(*q.owner(), cudaEventDefault) {}

  /// Milliseconds of the work that f() enqueues. Waits for it.
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

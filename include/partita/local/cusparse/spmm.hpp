// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sparse-dense product through cuSPARSE. Link it and construct the queue as
/// `device_queue<cuda_device>(device, cusparse_spmm())`. The plan of a matrix owns its descriptors,
/// workspaces and preprocessing data.
///
/// Of cuSPARSE's CSR algorithms only CSR_ALG3 is bitwise reproducible, so spmm_choice::repeatable uses it.
/// spmm_choice::fastest times all of them once for each operand shape; its results may differ in the last
/// bits between runs.
///
/// cuSPARSE returns wrong results for addresses that are not 16-byte aligned, so it is not used for those.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "partita/local/cuda/vendor_products.hpp"
#include "partita/local/cusparse/product.hpp"

namespace partita {

namespace on_cuda {

/// Algorithm selection of cusparse_spmm().
enum class spmm_choice { repeatable, fastest };

}  // namespace on_cuda

namespace cusparse {

/// Minimum time in milliseconds of three runs of `work`, after a warm-up run.
template <class Work>
float time_of(const device_queue<cuda_device>& q, const Work& work) {
  on_cuda::stopwatch watch(q);
  work();
  float best = std::numeric_limits<float>::infinity();
  for (int run = 0; run < 3; ++run) best = std::min(best, watch.milliseconds(work));
  return best;
}

/// Cached data of one matrix: offsets rebased to 0 if needed, and a prepared product for each operand shape.
template <class T>
class plan {
 public:
  /// Synchronises with the device.
  plan(const device_queue<cuda_device>& q, int rows, int cols, int nonzeros, const int* offsets,
       const int* columns)
      : rows_(rows),
        cols_(cols),
        nonzeros_(nonzeros),
        given_offsets_(offsets),
        given_columns_(columns),
        first_(read(q, offsets)),
        offsets_(offsets) {
    if (!is_aligned(columns + first_) || (first_ == 0 && is_aligned(offsets))) return;
    std::vector<int> shifted(static_cast<std::size_t>(rows) + 1);
    copy(q, std::span<const int>(offsets, shifted.size()), std::span(shifted));
    for (int& offset : shifted) offset -= first_;
    shifted_ = buffer<int, cuda_device>(q, shifted.size());
    copy(q, std::span<const int>(shifted), shifted_.span());
    offsets_ = shifted_.data();
  }

  bool is_of(int rows, int cols, int nonzeros, const int* offsets, const int* columns) const {
    return rows == rows_ && cols == cols_ && nonzeros == nonzeros_ && offsets == given_offsets_ &&
           columns == given_columns_;
  }

  /// Returns false if cuSPARSE cannot handle these operands.
  bool run(const device_queue<cuda_device>& q, const T* values, matrix_view<const T> x, T beta,
           matrix_view<T> y, on_cuda::spmm_choice choice) {
    values += first_;
    if (!is_aligned(given_columns_ + first_) || !is_aligned(values) || !is_aligned(x) || !is_aligned(y))
      return false;
    entry* known = nullptr;
    for (entry& e : entries_)
      if (e.f == x.cols && e.x_stride == x.row_stride && e.y_stride == y.row_stride) known = &e;
    if (known == nullptr) {
      const local::csr_view<T> a{rows_, cols_, offsets_, given_columns_ + first_, values};
      entries_.push_back({x.cols, x.row_stride, y.row_stride, choose(q, a, x, beta, y, choice)});
      known = &entries_.back();
    }
    if (known->best == nullptr) return false;
    known->best->run(values, x.data, beta, y.data);
    return true;
  }

 private:
  struct entry {
    int f;
    std::ptrdiff_t x_stride, y_stride;
    std::unique_ptr<product<T>> best;  // null if cuSPARSE supports none
  };

  std::unique_ptr<product<T>> choose(const device_queue<cuda_device>& q, local::csr_view<T> a,
                                     matrix_view<const T> x, T beta, matrix_view<T> y,
                                     on_cuda::spmm_choice choice) const {
    const auto prepared = [&](cusparseSpMMAlg_t algorithm) {
      auto made = std::make_unique<product<T>>(q, a, nonzeros_, x, y, algorithm);
      return made->prepare(q) ? std::move(made) : nullptr;
    };
    if (choice == on_cuda::spmm_choice::repeatable) return prepared(CUSPARSE_SPMM_CSR_ALG3);

    // Trial runs must not modify y if the product accumulates into it.
    buffer<T, cuda_device> other(
        q, beta == 0 ? 0 : static_cast<std::size_t>(y.rows) * static_cast<std::size_t>(y.row_stride));
    T* const to = beta == 0 ? y.data : other.data();
    std::unique_ptr<product<T>> best;
    float least = std::numeric_limits<float>::infinity();
    for (const auto algorithm : {CUSPARSE_SPMM_CSR_ALG1, CUSPARSE_SPMM_CSR_ALG2, CUSPARSE_SPMM_CSR_ALG3}) {
      auto candidate = prepared(algorithm);
      if (candidate == nullptr) continue;
      const float time = time_of(q, [&] { candidate->run(a.values, x.data, beta, to); });
      if (time < least) {
        least = time;
        best = std::move(candidate);
      }
    }
    return best;
  }

  int rows_, cols_, nonzeros_;
  const int *given_offsets_, *given_columns_;
  int first_;
  const int* offsets_;
  buffer<int, cuda_device> shifted_;
  std::vector<entry> entries_;
};

/// An spmm_function. The structure of A is inspected once per plan; its values may change.
template <class T, on_cuda::spmm_choice Choice>
bool multiply(const device_queue<cuda_device>& q, std::shared_ptr<void>& kept, int rows, int cols,
              int nonzeros, const int* offsets, const int* columns, const T* values, const T* x,
              std::ptrdiff_t x_stride, int f, T beta, T* y, std::ptrdiff_t y_stride) {
  if (values == nullptr || rows == 0 || cols == 0 || nonzeros == 0 || f == 0) return false;
  const on_cuda::device_guard guard(q.device());
  auto of_this = std::static_pointer_cast<plan<T>>(kept);
  if (of_this == nullptr || !of_this->is_of(rows, cols, nonzeros, offsets, columns)) {
    of_this = std::make_shared<plan<T>>(q, rows, cols, nonzeros, offsets, columns);
    kept = of_this;
  }
  return of_this->run(q, values, {x, cols, f, x_stride}, beta, {y, rows, f, y_stride}, Choice);
}

}  // namespace cusparse

/// Adds the sparse products of cuSPARSE to `libraries`, for a device_queue<cuda_device>. They throw
/// device_error naming the call and the shapes; the built-in kernels are used for patterns without values and
/// for addresses or strides that are not multiples of 16 bytes. Source: the cuSPARSE library, "cusparseSpMM".
inline on_cuda::cuda_libraries cusparse_spmm(on_cuda::cuda_libraries libraries = {},
                                             on_cuda::spmm_choice choice = on_cuda::spmm_choice::repeatable) {
  const bool fastest = choice == on_cuda::spmm_choice::fastest;
  libraries.spmm_f32 = fastest ? cusparse::multiply<float, on_cuda::spmm_choice::fastest>
                               : cusparse::multiply<float, on_cuda::spmm_choice::repeatable>;
  libraries.spmm_f64 = fastest ? cusparse::multiply<double, on_cuda::spmm_choice::fastest>
                               : cusparse::multiply<double, on_cuda::spmm_choice::repeatable>;
  libraries.prepare_spmm = [](const device_queue<cuda_device>& q) { q.resource<cusparse::context>(); };
  return libraries;
}

}  // namespace partita

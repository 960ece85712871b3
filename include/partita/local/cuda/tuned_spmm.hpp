// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Repeated products with the same sparse blocks, with autotuning between the built-in kernel and the vendor
/// library.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "partita/local/cuda/elementwise.hpp"
#include "partita/local/cuda/entries.hpp"
#include "partita/local/cuda/spmm.hpp"
#include "partita/local/cuda/vendor_products.hpp"
#include "partita/local/tuned_spmm.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/cuda.hpp"

namespace partita::local {

/// The epilogue of a x for blocks that are multiplied repeatedly. If the queue has a library for it, the
/// first product for each a, shape, stride and kind of epilogue times the built-in kernel and the library on
/// scratch output and caches the faster one with its plan; that product synchronises. The built-in kernel
/// fuses the epilogue; after the library, what is more than adding to y takes a pass of its own, which is
/// timed with it. Later products always use the same kernel, but the choice, and with it the summation order,
/// may differ between runs of a program.
template <class T>
class tuned_spmm<T, cuda_device> {
 public:
  /// Rows keep their order.
  explicit tuned_spmm(local::row_order = local::row_order::automatic, bool repeats = true)
      : repeats_(repeats) {}

  /// See the kernel spmm_fused.
  void operator()(const device_queue<cuda_device>& q, local::csr_view<T> a, local::input_view<T> x,
                  const local::spmm_epilogue<T>& fusion, matrix_view<T> y) {
    const on_cuda::spmm_function<T> library = on_cuda::libraries_of(q).spmm<T>();
    const bool separable = fusion.alpha == 1 || fusion.beta == 0;
    if (!repeats_ || library == nullptr || !separable || a.values == nullptr || !fit(a, x, y))
      return spmm_fused(q, a, x, fusion, y);
    choice& chosen = choices_[key(a, x, y, finishes_alone(fusion))];
    if (!chosen.made) choose(q, library, a, x, fusion, y, chosen);
    if (!chosen.by_library || !multiply(q, library, a, x, fusion, y, chosen)) spmm_fused(q, a, x, fusion, y);
  }

  bool reorders() const { return false; }

 private:
  struct choice {
    bool made = false, by_library = false;
    local_index entries = 0;
    std::shared_ptr<void> plan;
  };
  using key_type = std::tuple<const void*, const void*, const void*, local_index, local_index, local_index,
                              std::ptrdiff_t, std::ptrdiff_t, bool>;

  static key_type key(const local::csr_view<T>& a, const matrix_view<const T>& x, const matrix_view<T>& y,
                      bool finishes) {
    return {a.offsets, a.columns, a.values, a.rows, a.cols, x.cols, x.row_stride, y.row_stride, finishes};
  }
  /// Whether the library leaves something of the epilogue to do.
  static bool finishes_alone(const local::spmm_epilogue<T>& fusion) {
    return fusion.alpha != 1 || fusion.has_activation();
  }

  /// Whether the operands are eligible for the library: matching nonempty shapes and 16-byte alignment, but
  /// for the offsets, which its plan may copy, and the first entry, which it looks up.
  static bool fit(const local::csr_view<T>& a, const matrix_view<const T>& x, const matrix_view<T>& y) {
    constexpr int width = on_cuda::widest<T>;
    return a.rows > 0 && a.cols > 0 && x.cols > 0 && x.rows == a.cols && y.rows == a.rows &&
           y.cols == x.cols && on_cuda::skew(a.columns, 4) == 0 && on_cuda::skew(a.values, width) == 0 &&
           on_cuda::skew(x.data, width) == 0 && x.row_stride % width == 0 &&
           on_cuda::skew(y.data, width) == 0 && y.row_stride % width == 0;
  }

  static bool multiply(const device_queue<cuda_device>& q, on_cuda::spmm_function<T> library,
                       const local::csr_view<T>& a, const matrix_view<const T>& x,
                       local::spmm_epilogue<T> fusion, const matrix_view<T>& y, choice& chosen) {
    if (!library(q, chosen.plan, a.rows, a.cols, chosen.entries, a.offsets, a.columns, a.values, x.data,
                 x.row_stride, x.cols, fusion.beta, y.data, y.row_stride))
      return false;
    fusion.beta = 0;
    if (finishes_alone(fusion)) finish_rows(q, y, fusion, y);
    return true;
  }

  static void choose(const device_queue<cuda_device>& q, on_cuda::spmm_function<T> library,
                     const local::csr_view<T>& a, const matrix_view<const T>& x,
                     local::spmm_epilogue<T> fusion, const matrix_view<T>& y, choice& chosen) {
    chosen.made = true;
    chosen.entries = entry_count(q, a);
    if (chosen.entries == 0) return;
    fusion.beta = 0;
    buffer<T, cuda_device> memory;
    matrix_view<T> trial = y;
    const auto by_library = [&] { return multiply(q, library, a, x, fusion, trial, chosen); };
    try {
      memory = buffer<T, cuda_device>(
          q, static_cast<std::size_t>(y.rows) * static_cast<std::size_t>(y.row_stride));
      trial.data = memory.data();
      if (!by_library()) return;
    } catch (const device_error&) {  // out of memory or unsupported: use the built-in kernel
      chosen.plan = nullptr;
      return;
    } catch (const budget_error&) {
      chosen.plan = nullptr;
      return;
    }
    const auto own = [&] { spmm_fused(q, a, x, fusion, trial); };
    own();
    on_cuda::stopwatch watch(q);
    float own_time = 0, library_time = 0;
    for (int round = 0; round < 3; ++round) {
      own_time += watch.milliseconds(own);
      library_time += watch.milliseconds(by_library);
    }
    chosen.by_library = library_time < own_time;
    if (!chosen.by_library) chosen.plan = nullptr;
  }

  bool repeats_;
  std::map<key_type, choice> choices_;
};

}  // namespace partita::local

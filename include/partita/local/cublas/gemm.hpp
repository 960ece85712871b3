// SPDX-License-Identifier: Apache-2.0
#pragma once
/// GEMM through cuBLASLt. Link it and construct the queue as `device_queue<cuda_device>(device,
/// cublas_gemm())`. The queue owns the handle, a workspace, and the descriptors and algorithms chosen for the
/// classes of problem shapes that were used last.
///
/// Operands are row-major and cuBLASLt is column-major, so it computes C^T = op(B)^T op(A)^T on the same
/// memory with the operands swapped. A bias along the columns of C is then one along the rows of C^T, as its
/// epilogues require, and column sums of op(B) are row sums of its first operand over the inner dimension
/// (BGRADA).
///
/// Results are bitwise reproducible on the same device model: split-K is allowed only with partial sums
/// stored in the workspace and added in a separate step. Single precision uses TF32 only where
/// `f32_products::tf32` asks for it.

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cublasLt.h>
#include <map>
#include <string>

#include "partita/local/cuda/vendor_products.hpp"

namespace partita {

/// How dense products multiply float: as it is, or on tensor cores with both factors rounded to TF32, which
/// keeps 10 of 23 bits of the significand: |error of c(i, j)| <= 2^-9 sum_k |a(i, k) b(k, j)|. Sums are in
/// float either way.
enum class f32_products { exact, tf32 };

namespace cublas {

/// Key for algorithm selection. Alignments are the largest power of two, up to 256, dividing the address.
struct matmul_shape {
  cublasComputeType_t compute;
  bool transpose_a, transpose_b;
  int m, n, k, lda, ldb, ldc;
  std::uint32_t alignment_a = 0, alignment_b = 0, alignment_c = 0, alignment_line = 0;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;

  bool single_precision() const { return compute != CUBLAS_COMPUTE_64F; }
  friend auto operator<=>(const matmul_shape&, const matmul_shape&) = default;
};

inline std::string to_string(const matmul_shape& p) {
  const auto operand = [](int rows, int cols, bool transpose, int leading) {
    return std::to_string(rows) + " x " + std::to_string(cols) + (transpose ? " transposed" : "") +
           " with stride " + std::to_string(leading);
  };
  const char* const numbers = !p.single_precision()             ? "f64"
                              : p.compute == CUBLAS_COMPUTE_32F ? "f32"
                                                                : "f32 by TF32";
  return std::string(numbers) + ", a " +
         operand(p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.transpose_a, p.lda) + ", b " +
         operand(p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.transpose_b, p.ldb) + ", c " +
         operand(p.m, p.n, false, p.ldc) + ", epilogue " + std::to_string(p.epilogue);
}

/// Throws device_error naming the call and the problem if `status` is an error.
inline void check(cublasStatus_t status, const char* call, const matmul_shape& problem) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw device_error(std::string(call) + " failed: " + cublasLtGetStatusName(status) + ", " +
                     cublasLtGetStatusString(status) + ", for " + to_string(problem));
}

inline std::uint32_t alignment_of(const void* address) {
  const std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(address) | 256;
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

/// The number of rows that varies from batch to batch: m, or the inner dimension of a gradient of weights,
/// a^T b. No operand's alignment or stride depends on it, but b's where both are transposed.
inline int& rows_of(matmul_shape& p) { return p.transpose_a ? p.k : p.m; }

/// The problem whose algorithm serves p: with the number of rows rounded up to one of four between two powers
/// of two.
inline matmul_shape class_of(matmul_shape p) {
  int& rows = rows_of(p);
  if ((p.transpose_a && p.transpose_b) || rows < 8 || rows > 1 << 30) return p;
  rows = static_cast<int>(base::size_class(static_cast<std::size_t>(rows)));
  return p;
}

inline constexpr std::size_t workspace_bytes = std::size_t{32} << 20, most_plans = 256;

/// Layouts of the operands of C^T.
struct matmul_layouts {
  cublasLtMatrixLayoutOpaque_t a, b, c;

  explicit matmul_layouts(const matmul_shape& p) {
    const auto describe_transpose = [&](cublasLtMatrixLayoutOpaque_t& layout, int rows, int cols,
                                        int leading) {
      check(cublasLtMatrixLayoutInit(&layout, p.single_precision() ? CUDA_R_32F : CUDA_R_64F,
                                     static_cast<std::uint64_t>(cols), static_cast<std::uint64_t>(rows),
                                     leading),
            "cublasLtMatrixLayoutInit", p);
    };
    describe_transpose(a, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.lda);
    describe_transpose(b, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.ldb);
    describe_transpose(c, p.m, p.n, p.ldc);
  }
};

/// Descriptor of a class of matmuls and the algorithm selected for it.
class matmul_descriptor {
 public:
  /// `bias`: the vector that the epilogue reads or writes; null if none.
  matmul_descriptor(cublasLtHandle_t handle, matmul_shape p, const void* bias) : serves_(rows_of(p)) {
    const cudaDataType_t type = p.single_precision() ? CUDA_R_32F : CUDA_R_64F;
    check(cublasLtMatmulDescInit(&product_, p.compute, type), "cublasLtMatmulDescInit", p);
    describe(CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, p);
    describe(CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, p);
    describe(CUBLASLT_MATMUL_DESC_EPILOGUE, p.epilogue, p);
    if (bias != nullptr) describe(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias, p);
    choose(handle, p);
  }

  /// Whether cuBLASLt has an algorithm for the problem.
  bool is_known() const { return known_; }
  /// Whether what was chosen stands for p, of the same class: the algorithm runs on it, or its epilogue is
  /// refused.
  bool serves(cublasLtHandle_t handle, matmul_shape p) {
    if (serves_ == rows_of(p)) return true;
    if (!known_) return p.epilogue != CUBLASLT_EPILOGUE_DEFAULT;
    matmul_layouts of(p);
    cublasLtMatmulHeuristicResult_t found{};
    if (cublasLtMatmulAlgoCheck(handle, &product_, &of.b, &of.a, &of.c, &of.c, &algorithm_, &found) !=
            CUBLAS_STATUS_SUCCESS ||
        found.workspaceSize > workspace_bytes)
      return false;
    serves_ = rows_of(p);
    return true;
  }
  /// Wave count of the selected algorithm.
  float waves() const { return waves_; }

  template <class T>
  void run(cublasLtHandle_t handle, const matmul_shape& p, T alpha, const T* a, const T* b, T beta, T* c,
           const void* bias, std::byte* workspace, cudaStream_t stream) {
    if (bias != nullptr) describe(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias, p);
    matmul_layouts of(p);
    check(cublasLtMatmul(handle, &product_, &alpha, b, &of.b, a, &of.a, &beta, c, &of.c, c, &of.c,
                         &algorithm_, workspace, workspace_bytes, stream),
          "cublasLtMatmul", p);
  }

 private:
  template <class Value>
  void describe(cublasLtMatmulDescAttributes_t attribute, Value value, const matmul_shape& p) {
    check(cublasLtMatmulDescSetAttribute(&product_, attribute, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute", p);
  }

  /// Selects the first heuristic result for these alignments with a fixed summation order.
  void choose(cublasLtHandle_t handle, const matmul_shape& p) {
    cublasLtMatmulPreferenceOpaque_t preference;
    check(cublasLtMatmulPreferenceInit(&preference), "cublasLtMatmulPreferenceInit", p);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      check(cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof value),
            "cublasLtMatmulPreferenceSetAttribute", p);
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace_bytes});
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           std::uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, p.alignment_b);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, p.alignment_a);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, p.alignment_c);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, p.alignment_c);

    matmul_layouts of(p);
    std::array<cublasLtMatmulHeuristicResult_t, 4> proposals;
    int count = 0;
    const cublasStatus_t asked =
        cublasLtMatmulAlgoGetHeuristic(handle, &product_, &of.b, &of.a, &of.c, &of.c, &preference,
                                       static_cast<int>(proposals.size()), proposals.data(), &count);
    // The status for an epilogue that a type does not support is undocumented: it may be either.
    if (asked == CUBLAS_STATUS_NOT_SUPPORTED ||
        (asked == CUBLAS_STATUS_INVALID_VALUE && p.epilogue != CUBLASLT_EPILOGUE_DEFAULT))
      return;
    check(asked, "cublasLtMatmulAlgoGetHeuristic", p);
    const auto end = proposals.begin() + count;
    const auto chosen = std::find_if(
        proposals.begin(), end, [](const auto& proposal) { return proposal.state == CUBLAS_STATUS_SUCCESS; });
    known_ = chosen != end;
    if (known_) algorithm_ = chosen->algo, waves_ = chosen->wavesCount;
  }

  cublasLtMatmulDescOpaque_t product_;
  cublasLtMatmulAlgo_t algorithm_;
  float waves_ = 0;
  bool known_ = false;
  int serves_;  ///< a number of rows for which the choice stands
};

/// Per-queue cuBLASLt state.
class context {
 public:
  explicit context(const device_queue<cuda_device>& q) : workspace_(q, workspace_bytes) {
    if (const cublasStatus_t made = cublasLtCreate(&handle_); made != CUBLAS_STATUS_SUCCESS)
      throw device_error(std::string("cublasLtCreate failed: ") + cublasLtGetStatusName(made) + ", " +
                         cublasLtGetStatusString(made));
  }
  context(const context&) = delete;
  ~context() { cublasLtDestroy(handle_); }

  /// Returns false if cuBLASLt has no algorithm with this epilogue, or only an inefficient one for column
  /// sums. Throws device_error if it has none without an epilogue.
  template <class T>
  bool multiply(const device_queue<cuda_device>& q, matmul_shape p, T alpha, const T* a, const T* b, T beta,
                T* c, const on_cuda::vendor_epilogue<T>& epilogue) {
    const T* const line = epilogue.column_sums != nullptr ? epilogue.column_sums : epilogue.bias;
    const std::size_t bytes = static_cast<std::size_t>(p.n) * sizeof(T);
    const T* const used = alignment_of(line) >= 16 ? line : aligned_line<T>(q, bytes);
    p.alignment_line = alignment_of(used);
    if (used != epilogue.bias && epilogue.bias != nullptr) copy_line(q, bias_.data(), epilogue.bias, bytes);
    matmul_descriptor& plan = plan_of(p, used);
    if (!plan.is_known() && p.epilogue != CUBLASLT_EPILOGUE_DEFAULT) return false;
    if (!plan.is_known())
      throw device_error("cublasLtMatmulAlgoGetHeuristic found no algorithm for " + to_string(p));
    if (epilogue.column_sums != nullptr && wastes_the_device(p, plan)) return false;
    plan.run(handle_, p, alpha, a, b, beta, c, used, workspace_.data(), q.stream());
    if (used != epilogue.column_sums && epilogue.column_sums != nullptr)
      copy_line(q, epilogue.column_sums, used, bytes);
    return true;
  }

 private:
  /// That of the problem's class, or its own where the algorithm of its class does not run on it.
  matmul_descriptor& plan_of(const matmul_shape& p, const void* line) {
    matmul_descriptor& common = plan_for(class_of(p), line);
    return common.serves(handle_, p) ? common : plan_for(p, line);
  }
  /// The plan for exactly this problem, which at least most_plans - 1 further calls leave where it is.
  matmul_descriptor& plan_for(const matmul_shape& p, const void* line) {
    auto found = plans_.find(p);
    if (found == plans_.end()) {
      if (plans_.size() == most_plans)
        plans_.erase(std::ranges::min_element(plans_, {}, [](const auto& old) { return old.second.used; }));
      found = plans_.emplace(p, plan{matmul_descriptor(handle_, p, line)}).first;
    }
    found->second.used = ++uses_;
    return found->second.descriptor;
  }
  /// Column sums run over the inner dimension. If they prevent split-K, most of the device is idle for small
  /// C, and the fused product is many times slower than separate kernels.
  bool wastes_the_device(matmul_shape p, const matmul_descriptor& with_sums) {
    p.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    p.alignment_line = 0;
    return 2 * with_sums.waves() < plan_of(p, nullptr).waves();
  }
  /// Epilogues access their vector with vector loads, but parameters are packed: returns an aligned copy
  /// buffer.
  template <class T>
  const T* aligned_line(const device_queue<cuda_device>& q, std::size_t bytes) {
    bias_.reset(q, bytes);
    return reinterpret_cast<const T*>(bias_.data());
  }
  static void copy_line(const device_queue<cuda_device>& q, void* to, const void* from, std::size_t bytes) {
    on_cuda::check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, q.stream()), "cudaMemcpyAsync");
  }

  struct plan {
    matmul_descriptor descriptor;
    std::uint64_t used = 0;  ///< number of its last use
  };

  cublasLtHandle_t handle_ = nullptr;
  buffer<std::byte, cuda_device> workspace_;
  buffer<std::byte, cuda_device> bias_;
  std::map<matmul_shape, plan> plans_;
  std::uint64_t uses_ = 0;
};

template <class T>
cublasLtEpilogue_t kind_of(const on_cuda::vendor_epilogue<T>& epilogue) {
  if (epilogue.column_sums != nullptr) return CUBLASLT_EPILOGUE_BGRADA;
  if (epilogue.bias != nullptr) return epilogue.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
  return epilogue.relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
}

/// A gemm_function: c = alpha op(a) op(b) + beta c, followed by the epilogue. m, n and k must be positive.
template <class T, f32_products Products>
bool multiply(const device_queue<cuda_device>& q, bool transpose_a, bool transpose_b, int m, int n, int k,
              T alpha, const T* a, int lda, const T* b, int ldb, T beta, T* c, int ldc,
              on_cuda::vendor_epilogue<T> epilogue) {
  constexpr cublasComputeType_t compute = sizeof(T) != sizeof(float)        ? CUBLAS_COMPUTE_64F
                                          : Products == f32_products::exact ? CUBLAS_COMPUTE_32F
                                                                            : CUBLAS_COMPUTE_32F_FAST_TF32;
  matmul_shape problem{compute, transpose_a, transpose_b, m, n, k, lda, ldb, ldc};
  problem.alignment_a = alignment_of(a);
  problem.alignment_b = alignment_of(b);
  problem.alignment_c = alignment_of(c);
  problem.epilogue = kind_of(epilogue);
  const on_cuda::device_guard guard(q.device());
  return q.resource<context>().multiply(q, problem, alpha, a, b, beta, c, epilogue);
}

}  // namespace cublas

/// Adds the cuBLASLt products to `libraries`, for a device_queue<cuda_device>. The products throw
/// device_error naming the call and the shapes. Source: the cuBLAS library, "cublasLtMatmul".
inline on_cuda::cuda_libraries cublas_gemm(on_cuda::cuda_libraries libraries = {},
                                           f32_products products = f32_products::exact) {
  libraries.gemm_f32 = products == f32_products::exact ? cublas::multiply<float, f32_products::exact>
                                                       : cublas::multiply<float, f32_products::tf32>;
  libraries.gemm_f64 = cublas::multiply<double, f32_products::exact>;
  libraries.prepare_gemm = [](const device_queue<cuda_device>& q) { q.resource<cublas::context>(); };
  return libraries;
}

}  // namespace partita

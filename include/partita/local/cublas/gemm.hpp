// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Dense products by cuBLASLt; link it, and hand `device_queue<cuda_device>(device, cublas_gemm())` to
/// whoever multiplies. A queue owns its handle, a workspace, and for every shape that it has met the
/// descriptors and the algorithm that cuBLASLt proposes.
///
/// Operands are row-major and cuBLASLt's are column-major, so it is asked for C^T = op(B)^T op(A)^T: the same
/// memory with the operands swapped. A bias of the columns of C is then one of the rows of C^T, as its
/// epilogues have it, and the sums of the columns of op(B) are those of the rows of its first operand over
/// the inner dimension (BGRADA).
///
/// Results repeat bit for bit on devices of one kind: the inner dimension is split only where the parts' sums
/// are kept in the workspace and added in a step of their own. Single precision is never rounded to TF32.

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

namespace cublas {

/// What an algorithm is chosen for. Of an address counts the largest power of two, up to 256, that divides
/// it.
struct gemm_problem {
  bool single_precision, transpose_a, transpose_b;
  int m, n, k, lda, ldb, ldc;
  std::uint32_t alignment_a = 0, alignment_b = 0, alignment_c = 0, alignment_line = 0;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;

  friend auto operator<=>(const gemm_problem&, const gemm_problem&) = default;
};

inline std::string to_string(const gemm_problem& p) {
  const auto operand = [](int rows, int cols, bool transpose, int leading) {
    return std::to_string(rows) + " x " + std::to_string(cols) + (transpose ? " transposed" : "") +
           " with stride " + std::to_string(leading);
  };
  return std::string(p.single_precision ? "f32" : "f64") + ", a " +
         operand(p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.transpose_a, p.lda) + ", b " +
         operand(p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.transpose_b, p.ldb) + ", c " +
         operand(p.m, p.n, false, p.ldc) + ", epilogue " + std::to_string(p.epilogue);
}

/// Throws device_error naming the call and the product when `status` is not success.
inline void check(cublasStatus_t status, const char* call, const gemm_problem& problem) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw device_error(std::string(call) + " failed: " + cublasLtGetStatusName(status) + ", " +
                     cublasLtGetStatusString(status) + ", for " + to_string(problem));
}

inline std::uint32_t alignment_of(const void* address) {
  const std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(address) | 256;
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

inline constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

/// A product as cuBLASLt describes it, and the algorithm that computes it.
class gemm_plan {
 public:
  /// `bias`: what the epilogue reads or writes, null where it does neither.
  gemm_plan(cublasLtHandle_t handle, const gemm_problem& p, const void* bias) {
    const cudaDataType_t type = p.single_precision ? CUDA_R_32F : CUDA_R_64F;
    check(
        cublasLtMatmulDescInit(&product_, p.single_precision ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_64F, type),
        "cublasLtMatmulDescInit", p);
    describe(CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, p);
    describe(CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, p);
    describe(CUBLASLT_MATMUL_DESC_EPILOGUE, p.epilogue, p);
    if (bias != nullptr) describe(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias, p);

    const auto describe_transpose = [&](cublasLtMatrixLayoutOpaque_t& layout, int rows, int cols,
                                        int leading) {
      check(cublasLtMatrixLayoutInit(&layout, type, static_cast<std::uint64_t>(cols),
                                     static_cast<std::uint64_t>(rows), leading),
            "cublasLtMatrixLayoutInit", p);
    };
    describe_transpose(a_, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.lda);
    describe_transpose(b_, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.ldb);
    describe_transpose(c_, p.m, p.n, p.ldc);
    choose(handle, p);
  }

  /// Whether cuBLASLt knows an algorithm for it.
  bool is_known() const { return known_; }
  /// How often its blocks fill the device.
  float waves() const { return waves_; }

  template <class T>
  void run(cublasLtHandle_t handle, const gemm_problem& p, T alpha, const T* a, const T* b, T beta, T* c,
           const void* bias, std::byte* workspace, cudaStream_t stream) {
    if (bias != nullptr) describe(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias, p);
    check(cublasLtMatmul(handle, &product_, &alpha, b, &b_, a, &a_, &beta, c, &c_, c, &c_, &algorithm_,
                         workspace, workspace_bytes, stream),
          "cublasLtMatmul", p);
  }

 private:
  template <class Value>
  void describe(cublasLtMatmulDescAttributes_t attribute, Value value, const gemm_problem& p) {
    check(cublasLtMatmulDescSetAttribute(&product_, attribute, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute", p);
  }

  /// Takes the first that cuBLASLt proposes for operands so aligned and a fixed order of additions.
  void choose(cublasLtHandle_t handle, const gemm_problem& p) {
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

    std::array<cublasLtMatmulHeuristicResult_t, 4> proposals;
    int count = 0;
    const cublasStatus_t asked =
        cublasLtMatmulAlgoGetHeuristic(handle, &product_, &b_, &a_, &c_, &c_, &preference,
                                       static_cast<int>(proposals.size()), proposals.data(), &count);
    // Which of the two answers an epilogue that a type does not have is not documented.
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
  cublasLtMatrixLayoutOpaque_t a_, b_, c_;
  cublasLtMatmulAlgo_t algorithm_;
  float waves_ = 0;
  bool known_ = false;
};

/// What a queue keeps for its products.
class context {
 public:
  explicit context(const device_queue<cuda_device>& q) : workspace_(q, workspace_bytes) {
    if (const cublasStatus_t made = cublasLtCreate(&handle_); made != CUBLAS_STATUS_SUCCESS)
      throw device_error(std::string("cublasLtCreate failed: ") + cublasLtGetStatusName(made) + ", " +
                         cublasLtGetStatusString(made));
  }
  context(const context&) = delete;
  ~context() { cublasLtDestroy(handle_); }

  /// False when cuBLASLt knows no algorithm with the epilogue, or for sums of columns a bad one; throws
  /// device_error when it knows none without.
  template <class T>
  bool multiply(const device_queue<cuda_device>& q, gemm_problem p, T alpha, const T* a, const T* b, T beta,
                T* c, const on_cuda::vendor_epilogue<T>& epilogue) {
    const T* const line = epilogue.column_sums != nullptr ? epilogue.column_sums : epilogue.bias;
    const std::size_t bytes = static_cast<std::size_t>(p.n) * sizeof(T);
    const T* const used = alignment_of(line) >= 16 ? line : aligned_line<T>(q, bytes);
    p.alignment_line = alignment_of(used);
    if (used != epilogue.bias && epilogue.bias != nullptr) copy_line(q, bias_.data(), epilogue.bias, bytes);
    gemm_plan& plan = plan_of(p, used);
    if (!plan.is_known() && p.epilogue != CUBLASLT_EPILOGUE_DEFAULT) return false;
    if (!plan.is_known())
      throw device_error("cublasLtMatmulAlgoGetHeuristic knows no algorithm for " + to_string(p));
    if (epilogue.column_sums != nullptr && wastes_the_device(p, plan)) return false;
    plan.run(handle_, p, alpha, a, b, beta, c, used, workspace_.data(), q.stream());
    if (used != epilogue.column_sums && epilogue.column_sums != nullptr)
      copy_line(q, epilogue.column_sums, used, bytes);
    return true;
  }

 private:
  gemm_plan& plan_of(const gemm_problem& p, const void* line) {
    auto plan = plans_.find(p);
    if (plan == plans_.end()) plan = plans_.emplace(p, gemm_plan(handle_, p, line)).first;
    return plan->second;
  }
  /// Sums of columns are over the inner dimension. An algorithm that therefore cannot split it leaves most of
  /// the device idle where C is small, and takes many times as long as a product and sums apart.
  bool wastes_the_device(gemm_problem p, const gemm_plan& with_sums) {
    p.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    p.alignment_line = 0;
    return 2 * with_sums.waves() < plan_of(p, nullptr).waves();
  }
  /// Epilogues read and write their line in vectors, and parameters lie packed: room at an aligned address.
  template <class T>
  const T* aligned_line(const device_queue<cuda_device>& q, std::size_t bytes) {
    bias_.reset(q, bytes);
    return reinterpret_cast<const T*>(bias_.data());
  }
  static void copy_line(const device_queue<cuda_device>& q, void* to, const void* from, std::size_t bytes) {
    on_cuda::check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, q.stream()),
                        "cudaMemcpyAsync");
  }

  cublasLtHandle_t handle_ = nullptr;
  buffer<std::byte, cuda_device> workspace_;
  buffer<std::byte, cuda_device> bias_;
  std::map<gemm_problem, gemm_plan> plans_;
};

template <class T>
cublasLtEpilogue_t kind_of(const on_cuda::vendor_epilogue<T>& epilogue) {
  if (epilogue.column_sums != nullptr) return CUBLASLT_EPILOGUE_BGRADA;
  if (epilogue.bias != nullptr) return epilogue.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
  return epilogue.relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
}

/// A gemm_function: c = alpha op(a) op(b) + beta c, then the epilogue. None of m, n and k is 0.
template <class T>
bool multiply(const device_queue<cuda_device>& q, bool transpose_a, bool transpose_b, int m, int n, int k,
              T alpha, const T* a, int lda, const T* b, int ldb, T beta, T* c, int ldc,
              on_cuda::vendor_epilogue<T> epilogue) {
  gemm_problem problem{sizeof(T) == sizeof(float), transpose_a, transpose_b, m, n, k, lda, ldb, ldc};
  problem.alignment_a = alignment_of(a);
  problem.alignment_b = alignment_of(b);
  problem.alignment_c = alignment_of(c);
  problem.epilogue = kind_of(epilogue);
  const on_cuda::device_guard guard(q.device());
  return q.resource<context>().multiply(q, problem, alpha, a, b, beta, c, epilogue);
}

}  // namespace cublas

/// `libraries` with the products of cuBLASLt, for a device_queue<cuda_device>. Throws nothing; the products
/// throw device_error naming the call and the shapes. Source: the cuBLAS library, "cublasLtMatmul".
inline on_cuda::cuda_libraries cublas_gemm(on_cuda::cuda_libraries libraries = {}) {
  libraries.gemm_f32 = cublas::multiply<float>;
  libraries.gemm_f64 = cublas::multiply<double>;
  libraries.prepare_gemm = [](const device_queue<cuda_device>& q) { q.resource<cublas::context>(); };
  return libraries;
}

}  // namespace partita

#pragma once
// Stands in for cuBLASLt in tests: the calls that partita makes, over the stand-in of the CUDA runtime.
// Products are column-major and run when their stream gets there; what was promised when an algorithm was
// chosen (alignment, workspace, leading dimensions) is checked when it is used.
//
// What this cannot show: speed; which algorithms, epilogues and alignments the real library has; that its
// results repeat; its rounding.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "library_types.h"
#include "machine.hpp"

enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_NOT_SUPPORTED = 15
};
inline const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "unknown status";
}
inline const char* cublasLtGetStatusString(cublasStatus_t) { return "an error of the stand-in"; }

enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum cublasComputeType_t { CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_64F = 70 };
enum cublasLtEpilogue_t {
  CUBLASLT_EPILOGUE_DEFAULT = 1,
  CUBLASLT_EPILOGUE_RELU = 2,
  CUBLASLT_EPILOGUE_BIAS = 4,
  CUBLASLT_EPILOGUE_RELU_BIAS = 6,
  CUBLASLT_EPILOGUE_BGRADA = 256
};
enum cublasLtReductionScheme_t {
  CUBLASLT_REDUCTION_SCHEME_NONE = 0,
  CUBLASLT_REDUCTION_SCHEME_INPLACE = 1,
  CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2,
  CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE = 4
};
enum cublasLtMatmulDescAttributes_t {
  CUBLASLT_MATMUL_DESC_TRANSA,
  CUBLASLT_MATMUL_DESC_TRANSB,
  CUBLASLT_MATMUL_DESC_EPILOGUE,
  CUBLASLT_MATMUL_DESC_BIAS_POINTER
};
enum cublasLtMatmulPreferenceAttributes_t {
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
  CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES
};

struct cublasLtContext {};
typedef cublasLtContext* cublasLtHandle_t;

struct cublasLtMatrixLayoutOpaque_t {
  cudaDataType type;
  std::uint64_t rows, cols;
  std::int64_t leading;
};
struct cublasLtMatmulDescOpaque_t {
  cublasComputeType_t compute;
  cudaDataType scale;
  cublasOperation_t transpose_a, transpose_b;
  cublasLtEpilogue_t epilogue;
  const void* bias;
};
struct cublasLtMatmulPreferenceOpaque_t {
  std::uint64_t workspace;
  std::uint32_t reductions;
  std::array<std::uint32_t, 4> alignments;
};
/// What the chosen algorithm counts on.
struct cublasLtMatmulAlgo_t {
  std::uint64_t inner, splits, workspace;
  std::array<std::uint32_t, 4> alignments;
  cublasLtEpilogue_t epilogue;
  std::uint32_t line;
};
struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  std::size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
};

inline cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayoutOpaque_t* layout, cudaDataType type,
                                               std::uint64_t rows, std::uint64_t cols, std::int64_t leading) {
  *layout = {type, rows, cols, leading};
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDescOpaque_t* product, cublasComputeType_t compute,
                                             cudaDataType scale) {
  *product = {compute, scale, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr};
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreferenceOpaque_t* preference) {
  *preference = {0, 7, {256, 256, 256, 256}};
  return CUBLAS_STATUS_SUCCESS;
}

namespace stand_in {

template <class Field>
cublasStatus_t assign(Field& field, const void* value, std::size_t size) {
  if (size != sizeof field) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&field, value, size);
  return CUBLAS_STATUS_SUCCESS;
}

/// Rows and columns of an operand after its operation.
struct operand_shape {
  std::uint64_t rows, cols;
};
inline operand_shape shape_of(const cublasLtMatrixLayoutOpaque_t& layout, cublasOperation_t operation) {
  return operation == CUBLAS_OP_N ? operand_shape{layout.rows, layout.cols}
                                  : operand_shape{layout.cols, layout.rows};
}

inline bool is_valid(const cublasLtMatmulDescOpaque_t& p, const cublasLtMatrixLayoutOpaque_t& a,
                     const cublasLtMatrixLayoutOpaque_t& b, const cublasLtMatrixLayoutOpaque_t& d) {
  for (const auto* layout : {&a, &b, &d})
    if (layout->type != p.scale || layout->rows == 0 || layout->cols == 0 ||
        layout->leading < static_cast<std::int64_t>(layout->rows))
      return false;
  const operand_shape left = shape_of(a, p.transpose_a), right = shape_of(b, p.transpose_b);
  return (p.compute == CUBLAS_COMPUTE_32F) == (p.scale == CUDA_R_32F) && left.rows == d.rows &&
         right.cols == d.cols && left.cols == right.rows;
}

/// Whether the epilogue reads or writes a line of as many elements as D has rows.
inline bool has_line(cublasLtEpilogue_t epilogue) {
  return (epilogue & (CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_BGRADA)) != 0;
}
/// Lines are read and written in vectors. An algorithm counts on the alignment of the line that it was asked
/// for with.
inline std::uint32_t alignment_of(const void* line) {
  const std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(line) | 256;
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}
inline bool is_line(const void* line) { return line != nullptr && alignment_of(line) >= 16; }

/// D = alpha op(A) op(B) + beta C with its epilogue. Parts of the inner dimension are summed in the workspace
/// and added in turn.
template <class T>
struct column_major_product {
  cublasLtMatmulDescOpaque_t product;
  cublasLtMatrixLayoutOpaque_t a_layout, b_layout, d_layout;
  cublasLtMatmulAlgo_t algorithm;
  T alpha, beta;
  const T *a, *b, *c;
  T *d, *workspace;

  void operator()() const {
    const std::uint64_t elements = d_layout.rows * d_layout.cols, inner = algorithm.inner;
    for (std::uint64_t part = 0; part < algorithm.splits; ++part)
      for (std::uint64_t e = 0; e < elements; ++e) {
        T sum = 0;
        for (std::uint64_t p = part * inner / algorithm.splits; p < (part + 1) * inner / algorithm.splits;
             ++p)
          sum += at(a, a_layout, product.transpose_a, e % d_layout.rows, p) *
                 at(b, b_layout, product.transpose_b, p, e / d_layout.rows);
        workspace[part * elements + e] = sum;
      }
    for (std::uint64_t e = 0; e < elements; ++e) store(e, elements);
    if ((product.epilogue & CUBLASLT_EPILOGUE_BGRADA) != 0) sum_rows_of_a();
  }

 private:
  static T at(const T* data, const cublasLtMatrixLayoutOpaque_t& layout, cublasOperation_t operation,
              std::uint64_t i, std::uint64_t j) {
    if (operation == CUBLAS_OP_T) std::swap(i, j);
    return data[i + j * static_cast<std::uint64_t>(layout.leading)];
  }
  /// The gradient of a bias: row i of op(A), over the inner dimension.
  void sum_rows_of_a() const {
    T* const sums = static_cast<T*>(const_cast<void*>(product.bias));
    for (std::uint64_t i = 0; i < d_layout.rows; ++i) {
      sums[i] = 0;
      for (std::uint64_t p = 0; p < algorithm.inner; ++p)
        sums[i] += at(a, a_layout, product.transpose_a, i, p);
    }
  }
  void store(std::uint64_t e, std::uint64_t elements) const {
    T sum = 0;
    for (std::uint64_t part = 0; part < algorithm.splits; ++part) sum += workspace[part * elements + e];
    const std::uint64_t i = e % d_layout.rows,
                        to = i + e / d_layout.rows * static_cast<std::uint64_t>(d_layout.leading);
    T value = alpha * sum + (beta == 0 ? T{0} : beta * c[to]);
    if ((product.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0) value += static_cast<const T*>(product.bias)[i];
    d[to] = (product.epilogue & CUBLASLT_EPILOGUE_RELU) != 0 ? std::max(value, T{0}) : value;
  }
};

template <class T>
cublasStatus_t run(const cublasLtMatmulDescOpaque_t& p, const void* alpha, const void* a,
                   const cublasLtMatrixLayoutOpaque_t& a_layout, const void* b,
                   const cublasLtMatrixLayoutOpaque_t& b_layout, const void* beta, const void* c, void* d,
                   const cublasLtMatrixLayoutOpaque_t& d_layout, const cublasLtMatmulAlgo_t& algorithm,
                   void* workspace, cudaStream_t stream) {
  const column_major_product<T> work{p,
                                     a_layout,
                                     b_layout,
                                     d_layout,
                                     algorithm,
                                     *static_cast<const T*>(alpha),
                                     *static_cast<const T*>(beta),
                                     static_cast<const T*>(a),
                                     static_cast<const T*>(b),
                                     static_cast<const T*>(c),
                                     static_cast<T*>(d),
                                     static_cast<T*>(workspace)};
  return launch(stream, work, "cublasLtMatmul") == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                                               : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace stand_in

inline cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDescOpaque_t* product,
                                                     cublasLtMatmulDescAttributes_t attribute,
                                                     const void* value, std::size_t size) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return stand_in::assign(product->transpose_a, value, size);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return stand_in::assign(product->transpose_b, value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return stand_in::assign(product->epilogue, value, size);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return stand_in::assign(product->bias, value, size);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}
inline cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreferenceOpaque_t* preference,
                                                           cublasLtMatmulPreferenceAttributes_t attribute,
                                                           const void* value, std::size_t size) {
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    return stand_in::assign(preference->workspace, value, size);
  if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
    return stand_in::assign(preference->reductions, value, size);
  return stand_in::assign(
      preference
          ->alignments[static_cast<std::size_t>(attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES)],
      value, size);
}

/// Proposes something that cannot be used first, then an algorithm that splits long inner dimensions if it
/// may and need not sum over them. Knows none for the gradient of a bias in double precision: the real library need not know them all.
inline cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, const cublasLtMatmulDescOpaque_t* product, const cublasLtMatrixLayoutOpaque_t* a,
    const cublasLtMatrixLayoutOpaque_t* b, const cublasLtMatrixLayoutOpaque_t*,
    const cublasLtMatrixLayoutOpaque_t* d, const cublasLtMatmulPreferenceOpaque_t* preference, int wanted,
    cublasLtMatmulHeuristicResult_t* results, int* count) {
  static_cast<void>(
      stand_in::call("cublasLtMatmulAlgoGetHeuristic", [](auto&, auto&) { return cudaSuccess; }));
  *count = 0;
  if (handle == nullptr || wanted < 2) return CUBLAS_STATUS_INVALID_VALUE;
  if (!stand_in::is_valid(*product, *a, *b, *d)) return CUBLAS_STATUS_INVALID_VALUE;
  if (stand_in::has_line(product->epilogue) && !stand_in::is_line(product->bias))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (product->epilogue == CUBLASLT_EPILOGUE_BGRADA && product->scale == CUDA_R_64F)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const std::uint64_t inner = stand_in::shape_of(*a, product->transpose_a).cols,
                      bytes = d->rows * d->cols * (product->scale == CUDA_R_32F ? 4 : 8);
  const bool may_split = (preference->reductions & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) != 0;
  const std::uint64_t splits =
      may_split && inner > 1000 && product->epilogue != CUBLASLT_EPILOGUE_BGRADA ? 3 : 1;
  if (splits * bytes > preference->workspace) return CUBLAS_STATUS_NOT_SUPPORTED;
  const cublasLtMatmulAlgo_t algorithm{inner,
                                       splits,
                                       splits * bytes,
                                       preference->alignments,
                                       product->epilogue,
                                       stand_in::alignment_of(product->bias)};
  results[0] = {{}, 0, CUBLAS_STATUS_NOT_SUPPORTED, 0};
  results[1] = {algorithm, algorithm.workspace, CUBLAS_STATUS_SUCCESS, static_cast<float>(splits) / 8};
  *count = 2;
  return CUBLAS_STATUS_SUCCESS;
}

inline cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, const cublasLtMatmulDescOpaque_t* product,
                                     const void* alpha, const void* a,
                                     const cublasLtMatrixLayoutOpaque_t* a_layout, const void* b,
                                     const cublasLtMatrixLayoutOpaque_t* b_layout, const void* beta,
                                     const void* c, const cublasLtMatrixLayoutOpaque_t*, void* d,
                                     const cublasLtMatrixLayoutOpaque_t* d_layout,
                                     const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                                     std::size_t workspace_bytes, cudaStream_t stream) {
  const auto lies_at = [](const void* address, std::uint32_t alignment) {
    return alignment != 0 && reinterpret_cast<std::uintptr_t>(address) % alignment == 0;
  };
  const auto& aligned = algorithm->alignments;
  if (handle == nullptr || !stand_in::is_valid(*product, *a_layout, *b_layout, *d_layout) ||
      !lies_at(a, aligned[0]) || !lies_at(b, aligned[1]) || !lies_at(c, aligned[2]) ||
      !lies_at(d, aligned[3]) || !lies_at(workspace, 256) || workspace_bytes < algorithm->workspace ||
      algorithm->epilogue != product->epilogue ||
      (stand_in::has_line(product->epilogue) &&
       (!stand_in::is_line(product->bias) || !lies_at(product->bias, algorithm->line))))
    return CUBLAS_STATUS_INVALID_VALUE;
  const auto run = product->scale == CUDA_R_32F ? stand_in::run<float> : stand_in::run<double>;
  return run(*product, alpha, a, *a_layout, b, *b_layout, beta, c, d, *d_layout, *algorithm, workspace,
             stream);
}

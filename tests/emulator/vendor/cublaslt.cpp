// SPDX-License-Identifier: Apache-2.0
// cuBLASLt's products on the emulated runtime: the calls that partita makes. Products are column-major and
// run when their stream gets there; what was promised when an algorithm was chosen (alignment, workspace,
// leading dimensions) is checked when it is used.
//
// What this cannot show: speed; which algorithms, epilogues and alignments the real library has; that its
// results repeat; its rounding.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <cublasLt.h>

#include "../runtime/machine.hpp"

struct cublasLtContext {};

namespace emulator {

namespace {

struct layout {
  cudaDataType type;
  std::uint64_t rows, cols;
  std::int64_t leading;
};
struct product {
  cublasComputeType_t compute;
  cudaDataType scale;
  cublasOperation_t transpose_a, transpose_b;
  cublasLtEpilogue_t epilogue;
  void* line;  ///< of a bias, or its gradient
};
struct preference {
  std::uint64_t workspace;
  std::uint32_t reductions;
  std::array<std::uint32_t, 4> alignments;
};
/// What the chosen algorithm counts on.
struct algorithm {
  std::uint64_t inner, splits, workspace, columns;  ///< multiples of `inner` and, of d, `columns`
  std::array<std::uint32_t, 4> alignments;
  std::uint32_t epilogue, line;
};

/// The library's opaque structs are memory for ours.
template <class T, class Opaque>
T read(const Opaque* from) {
  static_assert(sizeof(T) <= sizeof(Opaque));
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}
template <class T, class Opaque>
void write(Opaque* to, const T& value) {
  static_assert(sizeof(T) <= sizeof(Opaque));
  std::memcpy(to, &value, sizeof(T));
}
cublasStatus_t assign(auto& field, const void* value, std::size_t size) {
  if (size != sizeof field) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&field, value, size);
  return CUBLAS_STATUS_SUCCESS;
}

/// Rows and columns of an operand after its operation.
struct operand_shape {
  std::uint64_t rows, cols;
};
operand_shape shape_of(const layout& l, cublasOperation_t operation) {
  return operation == CUBLAS_OP_N ? operand_shape{l.rows, l.cols} : operand_shape{l.cols, l.rows};
}

bool is_valid(const product& p, const layout& a, const layout& b, const layout& d) {
  for (const layout* l : {&a, &b, &d})
    if (l->type != p.scale || l->rows == 0 || l->cols == 0 || l->leading < static_cast<std::int64_t>(l->rows))
      return false;
  const operand_shape left = shape_of(a, p.transpose_a), right = shape_of(b, p.transpose_b);
  const bool single = p.compute == CUBLAS_COMPUTE_32F || p.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  return single == (p.scale == CUDA_R_32F) && left.rows == d.rows && right.cols == d.cols &&
         left.cols == right.rows;
}

bool serves(const algorithm& chosen, const product& p, const layout& a, const layout& d) {
  return shape_of(a, p.transpose_a).cols % chosen.inner == 0 && d.cols % chosen.columns == 0 &&
         chosen.epilogue == static_cast<std::uint32_t>(p.epilogue);
}

/// Whether the epilogue reads or writes a line of as many elements as D has rows.
bool has_line(std::uint32_t epilogue) {
  return (epilogue & (CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_BGRADA)) != 0;
}
/// Lines are read and written in vectors. An algorithm counts on the alignment of the line that it was asked
/// for with.
std::uint32_t alignment_of(const void* line) {
  const std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(line) | 256;
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}
bool is_line(const void* line) { return line != nullptr && alignment_of(line) >= 16; }

/// D = alpha op(A) op(B) + beta C with its epilogue. Parts of the inner dimension are summed in the workspace
/// and added in turn.
template <class T>
struct column_major_product {
  product p;
  layout a_layout, b_layout, d_layout;
  algorithm chosen;
  T alpha, beta;
  const T *a, *b, *c;
  T *d, *workspace;

  void operator()() const { column_major_product(*this).compute(); }

 private:
  static T at(const T* data, const layout& l, cublasOperation_t operation, std::uint64_t i, std::uint64_t j) {
    if (operation == CUBLAS_OP_T) std::swap(i, j);
    return data[i + j * static_cast<std::uint64_t>(l.leading)];
  }
  /// A factor as it is multiplied: for TF32, to the nearest number with 10 bits behind the point.
  T factor(T x) const {
    if constexpr (sizeof(T) == sizeof(float)) {
      if (p.compute != CUBLAS_COMPUTE_32F_FAST_TF32 || !std::isfinite(x)) return x;
      const auto bits = std::bit_cast<std::uint32_t>(x);
      return std::bit_cast<T>((bits + 0xFFFU + (bits >> 13 & 1U)) & ~0x1FFFU);
    } else {
      return x;
    }
  }
  template <class U>
  static void reach(U*& data, const layout& l) {
    machine& m = machine::instance();
    for (std::uint64_t j = 0; j < l.cols; ++j) {
      U* const column = data + j * static_cast<std::uint64_t>(l.leading);
      if constexpr (std::is_const_v<U>)
        m.reading(column, l.rows, "cublasLtMatmul");
      else
        m.writing(column, l.rows, "cublasLtMatmul");
    }
    data = m.arena.reached(data);
  }
  void compute() {
    const std::uint64_t elements = d_layout.rows * d_layout.cols,
                        inner = shape_of(a_layout, p.transpose_a).cols;
    machine& m = machine::instance();
    reach(a, a_layout);
    reach(b, b_layout);
    if (beta != 0) reach(c, d_layout);
    reach(d, d_layout);
    workspace = m.writing(workspace, chosen.splits * elements, "cublasLtMatmul");
    T* line = static_cast<T*>(p.line);
    if (p.epilogue == CUBLASLT_EPILOGUE_BGRADA) {
      line = m.writing(line, d_layout.rows, "cublasLtMatmul");
    } else if (has_line(p.epilogue)) {
      m.reading(static_cast<const T*>(line), d_layout.rows, "cublasLtMatmul");
      line = m.arena.reached(line);
    }
    for (std::uint64_t part = 0; part < chosen.splits; ++part)
      for (std::uint64_t e = 0; e < elements; ++e) {
        T sum = 0;
        for (std::uint64_t k = part * inner / chosen.splits; k < (part + 1) * inner / chosen.splits; ++k)
          sum += factor(at(a, a_layout, p.transpose_a, e % d_layout.rows, k)) *
                 factor(at(b, b_layout, p.transpose_b, k, e / d_layout.rows));
        workspace[part * elements + e] = sum;
      }
    for (std::uint64_t e = 0; e < elements; ++e) store(e, elements, line);
    if (p.epilogue == CUBLASLT_EPILOGUE_BGRADA) sum_rows_of_a(line);
  }
  /// The gradient of a bias: row i of op(A), over the inner dimension.
  void sum_rows_of_a(T* sums) const {
    const std::uint64_t inner = shape_of(a_layout, p.transpose_a).cols;
    for (std::uint64_t i = 0; i < d_layout.rows; ++i) {
      sums[i] = 0;
      for (std::uint64_t k = 0; k < inner; ++k) sums[i] += at(a, a_layout, p.transpose_a, i, k);
    }
  }
  void store(std::uint64_t e, std::uint64_t elements, const T* line) const {
    T sum = 0;
    for (std::uint64_t part = 0; part < chosen.splits; ++part) sum += workspace[part * elements + e];
    const std::uint64_t i = e % d_layout.rows,
                        to = i + e / d_layout.rows * static_cast<std::uint64_t>(d_layout.leading);
    T value = alpha * sum + (beta == 0 ? T{0} : beta * c[to]);
    if ((p.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0) value += line[i];
    d[to] = (p.epilogue & CUBLASLT_EPILOGUE_RELU) != 0 ? std::max(value, T{0}) : value;
  }
};

template <class T>
cublasStatus_t run(column_major_product<T> work, const void* alpha, const void* beta, cudaStream_t stream) {
  work.alpha = *static_cast<const T*>(alpha);
  work.beta = *static_cast<const T*>(beta);
  return enqueue_work(stream, "cublasLtMatmul", work) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                                                     : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace

}  // namespace emulator

using namespace emulator;

extern "C" {

const char* CUBLASWINAPI cublasLtGetStatusName(cublasStatus_t status) {
  using named = std::pair<cublasStatus_t, const char*>;
  for (const auto& [code, name] : {named{CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS"},
                                   {CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED"},
                                   {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE"},
                                   {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED"},
                                   {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED"}})
    if (status == code) return name;
  return "unknown status";
}
const char* CUBLASWINAPI cublasLtGetStatusString(cublasStatus_t) { return "an error of the emulator"; }

cublasStatus_t CUBLASWINAPI cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t CUBLASWINAPI cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t CUBLASWINAPI cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t made, std::size_t,
                                                              cudaDataType type, std::uint64_t rows,
                                                              std::uint64_t cols, std::int64_t leading) {
  write(made, layout{type, rows, cols, leading});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t CUBLASWINAPI cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t made, std::size_t,
                                                            cublasComputeType_t compute,
                                                            cudaDataType_t scale) {
  write(made, product{compute, scale, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t CUBLASWINAPI cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t made,
                                                                  std::size_t) {
  write(made, preference{0, 7, {256, 256, 256, 256}});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t CUBLASWINAPI cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                                           cublasLtMatmulDescAttributes_t attribute,
                                                           const void* value, std::size_t size) {
  product p = read<product>(desc);
  cublasStatus_t status = CUBLAS_STATUS_INVALID_VALUE;
  if (attribute == CUBLASLT_MATMUL_DESC_TRANSA) status = assign(p.transpose_a, value, size);
  if (attribute == CUBLASLT_MATMUL_DESC_TRANSB) status = assign(p.transpose_b, value, size);
  if (attribute == CUBLASLT_MATMUL_DESC_EPILOGUE) status = assign(p.epilogue, value, size);
  if (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER) status = assign(p.line, value, size);
  write(desc, p);
  return status;
}
cublasStatus_t CUBLASWINAPI cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t to, cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
    std::size_t size) {
  preference p = read<preference>(to);
  cublasStatus_t status = CUBLAS_STATUS_INVALID_VALUE;
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) status = assign(p.workspace, value, size);
  if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) status = assign(p.reductions, value, size);
  constexpr cublasLtMatmulPreferenceAttributes_t alignments[] = {
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  for (std::size_t n = 0; n < 4; ++n)
    if (attribute == alignments[n]) status = assign(p.alignments[n], value, size);
  write(to, p);
  return status;
}

/// Proposes something that cannot be used first, then an algorithm that splits long inner dimensions if it
/// may and need not sum over them. One for many columns of d, or a long inner dimension, needs a multiple of
/// 8 of them. Knows none for the gradient of a bias in double precision: the real library need not know them
/// all.
cublasStatus_t CUBLASWINAPI cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a_desc,
    cublasLtMatrixLayout_t b_desc, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d_desc,
    cublasLtMatmulPreference_t preferred, int wanted, cublasLtMatmulHeuristicResult_t results[], int* count) {
  static_cast<void>(call("cublasLtMatmulAlgoGetHeuristic", [](auto&, auto&) { return cudaSuccess; }));
  *count = 0;
  const product p = read<product>(desc);
  const layout a = read<layout>(a_desc), b = read<layout>(b_desc), d = read<layout>(d_desc);
  const preference pref = read<preference>(preferred);
  if (handle == nullptr || wanted < 2 || !is_valid(p, a, b, d)) return CUBLAS_STATUS_INVALID_VALUE;
  if (has_line(p.epilogue) && !is_line(p.line)) return CUBLAS_STATUS_INVALID_VALUE;
  if (p.epilogue == CUBLASLT_EPILOGUE_BGRADA && p.scale == CUDA_R_64F) return CUBLAS_STATUS_NOT_SUPPORTED;
  const std::uint64_t inner = shape_of(a, p.transpose_a).cols,
                      bytes = d.rows * d.cols * (p.scale == CUDA_R_32F ? 4 : 8);
  const bool may_split = (pref.reductions & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) != 0;
  const std::uint64_t splits = may_split && inner > 1000 && p.epilogue != CUBLASLT_EPILOGUE_BGRADA ? 3 : 1;
  if (splits * bytes > pref.workspace) return CUBLAS_STATUS_NOT_SUPPORTED;
  results[0] = {};
  results[0].state = CUBLAS_STATUS_NOT_SUPPORTED;
  results[1] = {};
  results[1].state = CUBLAS_STATUS_SUCCESS;
  results[1].workspaceSize = splits * bytes;
  results[1].wavesCount = static_cast<float>(splits) / 8;
  write(&results[1].algo, algorithm{inner > 2000 && inner % 8 == 0 ? 8U : 1U, splits, splits * bytes,
                                    d.cols > 2000 && d.cols % 8 == 0 ? 8U : 1U, pref.alignments,
                                    static_cast<std::uint32_t>(p.epilogue), alignment_of(p.line)});
  *count = 2;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t CUBLASWINAPI cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                                    cublasLtMatrixLayout_t a_desc,
                                                    cublasLtMatrixLayout_t b_desc, cublasLtMatrixLayout_t,
                                                    cublasLtMatrixLayout_t d_desc,
                                                    const cublasLtMatmulAlgo_t* algo,
                                                    cublasLtMatmulHeuristicResult_t* result) {
  const product p = read<product>(desc);
  const layout a = read<layout>(a_desc), d = read<layout>(d_desc);
  const algorithm chosen = read<algorithm>(algo);
  if (handle == nullptr || !is_valid(p, a, read<layout>(b_desc), d)) return CUBLAS_STATUS_INVALID_VALUE;
  result->workspaceSize = chosen.workspace;
  result->state = serves(chosen, p, a, d) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
  return result->state;
}

cublasStatus_t CUBLASWINAPI cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                           const void* alpha, const void* a, cublasLtMatrixLayout_t a_desc,
                                           const void* b, cublasLtMatrixLayout_t b_desc, const void* beta,
                                           const void* c, cublasLtMatrixLayout_t, void* d,
                                           cublasLtMatrixLayout_t d_desc, const cublasLtMatmulAlgo_t* algo,
                                           void* workspace, std::size_t workspace_bytes,
                                           cudaStream_t stream) {
  const auto lies_at = [](const void* address, std::uint32_t alignment) {
    return alignment != 0 && reinterpret_cast<std::uintptr_t>(address) % alignment == 0;
  };
  const product p = read<product>(desc);
  const layout al = read<layout>(a_desc), bl = read<layout>(b_desc), dl = read<layout>(d_desc);
  const algorithm chosen = read<algorithm>(algo);
  const auto& aligned = chosen.alignments;
  if (handle == nullptr || !is_valid(p, al, bl, dl) || !lies_at(a, aligned[0]) || !lies_at(b, aligned[1]) ||
      !lies_at(c, aligned[2]) || !lies_at(d, aligned[3]) || !lies_at(workspace, 256) ||
      workspace_bytes < chosen.workspace || !serves(chosen, p, al, dl) ||
      (has_line(p.epilogue) && (!is_line(p.line) || !lies_at(p.line, chosen.line))))
    return CUBLAS_STATUS_INVALID_VALUE;
  const auto start = [&]<class T>(T) {
    return run<T>({p, al, bl, dl, chosen, T{}, T{}, static_cast<const T*>(a), static_cast<const T*>(b),
                   static_cast<const T*>(c), static_cast<T*>(d), static_cast<T*>(workspace)},
                  alpha, beta, stream);
  };
  return p.scale == CUDA_R_32F ? start(float{}) : start(double{});
}

}  // extern "C"

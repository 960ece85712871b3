#pragma once
// Stands in for cuSPARSE in tests: the calls of its sparse-dense product that partita makes, over the
// stand-in of the CUDA runtime. Products run when their stream gets there. Addresses and leading dimensions
// that are no multiples of 16 bytes, and products that were not prepared, are errors; CSR_ALG1 and CSR_ALG2
// add in another order on every run, as the real ones may.
//
// What this cannot show: speed; what each algorithm supports; its rounding.
#include <cstddef>
#include <cstdint>

#include "library_types.h"
#include "machine.hpp"

enum cusparseStatus_t {
  CUSPARSE_STATUS_SUCCESS = 0,
  CUSPARSE_STATUS_INVALID_VALUE = 3,
  CUSPARSE_STATUS_EXECUTION_FAILED = 6,
  CUSPARSE_STATUS_NOT_SUPPORTED = 10
};
inline const char* cusparseGetErrorName(cusparseStatus_t status) {
  switch (status) {
    case CUSPARSE_STATUS_SUCCESS:
      return "CUSPARSE_STATUS_SUCCESS";
    case CUSPARSE_STATUS_INVALID_VALUE:
      return "CUSPARSE_STATUS_INVALID_VALUE";
    case CUSPARSE_STATUS_EXECUTION_FAILED:
      return "CUSPARSE_STATUS_EXECUTION_FAILED";
    case CUSPARSE_STATUS_NOT_SUPPORTED:
      return "CUSPARSE_STATUS_NOT_SUPPORTED";
  }
  return "unknown status";
}
inline const char* cusparseGetErrorString(cusparseStatus_t) { return "an error of the stand-in"; }

enum cusparseOperation_t { CUSPARSE_OPERATION_NON_TRANSPOSE = 0, CUSPARSE_OPERATION_TRANSPOSE = 1 };
enum cusparseOrder_t { CUSPARSE_ORDER_COL = 1, CUSPARSE_ORDER_ROW = 2 };
enum cusparseIndexType_t { CUSPARSE_INDEX_32I = 2, CUSPARSE_INDEX_64I = 3 };
enum cusparseIndexBase_t { CUSPARSE_INDEX_BASE_ZERO = 0, CUSPARSE_INDEX_BASE_ONE = 1 };
enum cusparseSpMMAlg_t {
  CUSPARSE_SPMM_CSR_ALG1 = 4,
  CUSPARSE_SPMM_CSR_ALG2 = 6,
  CUSPARSE_SPMM_CSR_ALG3 = 12
};

struct cusparseContext {
  cudaStream_t stream = nullptr;
  std::int64_t products = 0;
};
struct cusparseSpMatDescr {
  std::int64_t rows, cols, nonzeros;
  const void *offsets, *columns, *values;
  cudaDataType type;
  const void* prepared_in = nullptr;  ///< the buffer of the last preparation
  cusparseSpMMAlg_t prepared_for = CUSPARSE_SPMM_CSR_ALG1;
};
struct cusparseDnMatDescr {
  std::int64_t rows, cols, leading;
  void* values;
  cudaDataType type;
};
typedef cusparseContext* cusparseHandle_t;
typedef cusparseSpMatDescr* cusparseSpMatDescr_t;
typedef cusparseDnMatDescr* cusparseDnMatDescr_t;

inline cusparseStatus_t cusparseCreate(cusparseHandle_t* handle) {
  *handle = new cusparseContext;
  return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseDestroy(cusparseHandle_t handle) {
  delete handle;
  return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseSetStream(cusparseHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUSPARSE_STATUS_SUCCESS;
}

namespace stand_in {

inline bool lies_at_16(const void* address) {
  return address != nullptr && reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
}
inline std::int64_t size_of(cudaDataType type) { return type == CUDA_R_32F ? 4 : 8; }

}  // namespace stand_in

inline cusparseStatus_t cusparseCreateCsr(cusparseSpMatDescr_t* matrix, std::int64_t rows, std::int64_t cols,
                                          std::int64_t nonzeros, void* offsets, void* columns, void* values,
                                          cusparseIndexType_t offsets_type, cusparseIndexType_t columns_type,
                                          cusparseIndexBase_t base, cudaDataType type) {
  if (offsets_type != CUSPARSE_INDEX_32I || columns_type != CUSPARSE_INDEX_32I ||
      base != CUSPARSE_INDEX_BASE_ZERO)
    return CUSPARSE_STATUS_NOT_SUPPORTED;
  *matrix = new cusparseSpMatDescr{rows, cols, nonzeros, offsets, columns, values, type};
  return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseDestroySpMat(const cusparseSpMatDescr* matrix) {
  delete matrix;
  return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseSpMatSetValues(cusparseSpMatDescr_t matrix, void* values) {
  matrix->values = values;
  return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseCreateDnMat(cusparseDnMatDescr_t* matrix, std::int64_t rows,
                                            std::int64_t cols, std::int64_t leading, void* values,
                                            cudaDataType type, cusparseOrder_t order) {
  if (order != CUSPARSE_ORDER_ROW) return CUSPARSE_STATUS_NOT_SUPPORTED;
  if (leading < cols) return CUSPARSE_STATUS_INVALID_VALUE;
  *matrix = new cusparseDnMatDescr{rows, cols, leading, values, type};
  return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseDestroyDnMat(const cusparseDnMatDescr* matrix) {
  delete matrix;
  return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseDnMatSetValues(cusparseDnMatDescr_t matrix, void* values) {
  matrix->values = values;
  return CUSPARSE_STATUS_SUCCESS;
}

namespace stand_in {

/// y = alpha a x + beta y; the entries of a row are added from entry `first` on, and around.
template <class T>
struct row_major_product {
  cusparseSpMatDescr a;
  cusparseDnMatDescr x, y;
  T alpha, beta;
  std::int64_t first;

  void operator()() const {
    const auto* const offsets = static_cast<const int*>(a.offsets);
    const auto* const columns = static_cast<const int*>(a.columns);
    const auto* const values = static_cast<const T*>(a.values);
    for (std::int64_t i = 0; i < a.rows; ++i)
      for (std::int64_t j = 0; j < x.cols; ++j) {
        const std::int64_t count = offsets[i + 1] - offsets[i];
        T sum = 0;
        for (std::int64_t e = 0; e < count; ++e) {
          const std::int64_t at = offsets[i] + (e + first) % count;
          sum += values[at] * static_cast<const T*>(x.values)[columns[at] * x.leading + j];
        }
        T& to = static_cast<T*>(y.values)[i * y.leading + j];
        to = alpha * sum + (beta == 0 ? T{0} : beta * to);
      }
  }
};

inline cusparseStatus_t check(cusparseOperation_t a_operation, cusparseOperation_t x_operation,
                              const cusparseSpMatDescr& a, const cusparseDnMatDescr& x,
                              const cusparseDnMatDescr& y, cudaDataType type) {
  if (a_operation != CUSPARSE_OPERATION_NON_TRANSPOSE || x_operation != CUSPARSE_OPERATION_NON_TRANSPOSE ||
      a.type != type || x.type != type || y.type != type)
    return CUSPARSE_STATUS_NOT_SUPPORTED;
  for (const void* address : {a.offsets, a.columns, a.values, static_cast<const void*>(x.values),
                              static_cast<const void*>(y.values)})
    if (!lies_at_16(address)) return CUSPARSE_STATUS_INVALID_VALUE;
  const bool fit = a.rows == y.rows && a.cols == x.rows && x.cols == y.cols &&
                   x.leading * size_of(type) % 16 == 0 && y.leading * size_of(type) % 16 == 0;
  return fit ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_INVALID_VALUE;
}

}  // namespace stand_in

inline cusparseStatus_t cusparseSpMM_bufferSize(cusparseHandle_t, cusparseOperation_t a_operation,
                                                cusparseOperation_t x_operation, const void*,
                                                const cusparseSpMatDescr* a, const cusparseDnMatDescr* x,
                                                const void*, cusparseDnMatDescr_t y, cudaDataType type,
                                                cusparseSpMMAlg_t, std::size_t* bytes) {
  *bytes = 64;
  return stand_in::check(a_operation, x_operation, *a, *x, *y, type);
}
inline cusparseStatus_t cusparseSpMM_preprocess(cusparseHandle_t, cusparseOperation_t a_operation,
                                                cusparseOperation_t x_operation, const void*,
                                                const cusparseSpMatDescr* a, const cusparseDnMatDescr* x,
                                                const void*, cusparseDnMatDescr_t y, cudaDataType type,
                                                cusparseSpMMAlg_t algorithm, void* workspace) {
  static_cast<void>(stand_in::call("cusparseSpMM_preprocess", [](auto&, auto&) { return cudaSuccess; }));
  auto* const prepared = const_cast<cusparseSpMatDescr_t>(a);
  prepared->prepared_in = workspace;
  prepared->prepared_for = algorithm;
  return stand_in::check(a_operation, x_operation, *a, *x, *y, type);
}
inline cusparseStatus_t cusparseSpMM(cusparseHandle_t handle, cusparseOperation_t a_operation,
                                     cusparseOperation_t x_operation, const void* alpha,
                                     const cusparseSpMatDescr* a, const cusparseDnMatDescr* x,
                                     const void* beta, cusparseDnMatDescr_t y, cudaDataType type,
                                     cusparseSpMMAlg_t algorithm, void* workspace) {
  const cusparseStatus_t fit = stand_in::check(a_operation, x_operation, *a, *x, *y, type);
  if (fit != CUSPARSE_STATUS_SUCCESS) return fit;
  if (workspace == nullptr || workspace != a->prepared_in || algorithm != a->prepared_for)
    return CUSPARSE_STATUS_INVALID_VALUE;
  const std::int64_t first = algorithm == CUSPARSE_SPMM_CSR_ALG3 ? 0 : handle->products++;
  const auto launched = [&]<class T>(T a_scalar, T b_scalar) {
    return stand_in::launch(handle->stream,
                            stand_in::row_major_product<T>{*a, *x, *y, a_scalar, b_scalar, first},
                            "cusparseSpMM");
  };
  const cudaError_t code =
      type == CUDA_R_32F ? launched(*static_cast<const float*>(alpha), *static_cast<const float*>(beta))
                         : launched(*static_cast<const double*>(alpha), *static_cast<const double*>(beta));
  return code == cudaSuccess ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_EXECUTION_FAILED;
}

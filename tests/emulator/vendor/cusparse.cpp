// SPDX-License-Identifier: Apache-2.0
// cuSPARSE's sparse-dense product on the emulated runtime: the calls that partita makes. Products run when
// their stream gets there. Addresses and leading dimensions that are no multiples of 16 bytes, and products
// that were not prepared, are errors; CSR_ALG1 and CSR_ALG2 add in another order on every run, as the real
// ones may.
//
// Products are refused as not supported unless EMULATOR_CUSPARSE is set: the kernels of the program are what
// is to be seen, and they would lose every race against the host.
//
// What this cannot show: speed; what each algorithm supports; its rounding.
#include <cstdlib>
#include <cusparse.h>

#include "../runtime/machine.hpp"

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

namespace emulator {

namespace {

bool lies_at_16(const void* address) {
  return address != nullptr && reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
}
std::int64_t size_of(cudaDataType type) { return type == CUDA_R_32F ? 4 : 8; }

/// y = alpha a x + beta y; the entries of a row are added from entry `first` on, and around.
template <class T>
struct row_major_product {
  cusparseSpMatDescr a;
  cusparseDnMatDescr x, y;
  T alpha, beta;
  std::int64_t first;

  void operator()() const {
    const auto* const offsets = reach(static_cast<const int*>(a.offsets), a.rows + 1);
    const auto* const columns =
        reach(static_cast<const int*>(a.columns) + offsets[0], a.nonzeros) - offsets[0];
    const auto* const values = reach(static_cast<const T*>(a.values) + offsets[0], a.nonzeros) - offsets[0];
    for (std::int64_t i = 0; i < a.rows; ++i) {
      T* const row = static_cast<T*>(y.values) + i * y.leading;
      if (beta != 0) reach(static_cast<const T*>(row), y.cols);
      T* const result = machine::instance().writing(row, static_cast<std::size_t>(y.cols), "cusparseSpMM");
      for (std::int64_t j = 0; j < x.cols; ++j) result[j] = beta == 0 ? T{0} : beta * result[j];
      const std::int64_t count = offsets[i + 1] - offsets[i];
      for (std::int64_t e = 0; e < count; ++e) {
        const std::int64_t at = offsets[i] + (e + first) % count;
        const T* const from = reach(static_cast<const T*>(x.values) + columns[at] * x.leading, x.cols);
        for (std::int64_t j = 0; j < x.cols; ++j) result[j] += alpha * values[at] * from[j];
      }
    }
  }

 private:
  template <class U>
  static const U* reach(const U* data, std::int64_t count) {
    return count > 0 ? machine::instance().reading(data, static_cast<std::size_t>(count), "cusparseSpMM")
                     : data;
  }
};

cusparseStatus_t check(cusparseOperation_t a_operation, cusparseOperation_t x_operation,
                       const cusparseSpMatDescr& a, const cusparseDnMatDescr& x, const cusparseDnMatDescr& y,
                       cudaDataType type) {
  static const bool serves = std::getenv("EMULATOR_CUSPARSE") != nullptr;
  if (!serves || a_operation != CUSPARSE_OPERATION_NON_TRANSPOSE ||
      x_operation != CUSPARSE_OPERATION_NON_TRANSPOSE || a.type != type || x.type != type || y.type != type)
    return CUSPARSE_STATUS_NOT_SUPPORTED;
  for (const void* address : {a.offsets, a.columns, a.values, static_cast<const void*>(x.values),
                              static_cast<const void*>(y.values)})
    if (!lies_at_16(address)) return CUSPARSE_STATUS_INVALID_VALUE;
  const bool fit = a.rows == y.rows && a.cols == x.rows && x.cols == y.cols &&
                   x.leading * size_of(type) % 16 == 0 && y.leading * size_of(type) % 16 == 0;
  return fit ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_INVALID_VALUE;
}

}  // namespace

}  // namespace emulator

extern "C" {

const char* CUSPARSEAPI cusparseGetErrorName(cusparseStatus_t status) {
  using named = std::pair<cusparseStatus_t, const char*>;
  for (const auto& [code, name] : {named{CUSPARSE_STATUS_SUCCESS, "CUSPARSE_STATUS_SUCCESS"},
                                   {CUSPARSE_STATUS_INVALID_VALUE, "CUSPARSE_STATUS_INVALID_VALUE"},
                                   {CUSPARSE_STATUS_EXECUTION_FAILED, "CUSPARSE_STATUS_EXECUTION_FAILED"},
                                   {CUSPARSE_STATUS_NOT_SUPPORTED, "CUSPARSE_STATUS_NOT_SUPPORTED"}})
    if (status == code) return name;
  return "unknown status";
}
const char* CUSPARSEAPI cusparseGetErrorString(cusparseStatus_t) { return "an error of the emulator"; }

cusparseStatus_t CUSPARSEAPI cusparseCreate(cusparseHandle_t* handle) {
  *handle = new cusparseContext;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t CUSPARSEAPI cusparseDestroy(cusparseHandle_t handle) {
  delete handle;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t CUSPARSEAPI cusparseSetStream(cusparseHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t CUSPARSEAPI cusparseCreateCsr(cusparseSpMatDescr_t* matrix, std::int64_t rows,
                                               std::int64_t cols, std::int64_t nonzeros, void* offsets,
                                               void* columns, void* values, cusparseIndexType_t offsets_type,
                                               cusparseIndexType_t columns_type, cusparseIndexBase_t base,
                                               cudaDataType type) {
  if (offsets_type != CUSPARSE_INDEX_32I || columns_type != CUSPARSE_INDEX_32I ||
      base != CUSPARSE_INDEX_BASE_ZERO)
    return CUSPARSE_STATUS_NOT_SUPPORTED;
  *matrix = new cusparseSpMatDescr{rows, cols, nonzeros, offsets, columns, values, type};
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t CUSPARSEAPI cusparseDestroySpMat(cusparseConstSpMatDescr_t matrix) {
  delete matrix;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t CUSPARSEAPI cusparseSpMatSetValues(cusparseSpMatDescr_t matrix, void* values) {
  matrix->values = values;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t CUSPARSEAPI cusparseCreateDnMat(cusparseDnMatDescr_t* matrix, std::int64_t rows,
                                                 std::int64_t cols, std::int64_t leading, void* values,
                                                 cudaDataType type, cusparseOrder_t order) {
  if (order != CUSPARSE_ORDER_ROW) return CUSPARSE_STATUS_NOT_SUPPORTED;
  if (leading < cols) return CUSPARSE_STATUS_INVALID_VALUE;
  *matrix = new cusparseDnMatDescr{rows, cols, leading, values, type};
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t CUSPARSEAPI cusparseDestroyDnMat(cusparseConstDnMatDescr_t matrix) {
  delete matrix;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t CUSPARSEAPI cusparseDnMatSetValues(cusparseDnMatDescr_t matrix, void* values) {
  matrix->values = values;
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t CUSPARSEAPI cusparseSpMM_bufferSize(cusparseHandle_t, cusparseOperation_t a_operation,
                                                     cusparseOperation_t x_operation, const void*,
                                                     cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t x,
                                                     const void*, cusparseDnMatDescr_t y, cudaDataType type,
                                                     cusparseSpMMAlg_t, std::size_t* bytes) {
  *bytes = 64;
  return emulator::check(a_operation, x_operation, *a, *x, *y, type);
}
cusparseStatus_t CUSPARSEAPI cusparseSpMM_preprocess(cusparseHandle_t, cusparseOperation_t a_operation,
                                                     cusparseOperation_t x_operation, const void*,
                                                     cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t x,
                                                     const void*, cusparseDnMatDescr_t y, cudaDataType type,
                                                     cusparseSpMMAlg_t algorithm, void* workspace) {
  static_cast<void>(emulator::call("cusparseSpMM_preprocess", [](auto&, auto&) { return cudaSuccess; }));
  auto* const prepared = const_cast<cusparseSpMatDescr_t>(a);
  prepared->prepared_in = workspace;
  prepared->prepared_for = algorithm;
  return emulator::check(a_operation, x_operation, *a, *x, *y, type);
}
cusparseStatus_t CUSPARSEAPI cusparseSpMM(cusparseHandle_t handle, cusparseOperation_t a_operation,
                                          cusparseOperation_t x_operation, const void* alpha,
                                          cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t x,
                                          const void* beta, cusparseDnMatDescr_t y, cudaDataType type,
                                          cusparseSpMMAlg_t algorithm, void* workspace) {
  const cusparseStatus_t fit = emulator::check(a_operation, x_operation, *a, *x, *y, type);
  if (fit != CUSPARSE_STATUS_SUCCESS) return fit;
  if (workspace == nullptr || workspace != a->prepared_in || algorithm != a->prepared_for)
    return CUSPARSE_STATUS_INVALID_VALUE;
  const std::int64_t first = algorithm == CUSPARSE_SPMM_CSR_ALG3 ? 0 : handle->products++;
  const auto run = [&]<class T>(T) {
    const emulator::row_major_product<T> work{
        *a, *x, *y, *static_cast<const T*>(alpha), *static_cast<const T*>(beta), first};
    return emulator::enqueue_work(handle->stream, "cusparseSpMM", work);
  };
  const cudaError_t code = type == CUDA_R_32F ? run(float{}) : run(double{});
  return code == cudaSuccess ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_EXECUTION_FAILED;
}

}  // extern "C"

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Zero-copy exchange of host matrix blocks with other libraries through DLPack. Needs DLPack's header.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <dlpack/dlpack.h>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "partita/comm/device_memory.hpp"
#include "partita/local/view.hpp"

namespace partita::io {

/// A block and the owner of its memory, which is released with the last copy of `owner`.
template <class T>
struct dlpack_block {
  matrix_view<T> block;
  std::shared_ptr<const void> owner;
};

namespace detail {

template <class T>
constexpr DLDataType dlpack_type{kDLFloat, 8 * sizeof(T), 1};

inline std::string to_string(DLDataType t) {
  const char* const kind = t.code == kDLFloat  ? "float"
                           : t.code == kDLInt  ? "int"
                           : t.code == kDLUInt ? "uint"
                                               : "";
  return (*kind != 0 ? kind : "code " + std::to_string(t.code) + " of bits ") + std::to_string(t.bits) +
         (t.lanes == 1 ? "" : " x " + std::to_string(t.lanes));
}

/// Throws error unless the tensor is a row-major matrix of T in host memory.
template <class T>
void require_block(const DLTensor& t) {
  if (t.device.device_type != kDLCPU)
    base::throw_error<error>({"a DLPack tensor on a device of type ", static_cast<int>(t.device.device_type),
                              " is not in host memory (type ", static_cast<int>(kDLCPU), ")"});
  const DLDataType type = dlpack_type<T>;
  if (t.dtype.code != type.code || t.dtype.bits != type.bits || t.dtype.lanes != type.lanes)
    base::throw_error<error>({"a DLPack tensor of ", to_string(t.dtype), " is not one of ", to_string(type)});
  if (t.ndim != 2)
    base::throw_error<shape_error>({"a DLPack tensor of ", t.ndim, " dimensions is not a matrix"});
  const matrix_shape shape{t.shape[0], t.shape[1]};
  if (t.strides == nullptr || shape.rows == 0 || shape.cols == 0) return;
  if ((shape.cols > 1 && t.strides[1] != 1) || (shape.rows > 1 && t.strides[0] < shape.cols))
    base::throw_error<shape_error>({"a DLPack tensor of ", shape, " with strides ", t.strides[0], " and ",
                                    t.strides[1], " is not row-major"});
}

/// An exported tensor, the arrays it points to, and its owner.
struct exported_block {
  DLManagedTensor tensor{};
  std::int64_t shape[2], strides[2];
  std::shared_ptr<const void> owner;
};

}  // namespace detail

/// This rank's block as a two-dimensional tensor sharing its host memory, which must stay valid until the
/// tensor's deleter is called; `owner` can keep it alive. The caller calls the deleter, or passes the tensor
/// to a library that does. Local; no communication.
template <class T>
requires(std::floating_point<T> &&
         !std::is_const_v<T>) DLManagedTensor* to_dlpack(matrix_view<T> block,
                                                         std::shared_ptr<const void> owner = nullptr) {
  auto made = std::make_unique<detail::exported_block>();
  made->shape[0] = block.extent(0), made->shape[1] = block.extent(1);
  made->strides[0] = block.stride(0), made->strides[1] = block.stride(1);
  made->owner = std::move(owner);
  DLManagedTensor& tensor = made->tensor;
  tensor.dl_tensor.data = block.data_handle();
  tensor.dl_tensor.device = {kDLCPU, 0};
  tensor.dl_tensor.ndim = 2;
  tensor.dl_tensor.dtype = detail::dlpack_type<T>;
  tensor.dl_tensor.shape = made->shape;
  tensor.dl_tensor.strides = made->strides;
  tensor.manager_ctx = made.get();
  tensor.deleter = [](DLManagedTensor* self) {
    delete static_cast<detail::exported_block*>(self->manager_ctx);
  };
  return &made.release()->tensor;
}
/// The block of a matrix, which is moved into the tensor: to_dlpack(std::move(x)). Throws error for a matrix
/// that is not on the host.
template <class Matrix>
requires(!std::is_reference_v<Matrix> && requires(Matrix & x) {
  x.local();
  x.mesh();
}) DLManagedTensor* to_dlpack(Matrix&& x) {
  if (device_memory_of(x.mesh().queue()) != nullptr)
    base::throw_error<error>(
        {"a matrix of ", x.shape(), " on a device cannot be a DLPack tensor in host memory"});
  auto owner = std::make_shared<Matrix>(std::move(x));
  const auto block = owner->local();
  return to_dlpack(block, std::move(owner));
}

/// The memory of a two-dimensional tensor as a block for dense::view(mesh, ..., block, owner); the matrix
/// then holds the tensor and calls its deleter on destruction. T: float or double, the tensor's element type.
/// Local; no communication. Throws error or shape_error for a tensor of another type or off the host, and for
/// one that is not two-dimensional, row-major and aligned; the caller then keeps ownership.
template <class T>
dlpack_block<T> from_dlpack(DLManagedTensor* tensor) {
  if (tensor == nullptr) throw error("a null pointer is not a DLPack tensor");
  const DLTensor& t = tensor->dl_tensor;
  detail::require_block<T>(t);
  char* const first = static_cast<char*>(t.data) + (t.data == nullptr ? 0 : t.byte_offset);
  if (reinterpret_cast<std::uintptr_t>(first) % alignof(T) != 0)
    base::throw_error<error>(
        {"a DLPack tensor with byte offset ", t.byte_offset, " is not aligned to its elements"});
  const local_index rows = base::to_local(t.shape[0], "the number of rows of a DLPack tensor");
  const local_index cols = base::to_local(t.shape[1], "the number of columns of a DLPack tensor");
  const bool strided = t.strides != nullptr && rows > 1;
  return {
      {reinterpret_cast<T*>(first), rows, cols, strided ? static_cast<std::ptrdiff_t>(t.strides[0]) : cols},
      std::shared_ptr<const void>(tensor, [tensor](const void*) {
        if (tensor->deleter != nullptr) tensor->deleter(tensor);
      })};
}

}  // namespace partita::io

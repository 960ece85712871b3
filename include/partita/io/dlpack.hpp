// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Zero-copy exchange of matrix blocks with other libraries through DLPack, on the host and on CUDA devices.
/// Needs DLPack's header.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <dlpack/dlpack.h>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "partita/local/view.hpp"
#include "partita/memory/device.hpp"

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

/// Whether a queue enqueues its work on a stream for which other streams can wait.
template <class Queue>
concept has_stream = requires(const Queue& q) {
  q.stream();
};

/// The device of a queue as DLPack numbers it.
template <class Queue>
DLDevice dlpack_device(const Queue& q) {
  if constexpr (has_stream<Queue>)
    return {kDLCUDA, q.device()};
  else
    return {kDLCPU, 0};
}

/// The stream with this number of the protocol, in which 1 and 2 are CUDA's; null for -1. Throws error for
/// 0, which the protocol forbids, and for other negative numbers.
inline void* numbered_stream(std::intptr_t number) {
  if (number == 0 || number < -1)
    base::throw_error<error>({"no stream has the number ", static_cast<std::int64_t>(number),
                              " in DLPack: the default stream is 1, and -1 orders nothing"});
  return number == -1 ? nullptr : reinterpret_cast<void*>(number);
}

/// For deleters, which must not throw: a device that fails here also fails in every later call.
template <class F>
void try_to(const F& f) noexcept {
  try {
    f();
  } catch (...) {
  }
}

/// Throws error unless the tensor is a row-major matrix of T on this device.
template <class T>
void require_block(const DLTensor& t, DLDevice here) {
  if (t.device.device_type != here.device_type)
    base::throw_error<error>(
        {"a DLPack tensor on a device of type ", static_cast<int>(t.device.device_type),
         here.device_type == kDLCPU ? " is not in host memory (type " : " is not on a CUDA device (type ",
         static_cast<int>(here.device_type), ")"});
  if (here.device_type != kDLCPU && t.device.device_id != here.device_id)
    base::throw_error<error>({"a DLPack tensor on device ", t.device.device_id, " is not on device ",
                              here.device_id, " of the queue"});
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

/// The tensor of a block; its deleter releases `owner`.
template <class T>
DLManagedTensor* export_block(matrix_view<T> block, DLDevice device, std::shared_ptr<const void> owner) {
  auto made = std::make_unique<exported_block>();
  made->shape[0] = block.extent(0), made->shape[1] = block.extent(1);
  made->strides[0] = block.stride(0), made->strides[1] = block.stride(1);
  made->owner = std::move(owner);
  DLManagedTensor& tensor = made->tensor;
  tensor.dl_tensor.data = block.data_handle();
  tensor.dl_tensor.device = device;
  tensor.dl_tensor.ndim = 2;
  tensor.dl_tensor.dtype = dlpack_type<T>;
  tensor.dl_tensor.shape = made->shape;
  tensor.dl_tensor.strides = made->strides;
  tensor.manager_ctx = made.get();
  tensor.deleter = [](DLManagedTensor* self) { delete static_cast<exported_block*>(self->manager_ctx); };
  return &made.release()->tensor;
}

/// The block of a tensor on this device. Calls ready() if the tensor is valid, and order() when the last
/// owner is gone, before the deleter.
template <class T, class Ready, class Order>
dlpack_block<T> import_block(DLManagedTensor* tensor, DLDevice here, Ready ready, Order order) {
  if (tensor == nullptr) throw error("a null pointer is not a DLPack tensor");
  const DLTensor& t = tensor->dl_tensor;
  require_block<T>(t, here);
  char* const first = static_cast<char*>(t.data) + (t.data == nullptr ? 0 : t.byte_offset);
  if (reinterpret_cast<std::uintptr_t>(first) % alignof(T) != 0)
    base::throw_error<error>(
        {"a DLPack tensor with byte offset ", t.byte_offset, " is not aligned to its elements"});
  const local_index rows = base::to_local(t.shape[0], "the number of rows of a DLPack tensor");
  const local_index cols = base::to_local(t.shape[1], "the number of columns of a DLPack tensor");
  ready();
  const bool strided = t.strides != nullptr && rows > 1;
  return {
      {reinterpret_cast<T*>(first), rows, cols, strided ? static_cast<std::ptrdiff_t>(t.strides[0]) : cols},
      std::shared_ptr<const void>(tensor, [tensor, order](const void*) {
        try_to(order);
        if (tensor->deleter != nullptr) tensor->deleter(tensor);
      })};
}

}  // namespace detail

/// This rank's block as a two-dimensional tensor sharing its host memory, which must stay valid until the
/// tensor's deleter is called; `owner` can keep it alive. The caller calls the deleter, or passes the tensor
/// to a library that does. Local; no communication.
template <class T>
requires(std::floating_point<T> &&
         !std::is_const_v<T>) DLManagedTensor* to_dlpack(matrix_view<T> block,
                                                         std::shared_ptr<const void> owner = nullptr) {
  return detail::export_block(block, {kDLCPU, 0}, std::move(owner));
}
/// The block of a matrix, which is moved into the tensor, on the host or on its CUDA device:
/// to_dlpack(std::move(x), stream). `stream` is the consumer's, as in __dlpack__: 1 the legacy default
/// stream, 2 the thread's, otherwise the address of a cudaStream_t; ignored on the host. It waits for the
/// work that made x. When the deleter is called, the memory is released after the work then on the stream,
/// which must exist until then. With -1 nothing is ordered, and the caller must wait for both. Local; the
/// host does not wait; no communication. Throws error for another number, and device_error.
template <class Matrix>
requires(!std::is_reference_v<Matrix> && requires(Matrix & x) {
  x.local();
  x.mesh();
}) DLManagedTensor* to_dlpack(Matrix&& x, std::intptr_t stream = 1) {
  const auto q = x.mesh().queue();
  std::shared_ptr<Matrix> owner;
  if constexpr (detail::has_stream<std::remove_const_t<decltype(q)>>) {
    using stream_type = decltype(q.stream());
    const auto consumer = static_cast<stream_type>(detail::numbered_stream(stream));
    if (consumer != nullptr) q.make_wait(consumer);
    owner = std::shared_ptr<Matrix>(new Matrix(std::move(x)), [own = q.owner(), consumer](Matrix* gone) {
      if (consumer != nullptr) detail::try_to([&] { own->wait_for(consumer); });
      delete gone;
    });
  } else {
    owner = std::make_shared<Matrix>(std::move(x));
  }
  const auto block = owner->local();
  return detail::export_block(block, detail::dlpack_device(q), std::move(owner));
}

/// The memory of a two-dimensional tensor as a block for dense::view(mesh, ..., block, owner); the matrix
/// then holds the tensor and calls its deleter on destruction. T: float or double, the tensor's element
/// type. Local; no communication. Throws error or shape_error if the tensor has another type, is not on the
/// host, or is not two-dimensional, row-major and aligned; the caller then keeps ownership.
template <class T>
dlpack_block<T> from_dlpack(DLManagedTensor* tensor) {
  return detail::import_block<T>(
      tensor, {kDLCPU, 0}, [] {}, [] {});
}
/// The same on the device of a queue: the host, or the CUDA device with its number. `stream` is the
/// producer's, numbered as for to_dlpack: later work of q waits for it, and when the last owner is gone it
/// waits for q before the deleter is called. With -1, for a producer that was told q's stream by
/// __dlpack__(stream), q waits for nothing, and the host waits for q before the deleter is called. Throws
/// as above, error for a tensor on another device and for a number that is not a stream's, and
/// device_error.
template <class T, class Device>
dlpack_block<T> from_dlpack(DLManagedTensor* tensor, const device_queue<Device>& q,
                            std::intptr_t stream = -1) {
  const DLDevice here = detail::dlpack_device(q);
  if constexpr (detail::has_stream<device_queue<Device>>) {
    using stream_type = decltype(q.stream());
    const auto producer = static_cast<stream_type>(detail::numbered_stream(stream));
    const auto ready = [&] {
      if (producer != nullptr) q.wait_for(producer);
    };
    return detail::import_block<T>(tensor, here, ready, [q, producer] {
      producer != nullptr ? q.make_wait(producer) : q.synchronize();
    });
  } else {
    return detail::import_block<T>(
        tensor, here, [] {}, [] {});
  }
}

}  // namespace partita::io

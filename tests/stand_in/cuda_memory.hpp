#pragma once
// Memory of the stand-in's runtime; part of cuda_runtime_api.h.
#include <new>

#include "machine.hpp"

namespace stand_in {

inline constexpr std::align_val_t page{4096};

/// Memory of stream `s` from now on, poisoned when the stream gets there; at once where there is no stream.
inline cudaError_t allocate(machine& m, void** memory, std::size_t bytes, int device, stream* s) {
  *memory = m.arena.allocate(bytes, device);
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
  const auto fill = [&m, block = *memory] {
    m.arena.poison(block);
    return true;
  };
  if (s != nullptr) {
    m.enqueue(*s, fill);
  } else {
    m.arena.open();
    fill();
    m.arena.close();
  }
  return cudaSuccess;
}

/// What kind of memory a copy names; its bytes must lie in one block, else it is of no kind.
enum class memory_kind { none, pageable, pinned, device };
inline memory_kind kind_of(const machine& m, const void* p, std::size_t bytes) {
  if (m.arena.contains(p)) return m.arena.covers(p, bytes) ? memory_kind::device : memory_kind::none;
  auto next = m.pinned.upper_bound(p);
  if (next == m.pinned.begin()) return memory_kind::pageable;
  const auto* begin = static_cast<const unsigned char*>((--next)->first);
  const auto* at = static_cast<const unsigned char*>(p);
  if (at >= begin + next->second) return memory_kind::pageable;
  return at + bytes <= begin + next->second ? memory_kind::pinned : memory_kind::none;
}
inline bool agrees(cudaMemcpyKind named, memory_kind from, memory_kind to) {
  const int actual = (from == memory_kind::device ? 2 : 0) + (to == memory_kind::device ? 1 : 0);
  return named == cudaMemcpyDefault || static_cast<int>(named) == actual;
}

/// `rows` rows of `width` bytes each, so many bytes apart.
struct copy_job {
  void* to;
  std::size_t to_pitch;
  const void* from;
  std::size_t from_pitch;
  std::size_t width, rows;

  std::size_t extent(std::size_t pitch) const { return rows == 0 ? 0 : (rows - 1) * pitch + width; }
  void run() const {
    for (std::size_t r = 0; r < rows; ++r)
      std::memmove(static_cast<char*>(to) + r * to_pitch, static_cast<const char*>(from) + r * from_pitch,
                   width);
  }
};

inline cudaError_t copy(machine& m, std::unique_lock<std::mutex>& lock, const copy_job& job,
                        cudaMemcpyKind kind, cudaStream_t handle) {
  const auto s = m.find(handle);
  if (!s) return cudaErrorInvalidResourceHandle;
  if (job.width == 0 || job.rows == 0) return cudaSuccess;
  if (job.to_pitch < job.width || job.from_pitch < job.width) return cudaErrorInvalidValue;
  const memory_kind from = kind_of(m, job.from, job.extent(job.from_pitch)),
                    to = kind_of(m, job.to, job.extent(job.to_pitch));
  if (from == memory_kind::none || to == memory_kind::none) return cudaErrorInvalidValue;
  if (!agrees(kind, from, to)) return cudaErrorInvalidMemcpyDirection;
  m.enqueue(*s, [job] {
    job.run();
    return true;
  });
  if (from != memory_kind::pageable && to != memory_kind::pageable) return cudaSuccess;
  static_cast<void>(m.enter("a pageable copy"));
  return m.wait_for(lock, *s, s->given);
}

}  // namespace stand_in

inline cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return stand_in::call("cudaMalloc", [&](auto& m, auto&) {
    return stand_in::allocate(m, memory, bytes, stand_in::current_device(), nullptr);
  });
}
inline cudaError_t cudaFree(void* memory) {
  return stand_in::call("cudaFree", [&](auto& m, auto&) {
    if (memory == nullptr) return cudaSuccess;
    m.run_everything();
    if (!m.arena.retire(memory)) return cudaErrorInvalidValue;
    m.arena.open();
    m.arena.release(memory);
    m.arena.close();
    return cudaSuccess;
  });
}
inline cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t handle) {
  return stand_in::call("cudaMallocAsync", [&](auto& m, auto&) {
    const auto s = m.find(handle);
    return s ? stand_in::allocate(m, memory, bytes, s->device, s.get()) : cudaErrorInvalidResourceHandle;
  });
}
inline cudaError_t cudaMallocFromPoolAsync(void** memory, std::size_t bytes, cudaMemPool_t pool,
                                           cudaStream_t handle) {
  return stand_in::call("cudaMallocFromPoolAsync", [&](auto& m, auto&) {
    const auto s = m.find(handle);
    if (!s || pool == nullptr) return cudaErrorInvalidResourceHandle;
    return stand_in::allocate(m, memory, bytes, pool->device, s.get());
  });
}
/// The memory is poisoned and given back when the stream gets there; no call may name it from now on.
inline cudaError_t cudaFreeAsync(void* memory, cudaStream_t handle) {
  return stand_in::call("cudaFreeAsync", [&](auto& m, auto&) {
    const auto s = m.find(handle);
    if (!s) return cudaErrorInvalidResourceHandle;
    if (!m.arena.retire(memory)) return cudaErrorInvalidValue;
    m.enqueue(*s, [&m, memory] {
      m.arena.release(memory);
      return true;
    });
    return cudaSuccess;
  });
}

inline cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return stand_in::call("cudaMemPoolCreate", [&](auto& m, auto&) {
    if (properties->allocType != cudaMemAllocationTypePinned ||
        properties->location.type != cudaMemLocationTypeDevice)
      return cudaErrorInvalidValue;
    if (properties->location.id < 0 || properties->location.id >= m.devices) return cudaErrorInvalidDevice;
    *pool = new CUmemPoolHandle_st{properties->location.id};
    return cudaSuccess;
  });
}
inline cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return stand_in::call("cudaMemPoolSetAttribute", [](auto&, auto&) { return cudaSuccess; });
}
inline cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return stand_in::call("cudaMemPoolDestroy", [&](auto&, auto&) {
    delete pool;
    return cudaSuccess;
  });
}

inline cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  return stand_in::call("cudaMallocHost", [&](auto& m, auto&) {
    *memory = ::operator new(bytes, stand_in::page);
    std::memset(*memory, 0xFF, bytes);
    m.pinned.emplace(*memory, bytes);
    return cudaSuccess;
  });
}
inline cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  return cudaMallocHost(memory, bytes);
}
inline cudaError_t cudaFreeHost(void* memory) {
  return stand_in::call("cudaFreeHost", [&](auto& m, auto&) {
    m.run_everything();
    if (m.pinned.erase(memory) == 0) return cudaErrorInvalidValue;
    ::operator delete(memory, stand_in::page);
    return cudaSuccess;
  });
}

inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t handle = nullptr) {
  return stand_in::call("cudaMemcpyAsync", [&](auto& m, auto& lock) {
    return stand_in::copy(m, lock, {to, bytes, from, bytes, bytes, 1}, kind, handle);
  });
}
inline cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                     std::size_t width, std::size_t height, cudaMemcpyKind kind,
                                     cudaStream_t handle = nullptr) {
  return stand_in::call("cudaMemcpy2DAsync", [&](auto& m, auto& lock) {
    return stand_in::copy(m, lock, {to, to_pitch, from, from_pitch, width, height}, kind, handle);
  });
}
inline cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes,
                                   cudaStream_t handle = nullptr) {
  return stand_in::call("cudaMemsetAsync", [&](auto& m, auto&) {
    const auto s = m.find(handle);
    if (!s) return cudaErrorInvalidResourceHandle;
    if (bytes == 0) return cudaSuccess;
    if (!m.arena.covers(memory, bytes)) return cudaErrorInvalidValue;
    m.enqueue(*s, [=] {
      std::memset(memory, value, bytes);
      return true;
    });
    return cudaSuccess;
  });
}

inline cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* p) {
  return stand_in::call("cudaPointerGetAttributes", [&](auto& m, auto&) {
    *attributes = {cudaMemoryTypeUnregistered, -1, nullptr, nullptr};
    const stand_in::memory_kind kind = stand_in::kind_of(m, p, 1);
    void* const memory = const_cast<void*>(p);
    if (kind == stand_in::memory_kind::device) {
      int device = 0;
      m.arena.covers(p, 1, &device);
      *attributes = {cudaMemoryTypeDevice, device, memory, nullptr};
    } else if (kind == stand_in::memory_kind::pinned) {
      *attributes = {cudaMemoryTypeHost, stand_in::current_device(), memory, memory};
    }
    return cudaSuccess;
  });
}

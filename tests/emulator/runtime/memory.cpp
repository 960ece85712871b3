// SPDX-License-Identifier: Apache-2.0
// Memory of the emulated runtime: allocation, pools, page-locked memory, copies.
#include <algorithm>
#include <cstring>
#include <new>

#include "machine.hpp"

namespace emulator {

namespace {

constexpr std::align_val_t host_page{4096};

/// Memory of stream `s` from now on, poisoned when the stream gets there; at once where there is no stream.
cudaError_t allocate(machine& m, void** memory, std::size_t bytes, int device, memory_pool* pool, stream* s) {
  *memory = m.arena.allocate(bytes, device, pool);
  if (*memory == nullptr) {  // a stream has what it freed itself, and no other's until that is waited for
    s == nullptr ? m.run_everything() : static_cast<void>(m.run(*s, s->given));
    *memory = m.arena.allocate(bytes, device, pool);
  }
  if (*memory == nullptr)
    return fail_with(cudaErrorMemoryAllocation, std::to_string(bytes) + " bytes more than the " +
                                                    std::to_string(m.arena.taken(device)) +
                                                    " that are taken of device " + std::to_string(device) +
                                                    "'s " + std::to_string(m.arena.capacity()));
  const auto fill = [&m, block = *memory, bytes] {
    m.arena.poison(block);
    m.races.begin_block(block, bytes);
  };
  if (s != nullptr && s->capture) {
    s->capture->work->memory.push_back(*memory);
    m.of_graphs.insert(*memory);
  }
  if (s != nullptr)
    m.enqueue_work(*s, fill);
  else
    m.arena.poison(*memory);
  return cudaSuccess;
}

/// What kind of memory a copy names; its bytes must lie in one block, else it is of no kind.
enum class memory_kind { none, pageable, pinned, device };
memory_kind kind_of(const machine& m, const void* p, std::size_t bytes) {
  if (m.arena.contains(p)) return m.arena.covers(p, bytes) ? memory_kind::device : memory_kind::none;
  auto next = m.pinned.upper_bound(p);
  if (next == m.pinned.begin()) return memory_kind::pageable;
  const auto* begin = static_cast<const unsigned char*>((--next)->first);
  const auto* at = static_cast<const unsigned char*>(p);
  if (at >= begin + next->second) return memory_kind::pageable;
  return at + bytes <= begin + next->second ? memory_kind::pinned : memory_kind::none;
}
bool agrees(cudaMemcpyKind named, memory_kind from, memory_kind to) {
  const int actual = (from == memory_kind::device ? 2 : 0) + (to == memory_kind::device ? 1 : 0);
  return named == cudaMemcpyDefault || static_cast<int>(named) == actual;
}

cudaError_t refuse_overrun(const char* what, machine& m, const void* p, std::size_t bytes, bool writes) {
  const std::string does = m.arena.contains(p) ? m.arena.describe_overrun(p, writes)
                                               : std::string(writes ? "writes" : "reads") +
                                                     " beyond a block of page-locked memory";
  return refuse_with(cudaErrorInvalidValue,
                     std::string(what) + " of " + std::to_string(bytes) + " bytes " + does);
}

/// `rows` rows of `width` bytes each, so many bytes apart.
struct copy_job {
  void* to;
  std::size_t to_pitch;
  const void* from;
  std::size_t from_pitch;
  std::size_t width, rows;

  std::size_t extent(std::size_t pitch) const { return rows == 0 ? 0 : (rows - 1) * pitch + width; }
  void run(machine& m) const {
    for (std::size_t r = 0; r < rows; ++r) {
      char* const target = static_cast<char*>(to) + r * to_pitch;
      const char* const source = static_cast<const char*>(from) + r * from_pitch;
      const char* const there = m.arena.contains(source) ? m.reading(source, width, "a copy") : source;
      std::memmove(m.arena.contains(target) ? m.writing(target, width, "a copy") : target, there, width);
    }
  }
};

cudaError_t copy(machine& m, std::unique_lock<std::mutex>& lock, const copy_job& job, cudaMemcpyKind kind,
                 cudaStream_t handle, bool waits) {
  const auto s = m.find(handle);
  if (!s) return cudaErrorInvalidResourceHandle;
  if (job.width == 0 || job.rows == 0) return cudaSuccess;
  if (job.to_pitch < job.width || job.from_pitch < job.width) return cudaErrorInvalidValue;
  const memory_kind from = kind_of(m, job.from, job.extent(job.from_pitch)),
                    to = kind_of(m, job.to, job.extent(job.to_pitch));
  if (from == memory_kind::none)
    return refuse_overrun("a copy", m, job.from, job.extent(job.from_pitch), false);
  if (to == memory_kind::none) return refuse_overrun("a copy", m, job.to, job.extent(job.to_pitch), true);
  if (!agrees(kind, from, to)) return cudaErrorInvalidMemcpyDirection;
  m.enqueue_work(*s, [&m, job] { job.run(m); });
  if (!waits && from != memory_kind::pageable && to != memory_kind::pageable) return cudaSuccess;
  static_cast<void>(m.enter("a pageable copy"));
  return m.wait_for(lock, *s, s->given);
}

cudaError_t set(machine& m, std::unique_lock<std::mutex>& lock, void* memory, int value, std::size_t bytes,
                cudaStream_t handle, bool waits) {
  const auto s = m.find(handle);
  if (!s) return cudaErrorInvalidResourceHandle;
  if (bytes == 0) return cudaSuccess;
  if (!m.arena.covers(memory, bytes)) return refuse_overrun("cudaMemset", m, memory, bytes, true);
  m.enqueue_work(*s, [&m, memory, value, bytes] {
    std::memset(m.writing(static_cast<char*>(memory), bytes, "cudaMemset"), value, bytes);
  });
  return waits ? m.wait_for(lock, *s, s->given) : cudaSuccess;
}

}  // namespace

}  // namespace emulator

using emulator::call;

extern "C" {

cudaError_t CUDARTAPI cudaMalloc(void** memory, std::size_t bytes) {
  return call("cudaMalloc", [&](auto& m, auto&) {
    m.require_no_capture("this");
    return emulator::allocate(m, memory, bytes, emulator::current_device(), nullptr, nullptr);
  });
}
cudaError_t CUDARTAPI cudaFree(void* memory) {
  return call("cudaFree", [&](auto& m, auto&) {
    m.require_no_capture("this");
    if (memory == nullptr) return cudaSuccess;
    m.run_everything();
    if (!m.arena.retire(memory)) return cudaErrorInvalidValue;
    m.of_graphs.erase(memory);
    m.races.forget(memory, m.arena.find(memory)->bytes);
    m.arena.release(memory);
    return cudaSuccess;
  });
}
cudaError_t CUDARTAPI cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t handle) {
  return call("cudaMallocAsync", [&](auto& m, auto&) {
    const auto s = m.find(handle);
    if (!s) return cudaErrorInvalidResourceHandle;
    return emulator::allocate(m, memory, bytes, s->device, &m.default_pool(s->device), s.get());
  });
}
cudaError_t CUDARTAPI cudaMallocFromPoolAsync(void** memory, std::size_t bytes, cudaMemPool_t pool,
                                              cudaStream_t handle) {
  return call("cudaMallocFromPoolAsync", [&](auto& m, auto&) {
    const auto s = m.find(handle);
    if (!s || m.pools.count(pool) == 0) return cudaErrorInvalidResourceHandle;
    return emulator::allocate(m, memory, bytes, pool->device, pool, s.get());
  });
}
/// The memory is poisoned and given back when the stream gets there; no call may name it from now on.
cudaError_t CUDARTAPI cudaFreeAsync(void* memory, cudaStream_t handle) {
  return call("cudaFreeAsync", [&](auto& m, auto&) {
    const auto s = m.find(handle);
    if (!s) return cudaErrorInvalidResourceHandle;
    if (s->capture) {
      const auto& of_it = s->capture->work->memory;
      if (std::find(of_it.begin(), of_it.end(), memory) == of_it.end())
        s->capture->refuse(cudaErrorInvalidValue, "memory from before it is freed");
      m.enqueue_work(*s, [&m, memory] { m.arena.poison(memory); });
      return cudaSuccess;
    }
    if (!m.arena.retire(memory)) return cudaErrorInvalidValue;
    m.of_graphs.erase(memory);
    m.enqueue_work(*s, [&m, memory] {
      if (const auto* const b = m.arena.find(memory))
        if (const auto race = m.races.end_block(memory, b->bytes))
          throw emulator::ptx::fault("freeing memory races with " + race->with + ": " +
                                     m.arena.describe(memory));
      m.arena.release(memory);
    });
    return cudaSuccess;
  });
}

cudaError_t CUDARTAPI cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return call("cudaMemPoolCreate", [&](auto& m, auto&) {
    if (properties->allocType != cudaMemAllocationTypePinned ||
        properties->location.type != cudaMemLocationTypeDevice)
      return cudaErrorInvalidValue;
    if (properties->location.id < 0 || properties->location.id >= m.devices) return cudaErrorInvalidDevice;
    *pool = new CUmemPoolHandle_st;
    (*pool)->device = properties->location.id;
    m.pools.insert(*pool);
    return cudaSuccess;
  });
}
cudaError_t CUDARTAPI cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return call("cudaMemPoolSetAttribute", [&](auto& m, auto&) {
    if (m.pools.count(pool) == 0) return cudaErrorInvalidValue;
    if (attribute == cudaMemPoolAttrReleaseThreshold)
      std::memcpy(&pool->threshold, value, sizeof(pool->threshold));
    return cudaSuccess;
  });
}
cudaError_t CUDARTAPI cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return call("cudaMemPoolGetAttribute", [&](auto& m, auto&) {
    if (m.pools.count(pool) == 0) return cudaErrorInvalidValue;
    std::size_t found = pool->threshold;
    if (attribute == cudaMemPoolAttrReservedMemCurrent) found = pool->reserved;
    if (attribute == cudaMemPoolAttrUsedMemCurrent) found = pool->used;
    std::memcpy(value, &found, sizeof(found));
    return cudaSuccess;
  });
}
/// Work that frees must have been waited for: what it has not freed yet stays.
cudaError_t CUDARTAPI cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t keep) {
  return call("cudaMemPoolTrimTo", [&](auto& m, auto&) {
    if (m.pools.count(pool) == 0) return cudaErrorInvalidValue;
    m.arena.trim(*pool, keep);
    return cudaSuccess;
  });
}
/// What is allocated from it stays until it is freed; a real pool goes then, this one stays as long as the
/// program.
cudaError_t CUDARTAPI cudaMemPoolDestroy(cudaMemPool_t pool) {
  return call("cudaMemPoolDestroy", [&](auto& m, auto&) {
    if (m.pools.erase(pool) == 0) return cudaErrorInvalidValue;
    pool->threshold = 0;
    m.arena.trim(*pool, 0);
    return cudaSuccess;
  });
}
cudaError_t CUDARTAPI cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return call("cudaDeviceGetDefaultMemPool", [&](auto& m, auto&) {
    if (device < 0 || device >= m.devices) return cudaErrorInvalidDevice;
    *pool = static_cast<cudaMemPool_t>(&m.default_pool(device));
    return cudaSuccess;
  });
}
cudaError_t CUDARTAPI cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return cudaDeviceGetDefaultMemPool(pool, device);
}

cudaError_t CUDARTAPI cudaMallocHost(void** memory, std::size_t bytes) {
  return call("cudaMallocHost", [&](auto& m, auto&) {
    m.require_no_capture("this");
    *memory = ::operator new(bytes, emulator::host_page);
    std::memset(*memory, 0xFF, bytes);
    m.pinned.emplace(*memory, bytes);
  });
}
cudaError_t CUDARTAPI cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  return cudaMallocHost(memory, bytes);
}
cudaError_t CUDARTAPI cudaFreeHost(void* memory) {
  return call("cudaFreeHost", [&](auto& m, auto&) {
    m.require_no_capture("this");
    if (memory == nullptr) return cudaSuccess;
    m.run_everything();
    if (m.pinned.erase(memory) == 0) return cudaErrorInvalidValue;
    ::operator delete(memory, emulator::host_page);
    return cudaSuccess;
  });
}

cudaError_t CUDARTAPI cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return call("cudaMemcpy", [&](auto& m, auto& lock) {
    m.require_no_capture("this");
    return emulator::copy(m, lock, {to, bytes, from, bytes, bytes, 1}, kind, nullptr, true);
  });
}
cudaError_t CUDARTAPI cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                                      cudaStream_t handle) {
  return call("cudaMemcpyAsync", [&](auto& m, auto& lock) {
    return emulator::copy(m, lock, {to, bytes, from, bytes, bytes, 1}, kind, handle, false);
  });
}
cudaError_t CUDARTAPI cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                                        std::size_t from_pitch, std::size_t width, std::size_t height,
                                        cudaMemcpyKind kind, cudaStream_t handle) {
  return call("cudaMemcpy2DAsync", [&](auto& m, auto& lock) {
    return emulator::copy(m, lock, {to, to_pitch, from, from_pitch, width, height}, kind, handle, false);
  });
}
cudaError_t CUDARTAPI cudaMemset(void* memory, int value, std::size_t bytes) {
  return call("cudaMemset", [&](auto& m, auto& lock) {
    m.require_no_capture("this");
    return emulator::set(m, lock, memory, value, bytes, nullptr, true);
  });
}
cudaError_t CUDARTAPI cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t handle) {
  return call("cudaMemsetAsync", [&](auto& m, auto& lock) {
    return emulator::set(m, lock, memory, value, bytes, handle, false);
  });
}

cudaError_t CUDARTAPI cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* p) {
  return call("cudaPointerGetAttributes", [&](auto& m, auto&) {
    *attributes = {};
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = -1;
    const emulator::memory_kind kind = emulator::kind_of(m, p, 1);
    void* const memory = const_cast<void*>(p);
    if (kind == emulator::memory_kind::device) {
      attributes->type = cudaMemoryTypeDevice;
      m.arena.covers(p, 1, &attributes->device);
      attributes->devicePointer = memory;
    } else if (kind == emulator::memory_kind::pinned) {
      attributes->type = cudaMemoryTypeHost;
      attributes->device = emulator::current_device();
      attributes->devicePointer = attributes->hostPointer = memory;
    }
  });
}

cudaError_t CUDARTAPI cudaMemcpyToSymbolAsync(const void* symbol, const void* from, std::size_t bytes,
                                              std::size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
  void* address = nullptr;
  if (const cudaError_t code = cudaGetSymbolAddress(&address, symbol); code != cudaSuccess) return code;
  return cudaMemcpyAsync(static_cast<char*>(address) + offset, from, bytes, kind, stream);
}
cudaError_t CUDARTAPI cudaMemcpyFromSymbolAsync(void* to, const void* symbol, std::size_t bytes,
                                                std::size_t offset, cudaMemcpyKind kind,
                                                cudaStream_t stream) {
  void* address = nullptr;
  if (const cudaError_t code = cudaGetSymbolAddress(&address, symbol); code != cudaSuccess) return code;
  return cudaMemcpyAsync(to, static_cast<const char*>(address) + offset, bytes, kind, stream);
}
cudaError_t CUDARTAPI cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes,
                                         std::size_t offset, cudaMemcpyKind kind) {
  const cudaError_t code = cudaMemcpyToSymbolAsync(symbol, from, bytes, offset, kind, nullptr);
  return code == cudaSuccess ? cudaStreamSynchronize(nullptr) : code;
}
cudaError_t CUDARTAPI cudaMemcpyFromSymbol(void* to, const void* symbol, std::size_t bytes,
                                           std::size_t offset, cudaMemcpyKind kind) {
  const cudaError_t code = cudaMemcpyFromSymbolAsync(to, symbol, bytes, offset, kind, nullptr);
  return code == cudaSuccess ? cudaStreamSynchronize(nullptr) : code;
}

}  // extern "C"

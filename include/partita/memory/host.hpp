// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The host device: ordinary memory and a fixed number of threads per rank.

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "partita/base/error.hpp"
#include "partita/memory/device.hpp"
#include "partita/memory/far_store.hpp"
#include "partita/memory/kept_blocks.hpp"
#include "partita/memory/large_pages.hpp"

/// Device tag, and the kernels found by ADL on its queue.
namespace partita::on_host {

struct host {};

/// Allocates host memory with 64-byte alignment.
class host_memory {
  auto back() const {
    return [this](void* memory, std::size_t bytes) { give_back(memory, bytes); };
  }

 public:
  host_memory() = default;
  host_memory(const host_memory&) = delete;
  host_memory& operator=(const host_memory&) = delete;
  ~host_memory() { kept_.give_back_free(back()); }

  void* allocate(std::size_t bytes) const {
    if (far_ && bytes >= far_->from) return allocate_far(bytes);
    if (recycles_)
      if (void* const memory = kept_.take(bytes, back())) return memory;
    if (!meter_->fits(bytes)) kept_.give_back_free(back());
    if (far_ && !meter_->fits(bytes)) return allocate_far(bytes);
    meter_->add(bytes);
    void* const memory = ::operator new(bytes, alignment, std::nothrow);
    if (memory == nullptr) {
      meter_->remove(bytes);
      throw std::bad_alloc();
    }
    partita::memory::ask_for_large_pages(memory, bytes);
    if (recycles_) kept_.keep(memory, bytes);
    return memory;
  }
  void release(void* memory, std::size_t bytes) const noexcept {
    if (far_ && far_->store->contains(memory)) {
      far_meter_->remove(bytes);
      return far_->store->release(memory, bytes);
    }
    if (!kept_.put(memory)) give_back(memory, bytes);
  }
  /// From now on keeps what is allocated, when it is released, for allocations that need at least three
  /// quarters of it.
  /// Only the thread that owns the queue may then allocate and release.
  void recycle() const { recycles_ = true; }
  /// From now on buffers that are large or that the budget does not hold live in the store.
  void use_far(const far_options& options) const { far_ = options; }
  /// What use_far was given, or none.
  const std::optional<far_options>& far() const { return far_; }
  const std::shared_ptr<memory::memory_meter>& shared_meter() const { return meter_; }
  /// Of the buffers in the store.
  const std::shared_ptr<memory::memory_meter>& far_meter() const { return far_meter_; }

 private:
  static constexpr std::align_val_t alignment{64};

  void* allocate_far(std::size_t bytes) const {
    void* const memory = far_->store->allocate(bytes);
    far_meter_->add(bytes);
    return memory;
  }
  void give_back(void* memory, std::size_t bytes) const noexcept {
    ::operator delete(memory, alignment);
    meter_->remove(bytes);
  }

  std::shared_ptr<memory::memory_meter> meter_ = std::make_shared<memory::memory_meter>();
  std::shared_ptr<memory::memory_meter> far_meter_ = std::make_shared<memory::memory_meter>();
  mutable bool recycles_ = false;
  mutable memory::kept_blocks kept_;
  mutable std::optional<far_options> far_;
};

}  // namespace partita::on_host

namespace partita {

using on_host::host;

template <>
inline constexpr bool local::multiplies_bfloat16<host> = true;
template <>
inline constexpr bool local::stores_bfloat16<host> = true;
template <>
inline constexpr bool local::multiplies_factors<host> = true;
template <>
inline constexpr bool memory::enqueues<host> = false;

/// The threads and memory of one rank on the host. Value handle: copies share the memory meter.
template <>
class device_queue<host> {
 public:
  using allocator = on_host::host_memory;

  /// Extensions, such as a gemm_backend, are retrieved with find(). Throws mesh_error if threads < 1.
  template <class... Extension>
  explicit device_queue(int threads = 1, Extension... extensions) : threads_(threads) {
    if (threads < 1) base::throw_error<mesh_error>({"a host queue needs at least one thread, not ", threads});
    (extensions_->put(std::make_shared<Extension>(std::move(extensions))), ...);
  }

  int threads() const { return threads_; }
  /// The extension of this type, or null.
  template <class Extension>
  Extension* find() const {
    Extension* const own = own_.find<Extension>();
    return own != nullptr ? own : extensions_->find<Extension>();
  }
  /// Replaces the extension of this type, if any.
  template <class Extension>
  Extension& extend(std::shared_ptr<Extension> extension) const {
    return extensions_->put(std::move(extension));
  }
  /// A copy with an extension that only its own copies share; all others it shares with this queue, those to
  /// come, too.
  template <class Extension>
  device_queue with(std::shared_ptr<Extension> extension) const {
    device_queue other(*this);
    other.own_.put(std::move(extension));
    return other;
  }
  /// No-op: host work completes before the call that runs it returns.
  void synchronize() const {}
  const std::shared_ptr<const on_host::host_memory>& owner() const { return memory_; }
  const std::shared_ptr<memory::memory_meter>& meter() const { return memory_->shared_meter(); }
  /// A budget: from now on buffers of this queue and its copies that would make their bytes exceed `bytes`
  /// throw budget_error.
  void limit_memory(std::size_t bytes) const { memory_->shared_meter()->limit(bytes); }
  /// From now on keeps memory that buffers release, for buffers to come: work whose sizes vary a little from
  /// step to step then ceases to allocate. The meter counts what is kept. The queue belongs to one thread.
  void recycle_memory() const { memory_->recycle(); }

 private:
  int threads_;
  std::shared_ptr<const on_host::host_memory> memory_ = std::make_shared<const on_host::host_memory>();
  memory::detail::typed_values own_;
  std::shared_ptr<memory::detail::typed_values> extensions_ =
      std::make_shared<memory::detail::typed_values>();
};

/// Copies elements; operands must not overlap.
template <class T>
void copy(const device_queue<host>&, std::span<const T> from, std::span<T> to) {
  std::copy(from.begin(), from.end(), to.begin());
}

}  // namespace partita

namespace partita::on_host {

/// Writes 0 to one element of each page in the even share of part `part` of `parts`, so that the system
/// places these pages near the calling thread; not in far memory. For memory that nothing has been written
/// to.
template <class T>
void touch_pages(const device_queue<host>& q, std::span<T> fresh, int part, int parts) {
  constexpr std::size_t step = std::max<std::size_t>(4096 / sizeof(T), 1);
  if (q.owner()->far()) return;
  const auto share = [&](int p) {
    return fresh.size() * static_cast<std::size_t>(p) / static_cast<std::size_t>(parts);
  };
  for (std::size_t k = (share(part) + step - 1) / step * step; k < share(part + 1); k += step) fresh[k] = T();
}

}  // namespace partita::on_host

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The host device: ordinary memory and a fixed number of threads per rank.

#include <algorithm>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "partita/base/error.hpp"
#include "partita/memory/device.hpp"

/// Device tag, and the kernels found by ADL on its queue.
namespace partita::on_host {

struct host {};

/// Allocates host memory with 64-byte alignment.
class host_memory {
 public:
  void* allocate(std::size_t bytes) const {
    void* const memory = ::operator new(bytes, alignment);
    meter_->add(bytes);
    return memory;
  }
  void release(void* memory, std::size_t bytes) const noexcept {
    ::operator delete(memory, alignment);
    meter_->remove(bytes);
  }
  const std::shared_ptr<memory_meter>& shared_meter() const { return meter_; }

 private:
  static constexpr std::align_val_t alignment{64};

  std::shared_ptr<memory_meter> meter_ = std::make_shared<memory_meter>();
};

}  // namespace partita::on_host

namespace partita {

using on_host::host;

/// The threads and memory of one rank on the host. Value handle: copies share the memory meter.
template <>
class device_queue<host> {
 public:
  using allocator = on_host::host_memory;

  /// Extensions, such as a gemm_backend, are retrieved with find(). Throws mesh_error if threads < 1.
  template <class... Extension>
  explicit device_queue(int threads = 1, Extension... extensions) : threads_(threads) {
    if (threads < 1) throw_error<mesh_error>({"a host queue needs at least one thread, not ", threads});
    (extensions_->put(std::make_shared<Extension>(std::move(extensions))), ...);
  }

  int threads() const { return threads_; }
  /// The extension of this type, or null.
  template <class Extension>
  const Extension* find() const {
    return extensions_->find<Extension>();
  }
  /// No-op: host work completes before the call that runs it returns.
  void synchronize() const {}
  const std::shared_ptr<const on_host::host_memory>& owner() const { return memory_; }
  const std::shared_ptr<memory_meter>& meter() const { return memory_->shared_meter(); }

 private:
  int threads_;
  std::shared_ptr<const on_host::host_memory> memory_ = std::make_shared<const on_host::host_memory>();
  std::shared_ptr<detail::typed_values> extensions_ = std::make_shared<detail::typed_values>();
};

/// Copies elements; operands must not overlap.
template <class T>
void copy(const device_queue<host>&, std::span<const T> from, std::span<T> to) {
  std::copy(from.begin(), from.end(), to.begin());
}

}  // namespace partita

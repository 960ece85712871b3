// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The host: ordinary memory, and a number of threads that one rank may use.

#include <algorithm>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "partita/base/error.hpp"
#include "partita/memory/device.hpp"

/// The host's tag, and the kernels that take its queue.
namespace partita::on_host {

struct host {};

/// Ordinary memory, 64 bytes aligned.
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

/// A value handle: copies share the memory meter.
template <>
class device_queue<host> {
 public:
  using allocator = on_host::host_memory;

  /// `extensions` are found again by find(), such as a gemm_backend. Throws mesh_error without a thread.
  template <class... Extension>
  explicit device_queue(int threads = 1, Extension... extensions) : threads_(threads) {
    if (threads < 1) throw_error<mesh_error>({"a host queue needs at least one thread, not ", threads});
    (extensions_->put(std::make_shared<Extension>(std::move(extensions))), ...);
  }

  int threads() const { return threads_; }
  /// What the queue was extended by, null where it was not.
  template <class Extension>
  const Extension* find() const {
    return extensions_->find<Extension>();
  }
  /// Returns when all work given so far is done: it always is.
  void synchronize() const {}
  const std::shared_ptr<const on_host::host_memory>& owner() const { return memory_; }
  const std::shared_ptr<memory_meter>& meter() const { return memory_->shared_meter(); }

 private:
  int threads_;
  std::shared_ptr<const on_host::host_memory> memory_ = std::make_shared<const on_host::host_memory>();
  std::shared_ptr<detail::typed_values> extensions_ = std::make_shared<detail::typed_values>();
};

/// Copies between devices; here a plain copy.
template <class T>
void copy(const device_queue<host>&, std::span<const T> from, std::span<T> to) {
  std::copy(from.begin(), from.end(), to.begin());
}

}  // namespace partita

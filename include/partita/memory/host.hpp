#pragma once
/// The host: ordinary memory, and a number of threads that one rank may use.

#include <algorithm>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "partita/base/error.hpp"
#include "partita/memory/place.hpp"

/// The host's tag, and the kernels that take its queue.
namespace partita::on_host {
struct host {};
}  // namespace partita::on_host

namespace partita {

using on_host::host;

/// C = alpha op(A) op(B) + beta C on row-major blocks, as CBLAS has it; what a queue<host> multiplies with.
template <class T>
using gemm_function = void (*)(int threads, bool transpose_a, bool transpose_b, int m, int n, int k, T alpha,
                               const T* a, int lda, const T* b, int ldb, T beta, T* c, int ldc);

/// Dense products of a host queue; null entries mean the library's own blocked product.
struct gemm_backend {
  gemm_function<float> f32 = nullptr;
  gemm_function<double> f64 = nullptr;

  template <class T>
  gemm_function<T> get() const {
    if constexpr (sizeof(T) == sizeof(float))
      return f32;
    else
      return f64;
  }
};

/// A value handle: copies share the memory meter.
template <>
class queue<host> {
 public:
  explicit queue(int threads = 1, gemm_backend gemm = {})
      : threads_(threads), gemm_(gemm), meter_(std::make_shared<memory_meter>()) {
    if (threads < 1)
      throw mesh_error("a host queue needs at least one thread, not " + std::to_string(threads));
  }

  int threads() const { return threads_; }
  const gemm_backend& gemm() const { return gemm_; }
  /// Returns when all work given so far is done: it always is.
  void synchronize() const {}
  const std::shared_ptr<memory_meter>& meter() const { return meter_; }

 private:
  int threads_;
  gemm_backend gemm_;
  std::shared_ptr<memory_meter> meter_;
};

/// Move-only owner of `size` uninitialised elements aligned to 64 bytes.
template <class T>
class buffer<T, host> {
  static constexpr std::align_val_t alignment{64};

 public:
  buffer() = default;
  buffer(const queue<host>& q, std::size_t size) : size_(size), capacity_(size), meter_(q.meter()) {
    if (size == 0) return;
    data_ = static_cast<T*>(::operator new(size * sizeof(T), alignment));
    meter_->add(size * sizeof(T));
  }
  buffer(buffer&& other) noexcept { swap(other); }
  buffer& operator=(buffer&& other) noexcept {
    buffer(std::move(other)).swap(*this);
    return *this;
  }
  ~buffer() {
    if (data_ == nullptr) return;
    meter_->remove(capacity_ * sizeof(T));
    ::operator delete(data_, alignment);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::span<T> span() { return {data_, size_}; }
  std::span<const T> span() const { return {data_, size_}; }

  /// Changes the size and loses the contents; allocates only when the capacity does not suffice.
  void reset(const queue<host>& q, std::size_t size) {
    if (size > capacity_) *this = buffer(q, size);
    size_ = size;
  }

 private:
  void swap(buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(meter_, other.meter_);
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
  std::shared_ptr<memory_meter> meter_;
};

/// Copies between places; here a plain copy.
template <class T>
void copy(const queue<host>&, std::span<const T> from, std::span<T> to) {
  std::copy(from.begin(), from.end(), to.begin());
}

}  // namespace partita

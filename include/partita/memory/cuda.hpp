#pragma once
/// CUDA devices as a place. Everything that a rank owns there hangs on its queue: a stream, memory in its
/// order, the libraries' handles. Work is enqueued; the host waits only where synchronize() is called.

#include <map>
#include <span>
#include <thread>
#include <typeindex>
#include <vector>

#include "partita/memory/cuda_stream.hpp"

/// The tag of CUDA devices, and the kernels that take their queues.
namespace partita::on_cuda {
struct cuda_device {};
}  // namespace partita::on_cuda

namespace partita {

using on_cuda::cuda_device;

/// What a dense product may do to its sums before it stores them: add bias[j] to column j, then cut at 0; or
/// beside them: column_sums[j] = the sum of column j of op(B), the gradient of a bias where op(B) is that of
/// what it was added to.
template <class T>
struct gemm_epilogue {
  const T* bias = nullptr;
  bool relu = false;
  T* column_sums = nullptr;
};

/// C = alpha op(A) op(B) + beta C on row-major blocks, then the epilogue; what a queue<cuda_device>
/// multiplies with. Returns false, and has done nothing, when it does not know the epilogue.
template <class T>
using cuda_gemm_function = bool (*)(const queue<cuda_device>& q, bool transpose_a, bool transpose_b, int m,
                                    int n, int k, T alpha, const T* a, int lda, const T* b, int ldb, T beta,
                                    T* c, int ldc, gemm_epilogue<T> epilogue);

/// Y = A X + beta Y with A (rows, cols) in compressed rows, X (cols, f), Y (rows, f) row-major; `plan` keeps
/// what was looked up for this A and is null at first. Returns false when it cannot serve these operands.
template <class T>
using cuda_spmm_function = bool (*)(const queue<cuda_device>& q, std::shared_ptr<void>& plan, int rows,
                                    int cols, int nonzeros, const int* offsets, const int* columns,
                                    const T* values, const T* x, std::ptrdiff_t x_stride, int f, T beta, T* y,
                                    std::ptrdiff_t y_stride);

/// The vendor's libraries as values of a queue; null entries mean the library's own kernels.
struct cuda_libraries {
  using preparation = void (*)(const queue<cuda_device>& q);

  cuda_gemm_function<float> gemm_f32 = nullptr;
  cuda_gemm_function<double> gemm_f64 = nullptr;
  cuda_spmm_function<float> spmm_f32 = nullptr;
  cuda_spmm_function<double> spmm_f64 = nullptr;
  /// What makes the handles, when the queue is made: they allocate, for which a device may wait, and that
  /// must not fall into an exchange that waits for another thread of this process.
  preparation prepare_gemm = nullptr, prepare_spmm = nullptr;

  template <class T>
  cuda_gemm_function<T> gemm() const {
    if constexpr (sizeof(T) == sizeof(float))
      return gemm_f32;
    else
      return gemm_f64;
  }
  template <class T>
  cuda_spmm_function<T> spmm() const {
    if constexpr (sizeof(T) == sizeof(float))
      return spmm_f32;
    else
      return spmm_f64;
  }
};

/// Is asked again and again while the host waits for a queue; throws to give up waiting.
class queue_watcher {
 public:
  virtual ~queue_watcher() = default;
  virtual void check() = 0;
};

/// A value handle: copies are the same queue. Used by one thread at a time, whatever that thread's current
/// device is.
template <>
class queue<cuda_device> {
 public:
  /// The device begins work of an `urgent` queue before that of others. Throws device_error when there is no
  /// such device.
  explicit queue(int device = 0, cuda_libraries libraries = {}, bool urgent = false)
      : state_(std::make_shared<state>(device, libraries, urgent)) {
    for (const auto prepare : {libraries.prepare_gemm, libraries.prepare_spmm})
      if (prepare != nullptr) prepare(*this);
  }

  int device() const { return state_->stream->device(); }
  cudaStream_t stream() const { return state_->stream->get(); }
  const std::shared_ptr<const cuda_stream>& owner() const { return state_->stream; }
  const cuda_libraries& libraries() const { return state_->libraries; }
  const std::shared_ptr<memory_meter>& meter() const { return state_->stream->shared_meter(); }

  /// The one R of this queue, made by R(*this) when first asked for: a library's handle, a workspace. R must
  /// not keep the queue.
  template <class R>
  R& resource() const {
    std::shared_ptr<void>& slot = state_->resources[std::type_index(typeid(R))];
    if (!slot) {
      const detail::device_guard guard(device());
      slot = std::make_shared<R>(*this);
    }
    return *static_cast<R*>(slot.get());
  }

  /// Lets `watcher` end waits of this queue as long as it lives.
  void watch(std::weak_ptr<queue_watcher> watcher) const { state_->watchers.push_back(std::move(watcher)); }

  /// Returns when all work given so far is done. Throws device_error, and what a watcher throws.
  void synchronize() const {
    watch_until([this] { return detail::is_done(cudaStreamQuery(stream()), "cudaStreamQuery"); });
    detail::check_cuda(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
  }
  /// The same for the work before `event`, in whatever stream it stands.
  void synchronize(const cuda_event& event) const {
    watch_until([&] { return event.reached(); });
    detail::check_cuda(cudaEventSynchronize(event.get()), "cudaEventSynchronize");
  }

 private:
  /// Asks the watchers until done() holds, where there are any.
  template <class Done>
  void watch_until(Done done) const {
    while (!state_->watchers.empty() && !done()) {
      std::erase_if(state_->watchers, [](const auto& w) { return w.expired(); });
      for (const auto& w : state_->watchers)
        if (const auto alive = w.lock()) alive->check();
      std::this_thread::yield();
    }
  }

  struct state {
    state(int device, cuda_libraries l, bool urgent)
        : stream(std::make_shared<const cuda_stream>(device, urgent)), libraries(l) {}

    std::shared_ptr<const cuda_stream> stream;
    cuda_libraries libraries;
    std::vector<std::weak_ptr<queue_watcher>> watchers;
    std::map<std::type_index, std::shared_ptr<void>> resources;
  };

  std::shared_ptr<state> state_;
};

/// Move-only owner of `size` uninitialised elements aligned to 256 bytes.
template <class T>
class buffer<T, cuda_device> {
 public:
  buffer() = default;
  buffer(const queue<cuda_device>& q, std::size_t size) : size_(size), capacity_(size) {
    if (size == 0) return;
    owner_ = q.owner();
    data_ = static_cast<T*>(owner_->allocate(size * sizeof(T)));
  }
  buffer(buffer&& other) noexcept { swap(other); }
  buffer& operator=(buffer&& other) noexcept {
    buffer(std::move(other)).swap(*this);
    return *this;
  }
  ~buffer() {
    if (data_ != nullptr) owner_->release(data_, capacity_ * sizeof(T));
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::span<T> span() { return {data_, size_}; }
  std::span<const T> span() const { return {data_, size_}; }

  /// Changes the size and loses the contents; allocates only when the capacity does not suffice.
  void reset(const queue<cuda_device>& q, std::size_t size) {
    if (size > capacity_) *this = buffer(q, size);
    size_ = size;
  }

 private:
  void swap(buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(owner_, other.owner_);
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
  std::shared_ptr<const cuda_stream> owner_;
};

/// Copies between host and device either way, or within the device, and waits for it. Waits before, too: the
/// runtime's copy of ordinary host memory would wait where no watcher is asked.
template <class T>
void copy(const queue<cuda_device>& q, std::span<const T> from, std::span<T> to) {
  q.synchronize();
  if (!from.empty())
    detail::check_cuda(
        cudaMemcpyAsync(to.data(), from.data(), from.size_bytes(), cudaMemcpyDefault, q.stream()),
        "cudaMemcpyAsync");
  q.synchronize();
}

namespace detail {

/// Memory of a queue for what lives no longer than one kernel: the next user may overwrite it, in stream
/// order.
struct cuda_scratch {
  explicit cuda_scratch(const queue<cuda_device>&) {}

  buffer<std::byte, cuda_device> device;
  pinned_memory host;
};

}  // namespace detail

/// `count` uninitialised elements until the next call for this queue.
template <class T>
T* scratch(const queue<cuda_device>& q, std::size_t count) {
  auto& memory = q.resource<detail::cuda_scratch>().device;
  memory.reset(q, count * sizeof(T));
  return reinterpret_cast<T*>(memory.data());
}

/// One element of the device; waits for it.
template <class T>
T read(const queue<cuda_device>& q, const T* at) {
  // Room for any number at once: to grow means to free, for which a whole device may wait.
  T* const value =
      static_cast<T*>(q.resource<detail::cuda_scratch>().host.reserve(std::max<std::size_t>(sizeof(T), 64)));
  detail::check_cuda(cudaMemcpyAsync(value, at, sizeof(T), cudaMemcpyDeviceToHost, q.stream()),
                     "cudaMemcpyAsync");
  q.synchronize();
  return *value;
}

}  // namespace partita

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// NCCL error handling. Communicators are nonblocking: a call may return ncclInProgress and is then polled
/// until it completes or times out; failures are exceptions that name the operation.

#include <algorithm>
#include <chrono>
#include <functional>
#include <nccl.h>
#include <string>
#include <thread>
#include <utility>

#include "partita/comm/late.hpp"
#include "partita/comm/operation.hpp"

namespace partita::nccl::detail {

inline ncclDataType_t datatype(comm::element_type type) {
  switch (type) {
    case comm::element_type::u8:
      return ncclUint8;
    case comm::element_type::i32:
      return ncclInt32;
    case comm::element_type::i64:
      return ncclInt64;
    case comm::element_type::f32:
      return ncclFloat32;
    case comm::element_type::f64:
      return ncclFloat64;
    case comm::element_type::bf16:
      return ncclFloat16;  // as long; reductions are not left to NCCL
  }
  return ncclUint8;
}

inline std::string error_text(ncclResult_t code, ncclComm_t comm) {
  std::string text = ncclGetErrorString(code);
  if (const char* more = comm == nullptr ? nullptr : ncclGetLastError(comm); more != nullptr && *more != '\0')
    text += std::string(", ") + more;
  return text;
}

/// For calls without a communicator. Throws communication_error naming the call.
inline void check(ncclResult_t code, const char* call) {
  if (code != ncclSuccess)
    throw communication_error(std::string(call) + " failed: " + error_text(code, nullptr));
}

/// Older versions crash when communicators are split by several threads of one process.
inline constexpr int least_version = NCCL_VERSION(2, 22, 3);
inline std::string version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

/// Nonblocking. Split communicators share resources, since all their operations use one stream.
inline ncclConfig_t configuration() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.splitShare = 1;
  return config;
}

/// Owns one rank's NCCL communicator. A rank's communicators share resources, so aborting one breaks the
/// others, although NCCL still reports them as healthy: give_up_all() aborts them together.
class owned_comm {
 public:
  owned_comm(std::chrono::milliseconds limit, std::function<void()> give_up_all)
      : limit_(std::min(limit, most_)), give_up_all_(std::move(give_up_all)) {}
  owned_comm(const owned_comm&) = delete;
  owned_comm& operator=(const owned_comm&) = delete;
  /// Finalizes, waiting up to a limit for enqueued operations; then aborts, since a peer is missing.
  ~owned_comm() {
    if (comm_ == nullptr) return;
    const auto last = std::chrono::steady_clock::now() + limit_;
    ncclResult_t code = ncclCommFinalize(comm_);
    while (code == ncclInProgress && std::chrono::steady_clock::now() < last) {
      std::this_thread::yield();
      code = progress();
    }
    if (code == ncclSuccess) {
      ncclCommDestroy(comm_);
    } else {
      give_up_all_();
      give_up();
    }
  }

  ncclComm_t get() const { return comm_; }
  /// Output argument for calls that create a communicator.
  ncclComm_t* slot() { return &comm_; }

  /// Status of the last call and of earlier operations: in progress, success, or an error.
  ncclResult_t progress() const {
    ncclResult_t code = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(comm_, &code);
    return asked == ncclSuccess ? code : asked;
  }
  std::string why(ncclResult_t code) const { return error_text(code, comm_); }

  /// Aborts this rank's pending kernels; the communicator is unusable afterwards.
  void give_up() noexcept {
    if (comm_ != nullptr) ncclCommAbort(std::exchange(comm_, nullptr));
  }

 private:
  static constexpr std::chrono::milliseconds most_{1000};

  std::chrono::milliseconds limit_;
  std::function<void()> give_up_all_;
  ncclComm_t comm_ = nullptr;
};

/// A group of NCCL calls that form one operation. Always closed, and before any communicator in it is
/// aborted.
class call_group {
 public:
  call_group() { check(ncclGroupStart(), "ncclGroupStart"); }
  call_group(call_group&& other) noexcept
      : open_(std::exchange(other.open_, false)), code_(other.code_), last_(other.last_) {}
  call_group& operator=(call_group&&) = delete;
  ~call_group() {
    if (open_) ncclGroupEnd();
  }

  bool healthy() const { return code_ == ncclSuccess; }
  /// Records the result of a call in the group.
  void add(ncclResult_t code, const char* call) {
    if (!healthy() || code == ncclInProgress) return;
    code_ = code;
    if (!healthy()) last_ = call;
  }
  /// Result of the first failed call, else of ncclGroupEnd; last() is its name.
  ncclResult_t close() {
    open_ = false;
    const ncclResult_t closed = ncclGroupEnd();
    return healthy() ? closed : code_;
  }
  const char* last() const { return last_; }

 private:
  bool open_ = true;
  ncclResult_t code_ = ncclSuccess;
  const char* last_ = "ncclGroupEnd";
};

}  // namespace partita::nccl::detail

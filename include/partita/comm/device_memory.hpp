// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Interface through which communicators access device memory. All calls are asynchronous and execute in
/// queue order; ranks order their work relative to one another with events.

#include <memory>
#include <string>

#include "partita/comm/operation.hpp"
#include "partita/memory/host.hpp"

namespace partita::comm {

/// One rank's queue as seen by a communicator. Every call may throw device_error.
class device_memory {
 public:
  /// A reusable event; waits refer to its most recent record.
  class event {
   public:
    virtual ~event() = default;
  };

  /// Page-locked host memory. No copy may be in flight when it grows or is destroyed.
  class host_block {
   public:
    virtual ~host_block() = default;
    /// At least `bytes` of memory; reallocates, discarding the contents, only to grow.
    virtual std::byte* reserve(std::size_t bytes) = 0;
  };

  virtual ~device_memory() = default;

  /// Name used in error messages. Ranks of one process can access each other's memory if the names are equal.
  virtual const std::string& name() const = 0;

  virtual std::unique_ptr<event> make_event() const = 0;
  /// Records `e` after all work enqueued so far. `e` may belong to another queue of equal name.
  virtual void record(event& e) const = 0;
  /// Makes later work on this queue wait for `e`, of any queue of equal name. Does not block the host.
  virtual void wait_on(const event& e) const = 0;
  /// Blocks the host until all work preceding `e` has completed.
  virtual void synchronize(const event& e) const = 0;

  /// Device-to-device copy; the buffers may belong to different queues of equal name.
  virtual void copy(const void* from, void* to, std::size_t bytes) const = 0;
  /// Copies from the device to page-locked memory.
  virtual void download(const void* from, void* to, std::size_t bytes) const = 0;
  /// Copies from page-locked memory to the device.
  virtual void upload(const void* from, void* to, std::size_t bytes) const = 0;
  /// to[i] = from[0][i] op from[1][i] op ..., in this order and bitwise equal to reduce_in_order. `to` may
  /// alias one of `from`. The list itself need not outlive the call.
  virtual void reduce(element_type type, reduction r, std::span<const void* const> from, void* to,
                      global_index count) const = 0;

  virtual std::unique_ptr<host_block> make_host_block() const = 0;
};

}  // namespace partita::comm

namespace partita::on_host {

/// The device_memory of a queue; null on the host. Each device provides an overload, found by ADL.
inline std::shared_ptr<comm::device_memory> device_memory_of(const device_queue<host>&) { return nullptr; }

}  // namespace partita::on_host

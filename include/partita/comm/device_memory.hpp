// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How a communicator touches memory of a device. Everything is enqueued: a call returns at once, and the
/// work is done in the order in which one rank's queue was given it. Ranks order their work among each other
/// by events.

#include <memory>
#include <string>

#include "partita/comm/operation.hpp"
#include "partita/memory/host.hpp"

namespace partita::comm {

/// One rank's queue as a communicator sees it. Every call may throw device_error.
class device_memory {
 public:
  /// A point in the work of a queue. Made once and recorded again and again; a wait means the last record.
  class event {
   public:
    virtual ~event() = default;
  };

  /// Page-locked memory of the host. No copy may be under way when it grows or goes.
  class host_block {
   public:
    virtual ~host_block() = default;
    /// At least `bytes` of memory; allocates, and loses the contents, only when there were fewer.
    virtual std::byte* reserve(std::size_t bytes) = 0;
  };

  virtual ~device_memory() = default;

  /// What errors call this memory. Ranks of one process may read each other's where the names are equal.
  virtual const std::string& name() const = 0;

  virtual std::unique_ptr<event> make_event() const = 0;
  /// `e` now stands after all work given to this queue so far. Events of another queue of equal name may be
  /// recorded too.
  virtual void record(event& e) const = 0;
  /// Work given to this queue from now on begins after `e`, of any queue of equal name. The host does not
  /// wait.
  virtual void wait_on(const event& e) const = 0;
  /// The host waits until all work before `e` is done.
  virtual void synchronize(const event& e) const = 0;

  /// Within the device; both may belong to queues of equal name.
  virtual void copy(const void* from, void* to, std::size_t bytes) const = 0;
  /// From the device to page-locked memory.
  virtual void download(const void* from, void* to, std::size_t bytes) const = 0;
  /// From page-locked memory to the device.
  virtual void upload(const void* from, void* to, std::size_t bytes) const = 0;
  /// to[i] = from[0][i] op from[1][i] op ..., in this order and with the bits of reduce_in_order; `to` may be
  /// one of `from`. The list may change after the call.
  virtual void reduce(element_type type, reduction r, std::span<const void* const> from, void* to,
                      global_index count) const = 0;

  virtual std::unique_ptr<host_block> make_host_block() const = 0;
};

}  // namespace partita::comm

namespace partita::on_host {

/// How communicators touch the memory of a queue's device: none where that is the host's own. Each device
/// declares its own, found by argument-dependent lookup.
inline std::shared_ptr<comm::device_memory> device_memory_of(const device_queue<host>&) { return nullptr; }

}  // namespace partita::on_host

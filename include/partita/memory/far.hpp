// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Far memory: a store beside the memory of a device, larger and slower, that the device can address. With
/// one, buffers that the budget of a queue does not hold live there, and operations on them pass through a
/// window of near memory, chunk by chunk.
///
/// Source: Ai et al., NeutronTP (VLDB 2025), section 4.2, which keeps features on the host and moves chunks
/// of the graph through its GPUs.

#include <cstddef>
#include <cstdint>

#include "partita/memory/far_store.hpp"

namespace partita {

namespace memory {

/// What has passed between near and far memory. Times in seconds.
struct far_traffic {
  std::uint64_t read = 0, written = 0;  ///< bytes
  std::uint64_t chunks = 0;             ///< of all operations
  std::uint64_t operations = 0;         ///< in chunks
  std::uint64_t near = 0;               ///< bytes that these read and write while they compute
  std::uint64_t operand_rows = 0;       ///< of far operands that sparse products gather rows of
  std::uint64_t rows_read = 0;          ///< of these operands, by all chunks of the products
  double transfer = 0;                  ///< time that transfers took
  double compute = 0;                   ///< time of operations on far operands, without waiting
  double exposed = 0;                   ///< time that operations waited for transfers

  /// What has passed since `before`.
  far_traffic operator-(const far_traffic& before) const {
    return {.read = read - before.read,
            .written = written - before.written,
            .chunks = chunks - before.chunks,
            .operations = operations - before.operations,
            .near = near - before.near,
            .operand_rows = operand_rows - before.operand_rows,
            .rows_read = rows_read - before.rows_read,
            .transfer = transfer - before.transfer,
            .compute = compute - before.compute,
            .exposed = exposed - before.exposed};
  }

  far_traffic& operator+=(const far_traffic& more) {
    read += more.read, written += more.written;
    chunks += more.chunks, operations += more.operations, near += more.near;
    operand_rows += more.operand_rows, rows_read += more.rows_read;
    transfer += more.transfer, compute += more.compute, exposed += more.exposed;
    return *this;
  }

  /// The share of the shorter of transfer and compute that the other one hid: 1 if all of it.
  double overlap() const {
    const double shorter = transfer < compute ? transfer : compute;
    const double hidden = transfer - exposed;
    return shorter <= 0 || hidden >= shorter ? 1 : hidden <= 0 ? 0 : hidden / shorter;
  }
};

}  // namespace memory

class far_forecast;

namespace memory {

/// Moves chunks between far memory and the window of a queue while the queue computes. One task at a time; it
/// calls move(), and kernels on transfers(). Specialised for each device, with these members:
///
///     bool is_far(const void* address)
///     std::size_t slot_bytes(), std::byte* slot(int k)   the halves of the window, k = 0 or 1
///     std::size_t best_rows_bytes              of a slot, for operations that touch each row once
///     void start(std::function<void()> task)   after the work that the queue was given so far
///     void wait()                              the work to come waits for the task; rethrows what it threw
///     void compute(work)                       calls work(), whose time counts as that of computing
///     void move(const block_copy&)             copies rows between near and far memory
///     const device_queue<Device>& transfers()  the queue of tasks
///     void count_read(bytes), count_written(bytes)   of far memory, by a kernel on transfers()
///     far_traffic& traffic()
///     far_forecast*& forecast()   where operations add what they would move, in place of running, or null
///     const memory_meter& meter()                    of the far buffers of the queue
template <class Device>
class far_channel;

/// `rows` rows of `row_bytes` bytes, which lie `to_stride` and `from_stride` bytes apart.
struct block_copy {
  void* to = nullptr;
  std::ptrdiff_t to_stride = 0;
  const void* from = nullptr;
  std::ptrdiff_t from_stride = 0;
  std::size_t row_bytes = 0;
  std::size_t rows = 0;

  std::size_t bytes() const { return row_bytes * rows; }
};

}  // namespace memory

}  // namespace partita

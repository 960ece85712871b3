// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Who runs kernels whose operands may be in far memory.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "partita/memory/far.hpp"
#include "partita/memory/pass_runner.hpp"

namespace partita::memory {

/// A table in near memory for the rows of a far matrix X that the batches of an epoch need. The rows of a
/// batch are read while the previous batch is processed; the row whose next use is farthest away makes room.
/// A batch is read directly from X if it was not foreseen, or if it needs more than half of the table's
/// places, unless the table has a place for every row.
///
///     cache.begin();                          // an epoch
///     cache.foresee(ids), cache.end_batch();  // of each batch, in their order
///     cache.assign(own), cache.finish();
///
/// X must not change. Local; no communication.
class row_cache {
 public:
  virtual ~row_cache() = default;
  /// The number of rows that the table has room for, at most those of X.
  virtual local_index places() const = 0;
  /// Whether foreseeing batches is useful: some rows have a place, not all.
  virtual bool chooses() const = 0;
  /// Begins an epoch. Rows of the previous one stay if there is room for all.
  virtual void begin() = 0;
  /// Adds rows of the whole matrix, some of which X may have, to the batch that is being foreseen.
  virtual void foresee(std::span<const global_index> ids) = 0;
  /// Ends the list of the batch that is being foreseen, and begins that of the next one.
  virtual void end_batch() = 0;
  /// Starts to read the rows of X that the next batch needs and the table lacks, each once. Returns the
  /// places of the batch's rows in the table, or none if they must be read from X. Throws error unless the
  /// rows are the foreseen ones, if any were foreseen.
  virtual std::span<const local_index> assign(std::span<const local_index> rows) = 0;
  /// Waits for this read, and counts it.
  virtual void finish() = 0;
  /// The table, whose rows have no gaps.
  virtual const std::byte* data() const = 0;
};

}  // namespace partita::memory

namespace partita::local {

struct far_chunk;

/// Runs kernels on a queue with far memory: at once if all of their operands are near, else chunk by chunk,
/// counted, or, in a rehearsal, not at all.
template <class Device>
class out_of_core : public pass_runner<Device> {
 public:
  using typename pass_runner<Device>::operands, typename pass_runner<Device>::plans,
      typename pass_runner<Device>::queue;

  /// What passes in such a pass, in closed form, with that of multiplying by beta, whose chunks do not count:
  /// nothing unless something is far. Its chunks: none unless something is far.
  virtual memory::far_traffic predicted(const queue&, plans&, const entry_pass<Device>&, operands) = 0;
  virtual std::span<const far_chunk> chunks(const queue&, plans&, const entry_pass<Device>&, operands) = 0;

  /// A cache for rows of x, whose first one is row `first` of the whole matrix; null if x is not far, or if
  /// far memory is always resident.
  virtual std::unique_ptr<memory::row_cache> make_row_cache(const queue&, const operand& x,
                                                            global_index first,
                                                            const row_kernels<Device>&) = 0;

  /// See far_channel.
  virtual memory::far_channel<Device>& channel() = 0;
  virtual bool is_far(const void* address) const = 0;
  virtual std::size_t slot_bytes() const = 0;
  virtual memory::far_traffic& traffic() = 0;
  virtual far_forecast*& forecast() = 0;
  virtual const memory::memory_meter& meter() const = 0;
};

}  // namespace partita::local

namespace partita {

/// What runs the kernels of a queue with far memory and counts what passes; null without.
template <class Device>
local::out_of_core<Device>* far_of(const device_queue<Device>& q) {
  return q.owner()->far() ? q.template find<local::out_of_core<Device>>() : nullptr;
}

namespace local {

/// Whether every pass on this queue is one call of its kernel: without far memory.
template <class Device>
bool runs_whole(const device_queue<Device>& q) {
  return far_of(q) == nullptr;
}

/// The bytes that a chunk may take of near memory on this queue; 0 where every pass is one call.
template <class Device>
std::size_t chunk_bytes(const device_queue<Device>& q) {
  auto* const far = far_of(q);
  return far == nullptr ? 0 : std::max<std::size_t>(far->slot_bytes(), 1);
}

/// Whether parts of a product may be computed by themselves: its sums are rounded as they come.
template <class Device>
bool multiplies_parts(const device_queue<Device>& q) {
  return memory::reproducible_sums_of(q) == nullptr;
}

/// Whether products on this queue read factors of rows and columns in the place of values.
template <class Device>
bool reads_factors(const device_queue<Device>& q) {
  return multiplies_factors<Device> && runs_whole(q) && multiplies_parts(q);
}

/// read(values in host memory) of values in this queue's memory: far ones are read where they are, others
/// copied.
template <class T, class Device, class Read>
auto read_on_host(const device_queue<Device>& q, std::span<const T> values, Read read) {
  auto* const far = far_of(q);
  if (far != nullptr && far->is_far(values.data())) return read(values);
  std::vector<T> copied(values.size());
  copy(q, values, std::span<T>(copied));
  return read(std::span<const T>(copied));
}

}  // namespace local

}  // namespace partita

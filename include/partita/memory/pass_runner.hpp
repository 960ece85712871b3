// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What kernels do with their operands, without the types of these, and who runs them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "partita/base/function_reference.hpp"
#include "partita/base/index.hpp"
#include "partita/memory/device.hpp"

namespace partita::local {

/// What an operand has a row for: each row of a pass, each column of its pattern, or each of its entries.
enum class along : std::uint8_t { rows, columns, entries };

/// An operand of a kernel: `rows` rows of `cols` elements of `element` bytes, which begin `stride` bytes
/// apart. Rows of columns are gathered for a chunk, if it is read; if it is written, the sums of the chunks
/// are added to beta times the rows.
struct operand {
  std::byte* data = nullptr;
  local_index rows = 0, cols = 0;
  std::ptrdiff_t stride = 0;
  std::size_t element = 1;
  along has = along::rows;
  bool is_read = false, is_written = false;
  double beta = 1;
  double work = 0;  ///< multiplications for each of its elements, of a dense product

  std::size_t row_bytes() const { return static_cast<std::size_t>(cols) * element; }
  std::byte* row(local_index i) const {
    return data == nullptr ? nullptr : data + static_cast<std::ptrdiff_t>(i) * stride;
  }
};

/// A sparse pattern, as csr_view has it.
struct entry_pattern {
  local_index rows = 0, cols = 0;
  const local_index *offsets = nullptr, *columns = nullptr;
  local_index entries = -1;
};

/// Rows that a kernel is called for, or all of them.
struct chunk {
  const operand* operands = nullptr;  ///< what the kernel is to use in the place of those of the pass
  entry_pattern entries{};
  const local_index *column_offsets = nullptr, *entry_rows = nullptr,
                    *entry_numbers = nullptr;   ///< as csr_inverse_view has them, if asked for
  const local_index* global_columns = nullptr;  ///< if asked for: the columns of the pattern
  local_index first_row = 0;                    ///< of the pass
  local_index first_entry = 0;           ///< entry e of the chunk is entry first_entry + e of the pattern
  bool is_whole = true;                  ///< whether this is all of the pass
  bool splits_first_row = false;         ///< whether the first row has entries in the chunk before
  bool splits_last_row = false;          ///< whether the last row has entries in the next chunk
  bool adds = false, has_added = false;  ///< for beta_of_columns

  /// With what a kernel multiplies the rows that it adds to: sums of a row that lies in several chunks go on.
  template <class T>
  constexpr T beta_of_rows(T of_pass) const {
    return splits_first_row ? T(1) : of_pass;
  }
  /// The same for operands that are added.
  template <class T>
  constexpr T beta_of_columns(T of_pass) const {
    return adds ? T(0) : has_added ? T(1) : of_pass;
  }
};

/// Kernels on rows of columns of a pass: to[i] = from[rows[i]]; to[places[i]] = from[rows[i]], the places[i]
/// distinct; to[places[i]] = rows[i]; to[rows[i]] += from[i], the rows[i] distinct; x = beta x.
template <class Device>
struct row_kernels {
  using rows = std::span<const local_index>;
  void (*gather)(const device_queue<Device>&, const operand& from, rows, std::byte* to);
  void (*place)(const device_queue<Device>&, const operand& from, rows, rows places, const operand& to);
  void (*name)(const device_queue<Device>&, rows, rows places, local_index* to);
  void (*add)(const device_queue<Device>&, const std::byte* from, rows, const operand& to);
  void (*scale)(const device_queue<Device>&, double beta, const operand& x);
};

/// What a pass over entries needs beside its operands.
struct pass_options {
  bool global_columns = false, inverse = false;
  bool later_part = false;  ///< whether a part of the same block has passed before
  const char* what = "pass over edges";
  local_index width = -1;  ///< of a product
};

/// A pass over the entries of a pattern. `number`: tells patterns apart whose arrays are received in the same
/// memory. `kernels`: if there are operands of columns.
template <class Device>
struct entry_pass {
  entry_pattern a;
  std::size_t number = 0;
  pass_options with{};
  const row_kernels<Device>* kernels = nullptr;
};

/// Runs kernels in the place of their callers: chunk by chunk, counted, timed, or not at all.
template <class Device>
class pass_runner {
 public:
  using queue = device_queue<Device>;
  using operands = std::span<const operand>;
  using kernel = base::function_reference<void(const chunk&)>;
  using plans = std::shared_ptr<void>;

  virtual ~pass_runner() = default;

  /// All operands have the same number of rows.
  virtual void by_rows(const queue&, const char* what, operands, kernel) = 0;
  /// What chunks of entries are made of is kept in `plans`, which belongs to the caller and to nobody else.
  virtual void by_entries(const queue&, plans&, const entry_pass<Device>&, operands, kernel) = 0;
  /// For a kernel that touches each row of a list once, and as many packed ones: those are read if these are
  /// written. It is called with the queue that it is to run on.
  virtual void by_list(const queue&, std::span<const local_index> list, const operand& rows,
                       const void* packed, base::function_reference<void(const queue&)>) = 0;
  /// For a kernel of this name that addresses the rows of its operands where they are, far or near.
  virtual void in_place(const char*, operands, base::function_reference<void()> run) { run(); }
};

}  // namespace partita::local

namespace partita {

/// Who runs the kernels of a queue; null where their callers do.
template <class Device>
local::pass_runner<Device>* runner_of(const device_queue<Device>& q) {
  return q.template find<local::pass_runner<Device>>();
}

}  // namespace partita

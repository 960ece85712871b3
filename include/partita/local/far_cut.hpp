// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Cuts a sparse block into chunks whose products pass through the window of far memory.
///
/// A chunk has consecutive rows of A (m x k), as many as fit a slot with the rows N_j of the operand that
/// their columns index (X of A X, Y of A^T X). Its columns are renumbered to a table of these rows. Of N_j,
/// the rows that the chunk before needed too are copied from its table; the others, the fresh ones, are read.
///
/// Source: Ai et al., NeutronTP (VLDB 2025), section 4.2, chunks of destination vertices.

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "partita/base/error.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/device.hpp"
#include "partita/memory/far.hpp"

namespace partita::local {

/// What of a product with A passes through a slot of the window. The row operand has a row for each row of A,
/// the column operand one for each of its columns.
struct far_spmm_size {
  bool structure = false, values = false;            ///< whether those of A are far
  bool row_operand = false, column_operand = false;  ///< whether they are far
  bool keeps = false;       ///< whether rows of the column operand are copied from the chunk before
  local_index width = 0;    ///< columns of the dense operands
  std::size_t element = 0;  ///< bytes
  std::size_t slot = 0;     ///< bytes of a slot
  bool later_part = false;  ///< whether A continues a block, whose first part has counted the operand's rows

  std::size_t row_bytes() const { return static_cast<std::size_t>(width) * element; }
  friend auto operator<=>(const far_spmm_size&, const far_spmm_size&) = default;
};

/// Rows of A, or entries of one row that do not fit at once.
struct far_chunk {
  local_index first_row = 0, rows = 0;
  local_index first_entry = 0, entries = 0;  ///< as the offsets of A count them
  local_index needed = 0;                    ///< |N_j|
  local_index fresh = 0;                     ///< of them: those that are read
  bool continued = false,
       continues = false;   ///< whether the chunk before has, and the next one, the same row
  std::size_t program = 0;  ///< where it begins in the program
};

/// Where the parts of a chunk lie in a slot, in bytes. A part that does not pass through has no bytes.
struct far_slot {
  std::size_t columns, values, table, rows, end;  ///< the program is at 0
};

/// The sizes of the parts of a chunk in its program: (rows + 1) offsets that begin with 0; then, if the
/// column operand is far, |N_j| rows, the fresh ones ascending and the places of the others in the table
/// before, and the renumbered columns.
struct far_program_part {
  std::size_t list, columns, end;

  far_program_part(const far_spmm_size& s, const far_chunk& c) {
    const auto padded = [](local_index n) { return (static_cast<std::size_t>(n) + 3) / 4 * 4; };
    list = (static_cast<std::size_t>(c.rows) + 4) / 4 * 4;
    columns = s.column_operand ? list + padded(c.needed) : list;
    end = s.column_operand ? columns + padded(c.entries) : list;
  }
};

namespace detail {

constexpr std::size_t part_bytes(bool passes, local_index count, std::size_t bytes) {
  const std::size_t size = passes ? static_cast<std::size_t>(count) * bytes : 0;
  return (size + far_options::alignment - 1) / far_options::alignment * far_options::alignment;
}

}  // namespace detail

/// Device memory that is read from the first element to the last one, in blocks.
template <class Device>
class index_reader {
 public:
  index_reader(const device_queue<Device>& q, const local_index* from, local_index end)
      : q_(q), from_(from), end_(end) {}

  local_index operator[](local_index i) {
    if (i < first_ || i - first_ >= static_cast<local_index>(block_.size())) {
      first_ = i;
      block_.resize(static_cast<std::size_t>(std::min<local_index>(end_ - i, 1 << 16)));
      copy(q_, std::span<const local_index>(from_ + i, block_.size()), std::span<local_index>(block_));
    }
    return block_[static_cast<std::size_t>(i - first_)];
  }

 private:
  const device_queue<Device>& q_;
  const local_index* from_;
  local_index end_, first_ = 0;
  std::vector<local_index> block_;
};

/// The parts of a chunk in a slot.
inline far_slot slot_of(const far_spmm_size& s, const far_chunk& c) {
  using detail::part_bytes;
  far_slot at{};
  at.columns = part_bytes(true, static_cast<local_index>(far_program_part(s, c).end), sizeof(local_index));
  at.values = at.columns + part_bytes(s.structure && !s.column_operand, c.entries, sizeof(local_index));
  at.table = at.values + part_bytes(s.values, c.entries, s.element);
  at.rows = at.table + part_bytes(s.column_operand, c.needed, s.row_bytes());
  at.end = at.rows + part_bytes(s.row_operand, c.rows, s.row_bytes());
  return at;
}
/// Bytes of a slot that chunks may fill; the others hold the sum of a row that lies in several chunks.
inline std::size_t room_of(const far_spmm_size& s) {
  const std::size_t kept = detail::part_bytes(s.row_operand, 1, s.row_bytes());
  return s.slot < kept ? 0 : s.slot - kept;
}

namespace detail {

/// Cuts A into chunks, greedily.
template <class Device>
class far_cut {
 public:
  far_cut(const device_queue<Device>& q, std::span<const local_index> offsets, const local_index* columns,
          local_index cols, const far_spmm_size& size)
      : size_(size), room_(room_of(size)), offsets_(offsets), columns_(q, columns, offsets.back()) {
    if (size.column_operand) seen_.assign(static_cast<std::size_t>(cols), -1);
  }

  std::vector<far_chunk> operator()() {
    open(0, offsets_[0]);
    for (local_index i = 0; i + 1 < static_cast<local_index>(offsets_.size()); ++i) {
      if (add_row(i)) continue;
      if (now_.rows > 0) close();
      open(i, offsets_[static_cast<std::size_t>(i)]);
      if (!add_row(i)) split(i);
    }
    if (now_.rows > 0) close();
    return std::move(chunks_);
  }

 private:
  bool fits(const far_chunk& c) const { return slot_of(size_, c).end <= room_; }
  void open(local_index row, local_index entry) {
    now_ = {.first_row = row, .first_entry = entry};
    ++number_;
  }
  void close() {
    now_.program = program_;
    program_ += far_program_part(size_, now_).end;
    chunks_.push_back(now_);
  }
  void add_entry(far_chunk& c, local_index e) {
    ++c.entries;
    if (!size_.column_operand) return;
    local_index& last = seen_[static_cast<std::size_t>(columns_[e])];
    if (std::exchange(last, number_) != number_) ++c.needed;
  }
  /// Whether the row fits into the chunk beside what it has; if not, the chunk is to be closed or opened.
  bool add_row(local_index i) {
    const auto row = static_cast<std::size_t>(i);
    far_chunk more = now_;
    ++more.rows;
    for (local_index e = offsets_[row]; e < offsets_[row + 1]; ++e) add_entry(more, e);
    if (!fits(more)) return false;
    now_ = more;
    return true;
  }
  /// Pieces of a row that does not fit into a chunk.
  void split(local_index i) {
    const auto row = static_cast<std::size_t>(i);
    const local_index end = offsets_[row + 1];
    for (local_index e = offsets_[row]; e < end;) {
      open(i, e);
      now_.rows = 1;
      for (far_chunk more = now_; e < end; ++e) {
        add_entry(more, e);
        if (!fits(more)) break;
        now_ = more;
      }
      if (now_.entries == 0) refuse();
      now_.continued = now_.first_entry > offsets_[row];
      now_.continues = e < end;
      close();
    }
    if (offsets_[row] == end) refuse();
    open(i + 1, end);
  }
  [[noreturn]] void refuse() const {
    const far_chunk one{.rows = 1, .entries = 1, .needed = 1};
    throw_error<budget_error>({"a product with far operands of ", size_.width, " columns takes ",
                               2 * (slot_of(size_, one).end + size_.slot - room_of(size_)),
                               " bytes for one entry, which a window of near memory of ", 2 * size_.slot,
                               " bytes does not hold"});
  }

  far_spmm_size size_;
  std::size_t room_;
  std::span<const local_index> offsets_;
  index_reader<Device> columns_;
  std::vector<local_index> seen_;  ///< the last chunk that needs each column
  std::vector<far_chunk> chunks_;
  far_chunk now_;
  local_index number_ = 0;
  std::size_t program_ = 0;
};

}  // namespace detail

}  // namespace partita::local

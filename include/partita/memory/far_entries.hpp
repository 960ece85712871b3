// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Passes over the entries of a sparse pattern of which an operand is far: chunks of the rows of the pattern
/// pass through the window of near memory, with what they need of every operand, in the same order in every
/// pass. A pass that writes nothing but sums over the entries of columns goes through chunks of the rows of
/// the transpose: each sum is then formed and written once, and rows and values of entries are gathered.
///
/// Source: Ai et al., NeutronTP (VLDB 2025), section 4.2, chunks of destination vertices.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "partita/base/function_reference.hpp"
#include "partita/memory/far_chunks.hpp"
#include "partita/memory/far_cut.hpp"
#include "partita/memory/far_forecast.hpp"
#include "partita/memory/far_plan.hpp"
#include "partita/memory/out_of_core.hpp"

namespace partita::local {

namespace detail {

/// Whether a pass goes through the transpose of its pattern.
inline bool goes_turned(const pass_options& with, std::span<const operand> x) {
  const auto is_sum = [](const operand& o) { return !o.is_written || o.has == along::columns; };
  return with.inverse && std::ranges::any_of(x, &operand::is_written) && std::ranges::all_of(x, is_sum);
}

/// What passes in a pass with these operands: nothing if none is far. If `turned`, the pass and the operands
/// are those over the transpose.
template <class Channel, class Device>
pass_layout pass_size(const Channel& c, const entry_pass<Device>& p, std::span<const operand> operands,
                      bool turned) {
  pass_layout s;
  if (p.a.rows == 0 || (turned && p.a.cols == 0)) return {};
  s.structure =
      c.is_far(p.a.offsets) || (p.a.entries != 0 && p.a.columns != nullptr && c.is_far(p.a.columns));
  bool some = s.structure, gathered = false, added = false;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const operand& x = operands[i];
    const bool far = is_far(c, x) && (x.has != along::entries || p.a.entries != 0);
    some = some || far;
    s.has[i] = x.has;
    s.of[i] = far || x.has == along::columns || (turned && x.has == along::entries) ? x.row_bytes() : 0;
    s.kept[i] = far && x.has == along::rows && x.is_written ? x.row_bytes() : 0;
    if (x.has != along::columns) continue;
    s.renumbers = s.renumbers || far;
    gathered = gathered || x.is_read;
    added = added || x.is_written;
  }
  if (!some) return {};
  s.turned = turned;
  s.structure = s.structure && !turned;
  s.inverse = p.with.inverse && !turned;
  s.renumbers = s.renumbers || p.with.inverse;
  s.global_columns = s.renumbers && p.with.global_columns;
  for (std::size_t i = 0; i < operands.size() && !s.renumbers; ++i)
    if (s.has[i] == along::columns) s.of[i] = 0;
  s.slot = c.slot_bytes();
  s.later_part = p.with.later_part;
  const bool shares = turned || (gathered && s.renumbers && !added && !s.inverse);
  return shares ? with_shared_table(s, p.a.cols) : s;
}

/// A pass, its operands and their sizes, in the order in which it goes: its own or that of the transpose.
template <class Device>
struct ordered_pass {
  entry_pass<Device> pass;
  std::vector<operand> x;
  pass_layout size;

  template <class Channel>
  ordered_pass(const Channel& c, const entry_pass<Device>& given, std::span<const operand> operands)
      : pass(given), x(operands.begin(), operands.end()) {
    const bool turned = goes_turned(given.with, operands);
    if (turned) {
      std::swap(pass.a.rows, pass.a.cols);
      for (operand& o : x) turn(o);
    }
    size = pass_size(c, pass, std::span<const operand>(x), turned);
  }

 private:
  static void turn(operand& o) {
    if (o.has == along::entries) return;
    o.has = o.has == along::rows ? along::columns : along::rows;
    o.is_read = o.is_read || (o.is_written && o.beta != 0);
  }
};

/// A pass of which something is far.
template <class Device>
class far_entries {
 public:
  far_entries(const device_queue<Device>& q, memory::far_channel<Device>& c, const far_plan<Device>& plan,
              const entry_pass<Device>& pass, std::span<const operand> x)
      : q_(q),
        c_(c),
        plan_(plan),
        pass_(pass),
        x_(x),
        far_indices_(!plan.indices().empty() && c.is_far(plan.indices().data())) {}

  void operator()(base::function_reference<void(const chunk&)> kernel) const {
    for (const operand& x : x_)
      if (adds(x) && size().renumbers) pass_.kernels->scale(q_, x.beta, x);
    const memory::far_traffic t = moved(false);
    if (c_.forecast() != nullptr)
      return c_.forecast()->add(std::string(pass_.with.what) + ' ' + plan_.explain(pass_.with.width), t);
    std::vector<operand> near(x_.begin(), x_.end());
    run_chunks(
        c_, plan_.chunks().size(), [&](std::size_t k) { fetch(k); },
        [&](std::size_t k) { compute(k, near, kernel); }, [&](std::size_t k) { store(k); });
    c_.traffic().near += t.near;
    c_.traffic().operand_rows += t.operand_rows;
    c_.traffic().rows_read += t.rows_read;
  }

  /// What passes, in closed form; its chunks do not count those that multiply by beta, which `scales` adds.
  /// Of `near`, each entry counts with its column, its values and the rows of operands of columns, and each
  /// row of a chunk. The replication of operands that are near does not count.
  memory::far_traffic moved(bool scales) const {
    memory::far_traffic t = plan_.of_structure(far_indices_);
    bool gathers = false;
    for (std::size_t i = 0; i < x_.size(); ++i) {
      const operand& x = x_[i];
      const std::uint64_t bytes = x.row_bytes();
      const bool far = is_far(c_, x);
      const std::uint64_t ways = adds(x) || (x.is_read && x.is_written) ? 2 : 1;
      if (x.has == along::entries) {
        t.near += plan_.entries() * bytes * ways;
        if (far && x.is_read) t.read += plan_.entries() * bytes;
        if (far && x.is_written) t.written += plan_.entries() * bytes;
      } else if (x.has == along::rows) {
        t.near += plan_.rows_visited() * bytes * ways;
        if (far && x.is_read) t.read += bytes * (x.is_written ? plan_.rows() : plan_.rows_visited());
        if (far && x.is_written) t.written += bytes * plan_.rows();
      } else {
        t.near += plan_.entries() * bytes * ways;
        gathers = gathers || far;
        if (!far) continue;
        const std::uint64_t scaled = scales && adds(x) && x.beta != 1 ? bytes * plan_.columns() : 0;
        t.read += bytes * plan_.rows_read() + (x.beta != 0 ? scaled : 0);
        t.written += adds(x) ? bytes * plan_.rows_read() + scaled : 0;
      }
    }
    if (!gathers) t.operand_rows = t.rows_read = 0;
    return t;
  }

 private:
  static bool adds(const operand& x) { return x.has == along::columns && x.is_written; }

  const pass_layout& size() const { return plan_.size(); }
  const far_chunk& of(std::size_t k) const { return plan_.chunks()[k]; }
  std::byte* slot(std::size_t k) const {
    return c_.slot(0) + table_bytes(size()) + k % 2 * slot_bytes(size());
  }
  std::byte* place(std::size_t k, std::size_t i) const { return slot(k) + slot_of(size(), of(k)).of[i]; }
  const local_index* indices(std::size_t k) const {
    return far_indices_ ? reinterpret_cast<const local_index*>(slot(k))
                        : plan_.indices().data() + of(k).indices;
  }
  /// The rows of the table that chunk k reads or adds to, as operand i.
  operand table(std::size_t k, std::size_t i) const {
    operand x = x_[i];
    const bool shared = size().places > 0;
    x.data = shared ? c_.slot(0) + table_begin(size(), i) : place(k, i);
    x.rows = shared ? size().places : of(k).needed;
    x.stride = static_cast<std::ptrdiff_t>(x.row_bytes());
    return x;
  }
  /// The numbers of the columns of a shared table.
  local_index* names() const { return reinterpret_cast<local_index*>(c_.slot(0) + table_begin(size())); }
  std::span<const local_index> list(std::size_t k, std::size_t index_layout::*of_list) const {
    return {indices(k) + index_layout(size(), of(k)).*of_list, static_cast<std::size_t>(of(k).loaded)};
  }
  /// The numbers of the entries of a chunk of a transpose.
  std::span<const local_index> entries(std::size_t k) const {
    return {indices(k) + index_layout(size(), of(k)).inverse, static_cast<std::size_t>(of(k).entries)};
  }

  void fetch_list(std::byte* near, const local_index* home, std::size_t count) const {
    const std::size_t bytes = count * sizeof(local_index);
    const auto stride = static_cast<std::ptrdiff_t>(bytes);
    if (bytes > 0) c_.move({near, stride, home, stride, bytes, 1});
  }
  void fetch(std::size_t k) const {
    const far_chunk& now = of(k);
    const index_layout part(size(), now);
    if (far_indices_) fetch_list(slot(k), plan_.indices().data() + now.indices, part.end);
    if (size().structure && !size().renumbers)
      fetch_list(slot(k) + slot_of(size(), now).columns, pass_.a.columns + now.first_entry,
                 static_cast<std::size_t>(now.entries));
    for (std::size_t i = 0; i < x_.size(); ++i)
      if (x_[i].has == along::columns && x_[i].is_read)
        gather(k, i);
      else if (x_[i].has == along::entries && size().turned)
        gather_entries(k, i);
      else if (x_[i].has != along::columns && x_[i].is_read)
        move(k, i, false);
    if (size().places > 0 && size().global_columns)
      pass_.kernels->name(c_.transfers(), list(k, &index_layout::list), list(k, &index_layout::places),
                          names());
  }
  void store(std::size_t k) const {
    for (std::size_t i = 0; i < x_.size(); ++i)
      if (adds(x_[i]))
        add(k, i);
      else if (x_[i].is_written)
        move(k, i, true);
  }
  /// Rows or entries of a chunk; a row that is written and lies in several chunks moves with the first and
  /// the last one.
  void move(std::size_t k, std::size_t i, bool stores) const {
    const operand& x = x_[i];
    const far_chunk& now = of(k);
    const bool of_entries = x.has == along::entries;
    const bool elsewhere =
        !of_entries && x.is_written && (stores ? now.splits_last_row : now.splits_first_row);
    const local_index count = of_entries ? now.entries : now.rows;
    if (size().of[i] == 0 || elsewhere || count == 0) return;
    move_rows(c_, x, of_entries ? now.first_entry : now.first_row, static_cast<std::size_t>(count),
              place(k, i), stores);
  }
  /// The rows that chunk k loads.
  void gather(std::size_t k, std::size_t i) const {
    const operand& x = x_[i];
    if (!size().renumbers) return;
    const std::span<const local_index> rows = list(k, &index_layout::list);
    const operand to = table(k, i);
    in_resident_parts(c_, rows, x, [&](std::size_t first, std::size_t count) {
      if (size().places > 0)
        pass_.kernels->place(c_.transfers(), x, rows.subspan(first, count),
                             list(k, &index_layout::places).subspan(first, count), to);
      else
        pass_.kernels->gather(c_.transfers(), x, rows.subspan(first, count),
                              to.row(static_cast<local_index>(first)));
    });
    if (is_far(c_, x)) c_.count_read(rows.size() * x.row_bytes());
  }
  /// The values of the entries of chunk k, in the order that they have in the pattern.
  void gather_entries(std::size_t k, std::size_t i) const {
    const std::span<const local_index> numbers = entries(k);
    operand x = x_[i];
    if (numbers.empty() || x.row_bytes() == 0) return;
    x.rows = plan_.numbers_end();
    in_resident_parts(c_, numbers, x, [&](std::size_t first, std::size_t count) {
      pass_.kernels->gather(c_.transfers(), x, numbers.subspan(first, count),
                            place(k, i) + first * x.row_bytes());
    });
    if (is_far(c_, x)) c_.count_read(numbers.size() * x.row_bytes());
  }
  /// Adds the table of chunk k to its rows.
  void add(std::size_t k, std::size_t i) const {
    const operand& x = x_[i];
    if (!size().renumbers) return;
    const std::span<const local_index> rows = list(k, &index_layout::list);
    in_resident_parts(c_, rows, x, [&](std::size_t first, std::size_t count) {
      pass_.kernels->add(c_.transfers(), place(k, i) + first * x.row_bytes(), rows.subspan(first, count), x);
    });
    if (!is_far(c_, x)) return;
    c_.count_read(rows.size() * x.row_bytes());
    c_.count_written(rows.size() * x.row_bytes());
  }

  /// What a kernel gets of operand i for chunk k.
  operand near(std::size_t k, std::size_t i) const {
    operand x = x_[i];
    const far_chunk& now = of(k);
    if (x.has == along::columns) return size().renumbers ? table(k, i) : x;
    const bool of_rows = x.has == along::rows;
    x.data = size().of[i] > 0 ? place(k, i) : x.row(of_rows ? now.first_row : now.first_entry);
    if (of_rows) x.rows = now.rows;
    if (size().of[i] > 0) x.stride = static_cast<std::ptrdiff_t>(x.row_bytes());
    if (size().kept[i] == 0 || !(now.splits_first_row || now.splits_last_row)) return x;
    const std::span<std::byte> here(x.data, x.row_bytes()),
        kept(slot(0) + slot_bytes(size()) - kept_bytes(size(), i), x.row_bytes());
    if (now.splits_first_row && !now.splits_last_row) copy(q_, std::span<const std::byte>(kept), here);
    if (!now.splits_first_row && x.is_read) copy(q_, std::span<const std::byte>(here), kept);
    if (now.splits_last_row) x.data = kept.data();
    return x;
  }
  local_index columns_of(const far_chunk& c) const {
    return !size().renumbers ? pass_.a.cols : size().places > 0 ? size().places : c.needed;
  }
  void compute(std::size_t k, std::span<operand> operands,
               base::function_reference<void(const chunk&)> kernel) const {
    const far_chunk& now = of(k);
    const index_layout part(size(), now);
    const local_index* const from = indices(k);
    for (std::size_t i = 0; i < x_.size(); ++i) operands[i] = near(k, i);
    chunk given{.operands = operands.data(),
                .entries = {now.rows, columns_of(now), from, pass_.a.columns + now.first_entry, now.entries},
                .global_columns = !size().global_columns ? nullptr
                                  : size().places > 0    ? names()
                                                         : from + part.list,
                .first_row = now.first_row,
                .first_entry = now.first_entry,
                .is_whole = false,
                .splits_first_row = now.splits_first_row,
                .splits_last_row = now.splits_last_row,
                .adds = size().renumbers && !size().turned,
                .has_added = size().turned ? now.splits_first_row : k > 0};
    if (size().renumbers)
      given.entries.columns = from + part.columns;
    else if (size().structure)
      given.entries.columns = reinterpret_cast<const local_index*>(slot(k) + slot_of(size(), now).columns);
    if (size().inverse) {
      given.column_offsets = from + part.inverse;
      given.entry_rows = from + part.inverse_rows(now);
      given.entry_numbers = from + part.inverse_numbers(now);
    } else if (size().turned) {
      given.entries = {size().places, now.rows, nullptr, nullptr, now.entries};
      given.column_offsets = from;
      given.entry_rows = from + part.columns;
      given.entry_numbers = from + part.turned_places(now);
    }
    kernel(given);
  }

  const device_queue<Device>& q_;
  memory::far_channel<Device>& c_;
  const far_plan<Device>& plan_;
  const entry_pass<Device>& pass_;
  std::span<const operand> x_;
  bool far_indices_;
};

}  // namespace detail

}  // namespace partita::local

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Kernels on the entries of a sparse pattern of which an operand is far: chunks of the rows of the pattern
/// pass through the window of near memory, with what they need of every operand.
///
/// Source: Ai et al., NeutronTP (VLDB 2025), section 4.2, chunks of destination vertices.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "partita/local/csr_inverse.hpp"
#include "partita/local/edge_operands.hpp"
#include "partita/local/far_chunks.hpp"
#include "partita/local/far_spmm.hpp"
#include "partita/local/far_spmm_plan.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/device.hpp"
#include "partita/memory/far.hpp"

namespace partita::local {

namespace detail {

/// A pass with these operands.
template <class T, class Device, class... X>
class far_edge_run {
 public:
  far_edge_run(const device_queue<Device>& q, const far_plan<Device>& plan, const csr_view<T>& a,
               const X&... x)
      : q_(q), c_(*far_of(q)), plan_(plan), a_(a), x_(x...) {}

  template <class F>
  void operator()(const F& f) {
    scale();
    const far_traffic t = moved(false);
    if (c_.forecast() != nullptr) return c_.forecast()->add("pass over edges " + plan_.explain(), t);
    run_chunks(
        c_, plan_.chunks().size(), [&](std::size_t k) { fetch(k); }, [&](std::size_t k) { compute(f, k); },
        [&](std::size_t k) { store(k); });
    c_.traffic().near += t.near;
    c_.traffic().operand_rows += t.operand_rows;
    c_.traffic().rows_needed += t.rows_needed;
    c_.traffic().rows_read += t.rows_read;
  }

  /// What passes, in closed form; its chunks do not count those that multiply by beta.
  far_traffic predicted() const { return moved(true); }

 private:
  /// `scales`: with what passes where operands that are added to are multiplied by beta first. Of `near`,
  /// each entry counts with its column, its values and the rows of operands of columns, and each row of a
  /// chunk.
  far_traffic moved(bool scales) const {
    far_traffic t = of_structure();
    each([&](const auto& operand, std::size_t place) {
      constexpr int kind = edge_kind<std::remove_cvref_t<decltype(operand)>>;
      const std::uint64_t bytes = bytes_of_row(operand);
      t.near += near_bytes(operand);
      if constexpr (kind == of_entries) {
        const std::uint64_t all = size().of_entry[place] * plan_.entries();
        if (operand.is_read) t.read += all;
        if (operand.is_written) t.written += all;
      } else if constexpr (kind == of_rows) {
        if (!is_far(operand)) return;
        if (reads_rows(operand))
          t.read += bytes * (writes_rows(operand) ? plan_.rows() : plan_.rows_visited());
        if (writes_rows(operand)) t.written += bytes * plan_.rows();
      } else if (is_far(operand) && size().renumbers) {
        t.read += bytes * (operand.is_added ? plan_.rows_needed() : plan_.rows_read());
        if (!operand.is_added) return;
        t.read += scales && operand.beta != 0 && operand.beta != 1 ? bytes * plan_.columns() : 0;
        t.written += bytes * (plan_.rows_needed() + (scales && operand.beta != 1 ? plan_.columns() : 0));
      }
    });
    return t;
  }
  template <class Operand>
  std::uint64_t near_bytes(const Operand& operand) const {
    constexpr int kind = edge_kind<Operand>;
    if constexpr (kind == of_entries)
      return plan_.entries() * static_cast<std::uint64_t>(operand.width) * sizeof(*operand.data) *
             (operand.is_read && operand.is_written ? 2 : 1);
    else if constexpr (kind == of_rows)
      return plan_.rows_visited() * bytes_of_row(operand) *
             (reads_rows(operand) && writes_rows(operand) ? 2 : 1);
    else
      return plan_.entries() * bytes_of_row(operand) * (operand.is_added ? 2 : 1);
  }

  const far_pass_size& size() const { return plan_.size(); }
  const far_chunk& chunk(std::size_t k) const { return plan_.chunks()[k]; }
  far_slot slot_of_chunk(std::size_t k) const { return slot_of(size(), chunk(k)); }
  std::byte* slot(std::size_t k) const { return c_.slot(static_cast<int>(k % 2)); }
  template <class F>
  void each(const F& f) const {
    std::apply([&](const X&... x) { for_operands(f, x...); }, x_);
  }
  template <class Operand>
  bool is_far(const Operand& x) const {
    return bytes_of_row(x) > 0 && memory_of(x) != nullptr && c_.is_far(memory_of(x));
  }
  bool far_program() const { return !plan_.program().empty() && c_.is_far(plan_.program().data()); }
  /// The replication of operands that are near does not count.
  far_traffic of_structure() const {
    far_traffic t = plan_.of_structure(far_program());
    bool gathers = false;
    each([&](const auto& operand, std::size_t) {
      if constexpr (edge_kind<std::remove_cvref_t<decltype(operand)>> == of_columns)
        gathers = gathers || is_far(operand);
    });
    if (!gathers) t.operand_rows = t.rows_needed = t.rows_read = 0;
    return t;
  }

  const local_index* program_of(std::size_t k) const {
    return far_program() ? reinterpret_cast<const local_index*>(slot(k))
                         : plan_.program().data() + chunk(k).program;
  }
  std::span<const local_index> needed_of(std::size_t k, std::size_t begin) const {
    return {program_of(k) + begin, static_cast<std::size_t>(chunk(k).needed)};
  }
  template <class U>
  matrix_view<std::remove_const_t<U>> table_of(std::size_t k, const column_operand<U>& x,
                                               std::size_t place) const {
    auto* const data = reinterpret_cast<std::remove_const_t<U>*>(slot(k) + slot_of_chunk(k).tables[place]);
    return {data, chunk(k).needed, x.view.cols, x.view.cols};
  }

  void scale() const {
    each([&](const auto& operand, std::size_t) {
      if constexpr (requires { operand.is_added; })
        if constexpr (!std::is_const_v<std::remove_pointer_t<decltype(operand.view.data)>>)
          if (operand.is_added && size().renumbers) scale_rows(q_, operand.beta, operand.view);
    });
  }

  /// Between home and a slot.
  void move(std::byte* near, const void* home, std::size_t bytes, bool stores) const {
    const auto stride = static_cast<std::ptrdiff_t>(bytes);
    if (bytes == 0) return;
    auto* const of_home = const_cast<void*>(home);
    c_.move(stores ? block_copy{of_home, stride, near, stride, bytes, 1}
                   : block_copy{near, stride, home, stride, bytes, 1});
  }
  template <class U>
  void move(std::size_t k, const entry_operand<U>& x, std::size_t place, bool stores) const {
    const std::size_t bytes = size().of_entry[place];
    if (stores ? x.is_written : x.is_read)
      move(slot(k) + slot_of_chunk(k).entries[place], home_of(x, k),
           bytes * static_cast<std::size_t>(chunk(k).entries), stores);
  }
  template <class Operand>
  void move_rows(std::size_t k, const Operand& x, std::size_t place, bool stores) const {
    const std::size_t bytes = size().of_row[place];
    const bool elsewhere = writes_rows(x) && (stores ? chunk(k).continues : chunk(k).continued);
    if (bytes == 0 || elsewhere || !(stores ? writes_rows(x) : reads_rows(x))) return;
    const matrix_view rows = x.view.block(chunk(k).first_row, 0, chunk(k).rows, x.view.cols);
    const auto width = static_cast<std::ptrdiff_t>(bytes);
    const auto stride = rows.row_stride * static_cast<std::ptrdiff_t>(sizeof(*rows.data));
    std::byte* const near = slot(k) + slot_of_chunk(k).rows[place];
    const auto count = static_cast<std::size_t>(rows.rows);
    auto* const home =
        const_cast<std::remove_const_t<std::remove_pointer_t<decltype(rows.data)>>*>(rows.data);
    c_.move(stores ? block_copy{home, stride, near, width, bytes, count}
                   : block_copy{near, width, home, stride, bytes, count});
  }
  /// The rows that chunk k needs: the fresh ones, then those of the table before.
  template <class U>
  void gather(std::size_t k, const column_operand<U>& x, std::size_t place) const {
    using value = std::remove_const_t<U>;
    const auto fresh = static_cast<std::size_t>(chunk(k).fresh);
    const auto list = needed_of(k, far_program_part(size(), chunk(k)).list);
    const matrix_view<value> table = table_of(k, x, place);
    gather_rows(c_.transfers(), matrix_view<const value>(x.view), list.first(fresh), table.data);
    if (is_far(x)) c_.count_read(fresh * bytes_of_row(x));
    if (fresh < list.size())
      gather_rows(c_.transfers(), matrix_view<const value>(table_of(k - 1, x, place)), list.subspan(fresh),
                  table.row_data(chunk(k).fresh));
  }
  template <class U>
  void add(std::size_t k, const column_operand<U>& x, std::size_t place) const {
    const far_program_part part(size(), chunk(k));
    const auto list = needed_of(k, size().names ? part.names : part.list);
    scatter_add_distinct_rows(c_.transfers(), table_of(k, x, place).data, list, x.view);
    if (!is_far(x)) return;
    c_.count_read(list.size() * bytes_of_row(x));
    c_.count_written(list.size() * bytes_of_row(x));
  }

  void fetch(std::size_t k) const {
    if (far_program())
      move(slot(k), plan_.program().data() + chunk(k).program,
           far_program_part(size(), chunk(k)).end * sizeof(local_index), false);
    if (size().structure && !size().renumbers)
      move(slot(k) + slot_of_chunk(k).columns, a_.columns + chunk(k).first_entry,
           static_cast<std::size_t>(chunk(k).entries) * sizeof(local_index), false);
    each([&](const auto& operand, std::size_t place) {
      constexpr int kind = edge_kind<std::remove_cvref_t<decltype(operand)>>;
      if constexpr (kind == of_entries)
        move(k, operand, place, false);
      else if constexpr (kind == of_rows)
        move_rows(k, operand, place, false);
      else if (size().renumbers && !operand.is_added)
        gather(k, operand, place);
    });
  }
  void store(std::size_t k) const {
    each([&](const auto& operand, std::size_t place) {
      constexpr int kind = edge_kind<std::remove_cvref_t<decltype(operand)>>;
      if constexpr (kind == of_entries) {
        move(k, operand, place, true);
      } else if constexpr (kind == of_rows) {
        move_rows(k, operand, place, true);
      } else if constexpr (!std::is_const_v<std::remove_pointer_t<decltype(operand.view.data)>>) {
        if (size().renumbers && operand.is_added) add(k, operand, place);
      }
    });
  }

  template <class U>
  U* home_of(const entry_operand<U>& x, std::size_t k) const {
    return x.data + std::ptrdiff_t{chunk(k).first_entry} * x.width;
  }
  /// What f gets of an operand.
  template <class U>
  U* near(std::size_t k, const entry_operand<U>& x, std::size_t place) const {
    if (size().of_entry[place] == 0) return home_of(x, k);
    return reinterpret_cast<U*>(slot(k) + slot_of_chunk(k).entries[place]);
  }
  template <class U>
  matrix_view<U> near(std::size_t k, const column_operand<U>& x, std::size_t place) const {
    if (!size().renumbers) return x.view;
    return table_of(k, x, place);
  }
  template <class U>
  matrix_view<U> near(std::size_t k, const copied_rows<U>& x, std::size_t place) const {
    return {reinterpret_cast<U*>(slot(k) + slot_of_chunk(k).rows[place]), chunk(k).rows, x.view.cols,
            x.view.cols};
  }
  template <class U>
  matrix_view<U> near(std::size_t k, const row_operand<U>& x, std::size_t place) const {
    const far_chunk& now = chunk(k);
    if (size().of_row[place] == 0) return x.view.block(now.first_row, 0, now.rows, x.view.cols);
    const matrix_view<U> rows{reinterpret_cast<U*>(slot(k) + slot_of_chunk(k).rows[place]), now.rows,
                              x.view.cols, x.view.cols};
    if constexpr (!std::is_const_v<U>) {
      if (size().kept[place] == 0 || !(now.continued || now.continues)) return rows;
      std::size_t end = room_of(size());
      const matrix_view<U> kept{reinterpret_cast<U*>(c_.slot(0) + parts_from(end, 1, size().kept)[place]), 1,
                                rows.cols, rows.cols};
      if (now.continued && !now.continues) copy(q_, kept, rows);
      if (!now.continued && x.is_read) copy(q_, rows, kept);
      if (now.continues) return kept;
    }
    return rows;
  }

  template <class F>
  void compute(const F& f, std::size_t k) const {
    const far_chunk& now = chunk(k);
    const far_program_part part(size(), now);
    const local_index* const program = program_of(k);
    const csr_view<T> pattern{now.rows,
                              size().renumbers ? now.needed : a_.cols,
                              program,
                              size().renumbers ? program + part.columns
                              : size().structure
                                  ? reinterpret_cast<const local_index*>(slot(k) + slot_of_chunk(k).columns)
                                  : a_.columns + now.first_entry,
                              nullptr,
                              now.entries};
    edge_chunk<T> given{.pattern = pattern,
                        .names = size().names ? program + part.names : nullptr,
                        .first_row = now.first_row,
                        .first_entry = now.first_entry,
                        .is_whole = false,
                        .continued = now.continued,
                        .continues = now.continues,
                        .adds = size().renumbers,
                        .has_added = k > 0};
    if (size().inverse)
      given.inverse = {now.rows,
                       now.needed,
                       program + part.inverse,
                       program + part.inverse_rows(now),
                       program + part.inverse_numbers(now),
                       now.entries};
    std::apply([&](const X&... x) { call(f, given, k, std::make_index_sequence<sizeof...(X)>(), x...); }, x_);
  }
  template <class F, std::size_t... I>
  void call(const F& f, const edge_chunk<T>& given, std::size_t k, std::index_sequence<I...>,
            const X&... x) const {
    constexpr auto places = places_of_operands<X...>();
    f(given, near(k, x, places[I])...);
  }

  const device_queue<Device>& q_;
  far_channel<Device>& c_;
  const far_plan<Device>& plan_;
  csr_view<T> a_;
  std::tuple<const X&...> x_;
};

}  // namespace detail

/// Passes over the entries of patterns, planned when an operand is first found far.
template <class Device>
class far_edges {
 public:
  /// Calls f(edge_chunk, views of the operands ...) for consecutive rows of a: once, for all of them, unless
  /// a or an operand is far. f gets a pointer to the values of entries, those of the chunk's first entry, and
  /// views of rows. What is far, f is given near copies of; operands of columns, if one of them is far, are
  /// tables of those rows that the chunk needs, and those that are added have any values in them. A row that
  /// does not fit lies in several chunks: f then gets the same row again, with what it wrote. `number`: tells
  /// patterns apart whose arrays are received in the same memory.
  ///
  /// Throws what f throws, and budget_error if the window does not hold one entry with its rows twice.
  template <class T, class F, class... X>
  void operator()(const device_queue<Device>& q, std::size_t number, const csr_view<T>& a, edge_pass wants,
                  const F& f, const X&... x) {
    const far_pass_size size = size_of(q, a, wants, x...);
    if (size.slot == 0) return f(edge_chunk<T>{.pattern = a}, detail::whole(x)...);
    detail::far_edge_run<T, Device, X...>(q, plan_of(q, number, a, size), a, x...)(f);
  }

  /// The inverse of a, made when first asked for: for calls in which nothing is far.
  template <class T>
  const csr_inverse<Device>& inverse(const device_queue<Device>& q, std::size_t number,
                                     const csr_view<T>& a) {
    const auto key = std::tuple(a.offsets, a.columns, number);
    const auto found = inverses_.find(key);
    return found != inverses_.end() ? found->second
                                    : inverses_.try_emplace(key, inverse_of(q, a)).first->second;
  }

  /// What passes in such a call, in closed form: nothing unless something is far.
  template <class T, class... X>
  far_traffic predicted(const device_queue<Device>& q, std::size_t number, const csr_view<T>& a,
                        edge_pass wants, const X&... x) {
    const far_pass_size size = size_of(q, a, wants, x...);
    if (size.slot == 0) return {};
    return detail::far_edge_run<T, Device, X...>(q, plan_of(q, number, a, size), a, x...).predicted();
  }
  /// Its chunks: none unless something is far.
  template <class T, class... X>
  std::span<const far_chunk> chunks(const device_queue<Device>& q, std::size_t number, const csr_view<T>& a,
                                    edge_pass wants, const X&... x) {
    const far_pass_size size = size_of(q, a, wants, x...);
    return size.slot == 0 ? std::span<const far_chunk>() : plan_of(q, number, a, size).chunks();
  }

 private:
  template <class T, class... X>
  static far_pass_size size_of(const device_queue<Device>& q, const csr_view<T>& a, edge_pass wants,
                               const X&... x) {
    const auto* const channel = far_of(q);
    return channel == nullptr ? far_pass_size{} : detail::pass_size(*channel, a, wants, x...);
  }
  template <class T>
  const far_plan<Device>& plan_of(const device_queue<Device>& q, std::size_t number, const csr_view<T>& a,
                                  const far_pass_size& size) {
    const auto key = std::tuple(a.offsets, a.columns, number, size);
    const auto found = plans_.find(key);
    if (found != plans_.end()) return found->second;
    return plans_.try_emplace(key, q, a.rows, a.cols, a.offsets, a.columns, size).first->second;
  }

  std::map<std::tuple<const local_index*, const local_index*, std::size_t, far_pass_size>, far_plan<Device>>
      plans_;
  std::map<std::tuple<const local_index*, const local_index*, std::size_t>, csr_inverse<Device>> inverses_;
};

}  // namespace partita::local

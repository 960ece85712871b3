// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Products with a sparse block of which an operand, dense or sparse, is far: chunks of the rows of A pass
/// through the window of near memory, in the same order in every product.
///
/// Source: Ai et al., NeutronTP (VLDB 2025), section 4.2; rows of the chunk before are not read again.

#include <cstddef>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "partita/local/far_chunks.hpp"
#include "partita/local/far_rows.hpp"
#include "partita/local/far_spmm_plan.hpp"
#include "partita/local/fusion.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/device.hpp"
#include "partita/memory/far.hpp"
#include "partita/memory/far_forecast.hpp"

namespace partita::local {

namespace detail {

template <class T>
struct scaled_by {
  T factor;
  constexpr T operator()(const T& x) const { return factor * x; }
};

/// y = beta y; does not read y if beta is 0.
template <class T, class Device>
void scale_rows(const device_queue<Device>& q, T beta, const matrix_view<T>& y) {
  if (beta == 0)
    by_rows(
        q, [&](local_index, matrix_view<T> part) { fill(q, T(0), part); }, writes(y));
  else if (beta != 1)
    by_rows(
        q, [&](local_index, matrix_view<T> part) { transform(q, scaled_by<T>{beta}, part, part); },
        updates(y));
}

}  // namespace detail

/// The products of one block. An operand that is near is used where it is; the others pass through the
/// window of the queue.
template <class T, class Device>
class far_spmm {
 public:
  /// As far_spmm_plan. The queue has far memory.
  far_spmm(const device_queue<Device>& q, const csr_view<T>& a, const far_spmm_size& size)
      : plan_(q, a.rows, a.cols, a.offsets, a.columns, size) {}

  /// y = the epilogue of a x. A row of y whose entries fit into one chunk has the value that the kernel
  /// spmm_fused gives it, bit for bit; the others are summed chunk by chunk.
  void multiply(const device_queue<Device>& q, const csr_view<T>& a, const matrix_view<const T>& x,
                const spmm_epilogue<T>& fusion, const matrix_view<T>& y) {
    require_product("spmm", a, x, y, "a x");
    auto& c = *far_of(q);
    const far_traffic moved = predicted(q, fusion.beta);
    if (c.forecast() != nullptr) return c.forecast()->add("product " + plan_.explain(), moved);
    run_chunks(
        c, plan_.chunks().size(),
        [&](std::size_t k) {
          fetch_block(c, k, a);
          fetch_table(c, k, x);
          if (fusion.beta != 0 && !chunk(k).continued) move_rows(c, k, y, false);
        },
        [&](std::size_t k) { compute(q, c, k, a, x, fusion, y); },
        [&](std::size_t k) {
          if (!chunk(k).continues) move_rows(c, k, y, true);
        });
    count(c, moved);
  }

  /// y = alpha a^T x + beta y. If y is far, the partial sums of a chunk are added to it, in the order of the
  /// chunks; else bit for bit what the kernel spmm_transposed of one thread computes.
  void multiply_transposed(const device_queue<Device>& q, const csr_view<T>& a, const matrix_view<const T>& x,
                           T alpha, T beta, const matrix_view<T>& y) {
    require_product("spmm_transposed", matrix_shape{a.cols, a.rows}, x, y, "a^T x");
    const bool adds = size().column_operand;
    if (adds) detail::scale_rows(q, beta, y);
    auto& c = *far_of(q);
    const far_traffic moved = plan_.predicted_transposed(far_program(c), false, false);
    if (c.forecast() != nullptr) return c.forecast()->add("transposed product " + plan_.explain(), moved);
    run_chunks(
        c, plan_.chunks().size(),
        [&](std::size_t k) {
          fetch_block(c, k, a);
          move_rows(c, k, x, false);
        },
        [&](std::size_t k) {
          const far_chunk& now = chunk(k);
          const matrix_view<const T> rows =
              size().row_operand ? rows_of(c, k) : x.block(now.first_row, 0, now.rows, x.cols);
          spmm_transposed(q, block_of(c, k, a), rows, alpha,
                          adds     ? T(0)
                          : k == 0 ? beta
                                   : T(1),
                          adds ? table_of(c, k) : y);
        },
        [&](std::size_t k) {
          if (adds) add_table(c, k, y);
        });
    count(c, moved);
  }

  /// The bytes that pass in y = alpha a x + beta y, in closed form.
  far_traffic predicted(const device_queue<Device>& q, T beta) const {
    return plan_.predicted(far_program(*far_of(q)), beta != 0);
  }
  /// The same of y = alpha a^T x + beta y; its chunks do not count those that set y to beta y.
  far_traffic predicted_transposed(const device_queue<Device>& q, T beta) const {
    return plan_.predicted_transposed(far_program(*far_of(q)), beta != 0 && beta != 1, beta != 1);
  }
  const far_spmm_plan<Device>& plan() const { return plan_; }

 private:
  using channel = far_channel<Device>;

  const far_spmm_size& size() const { return plan_.size(); }
  const far_chunk& chunk(std::size_t k) const { return plan_.chunks()[k]; }
  bool far_program(const channel& c) const {
    return !plan_.program().empty() && c.is_far(plan_.program().data());
  }
  static std::byte* slot(channel& c, std::size_t k) { return c.slot(static_cast<int>(k % 2)); }
  static void count(channel& c, const far_traffic& moved) {
    c.traffic().near += moved.near;
    c.traffic().operand_rows += moved.operand_rows;
    c.traffic().rows_needed += moved.rows_needed;
    c.traffic().rows_read += moved.rows_read;
  }

  /// Where chunk k has its program, columns and values while it is computed with.
  const local_index* program_of(channel& c, std::size_t k) const {
    return far_program(c) ? reinterpret_cast<const local_index*>(slot(c, k))
                          : plan_.program().data() + chunk(k).program;
  }
  std::span<const local_index> list_of(channel& c, std::size_t k) const {
    const far_program_part part(size(), chunk(k));
    return {program_of(c, k) + part.list, static_cast<std::size_t>(chunk(k).needed)};
  }
  matrix_view<T> table_of(channel& c, std::size_t k) const {
    const far_chunk& now = chunk(k);
    return {reinterpret_cast<T*>(slot(c, k) + slot_of(size(), now).tables[0]), now.needed, size().width,
            size().width};
  }
  /// The rows of the row operand, in the slot.
  matrix_view<T> rows_of(channel& c, std::size_t k) const {
    const far_chunk& now = chunk(k);
    return {reinterpret_cast<T*>(slot(c, k) + slot_of(size(), now).rows[0]), now.rows, size().width,
            size().width};
  }
  csr_view<T> block_of(channel& c, std::size_t k, const csr_view<T>& a) const {
    const far_chunk& now = chunk(k);
    const far_slot at = slot_of(size(), now);
    const local_index* const program = program_of(c, k);
    csr_view<T> part{now.rows,
                     size().column_operand ? now.needed : a.cols,
                     program,
                     program + far_program_part(size(), now).columns,
                     a.values + now.first_entry,
                     now.entries};
    if (!size().column_operand)
      part.columns = size().structure ? reinterpret_cast<const local_index*>(slot(c, k) + at.columns)
                                      : a.columns + now.first_entry;
    if (size().values) part.values = reinterpret_cast<const T*>(slot(c, k) + at.entries[0]);
    return part;
  }

  template <class U>
  static void fetch(channel& c, std::byte* to, const U* from, std::size_t count) {
    const std::size_t bytes = count * sizeof(U);
    const auto stride = static_cast<std::ptrdiff_t>(bytes);
    if (bytes > 0) c.move({to, stride, from, stride, bytes, 1});
  }
  void fetch_block(channel& c, std::size_t k, const csr_view<T>& a) const {
    const far_chunk& now = chunk(k);
    const far_slot at = slot_of(size(), now);
    std::byte* const to = slot(c, k);
    const auto entries = static_cast<std::size_t>(now.entries);
    if (far_program(c)) fetch(c, to, plan_.program().data() + now.program, far_program_part(size(), now).end);
    if (size().structure && !size().column_operand)
      fetch(c, to + at.columns, a.columns + now.first_entry, entries);
    if (size().values) fetch(c, to + at.entries[0], a.values + now.first_entry, entries);
  }
  /// The rows of x that chunk k needs: the fresh ones, then those of the table before.
  void fetch_table(channel& c, std::size_t k, const matrix_view<const T>& x) const {
    if (!size().column_operand) return;
    const auto fresh = static_cast<std::size_t>(chunk(k).fresh);
    const std::span<const local_index> list = list_of(c, k);
    const matrix_view<T> table = table_of(c, k);
    detail::in_resident_parts(c, list.first(fresh), x, [&](std::size_t first, std::size_t rows) {
      gather_rows(c.transfers(), x, list.subspan(first, rows),
                  table.row_data(static_cast<local_index>(first)));
    });
    c.count_read(fresh * size().row_bytes());
    if (fresh < list.size())
      gather_rows(c.transfers(), matrix_view<const T>(table_of(c, k - 1)), list.subspan(fresh),
                  table.row_data(chunk(k).fresh));
  }
  /// Adds the table of chunk k to its rows of y.
  void add_table(channel& c, std::size_t k, const matrix_view<T>& y) const {
    const std::span<const local_index> list = list_of(c, k);
    const matrix_view<T> table = table_of(c, k);
    detail::in_resident_parts(c, list, y, [&](std::size_t first, std::size_t rows) {
      scatter_add_distinct_rows(c.transfers(), table.row_data(static_cast<local_index>(first)),
                                list.subspan(first, rows), y);
    });
    c.count_read(list.size() * size().row_bytes());
    c.count_written(list.size() * size().row_bytes());
  }
  /// The rows of chunk k between the row operand and the slot.
  template <class U>
  void move_rows(channel& c, std::size_t k, const matrix_view<U>& rows, bool stores) const {
    if (!size().row_operand || size().width == 0) return;
    const far_chunk& now = chunk(k);
    const matrix_view<T> near = rows_of(c, k);
    const auto bytes = static_cast<std::ptrdiff_t>(size().row_bytes());
    const std::ptrdiff_t stride = rows.row_stride * static_cast<std::ptrdiff_t>(sizeof(T));
    auto* const home = const_cast<T*>(rows.row_data(now.first_row));
    const auto count = static_cast<std::size_t>(now.rows);
    c.move(stores ? block_copy{home, stride, near.data, bytes, size().row_bytes(), count}
                  : block_copy{near.data, bytes, home, stride, size().row_bytes(), count});
  }

  void compute(const device_queue<Device>& q, channel& c, std::size_t k, const csr_view<T>& a,
               const matrix_view<const T>& x, spmm_epilogue<T> fusion, const matrix_view<T>& y) const {
    const far_chunk& now = chunk(k);
    const matrix_view<const T> table = size().column_operand ? table_of(c, k) : x;
    matrix_view<T> to = size().row_operand ? rows_of(c, k) : y.block(now.first_row, 0, now.rows, y.cols);
    if (size().row_operand && (now.continued || now.continues)) {
      const matrix_view<T> sum{reinterpret_cast<T*>(c.slot(0) + room_of(size())), 1, y.cols, y.cols};
      if (now.continued && !now.continues) copy(q, sum, to);
      if (now.continues && !now.continued && fusion.beta != 0) copy(q, to, sum);
      if (now.continues) to = sum;
    }
    if (now.continued) fusion.beta = 1;
    fusion = now.continues ? fusion.without_end() : fusion.from_row(now.first_row);
    spmm_fused(q, block_of(c, k, a), table, fusion, to);
  }

  far_spmm_plan<Device> plan_;
};

/// Products with blocks that are multiplied repeatedly, planned when an operand is first found far.
template <class T, class Device>
class far_products {
 public:
  /// y = the epilogue of a x, if the queue has far memory and an operand is there; whether it was.
  /// `number`: tells blocks apart whose arrays are received in the same memory. `later_part`: whether the
  /// same x has been multiplied by a part of the block before.
  bool multiply(const device_queue<Device>& q, std::size_t number, const csr_view<T>& a, input_view<T> x,
                std::type_identity_t<spmm_epilogue<T>> fusion, const matrix_view<T>& y,
                bool later_part = false) {
    far_spmm<T, Device>* const found = find(q, number, a, x, y, later_part, true);
    if (found != nullptr) found->multiply(q, a, x, fusion, y);
    return found != nullptr;
  }
  /// y = alpha a^T x + beta y, likewise.
  bool multiply_transposed(const device_queue<Device>& q, std::size_t number, const csr_view<T>& a,
                           input_view<T> x, scalar<T> alpha, scalar<T> beta, const matrix_view<T>& y,
                           bool later_part = false) {
    far_spmm<T, Device>* const found = find(q, number, a, matrix_view<const T>(y), x, later_part, false);
    if (found != nullptr) found->multiply_transposed(q, a, x, alpha, beta, y);
    return found != nullptr;
  }

 private:
  /// The products of the block, or null if nothing is far.
  template <class U>
  far_spmm<T, Device>* find(const device_queue<Device>& q, std::size_t number, const csr_view<T>& a,
                            const matrix_view<const T>& of_columns, const matrix_view<U>& of_rows,
                            bool later_part, bool keeps) {
    auto* const channel = far_of(q);
    if (channel == nullptr) return nullptr;
    const auto is_far = [&](const auto* data, local_index count) {
      return count > 0 && data != nullptr && channel->is_far(data);
    };
    const bool some = a.entries != 0 && of_rows.cols > 0;
    const far_spmm_size size{.structure = is_far(a.columns, a.rows) || is_far(a.offsets, a.rows),
                             .values = some && is_far(a.values, a.rows),
                             .row_operand = is_far(of_rows.data, of_rows.cols),
                             .column_operand = is_far(of_columns.data, of_columns.cols),
                             .keeps = keeps,
                             .width = of_rows.cols,
                             .element = sizeof(T),
                             .slot = channel->slot_bytes(),
                             .later_part = later_part};
    if (a.rows == 0 || !(size.structure || size.values || size.row_operand || size.column_operand))
      return nullptr;
    const auto key = std::tuple(a.offsets, a.columns, number, size);
    const auto found = plans_.find(key);
    return found != plans_.end() ? &found->second : &plans_.try_emplace(key, q, a, size).first->second;
  }

  std::map<std::tuple<const local_index*, const local_index*, std::size_t, far_spmm_size>,
           far_spmm<T, Device>>
      plans_;
};

}  // namespace partita::local

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Operations on far blocks: chunks of them pass through the near window of the queue, the next one and the
/// results of the one before while the present one is computed with.

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include "partita/base/function_reference.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/device.hpp"
#include "partita/memory/far.hpp"
#include "partita/memory/far_forecast.hpp"

namespace partita::local {

/// For k = 0, ..., chunks - 1: fetch(k) and store(k) in tasks of the channel, compute(k) between them. While
/// chunk k is computed with, chunk k - 1 is stored and chunk k + 1 fetched, in this order.
template <class Channel>
void run_chunks(Channel& c, std::size_t chunks, base::function_reference<void(std::size_t)> fetch,
                base::function_reference<void(std::size_t)> compute,
                base::function_reference<void(std::size_t)> store) {
  if (chunks == 0) return;
  c.start([&] { fetch(0); });
  c.wait();
  for (std::size_t k = 0; k < chunks; ++k) {
    c.start([&, k] {
      if (k > 0) store(k - 1);
      if (k + 1 < chunks) fetch(k + 1);
    });
    try {
      c.compute([&] { compute(k); });
    } catch (...) {
      try {
        c.wait();
      } catch (...) {  // the first failure is the one to report
      }
      throw;
    }
    c.wait();
  }
  c.start([&] { store(chunks - 1); });
  c.wait();
  c.traffic().chunks += chunks;
  ++c.traffic().operations;
}

/// An operand of by_rows: whether its rows are read, written or both.
template <class T>
struct row_operand {
  matrix_view<T> view;
  bool is_read, is_written;
};
template <class T>
row_operand<const T> reads(matrix_view<T> x) {
  return {x, true, false};
}
template <class T>
row_operand<T> writes(matrix_view<T> y) {
  return {y, false, true};
}
template <class T>
row_operand<T> updates(matrix_view<T> y) {
  return {y, true, true};
}
/// A vector with an element for each row.
template <class T>
matrix_view<T> one_per_row(T* data, local_index rows) {
  return {data, rows, 1, 1};
}

/// How the rows of far operands pass in by_rows: in `chunks` chunks of at most `most` rows. None of both
/// where the window does not hold a row of each operand twice.
struct far_row_cut {
  std::size_t most = 0, chunks = 0;

  /// For so many rows of `row_bytes` bytes in all far operands together, through slots of `slot` bytes of
  /// which `best` are used where they hold a row.
  constexpr far_row_cut(std::size_t rows, std::size_t row_bytes, std::size_t operands, std::size_t slot,
                        std::size_t best) {
    const std::size_t lost = operands * far_options::alignment;
    const std::size_t used = std::min(slot, std::max(best, lost + row_bytes));
    if (row_bytes == 0 || used < lost + row_bytes) return;
    most = (used - lost) / row_bytes;
    chunks = (rows + most - 1) / most;
  }
};

namespace detail {

/// The rows of a far operand.
struct far_rows {
  std::byte* data;
  std::ptrdiff_t stride;
  std::size_t row_bytes;
  bool is_read, is_written;
  std::size_t offset = 0;  ///< in a slot
};

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + far_options::alignment - 1) / far_options::alignment * far_options::alignment;
}

/// What passes when so many rows of these operands do, in closed form.
inline far_traffic moved_by(std::size_t rows, std::size_t chunks, std::span<const far_rows> far) {
  far_traffic t;
  t.chunks = chunks;
  t.operations = 1;
  for (const far_rows& x : far) {
    if (x.is_read) t.read += rows * x.row_bytes;
    if (x.is_written) t.written += rows * x.row_bytes;
  }
  return t;
}

/// Calls compute(first row, number of rows, slot) for chunks of rows of the far operands, which lie in the
/// slot at their offsets, without gaps between rows; computing reads and writes `near_bytes` of a row. Throws
/// budget_error if the window does not hold a row.
template <class Channel>
void run_row_chunks(Channel& c, local_index rows, std::span<far_rows> far, std::size_t near_bytes,
                    base::function_reference<void(local_index, local_index, std::byte*)> compute) {
  std::size_t of_row = 0;
  for (const far_rows& x : far) of_row += x.row_bytes;
  const auto all = static_cast<std::size_t>(rows);
  const auto [most, chunks] = far_row_cut(all, of_row, far.size(), c.slot_bytes(), Channel::best_rows_bytes);
  if (most == 0)
    throw_error<budget_error>({"a row of far operands takes ", of_row + far.size() * far_options::alignment,
                               " bytes, which a window of near memory of ", 2 * c.slot_bytes(),
                               " bytes does not hold twice: it must have ",
                               2 * (of_row + far.size() * far_options::alignment)});
  far_traffic moved = moved_by(all, chunks, far);
  moved.near = all * near_bytes;
  if (c.forecast() != nullptr) return c.forecast()->add("operation by rows", moved);
  c.traffic().near += moved.near;
  const auto begin = [all, chunks = chunks](std::size_t k) { return all * k / chunks; };
  std::size_t end = 0;
  for (far_rows& x : far) {
    x.offset = end;
    end += aligned(most * x.row_bytes);
  }
  const auto move = [&](std::size_t k, const far_rows& x, bool stores) {
    std::byte* const near = c.slot(static_cast<int>(k % 2)) + x.offset;
    std::byte* const home = x.data + static_cast<std::ptrdiff_t>(begin(k)) * x.stride;
    const auto bytes = static_cast<std::ptrdiff_t>(x.row_bytes);
    const std::size_t count = begin(k + 1) - begin(k);
    c.move(stores ? block_copy{home, x.stride, near, bytes, x.row_bytes, count}
                  : block_copy{near, bytes, home, x.stride, x.row_bytes, count});
  };
  run_chunks(
      c, chunks,
      [&](std::size_t k) {
        for (const far_rows& x : far)
          if (x.is_read) move(k, x, false);
      },
      [&](std::size_t k) {
        compute(static_cast<local_index>(begin(k)), static_cast<local_index>(begin(k + 1) - begin(k)),
                c.slot(static_cast<int>(k % 2)));
      },
      [&](std::size_t k) {
        for (const far_rows& x : far)
          if (x.is_written) move(k, x, true);
      });
}

/// Rows of an operand for a chunk: in the slot if it is far.
template <class T>
matrix_view<T> chunk_of(const row_operand<T>& x, const far_rows* far, local_index first, local_index count,
                        std::byte* slot) {
  if (far == nullptr) return x.view.block(first, 0, count, x.view.cols);
  return {reinterpret_cast<T*>(slot + far->offset), count, x.view.cols, x.view.cols};
}

}  // namespace detail

/// Calls f(first row, views of the rows ...) for consecutive blocks of rows of the operands, which all have
/// as many rows: once, for all rows, unless one of the operands is far. f is given near copies of far rows.
/// What f reads of rows in other blocks is not there. Throws what f throws, and budget_error if the window of
/// the queue does not hold a row of each operand twice.
template <class Device, class F, class... T>
void by_rows(const device_queue<Device>& q, const F& f, const row_operand<T>&... x) {
  constexpr std::size_t count = sizeof...(T);
  auto* const channel = far_of(q);
  const local_index rows = std::array{x.view.rows...}[0];
  const auto is_far = [&](const auto& o) {
    return o.view.rows > 0 && o.view.cols > 0 && channel->is_far(o.view.data);
  };
  if (channel == nullptr || !(is_far(x) || ...)) return f(local_index{0}, x.view...);
  std::array<detail::far_rows, count> far{};
  std::array<const detail::far_rows*, count> of{};
  std::size_t used = 0, number = 0, near_bytes = 0;
  const auto note = [&](const auto& o) {
    using value = std::remove_cvref_t<decltype(*o.view.data)>;
    const std::size_t here = number++, row_bytes = static_cast<std::size_t>(o.view.cols) * sizeof(value);
    near_bytes += row_bytes * (std::size_t{o.is_read} + std::size_t{o.is_written});
    if (!is_far(o)) return;
    auto* const data = reinterpret_cast<std::byte*>(const_cast<value*>(o.view.data));
    const auto size = static_cast<std::ptrdiff_t>(sizeof(value));
    far[used] = {data, o.view.row_stride * size, row_bytes, o.is_read, o.is_written};
    of[here] = &far[used++];
  };
  (note(x), ...);
  detail::run_row_chunks(*channel, rows, std::span(far).first(used), near_bytes,
                         [&](local_index first, local_index size, std::byte* slot) {
                           [&]<std::size_t... I>(std::index_sequence<I...>) {
                             f(first, detail::chunk_of(x, of[I], first, size, slot)...);
                           }
                           (std::make_index_sequence<count>());
                         });
}

}  // namespace partita::local

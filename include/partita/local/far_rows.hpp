// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Lists of rows of far operands: kernels that touch each row once run where the rows are, as a task of the
/// far channel, so that what passes is counted and takes the time that it takes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "partita/local/view.hpp"
#include "partita/memory/device.hpp"
#include "partita/memory/far_forecast.hpp"

namespace partita::local {

namespace detail {

/// What a kernel does with rows: it reads them, writes them, or adds to them.
enum class row_access : std::uint8_t { packs, unpacks, adds };

/// Calls kernel(first, count) for parts of an ascending list of far rows, one after the other, and
/// lets go of what becomes resident. One part if the rows are few, or far memory is always resident.
template <class Channel, class T, class Kernel>
void in_resident_parts(Channel& c, std::span<const local_index> list, const matrix_view<T>& rows,
                       const Kernel& kernel) {
  if constexpr (requires { Channel::most_resident_bytes; }) {
    const std::size_t stride = static_cast<std::size_t>(rows.row_stride) * sizeof(T);
    if (static_cast<std::size_t>(rows.rows) * stride <= Channel::most_resident_bytes) {
      if (!list.empty()) kernel(std::size_t{0}, list.size());
      return;
    }
    const auto most = static_cast<local_index>(
        std::max<std::size_t>(1, Channel::most_resident_bytes / std::max<std::size_t>(1, stride)));
    for (std::size_t first = 0; first < list.size();) {
      const local_index begin = list[first], end = rows.rows - begin > most ? begin + most : rows.rows;
      const auto last = std::lower_bound(list.begin() + static_cast<std::ptrdiff_t>(first), list.end(), end);
      const std::size_t count = static_cast<std::size_t>(last - list.begin()) - first;
      kernel(first, count);
      c.forget(rows.row_data(begin), static_cast<std::size_t>(end - begin) * stride);
      first += count;
    }
  } else if (!list.empty()) {
    kernel(std::size_t{0}, list.size());
  }
}

/// Calls kernel(queue), as a task if the list, the rows, of `touched` bytes, or the packed rows, of as many,
/// are far.
template <class Device, class T, class Kernel>
void run_on_rows(const device_queue<Device>& q, std::span<const local_index> list, const T* rows,
                 const T* packed, std::size_t touched, row_access access, Kernel kernel) {
  auto* const channel = far_of(q);
  if (channel == nullptr || touched == 0) return kernel(q);
  const bool far_list = channel->is_far(list.data()), far_rows = channel->is_far(rows),
             far_packed = channel->is_far(packed);
  if (!far_list && !far_rows && !far_packed) return kernel(q);
  const std::size_t in_rows = far_rows ? touched : 0, in_packed = far_packed ? touched : 0;
  const bool packs = access == row_access::packs;
  const far_traffic moved{.read = (far_list ? list.size_bytes() : 0) + (packs ? 0 : in_packed) +
                                  (access == row_access::unpacks ? 0 : in_rows),
                          .written = packs ? in_packed : in_rows};
  if (channel->forecast() != nullptr) return channel->forecast()->add("list of rows", moved);
  channel->start([&] {
    kernel(channel->transfers());
    channel->count_read(moved.read);
    channel->count_written(moved.written);
  });
  channel->wait();
}

}  // namespace detail

/// to[i n + j] = from(rows[i], j): the kernel gather_rows, of near or far operands.
template <class T, class Device>
void pack_rows(const device_queue<Device>& q, input_view<T> from, std::span<const local_index> rows, T* to) {
  const std::size_t touched = rows.size() * static_cast<std::size_t>(from.cols) * sizeof(T);
  detail::run_on_rows(q, rows, from.data, static_cast<const T*>(to), touched, detail::row_access::packs,
                      [&](const device_queue<Device>& on) { gather_rows(on, from, rows, to); });
}

/// to(rows[i], j) = from[i n + j], the rows[i] distinct: the kernel scatter_rows, of near or far operands.
template <class T, class Device>
void unpack_rows(const device_queue<Device>& q, const scalar<T>* from, std::span<const local_index> rows,
                 matrix_view<T> to) {
  const std::size_t touched = rows.size() * static_cast<std::size_t>(to.cols) * sizeof(T);
  detail::run_on_rows(q, rows, static_cast<const T*>(to.data), from, touched, detail::row_access::unpacks,
                      [&](const device_queue<Device>& on) { scatter_rows(on, from, rows, to); });
}

/// to(rows[i], j) += from[i n + j], the rows[i] distinct: the kernel scatter_add_distinct_rows, of near or
/// far operands.
template <class T, class Device>
void add_rows(const device_queue<Device>& q, const scalar<T>* from, std::span<const local_index> rows,
              matrix_view<T> to) {
  const std::size_t touched = rows.size() * static_cast<std::size_t>(to.cols) * sizeof(T);
  detail::run_on_rows(q, rows, static_cast<const T*>(to.data), from, touched, detail::row_access::adds,
                      [&](const device_queue<Device>& on) { scatter_add_distinct_rows(on, from, rows, to); });
}

}  // namespace partita::local

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Lists of rows of far operands: kernels that touch each row once run where the rows are, as a task of the
/// far channel, so that what passes is counted and takes the time that it takes.

#include <cstddef>
#include <span>

#include "partita/local/view.hpp"
#include "partita/memory/device.hpp"
#include "partita/memory/far_forecast.hpp"

namespace partita::local {

namespace detail {

/// Calls kernel(queue), as a task if the list, the rows, of `touched` bytes, or the packed rows, of as many,
/// are far.
template <class Device, class T, class Kernel>
void run_on_rows(const device_queue<Device>& q, std::span<const local_index> list, const T* rows,
                 const T* packed, std::size_t touched, bool adds, Kernel kernel) {
  auto* const channel = far_of(q);
  if (channel == nullptr || touched == 0) return kernel(q);
  const bool far_list = channel->is_far(list.data()), far_rows = channel->is_far(rows),
             far_packed = channel->is_far(packed);
  if (!far_list && !far_rows && !far_packed) return kernel(q);
  const std::size_t in_rows = far_rows ? touched : 0, in_packed = far_packed ? touched : 0;
  const far_traffic moved{.read = (far_list ? list.size_bytes() : 0) + in_rows + (adds ? in_packed : 0),
                          .written = adds ? in_rows : in_packed};
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
  detail::run_on_rows(q, rows, from.data, static_cast<const T*>(to), touched, false,
                      [&](const device_queue<Device>& on) { gather_rows(on, from, rows, to); });
}

/// to(rows[i], j) += from[i n + j], the rows[i] distinct: the kernel scatter_add_distinct_rows, of near or
/// far operands.
template <class T, class Device>
void add_rows(const device_queue<Device>& q, const scalar<T>* from, std::span<const local_index> rows,
              matrix_view<T> to) {
  const std::size_t touched = rows.size() * static_cast<std::size_t>(to.cols) * sizeof(T);
  detail::run_on_rows(q, rows, static_cast<const T*>(to.data), from, touched, true,
                      [&](const device_queue<Device>& on) { scatter_add_distinct_rows(on, from, rows, to); });
}

}  // namespace partita::local

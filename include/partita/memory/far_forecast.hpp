// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The traffic of operations on far operands, by their closed forms, before they run.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "partita/memory/device.hpp"
#include "partita/memory/far.hpp"
#include "partita/memory/out_of_core.hpp"

namespace partita {

namespace memory {

/// Bytes per second between near and far memory, and in near memory; 0: not known.
struct far_rates {
  double far = 0, near = 0;

  /// Seconds of operations with chunks of equal size. Each operation moves one chunk while it computes with
  /// another, except for its first and last chunk:
  ///
  ///     max(F, N) + min(F, N) operations / chunks,  F = (read + written) / far,  N = near / near
  ///
  /// 0 if a rate is not known.
  double seconds(const far_traffic& t) const {
    if (far <= 0 || near <= 0) return 0;
    const double of_far = static_cast<double>(t.read + t.written) / far;
    const double of_near = static_cast<double>(t.near) / near;
    const double alone =
        t.chunks == 0 ? 0 : static_cast<double>(t.operations) / static_cast<double>(t.chunks);
    return std::max(of_far, of_near) + std::min(of_far, of_near) * alone;
  }
};

}  // namespace memory

namespace memory::detail {

/// value / 1000 with three decimal places.
inline std::string thousandths(std::uint64_t value) {
  const std::string digits = std::to_string(1000 + value % 1000);
  return std::to_string(value / 1000) + "." + digits.substr(1);
}
inline std::string in_megabytes(std::uint64_t bytes) { return thousandths((bytes + 500) / 1000) + " MB"; }

}  // namespace memory::detail

/// "1.250 MB read and 0.500 MB written in 7 chunks, 3.000 MB near", and for products that gather far rows
/// ", which read each row 2.063 times": the sum over j of |N_j|, divided by the number of rows.
inline std::string to_string(const memory::far_traffic& t) {
  using memory::detail::in_megabytes;
  std::string text = in_megabytes(t.read) + " read and " + in_megabytes(t.written) + " written";
  if (t.chunks > 0)
    text += " in " + std::to_string(t.chunks) + (t.chunks == 1 ? " chunk, " : " chunks, ") +
            in_megabytes(t.near) + " near";
  if (t.operand_rows > 0)
    text += ", which read each row " + memory::detail::thousandths(1000 * t.rows_read / t.operand_rows) +
            " times";
  return text;
}

/// A list of operations and their traffic. Operations on a queue whose channel has a forecast add the traffic
/// of their closed forms to it, and neither move far rows nor compute with them; see far_rehearsal.
class far_forecast {
 public:
  /// Operations with the same description.
  struct entry {
    std::string what;
    std::uint64_t times = 0;
    memory::far_traffic all = {};  ///< their total traffic
  };

  void add(std::string_view what, const memory::far_traffic& t) {
    auto found = std::ranges::find(entries_, what, &entry::what);
    if (found == entries_.end()) found = entries_.insert(found, {std::string(what)});
    ++found->times;
    found->all += t;
  }

  /// In the order in which they first occurred.
  const std::vector<entry>& entries() const { return entries_; }
  memory::far_traffic total() const {
    memory::far_traffic t;
    for (const entry& e : entries_) t += e.all;
    return t;
  }
  /// One line for all operations, with their seconds if the rates are known, then one line for each entry.
  std::string explain(const memory::far_rates& rates = {}) const {
    const memory::far_traffic all = total();
    std::string text = to_string(all);
    if (const double seconds = rates.seconds(all); seconds > 0)
      text += ", about " + memory::detail::thousandths(static_cast<std::uint64_t>(1000 * seconds + 0.5)) +
              " s at " + memory::detail::in_megabytes(static_cast<std::uint64_t>(rates.far)) + "/s far and " +
              memory::detail::in_megabytes(static_cast<std::uint64_t>(rates.near)) + "/s near";
    for (const entry& e : entries_)
      text += "\n  " + std::to_string(e.times) + " x " + e.what + ": " + to_string(e.all);
    return text;
  }

 private:
  std::vector<entry> entries_;
};

namespace memory {

/// While it lives, operations on far operands of a queue with this channel add to the forecast instead of
/// running. Operations on near operands run, on whatever is in near memory. Nothing is written to far memory.
template <class Channel>
class far_rehearsal {
 public:
  far_rehearsal(Channel& channel, far_forecast& to) : channel_(channel) { channel_.forecast() = &to; }
  far_rehearsal(const far_rehearsal&) = delete;
  ~far_rehearsal() { channel_.forecast() = nullptr; }

 private:
  Channel& channel_;
};

/// The traffic of run() between near and far memory. Without far memory it is empty and run is not called.
template <class Device, class Run>
far_forecast rehearsed(const device_queue<Device>& q, Run run) {
  far_forecast found;
  auto* const channel = far_of(q);
  if (channel == nullptr) return found;
  const far_rehearsal rehearsal(*channel, found);
  run();
  return found;
}

/// The rates of a queue with far memory, measured by moving half of its window, 64 MiB at most, there and
/// back and copying it, twice each. The traffic of the queue does not count this. If the kernel keeps the
/// pages of a store, the rates are those of copies. Both are 0 if less than that is far.
template <class Device>
far_rates measured_far_rates(const device_queue<Device>& q) {
  auto& channel = far_of(q)->channel();
  const std::size_t bytes = std::min(channel.slot_bytes(), std::size_t{64} << 20);
  buffer<std::byte, Device> far(q, bytes);
  if (bytes == 0 || !channel.is_far(far.data())) return {};
  std::fill_n(far.data(), bytes, std::byte{0});
  const far_traffic before = channel.traffic();
  const auto seconds_of = [&](const auto& work) {
    q.synchronize();
    const auto begin = std::chrono::steady_clock::now();
    work();
    q.synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const auto stride = static_cast<std::ptrdiff_t>(bytes);
  const std::span<std::byte> first(channel.slot(0), bytes), second(channel.slot(1), bytes);
  double moving = 0, copying = 0;
  for (int k = 0; k < 2; ++k) {
    moving = seconds_of([&] {
      channel.start([&] {
        channel.move({first.data(), stride, far.data(), stride, bytes, 1});
        channel.move({far.data(), stride, first.data(), stride, bytes, 1});
      });
      channel.wait();
    });
    copying = seconds_of([&] { copy(q, std::span<const std::byte>(first), second); });
  }
  channel.traffic() = before;
  const auto rate = [&](double seconds) {
    return seconds > 0 ? 2 * static_cast<double>(bytes) / seconds : 0;
  };
  return {rate(moving), rate(copying)};
}

}  // namespace memory

}  // namespace partita

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Far memory of host queues: tasks run on a thread of their own.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "partita/base/background.hpp"
#include "partita/base/function_reference.hpp"
#include "partita/memory/far_passes.hpp"
#include "partita/memory/host.hpp"

namespace partita {

namespace memory {

template <>
class far_channel<host> {
 public:
  far_channel(const device_queue<host>& q, far_options options)
      : options_(std::move(options)), window_(q, options_.window), meter_(q.owner()->far_meter()) {}

  /// As much of a slot as a cache holds beside the other slot.
  static constexpr std::size_t best_rows_bytes = std::size_t{2} << 20;
  /// Of far memory, what may become resident by a task before it is forgotten.
  static constexpr std::size_t most_resident_bytes = std::size_t{16} << 20;
  static constexpr std::size_t worth_forgetting = std::size_t{1} << 18;
  /// Rows of a list that are asked for beyond those that are copied: twice as many as disks read at a time.
  static constexpr std::size_t rows_asked_for = 2048;
  /// Rows that are at least so far apart are asked for apart: a page.
  static constexpr std::ptrdiff_t least_gap = 4096;

  bool is_far(const void* address) const { return options_.store->contains(address); }
  std::size_t slot_bytes() const { return options_.slot_bytes(); }
  std::byte* slot(int k) { return window_.data() + static_cast<std::size_t>(k) * slot_bytes(); }

  void start(std::function<void()> task) {
    worker_.start([this, task = std::move(task)] {
      const auto begin = clock::now();
      moved_ = 0;
      task();
      if (options_.bytes_per_second > 0)
        std::this_thread::sleep_until(
            begin + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(
                        static_cast<double>(moved_) / options_.bytes_per_second)));
      took_ = seconds_since(begin);
    });
  }
  void wait() {
    const auto begin = clock::now();
    worker_.wait();
    traffic_.exposed += seconds_since(begin);
    traffic_.transfer += std::exchange(took_, 0);
  }
  void compute(base::function_reference<void()> work) {
    const auto begin = clock::now();
    work();
    traffic_.compute += seconds_since(begin);
  }
  void move(const block_copy& c) {
    auto* to = static_cast<std::byte*>(c.to);
    const auto* from = static_cast<const std::byte*>(c.from);
    for (std::size_t i = 0; i < c.rows; ++i, to += c.to_stride, from += c.from_stride)
      std::memcpy(to, from, c.row_bytes);
    count(c.from, c.bytes(), traffic_.read);
    count(c.to, c.bytes(), traffic_.written);
    if (c.rows == 0) return;
    forget(c.from, static_cast<std::size_t>(c.from_stride) * (c.rows - 1) + c.row_bytes);
    forget(c.to, static_cast<std::size_t>(c.to_stride) * (c.rows - 1) + c.row_bytes);
  }
  /// Says that these rows of x, if it is far, will be read soon, in ranges of which no two share a page
  /// if the list is ascending.
  void expect(const local::operand& x, std::span<const local_index> rows) {
    if (!is_far(x.data)) return;
    const std::byte *begin = nullptr, *end = nullptr;
    const auto ask = [&] {
      if (begin != end) options_.store->expect(begin, static_cast<std::size_t>(end - begin));
    };
    for (const local_index r : rows) {
      const std::byte* const row = x.row(r);
      if (begin == end || row < begin || row >= end + least_gap) {
        ask();
        begin = end = row;
      }
      end = std::max(end, row + x.row_bytes());
    }
    ask();
  }
  /// Says that these bytes, if they are far and many, need not stay resident.
  void forget(const void* memory, std::size_t bytes) {
    if (bytes >= worth_forgetting && is_far(memory)) options_.store->forget(memory, bytes);
  }
  /// Count bytes that a kernel of a task reads from far memory, or writes there.
  void count_read(std::size_t bytes) {
    traffic_.read += bytes;
    moved_ += bytes;
  }
  void count_written(std::size_t bytes) {
    traffic_.written += bytes;
    moved_ += bytes;
  }
  const device_queue<host>& transfers() const { return transfers_; }
  far_traffic& traffic() { return traffic_; }
  far_forecast*& forecast() { return forecast_; }
  const memory_meter& meter() const { return *meter_; }

 private:
  using clock = std::chrono::steady_clock;
  static double seconds_since(clock::time_point begin) {
    return std::chrono::duration<double>(clock::now() - begin).count();
  }
  void count(const void* address, std::size_t bytes, std::uint64_t& sum) {
    if (!is_far(address)) return;
    sum += bytes;
    moved_ += bytes;
  }

  far_options options_;
  buffer<std::byte, host> window_;
  device_queue<host> transfers_;
  far_traffic traffic_;
  far_forecast* forecast_ = nullptr;
  std::shared_ptr<memory_meter> meter_;
  std::size_t moved_ = 0;
  double took_ = 0;
  base::background worker_;
};

}  // namespace memory

/// Gives a queue far memory, and takes its window from near memory: buffers of at least options.from bytes,
/// and those that the budget does not hold, are far from now on. Throws budget_error if the budget does not
/// hold the window.
inline void use_far(const device_queue<host>& q, const far_options& options) {
  auto channel = std::make_shared<memory::far_channel<host>>(q, options);
  const auto passes = std::make_shared<local::far_passes<host>>(std::move(channel));
  q.extend<local::out_of_core<host>>(passes);
  q.extend<local::pass_runner<host>>(passes);
  q.owner()->use_far(options);
}

}  // namespace partita

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Kernels that somebody sees before they run, by what they touch: to time them, or to run none.

#include <algorithm>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "partita/base/error.hpp"
#include "partita/memory/pass_runner.hpp"

namespace partita::memory {

/// What a kernel touches.
struct kernel_call {
  std::string_view
      kernel;  ///< "gemm", "rows: ..." for those of elements, "list", "block", or a pass over entries
  double rows = 0, entries = 0;
  double row_bytes = 0;    ///< of the widest operand
  double table_bytes = 0;  ///< of the operand whose rows are gathered or added to, all of it
  double bytes = 0;        ///< that are read and written, rows that are gathered once for each entry
  double work = 0;         ///< multiplications of a dense product
};

namespace detail {

/// The same for all kernels: what an operand of so many rows, as often as they are touched, adds.
inline void touch(kernel_call& c, const local::operand& x, double rows) {
  const auto width = static_cast<double>(x.row_bytes());
  c.row_bytes = std::max(c.row_bytes, width);
  c.bytes += rows * width * (int{x.is_read} + int{x.is_written});
  c.work += static_cast<double>(x.rows) * static_cast<double>(x.cols) * x.work;
  if (x.has == local::along::columns)
    c.table_bytes = std::max(c.table_bytes, static_cast<double>(x.rows) * width);
}

inline kernel_call call_by_rows(const char* what, std::span<const local::operand> x) {
  kernel_call c{.kernel = what, .rows = static_cast<double>(x[0].rows)};
  for (const local::operand& o : x) touch(c, o, c.rows);
  return c;
}
inline kernel_call call_by_entries(const local::entry_pattern& a, const char* what,
                                   std::span<const local::operand> x) {
  const double entries =
      a.entries >= 0 || a.rows == 0 ? std::max(a.entries, 0) : a.offsets[a.rows] - a.offsets[0];
  kernel_call c{.kernel = what, .rows = static_cast<double>(a.rows), .entries = entries};
  c.bytes = static_cast<double>(sizeof(local_index)) * (entries + c.rows);
  for (const local::operand& o : x) touch(c, o, o.has == local::along::rows ? c.rows : entries);
  return c;
}
inline kernel_call call_by_list(std::size_t rows, const local::operand& x) {
  kernel_call c{.kernel = "list", .rows = static_cast<double>(rows)};
  c.table_bytes = static_cast<double>(x.rows) * static_cast<double>(x.row_bytes());
  touch(c, x, c.rows);
  c.bytes += c.rows * static_cast<double>(x.row_bytes() + sizeof(local_index));
  return c;
}

}  // namespace detail

/// observe(call, run) in the place of each kernel, but for those that a kernel is made of; run() runs it.
/// For patterns in memory that the host can read.
template <class Device>
class observed_passes final : public local::pass_runner<Device> {
 public:
  using typename local::pass_runner<Device>::kernel, typename local::pass_runner<Device>::operands;
  using typename local::pass_runner<Device>::plans, typename local::pass_runner<Device>::queue;
  using observer = std::function<void(const kernel_call&, base::function_reference<void()> run)>;

  explicit observed_passes(observer observe) : observe_(std::move(observe)) {}

  void by_rows(const queue&, const char* what, operands x, kernel f) override {
    see([&] { return detail::call_by_rows(what, x); }, [&] { f({.operands = x.data()}); });
  }
  void by_entries(const queue&, plans&, const local::entry_pass<Device>& p, operands x, kernel f) override {
    see([&] { return detail::call_by_entries(p.a, p.with.what, x); },
        [&] { f({.operands = x.data(), .entries = p.a}); });
  }
  void by_list(const queue& q, std::span<const local_index> list, const local::operand& rows, const void*,
               base::function_reference<void(const queue&)> run) override {
    see([&] { return detail::call_by_list(list.size(), rows); }, [&] { run(q); });
  }
  void in_place(const char* name, operands x, base::function_reference<void()> run) override {
    see([&] { return detail::call_by_rows(name, x); }, run);
  }

 private:
  template <class Call, class Run>
  void see(const Call& call, const Run& run) {
    if (inside_) return run();
    inside_ = true;
    try {
      observe_(call(), run);
    } catch (...) {
      inside_ = false;
      throw;
    }
    inside_ = false;
  }

  observer observe_;
  bool inside_ = false;
};

/// A copy of a queue without far memory, whose kernels are observed. Throws error for one with it.
template <class Device>
device_queue<Device> observed(const device_queue<Device>& q,
                              typename observed_passes<Device>::observer observe) {
  if (q.owner()->far())
    throw error("kernels of a queue with far memory run in chunks: they are not observed");
  return q.with(std::shared_ptr<local::pass_runner<Device>>(
      std::make_shared<observed_passes<Device>>(std::move(observe))));
}

}  // namespace partita::memory

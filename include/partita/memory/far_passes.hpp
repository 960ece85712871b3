// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Kernels with far operands, chunk by chunk. Chunks pass through the near window of the queue: the next one
/// is read, and the results of the previous one are written, during the computation with the current one.
/// use_far installs these.

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "partita/base/error.hpp"
#include "partita/base/function_reference.hpp"
#include "partita/memory/far_entries.hpp"
#include "partita/memory/far_rows.hpp"

namespace partita::local {

/// See out_of_core.
template <class Device>
class far_passes final : public out_of_core<Device> {
 public:
  using typename pass_runner<Device>::kernel, typename out_of_core<Device>::operands;
  using typename out_of_core<Device>::plans, typename out_of_core<Device>::queue;

  explicit far_passes(std::shared_ptr<memory::far_channel<Device>> channel)
      : channel_(std::move(channel)), c_(*channel_) {}

  /// Throws what the kernel throws, and budget_error if the window of the queue cannot hold two rows of each
  /// operand.
  void by_rows(const queue&, const char*, operands x, kernel f) override {
    std::size_t of_row = 0, far = 0, near_bytes = 0;
    memory::far_traffic moved{.operations = 1};
    const auto rows = static_cast<std::size_t>(x[0].rows);
    for (const operand& o : x) {
      near_bytes += o.row_bytes() * (std::size_t{o.is_read} + std::size_t{o.is_written});
      if (rows == 0 || !detail::is_far(c_, o)) continue;
      of_row += o.row_bytes();
      ++far;
      if (o.is_read) moved.read += rows * o.row_bytes();
      if (o.is_written) moved.written += rows * o.row_bytes();
    }
    if (far == 0) return f({.operands = x.data()});
    const far_row_cut cut(rows, of_row, far, c_.slot_bytes(), memory::far_channel<Device>::best_rows_bytes);
    if (cut.most == 0) refuse(of_row + far * far_options::alignment);
    moved.chunks = cut.chunks;
    moved.near = rows * near_bytes;
    if (c_.forecast() != nullptr) return c_.forecast()->add("operation by rows", moved);
    c_.traffic().near += moved.near;
    run(x, cut, f);
  }

  /// Throws what the kernel throws, and budget_error if the window cannot hold two entries with their rows.
  void by_entries(const queue& q, plans& known, const entry_pass<Device>& p, operands x, kernel f) override {
    const detail::ordered_pass<Device> o(c_, p, x);
    if (o.size.slot == 0) return f({.operands = x.data(), .entries = p.a});
    detail::far_entries<Device>(q, c_, plan_of(q, known, o), o.pass, o.x)(f);
  }

  void by_list(const queue& q, std::span<const local_index> list, const operand& rows, const void* packed,
               base::function_reference<void(const queue&)> run) override {
    const std::size_t touched = list.size() * rows.row_bytes();
    const bool far_list = c_.is_far(list.data()), far_rows = c_.is_far(rows.data),
               far_packed = c_.is_far(packed);
    if (touched == 0 || !(far_list || far_rows || far_packed)) return run(q);
    const bool packs = !rows.is_written;
    const memory::far_traffic moved{.read = (far_list ? list.size_bytes() : 0) +
                                            (far_packed && !packs ? touched : 0) +
                                            (far_rows && rows.is_read ? touched : 0),
                                    .written = (packs ? far_packed : far_rows) ? touched : 0};
    if (c_.forecast() != nullptr) return c_.forecast()->add("list of rows", moved);
    c_.start([&] {
      if constexpr (requires { c_.expect(rows, list); })
        if (rows.is_read) c_.expect(rows, list);
      run(c_.transfers());
      c_.count_read(moved.read);
      c_.count_written(moved.written);
    });
    c_.wait();
  }

  memory::far_traffic predicted(const queue& q, plans& known, const entry_pass<Device>& p,
                                operands x) override {
    const detail::ordered_pass<Device> o(c_, p, x);
    if (o.size.slot == 0) return {};
    return detail::far_entries<Device>(q, c_, plan_of(q, known, o), o.pass, o.x).moved(true);
  }
  std::span<const far_chunk> chunks(const queue& q, plans& known, const entry_pass<Device>& p,
                                    operands x) override {
    const detail::ordered_pass<Device> o(c_, p, x);
    return o.size.slot == 0 ? std::span<const far_chunk>() : plan_of(q, known, o).chunks();
  }

  std::unique_ptr<memory::row_cache> make_row_cache(const queue& q, const operand& x, global_index first,
                                                    const row_kernels<Device>& kernels) override {
    if constexpr (requires { memory::far_channel<Device>::most_resident_bytes; })
      if (detail::is_far(c_, x)) return std::make_unique<far_rows<Device>>(q, c_, x, first, kernels);
    return nullptr;
  }

  memory::far_channel<Device>& channel() override { return c_; }
  bool is_far(const void* address) const override { return c_.is_far(address); }
  std::size_t slot_bytes() const override { return c_.slot_bytes(); }
  memory::far_traffic& traffic() override { return c_.traffic(); }
  far_forecast*& forecast() override { return c_.forecast(); }
  const memory::memory_meter& meter() const override { return c_.meter(); }

 private:
  using key = std::tuple<const local_index*, const local_index*, std::size_t, pass_layout>;
  using plan_map = std::map<key, far_plan<Device>>;

  static const far_plan<Device>& plan_of(const queue& q, plans& known,
                                         const detail::ordered_pass<Device>& ordered) {
    const auto& [p, x, size] = ordered;
    if (known == nullptr) known = std::make_shared<plan_map>();
    auto& made = *static_cast<plan_map*>(known.get());
    const key of(p.a.offsets, p.a.columns, p.number, size);
    const auto found = made.find(of);
    if (found != made.end()) return found->second;
    return made.try_emplace(of, q, p.a.rows, p.a.cols, p.a.offsets, p.a.columns, size).first->second;
  }
  [[noreturn]] void refuse(std::size_t row) const {
    const std::size_t least = far_options::least_window(2 * row);
    throw budget_error(
        base::sentence_of({"a row of far operands takes ", row, " bytes, which a window of near memory of ",
                           2 * c_.slot_bytes(), " bytes does not hold twice: it must have ", least}),
        least);
  }
  /// Runs f chunk by chunk. In a slot, a chunk is stored operand after operand, without gaps between rows.
  void run(operands x, const far_row_cut& cut, kernel f) {
    std::vector<operand> near(x.begin(), x.end());
    std::vector<std::size_t> offsets;
    std::size_t end = 0;
    for (const operand& o : x) {
      offsets.push_back(end);
      if (detail::is_far(c_, o)) end += part_bytes(cut.most, o.row_bytes());
    }
    const auto rows = static_cast<std::size_t>(x[0].rows);
    const auto begin = [&](std::size_t k) { return static_cast<local_index>(rows * k / cut.chunks); };
    const auto place = [&](std::size_t k, std::size_t i) {
      return c_.slot(static_cast<int>(k % 2)) + offsets[i];
    };
    const auto move = [&](std::size_t k, bool operand::*wanted, bool stores) {
      for (std::size_t i = 0; i < x.size(); ++i)
        if (x[i].*wanted && detail::is_far(c_, x[i]))
          detail::move_rows(c_, x[i], begin(k), static_cast<std::size_t>(begin(k + 1) - begin(k)),
                            place(k, i), stores);
    };
    run_chunks(
        c_, cut.chunks, [&](std::size_t k) { move(k, &operand::is_read, false); },
        [&](std::size_t k) {
          for (std::size_t i = 0; i < x.size(); ++i) {
            const bool far = detail::is_far(c_, x[i]);
            near[i].data = far ? place(k, i) : x[i].row(begin(k));
            near[i].rows = begin(k + 1) - begin(k);
            if (far) near[i].stride = static_cast<std::ptrdiff_t>(x[i].row_bytes());
          }
          f({.operands = near.data(), .first_row = begin(k), .is_whole = false});
        },
        [&](std::size_t k) { move(k, &operand::is_written, true); });
  }

  std::shared_ptr<memory::far_channel<Device>> channel_;
  memory::far_channel<Device>& c_;
};

}  // namespace partita::local

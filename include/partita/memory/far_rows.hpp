// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Rows of a far operand that stay near from batch to batch. What out_of_core::make_row_cache makes.
///
/// Sources: Belady, IBM Systems Journal 5(2), 1966; Park et al., Ginex (VLDB 2022), which samples ahead to
/// know which features to keep.

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "partita/base/background.hpp"
#include "partita/memory/far_chunks.hpp"
#include "partita/memory/far_reuse.hpp"
#include "partita/memory/large_list.hpp"
#include "partita/memory/out_of_core.hpp"

namespace partita::local {

/// See memory::row_cache. The table takes half of what is left of the budget when it is made; without a
/// budget it has no rows.
template <class Device>
class far_rows final : public memory::row_cache {
 public:
  /// Row i of x is row first + i of the whole matrix.
  far_rows(const device_queue<Device>& q, memory::far_channel<Device>& c, const operand& x,
           global_index first, const row_kernels<Device>& kernels)
      : c_(c),
        kernels_(kernels),
        x_(x),
        first_(first),
        places_(places_of(q, x)),
        table_(near_memory(q, static_cast<std::size_t>(places_) * x.row_bytes())),
        lists_(list_memory(q)),
        next_(list_memory(q)),
        seen_(static_cast<std::size_t>(x.rows), -1) {}

  local_index places() const override { return places_; }
  bool chooses() const override { return places_ > 0 && !has_all(); }
  const std::byte* data() const override { return table_.data(); }

  void begin() override {
    try {
      worker_.wait();
    } catch (...) {  // of an epoch that failed, which has thrown it
    }
    c_.traffic().operand_rows += static_cast<std::uint64_t>(x_.rows);
    if (!has_all() || !kept_ || !is_read_) kept_.emplace(x_.rows, places_);
    is_read_ = true;
    sizes_.clear(), lists_.clear(), next_.clear();
    std::ranges::fill(seen_, -1);
    batch_ = listed_ = ended_ = 0;
  }
  void foresee(std::span<const global_index> ids) override {
    const auto batch = static_cast<local_index>(sizes_.size());
    for (const global_index id : ids) {
      const global_index row = id - first_;
      if (row < 0 || row >= x_.rows) continue;
      if (std::exchange(seen_[static_cast<std::size_t>(row)], batch) != batch)
        lists_.push_back(static_cast<local_index>(row));
    }
  }
  void end_batch() override {
    if (!fits(lists_.size() - ended_)) lists_.resize(ended_);
    std::sort(lists_.begin() + static_cast<std::ptrdiff_t>(ended_), lists_.end());
    sizes_.push_back(static_cast<local_index>(lists_.size() - ended_));
    ended_ = lists_.size();
  }

  std::span<const local_index> assign(std::span<const local_index> rows) override {
    is_read_ = false;
    place(rows);
    worker_.start([this] {
      const auto begin = clock::now();
      read();
      took_ = seconds_since(begin);
    });
    return found_;
  }
  void finish() override {
    const auto begin = clock::now();
    worker_.wait();
    is_read_ = true;
    memory::far_traffic& t = c_.traffic();
    t.exposed += seconds_since(begin);
    t.transfer += std::exchange(took_, 0);
    t.read += read_.size() * x_.row_bytes();
    t.rows_read += read_.size();
    ++t.chunks;
  }

 private:
  using clock = std::chrono::steady_clock;
  static double seconds_since(clock::time_point begin) {
    return std::chrono::duration<double>(clock::now() - begin).count();
  }
  static local_index places_of(const device_queue<Device>& q, const operand& x) {
    const memory::memory_meter& near = *q.meter();
    if (near.limit() == std::numeric_limits<std::size_t>::max()) return 0;
    const std::size_t left = near.limit() - std::min(near.limit(), near.current());
    return static_cast<local_index>(std::min(static_cast<std::size_t>(x.rows), left / 2 / x.row_bytes()));
  }
  /// However large it is.
  static buffer<std::byte, Device> near_memory(const device_queue<Device>& q, std::size_t bytes) {
    struct in_near {
      const device_queue<Device>& q;
      far_options usual = *q.owner()->far();
      explicit in_near(const device_queue<Device>& of) : q(of) {
        far_options none = usual;
        none.from = std::numeric_limits<std::size_t>::max();
        q.owner()->use_far(none);
      }
      in_near(const in_near&) = delete;
      in_near& operator=(const in_near&) = delete;
      ~in_near() { q.owner()->use_far(usual); }
    } scope(q);
    return buffer<std::byte, Device>(q, bytes);
  }
  bool has_all() const { return places_ == x_.rows; }
  bool fits(std::size_t rows) const { return rows <= static_cast<std::size_t>(places_) / 2; }

  /// Lists what is to be read, and where it goes.
  void place(std::span<const local_index> rows) {
    if (next_.size() < lists_.size()) {
      next_.resize(lists_.size());
      find_next_chunks(sizes_, lists_, x_.rows, next_);
    }
    read_.assign(rows.begin(), rows.end());
    std::ranges::sort(read_);
    to_.clear(), found_.clear();
    if (has_all() && kept_) {
      to_.assign(read_.size(), never);
    } else if (batch_ < sizes_.size()) {
      const auto size = static_cast<std::size_t>(sizes_[batch_++]);
      const std::span<const local_index> list(lists_.data() + listed_, size);
      if (fits(read_.size()) && !std::ranges::equal(list, read_))
        throw error("the rows of a batch are not those that were foreseen");
      to_.assign(next_.data() + listed_, next_.data() + listed_ + size);
      listed_ += size;
      if (to_.empty()) (*kept_)({}, {});
    }
    if (to_.empty()) return;
    const auto count = static_cast<std::size_t>((*kept_)(read_, to_));
    read_.resize(count), to_.resize(count);
    for (const local_index r : rows) found_.push_back(kept_->place(r));
  }
  void read() {
    if (found_.empty()) return c_.expect(x_, read_);
    operand table = x_;
    table.data = table_.data();
    table.rows = places_;
    table.stride = static_cast<std::ptrdiff_t>(x_.row_bytes());
    const std::span<const local_index> rows(read_), places(to_);
    detail::in_resident_parts(c_, rows, x_, [&](std::size_t first, std::size_t count) {
      kernels_.place(c_.transfers(), x_, rows.subspan(first, count), places.subspan(first, count), table);
    });
  }

  memory::far_channel<Device>& c_;
  const row_kernels<Device>& kernels_;
  operand x_;
  global_index first_;
  local_index places_;
  buffer<std::byte, Device> table_;
  std::optional<kept_rows> kept_;
  std::vector<local_index> sizes_;              ///< of the batches that are foreseen
  large_list<local_index> lists_, next_;        ///< their rows, and which batch needs these next
  std::vector<local_index> seen_;               ///< the last batch that needs each row
  std::size_t batch_ = 0, listed_ = 0;          ///< the next one, and where its rows are
  std::size_t ended_ = 0;                       ///< rows of batches that have been foreseen to their end
  std::vector<local_index> read_, to_, found_;  ///< of a batch: rows to read, their places, all places
  bool is_read_ = true;                         ///< what has a place is there
  double took_ = 0;
  base::background worker_;
};

}  // namespace partita::local

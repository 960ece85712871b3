// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The entries of one tile by rows and columns, from entries in any order.

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/local/parallel.hpp"
#include "partita/matrix/arrived_entries.hpp"
#include "partita/memory/large_list.hpp"

namespace partita::local {

/// The entries of a tile, ascending by row and then by column, each place once.
template <class T>
struct sorted_entries {
  /// Entries of consecutive rows.
  struct segment {
    large_list<global_index> places;  ///< see packed_place
    large_list<T> values;             ///< empty if all are 1

    T value(std::size_t e) const { return values.empty() ? T(1) : values[e]; }
  };

  std::vector<std::size_t> begins;  ///< (rows + 1): row i has the entries [begins[i], begins[i + 1])
  std::vector<segment> segments;
  std::size_t repeated = 0;  ///< entries added to an earlier one at their place
};

namespace detail {

/// Sorts the entries of one tile: into buckets of consecutive rows, then each bucket, which fits a cache, by
/// the digits of columns and of rows in it. Each step is stable; O(rows + entries log(rows columns)), without
/// a comparison.
template <class T>
class entry_sorter {
 public:
  entry_sorter(std::size_t rows, std::size_t cols, int threads)
      : threads_(threads),
        col_bits_(static_cast<int>(std::bit_width(cols - std::min(cols, std::size_t{1})))) {
    sorted_.begins.assign(rows + 1, 0);
  }

  sorted_entries<T> sort(arrived_entries<T>& entries, std::size_t t) {
    const std::size_t count = entries.count(t);
    std::vector<run> runs = entries.take(t);
    ones_ = std::ranges::all_of(runs, [](const run& r) { return r.values.empty(); });
    cut_buckets(runs, count, entries.memory());
    fill_buckets(std::move(runs));
    sort_buckets();
    close_gaps();
    std::inclusive_scan(sorted_.begins.begin(), sorted_.begins.end(), sorted_.begins.begin());
    return std::move(sorted_);
  }

 private:
  using run = typename arrived_entries<T>::run;

  /// Entries of consecutive rows, in part of a segment.
  struct bucket {
    std::size_t segment, begin, count;
    global_index first_row, rows;
    std::vector<std::pair<std::size_t, T>> repeats{};  ///< entries whose value is not 1, where all were
  };
  /// Where the next entry of a bucket goes.
  struct cursor {
    global_index* place;
    T* value;
  };
  /// The entries of a bucket, and where they go.
  struct scratch {
    std::array<std::vector<global_index>, 2> places;
    std::array<std::vector<T>, 2> values;
  };
  /// Bits [shift, shift + width) of a place.
  struct digit {
    int shift, width;
    std::vector<std::size_t> next;
    std::size_t operator()(global_index place) const {
      return static_cast<std::size_t>(place >> shift) & ((std::size_t{1} << width) - 1);
    }
  };

  static constexpr std::size_t bucket_entries = std::size_t{1} << 17, segment_entries = std::size_t{1} << 22;

  std::size_t bin_of(global_index place) const { return row_of_place(place) >> bin_bits_; }

  /// Buckets are ranges of bins, which are 2^bin_bits_ rows each, with few entries unless they are one bin.
  void cut_buckets(const std::vector<run>& runs, std::size_t count, const list_allocator<std::byte>& memory) {
    const std::size_t rows = sorted_.begins.size() - 1;
    const std::size_t most_bins = std::clamp(count / 256, std::size_t{1}, std::size_t{1} << 16);
    while (((rows - std::min<std::size_t>(rows, 1)) >> bin_bits_) >= most_bins) ++bin_bits_;
    const std::vector<std::size_t> of_bins = count_bins(runs, rows);
    bucket_of_.resize(of_bins.size());
    std::vector<std::size_t> of_segments;
    for (std::size_t bin = 0; bin < of_bins.size(); ++bin) {
      const auto first = static_cast<global_index>(bin) << bin_bits_;
      const global_index size =
          std::min(global_index{1} << bin_bits_, static_cast<global_index>(rows) - first);
      if (buckets_.empty() || buckets_.back().count + of_bins[bin] > bucket_entries) {
        if (of_segments.empty() || of_segments.back() >= segment_entries) of_segments.push_back(0);
        buckets_.push_back({of_segments.size() - 1, of_segments.back(), 0, first, 0});
      }
      buckets_.back().count += of_bins[bin];
      buckets_.back().rows += size;
      of_segments.back() += of_bins[bin];
      bucket_of_[bin] = static_cast<std::uint32_t>(buckets_.size() - 1);
    }
    for (const std::size_t entries : of_segments)
      sorted_.segments.push_back(
          {large_list<global_index>(entries, memory), large_list<T>(ones_ ? 0 : entries, memory)});
  }

  std::vector<std::size_t> count_bins(const std::vector<run>& runs, std::size_t rows) const {
    const std::size_t bins = rows == 0 ? 0 : ((rows - 1) >> bin_bits_) + 1;
    std::vector<std::vector<std::size_t>> of_threads(static_cast<std::size_t>(threads_),
                                                     std::vector<std::size_t>(bins, 0));
    run_parts(threads_, [&](int part) {
      std::vector<std::size_t>& counts = of_threads[static_cast<std::size_t>(part)];
      for (auto r = static_cast<std::size_t>(part); r < runs.size(); r += static_cast<std::size_t>(threads_))
        for (const global_index place : runs[r].places) ++counts[bin_of(place)];
    });
    for (std::size_t p = 1; p < of_threads.size(); ++p)
      for (std::size_t bin = 0; bin < bins; ++bin) of_threads[0][bin] += of_threads[p][bin];
    return std::move(of_threads.front());
  }

  /// Each thread fills a range of the buckets. Runs are given back one after the other.
  void fill_buckets(std::vector<run> runs) {
    std::vector<cursor> next;
    for (const bucket& b : buckets_) {
      auto& to = sorted_.segments[b.segment];
      next.push_back({to.places.data() + b.begin, ones_ ? nullptr : to.values.data() + b.begin});
    }
    for (run& full : runs) {
      const run r = std::exchange(full, {});
      run_parts(threads_, [&](int part) {
        const interval mine = base::part_of({0, std::ssize(buckets_)}, part, threads_);
        for (std::size_t e = 0; e < r.places.size(); ++e) {
          const std::uint32_t k = bucket_of_[bin_of(r.places[e])];
          if (threads_ > 1 && !mine.contains(k)) continue;
          *next[k].place++ = r.places[e];
          if (!ones_) *next[k].value++ = r.values.empty() ? T(1) : r.values[e];
        }
      });
    }
  }

  void sort_buckets() {
    std::atomic<std::size_t> next{0};
    run_parts(threads_, [&](int) {
      scratch s;
      for (std::size_t k; (k = next.fetch_add(1)) < buckets_.size();) sort_bucket(buckets_[k], s);
    });
  }

  /// At least one digit, since the entries of a bucket are added up from a copy.
  std::vector<digit> digits_of(const bucket& b) const {
    constexpr int most = 11;
    std::vector<digit> digits;
    const auto add = [&](int shift, int bits) {
      const int count = (bits + most - 1) / most;
      for (int k = 0; k < count; ++k) {
        const int begin = bits * k / count, end = bits * (k + 1) / count;
        digits.push_back({shift + begin, end - begin, {}});
      }
    };
    add(0, std::max(1, col_bits_));
    add(32, static_cast<int>(std::bit_width(static_cast<std::size_t>(b.rows - 1))));
    return digits;
  }

  void sort_bucket(bucket& b, scratch& s) {
    if (b.count == 0) return;
    auto& home = sorted_.segments[b.segment];
    global_index* const places = home.places.data() + b.begin;
    T* const values = ones_ ? nullptr : home.values.data() + b.begin;
    const global_index base = packed_place(b.first_row, 0);
    std::vector<digit> digits = digits_of(b);
    for (digit& d : digits) d.next.assign((std::size_t{1} << d.width) + 1, 0);
    for (std::size_t e = 0; e < b.count; ++e) {
      places[e] -= base;
      for (digit& d : digits) ++d.next[d(places[e]) + 1];
    }
    for (auto& to : s.places) to.resize(std::max(to.size(), b.count));
    if (!ones_)
      for (auto& to : s.values) to.resize(std::max(to.size(), b.count));
    const global_index* from = places;
    const T* from_values = values;
    std::size_t k = 0;
    for (digit& d : digits) {
      std::inclusive_scan(d.next.begin(), d.next.end(), d.next.begin());
      global_index* const to = s.places[k].data();
      T* const to_values = s.values[k].data();
      for (std::size_t e = 0; e < b.count; ++e) {
        const std::size_t at = d.next[d(from[e])]++;
        to[at] = from[e];
        if (!ones_) to_values[at] = from_values[e];
      }
      from = to;
      from_values = to_values;
      k = 1 - k;
    }
    b.count = ones_ ? add_up(b, from, [](std::size_t) { return T(1); })
                    : add_up(b, from, [&](std::size_t e) { return from_values[e]; });
  }

  /// Writes the sorted entries of a bucket, counts its rows, and returns how many places there are.
  template <class Value>
  std::size_t add_up(bucket& b, const global_index* from, const Value& value) {
    auto& home = sorted_.segments[b.segment];
    global_index* const places = home.places.data() + b.begin;
    T* const values = ones_ ? nullptr : home.values.data() + b.begin;
    const global_index base = packed_place(b.first_row, 0);
    std::size_t* const in_row = sorted_.begins.data() + b.first_row + 1;
    std::size_t to = 0;
    for (std::size_t e = 0; e < b.count; ++to) {
      const global_index place = from[e];
      T sum = value(e);
      const std::size_t first = e;
      for (++e; e < b.count && from[e] == place; ++e) sum = static_cast<T>(sum + value(e));
      if (ones_ && e > first + 1) b.repeats.push_back({to, sum});
      places[to] = place + base;
      if (!ones_) values[to] = sum;
      ++in_row[row_of_place(place)];
    }
    return to;
  }

  /// Makes the entries of each segment contiguous.
  void close_gaps() {
    std::vector<std::size_t> end(sorted_.segments.size(), 0);
    for (bucket& b : buckets_) {
      auto& s = sorted_.segments[b.segment];
      const std::size_t to = std::exchange(end[b.segment], end[b.segment] + b.count);
      if (to != b.begin) {
        std::copy_n(s.places.data() + b.begin, b.count, s.places.data() + to);
        if (!ones_) std::copy_n(s.values.data() + b.begin, b.count, s.values.data() + to);
      }
      for (const auto& [at, sum] : b.repeats) {
        if (s.values.empty()) s.values.assign(s.places.size(), T(1));
        s.values[to + at] = sum;
      }
    }
    for (std::size_t k = 0; k < end.size(); ++k) {
      auto& s = sorted_.segments[k];
      sorted_.repeated += s.places.size() - end[k];
      s.places.resize(end[k]);
      if (!s.values.empty()) s.values.resize(end[k]);
    }
  }

  int threads_;
  int col_bits_, bin_bits_ = 0;
  bool ones_ = false;
  std::vector<bucket> buckets_;
  std::vector<std::uint32_t> bucket_of_;  ///< of each bin
  sorted_entries<T> sorted_;
};

}  // namespace detail

/// The entries of tile t, of rows x cols, that have arrived, which are then forgotten. Entries at one place
/// are added in the order of their arrival. Lists are allocated as those of `entries` are.
template <class T>
sorted_entries<T> sort_entries(arrived_entries<T>& entries, std::size_t t, std::size_t rows, std::size_t cols,
                               int threads) {
  constexpr std::size_t worth_threads = std::size_t{1} << 16;
  if (entries.count(t) < worth_threads) threads = 1;
  return detail::entry_sorter<T>(rows, cols, threads).sort(entries, t);
}

}  // namespace partita::local

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How many entries ahead sparse products prefetch rows of X. The best distance depends on the machine and on
/// the bytes of a row, so the first large product with rows of a class times some thousands of its entries
/// with each of a few distances; results do not depend on them.

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>

#include "partita/base/error.hpp"
#include "partita/base/function_reference.hpp"
#include "partita/base/index.hpp"

namespace partita::on_host {

using base::function_reference;

/// The distance that `text` names, a number of entries; none if it is null or empty. Throws error if it is
/// not a number in [0, 4096].
inline std::optional<local_index> prefetch_distance_named(const char* text) {
  const std::string_view given = text == nullptr ? "" : text;
  if (given.empty()) return {};
  local_index distance = -1;
  const auto [stop, failure] = std::from_chars(given.data(), given.data() + given.size(), distance);
  if (failure != std::errc() || stop != given.data() + given.size() || distance < 0 || distance > 4096)
    base::throw_error<error>({"PARTITA_PREFETCH must be a number of entries from 0 to 4096, and is ", text});
  return distance;
}

/// Finds the distance for rows of one class. Threads may share it.
class prefetch_search {
 public:
  static constexpr std::array<local_index, 4> distances{16, 32, 64, 96};
  static constexpr int samples = 16;  // of each distance

  /// `usual` is the distance until a better one is found, `given` one that is not to be searched.
  prefetch_search(local_index usual, std::optional<local_index> given)
      : distance_(given.value_or(usual)), found_(given.has_value()) {}

  local_index distance() const { return distance_.load(std::memory_order_relaxed); }
  bool found() const { return found_.load(std::memory_order_relaxed); }

  /// The distance to try next; its number is to be given to `add`.
  std::size_t next() { return turn_.fetch_add(1, std::memory_order_relaxed) % distances.size(); }
  /// What a part of a product took with the distance of this number.
  void add(std::size_t number, double seconds_per_entry) {
    const std::scoped_lock lock(adding_);
    int& count = counts_[number];
    if (count < samples) seconds_[number][static_cast<std::size_t>(count++)] = seconds_per_entry;
    if (found() || *std::min_element(counts_.begin(), counts_.end()) < samples) return;
    choose();
    found_.store(true, std::memory_order_relaxed);
  }

 private:
  /// The distance with the least lower quartile, the usual one if that gains less than 3 %.
  void choose() {
    std::array<double, distances.size()> quartile;
    for (std::size_t k = 0; k < distances.size(); ++k) {
      const auto middle = seconds_[k].begin() + samples / 4;
      std::nth_element(seconds_[k].begin(), middle, seconds_[k].end());
      quartile[k] = *middle * (distances[k] == distance() ? 0.97 : 1.0);
    }
    const auto best = std::min_element(quartile.begin(), quartile.end()) - quartile.begin();
    distance_.store(distances[static_cast<std::size_t>(best)], std::memory_order_relaxed);
  }

  std::atomic<local_index> distance_;
  std::atomic<bool> found_;
  std::atomic<std::size_t> turn_{0};
  std::mutex adding_;
  std::array<int, distances.size()> counts_{};
  std::array<std::array<double, samples>, distances.size()> seconds_{};
};

/// The search for rows of `bytes`, the same for all up to the next power of two of cache lines. The
/// environment variable PARTITA_PREFETCH sets one distance for all; throws as prefetch_distance_named does.
inline prefetch_search& prefetch_search_of(std::size_t bytes) {
  static const std::optional<local_index> given = prefetch_distance_named(std::getenv("PARTITA_PREFETCH"));
  static prefetch_search one_line(64, given), two(64, given), four(32, given), eight(32, given),
      more(16, given);
  return bytes <= 64 ? one_line : bytes <= 128 ? two : bytes <= 256 ? four : bytes <= 512 ? eight : more;
}

/// Calls f(distance, from, to) for ranges that together are the rows [begin, end) of a matrix of so many
/// entries with these offsets; each of x_rows rows of x has `row_bytes` that are read for an entry. Searches
/// if that is not done and the operands are large.
inline void with_prefetch_distance(std::size_t row_bytes, local_index entries, const local_index* offsets,
                                   local_index x_rows, local_index begin, local_index end,
                                   function_reference<void(local_index, local_index, local_index)> f) {
  constexpr local_index sample = 4096, many = 1 << 18;
  constexpr std::size_t large = std::size_t{4} << 20;
  prefetch_search& search = prefetch_search_of(row_bytes);
  if (search.found() || static_cast<std::size_t>(x_rows) * row_bytes < large || entries < many)
    return f(search.distance(), begin, end);
  for (local_index from = begin, to; from < end; from = to) {
    const local_index rest = offsets[end] - offsets[from];
    if (search.found() || rest < sample) return f(search.distance(), from, end);
    to = static_cast<local_index>(
        std::lower_bound(offsets + from + 1, offsets + end, offsets[from] + sample) - offsets);
    const std::size_t number = search.next();
    const auto start = std::chrono::steady_clock::now();
    f(prefetch_search::distances[number], from, to);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    search.add(number, seconds.count() / (offsets[to] - offsets[from]));
  }
}

}  // namespace partita::on_host

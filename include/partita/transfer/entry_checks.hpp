// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Checks of the entries of a sparse matrix before they are distributed: finite, not replicated by mistake,
/// symmetric if declared so.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

#include "partita/base/random.hpp"
#include "partita/base/triplet.hpp"
#include "partita/comm/communicator.hpp"
#include "partita/local/parallel.hpp"

namespace partita::transfer {

/// How the entries of a matrix are given by the ranks. `disjoint`: each entry on one rank, so identical
/// entries on all ranks are an error. `overlapping`: any rank may give any entry, and duplicates are summed.
/// `trusted`: the same, and nothing is checked: entries are finite, inside the matrix, and symmetric if the
/// matrix is declared so.
enum class sharing : std::uint8_t { disjoint, overlapping, trusted };

/// Where `parts` equal parts of a range of `count` entries begin, and where the last ends.
template <class Iterator>
std::vector<Iterator> cuts(Iterator first, global_index count, int parts) {
  std::vector<Iterator> found{first};
  for (int p = 0; p < parts; ++p)
    found.push_back(std::next(found.back(), base::part_of({0, count}, p, parts).size()));
  return found;
}

/// Gives back the memory of entries that are read again from a mapped file, if these are.
template <class Entries>
void forget(const Entries& entries) {
  if constexpr (requires { entries.forget(); }) entries.forget();
}

/// visit(entry) for `count` entries, of which not many are in memory at a time if they can be forgotten.
template <class Entries, class Iterator, class Visit>
void visit_slices(const Entries& entries, Iterator e, global_index count, const Visit& visit) {
  constexpr global_index slice = global_index{1} << 21;
  for (global_index left = count; left > 0; left -= std::min(left, slice)) {
    for (const Iterator end = std::next(e, std::min(left, slice)); e != end; ++e) visit(*e);
    if (count > slice) transfer::forget(entries);
  }
}

/// visit(part, entry) for all entries, each part of them on a thread of its own.
template <class Entries, class Visit>
void for_entries(const Entries& entries, int threads, const Visit& visit) {
  const auto count = std::distance(std::begin(entries), std::end(entries));
  const auto begins = cuts(std::begin(entries), count, threads);
  local::run_parts(threads, [&](int part) {
    const auto p = static_cast<std::size_t>(part);
    visit_slices(entries, begins[p], base::part_of({0, count}, part, threads).size(),
                 [&](const auto& e) { visit(p, e); });
  });
}

/// sums(row) += value for all entries; each of the threads reads all, and adds those of a range of rows.
template <class Entries, class Sum>
void add_by_row(const Entries& entries, std::vector<Sum>& sums, int threads) {
  local::run_parts(threads, [&](int part) {
    const interval rows = base::part_of({0, static_cast<global_index>(sums.size())}, part, threads);
    visit_slices(entries, std::begin(entries), std::distance(std::begin(entries), std::end(entries)),
                 [&](const auto& e) {
                   if (rows.contains(e.row))
                     sums[static_cast<std::size_t>(e.row)] += static_cast<Sum>(e.value);
                 });
  });
}

/// Throws error naming this entry, a triplet, unless it is finite. `giver`, here and below: " (given by
/// ...)".
template <class Entry>
void require_finite(const Entry& e, std::string_view giver = {}) {
  if (!std::isfinite(e.value))
    base::throw_error<error>({"entry (", e.row, ", ", e.col, ") of a sparse matrix is ",
                              std::isnan(e.value) ? "NaN"
                              : e.value > 0       ? "infinite"
                                                  : "minus infinite",
                              ", which is not a finite number", giver});
}

/// Throws shape_error naming an entry outside a matrix of this shape, and as require_finite. `entries`, here
/// and below: any forward range of triplets, read by so many threads.
template <class Entries>
void require_entries(matrix_shape shape, const Entries& entries, int threads = 1,
                     std::string_view giver = {}) {
  for_entries(entries, threads, [&](std::size_t, const auto& e) {
    if (e.row < 0 || e.row >= shape.rows || e.col < 0 || e.col >= shape.cols)
      base::throw_error<shape_error>(
          {"entry (", e.row, ", ", e.col, ") is outside a matrix of ", shape, giver});
    require_finite(e, giver);
  });
}

/// Throws error, the same on every rank, if two of these numbers, each of a rank, are the same odd number.
inline void require_different(const std::vector<global_index>& of_ranks) {
  for (auto r = of_ranks.begin(); r != of_ranks.end(); ++r) {
    const auto other = *r % 2 == 0 ? of_ranks.end() : std::find(std::next(r), of_ranks.end(), *r);
    if (other != of_ranks.end())
      base::throw_error<error>(
          {"ranks ", r - of_ranks.begin(), " and ", other - of_ranks.begin(),
           " gave the same entries, which would be summed twice: give each entry on one rank, "
           "or say transfer::sharing::overlapping"});
  }
}

/// Throws error if every rank gives the same entries, in any order, or two of them the same four or more,
/// since each would then be summed once per rank. Collective. What travels: an all-gather of one element per
/// rank.
template <class Entries>
void require_shares(const communicator& world, const Entries& entries) {
  if (world.size() == 1) return;
  std::uint64_t sum = 0, count = 0;
  for (const auto& e : entries) {
    sum += base::random_bits(std::bit_cast<std::uint64_t>(static_cast<double>(e.value)), e.row, e.col);
    ++count;
  }
  const bool several = count >= 4;  // fewer may be alike by chance: edges that a file has twice
  const std::uint64_t hash = base::mixed_bits(sum ^ count) | 1;
  const auto mine = count == 0 ? 0 : static_cast<global_index>(several ? hash : hash - 1);
  const std::vector<global_index> all = world.all_gather(mine);
  if (mine == 0 || all != std::vector<global_index>(all.size(), mine)) return require_different(all);
  base::throw_error<error>({"each of ", world.size(), " ranks gave the same ", count,
                            count == 1 ? " entry" : " entries", ", which would be summed ", world.size(),
                            " times: give each entry on one rank, or say transfer::sharing::overlapping"});
}

namespace detail {

/// An exact sum of doubles, modulo two primes p with (p - 1) / 2 also prime, so that all powers of 2 in the
/// range of double have distinct residues.
class exact_sum {
 public:
  /// Adds value * factor, a number of 63 bits; factors of equal consecutive values are added up first.
  void add(double value, std::int64_t factor) {
    if (value != value_ || count_ == most_factors) {
      fold();
      value_ = value;
    }
    high_ += factor >> 32;
    low_ += factor & 0xffffffff;
    ++count_;
  }
  /// Adds another sum.
  void add(exact_sum other) {
    other.fold();
    for (std::size_t k = 0; k < primes.size(); ++k) of_[k] = (of_[k] + other.of_[k]) % primes[k];
  }
  /// Whether the sums of all ranks add up to 0. What travels: an all-reduce of two elements.
  bool is_zero(const communicator& world) {
    fold();
    std::array<global_index, 2> sums{static_cast<global_index>(of_[0]), static_cast<global_index>(of_[1])};
    world.all_reduce(sums);
    return sums[0] % global_index{primes[0]} == 0 && sums[1] % global_index{primes[1]} == 0;
  }

 private:
  static constexpr std::array<std::uint32_t, 2> primes{4294967087u, 4294965887u};
  static constexpr int lowest = 1074;  ///< minus the smallest exponent of a double
  /// powers[k][e] = 2^e mod primes[k].
  static constexpr auto powers = [] {
    std::array<std::array<std::uint32_t, 2100>, 2> table{};
    for (std::size_t k = 0; k < primes.size(); ++k) {
      std::uint64_t power = 1;
      for (std::uint32_t& entry : table[k]) {
        entry = static_cast<std::uint32_t>(power);
        power = 2 * power % primes[k];
      }
    }
    return table;
  }();

  /// Adds the product of the value and the sum of its factors.
  void fold() {
    int exponent = 0;
    const auto digits = static_cast<std::int64_t>(std::ldexp(std::frexp(value_, &exponent), 53));
    for (std::size_t k = 0; k < primes.size(); ++k) {
      const std::uint64_t p = primes[k];
      const auto residue = [p](std::int64_t number) {
        const auto rest = number % static_cast<std::int64_t>(p);
        return static_cast<std::uint64_t>(rest < 0 ? rest + static_cast<std::int64_t>(p) : rest);
      };
      const std::uint64_t factor = (residue(high_) * ((std::uint64_t{1} << 32) % p) + residue(low_)) % p;
      const std::uint64_t value =
          residue(digits) * powers[k][static_cast<std::size_t>(exponent + lowest)] % p;
      of_[k] = (of_[k] + value * factor) % p;
    }
    high_ = low_ = 0;
    count_ = 0;
  }

  static constexpr int most_factors = 1 << 30;

  double value_ = 0;
  global_index high_ = 0, low_ = 0;  ///< the sum of its factors is high_ * 2^32 + low_
  int count_ = 0;
  std::array<std::uint64_t, 2> of_{};
};

}  // namespace detail
}  // namespace partita::transfer

namespace partita {

/// Whether the entries of all ranks form a symmetric matrix, A(i, j) = A(j, i). Duplicates are summed
/// exactly, and zeros of either sign count as absent. A probabilistic test: false positives have probability
/// 2^-63. Collective. What travels: an all-reduce of two elements. Throws error naming an entry that is not
/// finite.
template <class Entries>
bool is_symmetric(const communicator& world, const Entries& entries, int threads = 1,
                  std::source_location where = std::source_location::current()) {
  const comm::call_site scope(where);
  std::vector<transfer::detail::exact_sum> of_threads(static_cast<std::size_t>(threads));
  transfer::for_entries(entries, threads, [&](std::size_t part, const auto& e) {
    transfer::require_finite(e);
    of_threads[part].add(static_cast<double>(e.value),
                         static_cast<std::int64_t>(base::random_bits(0, e.row, e.col) >> 2) -
                             static_cast<std::int64_t>(base::random_bits(0, e.col, e.row) >> 2));
  });
  transfer::detail::exact_sum difference;
  for (const transfer::detail::exact_sum& of_thread : of_threads) difference.add(of_thread);
  return difference.is_zero(world);
}

}  // namespace partita

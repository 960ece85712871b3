// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Checks of the entries of a sparse matrix before they are distributed: finite, not replicated by mistake,
/// symmetric if declared so.

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "partita/base/random.hpp"
#include "partita/base/triplet.hpp"
#include "partita/comm/communicator.hpp"

namespace partita::transfer {

/// How the entries of a matrix are given by the ranks. `disjoint`: each entry on one rank, so identical
/// entries on all ranks are an error. `overlapping`: any rank may give any entry, and duplicates are summed.
enum class sharing : std::uint8_t { disjoint, overlapping };

/// Throws error naming the first entry that is not finite. `entries`, here and below: any forward range of
/// triplets.
template <class Entries>
void require_finite(const Entries& entries) {
  for (const auto& e : entries)
    if (!std::isfinite(e.value))
      throw_error<error>({"entry (", e.row, ", ", e.col, ") of a sparse matrix is ",
                          std::isnan(e.value) ? "NaN"
                          : e.value > 0       ? "infinite"
                                              : "minus infinite",
                          ", which is not a finite number"});
}

/// Throws error if every rank gives the same entries, in any order, since each would then be summed once per
/// rank. Collective. What travels: an all-gather of one element per rank.
template <class Entries>
void require_shares(const communicator& world, const Entries& entries) {
  if (world.size() == 1) return;
  std::uint64_t sum = 0, count = 0;
  for (const auto& e : entries) {
    sum += random_bits(std::bit_cast<std::uint64_t>(static_cast<double>(e.value)), e.row, e.col);
    ++count;
  }
  const auto mine = count == 0 ? 0 : static_cast<global_index>(base::mixed_bits(sum ^ count));
  const std::vector<global_index> all = world.all_gather(mine);
  if (mine == 0 || all != std::vector<global_index>(all.size(), mine)) return;
  throw_error<error>({"each of ", world.size(), " ranks gave the same ", count,
                      count == 1 ? " entry" : " entries", ", which would be summed ", world.size(),
                      " times: give each entry on one rank, or say transfer::sharing::overlapping"});
}

namespace detail {

/// An exact sum of doubles, modulo two primes p with (p - 1) / 2 also prime, so that all powers of 2 in the
/// range of double have distinct residues.
class exact_sum {
 public:
  /// Adds value * factor.
  void add(double value, std::uint64_t factor) {
    int exponent = 0;
    const auto digits = static_cast<std::int64_t>(std::ldexp(std::frexp(value, &exponent), 53));
    for (std::size_t k = 0; k < primes.size(); ++k) {
      const std::uint64_t p = primes[k];
      const std::uint64_t magnitude = static_cast<std::uint64_t>(digits < 0 ? -digits : digits) % p;
      const std::uint64_t term =
          magnitude * powers[k][static_cast<std::size_t>(exponent + lowest)] % p * (factor % p) % p;
      of_[k] = (of_[k] + (digits < 0 ? p - term : term)) % p;
    }
  }
  /// Whether the sums of all ranks add up to 0. What travels: an all-reduce of two elements.
  bool is_zero(const communicator& world) const {
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
bool is_symmetric(const communicator& world, const Entries& entries,
                  std::source_location where = std::source_location::current()) {
  const comm::call_site scope(where);
  transfer::require_finite(entries);
  transfer::detail::exact_sum difference;
  for (const auto& e : entries) {
    difference.add(static_cast<double>(e.value), random_bits(0, e.row, e.col) >> 1);
    difference.add(-static_cast<double>(e.value), random_bits(0, e.col, e.row) >> 1);
  }
  return difference.is_zero(world);
}

}  // namespace partita

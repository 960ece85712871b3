// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Counter-based random numbers: pure functions of a key and a position, so results do not depend on the
/// number of ranks.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/base/step_number.hpp"

namespace partita {

namespace base {

/// The SplitMix64 step, a bijection on 64-bit words. Source: Steele, Lea, Flood, OOPSLA 2014.
constexpr std::uint64_t mixed_bits(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace base

/// Key of a random field: the user's seed, the step (epoch) and the stream (layer).
struct random_key {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint64_t stream = 0;

  constexpr std::uint64_t word() const {
    return base::mixed_bits(base::mixed_bits(base::mixed_bits(seed) ^ step) ^ stream);
  }
};

namespace base {

/// 64 random bits at position (row, col) of the field with key `word`, from random_key::word().
constexpr std::uint64_t random_bits(std::uint64_t word, std::int64_t row, std::int64_t col) {
  return base::mixed_bits(base::mixed_bits(word ^ static_cast<std::uint64_t>(row)) ^
                          static_cast<std::uint64_t>(col));
}

/// Uniform in [0, 1) at position (row, col), with 53 random bits.
constexpr double random_uniform(std::uint64_t word, std::int64_t row, std::int64_t col) {
  return static_cast<double>(random_bits(word, row, col) >> 11) * 0x1.0p-53;
}

/// x scale, or 0 if the upper 53 bits of the random field `word` at (vertex(i), j) are below `threshold`. All
/// entries are kept as they are by default.
template <class T>
struct dropped {
  /// The same of row i, without comparisons, so that loops over j vectorise.
  struct in_row {
    using bits = std::conditional_t<sizeof(T) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;

    std::uint64_t word, threshold;
    T scale;

    constexpr T operator()(global_index j, T x) const {
      const std::uint64_t random = base::mixed_bits(word ^ static_cast<std::uint64_t>(j)) >> 11;
      const auto is_dropped = static_cast<bits>((random - threshold) >> 63);
      return std::bit_cast<T>(std::bit_cast<bits>(x * scale) & (is_dropped - 1));
    }
  };

  step_number<std::uint64_t> word;
  std::uint64_t threshold = 0;
  T scale = 1;
  const global_index* vertices = nullptr;  ///< see dropout_mask

  constexpr global_index vertex(global_index i) const { return vertices == nullptr ? i : vertices[i]; }
  constexpr in_row row(global_index i) const {
    const std::uint64_t now = word;
    return {base::mixed_bits(now ^ static_cast<std::uint64_t>(vertex(i))), threshold, scale};
  }
  constexpr T operator()(global_index i, global_index j, T x) const { return row(i)(j, x); }
};

/// Fisher and Yates's shuffle, with `word` from random_key::word().
template <class T>
void shuffle(std::vector<T>& values, std::uint64_t word) {
  for (std::size_t left = values.size(); left > 1; --left)
    std::swap(values[left - 1], values[random_bits(word, static_cast<std::int64_t>(left), 0) % left]);
}

}  // namespace base

}  // namespace partita

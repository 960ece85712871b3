#pragma once
/// Initial values as pure functions of seed, stream and entry: the same on every rank, at any number of
/// ranks.

#include <cmath>

#include "partita/base/random.hpp"
#include "partita/nn/parameters.hpp"

namespace partita {

namespace detail {

/// Uniform in [-bound, bound), as the field `word` has it at (i, j).
template <class T>
struct uniform_entry {
  std::uint64_t word;
  double bound;
  constexpr T operator()(local_index i, local_index j, T) const {
    return static_cast<T>((2 * random_uniform(word, i, j) - 1) * bound);
  }
};

}  // namespace detail

/// W(i, j) uniform in [-a, a), a = sqrt(6 / (rows + cols)). Nothing travels.
/// Source: Glorot, Bengio (AISTATS 2010), eq. 16.
template <class T, class Place>
void glorot(parameters<T, Place>& set, std::size_t index, std::uint64_t seed) {
  const extent shape = set.list()[index].shape;
  const double a = std::sqrt(6.0 / static_cast<double>(shape.rows + shape.cols));
  const std::uint64_t word = random_key{seed, 0, 0x67000000u + index}.word();
  map_indexed(set.mesh().queue(), detail::uniform_entry<T>{word, a}, set.value(index), set.value(index));
}

}  // namespace partita

// SPDX-License-Identifier: Apache-2.0
// Random numbers as functions of a key and a position.
#include "partita/base/random.hpp"

#include <doctest/doctest.h>
#include <map>
#include <set>

namespace test_random {

using namespace partita;

// The first numbers of SplitMix64 from seed 0, whose state grows by the golden ratio.
static_assert(base::mixed_bits(0) == 0xe220a8397b1dcdafu);
static_assert(base::mixed_bits(0x9e3779b97f4a7c15u) == 0x6e789e6aa1b965f4u);

TEST_CASE("random: seed, step, stream and position give fields of their own") {
  std::set<std::uint64_t> words;
  for (std::uint64_t seed = 0; seed < 8; ++seed)
    for (std::uint64_t step = 0; step < 8; ++step)
      for (std::uint64_t stream = 0; stream < 8; ++stream)
        words.insert(random_key{seed, step, stream}.word());
  CHECK(words.size() == 512);
  std::set<std::uint64_t> bits;
  for (std::int64_t i = -16; i < 16; ++i)
    for (std::int64_t j = -16; j < 16; ++j) bits.insert(base::random_bits(7, i, j));
  CHECK(bits.size() == 1024);
}

TEST_CASE("random: uniform numbers fill [0, 1) evenly") {
  constexpr int bins = 10, side = 100;
  int counts[bins] = {};
  double sum = 0;
  for (std::int64_t i = 0; i < side; ++i)
    for (std::int64_t j = 0; j < side; ++j) {
      const double x = base::random_uniform(random_key{1, 2, 3}.word(), i, j);
      CHECK((0 <= x && x < 1));
      ++counts[static_cast<int>(bins * x)];
      sum += x;
    }
  for (const int count : counts) CHECK(doctest::Approx(count).epsilon(0.15) == side * side / bins);
  CHECK(doctest::Approx(sum / (side * side)).epsilon(0.02) == 0.5);
}

TEST_CASE("random: every order of three comes up about equally often") {
  std::map<std::vector<int>, int> counts;
  for (std::uint64_t step = 0; step < 6000; ++step) {
    std::vector<int> values{0, 1, 2};
    base::shuffle(values, random_key{3, step, 0}.word());
    ++counts[values];
  }
  CHECK(counts.size() == 6);
  for (const auto& [order, count] : counts) CHECK(doctest::Approx(count).epsilon(0.1) == 1000);
}

TEST_CASE_TEMPLATE("random: dropping an entry is a comparison of its random bits", T, float, double) {
  const std::uint64_t word = random_key{1, 2, 3}.word();
  const std::int64_t vertices[] = {7, 1000000007, 0};
  for (const std::uint64_t threshold :
       {std::uint64_t{0}, std::uint64_t{1} << 51, (std::uint64_t{1} << 53) - 1})
    for (const std::int64_t* const named : {static_cast<const std::int64_t*>(nullptr), vertices}) {
      const base::dropped<T> drop{word, threshold, T(1.25), named};
      for (std::int64_t i = 0; i < 3; ++i)
        for (std::int64_t j = 0; j < 200; ++j) {
          const bool goes = base::random_bits(word, named == nullptr ? i : named[i], j) >> 11 < threshold;
          CHECK(drop(i, j, T(-3)) == (goes ? T(0) : T(-3) * T(1.25)));
        }
    }
  CHECK(base::dropped<T>{}(4, 5, T(6)) == 6);
}

}  // namespace test_random

// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the laws of a communicator expect: elements and reductions as functions of rank, size and position.
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include "partita/base/random.hpp"
#include "partita/comm/communicator.hpp"

namespace test_support::laws {

using partita::communicator, partita::global_index, partita::reduction;

inline constexpr int patterns = 5;

/// How many elements rank q has, or owes to rank r: even, uneven with zeros, one rank alone, nothing, long.
inline global_index elements(int pattern, int size, int q, int r = 0) {
  if (pattern == 0) return 3;
  if (pattern == 1) return (5 * q + 3 * r + 2) % 4;
  if (pattern == 2) return q == size - 1 && r == 0 ? 7 : 0;
  if (pattern == 3) return 0;
  return 1200 + 13 * q + r;
}

/// The element of rank q at a position; a field lets several buffers differ. Sums of these floating-point
/// numbers depend on their order.
template <class T>
T value(int q, global_index position, int field = 0) {
  const std::uint64_t word = partita::random_key{7, static_cast<std::uint64_t>(field), 1}.word();
  if constexpr (std::is_floating_point_v<T>) {
    const double scale = partita::base::random_bits(word, position, q) % 2 == 0 ? 1.0 : 1e5;
    return static_cast<T>(scale * (partita::base::random_uniform(word, q, position) - 0.5));
  } else {
    return static_cast<T>(partita::base::random_bits(word, q, position) % 100);
  }
}

template <class T>
std::vector<T> values(int q, global_index begin, global_index count, int field = 0) {
  std::vector<T> v;
  for (global_index i = begin; i < begin + count; ++i) v.push_back(value<T>(q, i, field));
  return v;
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// One element of a reduction over all ranks, in rank order.
template <class T>
T reduced(int size, global_index position, reduction r, int field = 0) {
  T sum = value<T>(0, position, field);
  for (int q = 1; q < size; ++q) {
    const T next = value<T>(q, position, field);
    sum = r == reduction::sum ? static_cast<T>(sum + next) : std::max(sum, next);
  }
  return sum;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <class T>
void check_same(const communicator& c, const char* what, int pattern, const std::vector<T>& got,
                const std::vector<T>& expected) {
  CHECK_MESSAGE(same_bits(got, expected), std::string(what), " pattern ", pattern, " on rank ", c.rank(),
                " of ", c.size());
}

/// Whether a fixture's communicator adds up floating-point numbers in an order of its own.
template <class Fixture>
constexpr bool sums_in_any_order(const Fixture& fixture) {
  if constexpr (requires { fixture.any_order; }) return fixture.any_order;
  return false;
}

/// The same bits as reductions in the order of ranks; sums of floating-point numbers in any order are nearly
/// the same.
template <class T, class Fixture>
void check_reduced(const Fixture& fixture, const char* what, int pattern, reduction how,
                   const std::vector<T>& got, const std::vector<T>& expected) {
  if constexpr (std::is_floating_point_v<T>)
    if (how == reduction::sum && sums_in_any_order(fixture)) {
      CHECK(got.size() == expected.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        CHECK(std::abs(got[i] - expected[i]) <= 1e6 * std::numeric_limits<T>::epsilon());
      return;
    }
  check_same(fixture.c, what, pattern, got, expected);
}

template <class T>
std::span<const T> in(const std::vector<T>& v) {
  return v;
}

/// Elements that an operation reads or writes.
template <class T>
class host_block {
 public:
  explicit host_block(std::vector<T> values) : values_(std::move(values)) {}

  std::span<const T> in() const { return values_; }
  std::span<T> out() { return values_; }
  /// Writes something else there, now that it may be written again.
  void spoil() { std::fill(values_.begin(), values_.end(), T(77)); }
  std::vector<T> get() const { return values_; }

 private:
  std::vector<T> values_;
};

/// A communicator, and blocks of the memory that it is for: that of the host.
struct host_fixture {
  communicator c;
  bool any_order = false;  ///< of sums of floating-point numbers, as MPI's own

  template <class T>
  host_block<T> put(std::vector<T> values) const {
    return host_block<T>(std::move(values));
  }
  template <class T>
  host_block<T> make(std::size_t count) const {
    return put(std::vector<T>(count));
  }
  host_fixture with(communicator other) const { return {std::move(other), any_order}; }
};

}  // namespace test_support::laws

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Exponential functions of many numbers, in vectors.

#include <cstddef>
#include <cstdint>
#include <limits>

#include "partita/base/exponential.hpp"
#include "partita/local/host/instructions.hpp"

namespace partita::on_host {

namespace exponential_detail {

/// z below `lowest` is rounded to 0, above `highest` to infinity; the expansion is that of base.
template <class T>
struct expansion;
template <>
struct expansion<float> : base::exponential_expansion<float> {
  using integer = std::int32_t;
  static constexpr float lowest = -87.33654F, highest = 88.72283F;
};
template <>
struct expansion<double> : base::exponential_expansion<double> {
  using integer = std::int64_t;
  static constexpr double lowest = -708.396418532264106, highest = 709.782712893383973;
};

/// One vector of `Bytes`, in place.
template <class T, int Bytes>
inline void of_vector(T* to) {
  using how = expansion<T>;
  using integer = typename how::integer;
  constexpr int lanes = Bytes / static_cast<int>(sizeof(T));
  using vector = typename vector_of<T, Bytes>::type;
  using integers = typename vector_of<integer, Bytes>::type;
  using short_integers = typename vector_of<std::int32_t, lanes * 4>::type;
  auto& place = *reinterpret_cast<typename vector_of<T, Bytes>::place*>(to);
  const vector x = place.value;
  vector z = x < how::lowest ? vector{} + how::lowest : x;
  z = z > how::highest ? vector{} + how::highest : z;
  const vector scaled = z * T(1.44269504088896340736);
  const auto k =
      __builtin_convertvector(scaled + (scaled < 0 ? vector{} - T(0.5) : vector{} + T(0.5)), short_integers);
  const vector whole = __builtin_convertvector(k, vector);
  const vector r = (z - whole * how::high) - whole * how::low;
  vector sum{};
  for (const T factor : how::p()) sum = sum * r + factor;
  sum = sum * r * r + r + T(1);
  const integers exponent = __builtin_convertvector(k, integers), half = exponent / 2;  // 2^k in two factors
  sum *= __builtin_bit_cast(vector, (half + how::bias) << how::fraction_bits);
  sum *= __builtin_bit_cast(vector, (exponent - half + how::bias) << how::fraction_bits);
  sum = x < how::lowest ? vector{} : sum;
  sum = x > how::highest ? vector{} + std::numeric_limits<T>::infinity() : sum;
  place.value = sum;
}

}  // namespace exponential_detail

/// x[i] = exp(x[i]), to one unit in the last place; 0 where that is less than the least normal number. Of
/// function objects that run_with compiles for I.
template <instruction_set I, class T>
inline void exponentials(T* x, std::size_t count) {
  constexpr std::size_t lanes = static_cast<std::size_t>(register_bytes(I)) / sizeof(T);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) exponential_detail::of_vector<T, register_bytes(I)>(x + i);
  if (i == count) return;
  T rest[lanes] = {};
  for (std::size_t k = i; k < count; ++k) rest[k - i] = x[k];
  exponential_detail::of_vector<T, register_bytes(I)>(rest);
  for (std::size_t k = i; k < count; ++k) x[k] = rest[k - i];
}

}  // namespace partita::on_host

// SPDX-License-Identifier: Apache-2.0
#pragma once
// The scalar types of PTX.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace emulator::ptx {

/// Untyped bits (.b32) count as unsigned.
enum class scalar : std::uint8_t { none, pred, u8, u16, u32, u64, s8, s16, s32, s64, f32, f64 };

constexpr scalar scalar_named(std::string_view name) {
  constexpr struct {
    std::string_view name;
    scalar type;
  } known[] = {{"pred", scalar::pred}, {"b8", scalar::u8},   {"b16", scalar::u16}, {"b32", scalar::u32},
               {"b64", scalar::u64},   {"u8", scalar::u8},   {"u16", scalar::u16}, {"u32", scalar::u32},
               {"u64", scalar::u64},   {"s8", scalar::s8},   {"s16", scalar::s16}, {"s32", scalar::s32},
               {"s64", scalar::s64},   {"f32", scalar::f32}, {"f64", scalar::f64}};
  for (const auto& k : known)
    if (k.name == name) return k.type;
  return scalar::none;
}

/// In bytes; 0 for none. A predicate has no address, and counts as one.
constexpr std::size_t size_of(scalar type) {
  constexpr std::uint8_t sizes[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8};  // in the order of the types
  return sizes[static_cast<std::size_t>(type)];
}

constexpr bool is_real(scalar type) { return type == scalar::f32 || type == scalar::f64; }
constexpr bool is_signed(scalar type) { return type >= scalar::s8 && type <= scalar::s64; }
constexpr bool is_integer(scalar type) { return type >= scalar::u8 && type <= scalar::s64; }

/// f(T{}) with the C++ type of an integer or of f32, f64; what f returns, or nothing for other types.
template <class F>
constexpr auto visit_integer(scalar type, F f) -> decltype(f(std::uint32_t{})) {
  if (type == scalar::u8) return f(std::uint8_t{});
  if (type == scalar::u16) return f(std::uint16_t{});
  if (type == scalar::u32) return f(std::uint32_t{});
  if (type == scalar::u64) return f(std::uint64_t{});
  if (type == scalar::s8) return f(std::int8_t{});
  if (type == scalar::s16) return f(std::int16_t{});
  if (type == scalar::s32) return f(std::int32_t{});
  if (type == scalar::s64) return f(std::int64_t{});
  return {};
}
template <class F>
constexpr auto visit_real(scalar type, F f) -> decltype(f(float{})) {
  if (type == scalar::f32) return f(float{});
  if (type == scalar::f64) return f(double{});
  return {};
}
template <class F>
constexpr auto visit_number(scalar type, F f) -> decltype(f(float{})) {
  return is_real(type) ? visit_real(type, f) : visit_integer(type, f);
}
/// By its size alone.
template <class F>
constexpr auto visit_bits(std::size_t bytes, F f) -> decltype(f(std::uint32_t{})) {
  if (bytes == 1) return f(std::uint8_t{});
  if (bytes == 2) return f(std::uint16_t{});
  if (bytes == 4) return f(std::uint32_t{});
  if (bytes == 8) return f(std::uint64_t{});
  return {};
}

}  // namespace emulator::ptx

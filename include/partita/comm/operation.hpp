#pragma once
/// A collective operation as a value: what every communicator model is asked to do.

#include <cstdint>
#include <cstring>
#include <numeric>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>

#include "partita/base/index.hpp"

namespace partita {

enum class operation : std::uint8_t {
  broadcast,
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all,
  send,
  receive
};
enum class element_type : std::uint8_t { u8, i32, i64, f32, f64 };
enum class reduction : std::uint8_t { sum, max };

constexpr const char* name_of(operation o) {
  constexpr const char* names[] = {"broadcast",  "all_gather", "reduce_scatter", "all_reduce",
                                   "all_to_all", "send",       "receive"};
  return names[static_cast<std::size_t>(o)];
}
constexpr const char* name_of(element_type t) {
  constexpr const char* names[] = {"u8", "i32", "i64", "f32", "f64"};
  return names[static_cast<std::size_t>(t)];
}
constexpr std::size_t size_of(element_type t) {
  constexpr std::size_t sizes[] = {1, 4, 8, 4, 8};
  return sizes[static_cast<std::size_t>(t)];
}

template <class T>
struct element_type_of;
template <>
struct element_type_of<std::uint8_t> : std::integral_constant<element_type, element_type::u8> {};
template <>
struct element_type_of<std::int32_t> : std::integral_constant<element_type, element_type::i32> {};
template <>
struct element_type_of<std::int64_t> : std::integral_constant<element_type, element_type::i64> {};
template <>
struct element_type_of<float> : std::integral_constant<element_type, element_type::f32> {};
template <>
struct element_type_of<double> : std::integral_constant<element_type, element_type::f64> {};

/// What one rank brings to an operation. Blocks of several ranks lie one after another in rank order. The
/// memory and the counts must live until the operation has been waited for.
struct collective {
  operation kind{};
  element_type type{};
  reduction reduce = reduction::sum;
  int peer = 0;                                 ///< root of a broadcast, partner of send and receive
  int tag = 0;                                  ///< of send and receive
  global_index count = 0;                       ///< elements of the one buffer, or of my block
  const void* input = nullptr;                  ///< what I give; all_reduce and broadcast work in `output`
  void* output = nullptr;                       ///< what I get
  std::span<const global_index> input_counts;   ///< reduce_scatter, all_to_all: elements for each rank
  std::span<const global_index> output_counts;  ///< all_gather, all_to_all: elements from each rank
  std::source_location where;

  std::size_t bytes(global_index elements) const {
    return static_cast<std::size_t>(elements) * size_of(type);
  }
};

/// Elements of the first `rank` blocks.
inline global_index offset_of(std::span<const global_index> counts, int rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, global_index{0});
}

/// The part of an all-reduced buffer of `count` elements that `rank` of `size` reduces.
constexpr interval share_of(global_index count, int rank, int size) {
  const global_index each = count / size, longer = count % size;
  const global_index begin = rank * each + (rank < longer ? rank : longer);
  return {begin, begin + each + (rank < longer ? 1 : 0)};
}

/// "all_gather of f64 (spmm.hpp:120)".
inline std::string describe(const collective& c) {
  std::string file = c.where.file_name();
  file = file.substr(file.find_last_of('/') + 1);
  return std::string(name_of(c.kind)) + " of " + name_of(c.type) + " (" + file + ":" +
         std::to_string(c.where.line()) + ")";
}

namespace detail {

/// Integers wrap around.
template <class T>
T add(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  else
    return a + b;
}

template <class T>
void reduce_typed(reduction r, const void* from, void* to, global_index count) {
  const T* in = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  if (r == reduction::sum)
    for (global_index i = 0; i < count; ++i) out[i] = add(out[i], in[i]);
  else
    for (global_index i = 0; i < count; ++i) out[i] = in[i] > out[i] ? in[i] : out[i];
}

}  // namespace detail

/// to[i] = to[i] op from[i]; the one reduction of every model, so that order alone decides the result.
inline void reduce_into(element_type type, reduction r, const void* from, void* to, global_index count) {
  switch (type) {
    case element_type::u8:
      return detail::reduce_typed<std::uint8_t>(r, from, to, count);
    case element_type::i32:
      return detail::reduce_typed<std::int32_t>(r, from, to, count);
    case element_type::i64:
      return detail::reduce_typed<std::int64_t>(r, from, to, count);
    case element_type::f32:
      return detail::reduce_typed<float>(r, from, to, count);
    case element_type::f64:
      return detail::reduce_typed<double>(r, from, to, count);
  }
}

}  // namespace partita

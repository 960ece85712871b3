// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Descriptors of communication operations, as passed to transports, and the reductions they use.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "partita/base/bfloat16.hpp"
#include "partita/base/function.hpp"
#include "partita/base/index.hpp"

namespace partita::comm {

/// Communication operations.
enum class operation : std::uint8_t {
  broadcast,
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all,
  send,
  receive
};
/// Element types of communication buffers.
enum class element_type : std::uint8_t { u8, i32, i64, f32, f64, bf16 };
/// max propagates NaN on every transport: reductions are never left to MPI or NCCL, whose max leaves NaN
/// unspecified.
enum class reduction : std::uint8_t { sum, max };

constexpr const char* name_of(operation o) {
  constexpr const char* names[] = {"broadcast",  "all_gather", "reduce_scatter", "all_reduce",
                                   "all_to_all", "send",       "receive"};
  return names[static_cast<std::size_t>(o)];
}
constexpr const char* name_of(element_type t) {
  constexpr const char* names[] = {"u8", "i32", "i64", "f32", "f64", "bf16"};
  return names[static_cast<std::size_t>(t)];
}
constexpr std::size_t size_of(element_type t) {
  constexpr std::size_t sizes[] = {1, 4, 8, 4, 8, 2};
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
template <>
struct element_type_of<base::bfloat16> : std::integral_constant<element_type, element_type::bf16> {};

/// One rank's arguments to an operation. Blocks of several ranks are stored in rank order. Buffers and counts
/// must outlive the wait.
struct collective {
  operation kind{};
  element_type type{};
  reduction reduce = reduction::sum;
  int peer = 0;                 ///< root of a broadcast, peer of send and receive
  int tag = 0;                  ///< of send and receive
  global_index count = 0;       ///< elements of the buffer, or of this rank's block
  const void* input = nullptr;  ///< send buffer; in a broadcast the root's; all_reduce has only `output`
  void* output = nullptr;       ///< receive buffer
  std::span<const global_index> input_counts;   ///< reduce_scatter, all_to_all: elements to each rank
  std::span<const global_index> output_counts;  ///< all_gather, all_to_all: elements from each rank
  bool splits = false;                          ///< the all-gather of colors and keys of a split
  std::source_location where;                   ///< call site
  std::string_view axis{};                      ///< of the group, for errors

  std::size_t bytes(global_index elements) const {
    return static_cast<std::size_t>(elements) * size_of(type);
  }
};

/// Whether an operation sums numbers with rounding, so that the result depends on their order.
constexpr bool adds_rounded(const collective& op) {
  const bool reduces = op.kind == operation::all_reduce || op.kind == operation::reduce_scatter;
  return reduces && op.reduce == reduction::sum && op.type >= element_type::f32;
}

/// Offset of block `rank`: total size of the blocks before it.
inline global_index offset_of(std::span<const global_index> counts, int rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, global_index{0});
}

/// Total size of all blocks.
inline std::size_t total_of(std::span<const global_index> counts) {
  return static_cast<std::size_t>(offset_of(counts, static_cast<int>(counts.size())));
}

/// The share of an all-reduced buffer of `count` elements that `rank` of `size` reduces.
constexpr interval share_of(global_index count, int rank, int size) {
  return base::part_of(interval{0, count}, rank, size);
}

/// "all_gather of f64 (spmm.hpp:120)".
inline std::string describe(const collective& c) {
  const std::string_view path = c.where.file_name();
  const std::string_view file = path.substr(path.find_last_of('/') + 1);
  const std::uint_least32_t line = c.where.line();
  if (c.splits) return base::sentence_of({"split (", file, ":", line, ")"});
  return base::sentence_of({name_of(c.kind), " of ", name_of(c.type), " (", file, ":", line, ")"});
}

namespace detail {

/// The reduction used by every transport and device, so that results depend only on the order. Integers wrap;
/// each sum of two bfloat16 is rounded.
template <class T>
constexpr T combine(reduction r, T a, T b) {
  if constexpr (std::is_same_v<T, base::bfloat16>) {
    return T(combine(r, float{a}, float{b}));
  } else {
    if (r == reduction::max) return base::larger_of{}(a, b);
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    else
      return a + b;
  }
}

/// Calls act(T{}) for the T that `type` denotes.
template <class Act>
void with_element(element_type type, Act act) {
  switch (type) {
    case element_type::u8:
      return act(std::uint8_t{});
    case element_type::i32:
      return act(std::int32_t{});
    case element_type::i64:
      return act(std::int64_t{});
    case element_type::f32:
      return act(float{});
    case element_type::f64:
      return act(double{});
    case element_type::bf16:
      return act(base::bfloat16{});
  }
}

template <class T>
void reduce_typed(reduction r, std::span<const void* const> from, T* to, global_index count) {
  std::array<T, 4096 / sizeof(T)> sum;
  for (global_index begin = 0; begin < count; begin += static_cast<global_index>(sum.size())) {
    const auto n = static_cast<std::size_t>(std::min<global_index>(count - begin, sum.size()));
    std::memcpy(sum.data(), static_cast<const T*>(from[0]) + begin, n * sizeof(T));
    for (const void* const next : from.subspan(1))
      for (std::size_t i = 0; i < n; ++i)
        sum[i] = combine(r, sum[i], (static_cast<const T*>(next) + begin)[i]);
    std::memcpy(to + begin, sum.data(), n * sizeof(T));
  }
}

}  // namespace detail

/// to[i] = from[0][i] op from[1][i] op ...; `from` must not be empty, and `to` may alias one of its buffers.
inline void reduce_in_order(element_type type, reduction r, std::span<const void* const> from, void* to,
                            global_index count) {
  detail::with_element(type, [&]<class T>(T) { detail::reduce_typed(r, from, static_cast<T*>(to), count); });
}

}  // namespace partita::comm

namespace partita {

using comm::operation;
using comm::reduction;

}  // namespace partita

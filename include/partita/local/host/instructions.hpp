// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Kernels in several instruction sets from one source. A kernel is a function object whose vectors have a
/// size that is a template parameter; it is compiled once for each set, and the best one that the machine has
/// runs.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <type_traits>

#include "partita/base/error.hpp"

namespace partita::on_host {

/// Sets of vector instructions: what the compiler was told to use at least, AVX2 with FMA, and AVX-512 with
/// its F, BW, DQ and VL parts. Each has those before it.
enum class instruction_set : std::uint8_t { baseline, avx2, avx512 };

/// What every function of the program may use.
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
inline constexpr instruction_set compiled_instructions = instruction_set::avx512;
#elif defined(__AVX2__) && defined(__FMA__)
inline constexpr instruction_set compiled_instructions = instruction_set::avx2;
#else
inline constexpr instruction_set compiled_instructions = instruction_set::baseline;
#endif

/// As PARTITA_ISA spells it.
constexpr const char* name_of(instruction_set i) {
  return i == instruction_set::avx512 ? "avx512" : i == instruction_set::avx2 ? "avx2" : "baseline";
}

/// Bytes of a vector, and how many of them a kernel keeps in registers.
constexpr int register_bytes(instruction_set i) {
  return i == instruction_set::avx512 ? 64 : i == instruction_set::avx2 ? 32 : 16;
}
constexpr int kept_registers(instruction_set i) { return i == instruction_set::avx512 ? 16 : 8; }

/// `Bytes` of T, with arithmetic element by element, with a scalar too; and where they are in memory, at any
/// alignment.
template <class T, int Bytes>
struct vector_of {
  using type [[gnu::vector_size(Bytes)]] = T;
  struct [[gnu::packed, gnu::may_alias]] place {
    type value;
  };
};

/// Whether this processor has them.
inline bool has_instructions([[maybe_unused]] instruction_set i) {
#if defined(__x86_64__) || defined(__i386__)
  if (i == instruction_set::avx2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (i == instruction_set::avx512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
  return i <= compiled_instructions;
}

/// The set named, or the best that this processor has if `name` is null or empty. Throws error if there is
/// none of that name, if the processor does not have it, or if the program is compiled for a better one.
inline instruction_set instructions_named(const char* name) {
  constexpr instruction_set all[] = {instruction_set::avx512, instruction_set::avx2,
                                     instruction_set::baseline};
  const std::string_view wanted = name == nullptr ? "" : name;
  for (const instruction_set i : all) {
    if (wanted != (wanted.empty() ? "" : name_of(i))) continue;
    if (i >= compiled_instructions && (i == compiled_instructions || has_instructions(i))) return i;
    if (wanted.empty()) continue;
    if (i < compiled_instructions)
      base::throw_error<error>(
          {"PARTITA_ISA is ", name, ", but the program is compiled for ", name_of(compiled_instructions)});
    base::throw_error<error>({"PARTITA_ISA is ", name, ", which this processor does not have"});
  }
  base::throw_error<error>({"PARTITA_ISA must be baseline, avx2 or avx512, and is ", name});
}

/// What kernels use: instructions_named(the environment variable PARTITA_ISA), the same in the whole run.
/// Throws as that does.
inline instruction_set instructions() {
  static const instruction_set chosen = instructions_named(std::getenv("PARTITA_ISA"));
  return chosen;
}

namespace instruction_detail {

// Kernels are optimised for speed in programs that GCC optimises less, which compile faster.
#if defined(__OPTIMIZE__) && !defined(__clang__) && !defined(__CUDACC__)
#pragma GCC push_options
#pragma GCC optimize("O3")
#endif
template <class F, class... A>
[[gnu::noinline, gnu::flatten]] auto run_as_compiled(F f, A... arguments) {
  return f(arguments...);
}
#if defined(__x86_64__) || defined(__i386__)
template <class F, class... A>
[[gnu::noinline, gnu::flatten, gnu::target("avx2,fma")]] auto run_avx2(F f, A... arguments) {
  return f(arguments...);
}
template <class F, class... A>
[[gnu::noinline, gnu::flatten, gnu::target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]] auto run_avx512(
    F f, A... arguments) {
  return f(arguments...);
}
#endif
#if defined(__OPTIMIZE__) && !defined(__clang__) && !defined(__CUDACC__)
#pragma GCC pop_options
#endif

}  // namespace instruction_detail

/// f(arguments ...), compiled for the set I: a copy of f and what it calls are inlined into one function,
/// which may use these instructions. This processor has them.
template <instruction_set I, class F, class... A>
inline auto run_with(const F& f, A... arguments) {
#if defined(__x86_64__) || defined(__i386__)
  if constexpr (I > compiled_instructions && I == instruction_set::avx512)
    return instruction_detail::run_avx512(f, arguments...);
  if constexpr (I > compiled_instructions && I == instruction_set::avx2)
    return instruction_detail::run_avx2(f, arguments...);
#endif
  return instruction_detail::run_as_compiled(f, arguments...);
}

/// f(std::integral_constant<instruction_set, I>) for the set I that kernels use.
template <class F>
inline decltype(auto) with_instructions(const F& f) {
  using enum instruction_set;
  const instruction_set chosen = instructions();
#if defined(__x86_64__) || defined(__i386__)
  if constexpr (compiled_instructions < avx512)
    if (chosen == avx512) return f(std::integral_constant<instruction_set, avx512>());
  if constexpr (compiled_instructions < avx2)
    if (chosen == avx2) return f(std::integral_constant<instruction_set, avx2>());
#endif
  return f(std::integral_constant<instruction_set, compiled_instructions>());
}

}  // namespace partita::on_host

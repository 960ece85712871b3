// SPDX-License-Identifier: Apache-2.0
#pragma once
// What an instruction makes of its operands by the PTX manual, on the emulator or on a card.
#include <cstdint>
#include <doctest/doctest.h>
#include <limits>
#include <string>
#include <vector>

namespace opcodes {

/// Operands of one lane and the result; a predicate is 0 or 1.
struct row {
  std::uint64_t a = 0, b = 0, c = 0, expected = 0;
  bool given = true;
};
inline constexpr row none{.given = false};

/// f(lane) for a whole warp.
template <class F>
std::vector<row> lanes(F f) {
  std::vector<row> rows;
  for (unsigned l = 0; l < 32; ++l) rows.push_back(f(l));
  return rows;
}

/// Operands.
inline constexpr std::uint64_t all = ~0ull, top = 1ull << 63, word = 0xffffffff;
inline constexpr float inf = std::numeric_limits<float>::infinity(),
                       no_number = std::numeric_limits<float>::quiet_NaN(), tiny = 0x1p-149f;
inline constexpr double wide_no_number = std::numeric_limits<double>::quiet_NaN();

/// Runs PTX between the registers that it may use on one warp, and checks what it gives in every lane. There
/// is a row for each lane; where there are fewer than 32, the others repeat the last one. The registers are
///
///   %a16 %b16 %c16, %a32 %b32 %c32, %a64 %b64 %c64   the operands' lower bits: .b16, .b32, .b64
///   %ap %bp %cp                                      whether the operands are not 0
///   %x16, %x32, %x64, %xp                            the result, of `result` bits; 1 for %xp
///   %t16_<8> %t32_<8> %t64_<8> %tp_<8>               for whatever else
///   %thread                                          the number of the thread
///   %out                                             the address of the block's 32 words, all 0
///
/// `shared` is an array of 64 words of 64 bits in shared memory.
void check(const std::string& text, int result, const std::vector<row>& rows);
void check(const std::string& text, int result, row first, row second = none, row third = none,
           row fourth = none, row fifth = none, row sixth = none, row seventh = none, row eighth = none);

/// Sets %t64_0 to the address of the lane's own word in global memory, %t64_1 to that in shared memory.
inline const std::string own =
    "mul.wide.u32 %t64_2, %thread, 8; add.s64 %t64_0, %out, %t64_2; mov.u64 %t64_1, shared; add.s64 %t64_1, "
    "%t64_1, %t64_2; ";

/// Runs it and gives the results of all lanes of `threads` threads, which are one block.
std::vector<std::uint64_t> run(const std::string& text, int result, const std::vector<row>& rows,
                               unsigned threads = 32);

/// Runs a whole module whose kernel `test` takes the address of `words` words, and gives them afterwards.
std::vector<std::uint64_t> run_module(const std::string& module, std::vector<std::uint64_t> words,
                                      unsigned blocks, unsigned threads, unsigned shared_bytes = 0);

/// What the emulator says when it refuses or stops a kernel; fails the test where it does not. Not for cards.
std::string complaint(const std::string& module, std::vector<std::uint64_t> words, unsigned blocks,
                      unsigned threads);

/// What it says of text as check() takes it.
std::string complaint(const std::string& text, const std::vector<row>& rows = {{}}, unsigned threads = 32);

/// That those words are among what it says.
void check_complaint(const std::string& said, const std::string& words);

/// That the emulator does not take an instruction, and names it. Of a card nothing is asked.
void check_refused(const std::string& instruction);

/// Whether a card is asked instead of the emulator.
bool on_card();

/// Numbers as bits.
std::uint64_t bits(float x);
std::uint64_t bits(double x);

}  // namespace opcodes

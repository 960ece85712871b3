// SPDX-License-Identifier: Apache-2.0
// Bits: logic, shifts, fields, counts and permutations.
#include "opcode_case.hpp"

using namespace opcodes;

TEST_CASE("and, or, xor and not work on every width") {
  check("and.b32 %x32, %a32, %b32;", 32, {0xff00ff00, 0x0ff00ff0, 0, 0x0f000f00});
  check("and.b64 %x64, %a64, %b64;", 64, {all, top, 0, top});
  check("and.b16 %x16, %a16, %b16;", 16, {0xff0f, 0x0fff, 0, 0x0f0f});
  check("or.b32 %x32, %a32, %b32;", 32, {0xff00ff00, 0x0ff00ff0, 0, 0xfff0fff0});
  check("or.b64 %x64, %a64, %b64;", 64, {1, top, 0, top + 1});
  check("or.b16 %x16, %a16, %b16;", 16, {0xf000, 0x000f, 0, 0xf00f});
  check("xor.b32 %x32, %a32, %b32;", 32, {0xff00ff00, 0x0ff00ff0, 0, 0xf0f0f0f0});
  check("xor.b64 %x64, %a64, -1;", 64, {top, 0, 0, top - 1});
  check("xor.b16 %x16, %a16, %b16;", 16, {0xffff, 1, 0, 0xfffe});
  check("not.b32 %x32, %a32;", 32, {0xff00ff00, 0, 0, 0x00ff00ff});
  check("not.b64 %x64, %a64;", 64, {1, 0, 0, all - 1});
  check("not.b16 %x16, %a16;", 16, {1, 0, 0, 0xfffe});
}

TEST_CASE("and, or, xor and not work on predicates") {
  check("and.pred %xp, %ap, %bp;", 1, {0, 0, 0, 0}, {0, 1, 0, 0}, {1, 0, 0, 0}, {1, 1, 0, 1});
  check("or.pred %xp, %ap, %bp;", 1, {0, 0, 0, 0}, {0, 1, 0, 1}, {1, 0, 0, 1}, {1, 1, 0, 1});
  check("xor.pred %xp, %ap, %bp;", 1, {0, 0, 0, 0}, {0, 1, 0, 1}, {1, 0, 0, 1}, {1, 1, 0, 0});
  check("not.pred %xp, %ap;", 1, {0, 0, 0, 1}, {1, 0, 0, 0});
}

TEST_CASE("lop3 is any function of three bits") {
  // With 0xf0, 0xcc and 0xaa in the place of its operands, the function gives its own table.
  check("lop3.b32 %x32, %a32, %b32, %c32, 0xfe;", 32, {0xf0, 0xcc, 0xaa, 0xfe});
  check("lop3.b32 %x32, %a32, %b32, %c32, 0x96;", 32, {1, 2, 7, 4}, {word, word, word, word});
  check("lop3.b32 %x32, %a32, %b32, %c32, 0xca;", 32, {0xffff0000, 0x12345678, 0x9abcdef0, 0x1234def0});
  check("lop3.b32 %x32, %a32, %b32, %c32, 0x1a;", 32, {0xf0, 0xcc, 0xaa, 0x1a}, {0, 0, 0, 0});
  check("lop3.b32 %x32, %a32, %b32, %c32, 0x01;", 32, {0, 0, 0, word}, {1, 2, 4, word - 7});
}

TEST_CASE("shl gives 0 for amounts past the width") {
  check("shl.b32 %x32, %a32, %b32;", 32, {1, 31, 0, 1u << 31}, {word, 4, 0, 0xfffffff0}, {word, 32, 0, 0},
        {1, word, 0, 0});
  check("shl.b64 %x64, %a64, %b32;", 64, {1, 63, 0, top}, {1, 32, 0, 1ull << 32}, {all, 64, 0, 0},
        {all, word, 0, 0});
  check("shl.b16 %x16, %a16, %b32;", 16, {0xffff, 15, 0, 0x8000}, {0xffff, 16, 0, 0}, {0xffff, 0, 0, 0xffff});
}

TEST_CASE("shr gives 0, or the sign, for amounts past the width") {
  check("shr.u32 %x32, %a32, %b32;", 32, {word, 31, 0, 1}, {word, 32, 0, 0}, {word, word, 0, 0},
        {0x80, 4, 0, 8});
  check("shr.b32 %x32, %a32, %b32;", 32, {0x80000000, 31, 0, 1});
  check("shr.s32 %x32, %a32, %b32;", 32, {0x80000000, 31, 0, word}, {0x80000000, 100, 0, word},
        {0x7fffffff, 32, 0, 0});
  check("shr.u64 %x64, %a64, %b32;", 64, {top, 63, 0, 1}, {all, 64, 0, 0});
  check("shr.s64 %x64, %a64, %b32;", 64, {top, 1, 0, 3ull << 62}, {top, 64, 0, all}, {top - 1, 64, 0, 0});
  check("shr.u16 %x16, %a16, %b32;", 16, {0x8000, 15, 0, 1}, {0xffff, 16, 0, 0});
  check("shr.s16 %x16, %a16, %b32;", 16, {0x8000, 3, 0, 0xf000}, {0x8000, 16, 0, 0xffff});
}

TEST_CASE("shf takes one half of a shifted pair, of which clamp stops at 32") {
  constexpr std::uint64_t low = 0x01234567, high = 0x89abcdef;
  check("shf.l.clamp.b32 %x32, %a32, %b32, %c32;", 32, {low, high, 0, high}, {low, high, 8, 0xabcdef01},
        {low, high, 32, low}, {low, high, 40, low});
  check("shf.l.wrap.b32 %x32, %a32, %b32, %c32;", 32, {low, high, 0, high}, {low, high, 8, 0xabcdef01},
        {low, high, 32, high}, {low, high, 40, 0xabcdef01});
  check("shf.r.clamp.b32 %x32, %a32, %b32, %c32;", 32, {low, high, 0, low}, {low, high, 8, 0xef012345},
        {low, high, 32, high}, {low, high, 40, high});
  check("shf.r.wrap.b32 %x32, %a32, %b32, %c32;", 32, {low, high, 0, low}, {low, high, 8, 0xef012345},
        {low, high, 32, low}, {low, high, 40, 0xef012345});
}

TEST_CASE("popc, clz and brev count and reverse bits") {
  check("popc.b32 %x32, %a32;", 32, {0, 0, 0, 0}, {word, 0, 0, 32}, {0x80000001, 0, 0, 2});
  check("popc.b64 %x32, %a64;", 32, {all, 0, 0, 64}, {top, 0, 0, 1});
  check("clz.b32 %x32, %a32;", 32, {0, 0, 0, 32}, {1, 0, 0, 31}, {word, 0, 0, 0});
  check("clz.b64 %x32, %a64;", 32, {0, 0, 0, 64}, {1, 0, 0, 63}, {1ull << 32, 0, 0, 31});
  check("brev.b32 %x32, %a32;", 32, {1, 0, 0, 0x80000000}, {0x0000f00d, 0, 0, 0xb00f0000});
  check("brev.b64 %x64, %a64;", 64, {1, 0, 0, top}, {0x0123456789abcdef, 0, 0, 0xf7b3d591e6a2c480});
}

TEST_CASE("bfind finds the highest bit that is not the sign") {
  check("bfind.u32 %x32, %a32;", 32, {0, 0, 0, word}, {1, 0, 0, 0}, {word, 0, 0, 31}, {0x00800000, 0, 0, 23});
  check("bfind.s32 %x32, %a32;", 32, {0, 0, 0, word}, {word, 0, 0, word}, {0x80000000, 0, 0, 30},
        {5, 0, 0, 2});
  check("bfind.u64 %x32, %a64;", 32, {all, 0, 0, 63}, {0, 0, 0, word});
  check("bfind.s64 %x32, %a64;", 32, {all, 0, 0, word}, {all - 1, 0, 0, 0}, {top, 0, 0, 62});
  check("bfind.shiftamt.u32 %x32, %a32;", 32, {0, 0, 0, word}, {1, 0, 0, 31}, {word, 0, 0, 0});
  check("bfind.shiftamt.s64 %x32, %a64;", 32, {1, 0, 0, 63}, {all, 0, 0, word}, {top, 0, 0, 1});
}

TEST_CASE("bfe repeats the sign past the field and past the width") {
  check("bfe.u32 %x32, %a32, %b32, %c32;", 32, {0x12345678, 8, 8, 0x56}, {word, 28, 8, 15}, {word, 32, 8, 0},
        {word, 0, 0, 0}, {word, 0, 255, word}, {word, 256, 4, 15});
  check("bfe.s32 %x32, %a32, %b32, %c32;", 32, {0x00000080, 4, 4, 0xfffffff8}, {0x70, 4, 4, 7},
        {0x80000000, 31, 8, word}, {0x80000000, 40, 8, word}, {word, 3, 0, 0});
  check("bfe.u64 %x64, %a64, %b32, %c32;", 64, {0x123456789abcdef0, 32, 16, 0x5678}, {all, 60, 32, 15});
  check("bfe.s64 %x64, %a64, %b32, %c32;", 64, {0xf000000000, 32, 8, all - 15}, {top, 64, 1, all});
}

TEST_CASE("bfi leaves out what lies past the width") {
  check("bfi.b32 %x32, %a32, %b32, %c32, 8;", 32, {0xab, 0, 4, 0xab0}, {0xfab, word, 8, 0xffffabff},
        {0xff, 0, 28, 0xf0000000}, {0xff, 7, 32, 7});
  check("bfi.b32 %x32, %a32, %b32, 4, %c32;", 32, {0xff, 5, 0, 5}, {word, 5, 255, 0xfffffff5},
        {word, 0, 256, 0});
  check("bfi.b64 %x64, %a64, %b64, 32, %c32;", 64, {0xabcd, 1, 16, 0xabcd00000001}, {all, 0, 64, all << 32});
}

TEST_CASE("bmsk makes a run of ones") {
  check("bmsk.clamp.b32 %x32, %a32, %b32;", 32, {4, 8, 0, 0xff0}, {0, 32, 0, word}, {4, 40, 0, 0xfffffff0},
        {28, 8, 0, 0xf0000000}, {32, 1, 0, 0}, {5, 0, 0, 0});
  check("bmsk.wrap.b32 %x32, %a32, %b32;", 32, {36, 8, 0, 0xff0}, {4, 40, 0, 0xff0}, {4, 32, 0, 0},
        {28, 8, 0, 0xf0000000});
}

TEST_CASE("prmt chooses bytes, or their signs") {
  constexpr std::uint64_t a = 0x83020100, b = 0x07f60504;
  check("prmt.b32 %x32, %a32, %b32, %c32;", 32, {a, b, 0x3210, a}, {a, b, 0x7654, b},
        {a, b, 0x0123, 0x00010283}, {a, b, 0x8bef, 0x00ffff00});
  check("prmt.b32 %x32, %a32, %b32, 0x5410;", 32, {0x11112222, 0x33334444, 0, 0x44442222});
}

TEST_CASE("modes of prmt, lop3 with a predicate and unknown instructions are refused") {
  for (const char* text :
       {"prmt.b32.f4e %x32, %a32, %b32, %c32", "lop3.or.b32 %x32|%xp, %a32, %b32, %c32, 0x80, %ap",
        "fns.b32 %x32, %a32, %b32, %c32", "cnot.b32 %x32, %a32", "szext.clamp.s32 %x32, %a32, %b32"})
    opcodes::check_refused(text);
}

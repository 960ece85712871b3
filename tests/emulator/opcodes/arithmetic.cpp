// SPDX-License-Identifier: Apache-2.0
// Arithmetic of integers.
#include "opcode_case.hpp"

using namespace opcodes;

TEST_CASE("add and sub wrap around") {
  check("add.s32 %x32, %a32, %b32;", 32, {1, 2, 0, 3}, {0x7fffffff, 1, 0, 0x80000000}, {0xffffffff, 2, 0, 1});
  check("add.u32 %x32, %a32, 0xffffffff;", 32, {0, 0, 0, 0xffffffff}, {5, 0, 0, 4});
  check("add.s64 %x64, %a64, -1;", 64, {0, 0, 0, all}, {top, 0, 0, top - 1});
  check("add.u64 %x64, %a64, %b64;", 64, {all, 1, 0, 0}, {top, top, 0, 0});
  check("add.s16 %x16, %a16, %b16;", 16, {0x7fff, 1, 0, 0x8000}, {0xffff, 1, 0, 0});
  check("add.u16 %x16, %a16, %b16;", 16, {0xffff, 0xffff, 0, 0xfffe});
  check("sub.s32 %x32, %a32, %b32;", 32, {0, 1, 0, 0xffffffff}, {0x80000000, 1, 0, 0x7fffffff});
  check("sub.u64 %x64, %a64, %b64;", 64, {0, 1, 0, all}, {top, all, 0, top + 1});
  check("sub.u16 %x16, %a16, %b16;", 16, {0, 1, 0, 0xffff}, {0x8000, 1, 0, 0x7fff});
}

TEST_CASE("add.sat and sub.sat stop at the limits of s32") {
  check("add.sat.s32 %x32, %a32, %b32;", 32, {0x7fffffff, 1, 0, 0x7fffffff},
        {0x80000000, 0xffffffff, 0, 0x80000000}, {2, 3, 0, 5});
  check("sub.sat.s32 %x32, %a32, %b32;", 32, {0x80000000, 1, 0, 0x80000000},
        {0x7fffffff, 0xffffffff, 0, 0x7fffffff}, {0, 0x80000000, 0, 0x7fffffff});
}

TEST_CASE("mul.lo keeps the lower half of the product") {
  check("mul.lo.s32 %x32, %a32, %b32;", 32, {3, 0xfffffffc, 0, 0xfffffff4}, {0x10000, 0x10000, 0, 0});
  check("mul.lo.u32 %x32, %a32, %b32;", 32, {0xffffffff, 0xffffffff, 0, 1},
        {0x12345, 0x10001, 0, 0x23462345});
  check("mul.lo.s64 %x64, %a64, %b64;", 64, {all, 5, 0, all - 4}, {1ull << 32, 1ull << 32, 0, 0});
  check("mul.lo.u64 %x64, %a64, %b64;", 64, {all, 2, 0, all - 1}, {all, all, 0, 1});
  check("mul.lo.s16 %x16, %a16, %b16;", 16, {300, 300, 0, 24464}, {0xffff, 0xffff, 0, 1});
  check("mul.lo.u16 %x16, %a16, %b16;", 16, {0xffff, 0xffff, 0, 1}, {0x8000, 2, 0, 0});
}

TEST_CASE("mul.hi keeps the upper half of the product") {
  check("mul.hi.u32 %x32, %a32, %b32;", 32, {0xffffffff, 0xffffffff, 0, 0xfffffffe},
        {0x10000, 0x10000, 0, 1});
  check("mul.hi.s32 %x32, %a32, %b32;", 32, {0xffffffff, 0xffffffff, 0, 0},
        {0x80000000, 0x80000000, 0, 0x40000000}, {0xffffffff, 1, 0, 0xffffffff});
  check("mul.hi.u64 %x64, %a64, %b64;", 64, {all, all, 0, all - 1}, {1ull << 32, 1ull << 33, 0, 2});
  check("mul.hi.s64 %x64, %a64, %b64;", 64, {all, 1, 0, all}, {top, top, 0, 1ull << 62});
  check("mul.hi.u16 %x16, %a16, %b16;", 16, {0xffff, 0xffff, 0, 0xfffe});
  check("mul.hi.s16 %x16, %a16, %b16;", 16, {0x8000, 0x8000, 0, 0x4000}, {0xffff, 1, 0, 0xffff});
}

TEST_CASE("mul.wide gives the whole product") {
  check("mul.wide.u16 %x32, %a16, %b16;", 32, {0xffff, 0xffff, 0, 0xfffe0001});
  check("mul.wide.s16 %x32, %a16, %b16;", 32, {0xffff, 2, 0, 0xfffffffe}, {0x8000, 0x8000, 0, 0x40000000});
  check("mul.wide.u32 %x64, %a32, %b32;", 64, {0xffffffff, 0xffffffff, 0, 0xfffffffe00000001});
  check("mul.wide.s32 %x64, %a32, %b32;", 64, {0xffffffff, 2, 0, all - 1},
        {0x80000000, 2, 0, 0xffffffff00000000});
}

TEST_CASE("mad adds to half of the product, or to all of it") {
  check("mad.lo.s32 %x32, %a32, %b32, %c32;", 32, {3, 4, 5, 17}, {0x10000, 0x10000, 0xffffffff, 0xffffffff});
  check("mad.lo.u64 %x64, %a64, %b64, %c64;", 64, {all, 2, 3, 1});
  check("mad.lo.s16 %x16, %a16, %b16, %c16;", 16, {300, 300, 0xffff, 24463});
  check("mad.lo.u16 %x16, %a16, %b16, %c16;", 16, {0xffff, 0xffff, 0xffff, 0});
  check("mad.hi.u32 %x32, %a32, %b32, %c32;", 32, {0xffffffff, 0xffffffff, 3, 1});
  check("mad.hi.s32 %x32, %a32, %b32, %c32;", 32, {0xffffffff, 1, 0, 0xffffffff}, {0xffffffff, 1, 1, 0});
  check("mad.hi.u64 %x64, %a64, %b64, %c64;", 64, {all, all, 2, 0});
  check("mad.hi.s64 %x64, %a64, %b64, %c64;", 64, {all, 1, 2, 1});
  check("mad.wide.u16 %x32, %a16, %b16, %c32;", 32, {0xffff, 0xffff, 0x1ffff, 0});
  check("mad.wide.s16 %x32, %a16, %b16, %c32;", 32, {0xffff, 2, 1, 0xffffffff});
  check("mad.wide.u32 %x64, %a32, %b32, %c64;", 64, {0xffffffff, 0xffffffff, all, 0xfffffffe00000000});
  check("mad.wide.s32 %x64, %a32, %b32, %c64;", 64, {0xffffffff, 1, 1, 0}, {0xffffffff, 5, top, top - 5});
}

TEST_CASE("div cuts off the fraction") {
  check("div.u32 %x32, %a32, %b32;", 32, {7, 2, 0, 3}, {0xffffffff, 2, 0, 0x7fffffff}, {1, 0xffffffff, 0, 0});
  check("div.s32 %x32, %a32, %b32;", 32, {7, 2, 0, 3}, {0xfffffff9, 2, 0, 0xfffffffd},
        {7, 0xfffffffe, 0, 0xfffffffd}, {0x80000000, 2, 0, 0xc0000000});
  check("div.u64 %x64, %a64, %b64;", 64, {all, 1ull << 32, 0, 0xffffffff}, {all, all, 0, 1});
  check("div.s64 %x64, %a64, %b64;", 64, {all - 6, 2, 0, all - 2}, {all, all, 0, 1});
  check("div.u16 %x16, %a16, %b16;", 16, {0xffff, 0x10, 0, 0xfff});
  check("div.s16 %x16, %a16, %b16;", 16, {0xfff9, 2, 0, 0xfffd});
}

TEST_CASE("rem has the sign of the dividend, as C++ has it") {
  check("rem.u32 %x32, %a32, %b32;", 32, {7, 3, 0, 1}, {0xffffffff, 10, 0, 5});
  check("rem.s32 %x32, %a32, %b32;", 32, {7, 0xfffffffd, 0, 1}, {0xfffffff9, 3, 0, 0xffffffff});
  check("rem.u64 %x64, %a64, %b64;", 64, {all, 10, 0, 5});
  check("rem.s64 %x64, %a64, %b64;", 64, {all - 6, 4, 0, all - 2});
  check("rem.u16 %x16, %a16, %b16;", 16, {0xffff, 10, 0, 5});
  check("rem.s16 %x16, %a16, %b16;", 16, {0xfff9, 3, 0, 0xffff});
}

TEST_CASE("a division by zero is a fault of its lane") {
  if (opcodes::on_card()) return;
  for (const char* text : {"div.u32 %x32, %a32, %b32;", "div.s64 %x64, %a64, %b64;",
                           "rem.s32 %x32, %a32, %b32;", "rem.u16 %x16, %a16, %b16;"})
    check_complaint(complaint(text, {{8, 1}, {8, 2}, {8, 0}, {8, 1}}),
                    "divides an integer by zero, in thread (2, 0, 0) of block (0, 0, 0) of test");
}

TEST_CASE("min and max know signs") {
  check("min.s32 %x32, %a32, %b32;", 32, {0xffffffff, 1, 0, 0xffffffff},
        {0x80000000, 0x7fffffff, 0, 0x80000000});
  check("min.u32 %x32, %a32, %b32;", 32, {0xffffffff, 1, 0, 1}, {0x80000000, 0x7fffffff, 0, 0x7fffffff});
  check("max.s32 %x32, %a32, %b32;", 32, {0xffffffff, 1, 0, 1}, {3, 3, 0, 3});
  check("max.u32 %x32, %a32, %b32;", 32, {0xffffffff, 1, 0, 0xffffffff});
  check("min.s64 %x64, %a64, %b64;", 64, {all, 1, 0, all});
  check("min.u64 %x64, %a64, %b64;", 64, {all, 1, 0, 1});
  check("max.s64 %x64, %a64, %b64;", 64, {top, 1, 0, 1});
  check("max.u64 %x64, %a64, %b64;", 64, {top, 1, 0, top});
  check("min.s16 %x16, %a16, %b16;", 16, {0xffff, 1, 0, 0xffff});
  check("min.u16 %x16, %a16, %b16;", 16, {0xffff, 1, 0, 1});
  check("max.s16 %x16, %a16, %b16;", 16, {0xffff, 1, 0, 1});
  check("max.u16 %x16, %a16, %b16;", 16, {0xffff, 1, 0, 0xffff});
}

TEST_CASE("neg and abs change the sign") {
  check("neg.s32 %x32, %a32;", 32, {1, 0, 0, 0xffffffff}, {0xffffffff, 0, 0, 1}, {0, 0, 0, 0});
  check("neg.s64 %x64, %a64;", 64, {1, 0, 0, all}, {all, 0, 0, 1});
  check("neg.s16 %x16, %a16;", 16, {1, 0, 0, 0xffff}, {0x8001, 0, 0, 0x7fff});
  check("abs.s32 %x32, %a32;", 32, {0xffffffff, 0, 0, 1}, {0x80000001, 0, 0, 0x7fffffff}, {5, 0, 0, 5});
  check("abs.s64 %x64, %a64;", 64, {all - 6, 0, 0, 7}, {7, 0, 0, 7});
  check("abs.s16 %x16, %a16;", 16, {0xfffe, 0, 0, 2}, {0x8001, 0, 0, 0x7fff});
}

TEST_CASE("carries, saturated products and unknown types are refused") {
  for (const char* text :
       {"add.cc.u32 %x32, %a32, %b32", "addc.u32 %x32, %a32, %b32", "sub.cc.u32 %x32, %a32, %b32",
        "mad.hi.sat.s32 %x32, %a32, %b32, %c32", "mad.lo.cc.u32 %x32, %a32, %b32, %c32",
        "add.sat.u32 %x32, %a32, %b32", "add.u16x2 %x32, %a32, %b32", "mul.wide.u64 %x64, %a64, %b64",
        "add.s32 %x32, %a32", "min.s16x2 %x32, %a32, %b32"})
    opcodes::check_refused(text);
}

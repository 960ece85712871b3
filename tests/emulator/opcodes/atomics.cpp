// SPDX-License-Identifier: Apache-2.0
// Atomic operations on global and shared memory.
#include <algorithm>
#include <numeric>

#include "opcode_case.hpp"

using namespace opcodes;

namespace {

/// An operation on `old` with `b`, and `c` for cas, and what is there afterwards.
struct update {
  std::string operation, type;
  std::uint64_t old, b, expected, c = 0;
};
const update updates[] = {{"add", "u32", word, 3, 2},
                          {"add", "s32", 5, 0xfffffffe, 3},
                          {"add", "u64", all, 3, 2},
                          {"add", "f32", bits(1.5f), bits(-4.f), bits(-2.5f)},
                          {"add", "f64", bits(1.5), bits(-4.), bits(-2.5)},
                          {"min", "u32", word, 1, 1},
                          {"min", "s32", word, 1, word},
                          {"max", "u32", word, 1, word},
                          {"max", "s32", word, 1, 1},
                          {"min", "u64", top, 1, 1},
                          {"min", "s64", top, 1, top},
                          {"max", "u64", top, 1, top},
                          {"max", "s64", top, 1, 1},
                          {"and", "b32", 0xff0, 0x0ff, 0x0f0},
                          {"or", "b32", 0xff0, 0x0ff, 0xfff},
                          {"xor", "b32", 0xff0, 0x0ff, 0xf0f},
                          {"and", "b64", all, top, top},
                          {"or", "b64", 1, top, top + 1},
                          {"xor", "b64", all, top, top - 1},
                          {"inc", "u32", 4, 5, 5},
                          {"inc", "u32", 5, 5, 0},
                          {"inc", "u32", 9, 5, 0},
                          {"dec", "u32", 4, 5, 3},
                          {"dec", "u32", 0, 5, 5},
                          {"dec", "u32", 9, 5, 5}};
const update swaps[] = {{"exch", "b32", 1, 2, 2},       {"exch", "b64", 1, top, top},
                        {"cas", "b32", 1, 1, 7, 7},     {"cas", "b32", 1, 2, 1, 7},
                        {"cas", "b64", top, top, 9, 9}, {"cas", "b64", top, 0, top, 9}};

/// `what` (atom or red) of every lane on a word of its own; `finally`: looks at what is there then.
void check_update(const update& u, const std::string& what, const std::string& space,
                  const std::string& address, bool finally) {
  const std::string n = u.type.substr(1), at = "[" + address + "]";
  std::string text = own + "st" + space + ".b" + n + " " + at + ", %a" + n + "; " + what + space + "." +
                     u.operation + "." + u.type + " ";
  if (what == "atom") text += "%x" + n + ", ";
  text += at + ", %b" + n + (u.operation == "cas" ? ", %c" + n : "") + ";";
  if (finally) text += " ld" + space + ".b" + n + " %x" + n + ", " + at + ";";
  check(text, std::stoi(n), {u.old, u.b, u.c, finally ? u.expected : u.old});
}

}  // namespace

TEST_CASE("atom gives the old value and leaves the new one") {
  for (const auto& [space, address] : {std::pair{".global", "%t64_0"}, {".shared", "%t64_1"}, {"", "%t64_0"}})
    for (const bool finally : {false, true}) {
      for (const update& u : updates) check_update(u, "atom", space, address, finally);
      for (const update& u : swaps) check_update(u, "atom", space, address, finally);
    }
}

TEST_CASE("red leaves the new value") {
  for (const auto& [space, address] : {std::pair{".global", "%t64_0"}, {".shared", "%t64_1"}, {"", "%t64_0"}})
    for (const update& u : updates) check_update(u, "red", space, address, true);
}

TEST_CASE("atom and red order updates as they say") {
  for (const char* way : {"relaxed.gpu", "acquire.gpu", "release.sys", "acq_rel.cta"})
    check(std::string("atom.") + way + ".global.add.u32 %t32_0, [%out], 0; mov.u32 %x32, %t32_0;", 32,
          {0, 0, 0, 0});
  check(own + "red.relaxed.gpu.global.add.u64 [%t64_0], %a64; ld.global.u64 %x64, [%t64_0];", 64,
        {5, 0, 0, 5});
}

TEST_CASE("updates of one word by all lanes happen one after another") {
  for (const char* text : {"atom.global.add.u32 %x32, [%out], 1;", "atom.global.inc.u32 %x32, [%out], 1000;",
                           "mov.u32 %t32_0, shared; setp.eq.u32 %tp_0, %thread, 0; @%tp_0 st.shared.u32 "
                           "[%t32_0], 0; bar.sync 0; atom.shared.add.u32 %x32, [%t32_0], 1;"}) {
    auto found = opcodes::run(text, 32, {{}}, 64);
    std::ranges::sort(found);
    std::vector<std::uint64_t> expected(64);
    std::iota(expected.begin(), expected.end(), 0);
    CHECK(found == expected);
  }
  check("red.global.add.f64 [%out], 0d3FF0000000000000; bar.sync 0; ld.global.f64 %x64, [%out];", 64,
        {0, 0, 0, bits(32.)});
  check("red.global.max.u32 [%out], %thread; bar.sync 0; ld.global.u32 %x32, [%out];", 32, {0, 0, 0, 31});
}

TEST_CASE("a lock that lanes take by cas lets one in at a time") {
  check(
      "mov.b32 %t32_1, 0;\nagain:\natom.global.cas.b32 %t32_0, [%out], 0, 1; setp.ne.b32 %tp_0, %t32_0, 0; "
      "@%tp_0 bra passed;\nld.volatile.global.u32 %t32_2, [%out+8]; add.u32 %t32_2, %t32_2, 1; "
      "st.volatile.global.u32 [%out+8], %t32_2; membar.gl; atom.global.exch.b32 %t32_3, [%out], 0; mov.b32 "
      "%t32_1, 1;\npassed:\nsetp.eq.b32 %tp_0, %t32_1, 0; @%tp_0 bra again;\nbar.sync 0; "
      "ld.volatile.global.u32 %x32, [%out+8];",
      32, {0, 0, 0, 32});
}

TEST_CASE("atomic halves, local memory and other widths are refused") {
  for (const char* text :
       {"atom.global.add.noftz.f16 %x16, [%out], %a16", "atom.global.cas.b16 %x16, [%out], %a16, %b16",
        "atom.local.add.u32 %x32, [%out], 1", "red.global.add.noftz.f16x2 [%out], %a32",
        "atom.global.inc.f32 %x32, [%out], %a32"})
    opcodes::check_refused(text);
}

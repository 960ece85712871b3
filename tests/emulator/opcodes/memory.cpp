// SPDX-License-Identifier: Apache-2.0
// Loads and stores in every space, and their faults.
#include "opcode_case.hpp"

using namespace opcodes;

namespace {

constexpr std::uint64_t sample = 0x8182838485868788;

/// As `own`, with two words for a lane, of 16 lanes.
const std::string own_pair =
    "and.b32 %t32_7, %thread, 15; mul.wide.u32 %t64_2, %t32_7, 16; add.s64 %t64_0, %out, %t64_2; mov.u64 "
    "%t64_1, shared; add.s64 %t64_1, %t64_1, %t64_2; ";

struct space {
  std::string name, address;
};
const space spaces[] = {{".global", "%t64_0"}, {".shared", "%t64_1"}, {"", "%t64_0"}};

}  // namespace

TEST_CASE("ld extends narrow numbers by their sign") {
  struct width {
    const char *type, *result;
    int bits;
    std::uint64_t expected;
  };
  for (const auto& [name, address] : spaces)
    for (const width& w : {width{"u8", "%x32", 32, 0x88},
                           {"s8", "%x32", 32, 0xffffff88},
                           {"b8", "%x16", 16, 0x88},
                           {"s8", "%x16", 16, 0xff88},
                           {"s8", "%x64", 64, 0xffffffffffffff88},
                           {"u16", "%x16", 16, 0x8788},
                           {"u16", "%x32", 32, 0x8788},
                           {"s16", "%x32", 32, 0xffff8788},
                           {"s16", "%x64", 64, 0xffffffffffff8788},
                           {"u32", "%x32", 32, 0x85868788},
                           {"u32", "%x64", 64, 0x85868788},
                           {"s32", "%x64", 64, 0xffffffff85868788},
                           {"u64", "%x64", 64, sample},
                           {"s64", "%x64", 64, sample},
                           {"b64", "%x64", 64, sample},
                           {"f32", "%x32", 32, 0x85868788},
                           {"f64", "%x64", 64, sample}})
      check(own + "st" + name + ".b64 [" + address + "], %a64; ld" + name + "." + w.type + " " + w.result +
                ", [" + address + "];",
            w.bits, {sample, 0, 0, w.expected});
}

TEST_CASE("st writes the lower bytes of its operand, and no others") {
  struct width {
    const char *type, *operand;
    std::uint64_t expected;
  };
  for (const auto& [name, address] : spaces)
    for (const width& w : {width{"u8", "%a16", 0xffffffffff88ffff},
                           {"b8", "%a32", 0xffffffffff88ffff},
                           {"s8", "%a64", 0xffffffffff88ffff},
                           {"u16", "%a16", 0xffffffff8788ffff},
                           {"s16", "%a32", 0xffffffff8788ffff}})
      check(own + "st" + name + ".b64 [" + address + "], -1; st" + name + "." + w.type + " [" + address +
                "+2], " + w.operand + "; ld" + name + ".b64 %x64, [" + address + "];",
            64, {sample, 0, 0, w.expected});
  for (const width& w : {width{"f32", "%a32", 0x85868788ffffffff},
                         {"u32", "%a64", 0x85868788ffffffff},
                         {"b32", "7", 0x7ffffffff}})
    check(own + "st.global.b64 [%t64_0], -1; st.global." + w.type + " [%t64_0+4], " + w.operand +
              "; ld.global.b64 %x64, [%t64_0];",
          64, {sample, 0, 0, w.expected});
}

TEST_CASE("vectors of two and four elements lie side by side") {
  for (const auto& [name, address] : spaces) {
    const auto through = [&](const std::string& stored, const std::string& loaded, int bits,
                             std::uint64_t expected) {
      // Both halves of a warp write the same.
      check(own_pair + "st" + name + stored + "; ld" + name + loaded + ";", bits,
            {sample, 0x1112131415161718, 0, expected});
    };
    const std::string at = "[" + address + "]";
    through(".v2.b64 " + at + ", {%a64, %b64}", ".b64 %x64, [" + address + "+8]", 64, 0x1112131415161718);
    through(".v2.u32 " + at + ", {%a32, %b32}", ".u64 %x64, " + at, 64, 0x1516171885868788);
    through(".v4.f32 " + at + ", {%a32, %b32, %a32, %b32}", ".v2.u64 {%t64_3, %x64}, " + at, 64,
            0x1516171885868788);
    through(".v4.u16 " + at + ", {%a16, %b16, %b16, %a16}", ".u64 %x64, " + at, 64, 0x8788171817188788);
    through(".v2.u64 " + at + ", {%a64, %b64}", ".v4.u32 {%t32_0, %x32, %t32_1, %t32_2}, " + at, 32,
            0x81828384);
    through(".v2.u64 " + at + ", {%a64, %b64}", ".v4.u32 {_, _, _, %x32}, " + at, 32, 0x11121314);
    through(".v2.f64 " + at + ", {%a64, %b64}", ".v2.f64 {%x64, %t64_3}, " + at, 64, sample);
    through(".v4.u8 " + at + ", {%a32, %b32, %a32, 1}", ".v4.s8 {%t32_0, %t32_1, %x32, %t32_2}, " + at, 32,
            0xffffff88);
    through(".v2.u16 " + at + ", {%a16, %b16}", ".v2.s16 {%t32_0, %x32}, " + at, 32, 0x1718);
  }
}

TEST_CASE("lanes read what others of their block wrote to shared memory") {
  std::vector<opcodes::row> rows;
  for (std::uint64_t l = 0; l < 32; ++l) rows.push_back({100 + l, 0, 0, 131 - l});
  check(own +
            "st.shared.u64 [%t64_1], %a64; bar.sync 0; xor.b32 %t32_0, %thread, 31; shl.b32 %t32_0, %t32_0, "
            "3; mov.u32 %t32_1, shared; add.u32 %t32_1, %t32_1, %t32_0; ld.shared.u64 %x64, [%t32_1];",
        64, rows);
}

TEST_CASE("ld.param reads the parameter, by name and by address") {
  const std::string start =
      ".visible .entry test(.param .u64 words, .param .align 8 .b8 more[16]) {\n.reg .b64 %d, %e, %f;\n"
      ".reg .b32 %r<4>;\nld.param.u64 %d, [words];\n";
  const std::string module =
      start +
      "ld.param.v2.u32 {%r1, %r2}, [words];\nmov.b64 %e, {%r1, %r2};\nsub.s64 %e, %e, %d;\n"
      "st.global.u64 [%d], %e;\nmov.b64 %f, words;\nld.param.u32 %r3, [%f+4];\nsub.u32 %r3, %r3, %r2;\n"
      "st.global.u32 [%d+8], %r3;\nret;\n}\n";
  if (opcodes::on_card()) return;  // which is given no second parameter
  CHECK(opcodes::run_module(module, {7, 7}, 1, 1) == std::vector<std::uint64_t>{0, 0});
}

TEST_CASE("local memory belongs to a thread") {
  std::vector<opcodes::row> rows;
  for (std::uint64_t l = 0; l < 32; ++l) rows.push_back({l, 0, 0, 3 * l});
  check(
      ".local .align 8 .b8 own[32]; st.local.u64 [own+8], %a64; mov.u64 %t64_0, own; shl.b64 %t64_1, %a64, "
      "1; st.local.u64 [%t64_0+16], %t64_1; ld.local.u64 %t64_2, [own+8]; ld.local.u64 %t64_3, [own+16]; "
      "add.u64 %x64, %t64_2, %t64_3;",
      64, rows);
}

TEST_CASE("dynamic shared memory lies behind the static one") {
  const std::string module =
      ".extern .shared .align 16 .b8 more[];\n.shared .align 8 .b8 fixed[8];\n"
      ".visible .entry test(.param .u64 words) {\n.reg .b64 %d, %x<4>;\n.reg .b32 %r;\nld.param.u64 %d, "
      "[words];\n"
      "st.shared.u64 [fixed], 1;\nst.shared.u64 [more], 2;\nst.shared.u64 [more+24], 3;\nld.shared.u64 %x0, "
      "[fixed];\n"
      "ld.shared.u64 %x1, [more];\nld.shared.u64 %x2, [more+24];\nst.global.v2.u64 [%d], {%x0, %x1};\n"
      "st.global.u64 [%d+16], %x2;\nmov.u32 %r, %dynamic_smem_size;\nst.global.u32 [%d+24], %r;\nret;\n}\n";
  CHECK(opcodes::run_module(module, {0, 0, 0, 0}, 1, 1, 32) == std::vector<std::uint64_t>{1, 2, 3, 32});
  if (!opcodes::on_card())
    check_complaint(complaint(module, {0, 0, 0, 0}, 1, 1),
                    "a write of 8 bytes is out of bounds of shared memory");
}

TEST_CASE("volatile and ordered accesses, fences and hints leave values alone") {
  for (const char* way :
       {"ld.volatile.global.u64 %x64, [%t64_0]", "ld.relaxed.gpu.global.u64 %x64, [%t64_0]",
        "ld.acquire.sys.global.u64 %x64, [%t64_0]", "ld.global.nc.u64 %x64, [%mine]",
        "ldu.global.u64 %x64, [%mine]", "ld.global.ca.u64 %x64, [%t64_0]",
        "membar.gl; ld.global.u64 %x64, [%t64_0]", "fence.acq_rel.gpu; ld.global.u64 %x64, [%t64_0]",
        "prefetch.global.L2 [%t64_0]; ld.global.u64 %x64, [%t64_0]",
        "prefetchu.L1 [%t64_0]; ld.global.u64 %x64, [%t64_0]",
        "nanosleep.u32 1; ld.global.u64 %x64, [%t64_0]"})
    check(own + "st.volatile.global.u64 [%t64_0], %a64; membar.cta; " + way + ";", 64, {sample, 0, 0, sample},
          {all, 0, 0, all});
  check(own +
            "st.release.gpu.global.u64 [%t64_0], %a64; st.relaxed.sys.global.u64 [%t64_0], %b64; "
            "ld.global.u64 %x64, [%t64_0];",
        64, {1, 2, 0, 2});
}

TEST_CASE("accesses that no memory allows are faults of their thread") {
  if (opcodes::on_card()) return;
  struct wrong {
    const char *text, *words;
  };
  for (const wrong& w :
       {wrong{"ld.global.u64 %x64, [%out+4];", "a read of 8 bytes is not aligned"},
        {"st.global.u16 [%out+1], %a16;", "a write of 2 bytes is not aligned"},
        {"ld.global.v2.u64 {%x64, %t64_0}, [%out+8];", "a read of 16 bytes is not aligned"},
        {"ld.shared.u32 %x32, [shared+2];", "a read of 4 bytes is not aligned"},
        {"ld.global.u32 %x32, [%out+256];", "a read of 4 bytes is out of bounds: not one of the words"},
        {"st.global.u64 [%words+-8], 0;", "a write of 8 bytes is out of bounds"},
        {"mov.u64 %t64_0, 0; ld.u32 %x32, [%t64_0];", "a read of 4 bytes is out of bounds"},
        {"mov.u64 %t64_0, 0; ld.u32 %x32, [%t64_0+-4];", "a read of 4 bytes is out of bounds"},
        {"st.shared.u64 [shared+512], 0;", "a write of 8 bytes is out of bounds of shared memory"},
        {"st.shared.u64 [shared+-8], 0;", "a write of 8 bytes is out of bounds of shared memory"},
        {".local .b8 own[8]; st.local.u32 [own+16], 0;",
         "a write of 4 bytes is out of bounds of local memory"},
        {"ld.shared.u64 %x64, [shared+8];", "a read of 8 bytes is of shared memory that was never written"},
        {"st.shared.u32 [shared], 1; ld.shared.u64 %x64, [shared];",
         "a read of 8 bytes is of shared memory that was never written"},
        {"mov.u64 %t64_0, 400; ld.param.u32 %x32, [%t64_0];",
         "a read of 4 bytes is out of bounds of parameter memory"},
        {"atom.global.add.u64 %x64, [%out+4], 1;", "is not aligned"},
        {"red.shared.add.u32 [shared+512], 1;", "is out of bounds of shared memory"},
        {"atom.shared.add.u32 %x32, [shared], 1;", "is of shared memory that was never written"}})
    check_complaint(complaint(w.text), w.words);
  const std::string said = complaint("@%ap st.global.u8 [%out+256], 0;", {{0}, {0}, {0}, {1}});
  check_complaint(
      said, "in thread (3, 0, 0) of block (0, 0, 0) of test, PTX line 28: @%ap st.global.u8 [%out+256], 0");
}

TEST_CASE("narrow addresses, long vectors and memory of clusters are refused") {
  for (const char* text :
       {"ld.global.u32 %x32, [%a32]", "st.param.u32 [words], %a32", "ld.shared::cluster.u32 %x32, [%a32]",
        "ld.global.v8.u32 {%x32, %x32, %x32, %x32, %x32, %x32, %x32, %x32}, [%out]",
        "ld.global.u32 %x32, %out"})
    opcodes::check_refused(text);
}

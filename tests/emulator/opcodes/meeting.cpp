// SPDX-License-Identifier: Apache-2.0
// Where lanes of a warp meet: shuffles, votes, matches, reductions.
#include <set>

#include "opcode_case.hpp"

using namespace opcodes;

namespace {

/// A shuffle from lane from(l), in range where inside(l) holds; what is out of range keeps its own value.
void check_shuffle(const std::string& operation, auto from, auto inside) {
  const std::string text = "shfl.sync." + operation + ", 0xffffffff;";
  const auto with = [&](const std::string& result) {
    return text.substr(0, text.find('%')) + result + ", " + text.substr(text.find('%'));
  };
  check(with("%x32"), 32, lanes([&](unsigned l) {
          return row{100 + l, 0, 0, 100 + (inside(l) ? from(l) : l)};
        }));
  check(with("%t32_0|%xp"), 1, lanes([&](unsigned l) { return row{100 + l, 0, 0, inside(l)}; }));
}

}  // namespace

TEST_CASE("shfl.up takes from lower lanes of the segment") {
  for (const unsigned by : {0u, 1u, 5u, 31u})
    check_shuffle(
        "up.b32 %a32, " + std::to_string(by) + ", 0", [=](unsigned l) { return l - by; },
        [=](unsigned l) { return l >= by; });
  check_shuffle(
      "up.b32 %a32, 3, 0x1800", [](unsigned l) { return l - 3; }, [](unsigned l) { return l % 8 >= 3; });
  check_shuffle(
      "up.b32 %a32, 1, 4", [](unsigned l) { return l - 1; }, [](unsigned l) { return l >= 5; });
}

TEST_CASE("shfl.down takes from higher lanes of the segment") {
  for (const unsigned by : {0u, 1u, 16u, 31u})
    check_shuffle(
        "down.b32 %a32, " + std::to_string(by) + ", 31", [=](unsigned l) { return l + by; },
        [=](unsigned l) { return l + by <= 31; });
  check_shuffle(
      "down.b32 %a32, 3, 0x181f", [](unsigned l) { return l + 3; }, [](unsigned l) { return l % 8 + 3 < 8; });
  check_shuffle(
      "down.b32 %a32, 2, 9", [](unsigned l) { return l + 2; }, [](unsigned l) { return l + 2 <= 9; });
}

TEST_CASE("shfl.bfly takes from the lane with some bits flipped") {
  for (const unsigned by : {1u, 16u, 31u})
    check_shuffle(
        "bfly.b32 %a32, " + std::to_string(by) + ", 31", [=](unsigned l) { return l ^ by; },
        [](unsigned) { return true; });
  check_shuffle(
      "bfly.b32 %a32, 3, 0x1c1f", [](unsigned l) { return l ^ 3; }, [](unsigned) { return true; });
  check_shuffle(
      "bfly.b32 %a32, 16, 15", [](unsigned l) { return l ^ 16; }, [](unsigned l) { return l >= 16; });
}

TEST_CASE("shfl.idx takes from a lane of the segment") {
  check_shuffle(
      "idx.b32 %a32, 7, 31", [](unsigned) { return 7u; }, [](unsigned) { return true; });
  check_shuffle(
      "idx.b32 %a32, 39, 31", [](unsigned) { return 7u; }, [](unsigned) { return true; });
  check_shuffle(
      "idx.b32 %a32, 9, 0x181f", [](unsigned l) { return l / 8 * 8 + 1; }, [](unsigned) { return true; });
  check_shuffle(
      "idx.b32 %a32, 5, 0x1803", [](unsigned l) { return l / 8 * 8 + 5; }, [](unsigned) { return false; });
  check("shfl.sync.idx.b32 %x32, %a32, %b32, 31, -1;", 32, lanes([](unsigned l) {
          return row{l, 31 - l, 0, 31 - l};
        }));
}

TEST_CASE("lanes that a mask leaves out take no part in a shuffle") {
  const std::string text =
      "and.b32 %t32_0, %thread, 1; setp.eq.u32 %tp_0, %t32_0, 0; mov.b32 %x32, 7;\n@%tp_0 ";
  check(text + "shfl.sync.bfly.b32 %x32, %a32, 2, 31, 0x55555555;", 32, lanes([](unsigned l) {
          return row{l, 0, 0, l % 2 != 0 ? 7 : l ^ 2};
        }));
  if (opcodes::on_card()) return;
  check_complaint(complaint(text + "shfl.sync.bfly.b32 %x32, %a32, 1, 31, 0x55555555;"),
                  "takes the value of lane 1, which does not take part");
  check_complaint(complaint("shfl.sync.bfly.b32 %x32, %a32, 2, 31, 0x55555555;"),
                  "meets lanes 0x55555555, and is none of them");
  check_complaint(
      complaint(text + "shfl.sync.bfly.b32 %x32, %a32, 2, 31, -1;\nbar.sync 0;"),
      "waits for lanes of its warp that never come: it names 0xffffffff, of which 0x55555555 wait");
}

TEST_CASE("vote asks all lanes, or those of a mask") {
  const auto some = lanes([](unsigned l) { return row{l == 3 || l == 20, l < 16, 0, 0}; });
  const auto voted = [&](const std::string& how, const std::string& mask, std::uint64_t expected) {
    auto rows = some;
    for (row& r : rows) r.expected = expected;
    const bool ballot = how.starts_with("ballot");
    check("vote.sync." + how.substr(0, how.find(' ')) + (ballot ? " %x32" : " %xp") + "," +
              how.substr(how.find(' ')) + ", " + mask + ";",
          ballot ? 32 : 1, rows);
  };
  voted("ballot.b32 %ap", "-1", 0x00100008);
  voted("ballot.b32 !%ap", "-1", 0xffeffff7);
  voted("ballot.b32 1", "-1", word);
  voted("any.pred %ap", "-1", 1);
  voted("any.pred !%ap", "-1", 1);
  voted("any.pred 0", "-1", 0);
  voted("all.pred %ap", "-1", 0);
  voted("all.pred 1", "-1", 1);
  voted("uni.pred %bp", "-1", 0);
  voted("uni.pred 0", "-1", 1);
}

TEST_CASE("two groups of a warp vote apart from each other") {
  const auto in_groups = [](const std::string& how, int result, unsigned low, unsigned high) {
    check("setp.lt.u32 %tp_0, %thread, 16;\n@%tp_0 bra lower;\nvote.sync." + how +
              ", %ap, 0xffff0000;\nbra together;\nlower:\nvote.sync." + how +
              ", %ap, 0x0000ffff;\ntogether:\n",
          result, lanes([&](unsigned l) {
            return row{l >= 16 || l == 3, 0, 0, l < 16 ? low : high};
          }));
  };
  in_groups("ballot.b32 %x32", 32, 8, 0xffff0000);
  in_groups("all.pred %xp", 1, 0, 1);
  in_groups("any.pred %xp", 1, 1, 1);
  in_groups("uni.pred %xp", 1, 0, 1);
}

TEST_CASE("match finds the lanes with the same value") {
  check("match.any.sync.b32 %x32, %a32, -1;", 32, lanes([](unsigned l) {
          return row{l % 2, 0, 0, l % 2 != 0 ? 0xaaaaaaaa : 0x55555555};
        }));
  check("match.any.sync.b64 %x32, %a64, -1;", 32, lanes([](unsigned l) {
          return row{std::uint64_t{l} << 32, 0, 0, 1ull << l};
        }));
  check("match.all.sync.b32 %x32|%tp_0, %a32, -1;", 32, {5, 0, 0, word});
  check("match.all.sync.b32 %t32_0|%xp, %a32, -1;", 1, {5, 0, 0, 1});
  check("match.all.sync.b64 %x32|%tp_0, %a64, -1;", 32, lanes([](unsigned l) {
          return row{std::uint64_t{l / 31} << 40, 0, 0, 0};
        }));
  check("match.all.sync.b64 %t32_0|%xp, %a64, -1;", 1, lanes([](unsigned l) {
          return row{std::uint64_t{l / 31} << 40, 0, 0, 0};
        }));
}

TEST_CASE("redux joins the values of all lanes") {
  const auto joined = [](const std::string& how, std::uint64_t first, std::uint64_t others,
                         std::uint64_t expected) {
    check("redux.sync." + how + " %x32, %a32, -1;", 32, lanes([&](unsigned l) {
            return row{l == 9 ? first : others, 0, 0, expected};
          }));
  };
  joined("add.u32", 1, 2, 63);
  joined("add.s32", 31, word, 0);
  joined("min.u32", word, 3, 3);
  joined("min.s32", word, 3, word);
  joined("max.u32", word, 3, word);
  joined("max.s32", word, 3, 3);
  joined("and.b32", 0xf0, 0x3c, 0x30);
  joined("or.b32", 0xf0, 0x3c, 0xfc);
  joined("xor.b32", 0xf0, 0x3c, 0xf0 ^ 0x3c);
  check("setp.lt.u32 %tp_0, %thread, 4; mov.b32 %x32, 0;\n@%tp_0 redux.sync.add.u32 %x32, %a32, 15;", 32,
        lanes([](unsigned l) {
          return row{l, 0, 0, l < 4 ? 6u : 0u};
        }));
}

TEST_CASE("activemask holds at least the lane, and no lane elsewhere") {
  check("activemask.b32 %t32_0; mov.u32 %t32_1, %lanemask_eq; and.b32 %x32, %t32_0, %t32_1;", 32,
        lanes([](unsigned l) {
          return row{0, 0, 0, 1ull << l};
        }));
  check(
      "mov.b32 %x32, 0; setp.lt.u32 %tp_0, %thread, 4;\n@%tp_0 activemask.b32 %x32;\nand.b32 %x32, %x32, "
      "-16;",
      32, {0, 0, 0, 0});
}

TEST_CASE("bar.warp.sync brings lanes together that went different ways") {
  check(
      "setp.lt.u32 %tp_0, %thread, 16; mul.wide.u32 %t64_0, %thread, 8; add.s64 %t64_0, %t64_0, %out; @%tp_0 "
      "bra writes;\nbar.warp.sync -1; ld.volatile.global.u64 %x64, [%t64_0+-128]; bra "
      "over;\nwrites:\nst.volatile.global.u64 [%t64_0], %a64; bar.warp.sync -1; mov.b64 %x64, %a64;\nover:\n",
      64, lanes([](unsigned l) {
        return row{l, 0, 0, l % 16};
      }));
  if (opcodes::on_card()) return;
  check_complaint(complaint("setp.lt.u32 %tp_0, %thread, 16;\n@%tp_0 bar.warp.sync -1;\n@!%tp_0 bra "
                            "over;\nbar.warp.sync 1;\nover:\n"),
                  "bar.warp.sync");
}

TEST_CASE("meetings without .sync, elections and other reductions are refused") {
  for (const char* text : {"shfl.up.b32 %x32, %a32, 1, 0", "vote.any.pred %xp, %ap",
                           "elect.sync %x32|%xp, -1", "shfl.sync.up.b32 %x32, %a32, 1",
                           "redux.sync.add.u64 %x64, %a64, -1", "redux.sync.min.f32 %x32, %a32, -1"})
    opcodes::check_refused(text);
}

// SPDX-License-Identifier: Apache-2.0
// Barriers of a block.
#include <array>

#include "opcode_case.hpp"

using namespace opcodes;

namespace {

constexpr unsigned threads = 96;

/// What every thread of three warps gets, of which `holding` bring a predicate %ap.
void check_all(const std::string& text, int result, unsigned holding, std::uint64_t expected) {
  std::vector<row> rows(threads);
  for (unsigned t = 0; t < holding; ++t) rows[threads - 1 - 7 * t % threads].a = 1;
  INFO(text);
  CHECK(opcodes::run(text, result, rows, threads) == std::vector<std::uint64_t>(threads, expected));
}

}  // namespace

TEST_CASE("what threads wrote before a barrier, others read behind it") {
  for (const char* barrier : {"bar.sync 0", "barrier.sync 0", "barrier.sync.aligned 0"}) {
    std::vector<row> rows(64);
    std::vector<std::uint64_t> expected;
    for (unsigned t = 0; t < 64; ++t) {
      rows[t].a = 1000 + t;
      expected.push_back(1063 - t);
    }
    const std::string text =
        std::string(
            "mov.u32 %t32_0, shared; mad.lo.u32 %t32_1, %thread, 8, %t32_0; st.shared.u64 [%t32_1], %a64; ") +
        barrier +
        "; sub.u32 %t32_2, 63, %thread; mad.lo.u32 %t32_1, %t32_2, 8, %t32_0; ld.shared.u64 %x64, [%t32_1];";
    CHECK(opcodes::run(text, 64, rows, 64) == expected);
  }
}

TEST_CASE("a barrier in a loop is passed as often") {
  check_all(
      "mov.b32 %t32_0, 0;\nagain:\nred.global.add.u32 [%out], 1; bar.sync 0; ld.volatile.global.u32 %x32, "
      "[%out]; bar.sync 0; add.u32 %t32_0, %t32_0, 1; setp.lt.u32 %tp_0, %t32_0, 5;\n@%tp_0 bra again;\n",
      32, 0, 5 * threads);
}

TEST_CASE("bar.red asks all threads of a block") {
  for (const auto& [holding, count, any, all] :
       {std::array{0u, 0u, 0u, 0u}, {1u, 1u, 1u, 0u}, {5u, 5u, 1u, 0u}, {threads, threads, 1u, 1u}}) {
    check_all("bar.red.popc.u32 %x32, 0, %ap;", 32, holding, count);
    check_all("bar.red.or.pred %xp, 0, %ap;", 1, holding, any);
    check_all("bar.red.and.pred %xp, 0, %ap;", 1, holding, all);
    check_all("barrier.red.popc.u32 %x32, 0, %ap;", 32, holding, count);
  }
}

TEST_CASE("bar.red asks for the opposite of a predicate") {
  check_all("bar.red.popc.u32 %x32, 0, !%ap;", 32, 5, threads - 5);
  check_all("bar.red.or.pred %xp, 0, !%ap;", 1, threads, 0);
  check_all("bar.red.or.pred %xp, 0, !%ap;", 1, 0, 1);
  check_all("bar.red.and.pred %xp, 0, !%ap;", 1, 0, 1);
  check_all("bar.red.and.pred %xp, 0, !%ap;", 1, 3, 0);
}

TEST_CASE("a barrier that some threads never reach is a fault") {
  if (opcodes::on_card()) return;
  const std::string said = complaint("setp.lt.u32 %tp_0, %thread, 40;\n@%tp_0 bar.sync 0;\n", {{}}, 64);
  check_complaint(said,
                  "waits at a barrier that 24 of 64 threads of the block never reach, since they have ended");
  check_complaint(said, "of block (0, 0, 0) of test, PTX line 29: @%tp_0 bar.sync 0");
  check_complaint(complaint("setp.lt.u32 %tp_0, %thread, 32;\n@%tp_0 bra other;\nbar.sync 0; bra "
                            "over;\nother:\nbar.sync 0;\nover:\n",
                            {{}}, 64),
                  "waits at this barrier while others wait at that of line");
}

TEST_CASE("a kernel that waits for what never comes is stopped") {
  if (opcodes::on_card()) return;
  check_complaint(complaint("again:\nld.volatile.global.u32 %t32_0, [%out]; setp.eq.u32 %tp_0, %t32_0, "
                            "0;\n@%tp_0 bra again;\n"),
                  "runs for more than");
}

TEST_CASE("trap and brkpt end a kernel where a thread comes to them") {
  if (opcodes::on_card()) return;
  check_complaint(complaint("@%ap trap;", {{0}, {1}}),
                  "traps, in thread (1, 0, 0) of block (0, 0, 0) of test, PTX line 28: @%ap trap");
  check_complaint(complaint("@%ap brkpt;", {{1}}), "traps, in thread (0, 0, 0)");
  CHECK(opcodes::run("@%ap trap; mov.b32 %x32, 1;", 32, {{0}})[0] == 1);
}

TEST_CASE("barriers of some threads are refused") {
  for (const char* text : {"bar.sync 1", "bar.sync 0, 64", "bar.arrive 0, 64", "barrier.cluster.arrive",
                           "bar.red.popc.u32 %x32, 0, 64, %ap"})
    opcodes::check_refused(text);
}

// SPDX-License-Identifier: Apache-2.0
// Modules: control flow, functions, scopes, special registers, and what is refused.
#include "opcode_case.hpp"

using namespace opcodes;
using words = std::vector<std::uint64_t>;

namespace {

/// A kernel that gives %x64 of every thread, behind `before` it; %n is the thread's number in the grid.
std::string kernel(const std::string& body, const std::string& before = "") {
  return before +
         ".visible .entry test(.param .u64 words) {\n.reg .b64 %words, %at, %x64, %d<4>;\n.reg .b32 %n, "
         "%x32, %r<8>;\n.reg .pred %p<4>;\n"
         "ld.param.u64 %words, [words];\nmov.u32 %r0, %ctaid.x;\nmov.u32 %r1, %ntid.x;\nmov.u32 %r2, "
         "%tid.x;\nmad.lo.u32 %n, %r0, %r1, %r2;\n"
         "mul.wide.u32 %at, %n, 8;\nadd.s64 %at, %at, %words;\nmov.b64 %x64, 0;\n" +
         body + "\nst.global.u64 [%at], %x64;\nret;\n}\n";
}

const std::string add_one =
    ".func (.param .b32 sum) add_one(.param .b32 a) {\n.reg .b32 %r<4>;\nld.param.b32 %r1, [a];\n"
    "add.u32 %r2, %r1, 1;\nst.param.b32 [sum], %r2;\nret;\n}\n";
const std::string call_add_one =
    "{\n.param .b32 argument;\nst.param.b32 [argument], %r2;\n.param .b32 result;\n"
    "call.uni (result), add_one, (argument);\nld.param.b32 %r2, [result];\n}\n";

}  // namespace

TEST_CASE("lanes go their own ways at a branch and meet again") {
  check(
      "setp.lt.u32 %tp_0, %thread, 10;\n@%tp_0 bra few;\nmov.b32 %x32, 2;\nbra.uni over;\nfew:\nmov.b32 "
      "%x32, 1;\nover:\nadd.u32 %x32, %x32, 10;",
      32, lanes([](unsigned l) {
        return row{0, 0, 0, l < 10 ? 11u : 12u};
      }));
}

TEST_CASE("every lane passes a loop as often as it says") {
  check(
      "mov.b32 %x32, 0; mov.b32 %t32_0, 0;\nagain:\nsetp.ge.u32 %tp_0, %t32_0, %a32;\n@%tp_0 bra "
      "over;\nadd.u32 %x32, %x32, %t32_0; add.u32 %t32_0, %t32_0, 1; bra again;\nover:\n",
      32, lanes([](unsigned l) {
        return row{l, 0, 0, l * (l - 1) / 2};
      }));
}

TEST_CASE("a guard lets only those lanes act for which it holds, or does not") {
  check("mov.b32 %x32, 5;\n@%ap mov.b32 %x32, 1;\n@!%bp add.u32 %x32, %x32, 10;", 32, {0, 0, 0, 15},
        {1, 0, 0, 11}, {0, 1, 0, 5}, {1, 1, 0, 1});
  check("setp.eq.u32 %xp, %thread, %thread;\n@%ap setp.ne.u32 %xp, %thread, %thread;", 1, {0, 0, 0, 1},
        {1, 0, 0, 0});
}

TEST_CASE("lanes that exit early leave the others running") {
  const std::string body =
      "setp.ge.u32 %p0, %r2, 20;\n@%p0 exit;\nsetp.lt.u32 %p1, %r2, 3;\n@%p1 ret;\nvote.sync.ballot.b32 "
      "%x32, 1, 0x000ffff8;\ncvt.u64.u32 %x64, %x32;";
  words expected(32, 7);
  for (unsigned l = 3; l < 20; ++l) expected[l] = 0x000ffff8;
  CHECK(opcodes::run_module(kernel(body), words(32, 7), 1, 32) == expected);
}

TEST_CASE("brx.idx goes to the label of that number") {
  const std::string text =
      "ways: .branchtargets first, second, third;\nbrx.idx %a32, ways;\nfirst:\nmov.b32 %x32, 10; bra "
      "over;\nsecond:\n"
      "mov.b32 %x32, 20; bra over;\nthird:\nmov.b32 %x32, 30;\nover:\n";
  check(text, 32, lanes([](unsigned l) { return row{l % 3, 0, 0, 10 * (l % 3 + 1)}; }));
  check("{\n" + text + "}", 32, {2, 0, 0, 30});
  if (!opcodes::on_card()) check_complaint(complaint(text, {{3}}), "branch 3 of a table that has fewer");
}

TEST_CASE("brx.idx leaves the braces that its labels lie outside of") {
  check(
      "{\n.reg .b32 %q; mov.b32 %q, %a32;\nways: .branchtargets first, second;\nbrx.idx %q, "
      "ways;\n}\nfirst:\nmov.b32 %x32, 10; bra over;\nsecond:\nmov.b32 %x32, 20;\nover:\n",
      32, {0, 0, 0, 10}, {1, 0, 0, 20});
}

TEST_CASE("a function takes parameters and gives a result, however often it is called") {
  words expected(32);
  for (unsigned l = 0; l < 32; ++l) expected[l] = l + 2;
  CHECK(opcodes::run_module(kernel(call_add_one + call_add_one + "cvt.u64.u32 %x64, %r2;", add_one),
                            words(32), 1, 32) == expected);
}

TEST_CASE("a function may return early, call others, and take several parameters") {
  const std::string functions =
      add_one +
      ".func (.param .b64 most) larger(.param .b32 a, .param .align 8 .b8 pair[16]) {\n.reg .b32 %r2;\n.reg "
      ".b64 %d<4>;\n.reg .pred %p;\n"
      "ld.param.b32 %r2, [a];\n" +
      call_add_one +
      "cvt.u64.u32 %d0, %r2;\nld.param.b64 %d1, [pair];\nld.param.b64 %d2, [pair+8];\n"
      "add.u64 %d1, %d1, %d2;\nsetp.gt.u64 %p, %d0, %d1;\nst.param.b64 [most], %d0;\n@%p ret;\nst.param.b64 "
      "[most], %d1;\nret;\n}\n";
  const std::string body =
      "{\n.param .b32 one;\n.param .align 8 .b8 two[16];\n.param .b64 back;\nst.param.b32 [one], "
      "%r2;\nst.param.b64 [two], 4;\n"
      "st.param.b64 [two+8], 6;\ncall (back), larger, (one, two);\nld.param.b64 %x64, [back];\n}";
  words expected(32);
  for (unsigned l = 0; l < 32; ++l) expected[l] = std::max(l + 1, 10u);
  CHECK(opcodes::run_module(kernel(body, functions), words(32), 1, 32) == expected);
}

TEST_CASE("names between braces hide those outside, and end with them") {
  check(
      "mov.b32 %t32_0, 1;\n{\n.reg .b32 %t32_0;\nmov.b32 %t32_0, 2;\n{\n.reg .b32 %t32_<2>;\nmov.b32 %t32_0, "
      "3;\n}\nmov.b32 %x32, %t32_0;\n}\nmad.lo.u32 %x32, %x32, 10, %t32_0;",
      32, {0, 0, 0, 21});
  check(
      "{\nbra inner;\nmov.b32 %x32, 9;\ninner:\n}\n{\nbra inner;\ninner:\nbra outer;\n}\nmov.b32 %x32, "
      "8;\nouter:\nadd.u32 %x32, %a32, 1;",
      32, {4, 0, 0, 5});
  if (!opcodes::on_card())
    check_complaint(complaint("{\n.reg .b32 %gone;\n}\nmov.b32 %x32, %gone;"),
                    "unknown register %gone in 'mov.b32 %x32, %gone'");
}

TEST_CASE("special registers say where a thread is") {
  const auto check_special = [](const std::string& name, auto expected) {
    const std::string body = "mov.u32 %x32, " + name + ";\ncvt.u64.u32 %x64, %x32;";
    words found(3 * 40);
    for (unsigned b = 0; b < 3; ++b)
      for (unsigned t = 0; t < 40; ++t) found[40 * b + t] = static_cast<std::uint32_t>(expected(b, t));
    INFO(name);
    CHECK(opcodes::run_module(kernel(body), words(3 * 40), 3, 40) == found);
  };
  check_special("%tid.x", [](unsigned, unsigned t) { return t; });
  check_special("%ctaid.x", [](unsigned b, unsigned) { return b; });
  check_special("%laneid", [](unsigned, unsigned t) { return t % 32; });
  check_special("%lanemask_eq", [](unsigned, unsigned t) { return 1ull << t % 32; });
  check_special("%lanemask_lt", [](unsigned, unsigned t) { return (1ull << t % 32) - 1; });
  check_special("%lanemask_le", [](unsigned, unsigned t) { return (2ull << t % 32) - 1; });
  check_special("%lanemask_gt", [](unsigned, unsigned t) { return ~((2ull << t % 32) - 1); });
  check_special("%lanemask_ge", [](unsigned, unsigned t) { return ~((1ull << t % 32) - 1); });
  for (const auto& [name, value] : {std::pair{"%ntid.x", 40u},
                                    {"%ntid.y", 1u},
                                    {"%ntid.z", 1u},
                                    {"%nctaid.x", 3u},
                                    {"%nctaid.y", 1u},
                                    {"%nctaid.z", 1u},
                                    {"%tid.y", 0u},
                                    {"%tid.z", 0u},
                                    {"%ctaid.y", 0u},
                                    {"%ctaid.z", 0u},
                                    {"%dynamic_smem_size", 0u},
                                    {"WARP_SZ", 32u}})
    check_special(name, [value = value](unsigned, unsigned) { return value; });
}

TEST_CASE("numbers of warps and multiprocessors lie below how many there are") {
  check("mov.u32 %t32_0, %warpid; mov.u32 %t32_1, %nwarpid; setp.lt.u32 %xp, %t32_0, %t32_1;", 1,
        {0, 0, 0, 1});
  check("mov.u32 %t32_0, %smid; mov.u32 %t32_1, %nsmid; setp.lt.u32 %xp, %t32_0, %t32_1;", 1, {0, 0, 0, 1});
  check("mov.u64 %t64_0, %clock64; mov.u64 %t64_1, %clock64; setp.ge.u64 %xp, %t64_1, %t64_0;", 1,
        {0, 0, 0, 1});
  check("mov.u64 %t64_0, %globaltimer; setp.gt.u64 %xp, %t64_0, 0;", 1, {0, 0, 0, 1});
}

TEST_CASE("griddepcontrol and comments leave a kernel alone") {
  const std::string target = ".version 8.0\n.target sm_90\n.address_size 64\n";
  CHECK(opcodes::run_module(target + kernel("griddepcontrol.wait;\n// nothing\n/* and\nnothing */ mov.b64 "
                                            "%x64, 5;\ngriddepcontrol.launch_dependents;"),
                            {0}, 1, 1) == words{5});
}

TEST_CASE("a failed assertion is a fault that says what and where") {
  if (opcodes::on_card()) return;
  const std::string declared =
      ".extern .func __assertfail(.param .b64 what, .param .b64 file, .param .b32 line, .param .b64 "
      "function, .param .b64 size);\n.extern .func (.param .b32 done) vprintf(.param .b64 format, .param "
      ".b64 arguments);\n";
  // The texts "x>0" and "f.cu" in local memory, as generic addresses.
  const std::string texts =
      ".local .align 8 .b8 texts[16];\nst.local.u64 [texts], 0x303e78;\nst.local.u64 [texts+8], 0x75632e66;\n"
      "mov.u64 %d0, texts;\ncvta.local.u64 %d0, %d0;\nadd.u64 %d1, %d0, 8;\nsetp.ne.u32 %p0, %n, 2;\n";
  const std::string call =
      "@%p0 bra fine;\n{\n.param .b64 a, b, d, e;\n.param .b32 c;\nst.param.b64 [a], %d0;\nst.param.b64 [b], "
      "%d1;\n"
      "st.param.b32 [c], 7;\nst.param.b64 [d], %d0;\nst.param.b64 [e], 1;\ncall.uni __assertfail, (a, b, c, "
      "d, e);\n}\nfine:\n";
  check_complaint(complaint(kernel(texts + call, declared), words(4), 1, 4),
                  "fails the assertion 'x>0' of f.cu:7, in thread (2, 0, 0)");
  const std::string print =
      "{\n.param .b64 a, b;\n.param .b32 r;\nst.param.b64 [a], %d1;\nst.param.b64 [b], 0;\ncall.uni (r), "
      "vprintf, (a, b);\n"
      "ld.param.b32 %x32, [r];\n}\ncvt.u64.u32 %x64, %x32;";
  CHECK(opcodes::run_module(kernel(texts + "st.local.u8 [texts+8], 0;\n" + print, declared), words(1), 1,
                            1) == words{0});
}

TEST_CASE("what is refused is named with its line and text") {
  if (opcodes::on_card()) return;
  check_complaint(complaint(kernel("wgmma.fence.sync.aligned;"), {0}, 1, 1),
                  "PTX line 16: unknown instruction in 'wgmma.fence.sync.aligned'");
  check_complaint(complaint(kernel("{\nadd.tf32 %r0, %r1, %r2;\n}"), {0}, 1, 1), "PTX line 17: ");
  check_complaint(complaint(kernel("mov.u32 %x32, %envreg3;"), {0}, 1, 1),
                  "PTX line 16: unknown register %envreg3");
  check_complaint(complaint(kernel("mov.u32 %x64, 1;"), {0}, 1, 1),
                  "PTX line 16: the register %x64 has another size");
  check_complaint(complaint(kernel("bra nowhere;"), {0}, 1, 1), "unknown label nowhere");
  check_complaint(complaint(kernel("mov.u64 %x64, missing;"), {0}, 1, 1),
                  "PTX line 16: unknown name missing");
  check_complaint(complaint(kernel("shl.b32 %r0, %r1;"), {0}, 1, 1),
                  "PTX line 16: too few operands in 'shl.b32 %r0, %r1'");
  for (const char* text : {"bra", "brx.idx %r0", "call", "ld.global.u32 %r0", "mov.u32"})
    check_complaint(complaint(kernel(std::string(text) + ";"), {0}, 1, 1),
                    std::string("PTX line 16: too few operands in '") + text + "'");
}

TEST_CASE("a text that cannot be read is refused with its line") {
  if (opcodes::on_card()) return;
  check_complaint(complaint(kernel("add.u32 %r0, %r0, 1"), {0}, 1, 1), "PTX line 16: ");
  check_complaint(complaint(kernel("", ".nonsense .u32 x;\n"), {0}, 1, 1),
                  "PTX line 4: the declaration .nonsense .u32 x");
  check_complaint(complaint(kernel("", "what is this {\n}\n"), {0}, 1, 1),
                  "PTX line 4: expected a declaration, not 'what is this'");
  check_complaint(complaint(kernel("add.u32 %r0, /* one */ %r0, 1;"), {0}, 1, 1),
                  "PTX line 16: a comment within a statement");
  const std::string whole = kernel("");
  check_complaint(complaint(whole.substr(0, whole.size() - 2), {0}, 1, 1), "the text ends within test");
}

TEST_CASE("recursion and calls of what is not there are refused") {
  if (opcodes::on_card()) return;
  const std::string self = ".func forever() {\ncall forever;\nret;\n}\n";
  check_complaint(complaint(kernel("call forever;", self), {0}, 1, 1),
                  "PTX line 5: recursion, which would need a stack, in 'call forever'");
  check_complaint(complaint(kernel("call elsewhere;", ".func elsewhere();\n"), {0}, 1, 1),
                  "a call of elsewhere, which is not defined,");
  check_complaint(complaint(kernel("call %d0;"), {0}, 1, 1), "a call by a pointer");
  check_complaint(complaint(kernel("{\n.param .b32 one;\ncall add_one, (one);\n}", add_one), {0}, 1, 1),
                  "another number of arguments than the function has");
}

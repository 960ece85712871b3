// SPDX-License-Identifier: Apache-2.0
#include "opcode_case.hpp"

#include <algorithm>
#include <cstdlib>

#include "../ptx/block.hpp"
#include "card.hpp"

namespace opcodes {

namespace {

using namespace emulator;

constexpr const char* header = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// Words are the only memory there is.
class one_block final : public ptx::address_space {
 public:
  explicit one_block(std::vector<std::uint64_t>& words)
      : begin_(reinterpret_cast<std::uint64_t>(words.data())), bytes_(8 * words.size()), marks_(bytes_, 1) {}

  ptx::window find(std::uint64_t address) const override {
    if (address < begin_ || address >= begin_ + bytes_) return {};
    return {begin_, begin_ + bytes_, const_cast<std::uint8_t*>(marks_.data()), 0};
  }
  std::string describe(std::uint64_t) const override { return "not one of the words"; }
  std::uint64_t address_of(const std::string& variable) const override {
    throw ptx::fault("no variables are loaded here: " + variable);
  }

 private:
  std::uint64_t begin_;
  std::size_t bytes_;
  std::vector<std::uint8_t> marks_;
};

void emulate(const std::string& text, std::vector<std::uint64_t>& words, unsigned blocks, unsigned threads,
             unsigned shared) {
  const ptx::module m(text);
  const auto found = m.functions().find("test");
  REQUIRE(found != m.functions().end());
  const ptx::program p = ptx::decode(m, found->second);
  const one_block memory(words);
  ptx::launch l;
  l.kernel = &p;
  l.grid = {blocks, 1, 1};
  l.block = {threads, 1, 1};
  l.dynamic_shared = shared;
  l.memory = &memory;
  const std::uint64_t address = reinterpret_cast<std::uint64_t>(words.data());
  l.parameters.resize(p.parameter_bytes);
  std::memcpy(l.parameters.data(), &address, sizeof(address));
  ptx::run_grid(l, 1, std::chrono::seconds(5));
}

/// Operands lie four words a thread from word 0 on, results behind them, and the words of %out behind those.
std::string module_of(const std::string& text, int result, unsigned threads) {
  std::string s = header;
  s += ".visible .entry test(.param .u64 words) {\n"
       "  .shared .align 16 .b8 shared[512];\n"
       "  .reg .b16 %a16, %b16, %c16, %x16, %t16_<8>;\n"
       "  .reg .b32 %a32, %b32, %c32, %x32, %t32_<8>, %thread;\n"
       "  .reg .b64 %a64, %b64, %c64, %x64, %t64_<8>, %words, %mine, %offset, %out;\n"
       "  .reg .pred %ap, %bp, %cp, %xp, %tp_<8>;\n"
       "  ld.param.u64 %words, [words];\n"
       "  mov.u32 %thread, %tid.x;\n"
       "  mul.wide.u32 %offset, %thread, 32;\n"
       "  add.s64 %mine, %words, %offset;\n";
  s += "  add.s64 %out, %words, " + std::to_string(40 * threads) + ";\n";
  const char* const names[] = {"a", "b", "c"};
  for (int n = 0; n < 3; ++n) {
    const std::string r = std::string("%") + names[n];
    s += "  ld.global.b64 " + r + "64, [%mine+" + std::to_string(8 * n) + "];\n  cvt.u32.u64 " + r + "32, " +
         r + "64;\n  cvt.u16.u64 " + r + "16, " + r + "64;\n  setp.ne.u64 " + r + "p, " + r + "64, 0;\n";
  }
  s += "  mov.b64 %x64, 0;\n" + text + "\n";
  if (result == 1) s += "  selp.b64 %x64, 1, 0, %xp;\n";
  if (result == 16) s += "  cvt.u64.u16 %x64, %x16;\n";
  if (result == 32) s += "  cvt.u64.u32 %x64, %x32;\n";
  s += "  mul.wide.u32 %offset, %thread, 8;\n  add.s64 %mine, %words, %offset;\n";
  s += "  st.global.b64 [%mine+" + std::to_string(32 * threads) + "], %x64;\n  ret;\n}\n";
  return s;
}

std::vector<std::uint64_t> words_of(const std::vector<row>& rows, unsigned threads) {
  std::vector<std::uint64_t> words(5 * threads + 32, 0);
  for (unsigned t = 0; t < threads; ++t) {
    const row& r = rows[std::min<std::size_t>(t, rows.size() - 1)];
    words[4 * t] = r.a;
    words[4 * t + 1] = r.b;
    words[4 * t + 2] = r.c;
  }
  return words;
}

}  // namespace

bool on_card() { return std::getenv("PARTITA_ON_CARD") != nullptr; }

std::vector<std::uint64_t> run_module(const std::string& module, std::vector<std::uint64_t> words,
                                      unsigned blocks, unsigned threads, unsigned shared_bytes) {
  const std::string text = module.find(".version") == std::string::npos ? header + module : module;
  if (on_card())
    run_on_card(text, words, blocks, threads, shared_bytes);
  else
    emulate(text, words, blocks, threads, shared_bytes);
  return words;
}

std::vector<std::uint64_t> run(const std::string& text, int result, const std::vector<row>& rows,
                               unsigned threads) {
  const auto words = run_module(module_of(text, result, threads), words_of(rows, threads), 1, threads);
  return {words.begin() + 4 * threads, words.begin() + 5 * threads};
}

void check(const std::string& text, int result, const std::vector<row>& rows) {
  const std::vector<std::uint64_t> found = run(text, result, rows);
  for (std::size_t n = 0; n < rows.size(); ++n) {
    INFO(text, ", lane ", n);
    CHECK(found[n] == rows[n].expected);
  }
}
void check(const std::string& text, int result, row first, row second, row third, row fourth, row fifth,
           row sixth, row seventh, row eighth) {
  std::vector<row> rows{first, second, third, fourth, fifth, sixth, seventh, eighth};
  std::erase_if(rows, [](const row& r) { return !r.given; });
  check(text, result, rows);
}

std::string complaint(const std::string& module, std::vector<std::uint64_t> words, unsigned blocks,
                      unsigned threads) {
  try {
    emulate(module.find(".version") == std::string::npos ? header + module : module, words, blocks, threads,
            0);
  } catch (const std::exception& e) {
    return e.what();
  }
  FAIL("nothing was wrong");
  return {};
}

std::string complaint(const std::string& text, const std::vector<row>& rows, unsigned threads) {
  return complaint(module_of(text, 64, threads), words_of(rows, threads), 1, threads);
}

void check_complaint(const std::string& said, const std::string& words) {
  INFO(said);
  INFO(words);
  CHECK(said.find(words) != std::string::npos);
}

void check_refused(const std::string& instruction) {
  if (!on_card()) check_complaint(complaint(instruction + ";"), " in '" + instruction + "'");
}

std::uint64_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

}  // namespace opcodes

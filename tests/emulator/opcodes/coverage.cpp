// SPDX-License-Identifier: Apache-2.0
// That no instruction which the emulator knows is without a test.
#include <filesystem>
#include <fstream>
#include <regex>
#include <source_location>
#include <sstream>

#include "../ptx/encoder.hpp"
#include "opcode_case.hpp"

namespace {

/// The text of all tests but this one, with blanks where its strings have new lines.
std::string tests() {
  const std::filesystem::path here = std::source_location::current().file_name();
  std::ostringstream all;
  for (const auto& file : std::filesystem::directory_iterator(here.parent_path()))
    if (file.path().extension() == ".cpp" && file.path().filename() != here.filename())
      all << std::ifstream(file.path()).rdbuf();
  return std::regex_replace(all.str(), std::regex("\\\\n"), " ");
}

/// Whether an instruction begins with the name, or a table of instructions has it.
bool is_in(const std::string& text, std::string_view name) {
  const std::string n(name);
  return std::regex_search(text, std::regex("\\b" + n + "(\\.[a-zA-Z]|;| %)|\"" + n + "\""));
}

}  // namespace

TEST_CASE("every instruction that the emulator knows is in a test") {
  using namespace emulator::ptx;
  const std::string text = tests();
  std::vector<std::string_view> names = {"bra", "brx", "call", "ret", "exit"};
  for (const auto family : {arithmetic_opcodes(), real_opcodes(), bit_opcodes(), comparison_opcodes(),
                            conversion_opcodes(), memory_opcodes(), meeting_opcodes()})
    for (const opcode& o : family) names.push_back(o.name);
  for (const std::string_view name : names) {
    CAPTURE(name);
    CHECK(is_in(text, name));
  }
}

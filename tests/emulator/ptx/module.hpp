// SPDX-License-Identifier: Apache-2.0
#pragma once
// The text of a PTX module as functions, variables and statements; nothing is looked up yet.
#include <map>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "scalar.hpp"

namespace emulator::ptx {

/// What the text of a module has wrong, or the emulator does not know.
struct refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};
[[noreturn]] inline void refuse(int line, const std::string& what) {
  throw refusal("PTX line " + std::to_string(line) + ": " + what);
}

enum class space : std::uint8_t { generic, global, constant, shared, local, param, reg };

/// A variable in memory, a parameter, or registers: `%r<8>` are eight of that name with a number behind it.
struct variable {
  space where = space::reg;
  scalar type = scalar::none;
  std::size_t alignment = 1;
  std::size_t count = 1;  ///< of elements; 0 where the launch says how many
  bool several = false;   ///< a family of registers
  bool external = false;
  std::string_view name, initializer;
  int line = 0;

  std::size_t bytes() const { return count * size_of(type); }
};

/// `@!p add.s32 d, a, b` has the words add and s32, and three operands.
struct instruction {
  int line = 0;
  std::string_view text, guard;
  bool unless = false;
  std::vector<std::string_view> words, operands;

  std::string_view name() const { return words.front(); }
  bool has(std::string_view modifier) const {
    for (std::size_t w = 1; w < words.size(); ++w)
      if (words[w] == modifier) return true;
    return false;
  }
};

struct label {
  std::string_view name;
};
struct scope {
  bool begins;
};
/// `name: .branchtargets a, b;`
struct branch_targets {
  std::string_view name;
  std::vector<std::string_view> labels;
};

using statement = std::variant<instruction, variable, label, scope, branch_targets>;

struct function {
  std::string_view name;
  bool is_kernel = false, is_defined = false;
  std::vector<variable> results, parameters;
  std::vector<statement> body;
  unsigned most_threads = 1024;  ///< in a block
};

/// Throws refusal where the text cannot be read.
class module {
 public:
  explicit module(std::string text);
  module(const module&) = delete;
  module& operator=(const module&) = delete;

  const std::map<std::string_view, function>& functions() const { return functions_; }
  const std::vector<variable>& variables() const { return variables_; }

 private:
  friend class parser;

  std::string text_;
  std::map<std::string_view, function> functions_;
  std::vector<variable> variables_;
};

std::string_view trimmed(std::string_view s);
/// With a blank for whatever space there is between words.
std::string one_line(std::string_view s);
/// Cut at commas outside of brackets, and trimmed.
std::vector<std::string_view> split_list(std::string_view s);
/// The bits of a number: decimal, hexadecimal, or a floating-point number as 0f or 0d and its bits.
bool read_number(std::string_view s, std::uint64_t& bits);

}  // namespace emulator::ptx

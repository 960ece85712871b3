// SPDX-License-Identifier: Apache-2.0
#pragma once
// From instructions to operations: names become places in the registers of a warp.
#include <map>
#include <optional>
#include <span>

#include "program.hpp"

namespace emulator::ptx {

/// Knows the names of a kernel and of the functions that became part of it.
class encoder {
 public:
  encoder(const module& m, program& p) : module_(m), program_(p) {}

  void encode(const function& kernel);

  // For what decodes one instruction:

  /// A register of that size; `_` is one that nobody reads.
  slot destination(std::string_view name, std::size_t bytes);
  /// A register of that size, a number, a special register, or the address of a variable.
  slot source(std::string_view name, std::size_t bytes);
  /// The operands of `i` in turn: the destination, then the sources, each of so many bytes.
  void take(const instruction& i, operation& o, std::initializer_list<std::size_t> bytes);
  slot predicate(std::string_view name);
  /// Of the register, in bytes; 0 for what is none, or a predicate.
  std::size_t width(std::string_view name) const;
  bool is_predicate(std::string_view name) const;
  slot constant(std::uint64_t bits, std::size_t bytes);
  slot scratch(std::size_t bytes) { return new_slot(bytes); }

  struct address {
    space where;  ///< in which a named variable lies; generic for a register
    slot base;
    std::int64_t offset;
  };
  /// Of an operand [name + number].
  address address_in(std::string_view operand, space said);
  /// Where `base` + offset lies among the kernel's parameters, if that is known and they hold so many bytes
  /// from there on.
  std::optional<std::int64_t> parameter_at(slot base, std::int64_t offset, std::size_t bytes) const;
  /// An operation before the one that is decoded.
  void append(const operation& o) { program_.code.push_back(o); }
  /// How many functions the instruction is in: 1 in the kernel itself.
  std::size_t depth() const { return frames_.size(); }
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  struct memory_name {
    space where;
    std::int64_t offset;
  };
  struct reg {
    slot where;
    scalar type;
  };
  /// Names between braces.
  struct scope_names {
    std::map<std::string_view, scalar> families;  ///< whose names end with a number
    std::map<std::string_view, reg> registers;
    std::map<std::string_view, memory_name> memory;
    std::map<std::string_view, std::uint32_t> labels;
    std::map<std::string_view, std::vector<std::string_view>> label_lists;
    std::vector<std::pair<std::uint32_t, std::string_view>> jumps;  ///< operations and where they go
  };
  /// A function that is being encoded; the kernel is the first one.
  struct frame {
    const function* what;
    std::vector<scope_names> scopes{1};
    std::vector<std::uint32_t> returns{};  ///< jumps to the end, where the caller goes on
  };

  slot new_slot(std::size_t bytes);
  slot special_register(std::string_view name, std::size_t bytes);
  slot address_of(std::string_view name, std::size_t bytes);
  const reg* find_register(std::string_view name);
  const memory_name* find_memory(std::string_view name) const;
  scope_names& innermost() { return frames_.back().scopes.back(); }

  void encode_body(const function& f);
  void add(const variable& v);
  void add(const instruction& i);
  void add(const label& l);
  void add(const scope& s);
  void add(const branch_targets& t);
  void add_branch(const instruction& i, operation o);
  void add_call(const instruction& i);
  void add_builtin(std::string_view name, const std::vector<memory_name>& results,
                   const std::vector<memory_name>& arguments);
  std::uint32_t here() const { return static_cast<std::uint32_t>(program_.code.size()); }

  const module& module_;
  program& program_;
  std::vector<frame> frames_;
  std::map<std::pair<std::uint64_t, std::size_t>, slot> constants_;
  std::map<const special*, slot> specials_;
  std::map<std::string_view, std::int64_t> shared_;  ///< variables of the module
  std::vector<std::size_t> behind_shared_;           ///< constants that are where launches add shared memory
  std::size_t shared_alignment_ = 16;
  const instruction* now_ = nullptr;
};

/// Decodes the instructions of one name.
struct opcode {
  std::string_view name;
  void (*decode)(encoder& e, const instruction& i, operation& o);
};
std::span<const opcode> arithmetic_opcodes();
std::span<const opcode> real_opcodes();
std::span<const opcode> bit_opcodes();
std::span<const opcode> comparison_opcodes();
std::span<const opcode> conversion_opcodes();
std::span<const opcode> memory_opcodes();
std::span<const opcode> meeting_opcodes();

/// The last word of an instruction as a type.
inline scalar type_of(const instruction& i) { return scalar_named(i.words.back()); }

}  // namespace emulator::ptx

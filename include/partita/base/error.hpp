// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Exception types. Messages name the operands and their shapes, or the file and line.

#include <concepts>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

namespace partita {

/// Base of all exceptions thrown by partita.
struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Incompatible shapes, blockings or meshes.
struct shape_error : error {
  using error::error;
};

/// An invalid mesh, replication factor or policy name.
struct mesh_error : error {
  using error::error;
};

/// Ranks disagree about a collective operation, or the transport failed.
struct communication_error : error {
  using error::error;
};

/// Thrown on the other ranks when one rank fails; carries the message of the rank that failed first.
struct poisoned_error : communication_error {
  using communication_error::communication_error;
};

/// A device runtime call failed, or the requested device does not exist; the message names the call.
struct device_error : error {
  using error::error;
};

/// Buffers would exceed the budget of their place; the message says how much is needed.
struct budget_error : error {
  using error::error;
  budget_error(const std::string& message, std::size_t window) : error(message), least_window(window) {}

  /// Bytes of a window of near memory that holds what an operation on far operands needs; 0 where it is not
  /// the window that is too small.
  std::size_t least_window = 0;
};

/// An unusable file or a bad value in one; the message names the file.
struct input_error : error {
  using error::error;
};

namespace base {

/// One piece of an error message: text, a number, or anything with to_string. Non-owning: the source must
/// outlive it.
class sentence_piece {
 public:
  sentence_piece(const char* text) : sentence_piece(std::string_view(text)) {}
  sentence_piece(const std::string& text) : sentence_piece(std::string_view(text)) {}
  sentence_piece(std::string_view text)
      : value_(text.data()), number_(static_cast<long long>(text.size())), append_(&append_text) {}
  template <std::integral Number>
  sentence_piece(Number number) : number_(static_cast<long long>(number)), append_(&append_number) {}
  template <class T>
  requires requires(const T& value) { to_string(value); }
  sentence_piece(const T& value)
      : value_(&value), append_([](const sentence_piece& piece, std::string& sentence) {
          sentence += to_string(*static_cast<const T*>(piece.value_));
        }) {}

  void append_to(std::string& sentence) const { append_(*this, sentence); }

 private:
  static void append_text(const sentence_piece& piece, std::string& sentence) {
    sentence.append(static_cast<const char*>(piece.value_), static_cast<std::size_t>(piece.number_));
  }
  static void append_number(const sentence_piece& piece, std::string& sentence) {
    sentence += std::to_string(piece.number_);
  }

  const void* value_ = nullptr;
  long long number_ = 0;  ///< the number, or the length of the text
  void (*append_)(const sentence_piece&, std::string&);
};

/// Concatenates the pieces.
inline std::string sentence_of(std::initializer_list<sentence_piece> pieces) {
  std::string sentence;
  for (const sentence_piece& piece : pieces) piece.append_to(sentence);
  return sentence;
}

/// Throws Error with the concatenated pieces as its message. Smaller at the call site than concatenating
/// strings.
template <class Error>
[[noreturn]] void throw_error(std::initializer_list<base::sentence_piece> pieces) {
  throw Error(base::sentence_of(pieces));
}

}  // namespace base

}  // namespace partita

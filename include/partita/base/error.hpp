// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Every error of the library is one of these types; its message names the operands and their shapes, or the
/// file.

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

/// Shapes, blockings or meshes of operands that do not fit together.
struct shape_error : error {
  using error::error;
};

/// A mesh that does not fill its ranks, a replication that does not divide them, a policy nobody knows.
struct mesh_error : error {
  using error::error;
};

/// Ranks disagree about a collective operation, or the transport failed.
struct communication_error : error {
  using error::error;
};

/// A rank left because another rank failed; the message is that of the rank that failed first.
struct poisoned_error : communication_error {
  using communication_error::communication_error;
};

/// A call of a device's runtime failed, or a device that was asked for is not there; the message names the
/// call.
struct device_error : error {
  using error::error;
};

/// A file or a value in it that cannot be used; the message names the file.
struct input_error : error {
  using error::error;
};

namespace base {

/// A piece of a sentence: a text, a number, or what to_string takes. It refers to what it was made from,
/// which must live as long.
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
  long long number_ = 0;  ///< itself, or the size of a text
  void (*append_)(const sentence_piece&, std::string&);
};

/// The pieces, one after another.
inline std::string sentence_of(std::initializer_list<sentence_piece> pieces) {
  std::string sentence;
  for (const sentence_piece& piece : pieces) piece.append_to(sentence);
  return sentence;
}

}  // namespace base

/// Throws an Error that says this. Where an error is thrown, it takes less code than a sum of strings.
template <class Error>
[[noreturn]] void throw_error(std::initializer_list<base::sentence_piece> pieces) {
  throw Error(base::sentence_of(pieces));
}

}  // namespace partita

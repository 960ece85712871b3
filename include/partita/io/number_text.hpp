// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Numbers in text, whatever the locale. The text ends with '\n', so that scanning needs no other bound.

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "partita/base/index.hpp"

namespace partita::io::detail {

/// Skips blanks and tabs; returns whether there were any.
inline bool skip_blanks(const char*& at) {
  const char* const begin = at;
  while (*at == ' ' || *at == '\t') ++at;
  return at != begin;
}

/// Whether the line ends here, with LF or CRLF.
inline bool at_line_end(const char* at) { return *at == '\n' || (*at == '\r' && at[1] == '\n'); }

/// Whether a line of an edge list that begins at `at` has no edge: it is empty or a comment.
inline bool has_no_edge(const char* at) {
  return *at == '#' || *at == '%' || (*at == '/' && at[1] == '/') || at_line_end(at);
}

/// Skips what separates words of an edge list: blanks, with at most one comma or semicolon among them;
/// returns whether there was any.
inline bool skip_separator(const char*& at) {
  bool any = skip_blanks(at);
  if (*at == ',' || *at == ';') {
    any = true, ++at;
    skip_blanks(at);
  }
  return any;
}

/// The first words of a line of an edge list, at most `most`.
inline std::vector<std::string_view> words_of(std::string_view line, std::size_t most) {
  constexpr std::string_view separators = " \t,;";
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::vector<std::string_view> words;
  for (std::size_t begin = 0;
       words.size() < most && (begin = line.find_first_not_of(separators, begin)) != line.npos;) {
    const std::size_t end = std::min(line.find_first_of(separators, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

/// Whether these are column names: two or more words, none of which is a number.
inline bool are_names(const std::vector<std::string_view>& words) {
  return words.size() > 1 && std::ranges::all_of(words, [](std::string_view word) {
           const char first = word.front();
           return ('a' <= first && first <= 'z') || ('A' <= first && first <= 'Z') || first == '_' ||
                  first == '"' || first == '\'' || first == ':';
         });
}

/// Takes a whole number with an optional sign. Returns invalid_argument if there is none and
/// result_out_of_range if it does not fit.
inline std::errc take_integer(const char*& at, std::int64_t& value) {
  const bool negative = *at == '-';
  if (negative || *at == '+') ++at;
  const char* const digits = at;
  std::uint64_t magnitude = 0;
  for (unsigned digit; (digit = static_cast<unsigned>(*at) - '0') <= 9; ++at)
    magnitude = 10 * magnitude + digit;
  if (at == digits) return std::errc::invalid_argument;
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  if (at - digits > 18 &&
      (std::from_chars(digits, at, magnitude).ec != std::errc{} || magnitude > most + (negative ? 1 : 0)))
    return std::errc::result_out_of_range;
  value = static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
  return {};
}

/// Whether a decimal number that std::from_chars found out of range is too small, not too large.
inline bool is_too_small(std::string_view number) {
  const std::size_t mantissa = std::min(number.find_first_of("eE"), number.size());
  const std::size_t point = std::min(number.find('.'), mantissa), first = number.find_first_of("123456789");
  std::string_view exponent = number.substr(std::min(mantissa + 1, number.size()));
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  std::int64_t power = 0;
  if (std::from_chars(exponent.data(), exponent.data() + exponent.size(), power).ec ==
      std::errc::result_out_of_range)
    return exponent.starts_with('-');
  return power < static_cast<std::int64_t>(first) - static_cast<std::int64_t>(point);
}

/// "18446744073709551615 is larger than 9223372036854775807", for a whole number that take_integer found out
/// of range.
inline std::string beyond_range(std::string_view number) {
  using limits = std::numeric_limits<std::int64_t>;
  return std::string(number.substr(0, 40)) + (number.size() > 40 ? "..." : "") + " is " +
         (number.starts_with('-') ? "smaller than " + std::to_string(limits::min())
                                  : "larger than " + std::to_string(limits::max()));
}

/// The same for the first whole number in the line that is too large for an index; empty if there is none.
inline std::string too_large(std::string_view line) {
  for (std::size_t begin = 0; (begin = line.find_first_of("0123456789", begin)) != line.npos;) {
    const std::size_t end = std::min(line.find_first_not_of("0123456789", begin), line.size());
    const std::string digits(line.substr(begin, end - begin));
    const std::string text = digits + '\n';
    const char* at = text.data();
    std::int64_t value = 0;
    if (take_integer(at, value) == std::errc::result_out_of_range) return beyond_range(digits);
    begin = end;
  }
  return {};
}

/// The end of an exponent in Fortran's form, D+02, that begins at `at`; `at` if there is none.
inline const char* fortran_exponent(const char* at, const char* end) {
  if (at == end || (*at != 'd' && *at != 'D')) return at;
  const auto is_digit = [](char c) { return '0' <= c && c <= '9'; };
  const char* digits = at + 1;
  if (digits != end && (*digits == '+' || *digits == '-')) ++digits;
  const char* const rest = std::find_if_not(digits, end, is_digit);
  return rest == digits || (!is_digit(at[-1]) && at[-1] != '.') ? at : rest;
}

/// Takes a decimal number with an optional sign and an optional exponent with e, E, d or D, or inf, infinity
/// or nan in any case; rounded to nearest, and to 0 if it is too small. `end`: of the text. Returns as
/// take_integer does.
template <std::floating_point T>
std::errc take_real(const char*& at, const char* end, T& value) {
  const bool plus = *at == '+';
  if (plus && *++at == '-') return std::errc::invalid_argument;
  auto [rest, status] = std::from_chars(at, end, value);
  if (status != std::errc::invalid_argument && rest != end && (*rest == 'd' || *rest == 'D'))
    if (const char* const whole = fortran_exponent(rest, end); whole != rest) {
      std::string text(at, whole);
      text[static_cast<std::size_t>(rest - at)] = 'e';
      const char* other = text.data();
      at = whole;
      return take_real(other, other + text.size(), value);
    }
  const std::string_view number(at, static_cast<std::size_t>(rest - at));
  if (number.ends_with(')')) return std::errc::invalid_argument;  // nan(...)
  at = rest;
  if (status != std::errc::result_out_of_range || !is_too_small(number)) return status;
  value = number.starts_with('-') ? -T{0} : T{0};
  return {};
}

}  // namespace partita::io::detail

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <sstream>
#include <string_view>

#include "matrix_file.hpp"
#include "partita/base/error.hpp"

namespace {

using partita::global_index;

/// The lines of a text, numbered from 1.
struct lines {
  std::istream& stream;
  std::string name, line;
  std::size_t number = 0;

  bool next() {
    ++number;
    return static_cast<bool>(std::getline(stream, line));
  }
  /// The next line that is neither empty nor a comment.
  bool next_of_data() {
    while (next())
      if (line.find_first_not_of(" \t\r") != line.npos && line.front() != '%') return true;
    if (stream.bad()) throw partita::input_error(name + ": cannot be read");
    return false;
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw partita::input_error(name + ":" + std::to_string(number) + ": " + what);
  }
  [[noreturn]] void expected(const std::string& what) const {
    std::string shown = line.substr(0, 40);
    std::ranges::replace_if(
        shown, [](char c) { return c < ' ' || c > '~'; }, '?');
    fail("expected " + what + ", found \"" + shown + "\"");
  }
};

/// Removes one number from the front of `rest`; false if there is none.
template <class T>
bool take(std::string_view& rest, T& value) {
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  if (rest.starts_with('+')) rest.remove_prefix(1);
  const auto [end, status] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return status == std::errc{} && (rest.empty() || rest.front() == ' ' || rest.front() == '\t');
}

bool is_blank(std::string_view rest) { return rest.find_first_not_of(" \t\r") == rest.npos; }

std::string_view without_return(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

struct banner {
  std::string mark, object, format, field, symmetry;
};

banner read_banner(lines& text) {
  text.next();
  std::string lower = text.line;
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  banner b;
  std::istringstream(lower) >> b.mark >> b.object >> b.format >> b.field >> b.symmetry;
  if (b.mark != "%%matrixmarket" || b.object != "matrix")
    text.expected("%%MatrixMarket matrix coordinate FIELD SYMMETRY");
  const auto one_of = [&](const std::string& word, std::initializer_list<const char*> known) {
    std::string all;
    for (const char* k : known) {
      if (word == k) return;
      all += (all.empty() ? "" : ", ") + std::string(k);
    }
    text.fail("a matrix that is \"" + word + "\" is not read, only " + all);
  };
  one_of(b.format, {"coordinate"});
  one_of(b.field, {"real", "double", "integer", "pattern"});
  one_of(b.symmetry, {"general", "symmetric", "skew-symmetric"});
  return b;
}

}  // namespace

matrix_file read_matrix_market(std::istream& stream, const std::string& name) {
  lines text{stream, name, {}};
  const banner b = read_banner(text);
  matrix_file a;
  a.path = name;
  a.first = 1;
  global_index entries = 0;
  if (!text.next_of_data()) text.fail("expected the rows, columns and entries of the matrix");
  std::string_view rest = without_return(text.line);
  if (!take(rest, a.shape.rows) || !take(rest, a.shape.cols) || !take(rest, entries) || !is_blank(rest) ||
      a.shape.rows < 0 || a.shape.cols < 0 || entries < 0)
    text.expected("the rows, columns and entries of the matrix");
  const bool general = b.symmetry == "general";
  if (!general && a.shape.rows != a.shape.cols)
    text.fail("a " + b.symmetry + " matrix cannot be " + to_string(a.shape));
  for (global_index e = 0; e < entries; ++e) {
    if (!text.next_of_data())
      text.fail("expected " + std::to_string(entries) + " entries, found " + std::to_string(e));
    partita::triplet<double> t{0, 0, 1};
    rest = without_return(text.line);
    if (!take(rest, t.row) || !take(rest, t.col) || (b.field != "pattern" && !take(rest, t.value)) ||
        !is_blank(rest))
      text.expected(b.field == "pattern" ? "a row and a column" : "a row, a column and a value");
    if (t.row < 1 || t.row > a.shape.rows || t.col < 1 || t.col > a.shape.cols)
      text.fail("entry (" + std::to_string(t.row) + ", " + std::to_string(t.col) +
                ") is outside a matrix of " + to_string(a.shape));
    if (!std::isfinite(t.value)) text.expected("a finite value");
    --t.row, --t.col;
    const bool mirrored = !general && t.row != t.col;
    if (b.symmetry == "skew-symmetric" && !mirrored)
      text.fail("a skew-symmetric matrix has no entries on its diagonal");
    a.entries.push_back(t);
    if (mirrored) a.entries.push_back({t.col, t.row, b.symmetry == "symmetric" ? t.value : -t.value});
  }
  if (text.next_of_data()) text.fail("expected no more than " + std::to_string(entries) + " entries");
  return a;
}

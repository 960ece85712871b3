// SPDX-License-Identifier: Apache-2.0
#include "module.hpp"

#include <cctype>
#include <charconv>
#include <limits>

namespace emulator::ptx {

std::string one_line(std::string_view s) {
  std::string text;
  for (const char c : s) {
    const bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!space)
      text += c;
    else if (!text.empty() && text.back() != ' ')
      text += ' ';
  }
  return text;
}
std::string_view trimmed(std::string_view s) {
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.front()))) s.remove_prefix(1);
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.back()))) s.remove_suffix(1);
  return s;
}

std::vector<std::string_view> split_list(std::string_view s) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < s.size(); ++at) {
    const char c = s[at];
    depth += (c == '[' || c == '{' || c == '(') - (c == ']' || c == '}' || c == ')');
    if (c == ',' && depth == 0) {
      parts.push_back(trimmed(s.substr(begin, at - begin)));
      begin = at + 1;
    }
  }
  if (const std::string_view last = trimmed(s.substr(begin)); !last.empty()) parts.push_back(last);
  return parts;
}

bool read_number(std::string_view s, std::uint64_t& bits) {
  const bool negative = s.starts_with('-');
  if (negative) s.remove_prefix(1);
  if (s.empty() || !std::isdigit(static_cast<unsigned char>(s[0]))) return false;
  const auto read = [&](std::string_view digits, int base) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits, base);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  const char kind = s.size() > 1 ? static_cast<char>(std::tolower(static_cast<unsigned char>(s[1]))) : '0';
  if (s[0] == '0' && (kind == 'f' || kind == 'd')) {
    if (!read(s.substr(2), 16)) return false;
    if (negative) bits ^= std::uint64_t{1} << (kind == 'f' ? 31 : 63);
    return true;
  }
  if (s.ends_with('U')) s.remove_suffix(1);
  const int base = s[0] == '0' && kind == 'x'    ? 16
                   : s[0] == '0' && kind == 'b'  ? 2
                   : s.size() > 1 && s[0] == '0' ? 8
                                                 : 10;
  if (!read(s.substr(base == 16 || base == 2 ? 2 : 0), base)) return false;
  if (negative) bits = ~bits + 1;
  return true;
}

namespace {

std::vector<std::string_view> split_words(std::string_view s) {
  std::vector<std::string_view> words;
  for (s = trimmed(s); !s.empty(); s = trimmed(s)) {
    std::size_t end = 0;
    while (end < s.size() && !std::isspace(static_cast<unsigned char>(s[end]))) ++end;
    words.push_back(s.substr(0, end));
    s.remove_prefix(end);
  }
  return words;
}

space space_named(std::string_view word) {
  if (word == ".global") return space::global;
  if (word == ".const") return space::constant;
  if (word == ".shared") return space::shared;
  if (word == ".local") return space::local;
  if (word == ".param") return space::param;
  if (word == ".reg") return space::reg;
  return space::generic;
}

std::size_t read_size(std::string_view s, int line) {
  std::uint64_t value = 0;
  if (!read_number(s, value)) refuse(line, "'" + std::string(s) + "' is no number");
  return value;
}

/// `.shared .align 8 .b8 name[16] = {...}`; where several names follow, one variable each.
std::vector<variable> read_declaration(std::string_view s, int line) {
  variable v;
  v.line = line;
  std::size_t equal = s.find('=');
  if (equal != std::string_view::npos) v.initializer = trimmed(s.substr(equal + 1));
  std::string_view rest = trimmed(s.substr(0, equal));
  while (rest.starts_with('.')) {
    std::size_t end = 0;
    while (end < rest.size() && !std::isspace(static_cast<unsigned char>(rest[end]))) ++end;
    const std::string_view word = rest.substr(0, end);
    rest = trimmed(rest.substr(end));
    if (word == ".align") {
      const std::vector<std::string_view> words = split_words(rest);
      v.alignment = read_size(words.at(0), line);
      rest = trimmed(rest.substr(words[0].size()));
    } else if (word == ".extern") {
      v.external = true;
    } else if (const scalar type = scalar_named(word.substr(1)); type != scalar::none) {
      v.type = type;
      v.alignment = std::max(v.alignment, size_of(type));
    } else if (word == ".ptr" || word == ".visible" || word == ".weak" || word == ".common") {
    } else if (const space where = space_named(word); where != space::generic) {
      if (v.where == space::reg) v.where = where;  // `.param .u64 .ptr .global` is a parameter
    } else {
      refuse(line, "the declaration " + std::string(trimmed(s)));
    }
  }
  std::vector<variable> all;
  for (std::string_view name : split_list(rest)) {
    variable one = v;
    if (const auto open = name.find('['); open != std::string_view::npos) {
      for (std::string_view bounds = name.substr(open); !bounds.empty();) {
        const auto close = bounds.find(']');
        const std::string_view bound = trimmed(bounds.substr(1, close - 1));
        one.count *= bound.empty() ? 0 : read_size(bound, line);
        bounds = trimmed(bounds.substr(close + 1));
      }
      name = trimmed(name.substr(0, open));
    } else if (const auto family = name.find('<'); family != std::string_view::npos) {
      one.several = true;
      name = name.substr(0, family);
    }
    one.name = name;
    all.push_back(one);
  }
  return all;
}

instruction read_instruction(std::string_view s, int line) {
  instruction i;
  i.line = line;
  i.text = s;
  const auto cut_word = [&] {
    std::size_t end = 0;
    while (end < s.size() && !std::isspace(static_cast<unsigned char>(s[end]))) ++end;
    const std::string_view word = s.substr(0, end);
    s = trimmed(s.substr(end));
    return word;
  };
  if (s.starts_with('@')) {
    i.guard = cut_word().substr(1);
    if (i.guard.starts_with('!')) {
      i.unless = true;
      i.guard.remove_prefix(1);
    }
  }
  for (std::string_view name = cut_word();;) {
    std::size_t dot = 0;  // `shared::cta` is one word
    while (dot < name.size() && name[dot] != '.') ++dot;
    i.words.push_back(name.substr(0, dot));
    if (dot == name.size()) break;
    name.remove_prefix(dot + 1);
  }
  i.operands = split_list(s);
  return i;
}

}  // namespace

/// Cuts the text into statements: what ends at ';', a brace that stands alone, or a label.
class parser {
 public:
  explicit parser(module& m) : m_(m), text_(m.text_) {}

  void run() {
    for (skip(); at_ < text_.size(); skip()) {
      if (take_line_directive()) continue;
      const std::size_t begin = at_;
      const int line = line_;
      const char end = to_end_of_statement();
      const std::string_view s = trimmed(text_.substr(begin, at_ - begin));
      if (s.find(".entry") != std::string_view::npos || is_function(s)) {
        read_function(s, line, end == '{');
      } else if (end == ';') {
        if (!s.empty()) add_variables(s, line);
        ++at_;
      } else {
        refuse(line, "expected a declaration, not '" + std::string(s.substr(0, 60)) + "'");
      }
    }
  }

 private:
  static bool is_function(std::string_view s) {
    for (const std::string_view word : split_words(s.substr(0, 80)))
      if (word == ".func") return true;
    return false;
  }

  /// Passes over blanks and comments.
  void skip() {
    while (at_ < text_.size()) {
      if (text_[at_] == '\n') ++line_;
      if (std::isspace(static_cast<unsigned char>(text_[at_]))) {
        ++at_;
      } else if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_, 2) == "/*") {
        const std::size_t end = std::min(text_.find("*/", at_), text_.size() - 2) + 2;
        for (; at_ < end; ++at_) line_ += text_[at_] == '\n';
      } else {
        return;
      }
    }
  }
  /// Directives that end with their line.
  bool take_line_directive() {
    for (const std::string_view name : {".version", ".target", ".address_size", ".file", ".loc", ".section"})
      if (text_.substr(at_).starts_with(name) &&
          std::isspace(static_cast<unsigned char>(text_.substr(at_ + name.size())[0]))) {
        if (name == ".section") refuse(line_, "debugging sections: compile without -G");
        at_ = std::min(text_.find('\n', at_), text_.size());
        return true;
      }
    return false;
  }
  /// Stops before what ends a statement, which it returns: one of ; { } : or 0. Braces within are lists.
  char to_end_of_statement() {
    int depth = 0;
    bool assigned = false, begun = false;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (c == '/' && (text_.substr(at_, 2) == "//" || text_.substr(at_, 2) == "/*"))
        refuse(line_, "a comment within a statement");
      if (c == '"') at_ = std::min(text_.find('"', at_ + 1), text_.size());
      assigned |= c == '=';
      if (c == '{' && depth == 0 && !assigned && !(begun && in_body_)) return c;
      if (c == '}' && depth == 0) return c;
      depth += (c == '{' || c == '(' || c == '[') - (c == '}' || c == ')' || c == ']');
      if (depth == 0 && c == ';') return c;
      if (depth == 0 && c == ':' && in_body_) {
        if (at_ + 1 < text_.size() && text_[at_ + 1] == ':') {  // within a word
          ++at_;
          continue;
        }
        return c;
      }
      begun |= !std::isspace(static_cast<unsigned char>(c));
    }
    return 0;
  }

  void add_variables(std::string_view s, int line) {
    if (s.starts_with(".pragma") || s.starts_with(".alias")) return;
    for (variable& v : read_declaration(s, line)) m_.variables_.push_back(v);
  }

  static std::vector<variable> read_parameters(std::string_view list, int line) {
    std::vector<variable> all;
    for (const std::string_view one : split_list(list))
      for (variable& v : read_declaration(one, line)) all.push_back(v);
    return all;
  }

  void read_function(std::string_view header, int line, bool has_body) {
    function f;
    const std::size_t entry = header.find(".entry");
    f.is_kernel = entry != std::string_view::npos;
    std::string_view rest = trimmed(header.substr(f.is_kernel ? entry + 6 : header.find(".func") + 5));
    const auto cut_list = [&] {
      if (!rest.starts_with('(')) return std::string_view{};
      const std::size_t close = rest.find(')');
      const std::string_view list = rest.substr(1, close - 1);
      rest = trimmed(rest.substr(close + 1));
      return list;
    };
    f.results = read_parameters(cut_list(), line);
    std::size_t end = 0;
    while (end < rest.size() && rest[end] != '(' && !std::isspace(static_cast<unsigned char>(rest[end])))
      ++end;
    f.name = rest.substr(0, end);
    rest = trimmed(rest.substr(end));
    f.parameters = read_parameters(cut_list(), line);
    if (const auto most = rest.find(".maxntid"); most != std::string_view::npos) {
      f.most_threads = 1;
      std::string_view sizes = rest.substr(most + 8);
      sizes = sizes.substr(0, sizes.find('.'));
      for (const std::string_view size : split_list(sizes))
        f.most_threads *= static_cast<unsigned>(read_size(size, line));
    }
    ++at_;
    f.is_defined = has_body;
    if (has_body) read_body(f);
    if (has_body || !m_.functions_.contains(f.name)) m_.functions_[f.name] = std::move(f);
  }

  void read_body(function& f) {
    in_body_ = true;
    int depth = 1;
    for (skip(); depth > 0; skip()) {
      if (at_ >= text_.size()) refuse(line_, "the text ends within " + std::string(f.name));
      if (take_line_directive()) continue;
      const std::size_t begin = at_;
      const int line = line_;
      const char end = to_end_of_statement();
      const std::string_view s = trimmed(text_.substr(begin, at_ - begin));
      ++at_;
      if (end == '{' || end == '}') {
        if (!s.empty()) refuse(line, "expected ';' behind " + std::string(s));
        depth += end == '{' ? 1 : -1;
        if (depth > 0) f.body.push_back(scope{end == '{'});
      } else if (end == ':') {
        read_label(f, s);
      } else {
        read_statement(f, s, line);
      }
    }
    in_body_ = false;
  }
  /// A label may belong to a list of labels.
  void read_label(function& f, std::string_view name) {
    skip();
    if (!text_.substr(at_).starts_with(".branchtargets")) return f.body.push_back(label{name});
    const std::size_t end = text_.find(';', at_);
    f.body.push_back(branch_targets{name, split_list(text_.substr(at_ + 14, end - at_ - 14))});
    at_ = end + 1;
  }
  static void read_statement(function& f, std::string_view s, int line) {
    if (s.empty() || s.starts_with(".pragma")) return;
    if (!s.starts_with('.')) return f.body.push_back(read_instruction(s, line));
    for (variable& v : read_declaration(s, line)) f.body.push_back(v);
  }

  module& m_;
  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool in_body_ = false;
};

module::module(std::string text) :text_(std::move(text)) { parser(*this).run(); }

}  // namespace emulator::ptx

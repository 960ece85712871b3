// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The little JSON that benchmarks without third-party libraries write.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "partita/base/error.hpp"

namespace bench {

/// An object, as text, that grows by one member a call. Names and texts need no escapes.
class json_object {
 public:
  /// null for what is no finite number.
  json_object& add(const std::string& name, double value) {
    if (!std::isfinite(value)) return raw(name, "null");
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", value);
    return raw(name, text);
  }
  json_object& add(const std::string& name, std::int64_t value) { return raw(name, std::to_string(value)); }
  json_object& add(const std::string& name, const std::string& value) { return raw(name, '"' + value + '"'); }
  json_object& add(const std::string& name, const json_object& value) { return raw(name, value.text()); }
  json_object& add(const std::string& name, const std::vector<json_object>& list) {
    std::string text;
    for (const json_object& value : list) text += (text.empty() ? "\n " : ",\n ") + value.text();
    return raw(name, '[' + text + ']');
  }

  std::string text() const { return '{' + members_ + '}'; }

 private:
  json_object& raw(const std::string& name, const std::string& value) {
    members_ += (members_.empty() ? "\"" : ", \"") + name + "\": " + value;
    return *this;
  }

  std::string members_;
};

/// Writes the file anew; nothing without a name. Throws error when it cannot be written.
inline void write_json(const std::string& file, const json_object& value) {
  if (file.empty()) return;
  std::ofstream out(file);
  out << value.text() << '\n';
  if (!out.flush()) throw partita::error("cannot write " + file);
}

}  // namespace bench

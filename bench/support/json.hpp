// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The JSON that benchmarks write.

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "partita/base/error.hpp"

namespace bench {

using json = nlohmann::ordered_json;

/// Writes the file anew; nothing without a name. Numbers that are not finite become null. Throws error when
/// it cannot be written.
inline void write_json(const std::string& file, const json& value) {
  if (file.empty()) return;
  std::ofstream out(file);
  out << value.dump(1) << '\n';
  if (!out.flush()) throw partita::error("cannot write " + file);
}

}  // namespace bench

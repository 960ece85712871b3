// SPDX-License-Identifier: Apache-2.0
#pragma once
/// JSON output of benchmarks.

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "partita/base/error.hpp"

namespace bench {

using json = nlohmann::ordered_json;

/// Overwrites the file; does nothing without a file name. Non-finite numbers become null. Throws error when
/// the file cannot be written.
inline void write_json(const std::string& file, const json& value) {
  if (file.empty()) return;
  std::ofstream out(file);
  out << value.dump(1) << '\n';
  if (!out.flush()) throw partita::error("cannot write " + file);
}

}  // namespace bench

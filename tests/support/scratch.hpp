// SPDX-License-Identifier: Apache-2.0
#pragma once
// A folder for the files of a test, and what reading them complains of.
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <random>

#include "partita/base/error.hpp"

namespace test_support {

using namespace partita;

namespace fs = std::filesystem;

/// A folder that nobody else has, gone at the end.
struct scratch {
  fs::path dir = fs::temp_directory_path() / ("partita_test_" + std::to_string(std::random_device{}()));
  scratch() { fs::create_directories(dir); }
  scratch(const scratch&) = delete;
  ~scratch() { fs::remove_all(dir); }
  fs::path operator/(const char* name) const { return dir / name; }
};

inline void write_text(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string read_text(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// What `f` throws, less the folder in front.
template <class F>
std::string complaint(const fs::path& dir, F&& f) {
  try {
    f();
    return "";
  } catch (const partita::input_error& e) {
    const std::string text = e.what();
    REQUIRE(text.starts_with(dir.string()));
    return text.substr(dir.string().size() + 1);
  }
}

}  // namespace test_support

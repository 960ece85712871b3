// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the fuzzers give to the readers of partita/io, and what they ask of them.
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "partita/base/error.hpp"

namespace fuzz {

using input = std::span<const std::byte>;

/// Gives an input to a reader and ends normally whether the reader takes it or throws input_error; any other
/// exception is a finding.
using target = void(input);
target blocked, checkpoint, csv, dataset, edge_list, gzip, matrix_market, metis_graph, npy, npy_file, npz,
    ogb, parts, safetensors;

/// Calls the target and throws std::logic_error where it has allocated more than `size` bytes call for: at
/// once 16 * size and 16 KiB, together twice that. Of what is packed, `size` is what it may unpack to.
void check(target* read, input bytes, std::size_t size);

/// The target of this name and the size that an input of so many bytes calls for; null if there is none.
struct named_target {
  const char* name;
  target* read;
  std::size_t (*size)(std::size_t bytes);
};
std::span<const named_target> targets();

inline std::string_view text_of(input bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

/// Whether read() took its input.
bool taken(const auto& read) {
  try {
    read();
    return true;
  } catch (const partita::input_error&) {
    return false;
  }
}

/// A folder that this process has for itself, gone at its end.
class scratch_folder {
 public:
  scratch_folder() { std::filesystem::create_directories(path_); }
  scratch_folder(const scratch_folder&) = delete;
  ~scratch_folder() {
    std::error_code status;
    std::filesystem::remove_all(path_, status);
  }

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

  /// Returns the path of the file, which has these bytes and no others.
  std::filesystem::path write(const std::string& name, std::string_view bytes) const {
    std::filesystem::path file = path_ / name;
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
    return file;
  }

 private:
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("partita_fuzz_" + std::to_string(std::random_device{}()));
};

}  // namespace fuzz

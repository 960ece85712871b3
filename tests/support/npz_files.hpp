// SPDX-License-Identifier: Apache-2.0
#pragma once
// Archives of .npy files, as NumPy and SciPy write them.
#include <map>
#include <zip.h>

#include "partita/io/npy.hpp"
#include "support/scratch.hpp"

namespace test_support {

using int64s = std::vector<std::int64_t>;
using bytes = std::vector<std::uint8_t>;

/// The entries of an .npz file: name and the text of a .npy file.
using entries = std::map<std::string, std::string>;

template <class T>
std::string npy_text(const std::vector<partita::global_index>& shape, const std::vector<T>& values) {
  scratch folder;
  partita::io::write_npy(folder / "x.npy", shape, values);
  return read_text(folder / "x.npy");
}

template <class T>
std::string npy_text(const std::vector<T>& values) {
  return npy_text({static_cast<partita::global_index>(values.size())}, values);
}

inline void write_npz(const fs::path& path, const entries& files) {
  int code = 0;
  zip_t* archive = zip_open(path.string().c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  REQUIRE(archive != nullptr);
  for (const auto& [name, text] : files)
    REQUIRE(zip_file_add(archive, (name + ".npy").c_str(),
                         zip_source_buffer(archive, text.data(), text.size(), 0), 0) >= 0);
  REQUIRE(zip_close(archive) == 0);
}

/// 3 x 4: (0,1) = 1, (0,3) = 2, (2,0) = 3 twice.
inline entries small_csr() {
  return {{"shape", npy_text(int64s{3, 4})},
          {"indptr", npy_text(int64s{0, 2, 2, 4})},
          {"indices", npy_text(std::vector<std::int32_t>{1, 3, 0, 0})},
          {"data", npy_text(std::vector<float>{1, 2, 3, 3})}};
}

inline std::string format_npy(const std::string& format) {
  std::string header =
      "{'descr': '|S" + std::to_string(format.size()) + "', 'fortran_order': False, 'shape': (), }\n";
  return "\x93NUMPY" + std::string{1, 0, static_cast<char>(header.size()), 0} + header + format;
}

}  // namespace test_support

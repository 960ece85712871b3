// SPDX-License-Identifier: Apache-2.0
// Gives each file of the folders to the target that has the folder's name: replay FOLDER... Exits with 1 and
// says why if one of them is a finding.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/readers.hpp"

int main(int count, char** names) {
  int files = 0, findings = 0;
  for (int k = 1; k < count; ++k) {
    const std::filesystem::path folder = names[k];
    const auto target =
        std::ranges::find(fuzz::targets(), folder.filename().string(),
                          [](const fuzz::named_target& each) { return std::string(each.name); });
    if (target == fuzz::targets().end() || !std::filesystem::is_directory(folder)) {
      std::fprintf(stderr, "replay: %s is not the folder of a reader\n", names[k]);
      return 2;
    }
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
    std::ranges::sort(paths);
    for (const std::filesystem::path& path : paths) {
      std::ifstream stream(path, std::ios::binary);
      const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
      ++files;
      try {
        fuzz::check(target->read, std::as_bytes(std::span(bytes)), target->size(bytes.size()));
      } catch (const std::exception& e) {
        ++findings;
        std::fprintf(stderr, "replay: %s: %s\n", path.c_str(), e.what());
      }
    }
  }
  std::printf("%d files, %d findings\n", files, findings);
  return findings == 0 && files > 0 ? 0 : 1;
}

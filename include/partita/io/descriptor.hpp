// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Files and folders as POSIX opens them.

#include <cerrno>
#include <dirent.h>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace partita::io::detail {

/// The result of a system call, which is repeated while signals interrupt it.
template <class Call>
auto uninterrupted(const Call& call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

/// An open file or folder.
class descriptor {
 public:
  explicit descriptor(int number) : number_(number) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  int number() const { return number_; }

  /// Whether it could be closed without an error; network file systems may report a failed write only here.
  bool close() { return ::close(std::exchange(number_, -1)) == 0 || errno == EINTR; }

 private:
  int number_;
};

/// The names in a folder, in no particular order; `status` says why it cannot be read, or nothing. (If an
/// allocation fails in libstdc++ 12's directory_iterator, it ends the process.)
inline std::vector<std::string> names_in(const std::filesystem::path& folder, std::error_code& status) {
  const auto close = [](DIR* open) { ::closedir(open); };
  std::vector<std::string> names;
  const std::unique_ptr<DIR, decltype(close)> open(::opendir(folder.c_str()), close);
  if (open != nullptr)
    while (const dirent* const entry = (errno = 0, ::readdir(open.get())))
      if (const std::string_view name = entry->d_name; name != "." && name != "..") names.emplace_back(name);
  status = std::error_code(errno, std::generic_category());
  return names;
}

}  // namespace partita::io::detail

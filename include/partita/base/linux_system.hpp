// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What partita asks of the operating system, as Linux has it. base/posix_system.hpp says what each does.

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>

#include "partita/base/posix_system.hpp"

namespace partita::base::on_linux {

using on_posix::modification_time;
using on_posix::peak_resident_bytes;

namespace detail {

/// The number after `label` and as many words, in the first KiB of a file of /proc.
inline std::optional<std::size_t> number_after(const char* file, std::string_view label, int words) {
  std::array<char, 1024> text{};
  const int f = ::open(file, O_RDONLY | O_CLOEXEC);
  if (f < 0) return std::nullopt;
  const auto size = ::read(f, text.data(), text.size());
  ::close(f);
  std::string_view left(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  const auto found = left.find(label);
  if (found == left.npos) return std::nullopt;
  left.remove_prefix(found + label.size());
  for (; words > 0; --words) left.remove_prefix(std::min(left.size(), left.find(' ') + 1));
  left.remove_prefix(std::min(left.size(), left.find_first_not_of(' ')));
  std::size_t number = 0;
  if (std::from_chars(left.data(), left.data() + left.size(), number).ec != std::errc{}) return std::nullopt;
  return number;
}

}  // namespace detail

inline std::optional<std::size_t> free_memory() {
  const auto kibibytes = detail::number_after("/proc/meminfo", "MemAvailable:", 0);
  return kibibytes ? std::optional(*kibibytes << 10) : std::nullopt;
}
inline std::optional<std::size_t> resident_file_bytes() {
  const auto pages = detail::number_after("/proc/self/statm", "", 2);  // size, resident, shared
  return pages ? std::optional(*pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) : std::nullopt;
}

inline int unnamed_file(const std::string& folder) {
#ifdef O_TMPFILE
  const int made = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (made >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return made;
#endif
  return on_posix::unnamed_file(folder);
}
inline int reserve_blocks(int file, off_t end, off_t at, off_t size) {
  int failed = 0;
  do failed = ::fallocate(file, 0, at, size);
  while (failed != 0 && errno == EINTR);
  if (failed == 0) return 0;
  return errno == EOPNOTSUPP ? on_posix::reserve_blocks(file, end, at, size) : errno;
}
inline void free_blocks(int file, off_t at, off_t size) {
  static_cast<void>(::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, size));
}

inline std::int64_t process_namespace() {
  struct stat space = {};
  return ::stat("/proc/self/ns/pid", &space) == 0 ? static_cast<std::int64_t>(space.st_ino) : 0;
}
inline int descriptor_of_process(pid_t process) {
#ifdef SYS_pidfd_open
  return static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
#else
  return -1;
#endif
}

}  // namespace partita::base::on_linux

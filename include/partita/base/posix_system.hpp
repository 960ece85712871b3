// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What partita asks of the operating system, as POSIX alone has it. All functions are local.

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

namespace partita::base::on_posix {

/// Bytes of memory that this machine can give without swapping; elsewhere than on Linux all that it has.
inline std::optional<std::size_t> free_memory() {
#ifdef _SC_PHYS_PAGES
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) return static_cast<std::size_t>(pages) * static_cast<std::size_t>(page);
#endif
  return std::nullopt;
}
/// The most memory that this process has had at a time.
inline std::size_t peak_resident_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  return static_cast<std::size_t>(usage.ru_maxrss);
#else
  return static_cast<std::size_t>(usage.ru_maxrss) << 10;
#endif
}
/// Bytes of mapped files that are resident in this process, which Linux alone reports.
inline std::optional<std::size_t> resident_file_bytes() { return std::nullopt; }
/// A descriptor of a new file of this folder that has no name, or -1 and errno.
inline int unnamed_file(const std::string& folder) {
  std::string name = folder + "/.partita-" + std::string(6, 'X');
  const int made = ::mkstemp(name.data());
  if (made >= 0) {
    ::fcntl(made, F_SETFD, FD_CLOEXEC);
    ::unlink(name.c_str());
  }
  return made;
}
/// Reserves `size` bytes from `at` on of a file that ends at `end`; returns 0 or the code of an error. Where
/// the system cannot reserve them, the file only becomes longer: writing to its mapping ends the process if
/// the disk is full then.
inline int reserve_blocks(int file, off_t end, off_t at, off_t size) {
  return ::ftruncate(file, std::max(end, at + size)) == 0 ? 0 : errno;
}
/// Gives these bytes of a file back to the disk; elsewhere than on Linux it keeps them.
inline void free_blocks(int, off_t, off_t) {}
/// When a file was written to.
inline std::timespec modification_time(const struct stat& status) {
#ifdef __APPLE__
  return status.st_mtimespec;
#else
  return status.st_mtim;
#endif
}

/// Identifies the namespace of process ids; 0 where that is not known.
inline std::int64_t process_namespace() { return 0; }
/// A descriptor that can be read once this process has ended; -1 but on Linux.
inline int descriptor_of_process(pid_t) { return -1; }

}  // namespace partita::base::on_posix

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Writes files that are never seen half written. Needs POSIX.

#include <algorithm>
#include <cerrno>
#include <concepts>
#include <cstddef>
#include <fcntl.h>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>

#include "partita/io/descriptor.hpp"
#include "partita/io/quote.hpp"

namespace partita::io {

namespace detail {

inline constexpr std::string_view unfinished_prefix = ".partita-unfinished-";

[[noreturn]] inline void fail_to_write(std::string_view name, int reason) {
  fail(name, "cannot be written (" + std::error_code(reason, std::generic_category()).message() + ")");
}

/// Writes all bytes; a call may take fewer, and some systems refuse more than 2 GiB at once.
inline void write_all(int file, std::span<const std::byte> bytes, std::string_view name) {
  while (!bytes.empty()) {
    const std::size_t most = std::min(bytes.size(), std::size_t{1} << 30);
    const auto taken = uninterrupted([&] { return ::write(file, bytes.data(), most); });
    if (taken < 0) fail_to_write(name, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(taken));
  }
}

/// Waits until the written bytes are on the disk. EINVAL: this file system has no such call.
inline bool synchronised(int file) {
  return uninterrupted([&] { return ::fsync(file); }) == 0 || errno == EINVAL;
}

/// A new file, removed by the destructor unless `become` has named it.
class unfinished_file {
 public:
  unfinished_file(const std::filesystem::path& folder, mode_t mode, std::string_view name)
      : name_(name), file_(create(folder, mode)) {}
  ~unfinished_file() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  void write(std::span<const std::byte> bytes) { write_all(file_.number(), bytes, name_); }

  /// The bytes are on the disk before the file has its name.
  void become(const std::filesystem::path& target) {
    if (!synchronised(file_.number()) || !file_.close() || ::rename(path_.c_str(), target.c_str()) != 0)
      fail_to_write(name_, errno);
    path_.clear();
  }

 private:
  int create(const std::filesystem::path& folder, mode_t mode) {
    for (int trial = 0;; ++trial) {
      path_ = folder /
              (std::string(unfinished_prefix) + std::to_string(::getpid()) + "-" + std::to_string(trial));
      const int file =
          uninterrupted([&] { return ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode); });
      if (file >= 0) return file;
      if (errno != EEXIST) fail_to_write(name_, errno);
    }
  }

  std::string name_;
  std::filesystem::path path_;  ///< empty once the file has its name
  descriptor file_;
};

/// The path at the end of a chain of symbolic links, existing or not; the system limits its length.
inline std::filesystem::path behind_links(std::filesystem::path path, std::string_view name) {
  std::error_code status;
  for (int links = 0; std::filesystem::is_symlink(path, status); ++links) {
    if (links == 40) fail_to_write(name, ELOOP);
    const std::filesystem::path next = std::filesystem::read_symlink(path, status);
    if (status) fail_to_write(name, status.value());
    path = path.parent_path() / next;  // this is `next`, if that is absolute
  }
  return path;
}

}  // namespace detail

/// Throws input_error unless write_whole_file could begin to write this file: the path is a writable regular
/// file or nothing, and its folder accepts a new file. Leaves nothing there. Local.
inline void require_writable_file(const std::filesystem::path& path) {
  const std::string name = path.string();
  const std::filesystem::path target = detail::behind_links(path, name);
  std::error_code status;
  const std::filesystem::file_status present = std::filesystem::status(target, status);
  if (std::filesystem::exists(present)) {
    if (!std::filesystem::is_regular_file(present)) detail::fail(name, "is not a regular file");
    if (::access(target.c_str(), W_OK) != 0) detail::fail_to_write(name, errno);
  }
  detail::unfinished_file(target.has_parent_path() ? target.parent_path() : ".", 0666, name);
}

/// Writes the bytes that `produce` generates to the file `path`; produce(write) calls write, a function of
/// std::span<const std::byte>, for one piece after the other. Whoever opens that path, even after the writer
/// was killed or the power was lost, finds either the old content or the whole new file: the bytes go to a
/// file of another name in the same folder, then fsync, rename, fsync of the folder. A symbolic link stays
/// one, and its target is replaced or created.
/// Local: one rank calls it. Throws input_error with the path and the system's reason if the file cannot be
/// written, and what produce throws; the old file then stays, and no other. If only the last step fails, the
/// new file is in its place, and the message says so.
template <class Produce>
requires(!std::convertible_to<Produce, std::span<const std::span<const std::byte>>>) void write_whole_file(
    const std::filesystem::path& path, const Produce& produce) {
  const std::string name = path.string();
  std::error_code status;
  const std::filesystem::path target = detail::behind_links(path, name);
  const std::filesystem::file_status present = std::filesystem::status(target, status);
  const bool replaces = std::filesystem::exists(present);
  // A device must not be replaced by a file.
  if (replaces && !std::filesystem::is_regular_file(present)) detail::fail(name, "is not a regular file");
  const mode_t mode = replaces ? static_cast<mode_t>(present.permissions()) & 0777 : 0666;

  const std::filesystem::path folder = target.has_parent_path() ? target.parent_path() : ".";
  const detail::descriptor folder_itself(
      detail::uninterrupted([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (folder_itself.number() < 0) detail::fail_to_write(name, errno);
  detail::unfinished_file file(folder, mode, name);
  produce([&](std::span<const std::byte> bytes) { file.write(bytes); });
  file.become(target);
  if (!detail::synchronised(folder_itself.number()))
    detail::fail(name, "is written, but may not survive a loss of power (" +
                           std::error_code(errno, std::generic_category()).message() + ")");
}

/// Writes `parts`, one after the other and without copying them, to the file `path`. Otherwise as above.
inline void write_whole_file(const std::filesystem::path& path,
                             std::span<const std::span<const std::byte>> parts) {
  write_whole_file(path, [&](const auto& write) {
    for (const std::span<const std::byte> part : parts) write(part);
  });
}

/// Removes from a folder the files left behind by writers that were killed; returns how many there were.
/// Local: one process calls it, while nobody writes there. Throws input_error if the folder cannot be read
/// or a file cannot be removed.
inline int remove_unfinished_files(const std::filesystem::path& folder) {
  std::error_code status;
  int removed = 0;
  for (const std::string& name : detail::names_in(folder, status)) {
    if (!name.starts_with(detail::unfinished_prefix)) continue;
    const std::filesystem::path path = folder / name;
    if (::unlink(path.c_str()) != 0 && errno != ENOENT)
      detail::fail(path.string(),
                   "cannot be removed (" + std::error_code(errno, std::generic_category()).message() + ")");
    ++removed;
  }
  if (status) detail::fail(folder.string(), "cannot be read (" + status.message() + ")");
  return removed;
}

}  // namespace partita::io

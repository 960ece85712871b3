// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Which mapped files have changed since they were mapped: values that were checked may then differ, and
/// pages may be gone. Needs POSIX.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <signal.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

#include "partita/base/system.hpp"
#include "partita/io/descriptor.hpp"
#include "partita/io/quote.hpp"

namespace partita::io {

namespace detail {

/// A file that is mapped now, in a form that signal handlers may read.
struct watched_file {
  enum : int { free, taken, watched };
  std::atomic<int> state = free;
  int number = -1;
  struct stat then {};
  std::array<char, 512> name{};

  bool has_changed() const {
    struct stat now {};
    if (state != watched || ::fstat(number, &now) != 0) return false;
    const std::timespec a = base::system::modification_time(then), b = base::system::modification_time(now);
    return now.st_size != then.st_size || a.tv_sec != b.tv_sec || a.tv_nsec != b.tv_nsec;
  }
};

inline std::array<watched_file, 64> watched_files;

/// The first watched file that has changed, or null. Safe in signal handlers.
inline const watched_file* first_changed() {
  for (const watched_file& file : watched_files)
    if (file.has_changed()) return &file;
  return nullptr;
}

/// Watches an open file until the returned pointer is released, which closes the file. Only 64 files are
/// watched at a time; further ones are not.
inline std::shared_ptr<const descriptor> watch(std::shared_ptr<const descriptor> file,
                                               const std::filesystem::path& path) {
  const std::string name = path.string();
  for (watched_file& place : watched_files) {
    int expected = watched_file::free;
    if (!place.state.compare_exchange_strong(expected, watched_file::taken)) continue;
    place.number = file->number();
    place.name.fill(0);
    std::copy_n(name.begin(), std::min(name.size(), place.name.size() - 1), place.name.begin());
    place.state = ::fstat(place.number, &place.then) == 0 ? watched_file::watched : watched_file::taken;
    return {file.get(), [file, &place](const descriptor*) { place.state = watched_file::free; }};
  }
  return file;
}

inline constexpr std::array fatal_signals{SIGBUS, SIGSEGV, SIGFPE, SIGABRT};
/// The former actions of these signals, and the name of the program, for its last line.
inline std::array<struct sigaction, fatal_signals.size()> former_actions{};
inline std::array<char, 64> program_of_last_line{};

inline void end_by_changed_file(int signal) {
  if (const watched_file* const file = first_changed()) {
    for (const char* text :
         {static_cast<const char*>(program_of_last_line.data()), ": ",
          static_cast<const char*>(file->name.data()), ": has changed while it was in use\n"})
      if (::write(STDERR_FILENO, text, std::string_view(text).size()) < 0) break;
    ::_exit(1);
  }
  const auto which = std::find(fatal_signals.begin(), fatal_signals.end(), signal) - fatal_signals.begin();
  ::sigaction(signal, &former_actions[static_cast<std::size_t>(which)], nullptr);
  ::raise(signal);
}

}  // namespace detail

/// The name of a mapped file that has been written to since it was mapped. A change that keeps the length,
/// within one tick of the file system's clock, is not detected.
inline std::optional<std::string> changed_file() {
  const detail::watched_file* const found = detail::first_changed();
  return found == nullptr ? std::nullopt : std::optional<std::string>(found->name.data());
}

/// Throws input_error naming a mapped file that has changed.
inline void require_unchanged_files() {
  if (const auto name = changed_file()) detail::fail(*name, "has changed while it was in use");
}

/// From now on SIGBUS, SIGSEGV, SIGFPE and SIGABRT end the process with exit code 1 and the line "PROGRAM:
/// FILE: has changed while it was in use" on stderr if a mapped file has changed; otherwise they do what
/// they did before. For programs; to be called once.
inline void end_when_files_change(std::string_view program) {
  auto& name = detail::program_of_last_line;
  std::copy_n(program.begin(), std::min(program.size(), name.size() - 1), name.begin());
  struct sigaction action {};
  action.sa_handler = detail::end_by_changed_file;
  action.sa_flags = SA_NODEFER;
  for (std::size_t k = 0; k < detail::fatal_signals.size(); ++k)
    ::sigaction(detail::fatal_signals[k], &action, &detail::former_actions[k]);
}

}  // namespace partita::io

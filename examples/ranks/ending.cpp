// SPDX-License-Identifier: Apache-2.0
#include "ending.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

std::string sentence_of(const std::exception& e) {
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr ||
      dynamic_cast<const std::length_error*>(&e) != nullptr)
    return "there is not enough memory for this";
  if (const auto* const file = dynamic_cast<const std::filesystem::filesystem_error*>(&e))
    return file->path1().string() + ": " + file->code().message();
  if (const auto* const system = dynamic_cast<const std::system_error*>(&e))
    return system->code() == std::errc::resource_unavailable_try_again
               ? "the system refuses another thread; fewer --ranks or --threads may help"
               : "the system refuses what is asked for: " + system->code().message();
  return e.what();
}

int checked_output(const char* program, int code) {
  const bool has_failed = std::ferror(stdout) != 0;
  if (has_failed && code == 0) {  // errno is of something else by now
    std::clearerr(stdout);
    std::fputc('\n', stdout);
  }
  errno = 0;
  if ((std::fflush(stdout) == 0 && !has_failed) || code != 0) return code;
  std::fprintf(stderr, "%s: cannot write to standard output (%s)\n", program, std::strerror(errno));
  return 1;
}

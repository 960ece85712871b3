// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Files and folders as POSIX opens them.

#include <cerrno>
#include <unistd.h>
#include <utility>

namespace partita::io::detail {

/// What a system call returns, which is repeated as long as signals interrupt it.
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

}  // namespace partita::io::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The line of a program that called a verb, for the errors of the operations that the verb runs.

#include <optional>
#include <source_location>

namespace partita::comm {

/// While one lives, operations of this thread report `where` as their call site instead of a line of the
/// library. Of nested ones the outermost counts.
class call_site {
 public:
  explicit call_site(std::source_location where) : outermost_(!current_) {
    if (outermost_) current_ = where;
  }
  call_site(const call_site&) = delete;
  call_site& operator=(const call_site&) = delete;
  ~call_site() {
    if (outermost_) current_.reset();
  }

  /// The call site to report for an operation called at `here`.
  static std::source_location of(std::source_location here) { return current_.value_or(here); }

 private:
  inline static thread_local std::optional<std::source_location> current_;
  bool outermost_;
};

}  // namespace partita::comm

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The line of a program that called a verb, and the task that it is part of, for the errors of operations.

#include <exception>
#include <optional>
#include <source_location>
#include <string>
#include <utility>

#include "partita/base/error.hpp"

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

/// While one lives, this thread is at a task of this name, which what ends the process reports. Of nested ones
/// the innermost counts.
class task_scope {
 public:
  explicit task_scope(std::string name) : before_(std::exchange(current(), std::move(name))) {}
  task_scope(const task_scope&) = delete;
  task_scope& operator=(const task_scope&) = delete;
  ~task_scope() { current() = std::move(before_); }

  static std::string& current() {
    static thread_local std::string name;
    return name;
  }

 private:
  std::string before_;
};

/// body(), whose errors begin with the name of the task; that of another rank, which has its own, does not.
template <class Body>
void in_task(const std::string& name, Body body) {
  const task_scope scope(name);
  const auto named = [&](const std::exception& e) { return name + ": " + e.what(); };
  try {
    body();
  } catch (const poisoned_error&) {
    throw;
  } catch (const communication_error& e) {
    throw communication_error(named(e));
  } catch (const device_error& e) {
    throw device_error(named(e));
  } catch (const error& e) {
    throw error(named(e));
  }
}

}  // namespace partita::comm

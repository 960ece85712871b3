// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The line of a program that called a verb, and the current task, for error messages of operations.

#include <array>
#include <atomic>
#include <csignal>
#include <exception>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>

#include "partita/base/error.hpp"

namespace partita::comm {

/// While such an object lives, operations of this thread report `where` as their call site instead of a line
/// of the library. If they are nested, the outermost counts.
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

/// While such an object lives, this thread is at a task of this name, of which a hundred characters are
/// kept. Errors of operations begin with it, and whatever ends the process reports it. The innermost counts.
class task_scope {
 public:
  explicit task_scope(std::string_view name) : before_(current()) { enter(name); }
  task_scope(const task_scope&) = delete;
  task_scope& operator=(const task_scope&) = delete;
  ~task_scope() { enter(before_); }

  /// Empty if there is none; valid until the next change. A signal handler may call it at any time.
  static std::string_view current() {
    const kept& now = kept_[static_cast<std::size_t>(at_)];
    return {now.text.data(), now.size};
  }
  /// The name of the task followed by `what`, unless there is no task or `what` begins with the name.
  static std::string named(const std::string& what) {
    const std::string_view task = current();
    return task.empty() || what.starts_with(task) ? what : std::string(task) + ": " + what;
  }

 private:
  struct kept {
    std::array<char, 100> text;
    std::size_t size;
  };

  /// Writes the name where no handler reads it, then publishes it.
  static void enter(std::string_view name) {
    const auto next = static_cast<std::sig_atomic_t>(1 - at_);
    kept& to = kept_[static_cast<std::size_t>(next)];
    to.size = name.copy(to.text.data(), to.text.size());
    std::atomic_signal_fence(std::memory_order_release);
    at_ = next;
  }

  inline static thread_local std::array<kept, 2> kept_{};
  inline static thread_local volatile std::sig_atomic_t at_ = 0;
  std::string before_;
};

/// body(); its errors begin with the name of the task, except those of another rank, which have its own.
template <class Body>
decltype(auto) in_task(std::string_view name, Body body) {
  const task_scope scope(name);
  try {
    return body();
  } catch (const poisoned_error&) {
    throw;
  } catch (const communication_error& e) {
    throw communication_error(task_scope::named(e.what()));
  } catch (const device_error& e) {
    throw device_error(task_scope::named(e.what()));
  } catch (const std::exception& e) {
    throw error(task_scope::named(e.what()));
  }
}

}  // namespace partita::comm

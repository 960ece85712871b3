// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Termination of a process in an MPI job: with all others, or by one line on stderr and MPI_Abort.

#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <signal.h>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "partita/comm/mpi_job.hpp"

namespace partita::mpi::detail {

/// Set once this process has reported its failure.
inline bool& ending() {
  static bool yes = false;
  return yes;
}

/// Waits, at most a second, until what was written to a pipe has been read: mpirun does not read what is in
/// the pipes of a job that it ends.
inline void wait_until_read(int pipe) {
  struct stat status = {};
  if (fstat(pipe, &status) != 0 || !S_ISFIFO(status.st_mode)) return;
  for (int milliseconds = 0; milliseconds < 1000; ++milliseconds) {
    int unread = 0;
    if (ioctl(pipe, FIONREAD, &unread) != 0 || unread == 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// Reports on stderr why this rank failed and aborts the job. An error common to all ranks is reported by the
/// lowest one: the others delay and are killed first.
[[noreturn]] inline void end_job(std::string why) {
  ending() = true;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::this_thread::sleep_for(std::chrono::milliseconds(std::min(1000, 250 * rank)));
  std::replace(why.begin(), why.end(), '\n', ' ');
  const std::string line = "partita: rank " + std::to_string(rank) + ": " + why + "\n";
  std::fflush(stdout);
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  wait_until_read(STDERR_FILENO);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::terminate();
}

/// All worlds of this process that MPI_Finalize has to end.
inline std::vector<std::shared_ptr<job>>& jobs() {
  static std::vector<std::shared_ptr<job>> all;
  return all;
}

/// Attribute-delete callback of MPI_COMM_SELF, called first thing in MPI_Finalize: waits for all ranks of all
/// worlds.
inline int leave_all(MPI_Comm, int, void*, void*) {
  try {
    for (const auto& j : jobs()) j->begin_leaving();
    const auto leaves = [](const std::shared_ptr<job>& j) { return j->poll_leaving(); };
    for (int polls = 0;
         std::count_if(jobs().begin(), jobs().end(), leaves) < static_cast<std::ptrdiff_t>(jobs().size());
         ++polls)
      if (polls < 1000)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } catch (const std::exception& e) {
    end_job(e.what());
  }
  jobs().clear();
  return MPI_SUCCESS;
}

/// A line of text composed with async-signal-safe means only.
class last_line {
 public:
  last_line& operator<<(std::string_view text) {
    for (const char c : text)
      if (size_ < sizeof(text_)) text_[size_++] = c;
    return *this;
  }
  last_line& operator<<(unsigned long number) {
    char digits[20];
    std::size_t n = 0;
    do digits[n++] = static_cast<char>('0' + number % 10);
    while ((number /= 10) > 0);
    while (n > 0) *this << std::string_view(&digits[--n], 1);
    return *this;
  }
  /// "after all_reduce (spmm.hpp:120)".
  last_line& operator<<(const last_call& last) {
    if (last.kind == nullptr) return *this << "before its first operation";
    const std::string_view path = last.where.file_name();
    *this << "after " << last.kind << " (" << path.substr(path.find_last_of('/') + 1) << ":"
          << static_cast<unsigned long>(last.where.line()) << ")";
    const std::string_view task = comm::task_scope::current();
    return task.empty() ? *this : *this << " in " << task;
  }
  std::string_view text() const { return {text_, size_}; }
  void write() const {
    if (::write(STDERR_FILENO, text_, size_) < 0) return;
  }

 private:
  char text_[400];
  std::size_t size_ = 0;
};

/// atexit handler: std::exit was called instead of MPI_Finalize.
inline void end_at_exit() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized == 0 && !jobs().empty() && !ending())
    end_job(std::string(
        (last_line() << "the program called exit instead of returning, " << last_call_of_process()).text()));
}

/// Registers the handlers that keep this process from ending silently while ranks of `j` wait for it.
inline void register_job(std::shared_ptr<job> j) {
  static const bool registered = [] {
    jobs();
    int key = MPI_KEYVAL_INVALID;
    check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, leave_all, &key, nullptr), "MPI_Comm_create_keyval");
    check(MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr), "MPI_Comm_set_attr");
    std::atexit(end_at_exit);
    return true;
  }();
  static_cast<void>(registered);
  jobs().push_back(std::move(j));
}

/// RAII: reports fatal signals that the program does not handle. Constructed before MPI_Init, armed after it.
class crash_reporter {
 public:
  crash_reporter() {
    for (handled& h : handled_) {
      struct sigaction before = {};
      sigaction(h.number, nullptr, &before);
      h.ours = (before.sa_flags & SA_SIGINFO) == 0 && before.sa_handler == SIG_DFL;
    }
  }
  crash_reporter(const crash_reporter&) = delete;
  crash_reporter& operator=(const crash_reporter&) = delete;
  ~crash_reporter() { arm(SIG_DFL); }

  void arm() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank());
    armed_by() = pthread_self();
    arm(report);
  }

 private:
  using handler = void (*)(int);
  struct handled {
    int number;
    bool ours = false;
  };

  void arm(handler h) {
    for (const handled& s : handled_)
      if (s.ours) signal(s.number, h);
  }
  static int& rank() {
    static int rank = 0;
    return rank;
  }

  /// The thread whose tasks are reported.
  static pthread_t& armed_by() {
    static pthread_t thread{};
    return thread;
  }

  static void report(int number) {
    if (number == SIGTERM && pthread_equal(pthread_self(), armed_by()) == 0) {  // a thread of MPI's
      pthread_kill(armed_by(), number);
      return;
    }
    signal(number, SIG_DFL);
    const bool is_told = number == SIGTERM && (ending() || comm::task_scope::current().empty());
    if (!is_told)
      (last_line() << "partita: rank " << static_cast<unsigned long>(rank()) << ": ended by signal "
                   << static_cast<unsigned long>(number) << " " << last_call_of_process() << "\n")
          .write();
    raise(number);
  }

  handled handled_[6] = {{SIGSEGV}, {SIGBUS}, {SIGFPE}, {SIGILL}, {SIGABRT}, {SIGTERM}};
};

}  // namespace partita::mpi::detail

// SPDX-License-Identifier: Apache-2.0
// Defines functions of the C library, which the program's own take precedence over, libstdc++'s calls
// included.
#include "support/interleaving.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <cxxabi.h>
#include <functional>
#include <memory>
#include <new>
#include <pthread.h>
#include <string>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

long live_allocations = 0;

[[noreturn]] void give_up(const char* why) {
  std::fprintf(stderr, "interleaving: %s\n", why);
  std::abort();
}

long nanoseconds_of(const timespec& t) { return t.tv_sec * 1'000'000'000 + t.tv_nsec; }

/// The exceptions that a thread is handling (Itanium C++ ABI, 2.2.2).
struct handled_exceptions {
  void* caught = nullptr;
  unsigned uncaught = 0;

  static handled_exceptions& current() {
    return *reinterpret_cast<handled_exceptions*>(abi::__cxa_get_globals());
  }
};

struct strand {
  static constexpr std::size_t stack_bytes = std::size_t{1} << 18;

  bool alive = false;
  const void* mutex = nullptr;      ///< that it is about to take
  const void* condition = nullptr;  ///< that it waits for, and then takes the mutex again
  const timespec* deadline = nullptr;
  const strand* joins = nullptr;  ///< whose end it waits for
  handled_exceptions exceptions;
  ucontext_t context;
  std::function<void()> entry;
  std::unique_ptr<char[]> stack{new char[stack_bytes]};
};

/// One of the strands that can run on, or whose wait can end by time.
struct alternative {
  strand* next;
  bool costs;
};

class scheduler {
 public:
  explicit scheduler(const test_support::schedule_limits& limits) : limits_(limits) {
    path_.reserve(1 << 16);
    held_.reserve(64);
    outcome_.reserve(1 << 16);
  }

  static scheduler* current;

  test_support::exploration explore(const std::function<std::string()>& body) {
    test_support::exploration found;
    do {
      begin_schedule();
      const long live = live_allocations;
      spawn([&] { outcome_.assign(body()); });
      switch_to_threads();
      ++found.schedules;
      found.longest = std::max(found.longest, points_);
      found.notifications = std::max(found.notifications, notifications_);
      if (std::ranges::any_of(strands_, &strand::alive)) {
        found.deadlock = found.schedules;
        found.stuck = text_of_waits();
        return found;
      }
      if (live_allocations != live && found.kept_memory == 0) found.kept_memory = found.schedules;
      ++found.outcomes[outcome_];
    } while (next_path());
    return found;
  }

  strand* spawn(auto entry) {
    if (threads_ == strands_.size()) give_up("a fifth thread");
    strand& s = strands_[threads_++];
    s.entry = std::move(entry);
    s.alive = true;
    getcontext(&s.context);
    s.context.uc_stack.ss_sp = s.stack.get();
    s.context.uc_stack.ss_size = strand::stack_bytes;
    makecontext(&s.context, run_strand, 0);
    return &s;
  }
  void join(strand* other) {
    running_->joins = other;
    point();
    running_->joins = nullptr;
  }
  void lock(const void* mutex) {
    running_->mutex = mutex;
    point();
    take();
  }
  void unlock(const void* mutex) {
    release(mutex);
    point();
  }
  /// Whether it ended by time.
  bool wait(const void* condition, const void* mutex, const timespec* deadline) {
    point();
    release(mutex);
    running_->mutex = mutex;
    running_->condition = condition;
    running_->deadline = deadline;
    point();
    const bool by_time = running_->condition != nullptr;
    if (by_time) now_ = std::max(now_, nanoseconds_of(*deadline));
    running_->condition = nullptr;
    running_->deadline = nullptr;
    take();
    return by_time;
  }
  void notify_all(const void* condition) {
    point();
    if (++notifications_ == limits_.lost_notification) return;
    for (strand& s : strands_)
      if (s.condition == condition) s.condition = nullptr;
  }
  long now() const { return now_; }

 private:
  struct choice {
    int taken, alternatives;
  };

  static void run_strand() {
    scheduler& all = *current;
    strand& me = *all.running_;
    me.entry();
    me.alive = false;
    all.point();
  }

  void begin_schedule() {
    for (strand& s : strands_) {
      s.alive = false;
      s.mutex = s.condition = nullptr;
      s.deadline = nullptr;
      s.joins = nullptr;
      s.exceptions = {};
    }
    held_.clear();
    running_ = nullptr;
    threads_ = 0;
    depth_ = 0;
    preemptions_ = 0;
    points_ = notifications_ = now_ = 0;
  }

  bool is_free(const void* mutex) const { return std::ranges::find(held_, mutex) == held_.end(); }
  void take() {
    held_.push_back(running_->mutex);
    running_->mutex = nullptr;
  }
  void release(const void* mutex) { held_.erase(std::ranges::find(held_, mutex)); }
  bool can_have_mutex(const strand& s) const { return !s.mutex || is_free(s.mutex); }
  bool can_run(const strand& s) const {
    return s.alive && !s.condition && !(s.joins && s.joins->alive) && can_have_mutex(s);
  }

  /// Runs a strand until all have ended or none can go on.
  void switch_to_threads() {
    running_ = &strands_.front();
    swapcontext(&outside_, &running_->context);
    running_ = nullptr;
  }

  /// Chooses who runs on.
  void point() {
    ++points_;
    list_alternatives();
    strand* const before = running_;
    if (count_ == 0) {
      before->exceptions = std::exchange(handled_exceptions::current(), {});
      swapcontext(&before->context, &outside_);
      return;
    }
    const alternative& chosen = alternatives_[static_cast<std::size_t>(choose())];
    preemptions_ += chosen.costs;
    if (chosen.next == before) return;
    before->exceptions = std::exchange(handled_exceptions::current(), chosen.next->exceptions);
    running_ = chosen.next;
    swapcontext(&before->context, &running_->context);
  }
  void add(strand& s, bool costs) { alternatives_[static_cast<std::size_t>(count_++)] = {&s, costs}; }
  void list_alternatives() {
    count_ = 0;
    const bool goes_on = can_run(*running_), may_preempt = preemptions_ < limits_.preemptions;
    if (goes_on) add(*running_, false);
    for (strand& s : strands_)
      if (&s != running_ && can_run(s) && (!goes_on || may_preempt)) add(s, goes_on);
    const bool any_runs = count_ > 0;
    for (strand& s : strands_)
      if (s.alive && s.condition && s.deadline && can_have_mutex(s) && (!any_runs || may_preempt))
        add(s, any_runs);
  }
  /// The alternative of this schedule's path; the first one where it has none yet.
  int choose() {
    if (count_ == 1) return 0;
    if (depth_ == path_.size()) path_.push_back({0, count_});
    if (path_[depth_].alternatives != count_) give_up("the same choices had another effect");
    return path_[depth_++].taken;
  }
  bool next_path() {
    while (!path_.empty() && path_.back().taken + 1 == path_.back().alternatives) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().taken;
    return true;
  }

  std::string text_of_waits() const {
    std::string text;
    for (const strand& s : strands_)
      if (s.alive)
        text += "thread " + std::to_string(&s - strands_.data()) + " waits for " +
                (s.condition ? "a condition; "
                 : s.joins   ? "the end of another; "
                             : "a lock; ");
    return text;
  }

  test_support::schedule_limits limits_;
  std::array<strand, 4> strands_;
  std::size_t threads_ = 0;  ///< of this schedule
  strand* running_ = nullptr;
  ucontext_t outside_;
  std::vector<const void*> held_;
  std::vector<choice> path_;
  std::size_t depth_ = 0;
  std::array<alternative, 8> alternatives_;
  int count_ = 0, preemptions_ = 0;
  long points_ = 0, notifications_ = 0, now_ = 0;
  std::string outcome_;
};

scheduler* scheduler::current = nullptr;

}  // namespace

namespace test_support {

exploration explore(const schedule_limits& limits, const std::function<std::string()>& body) {
  const auto all = std::make_unique<scheduler>(limits);
  scheduler::current = all.get();
  exploration found = all->explore(body);
  scheduler::current = nullptr;
  return found;
}

}  // namespace test_support

// Outside of an exploration there is one thread, which needs no lock.
extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  if (scheduler::current) scheduler::current->lock(mutex);
  return 0;
}
int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  if (scheduler::current) scheduler::current->unlock(mutex);
  return 0;
}
int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  scheduler::current->wait(condition, mutex, nullptr);
  return 0;
}
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t,
                           const timespec* until) {
  return scheduler::current->wait(condition, mutex, until) ? ETIMEDOUT : 0;
}
int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  if (scheduler::current) scheduler::current->notify_all(condition);
  return 0;
}
int pthread_cond_signal(pthread_cond_t*) noexcept {
  give_up("a signal to one waiting thread is not explored");
}
int pthread_create(pthread_t* thread, const pthread_attr_t*, void* (*entry)(void*), void* argument) noexcept {
  if (!scheduler::current) give_up("a thread outside of an exploration");
  *thread = reinterpret_cast<pthread_t>(scheduler::current->spawn([=] { entry(argument); }));
  return 0;
}
int pthread_join(pthread_t thread, void**) {
  scheduler::current->join(reinterpret_cast<strand*>(thread));
  return 0;
}
int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (!scheduler::current || clock != CLOCK_MONOTONIC)
    return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  *time = {scheduler::current->now() / 1'000'000'000, scheduler::current->now() % 1'000'000'000};
  return 0;
}

}  // extern "C"

void* operator new(std::size_t bytes) {
  void* const memory = std::malloc(std::max<std::size_t>(bytes, 1));
  if (!memory) throw std::bad_alloc();
  ++live_allocations;
  return memory;
}
void operator delete(void* memory) noexcept {
  if (memory) --live_allocations;
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

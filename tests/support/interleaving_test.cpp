// SPDX-License-Identifier: Apache-2.0
// The explorer finds as many interleavings as there are, and the faults that need them.
#include "support/interleaving.hpp"

#include <chrono>
#include <condition_variable>
#include <doctest/doctest.h>
#include <memory>
#include <mutex>
#include <thread>

namespace test_support_interleaving {

using namespace std::chrono_literals;
using test_support::exploration, test_support::explore;

long binomial(long n, long k) {
  long b = 1;
  for (long i = 1; i <= k; ++i) b = b * (n - k + i) / i;
  return b;
}

// A thread with k locks has 2 k points at which it could go on. Of i switches, every second one is from the
// first thread, at any of its points, and the others from the second.
TEST_CASE("schedules of two threads are as many as a closed form says") {
  for (const int k : {1, 2, 3})
    for (const int most : {0, 1, 2, 3, 100}) {
      long expected = 0;
      for (int i = 0; i <= std::min(most, 4 * k); ++i)
        expected += binomial(2 * k, (i + 1) / 2) * binomial(2 * k, i / 2);
      if (most == 100) CHECK(expected == binomial(4 * k + 1, 2 * k));
      const exploration found = explore({most}, [k] {
        std::mutex mine, others;
        const auto use = [k](std::mutex& m) {
          for (int i = 0; i < k; ++i) const std::lock_guard lock(m);
        };
        std::thread other([&] { use(others); });
        use(mine);
        other.join();
        return "";
      });
      CHECK(found.schedules == expected);
      CHECK(found.longest == 4 * k + 3);  // an end of each and a join
      CHECK(found.deadlock == 0);
      CHECK(found.kept_memory == 0);
    }
}

TEST_CASE("three threads come in every order") {
  const exploration found = explore({0}, [] {
    std::mutex mutex;
    std::string order;
    const auto come = [&](char name) {
      const std::lock_guard lock(mutex);
      order += name;
    };
    std::thread a(come, 'a'), b(come, 'b'), c(come, 'c');
    a.join(), b.join(), c.join();
    return order;
  });
  std::string orders;
  for (const auto& [order, times] : found.outcomes) orders += order + " ";
  CHECK(orders == "abc acb bac bca cab cba ");
}

TEST_CASE("two locks in opposite orders are a deadlock, for which it takes one preemption") {
  const auto body = [] {
    std::mutex a, b;
    std::thread other([&] { const std::scoped_lock both_in_turn(b), inner(a); });
    { const std::lock_guard outer(a), inner(b); }
    other.join();
    return "";
  };
  CHECK(explore({0}, body).deadlock == 0);
  const exploration found = explore({1}, body);
  CHECK(found.deadlock > 0);
  CHECK(found.stuck == "thread 0 waits for a lock; thread 1 waits for a lock; ");
}

TEST_CASE("a state that is tested before the lock of the wait misses its notification") {
  const auto body = [](bool tests_again) {
    return [tests_again] {
      std::mutex mutex;
      std::condition_variable changed;
      bool come = false;
      std::thread other([&] {
        {
          const std::lock_guard lock(mutex);
          come = true;
        }
        changed.notify_all();
      });
      const auto has_come = [&] {
        const std::lock_guard lock(mutex);
        return come;
      };
      if (!has_come()) {
        std::unique_lock lock(mutex);
        if (!tests_again || !come) changed.wait(lock);
      }
      other.join();
      return "";
    };
  };
  CHECK(explore({0}, body(false)).deadlock == 0);
  CHECK(explore({1}, body(false)).deadlock > 0);
  CHECK(explore({2}, body(true)).deadlock == 0);
  CHECK(explore({0, 1}, body(true)).deadlock == 1);
}

TEST_CASE("waits end by time where nobody can go on, or as a preemption") {
  using clock = std::chrono::steady_clock;
  const auto body = [](bool told) {
    return [told] {
      std::mutex mutex;
      std::condition_variable changed;
      bool come = false;
      std::thread other([&] {
        const std::lock_guard lock(mutex);
        come = told;
        changed.notify_all();
      });
      std::string how;
      const clock::time_point begin = clock::now();
      {
        std::unique_lock lock(mutex);
        how = changed.wait_until(lock, begin + 5ms, [&] { return come; }) ? "told" : "late";
      }
      how += " after " + std::to_string((clock::now() - begin) / 1ms);
      other.join();
      return how;
    };
  };
  const auto only = [](const exploration& found, const std::string& how) {
    return found.outcomes.size() == 1 && found.outcomes.contains(how);
  };
  CHECK(only(explore({0}, body(true)), "told after 0"));
  CHECK(only(explore({0}, body(false)), "late after 5"));
  const exploration found = explore({1}, body(true));
  CHECK(found.outcomes.size() == 2);
  CHECK(found.outcomes.contains("late after 5"));
}

TEST_CASE("memory that one schedule keeps is seen") {
  std::unique_ptr<int> kept;
  const auto body = [&] {
    std::mutex mutex;
    bool first = true;
    std::thread other([&] {
      const std::lock_guard lock(mutex);
      if (first) kept = std::make_unique<int>(1);
      first = false;
    });
    {
      const std::lock_guard lock(mutex);
      first = false;
    }
    other.join();
    return "";
  };
  CHECK(explore({0}, body).kept_memory == 0);
  CHECK(explore({1}, body).kept_memory > 0);
}

}  // namespace test_support_interleaving

// SPDX-License-Identifier: Apache-2.0
// A rank that fails leaves nobody waiting, and a mismatch is an error that names the ranks.
#include <doctest/doctest.h>
#include <thread>

#include "support/ranks.hpp"

namespace test_comm_failures {

using namespace test_support;

struct lamp_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Buffers with so many elements for each rank: few are exchanged by one rank for all, many by each for
/// itself.
struct test_buffers {
  explicit test_buffers(int size, std::size_t each = 1)
      : ones(static_cast<std::size_t>(size), 1), a(each * ones.size()), b(a.size()), one(each) {}

  std::span<const global_index> counts() const { return ones; }
  std::span<const double> in() const { return a; }

  std::vector<global_index> ones;
  std::vector<double> a, b, one;
};

/// An operation of a rank; `other` is root or partner.
struct named_operation {
  std::string name;
  std::function<void(const communicator&, test_buffers&, int other)> call;
};

std::vector<named_operation> every_operation() {
  using std::span;
  return {
      {"broadcast", [](auto& c, auto& d, int other) { c.broadcast(span(d.a), other); }},
      {"broadcast from a survivor",
       [](auto& c, auto& d, int other) { c.broadcast(span(d.a), (other + 1) % c.size()); }},
      {"all_gather", [](auto& c, auto& d, int) { c.all_gather(d.in().first(1), d.counts(), span(d.b)); }},
      {"reduce_scatter", [](auto& c, auto& d, int) { c.reduce_scatter(d.in(), d.counts(), span(d.one)); }},
      {"all_reduce", [](auto& c, auto& d, int) { c.all_reduce(span(d.a)); }},
      {"all_to_all", [](auto& c, auto& d, int) { c.all_to_all(d.in(), d.counts(), span(d.b), d.counts()); }},
      {"send", [](auto& c, auto& d, int other) { c.send(d.in(), other); }},
      {"receive", [](auto& c, auto& d, int other) { c.receive(span(d.a), other); }},
      {"split", [](auto& c, auto&, int) { c.split(0, 0, "part"); }},
  };
}

void sleep_a_little() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

/// Every rank calls `common`, except rank 2 of 4, which calls `odd`.
void on_four(auto common, auto odd) {
  on_threads(4, [&](const communicator& c) {
    test_buffers d(4);
    c.rank() == 2 ? odd(c, d) : common(c, d);
  });
}

TEST_CASE("a rank that throws frees ranks that wait in any operation") {
  for (const int ranks : {2, 4, 16}) {
    if (!sees(ranks)) continue;
    for (const int failing : {0, ranks - 1})
      for (const named_operation& op : every_operation())
        for (const bool late : {false, true}) {
          INFO("ranks ", ranks, ", failing ", failing, ", op.name ", op.name);
          std::atomic<int> freed = 0;
          expect_error<lamp_error>(ranks, "the lamp fell", [&](const communicator& c) {
            test_buffers d(ranks);
            if (late) sleep_a_little();
            if (c.rank() == failing) throw lamp_error("the lamp fell");
            if (!late) sleep_a_little();
            try {
              op.call(c, d, failing);
              c.all_reduce(std::span(d.b));
            } catch (const partita::poisoned_error& e) {
              CHECK(std::string(e.what()) == "another rank failed: the lamp fell");
              ++freed;
              throw;
            }
          });
          CHECK(freed == ranks - 1);
        }
  }
}

TEST_CASE("a rank that throws in a group of a split frees the whole world") {
  expect_error<lamp_error>(9, "the lamp fell", [](const communicator& c) {
    const communicator group = c.split(c.rank() % 3, 0, "third");
    test_buffers d(3);
    if (c.rank() == 4) throw lamp_error("the lamp fell");
    group.all_reduce(std::span(d.a));
    c.all_reduce(std::span(d.a));
  });
}

TEST_CASE("a rank that throws what is no exception fails the run") {
  int thrown = 0;
  try {
    on_threads(4, [](const communicator& c) {
      test_buffers d(4);
      if (c.rank() == 3) throw 17;
      c.all_reduce(std::span(d.a));
    });
  } catch (int number) {
    thrown = number;
  }
  CHECK(thrown == 17);
}

TEST_CASE("ranks that disagree are named with their lines") {
  const auto disagree = [](const char* part, auto common, auto odd) {
    expect_error<communication_error>(part, [&] { on_four(common, odd); });
  };
  const auto reduce = [](auto& c, auto& d) { c.all_reduce(std::span(d.a)); };
  const auto gather = [](auto& c, auto& d) { c.all_gather(d.in().first(1), d.counts(), std::span(d.b)); };
  const auto split = [](auto& c, auto&) { c.split(0, 0, "part"); };
  const auto broadcast_from = [](int root) {
    return [root](auto& c, auto& d) { c.broadcast(std::span(d.a), root); };
  };
  disagree("rank 2 calls broadcast of f64 (failures.cpp:", reduce, broadcast_from(0));
  disagree("ranks disagree: rank ", reduce, gather);
  disagree("rank 2 calls split (failures.cpp:", reduce, split);
  disagree("ended without taking part in split (failures.cpp:", split, [](auto&, auto&) {});
  disagree("rank 2 calls all_reduce of f32 (failures.cpp:", reduce, [](auto& c, auto&) {
    std::vector<float> narrow(4);
    c.all_reduce(std::span(narrow));
  });
  disagree(") with 3 elements", reduce, [](auto& c, auto& d) { c.all_reduce(std::span(d.a).first(3)); });
  disagree("ranks disagree: rank ", reduce,
           [](auto& c, auto& d) { c.all_reduce(std::span(d.a), partita::reduction::max); });
  disagree("ranks disagree: rank ", broadcast_from(1), broadcast_from(3));
  disagree("rank 2 calls all_gather of f64 (failures.cpp:", gather, [](auto& c, auto& d) {
    d.ones[3] = 2;
    d.b.resize(5);
    c.all_gather(d.in().first(1), d.counts(), std::span(d.b));
  });
  disagree(
      "ranks disagree: rank ",
      [](auto& c, auto& d) { c.reduce_scatter(d.in(), d.counts(), std::span(d.one)); },
      [](auto& c, auto& d) {
        d.ones[0] = 0;
        c.reduce_scatter(d.in().first(3), d.counts(), std::span(d.one));
      });
}

TEST_CASE("counts of an all_to_all that disagree are named") {
  const auto exchange = [](auto& c, auto& d) {
    c.all_to_all(d.in(), d.counts(), std::span(d.b), d.counts());
  };
  const auto too_much = [](auto& c, auto& d) {
    std::vector<global_index> more = d.ones;
    more[1] = 2;
    d.a.resize(5);
    c.all_to_all(d.in(), more, std::span(d.b), d.counts());
  };
  for (int repeat = 0; repeat < 20; ++repeat)
    expect_error<communication_error>(
        "ranks disagree: rank 1 expects 1 elements in all_to_all of f64 (failures.cpp:",
        [&] { on_four(exchange, too_much); });
}

TEST_CASE("a message of another size or type is named") {
  expect_error<communication_error>(2, "receive of f64", [](const communicator& c) {
    test_buffers d(2);
    c.rank() == 0 ? c.send(d.in(), 1) : c.receive(std::span(d.one), 0);
  });
  expect_error<communication_error>(
      2, "ranks disagree: rank 1 calls receive of f64", [](const communicator& c) {
        test_buffers d(2);
        const std::vector<float> narrow(2);
        c.rank() == 0 ? c.send(std::span(narrow), 1) : c.receive(std::span(d.a), 0);
      });
}

TEST_CASE("a rank that ends too early is named by those that wait for it") {
  for (const int ranks : {2, 4, 16})
    for (const named_operation& op : every_operation()) {
      if (!sees(ranks)) continue;
      INFO("ranks ", ranks, ", op.name ", op.name);
      const std::string leaver = "rank " + std::to_string(ranks - 1) + " ended without taking part in ";
      expect_error<communication_error>(ranks, leaver, [&](const communicator& c) {
        test_buffers d(ranks);
        if (c.rank() != ranks - 1) op.call(c, d, ranks - 1);
      });
    }
}

TEST_CASE("nobody reads the memory of a root that failed") {
  for (int repeat = 0; repeat < 20; ++repeat)
    expect_error<communication_error>("rank 2 ended without taking part in broadcast", [] {
      std::atomic<int> ready = 0;
      on_threads(3, [&](const communicator& c) {
        while (c.rank() == 2 && ready < 2) std::this_thread::yield();
        if (c.rank() == 2) return;
        std::vector<double> large(1 << 21);
        ++ready;
        c.broadcast(std::span(large), 0);
      });
    });
}

TEST_CASE("a request that is not waited for fails the group") {
  for (const int ranks : {2, 4, 16})
    for (const std::size_t each : {1, 2000})
      expect_error<partita::poisoned_error>(
          ranks, "gave up its all_reduce of f64 (failures.cpp:", [&](const communicator& c) {
            test_buffers d(c.size(), each);
            request r = c.start_all_reduce(std::span(d.a));
            if (c.rank() != 1) r.wait();
          });
}

TEST_CASE("a rank that throws with operations in flight fails with its own error") {
  for (const std::size_t each : {1, 2000})
    for (int repeat = 0; repeat < 10; ++repeat)
      expect_error<lamp_error>(4, "the lamp fell", [&](const communicator& c) {
        test_buffers d(4, each);
        const std::vector<double> sent(d.a.size());
        request sum = c.start_all_reduce(std::span(d.a));
        request message = c.start_send(std::span(sent), (c.rank() + 1) % 4);
        request next = c.start_receive(std::span(d.b), (c.rank() + 3) % 4);
        if (c.rank() == 2) throw lamp_error("the lamp fell");
        next.wait();
        sum.wait();
        message.wait();
      });
}

TEST_CASE("runs without ranks, partners that do not exist") {
  expect_error<partita::mesh_error>(0, "a run needs at least one rank, not 0", [](const communicator&) {});
  expect_error<communication_error>("rank 4 is out of range for a group of 4", [] {
    on_four([](auto& c, auto& d) { c.receive(std::span(d.a), 2); },
            [](auto& c, auto& d) { c.send(d.in(), 4); });
  });
  expect_error<communication_error>(2, "rank -1 is out of range for a group of 2", [](const communicator& c) {
    test_buffers d(2);
    c.broadcast(std::span(d.a), -1);
  });
}

}  // namespace test_comm_failures

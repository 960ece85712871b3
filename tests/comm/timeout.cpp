// SPDX-License-Identifier: Apache-2.0
// A rank that waits for longer than the time limit says who has not come, to what and where. Ranks that do
// not come wait until the others have failed, so that the limit alone decides.
#include <doctest/doctest.h>
#include <regex>

#include "partita/comm/late.hpp"
#include "partita/comm/mesh.hpp"
#include "partita/comm/self.hpp"
#include "partita/comm/threads.hpp"
#include "support/gate.hpp"
#include "support/ranks.hpp"

namespace test_comm_timeout {

using partita::communication_error, partita::communicator, partita::request, test_support::expect_error,
    test_support::gate;

constexpr std::chrono::milliseconds limit{200};

/// What a run throws.
std::string error_of(int ranks, const partita::threads::options& o,
                     const std::function<void(const communicator&)>& body) {
  try {
    partita::threads::run(ranks, body, o);
  } catch (const communication_error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

/// What it throws when the ranks `absent` come to `call` only after all others have failed there.
std::string error_without(int ranks, const std::vector<int>& absent,
                          const std::function<void(const communicator&)>& call) {
  gate failed(ranks - static_cast<int>(absent.size()));
  std::atomic<int> poisoned = 0;
  const std::string what = error_of(ranks, {.time_limit = limit}, [&](const communicator& c) {
    if (std::find(absent.begin(), absent.end(), c.rank()) != absent.end()) failed.wait();
    try {
      call(c);
    } catch (const std::exception& e) {
      if (std::string(e.what()).starts_with("another rank failed: rank ")) ++poisoned;
      failed.pass();
      throw;
    }
  });
  CHECK(poisoned >= static_cast<int>(absent.size()));
  return what;
}

void check_matches(const std::string& what, const std::string& pattern) {
  CHECK_MESSAGE(std::regex_match(what, std::regex(pattern)), "expected '", pattern, "', not: ", what);
}

const std::string here = R"(\(timeout\.cpp:[0-9]+\))";

/// That the ranks of a pattern waited for others in an operation of a group.
void check_late(const std::string& what, const std::string& waiting, const std::string& absent,
                const std::string& operation, const std::string& group = " of group world") {
  check_matches(what, waiting + " has waited for more than 200 ms for " + absent + " in " + operation + " " +
                          here + group);
}

TEST_CASE("times and ranks in words") {
  using namespace std::chrono_literals;
  CHECK(partita::comm::detail::text_of(200ms) == "200 ms");
  CHECK(partita::comm::detail::text_of(2000ms) == "2 s");
  CHECK(partita::comm::detail::text_of_ranks(std::vector{1}) == "rank 1");
  CHECK(partita::comm::detail::text_of_ranks(std::vector{1, 4, 5}) == "ranks 1, 4, 5");
  CHECK(partita::comm::detail::late(0, 2000ms, std::vector{1, 4}, "split (a.cpp:1)") ==
        "rank 0 has waited for more than 2 s for ranks 1, 4 in split (a.cpp:1)");
}

TEST_CASE("the ranks that do not come are named, with the operation, its line and its group") {
  const auto reduce = [](const communicator& c) {
    std::vector<double> a(4);
    c.all_reduce(std::span(a));
  };
  const auto broadcast = [](const communicator& c) {
    std::vector<float> a(4);
    c.broadcast(std::span(a), 0);
  };
  const auto send = [](const communicator& c) {
    std::vector<double> a(4);
    c.rank() == 0 ? c.send(std::span(a), 1) : c.receive(std::span(a), 0);
  };
  check_late(error_without(4, {2}, reduce), "rank [013]", "rank 2", "all_reduce of f64");
  check_late(error_without(4, {0, 3}, broadcast), "rank [12]", "ranks 0, 3", "broadcast of f32");
  check_late(error_without(2, {0}, send), "rank 1", "rank 0", "receive of f64");
  check_late(error_without(2, {1}, send), "rank 0", "rank 1", "send of f64");
  check_late(error_without(3, {1}, [](const communicator& c) { c.split(0, 0, "part"); }), "rank [02]",
             "rank 1", "split", "");
}

TEST_CASE("a rank that has started an operation but does not wait for it is named") {
  // So many numbers are reduced by all ranks, each a share.
  gate failed(2);
  const std::string what = error_of(3, {.time_limit = limit}, [&](const communicator& c) {
    std::vector<double> a(1 << 17);
    request r = c.start_all_reduce(std::span(a));
    if (c.rank() == 1) failed.wait();
    failed.pass_if_fails([&] { r.wait(); });
  });
  check_late(what, "rank [02]", "rank 1", "all_reduce of f64");
}

TEST_CASE("ranks of a group are named as in the world, and what absent ones wait in is said") {
  // Rank 3 does not come to its group (1, 3); rank 1 waits for it there, and 0 and 2 for both in the world.
  gate failed(3);
  const std::string what = error_of(4, {.time_limit = limit}, [&](const communicator& c) {
    const communicator column = c.split(c.rank() % 2, 0, "col");
    std::vector<double> a(4);
    if (c.rank() == 3) failed.wait();
    failed.pass_if_fails([&] {
      column.all_reduce(std::span(a));
      c.all_reduce(std::span(a));
    });
  });
  check_matches(what, "rank 1 has waited for more than 200 ms for rank 3 in all_reduce of f64 " + here +
                          " of group col|rank [02] has waited for more than 200 ms for ranks 1, 3 in "
                          "all_reduce of f64 " +
                          here + " of group world(; rank 1 waits in all_reduce of f64 " + here +
                          " of group col)?");
}

TEST_CASE("groups of a mesh are named by their axes") {
  gate failed(3);
  const std::string what = error_of(4, {.time_limit = limit}, [&](const communicator& c) {
    const partita::mesh<partita::host> m(c, {2, 2, 1});
    const communicator& row = m.along(partita::axis::row);
    std::vector<double> a(4);
    if (c.rank() == 1) failed.wait();
    failed.pass_if_fails([&] {
      row.all_reduce(std::span(a));
      c.all_reduce(std::span(a));
    });
  });
  check_late(what, "rank [0-3]", "ranks? .*", "all_reduce of f64", " of group (row|world).*");
}

TEST_CASE("a rank that is stuck is reported when the others have ended") {
  for (const int stuck : {0, 2}) {
    gate reported(1);
    std::string why;
    const auto report = [&](const std::string& text) {
      why = text;
      reported.pass();
    };
    const std::string what =
        error_of(3, {.time_limit = limit, .if_stuck = report}, [&](const communicator& c) {
          std::vector<double> a(4);
          if (c.rank() == stuck) reported.wait();
          c.all_reduce(std::span(a));
        });
    check_late(what, "rank [0-2]", "rank " + std::to_string(stuck), "all_reduce of f64");
    check_matches(why, "rank [0-2] has waited .* of group world; rank " + std::to_string(stuck) +
                           " is still computing 200 ms later");
  }
}

TEST_CASE("ranks that fail for another reason are not waited for without end") {
  gate reported(1);
  std::string why;
  const partita::threads::options o{.time_limit = limit, .if_stuck = [&](const std::string& text) {
                                      why = text;
                                      reported.pass();
                                    }};
  expect_error<partita::mesh_error>("the lamp fell", [&] {
    partita::threads::run(
        3,
        [&](const communicator& c) {
          if (c.rank() == 1) throw partita::mesh_error("the lamp fell");
          reported.wait();
        },
        o);
  });
  CHECK(why == "the lamp fell; ranks 0, 2 are still computing 200 ms later");
}

TEST_CASE("waits within the limit, and those of a single rank, are left alone") {
  partita::threads::run(4,
                        [](const communicator& c) {
                          double sum = 0;
                          for (int step = 0; step < 200; ++step) sum = c.all_reduce(sum + c.rank());
                          CHECK(sum > 0);
                        },
                        {.time_limit = std::chrono::minutes(1)});
  partita::threads::run(1, [](const communicator& c) { CHECK(c.all_reduce(7) == 7); },
                        {.time_limit = std::chrono::milliseconds(1)});
  CHECK(partita::self::world().all_reduce(7) == 7);
}

}  // namespace test_comm_timeout

// SPDX-License-Identifier: Apache-2.0
// Errors of the operations that a verb runs name the line that called the verb, not one of the library.
#include "partita/comm/call_site.hpp"

#include "partita/algebra/gemm.hpp"
#include "partita/algebra/reductions.hpp"
#include "partita/algebra/spmm.hpp"
#include "partita/algebra/vectors.hpp"
#include "partita/comm/threads.hpp"
#include "support/matrices.hpp"

namespace test_call_site {

using namespace test_support;

/// The error of two ranks of which the first calls `one` and the other nothing.
std::string error_of(auto verb) {
  try {
    partita::threads::run(2, [&](const communicator& world) {
      const host_mesh m(world, {2, 1, 1});
      const auto a = distribute(m, row_1d, {9, 9}, share(sparse_entries({9, 9}), m));
      const auto x = generate<double>(m, row_1d.dense, {9, 3}, field(1));
      m.along(axis::row);
      if (m.rank() == 0) verb(a, x);
    });
  } catch (const error& e) {
    return e.what();
  }
  return "";
}

TEST_CASE("the outermost call site counts, on the thread that has one") {
  const auto here = std::source_location::current(), there = std::source_location::current();
  {
    const comm::call_site outer(here), inner(there);
    CHECK(comm::call_site::of(there).column() == here.column());
  }
  CHECK(comm::call_site::of(there).column() == there.column());
}

TEST_CASE("verbs name the line of their caller") {
  for (const std::string& said : {error_of([](const auto&, const auto&x) { norm(x); }),
                                  error_of([](const auto&, const auto&x) { sum(x); }),
                                  error_of([](const auto&a, const auto&x) { spmm(a, x); }),
                                  error_of([](const auto&, const auto&x) { collect(x); }),
                                  error_of([](const auto&, const auto&x) { inner(x, x); }),
                                  error_of([](const auto&, const auto&x) { redistribute(x, replicated); }),
                                  error_of([](const auto&, const auto&x) {
                                    distribute<vertex_rows>(x.mesh(), {9, 3}, std::vector<double>(27));
                                  })}) {
    INFO(said);
    CHECK(said.find("(call_site.cpp:") != std::string::npos);
    CHECK(said.find(".hpp:") == std::string::npos);
  }
}

TEST_CASE("of tasks the innermost counts, on the thread that is at it") {
  CHECK(comm::task_scope::current().empty());
  CHECK(comm::task_scope::named("lost") == "lost");
  {
    const comm::task_scope outer("stage 1, epoch 3");
    CHECK(comm::task_scope::current() == "stage 1, epoch 3");
    {
      const comm::task_scope inner(std::string("stage 1, chunk 2"));
      CHECK(comm::task_scope::current() == "stage 1, chunk 2");
      CHECK(comm::task_scope::named("lost") == "stage 1, chunk 2: lost");
      CHECK(comm::task_scope::named("stage 1, chunk 2: lost") == "stage 1, chunk 2: lost");
      std::thread([] { CHECK(comm::task_scope::current().empty()); }).join();
    }
    CHECK(comm::task_scope::current() == "stage 1, epoch 3");
    {
      const comm::task_scope lengthy(std::string(300, 'x'));
      CHECK(comm::task_scope::current() == std::string(100, 'x'));
    }
    CHECK(comm::task_scope::current() == "stage 1, epoch 3");
  }
  CHECK(comm::task_scope::current().empty());
}

TEST_CASE("errors in a task begin with its name, once, whatever throws them") {
  const auto in_task = [](const auto& thrown) {
    return [&] { comm::in_task("stage 0, chunk 4", [&] { throw thrown; }); };
  };
  expect_error<communication_error>("stage 0, chunk 4: lost", in_task(communication_error("lost")));
  expect_error<device_error>("stage 0, chunk 4: lost", in_task(device_error("lost")));
  expect_error<error>("stage 0, chunk 4: lost", in_task(shape_error("lost")));
  expect_error<error>("stage 0, chunk 4: lost", in_task(std::runtime_error("lost")));
  expect_error<error>("stage 2: stage 0, chunk 4: lost",
                      [&] { comm::in_task("stage 2", in_task(error("lost"))); });
  try {
    in_task(poisoned_error("another rank failed"))();
  } catch (const poisoned_error& e) {
    CHECK(std::string(e.what()) == "another rank failed");
  }
  CHECK(comm::task_scope::current().empty());
  int runs = 0;
  comm::in_task("stage 0", [&] { ++runs; });
  CHECK(runs == 1);
}

TEST_CASE("a message of the wrong size, and a rank that does not come, are errors in the task that waits") {
  for (const std::size_t sent : {3, 0}) {
    std::string said;
    try {
      partita::threads::run(2, [&](const communicator& world) {
        std::vector<double> two(2), message(sent);
        if (world.rank() == 1 && sent > 0) world.send(message, 0);
        if (world.rank() == 0) comm::in_task("stage 1, chunk 2", [&] { world.receive(two, 1); });
      });
    } catch (const communication_error& e) {
      said = e.what();
    }
    INFO(said);
    CHECK(said.starts_with(sent > 0 ? "stage 1, chunk 2: ranks disagree: rank 0 calls receive of f64"
                                    : "stage 1, chunk 2: rank 1 ended without taking part in receive"));
  }
}

}  // namespace test_call_site

// SPDX-License-Identifier: Apache-2.0
// Errors of the operations that a verb runs name the line that called the verb, not one of the library.
#include "partita/comm/call_site.hpp"

#include <doctest/doctest.h>
#include <string>

#include "partita/algebra/gemm.hpp"
#include "partita/algebra/reductions.hpp"
#include "partita/algebra/spmm.hpp"
#include "partita/algebra/vectors.hpp"
#include "partita/comm/threads.hpp"
#include "support/matrices.hpp"

namespace test_call_site {

using namespace partita;
using namespace test_support;

namespace {

/// The error of two ranks of which the first calls `one` and the other nothing.
template <class Verb>
std::string error_of(Verb verb) {
  try {
    partita::threads::run(2, [&](const communicator& world) {
      const host_mesh m(world, {2, 1, 1});
      const auto a = distribute(m, row_1d, {9, 9}, share(sparse_entries({9, 9}), m.rank(), m.size()));
      const auto x = generate<double>(m, row_1d.dense, {9, 3}, field(1));
      m.along(axis::row);
      if (m.rank() == 0) verb(a, x);
    });
  } catch (const error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the outermost call site counts, on the thread that has one") {
  const auto here = std::source_location::current(), there = std::source_location::current();
  {
    const comm::call_site outer(here);
    const comm::call_site inner(there);
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

}  // namespace test_call_site

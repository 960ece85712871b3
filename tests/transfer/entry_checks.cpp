// SPDX-License-Identifier: Apache-2.0
// What is refused of the entries of a sparse matrix, and which matrices are symmetric.
#include "partita/transfer/entry_checks.hpp"

#include <tuple>

#include "partita/algebra/spmm.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/matrices.hpp"

namespace test_entry_checks {

using namespace test_support;
using entry = triplet<double>;
using entries = std::vector<entry>;

/// Whether entries are those of a symmetric matrix, dealt to the ranks of any number.
bool symmetric(const entries& all) {
  bool answers[3] = {};
  for (const int ranks : {1, 2, 3})
    on_threads(ranks, [&](const communicator& world) {
      const entries mine = share(all, world.rank(), ranks);
      if (const bool answer = is_symmetric(world, std::span<const entry>(mine)); world.rank() == 0)
        answers[ranks - 1] = answer;
    });
  CHECK(answers[0] == answers[1]);
  CHECK(answers[0] == answers[2]);
  return answers[0];
}

TEST_CASE("entry checks: what is symmetric once entries of one place are added up") {
  CHECK(symmetric({{0, 1, 1}, {0, 1, 1}, {1, 0, 2}}));
  CHECK(symmetric({{0, 1, 0.1}, {0, 1, 0.2}, {0, 1, 0.3}, {1, 0, 0.3}, {1, 0, 0.2}, {1, 0, 0.1}}));
  CHECK(symmetric({{0, 1, 1e300}, {0, 1, 5e-324}, {0, 1, -1e300}, {1, 0, 5e-324}}));
  CHECK(symmetric({{0, 1, 1.5}, {0, 1, -1.5}}));
  CHECK_FALSE(symmetric({{0, 1, 1}, {0, 1, 1}, {1, 0, 1}}));
  CHECK_FALSE(symmetric({{0, 1, 1}, {1, 2, 1}, {1, 0, 2}}));
}

TEST_CASE("entry checks: zeros of either sign are as if they were not there") {
  CHECK(symmetric({{0, 1, 0.0}, {1, 0, -0.0}}));
  CHECK(symmetric({{0, 1, 0.0}, {2, 3, -0.0}}));
  CHECK_FALSE(symmetric({{0, 1, 0.0}, {1, 0, 5e-324}}));
}

TEST_CASE("entry checks: neither signs nor powers of 2 are mistaken") {
  for (const double other : {-1.0, 0x1p61, 0x1p-61, 0x1p31, 0x1p32, 0x1p64, 0x1p1000, 0x1p-1074, 1 + 0x1p-52})
    CHECK_FALSE(symmetric({{0, 1, 1}, {1, 0, other}}));
  for (const double value : {std::numeric_limits<double>::max(), 5e-324, -0x1.fffffffffffffp-1022})
    CHECK(symmetric({{0, 1, value}, {1, 0, value}}));
}

TEST_CASE("entry checks: a matrix that is symmetric after adding up is distributed as such") {
  on_mesh({2, 1, 1}, [](const mesh<host>& m) {
    const entries mine = share(entries{{0, 1, 1}, {0, 1, 1}, {1, 0, 2}, {2, 1, 0}}, m);
    const auto a = distribute(m, row_1d, {3, 3}, mine, symmetry::symmetric);
    CHECK(transposed(a).local() == a.local());
  });
}

TEST_CASE("entry checks: an entry that is no finite number is named") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto refused = [](double value, const std::string& name) {
    expect_error<error>(
        "entry (2, 1) of a sparse matrix is " + name + ", which is not a finite number (given by rank 1)",
        [&] {
          on_mesh({2, 1, 1}, [&](const mesh<host>& m) {
            distribute(m, row_1d, {3, 3}, share(entries{{0, 1, 1}, {2, 1, value}}, m));
          });
        });
  };
  refused(std::numeric_limits<double>::quiet_NaN(), "NaN");
  refused(infinity, "infinite");
  refused(-infinity, "minus infinite");
}

TEST_CASE("entry checks: entries that every rank gives are refused, in whatever order") {
  expect_error<error>(
      "each of 4 ranks gave the same 2 entries, which would be summed 4 times: give each entry on "
      "one rank, or say transfer::sharing::overlapping",
      [] {
        on_mesh({2, 2, 1}, [](const mesh<host>& m) {
          const entries one{{0, 1, 1}, {2, 1, 3}}, other{{2, 1, 3}, {0, 1, 1}};
          distribute(m, grid_2d, {3, 3}, m.rank() == 2 ? other : one);
        });
      });
}

TEST_CASE("entry checks: entries that two of four ranks give are refused on every rank") {
  const auto given = [](const mesh<host>& m, int first, int second, int count) {
    entries mine;
    for (int j = 0; j < count; ++j)
      mine.push_back({j, 1, m.rank() == first || m.rank() == second ? 7.0 : 1.0 + m.rank()});
    distribute(m, grid_2d, {9, 9}, mine);
  };
  for (const auto& [first, second, name] : {std::tuple{0, 1, "0 and 1"}, std::tuple{1, 3, "1 and 3"}})
    expect_error<error>("ranks " + std::string(name) + " gave the same entries, which would be summed twice",
                        [&] {
                          on_mesh({2, 2, 1}, [&](const mesh<host>& m) { given(m, first, second, 4); });
                        });
  on_mesh({2, 2, 1}, [&](const mesh<host>& m) { given(m, 0, 2, 3); });  // too few to tell
}

TEST_CASE("entry checks: shares that are equally long, empty, or on one rank alone are none") {
  on_mesh({2, 2, 1}, [](const mesh<host>& m) {
    const entries all{{0, 1, 1}, {2, 1, 3}};
    distribute(m, grid_2d, {9, 9}, entries{{m.rank(), 1, 1}, {2, 1, 3}});
    distribute(m, grid_2d, {9, 9}, entries{{2, 1, 1.0 + m.rank()}});
    distribute(m, grid_2d, {9, 9}, entries{});
    distribute(m, grid_2d, {9, 9}, m.rank() == 1 ? all : entries{});
    m.ledger().clear();
    const auto a = distribute(m, grid_2d, {9, 9}, all, symmetry::general, transfer::sharing::overlapping);
    const auto fixed =
        distribute<grid_2d.sparse>(m, {9, 9}, all, symmetry::one_way, transfer::sharing::overlapping);
    CHECK(m.ledger().total([](const comm::ledger_entry& e) { return e.kind == operation::all_gather; }) ==
          traffic{});
    const auto ones = generate<double>(m, grid_2d.dense, {9, 1}, [](auto, auto) { return 1.0; });
    CHECK(collect(spmm(a, ones))[2] == 12);
    CHECK(fixed.shape() == matrix_shape{9, 9});
  });
  on_mesh({1, 1, 1}, [](const mesh<host>& m) { distribute(m, grid_2d, {9, 9}, entries{{0, 1, 1}}); });
}

}  // namespace test_entry_checks

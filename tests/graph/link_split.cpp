// SPDX-License-Identifier: Apache-2.0
// Links that are taken out of a graph leave neither themselves nor their reverses, in whatever order it has
// its edges.
#include "partita/graph/link_split.hpp"

#include <doctest/doctest.h>
#include <set>

#include "partita/io/karate.hpp"
#include "support/ranks.hpp"

namespace test_link_split {

using namespace partita;
using test_support::expect_error;

constexpr graph::link_split_options how{.validation = 0.2, .test = 0.3, .seed = 5};

std::set<std::pair<global_index, global_index>> pairs_of(const io::array<io::edge>& edges) {
  std::set<std::pair<global_index, global_index>> pairs;
  for (const io::edge e : edges) pairs.insert(std::minmax(e.source, e.target));
  return pairs;
}

TEST_CASE("messages exclude validation and test links and their reverses") {
  const io::dataset whole = io::karate_club();
  const io::dataset data = graph::split_links(whole, how);
  CHECK(data.task == io::task::links);
  CHECK(data.edges.size() + data.validation_links.size() + data.test_links.size() == whole.edges.size());
  const auto messages = pairs_of(data.edges), validation = pairs_of(data.validation_links),
             test = pairs_of(data.test_links);
  CHECK(messages.size() + validation.size() + test.size() == 78);
  for (const auto& pair : validation) CHECK((!messages.contains(pair) && !test.contains(pair)));
  for (const auto& pair : test) CHECK(!messages.contains(pair));
  CHECK(2 * validation.size() == data.validation_links.size());  // both directions of each
  CHECK(validation.size() == 19);                                // of 78, each with probability 0.2
  CHECK(test.size() == 20);                                      // 0.3
}

TEST_CASE("the same links for any order of the edges, repeated ones and loops included") {
  io::dataset some = io::karate_club(), other = some;
  other.edges = std::vector<io::edge>(some.edges.begin(), some.edges.end());
  std::reverse(other.edges.edit().begin(), other.edges.edit().end());
  for (const global_index v : {0, 33}) other.edges.push_back({v, v});
  for (std::size_t i = 0; i < some.edges.size(); i += 3) other.edges.push_back(some.edges[i]);
  const io::dataset a = graph::split_links(some, how), b = graph::split_links(other, how);
  CHECK(a.validation_links == b.validation_links);
  CHECK(a.test_links == b.test_links);
  std::set<std::pair<global_index, global_index>> messages = pairs_of(b.edges);
  CHECK(messages.erase({0, 0}) + messages.erase({33, 33}) == 2);
  CHECK(messages == pairs_of(a.edges));
}

TEST_CASE("weights and features stay with their edges") {
  io::dataset data = io::karate_club();
  std::vector<double> weights, rows;
  for (const io::edge e : data.edges)
    weights.push_back(1 + static_cast<double>(e.source)), rows.push_back(double(e.target));
  data.edge_weights = std::move(weights);
  data.edge_features = io::feature_table(static_cast<global_index>(data.edges.size()), 1, std::move(rows));
  data = graph::split_links(std::move(data), how);
  CHECK(data.edge_features.rows == std::ssize(data.edges));
  for (std::size_t i = 0; i < data.edges.size(); ++i) {
    CHECK(data.edge_weights[i] == 1 + static_cast<double>(data.edges[i].source));
    double row[1];
    data.edge_features.fill_row(static_cast<global_index>(i), std::span<double>(row));
    CHECK(row[0] == static_cast<double>(data.edges[i].target));
  }
}

TEST_CASE("links that are given") {
  io::dataset data;
  data.vertices = 6;
  data.edges = {{0, 1}, {1, 0}, {1, 2}, {3, 2}, {2, 3}, {4, 4}, {4, 5}};
  data.edge_types = {0, 1, 2, 3, 4, 5, 6};
  const io::array<io::edge> validation{{5, 4}, {0, 3}}, test{{1, 0}, {2, 0}, {1, 0}};
  const io::dataset all = graph::split_links(data, io::given_links{{}, validation, test, {}}, 7);
  CHECK(all.edges == io::array<io::edge>{{1, 2}, {3, 2}, {2, 3}, {4, 4}});
  CHECK(all.edge_types == io::array<std::int64_t>{2, 3, 4, 5});
  CHECK((all.validation_links == validation && all.test_links == test));  // in their order, as they are
  CHECK((all.task == io::task::links && all.classes == 7));
  CHECK(all.notes == std::vector<std::string>{"3 of 7 edges are left out: their pairs are held out, or in no "
                                              "file of links"});
  const io::dataset some = graph::split_links(data, io::given_links{{{2, 3}}, validation, test, {}}, 7);
  CHECK(some.edges == io::array<io::edge>{{3, 2}, {2, 3}, {4, 4}});  // both directions, and loops
  const auto refused = [&](const char* part, io::given_links given) {
    expect_error<input_error>(part, [&] { graph::split_links(data, given, 7); });
  };
  refused("links_train.npy: row 1 is the link 5 -> 3, and edges.npy has it in neither direction",
          {{{1, 2}, {5, 3}}, validation, test, {}});
  refused("links_train.npy: row 0 is the link 4 -> 5, whose pair is also in links_valid.npy",
          {{{4, 5}}, validation, test, {}});
  refused("links_train.npy: row 0 is the link 0 -> 1, whose pair is also in links_test.npy",
          {{{0, 1}}, validation, test, {}});
  refused("links_valid.npy: row 0 is the link 0 -> 2, whose pair is also in links_test.npy",
          {{}, {{0, 2}}, test, {}});
}

TEST_CASE("what is refused") {
  io::dataset data = io::karate_club();
  expect_error<input_error>("below 1 together",
                            [&] { graph::split_links(data, {.validation = 0.5, .test = 0.5}); });
  expect_error<input_error>("below 1 together", [&] { graph::split_links(data, {.validation = -0.1}); });
  data.edges.push_back({3, 34});
  expect_error<input_error>("edge 156 has vertex 34, which is not one of 34",
                            [&] { graph::split_links(data, {}); });
}

}  // namespace test_link_split

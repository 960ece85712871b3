// SPDX-License-Identifier: Apache-2.0
// Ranks of links, against values by hand and slow loops over all vertices.
#include "partita/train/link_scores.hpp"

#include <set>

#include "partita/graph/link_rows.hpp"
#include "partita/graph/link_split.hpp"
#include "partita/io/karate.hpp"
#include "support/matrices.hpp"

namespace test_link_scores {

using namespace test_support;
using nn::link_decoding;

TEST_CASE("ranks and hits by hand, as OGB's evaluators have them") {
  const std::vector<double> links{0.5, 0.1, 0.9},
      negatives{0.4, 0.6, 0.5, 0.5,   // one higher, two equal: 1 + 1 + 1
                0.2, 0.3, 0.4, 0.1,   // three higher, one equal: 4.5
                0.1, 0.2, 0.3, 0.8};  // 1
  const std::vector<double> ranks = nn::ranks_among(links, negatives);
  CHECK(ranks == std::vector<double>{3, 4.5, 1});
  CHECK(nn::mean_reciprocal_rank(ranks) == doctest::Approx((1 / 3.0 + 1 / 4.5 + 1) / 3));
  CHECK(nn::hits_at(ranks, 1) == doctest::Approx(1 / 3.0));
  CHECK(nn::hits_at(ranks, 3) == doctest::Approx(2 / 3.0));
  CHECK(nn::hits_at(ranks, 5) == 1);
  // The second highest of all negatives is 0.6, the fourth 0.5, which a score of 0.5 does not exceed.
  CHECK(nn::hits_above(links, negatives, 2) == doctest::Approx(1 / 3.0));
  CHECK(nn::hits_above(links, negatives, 4) == doctest::Approx(1 / 3.0));
  CHECK(nn::hits_above(links, negatives, 8) == doctest::Approx(2 / 3.0));
  CHECK(nn::hits_above(links, {0.4, 0.6}, 3) == 1);
  CHECK(std::isnan(nn::hits_above({}, {0.4, 0.6}, 1)));
  CHECK(std::isnan(nn::mean_reciprocal_rank({})));
  CHECK(nn::ranks_among(std::vector<double>{NAN}, std::vector{1.0, 2.0}) == std::vector<double>{3});
  std::vector<double> each;
  for (std::size_t i = 0; i < links.size(); ++i) each.insert(each.end(), negatives.begin(), negatives.end());
  CHECK(nn::ranks_among_shared(links, negatives) == nn::ranks_among(links, each));
  CHECK(nn::ranks_among_shared(std::vector<double>{NAN}, {1.0, NAN}) == std::vector<double>{3});
  expect_error<shape_error>("not equally many", [&] { nn::ranks_among(links, std::vector<double>(4)); });
}

TEST_CASE("the area under the ROC curve counts each pair of a link and a negative, half where they tie") {
  const std::vector<double> links{0.5, 0.1, 0.9};
  // 0.5 beats 0.1 and 0.4 and ties with 0.5; 0.1 ties with 0.1; 0.9 beats all four.
  CHECK(nn::area_under_roc(links, {0.4, 0.6, 0.5, 0.1}) == (2.5 + 0.5 + 4) / 12);
  CHECK(nn::area_under_roc(links, {0.05}) == 1);
  CHECK(nn::area_under_roc(links, {1, 2}) == 0);
  CHECK(nn::area_under_roc(std::vector<double>(7, 3.0), std::vector<double>(5, 3.0)) == 0.5);
  CHECK(nn::area_under_roc(std::vector<double>{NAN, 1}, {0, NAN}) == 0.25);
  CHECK(std::isnan(nn::area_under_roc({}, {1.0})));
  CHECK(std::isnan(nn::area_under_roc(links, {})));
  // Links i / m, negatives j / n: link i beats those below i n / m, and ties with that one, if there is one.
  const std::size_t m = 12, n = 18;
  std::vector<double> upper, lower;
  for (std::size_t i = 0; i < m; ++i) upper.push_back(static_cast<double>(i * n));
  for (std::size_t j = 0; j < n; ++j) lower.push_back(static_cast<double>(j * m));
  double won = 0;
  for (std::size_t i = 0; i < m; ++i)
    won += static_cast<double>((i * n + m - 1) / m) + (i * n % m == 0 ? 0.5 : 0);
  CHECK(nn::area_under_roc(upper, lower) == won / (m * n));
}

io::dataset directed_data() {
  io::dataset data = io::karate_club();
  std::vector<io::edge> some;
  for (const io::edge e : data.edges)
    if (e.source % 3 != 1 || e.target % 2 == 0) some.push_back(e);
  some.push_back({4, 4});
  data.edges = std::move(some);
  return graph::split_links(std::move(data), {.validation = 0.1, .test = 0.3});
}

TEST_CASE("full ranks, filtered, in chunks of any size, under every policy") {
  const io::dataset data = directed_data();
  const global_index n = data.vertices, k = 4;
  std::set<std::pair<global_index, global_index>> known;
  for (const auto* const edges : {&data.edges, &data.validation_links, &data.test_links})
    for (const io::edge e : *edges) known.insert({e.source, e.target});
  const auto rows_of_h = [](auto v, auto j) {
    return v % 5 == 2 ? element(2, j, 3) : element(v, j, 3);
  };  // ties
  for (const auto how : {link_decoding::dot, link_decoding::distmult, link_decoding::mlp}) {
    for_each_usual_mesh(std::array{1, 2, 3, 6, 9}, [&](const policy& p, mesh_shape shape) {
      with_mesh(shape, [&](const host_mesh& m) {
        const auto h = generate<vertex_rows, double>(m, {n, k}, rows_of_h);
        nn::parameters<double, host> set(m);
        const nn::link_decoder<double, host> decoder(how, k, set, 3);
        std::vector<io::edge> all;
        for (const io::edge e : data.test_links)
          for (global_index w = 0; w < n; ++w) all.push_back({e.source, w});
        const std::vector<double> scores =
            nn::scores_of_pairs(decoder, h, std::span<const io::edge>(all), 1000);
        std::vector<double> expected;
        for (std::size_t i = 0; i < data.test_links.size(); ++i) {
          const auto [u, v] = data.test_links[i];
          const auto score = [&](global_index w) { return scores[i * std::size_t(n) + std::size_t(w)]; };
          double rank = 1;
          for (global_index w = 0; w < n; ++w)
            if (w != u && !known.contains({u, w}))
              rank += std::abs(score(w) - score(v)) < 1e-13 ? 0.5 : score(w) > score(v);
          expected.push_back(rank);
        }
        const auto links = graph::link_rows<double>(m, p, h.row_blocking(), data, {.held_out = true});
        for (const std::size_t bytes : {std::size_t{1}, std::size_t{1000}, std::size_t{1} << 20})
          CHECK(nn::full_ranks(decoder, h, links, std::span<const io::edge>(data.test_links), bytes) ==
                expected);
      });
    });
  }
}

TEST_CASE("scores of pairs, in order, in chunks") {
  const auto pairs = std::vector<io::edge>{{3, 4}, {0, 9}, {9, 0}, {5, 5}, {7, 2}};
  for (const int ranks : {1, 2, 6})
    with_mesh({ranks, 1, 1}, [&](const host_mesh& m) {
      const auto h = generate<vertex_rows, double>(m, {10, 3}, field(3));
      nn::parameters<double, host> set(m);
      const nn::link_decoder<double, host> decoder(link_decoding::dot, 3, set, 3);
      for (const std::size_t at_once : {1, 2, 100}) {
        const auto scores = nn::scores_of_pairs(decoder, h, std::span<const io::edge>(pairs), at_once);
        REQUIRE(scores.size() == pairs.size());
        for (std::size_t i = 0; i < pairs.size(); ++i) {
          double expected = 0;
          for (global_index j = 0; j < 3; ++j)
            expected += element(pairs[i].source, j, 3) * element(pairs[i].target, j, 3);
          CHECK(scores[i] == doctest::Approx(expected).epsilon(1e-14));
        }
      }
    });
}

}  // namespace test_link_scores

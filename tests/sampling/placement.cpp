// SPDX-License-Identifier: Apache-2.0
// Placing roots: every root once, balanced, near its neighbours; and what that saves.
#include "partita/sampling/placement.hpp"

#include "bench/support/planted_graph.hpp"
#include "partita/base/random.hpp"
#include "partita/sampling/neighbour_sampler.hpp"
#include "support/samples.hpp"

namespace test_placement {

using namespace test_support;
using sampling::owner_shares, sampling::most_roots, sampling::root_lists, sampling::vertex_owners;

constexpr global_index n = 67;

vertex_owners owners(int ranks, std::vector<global_index> sizes) {
  return {blocking::given(std::move(sizes), {ranks, 1, 1}, nesting::rows), vertex_rows.rows, ranks};
}
vertex_owners even_owners(int ranks, global_index vertices = n) {
  return {blocking::even(vertices, {ranks, 1, 1}, nesting::rows), vertex_rows.rows, ranks};
}
/// Blocks of random sizes, some of them empty.
vertex_owners random_owners(int ranks, std::int64_t number) {
  std::vector<global_index> sizes(static_cast<std::size_t>(ranks), 0);
  for (global_index left = n; left > 0;) {
    const auto part = static_cast<global_index>(base::random_bits(21, number, left) % 9) + 1;
    sizes[base::random_bits(22, number, left) % sizes.size()] += std::min(part, left);
    left -= std::min(part, left);
  }
  return owners(ranks, std::move(sizes));
}
/// `count` of the first `below` vertices in a random order.
std::vector<global_index> random_roots(std::size_t count, global_index below, std::int64_t number) {
  std::vector<global_index> all = vertices_below(below);
  for (std::size_t i = all.size(); i > 1; --i)
    std::swap(all[i - 1], all[base::random_bits(23, number, static_cast<std::int64_t>(i)) % i]);
  all.resize(std::min(count, all.size()));
  return all;
}

root_lists at_owner(std::span<const global_index> batch, const vertex_owners& owner) {
  root_lists lists(static_cast<std::size_t>(owner.ranks));
  for (const global_index v : batch) lists[owner(v)].push_back(v);
  return lists;
}
std::vector<global_index> joined(const root_lists& lists) {
  std::vector<global_index> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}
std::size_t largest(const root_lists& lists) {
  std::size_t most = 0;
  for (const auto& list : lists) most = std::max(most, list.size());
  return most;
}

TEST_CASE("equal shares are the batch in its order, cut into parts that differ by one root at most") {
  for (const std::size_t size : {0u, 1u, 5u, 67u})
    for (const int ranks : {1, 2, 3, 7, 12}) {
      const auto batch = random_roots(size, n, 1);
      const root_lists lists = sampling::equal_shares(batch, ranks);
      REQUIRE(lists.size() == static_cast<std::size_t>(ranks));
      CHECK(joined(lists) == batch);
      for (const auto& list : lists) {
        CHECK(list.size() >= size / static_cast<std::size_t>(ranks));
        CHECK(list.size() <= (size + static_cast<std::size_t>(ranks) - 1) / static_cast<std::size_t>(ranks));
      }
    }
}

TEST_CASE("the most roots of a rank are 1.1 times the mean, or the mean rounded up") {
  CHECK(most_roots(0, 4) == 0);
  CHECK(most_roots(1, 4) == 1);
  CHECK(most_roots(9, 4) == 3);
  CHECK(most_roots(40, 4) == 11);
  CHECK(most_roots(1024, 4) == 281);
  CHECK(most_roots(1024, 1) == 1126);
}

TEST_CASE("every root has one rank, no rank too many, and only roots of full ranks leave their owners") {
  const sampling::graph<double> g = test_graph(n);
  std::size_t moved = 0, not_moved = 0;
  for (std::int64_t number = 0; number < 400; ++number) {
    CAPTURE(number);
    const int ranks = 1 + static_cast<int>(base::random_bits(31, number, 0) % 12);
    const vertex_owners owner = number % 2 == 0 ? random_owners(ranks, number) : even_owners(ranks);
    const auto size = static_cast<std::size_t>(base::random_bits(31, number, 1) % (number % 3 == 0 ? 6 : 68));
    const auto batch = random_roots(size, number % 5 == 0 ? 20 : n, number);
    const root_lists lists = owner_shares(g, batch, owner), before = at_owner(batch, owner);
    REQUIRE(lists.size() == before.size());
    auto all = joined(lists), expected = batch;
    std::sort(all.begin(), all.end());
    std::sort(expected.begin(), expected.end());
    CHECK(all == expected);
    const auto most = static_cast<std::size_t>(most_roots(batch.size(), ranks));
    CHECK(largest(lists) <= most);
    for (std::size_t r = 0; r < lists.size(); ++r) {
      const std::size_t stay = std::min(before[r].size(), most);
      not_moved += stay;
      moved += before[r].size() - stay;
      REQUIRE(lists[r].size() >= stay);
      if (before[r].size() <= most) {
        CHECK(std::equal(before[r].begin(), before[r].end(), lists[r].begin()));
      } else {
        CHECK(lists[r].size() == most);
        auto at = before[r].begin();  // in the order of the batch
        for (const global_index v : lists[r]) {
          at = std::find(at, before[r].end(), v);
          CHECK(at != before[r].end());
        }
      }
    }
  }
  CHECK(moved > 1000);
  CHECK(not_moved > 1000);
}

TEST_CASE("in-neighbours are counted by the ranks that have them") {
  const sampling::graph<double> g = test_graph(n);
  for (const int ranks : {1, 2, 3, 12}) {
    const vertex_owners owner = random_owners(ranks, ranks);
    const auto roots = random_roots(40, n, ranks);
    std::vector<global_index> expected(roots.size() * static_cast<std::size_t>(ranks), 0);
    for (const auto& e : graph_entries(n))
      for (std::size_t i = 0; i < roots.size(); ++i)
        if (e.row == roots[i]) ++expected[i * static_cast<std::size_t>(ranks) + owner(e.col)];
    CHECK(sampling::neighbours_by_owner(g, roots, owner) == expected);
  }
}

TEST_CASE("the roots that lose least leave a full rank, for where most of their in-neighbours are") {
  // Three ranks of four vertices; six roots, all owned by rank 0 or 1, of which a rank may have two.
  std::vector<triplet<double>> entries;
  const auto connect = [&](global_index v, const std::vector<global_index>& from) {
    for (const global_index u : from) entries.push_back({v, u, 1});
  };
  connect(0, {1, 2, 3});    // loses three
  connect(1, {8, 9, 2});    // gains by moving to rank 2
  connect(2, {0, 1, 8});    // loses one
  connect(3, {9, 10, 11});  // gains most by moving to rank 2
  connect(4, {8, 9, 10});   // of a rank that is not full
  connect(5, {4, 6});
  const host_mesh alone(self::world(), {1, 1, 1});
  const sampling::graph<double> g(distribute(alone, row_1d, {12, 12}, entries));
  const vertex_owners owner = owners(3, {4, 4, 4});
  CHECK(owner_shares(g, std::vector<global_index>{0, 1, 2, 3, 4, 5}, owner) ==
        root_lists{{0, 2}, {4, 5}, {3, 1}});
  // Where there is no room for it, the next best.
  CHECK(owner_shares(g, std::vector<global_index>{3, 2, 1, 8, 9, 4}, owner) ==
        root_lists{{2, 1}, {4, 3}, {8, 9}});
}

TEST_CASE("all ranks place roots alike, over whole graphs and cut ones") {
  for (const int ranks : {2, 3, 4, 8})
    for (const std::size_t size : {3u, 40u}) {
      const auto batch = random_roots(size, n / 2, ranks);
      const vertex_owners owner = even_owners(ranks);
      const root_lists expected = owner_shares(test_graph(n), batch, owner);
      CHECK(expected != at_owner(batch, owner));
      on_threads(ranks, [&](const communicator& world) {
        const host_mesh m(world, {ranks, 1, 1}), whole(world, {1, ranks, 1});
        CHECK(owner_shares(test_graph(m, row_1d, n), batch, owner) == expected);
        CHECK(owner_shares(test_graph(whole, feature_column, n), batch, owner) == expected);
      });
    }
}

/// A graph with communities, and the rows that the ranks need of each other for batches of its vertices.
class community {
 public:
  community(int hops, bool in_random_order) {
    bench::planted p;
    p.vertices = vertices;
    p.communities = 16;
    p.in_random_order = in_random_order;
    const host_mesh alone(self::world(), {1, 1, 1});
    sampler_.emplace(sampling::graph<float>(distribute(alone, row_1d, {vertices, vertices}, planted_graph(p),
                                                       symmetry::one_way)),
                     sampling::neighbour_options{
                         .fanouts = std::vector<sampling::fanout>(static_cast<std::size_t>(hops), 10)});
  }

  struct rows {
    double needed = 0, remote = 0;
  };
  rows of(const root_lists& lists, const vertex_owners& owner) {
    rows all;
    for (std::size_t r = 0; r < lists.size(); ++r) {
      (*sampler_)(lists[r], 1, sample_);
      all.needed += static_cast<double>(sample_.vertices.size());
      for (const global_index v : sample_.vertices) all.remote += owner(v) != r;
    }
    return all;
  }
  const sampling::graph<float>& graph() const { return sampler_->graph(); }

  static constexpr global_index vertices = 20'000;

 private:
  std::optional<sampling::neighbour_sampler<float>> sampler_;
  sampling::sample<float> sample_;
};

vertex_owners with_half_on_the_first(int ranks) {
  std::vector<global_index> sizes;
  for (int r = 0; r < ranks; ++r)
    sizes.push_back(r == 0 ? community::vertices / 2
                           : comm::share_of(community::vertices / 2, r - 1, ranks - 1).size());
  return owners(ranks, std::move(sizes));
}

TEST_CASE("random batches miss (P - 1) / P of their rows; roots at their owners never more") {
  for (const bool in_random_order : {false, true}) {
    community graph(2, in_random_order);
    for (const int ranks : {2, 4, 8, 16})
      for (const bool uneven : {false, true}) {
        if (sanitized && ranks != 4) continue;
        INFO("ranks ", ranks, ", in_random_order ", in_random_order, ", uneven ", uneven);
        const vertex_owners owner =
            uneven ? with_half_on_the_first(ranks) : even_owners(ranks, community::vertices);
        double needed = 0, missed = 0, missed_at_owner = 0;
        for (std::int64_t b = 0; b < 4; ++b) {
          const auto batch = random_roots(256, community::vertices, b);
          const auto even = graph.of(sampling::equal_shares(batch, ranks), owner);
          needed += even.needed;
          missed += even.remote;
          missed_at_owner += graph.of(owner_shares(graph.graph(), batch, owner), owner).remote;
        }
        CHECK(std::abs(missed / needed - (1 - 1.0 / ranks)) < 0.01);
        CHECK(missed_at_owner <= 1.01 * missed);
        if (!in_random_order && !uneven) CHECK(missed >= 2 * missed_at_owner);
      }
  }
}

TEST_CASE("roots at their owners lose if the shares of a batch are gathered one by one, and not together") {
  if (sanitized) return;  // more roots for the code of the case before
  community graph(3, false);
  const vertex_owners owner = even_owners(4, community::vertices);
  const auto batch = random_roots(2048, community::vertices, 1);
  const root_lists shares = sampling::equal_shares(batch, 4);
  double apart = 0;
  for (const auto& share : shares) apart += graph.of(at_owner(share, owner), owner).remote;
  const double any = graph.of(shares, owner).remote;
  CHECK(apart > 1.9 * any);
  CHECK(graph.of(owner_shares(graph.graph(), batch, owner), owner).remote <= any);
}

TEST_CASE("roots that crowd are spread, at the cost of the rows of those that move") {
  if (sanitized) return;  // more roots for the code of the case before
  community graph(2, false);
  const vertex_owners owner = even_owners(8, community::vertices);
  for (const double times : {1.3, 4.0}) {
    const double others = (8 - times) / (7 * times);
    std::vector<global_index> batch;
    for (const global_index v : random_roots(4096, community::vertices, 1))
      if (base::random_uniform(41, v, 0) < (owner(v) == 0 ? 1 : others)) batch.push_back(v);
    const root_lists before = at_owner(batch, owner), after = owner_shares(graph.graph(), batch, owner);
    const double mean = static_cast<double>(batch.size()) / 8;
    CHECK(static_cast<double>(largest(before)) > 1.2 * mean);
    CHECK(static_cast<double>(largest(after)) <= 1.1 * mean);
    const double moved = graph.of(after, owner).remote;
    CHECK(moved < 0.7 * graph.of(sampling::equal_shares(batch, 8), owner).remote);
    if (times < 2) CHECK(moved <= 1.1 * graph.of(before, owner).remote);
  }
}

TEST_CASE("shares are those at their owners, or equal ones for every other placement") {
  const auto g = test_graph(n);
  const vertex_owners owner = random_owners(4, 3);
  const auto batch = random_roots(29, n, 2);
  using sampling::placement;
  CHECK(sampling::shares(g, batch, placement::owner, owner) == owner_shares(g, batch, owner));
  for (const placement how : {placement::even, placement::column, placement::column_gather})
    CHECK(sampling::shares(g, batch, how, owner) == sampling::equal_shares(batch, 4));
}

}  // namespace test_placement

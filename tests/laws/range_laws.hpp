// SPDX-License-Identifier: Apache-2.0
#pragma once
// What may be handed to a communicator, and what it returns: contiguous ranges and values.

#include "laws/law_values.hpp"

namespace test_support::laws {

using partita::request;

/// Vectors, arrays, spans, const or not, in every place of every operation.
inline void ranges(const communicator& c) {
  const auto p = static_cast<std::size_t>(c.size());
  const std::vector<global_index> ones(p, 1);
  std::vector<std::int32_t> ranks, mine(1, c.rank()), all(p);
  for (int q = 0; q < c.size(); ++q) ranks.push_back(q);

  c.all_gather(mine, ones, all);
  check_same(c, "all_gather of a vector", 0, all, ranks);
  const std::array<std::int32_t, 1> constant{c.rank()};
  all.assign(p, -1);
  c.all_gather(constant, std::span(ones), std::span(all));
  check_same(c, "all_gather of a const array", 0, all, ranks);
  all.assign(p, -1);
  c.start_all_gather(std::span(constant), ones, all).wait();
  check_same(c, "all_gather of a span", 0, all, ranks);

  double both[] = {1, 2};
  c.all_reduce(both);
  CHECK(both[1] == 2 * c.size());
  c.all_reduce(std::span(both).first(1), reduction::max);
  CHECK(both[0] == c.size());
  c.broadcast(all, c.size() - 1);
  std::array<std::int32_t, 1> block{};
  c.reduce_scatter(all, ones, block);
  CHECK(block[0] == c.size() * c.rank());
  const std::vector<std::int32_t> crossing(p, c.rank());
  c.all_to_all(crossing, ones, all, ones);
  check_same(c, "all_to_all of vectors", 0, all, ranks);

  if (c.size() == 1) return;
  const int next = (c.rank() + 1) % c.size(), previous = (c.rank() + c.size() - 1) % c.size();
  request sent = c.start_send(constant, next);
  c.receive(block, previous);
  sent.wait();
  CHECK(block[0] == previous);
}

/// What is returned where its size is known.
inline void returned(const host_fixture& fixture) {
  const communicator& c = fixture.c;
  const int p = c.size(), r = c.rank();
  std::vector<global_index> counts;
  std::vector<double> uneven, pairs, crossed, crossed_pairs, to;
  for (int q = 0; q < p; ++q) {
    counts.push_back(q % 3);
    append(uneven, values<double>(q, 0, q % 3));
    append(pairs, values<double>(q, 0, 2));
    append(crossed, values<double>(q, r, r % 3));
    append(crossed_pairs, values<double>(q, 2 * r, 2));
  }
  const std::vector<global_index> as_many(counts.size(), r % 3);

  CHECK(c.all_gather(global_index{r % 3}) == counts);
  check_same(c, "all_gather returned", 0, c.all_gather(values<double>(r, 0, 2)), pairs);
  check_same(c, "all_gather returned", 1, c.all_gather(values<double>(r, 0, r % 3), counts), uneven);
  for (int q = 0; q < p; ++q) append(to, values<double>(r, q, q % 3));
  check_same(c, "all_to_all returned", 0, c.all_to_all(to, counts, as_many), crossed);
  check_same(c, "all_to_all returned", 1, c.all_to_all(values<double>(r, 0, 2 * p)), crossed_pairs);
  CHECK(c.all_to_all(counts) == as_many);
  for (const reduction how : {reduction::sum, reduction::max}) {
    std::vector<double> sums;
    for (int i = 0; i < 3; ++i) sums.push_back(reduced<double>(p, 3 * r + i, how));
    const std::vector<double> mine = c.reduce_scatter(values<double>(r, 0, 3 * p), how);
    check_reduced(fixture, "reduce_scatter returned", 0, how, mine, sums);
    check_reduced<double>(fixture, "all_reduce returned", 0, how, {c.all_reduce(value<double>(r, 5), how)},
                          {reduced<double>(p, 5, how)});
  }
  CHECK(c.broadcast(value<float>(r, 1), p - 1) == value<float>(p - 1, 1));
}

}  // namespace test_support::laws

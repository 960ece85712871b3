// SPDX-License-Identifier: Apache-2.0
// Shares of a batch: every root once, weights that add up, micro-batches alike on all ranks.
#include "partita/train/batch_share.hpp"

#include <doctest/doctest.h>

namespace test_batch_share {

using namespace partita;
using nn::batch_mean, nn::batch_share;

std::vector<global_index> batch_of(global_index size) {
  std::vector<global_index> batch;
  for (global_index i = 0; i < size; ++i) batch.push_back(i * 7 % 31);
  return batch;
}

/// Unequal: rank 0 has nothing, and the others every root by its number.
sampling::root_lists unequal(std::span<const global_index> roots, int ranks) {
  sampling::root_lists lists(static_cast<std::size_t>(ranks));
  for (const global_index v : roots) lists[ranks == 1 ? 0 : std::size_t(1 + v % (ranks - 1))].push_back(v);
  return lists;
}

/// Every root counts once.
struct {
  double of(std::span<const global_index> roots) const { return static_cast<double>(roots.size()); }
  double terms(std::span<const global_index> roots) const { return of(roots); }
} const number;

TEST_CASE("every root is in one micro-batch of one rank, and the weights of all add up to 1") {
  for (const global_index size : {1, 5, 24})
    for (const int ranks : {1, 2, 3, 6})
      for (const int parts : {1, 2, 5})
        for (const batch_mean mean : {batch_mean::of_roots, batch_mean::of_parts}) {
          const auto batch = batch_of(size);
          const auto deal = [&](std::span<const global_index> roots) { return unequal(roots, ranks); };
          std::vector<global_index> found;
          double weights = 0;
          global_index most = 0;
          for (int r = 0; r < ranks; ++r) {
            batch_share<float> share;
            most = nn::split_by_rank_then_batch(batch, r, parts, mean, deal, number, share);
            CHECK(share.weight == size);
            CHECK(share.roots.size() == std::size_t(parts));
            for (std::size_t k = 0; k < share.roots.size(); ++k) {
              CHECK((share.weights[k] == 0) == share.roots[k].empty());
              weights += share.weights[k];
              found.insert(found.end(), share.roots[k].begin(), share.roots[k].end());
            }
          }
          CHECK(weights == doctest::Approx(1));
          global_index expected_most = 0;
          for (const auto& list : deal(batch)) expected_most = std::max(expected_most, std::ssize(list));
          CHECK(most == expected_most);
          std::ranges::sort(found);
          auto expected = batch;
          std::ranges::sort(expected);
          CHECK(found == expected);
        }
}

TEST_CASE("cut first, micro-batches are parts of the batch, whatever the ranks") {
  for (const global_index size : {1, 5, 24})
    for (const int ranks : {1, 2, 3, 6})
      for (const int parts : {1, 2, 5}) {
        const auto batch = batch_of(size);
        const auto deal = [&](std::span<const global_index> roots) { return unequal(roots, ranks); };
        const auto expected = sampling::equal_shares(batch, parts);
        std::vector<std::vector<global_index>> found(std::size_t(parts), std::vector<global_index>{});
        for (int r = 0; r < ranks; ++r) {
          batch_share<float> share;
          const global_index most = nn::split_by_batch_then_rank(batch, r, parts, deal, number, share);
          CHECK(most * ranks >= size);
          CHECK(share.weight == size);
          for (std::size_t k = 0; k < expected.size(); ++k) {
            CHECK(share.weights[k] == double(expected[k].size()) / double(size));
            found[k].insert(found[k].end(), share.roots[k].begin(), share.roots[k].end());
          }
        }
        for (std::size_t k = 0; k < expected.size(); ++k) {
          auto sorted = expected[k];
          std::ranges::sort(sorted);
          std::ranges::sort(found[k]);
          CHECK(found[k] == sorted);
        }
      }
}

}  // namespace test_batch_share

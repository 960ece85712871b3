// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Propagation matrices from the adjacency matrix A: entry (v, u) is the weight of the edge from u to v. Each
/// function maps this rank's entries of A to its entries of the result. Collective.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "partita/base/triplet.hpp"
#include "partita/comm/communicator.hpp"

namespace partita::nn {

/// What A + I is where A has an entry (v, v): `sum` adds 1 to it, as the formula says; `once` leaves it, and
/// only vertices without a loop are given one of weight 1.
enum class self_loops : std::uint8_t { sum, once };

namespace detail {

/// The row sums over all ranks' entries, on every rank. What travels: an all-reduce of n elements. Throws
/// shape_error for an entry outside the matrix.
inline std::vector<double> row_sums(const communicator& world, global_index n,
                                    std::span<const triplet<double>> entries) {
  std::vector<double> sums(static_cast<std::size_t>(n), 0);
  const interval inside{0, n};
  for (const auto& e : entries) {
    if (!inside.contains(e.row) || !inside.contains(e.col))
      base::throw_error<shape_error>(
          {"entry (", e.row, ", ", e.col, ") lies outside a graph of ", n, " vertices"});
    sums[static_cast<std::size_t>(e.row)] += e.value;
  }
  world.all_reduce(sums);
  return sums;
}

}  // namespace detail

/// A + weight * I (n x n). Local; no communication.
inline std::vector<triplet<double>> with_self_loops(const communicator& world, global_index n,
                                                    std::span<const triplet<double>> entries, double weight) {
  std::vector<triplet<double>> all(entries.begin(), entries.end());
  const interval loops = comm::share_of(n, world.rank(), world.size());
  for (global_index v = loops.begin; v < loops.end; ++v) all.push_back({v, v, weight});
  return all;
}

/// D^-1/2 (A + I) D^-1/2, D the row sums of A + I; rows with a nonpositive sum become zero (n x n). What
/// travels: an all-reduce of n elements, and for self_loops::once one of n bytes. Source: Kipf, Welling (ICLR
/// 2017), section 2; directed graphs use in-degrees.
inline std::vector<triplet<double>> gcn_normalized(const communicator& world, global_index n,
                                                   std::span<const triplet<double>> entries,
                                                   self_loops loops = self_loops::sum) {
  auto all = with_self_loops(world, n, entries, 1);
  if (loops == self_loops::once) {
    std::vector<std::uint8_t> there(static_cast<std::size_t>(n), 0);
    for (const auto& e : entries)
      if (e.row == e.col && interval{0, n}.contains(e.row)) there[static_cast<std::size_t>(e.row)] = 1;
    world.all_reduce(there, reduction::max);
    const auto added = all.begin() + std::ssize(entries);
    all.erase(std::remove_if(added, all.end(),
                             [&](const auto& e) { return there[static_cast<std::size_t>(e.row)] != 0; }),
              all.end());
  }
  const std::vector<double> degree = detail::row_sums(world, n, all);
  const auto scale = [&](global_index v) {
    const double d = degree[static_cast<std::size_t>(v)];
    return d > 0 ? 1 / std::sqrt(d) : 0;
  };
  for (auto& e : all) e.value *= scale(e.row) * scale(e.col);
  return all;
}

/// The weighted mean over in-neighbours: each row over its sum; rows with a nonpositive sum become zero (n x
/// n). What travels: an all-reduce of n elements.
inline std::vector<triplet<double>> mean_normalized(const communicator& world, global_index n,
                                                    std::span<const triplet<double>> entries) {
  std::vector<triplet<double>> all(entries.begin(), entries.end());
  const std::vector<double> sums = detail::row_sums(world, n, all);
  for (auto& e : all) {
    const double sum = sums[static_cast<std::size_t>(e.row)];
    e.value = sum > 0 ? e.value / sum : 0;
  }
  return all;
}

}  // namespace partita::nn

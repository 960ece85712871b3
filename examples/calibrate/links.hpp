// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What messages between ranks take.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <vector>

#include "../ranks/machine.hpp"
#include "partita/comm/emulated.hpp"
#include "partita/comm/threads.hpp"

namespace calibration {

using partita::communicator;

/// The median of what act() takes, in seconds, of which all ranks of `world` begin one together.
template <class Act>
double median_seconds(const communicator& world, int times, const Act& act) {
  std::vector<double> seconds;
  for (int k = 0; k < times; ++k) {
    (void)world.all_reduce(0);
    const auto begin = std::chrono::steady_clock::now();
    act();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::ranges::nth_element(seconds, seconds.begin() + times / 2);
  return world.all_reduce(seconds[static_cast<std::size_t>(times / 2)], partita::reduction::max);
}

/// The latency and the bandwidth of a rank: of messages of 8 bytes there and back between neighbours, and of
/// those of 4 MB in all, to one rank or to each, whichever takes longer. Every rank of `world` must call.
/// The last of an odd number of ranks has no neighbour.
inline partita::emulated::link measure_link(const communicator& world) {
  constexpr partita::global_index large = 1 << 20;  // of floats
  const int me = world.rank(), p = world.size(), other = me ^ 1;
  std::vector<float> to(large), from(large);
  const auto there_and_back = [&](std::size_t n) {
    if (other >= p) return;
    const std::span<float> out(to.data(), n), in(from.data(), n);
    if (me < other) world.send(out, other), world.receive(in, other);
    if (me > other) world.receive(in, other), world.send(out, other);
  };
  const std::vector<partita::global_index> counts(static_cast<std::size_t>(p), large / p);
  const auto all_to_all = [&] {
    const std::size_t n = static_cast<std::size_t>(large / p * p);
    world.all_to_all(std::span(to).first(n), counts, std::span(from).first(n), counts);
  };
  constexpr int warm = 4;
  (void)median_seconds(world, warm, all_to_all);
  const double latency = median_seconds(world, 200, [&] { there_and_back(2); }) / 2;
  const double pair = median_seconds(world, 15, [&] { there_and_back(large); }) / 2;
  const double all = median_seconds(world, 15, all_to_all);
  const double bytes = 4.0 * large, of_all = bytes * (p - 1) / p;
  const double steps = std::ceil(std::log2(p));
  const auto rate = [](double n, double seconds, double waits) {
    return n / std::max(seconds - waits, seconds / 10);
  };
  return {latency, std::min(rate(bytes, pair, latency), rate(of_all, all, steps * latency))};
}

/// A node's ranks, their link, and that of nodes, where ranks are on several.
struct network {
  int ranks_of_node = 1;
  std::optional<partita::emulated::link> inside = {}, between = {};
};

/// The network of an MPI job. Every rank must call.
inline network measure_network(const communicator& world) {
  const std::vector<int> here = ranks_on_machine(world);
  const auto largest = [&](auto x) { return world.all_reduce(x, partita::reduction::max); };
  const auto place = std::ranges::find(here, world.rank()) - here.begin();
  const communicator node = world.split(here.front(), world.rank(), "node");
  const communicator across = world.split(static_cast<int>(place), world.rank(), "across");
  const auto slowest = [&](const communicator& c) -> std::optional<partita::emulated::link> {
    if (largest(c.size()) == 1) return {};
    const partita::emulated::link l = c.size() > 1 ? measure_link(c) : partita::emulated::link{0, 1e18};
    return partita::emulated::link{largest(l.latency), -largest(-l.bandwidth)};
  };
  network n{.ranks_of_node = largest(node.size())};
  n.inside = slowest(node);
  n.between = slowest(across);
  if (n.between) n.between->bandwidth *= n.ranks_of_node;  // each of them had a share
  return n;
}

/// The network of this machine, whose ranks are threads.
inline network measure_threads(int ranks_of_node) {
  network n{.ranks_of_node = ranks_of_node};
  partita::threads::run(std::max(2, ranks_of_node), [&](const communicator& world) {
    const partita::emulated::link l = measure_link(world);
    if (world.rank() == 0) n.inside = l;
  });
  return n;
}

}  // namespace calibration

#pragma once
// The laws of a communicator, for every model: each is a function of a communicator that every rank of it
// calls. What to expect is computed from nothing but rank and size.
#include <algorithm>
#include <chrono>
#include <doctest/doctest.h>
#include <string>
#include <thread>
#include <vector>

#include "support/collective_laws.hpp"

namespace test_support::laws {

/// Operations of every kind, from all ranks at once, waited for in order and in reverse.
inline void several_in_flight(const communicator& c) {
  const auto p = static_cast<std::size_t>(c.size());
  for (const bool reverse : {false, true}) {
    std::vector<double> sum = values<double>(c.rank(), 0, 11, 1), more = values<double>(c.rank(), 0, 5, 2);
    std::vector<double> copy = values<double>(c.rank(), 0, 4, 3);
    const std::vector<global_index> twos(p, 2);
    const std::vector<std::int32_t> mine = values<std::int32_t>(c.rank(), 0, 2, 4);
    std::vector<std::int32_t> all(2 * p), crossed(2 * p), blocks;
    for (int q = 0; q < c.size(); ++q) append(blocks, values<std::int32_t>(c.rank(), q, 2, 5));
    std::vector<std::int32_t> scattered(2);

    std::vector<request> requests;
    requests.push_back(c.start_all_reduce(out(sum)));
    requests.push_back(c.start_broadcast(out(copy), c.size() - 1));
    requests.push_back(c.start_all_gather(in(mine), in(twos), out(all)));
    requests.push_back(c.start_all_reduce(out(more), reduction::max));
    requests.push_back(c.start_all_to_all(in(blocks), in(twos), out(crossed), in(twos)));
    requests.push_back(c.start_reduce_scatter(in(blocks), in(twos), out(scattered)));
    if (reverse) std::reverse(requests.begin(), requests.end());
    for (request& r : requests) r.wait();

    std::vector<double> expected_sum, expected_more;
    for (int i = 0; i < 11; ++i) expected_sum.push_back(reduced<double>(c.size(), i, reduction::sum, 1));
    for (int i = 0; i < 5; ++i) expected_more.push_back(reduced<double>(c.size(), i, reduction::max, 2));
    std::vector<std::int32_t> expected_all, expected_crossed, expected_scattered;
    for (int q = 0; q < c.size(); ++q) {
      append(expected_all, values<std::int32_t>(q, 0, 2, 4));
      append(expected_crossed, values<std::int32_t>(q, c.rank(), 2, 5));
    }
    for (int i = 0; i < 2; ++i)
      expected_scattered.push_back(reduced<std::int32_t>(c.size(), c.rank() + i, reduction::sum, 5));
    check_same(c, "all_reduce in flight", reverse, sum, expected_sum);
    check_same(c, "max in flight", reverse, more, expected_more);
    check_same(c, "broadcast in flight", reverse, copy, values<double>(c.size() - 1, 0, 4, 3));
    check_same(c, "all_gather in flight", reverse, all, expected_all);
    check_same(c, "all_to_all in flight", reverse, crossed, expected_crossed);
    check_same(c, "reduce_scatter in flight", reverse, scattered, expected_scattered);
  }
}

/// A root may have many broadcasts in flight, while the others take one at a time and run ahead of it.
inline void many_broadcasts(const communicator& c) {
  constexpr std::size_t at_once = 8;
  for (int round = 0; round < 6; ++round) {
    const int root = round % c.size();
    std::vector<std::vector<std::int64_t>> data;
    for (std::size_t k = 0; k < 2 * at_once; ++k)
      data.push_back(values<std::int64_t>(c.rank(), round, 3, static_cast<int>(k)));
    if (c.rank() == root) {
      for (std::size_t begin : {std::size_t{0}, at_once}) {
        std::vector<request> requests;
        for (std::size_t k = begin; k < begin + at_once; ++k)
          requests.push_back(c.start_broadcast(out(data[k]), root));
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        for (request& r : requests) r.wait();
      }
    } else {
      for (auto& d : data) c.broadcast(out(d), root);
    }
    for (std::size_t k = 0; k < data.size(); ++k)
      check_same(c, "broadcasts", round, data[k], values<std::int64_t>(root, round, 3, static_cast<int>(k)));
  }
}

/// Messages of one pair and tag arrive in the order in which they were sent, whatever is waited for first;
/// messages of another tag do not disturb them.
inline void message_order(const communicator& c) {
  if (c.size() == 1) return;
  const int next = (c.rank() + 1) % c.size(), previous = (c.rank() + c.size() - 1) % c.size();
  for (const bool reverse : {false, true}) {
    std::vector<std::vector<double>> sent, received(4, std::vector<double>(6));
    for (int k = 0; k < 4; ++k) sent.push_back(values<double>(c.rank(), 0, 6, k));
    std::vector<request> sends, receives;
    for (std::size_t k : {0, 1, 2, 3}) sends.push_back(c.start_send(in(sent[k]), next, k == 1 ? 9 : 5));
    for (std::size_t k : {1, 0, 2, 3})
      receives.push_back(c.start_receive(out(received[k]), previous, k == 1 ? 9 : 5));
    if (reverse) std::reverse(receives.begin(), receives.end());
    for (request& r : receives) r.wait();
    for (request& r : sends) r.wait();
    for (int k = 0; k < 4; ++k)
      check_same(c, "message", k, received[static_cast<std::size_t>(k)], values<double>(previous, 0, 6, k));
  }
}

/// The same sums, twice, have the same bits.
template <class T>
void repeatability(const communicator& c) {
  std::vector<T> first = values<T>(c.rank(), 0, 1000), second = first;
  c.all_reduce(out(first));
  c.all_reduce(out(second));
  check_same(c, "repeated all_reduce", 0, second, first);
}

/// Phases nest; operations are entered where they are waited for.
inline void phases(const communicator& c) {
  c.ledger().clear();
  const std::string outer = c.ledger().phase();
  std::vector<std::int32_t> data(4);
  {
    const partita::phase_scope forward(c.ledger(), "forward");
    c.broadcast(out(data), 0);
    {
      const partita::phase_scope backward(c.ledger(), "backward");
      c.broadcast(out(data), 0);
      c.broadcast(out(data), 0);
    }
    CHECK(c.ledger().phase() == "forward");
    c.broadcast(out(data), 0);
  }
  CHECK(c.ledger().phase() == outer);
  const auto in_phase = [&](const char* phase) {
    return c.ledger().total([&](const partita::ledger_entry& e) { return e.phase == phase; });
  };
  const volume each = c.rank() == 0 ? volume{} : volume{4, 1};
  CHECK(in_phase("forward") == 2 * each);
  CHECK(in_phase("backward") == 2 * each);
  CHECK(c.ledger().total() == 4 * each);
}

/// Groups of a split: uneven colors, reversed keys, groups of groups, entered under their axis.
inline void splits(const communicator& c) {
  const int color = c.rank() % 3 == 2 ? 2 : c.rank() % 3 == 1 ? 7 : 0;
  std::vector<std::int32_t> members;
  for (int q = c.size() - 1; q >= 0; --q)
    if (q % 3 == c.rank() % 3) members.push_back(q);
  const communicator group = c.split(color, -c.rank(), "third");
  CHECK(group.size() == static_cast<int>(members.size()));
  CHECK(group.axis() == "third");
  CHECK(&group.ledger() == &c.ledger());
  const std::vector<std::int32_t> me = {c.rank()};
  std::vector<std::int32_t> all(members.size());
  group.all_gather(in(me), in(std::vector<global_index>(members.size(), 1)), out(all));
  check_same(c, "members", color, all, members);
  operations<double>(group);
  several_in_flight(group);
  message_order(group);

  const communicator lone = c.split(0, c.rank() == 0 ? 1 : 0, "first last");
  CHECK(lone.rank() == (c.rank() == 0 ? c.size() - 1 : c.rank() - 1));
  const communicator part = group.split(group.rank() == 0 ? 0 : 1, 0, "part");
  CHECK(part.size() == (group.rank() == 0 ? 1 : group.size() - 1));
  operations<std::int32_t>(part);
}

/// Everything. Every rank of the communicator calls.
inline void all(const communicator& c) {
  operations<std::uint8_t>(c);
  operations<std::int32_t>(c);
  operations<std::int64_t>(c);
  operations<float>(c);
  operations<double>(c);
  several_in_flight(c);
  many_broadcasts(c);
  message_order(c);
  repeatability<float>(c);
  repeatability<double>(c);
  phases(c);
  splits(c);
}

}  // namespace test_support::laws

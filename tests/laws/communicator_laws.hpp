// SPDX-License-Identifier: Apache-2.0
#pragma once
// The laws of a communicator, for every model: each is a function of a communicator that every rank of it
// calls. What to expect is computed from nothing but rank and size.
#include <thread>

#include "laws/collective_laws.hpp"

namespace test_support::laws {

/// Operations of every kind, from all ranks at once, waited for in order and in reverse.
void several_in_flight(const auto& fixture) {
  const communicator& c = fixture.c;
  const auto p = static_cast<std::size_t>(c.size());
  for (const bool reverse : {false, true}) {
    auto sum = fixture.put(values<double>(c.rank(), 0, 11, 1));
    auto more = fixture.put(values<double>(c.rank(), 0, 5, 2));
    auto copy = fixture.put(values<double>(c.rank(), 0, 4, 3));
    const std::vector<global_index> twos(p, 2);
    auto mine = fixture.put(values<std::int32_t>(c.rank(), 0, 2, 4));
    std::vector<std::int32_t> given;
    for (int q = 0; q < c.size(); ++q) append(given, values<std::int32_t>(c.rank(), q, 2, 5));
    auto blocks = fixture.put(given);
    auto all = fixture.template make<std::int32_t>(2 * p),
         crossed = fixture.template make<std::int32_t>(2 * p);
    auto scattered = fixture.template make<std::int32_t>(2);

    std::vector<request> requests;
    requests.push_back(c.start_all_reduce(sum.out()));
    requests.push_back(c.start_broadcast(copy.out(), c.size() - 1));
    requests.push_back(c.start_all_gather(mine.in(), in(twos), all.out()));
    requests.push_back(c.start_all_reduce(more.out(), reduction::max));
    requests.push_back(c.start_all_to_all(blocks.in(), in(twos), crossed.out(), in(twos)));
    requests.push_back(c.start_reduce_scatter(blocks.in(), in(twos), scattered.out()));
    if (reverse) std::reverse(requests.begin(), requests.end());
    for (request& r : requests) r.wait();
    mine.spoil();
    blocks.spoil();

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
    check_reduced(fixture, "all_reduce in flight", reverse, reduction::sum, sum.get(), expected_sum);
    check_same(c, "max in flight", reverse, more.get(), expected_more);
    check_same(c, "broadcast in flight", reverse, copy.get(), values<double>(c.size() - 1, 0, 4, 3));
    check_same(c, "all_gather in flight", reverse, all.get(), expected_all);
    check_same(c, "all_to_all in flight", reverse, crossed.get(), expected_crossed);
    check_same(c, "reduce_scatter in flight", reverse, scattered.get(), expected_scattered);
  }
}

/// A root may have many broadcasts in flight, while the others take one at a time and run ahead of it.
void many_broadcasts(const auto& fixture) {
  const communicator& c = fixture.c;
  constexpr std::size_t at_once = 8;
  for (int round = 0; round < 6; ++round) {
    const int root = round % c.size();
    std::vector<decltype(fixture.put(std::vector<std::int64_t>()))> data;
    for (std::size_t k = 0; k < 2 * at_once; ++k)
      data.push_back(fixture.put(values<std::int64_t>(c.rank(), round, 3, static_cast<int>(k))));
    if (c.rank() == root) {
      for (std::size_t begin : {std::size_t{0}, at_once}) {
        std::vector<request> requests;
        for (std::size_t k = begin; k < begin + at_once; ++k)
          requests.push_back(c.start_broadcast(data[k].out(), root));
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        for (request& r : requests) r.wait();
      }
    } else {
      for (auto& d : data) c.broadcast(d.out(), root);
    }
    for (std::size_t k = 0; k < data.size(); ++k)
      check_same(c, "broadcasts", round, data[k].get(),
                 values<std::int64_t>(root, round, 3, static_cast<int>(k)));
  }
}

/// Messages of one pair and tag arrive in the order in which they were sent, whatever is waited for first;
/// messages of another tag do not disturb them.
void message_order(const auto& fixture) {
  const communicator& c = fixture.c;
  if (c.size() == 1) return;
  const int next = (c.rank() + 1) % c.size(), previous = (c.rank() + c.size() - 1) % c.size();
  for (const bool reverse : {false, true}) {
    std::vector<decltype(fixture.put(std::vector<double>()))> sent, received;
    for (int k = 0; k < 4; ++k) {
      sent.push_back(fixture.put(values<double>(c.rank(), 0, 6, k)));
      received.push_back(fixture.template make<double>(6));
    }
    std::vector<request> sends, receives;
    for (std::size_t k : {0, 1, 2, 3}) sends.push_back(c.start_send(sent[k].in(), next, k == 1 ? 9 : 5));
    for (std::size_t k : {1, 0, 2, 3})
      receives.push_back(c.start_receive(received[k].out(), previous, k == 1 ? 9 : 5));
    if (reverse) std::reverse(receives.begin(), receives.end());
    for (request& r : receives) r.wait();
    for (request& r : sends) r.wait();
    for (auto& s : sent) s.spoil();
    for (int k = 0; k < 4; ++k)
      check_same(c, "message", k, received[static_cast<std::size_t>(k)].get(),
                 values<double>(previous, 0, 6, k));
  }
}

/// The same sums, twice, have the same bits.
template <class T, class Fixture>
void repeatability(const Fixture& fixture) {
  auto first = fixture.put(values<T>(fixture.c.rank(), 0, 1000)), second = fixture.put(first.get());
  fixture.c.all_reduce(first.out());
  fixture.c.all_reduce(second.out());
  check_same(fixture.c, "repeated all_reduce", 0, second.get(), first.get());
}

/// Operations that follow each other work on what the one before left, with nothing between them.
void chain(const auto& fixture) {
  const communicator& c = fixture.c;
  const auto p = static_cast<std::size_t>(c.size());
  const std::vector<global_index> ones(p, 1);
  auto mine = fixture.put(std::vector<std::int64_t>{c.rank() + 1});
  auto all = fixture.template make<std::int64_t>(p), crossed = fixture.template make<std::int64_t>(p);
  std::vector<std::int64_t> expected;
  for (int q = 1; q <= c.size(); ++q) expected.push_back(q);
  for (int root = 0; root < c.size() + 12; ++root) {
    c.all_gather(mine.in(), in(ones), all.out());                      // 1, ..., p
    c.all_reduce(all.out(), reduction::max);                           // 1, ..., p
    c.reduce_scatter(all.in(), in(ones), mine.out(), reduction::max);  // rank + 1
    c.all_to_all(all.in(), in(ones), crossed.out(), in(ones));         // rank + 1, ..., rank + 1
    c.broadcast(crossed.out(), root % c.size());
    c.all_reduce(crossed.out());
  }
  check_same(c, "chain", 0, mine.get(), {c.rank() + 1});
  check_same(c, "chain", 1, all.get(), expected);
  const std::int64_t sum = c.size() * (11 % c.size() + 1);
  check_same(c, "chain", 2, crossed.get(), std::vector<std::int64_t>(p, sum));
}

/// Phases nest; operations are entered where they are waited for.
void phases(const auto& fixture) {
  const communicator& c = fixture.c;
  c.ledger().clear();
  const std::string outer = c.ledger().phase();
  auto data = fixture.template make<std::int32_t>(4);
  {
    const partita::comm::phase_scope forward(c.ledger(), "forward");
    c.broadcast(data.out(), 0);
    {
      const partita::comm::phase_scope backward(c.ledger(), "backward");
      c.broadcast(data.out(), 0);
      c.broadcast(data.out(), 0);
    }
    CHECK(c.ledger().phase() == "forward");
    c.broadcast(data.out(), 0);
  }
  CHECK(c.ledger().phase() == outer);
  const auto in_phase = [&](const char* phase) {
    return c.ledger().total([&](const partita::comm::ledger_entry& e) { return e.phase == phase; });
  };
  const traffic each = c.rank() == 0 ? traffic{} : traffic{4, 1};
  CHECK(in_phase("forward") == 2 * each);
  CHECK(in_phase("backward") == 2 * each);
  CHECK(c.ledger().total() == 4 * each);
}

/// Groups of a split: uneven colors, reversed keys, groups of groups, entered under their axis.
void splits(const auto& fixture) {
  const communicator& c = fixture.c;
  const int color = c.rank() % 3 == 2 ? 2 : c.rank() % 3 == 1 ? 7 : 0;
  std::vector<std::int32_t> members;
  for (int q = c.size() - 1; q >= 0; --q)
    if (q % 3 == c.rank() % 3) members.push_back(q);
  const auto group = fixture.with(c.split(color, -c.rank(), "third"));
  CHECK(group.c.size() == static_cast<int>(members.size()));
  CHECK(group.c.axis() == "third");
  CHECK(&group.c.ledger() == &c.ledger());
  auto me = fixture.put(std::vector<std::int32_t>{c.rank()});
  auto all = fixture.template make<std::int32_t>(members.size());
  group.c.all_gather(me.in(), in(std::vector<global_index>(members.size(), 1)), all.out());
  check_same(c, "members", color, all.get(), members);
  operations<double>(group);
  several_in_flight(group);
  message_order(group);

  const communicator lone = c.split(0, c.rank() == 0 ? 1 : 0, "first last");
  CHECK(lone.rank() == (c.rank() == 0 ? c.size() - 1 : c.rank() - 1));
  const auto part = fixture.with(group.c.split(group.c.rank() == 0 ? 0 : 1, 0, "part"));
  CHECK(part.c.size() == (group.c.rank() == 0 ? 1 : group.c.size() - 1));
  operations<std::int32_t>(part);
}

/// Everything. Every rank of the communicator calls.
void all(const auto& fixture) {
  operations<std::uint8_t>(fixture);
  operations<std::int32_t>(fixture);
  operations<std::int64_t>(fixture);
  operations<float>(fixture);
  operations<double>(fixture);
  several_in_flight(fixture);
  many_broadcasts(fixture);
  message_order(fixture);
  repeatability<float>(fixture);
  repeatability<double>(fixture);
  chain(fixture);
  phases(fixture);
  splits(fixture);
}
}  // namespace test_support::laws

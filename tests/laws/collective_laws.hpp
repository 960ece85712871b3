// SPDX-License-Identifier: Apache-2.0
#pragma once
// One law for each operation of a communicator: its result and its account, as functions of rank and size.
#include <cmath>

#include "laws/law_values.hpp"

namespace test_support::laws {

using partita::operation, partita::request, partita::traffic;

/// Runs `act` and checks that the ledger has exactly what `expected` says, under this phase and axis.
template <class T, class Act>
void check_account(const communicator& c, operation kind, traffic expected, Act act) {
  c.ledger().clear();
  const partita::comm::phase_scope phase(c.ledger(), "law");
  act();
  const auto& entries = c.ledger().entries();
  if (c.size() == 1) {
    CHECK(entries.empty());
    return;
  }
  CHECK(entries.size() == 1);
  if (entries.size() != 1) return;
  CHECK(entries[0].kind == kind);
  CHECK(entries[0].phase == "law");
  CHECK(entries[0].axis == c.axis());
  CHECK(entries[0].received.words == expected.words);
  CHECK(entries[0].received.messages == expected.messages);
  CHECK(entries[0].bytes == expected.words * static_cast<global_index>(sizeof(T)));
  CHECK(entries[0].seconds >= 0);
}

/// Runs a started operation and its blocking form in turn.
void run_form(bool started, auto start, auto block) {
  if (!started) return block();
  request r = start();
  CHECK(r.pending());
  r.wait();
  CHECK(!r.pending());
}

template <class T, class Fixture>
void broadcast(const Fixture& fixture, int pattern, bool started) {
  const communicator& c = fixture.c;
  const int root = pattern % c.size();
  const global_index n = elements(pattern, 1, 0);
  auto data = fixture.put(values<T>(c.rank(), 0, n));
  const traffic expected = c.rank() == root || n == 0 ? traffic{} : traffic{n, 1};
  check_account<T>(c, operation::broadcast, expected, [&] {
    run_form(
        started, [&] { return c.start_broadcast(data.out(), root); }, [&] { c.broadcast(data.out(), root); });
  });
  check_same(c, "broadcast", pattern, data.get(), values<T>(root, 0, n));
}

/// With a buffer of its own at the root, which is written again as soon as it may be.
template <class T, class Fixture>
void broadcast_of_input(const Fixture& fixture, int pattern) {
  const communicator& c = fixture.c;
  const int root = (pattern + 1) % c.size();
  const global_index n = elements(pattern, 1, 0);
  auto from = fixture.put(values<T>(c.rank(), 0, n));
  auto to = fixture.template make<T>(static_cast<std::size_t>(n));
  c.start_broadcast(from.in(), to.out(), root).wait();
  from.spoil();
  if (c.rank() != root) check_same(c, "broadcast of input", pattern, to.get(), values<T>(root, 0, n));
}

template <class T, class Fixture>
void all_gather(const Fixture& fixture, int pattern, bool started) {
  const communicator& c = fixture.c;
  std::vector<global_index> counts;
  std::vector<T> expected;
  traffic v;
  for (int q = 0; q < c.size(); ++q) {
    counts.push_back(elements(pattern, c.size(), q));
    append(expected, values<T>(q, 0, counts.back()));
    if (q != c.rank() && counts.back() > 0) v += {counts.back(), 1};
  }
  auto mine = fixture.put(values<T>(c.rank(), 0, counts[static_cast<std::size_t>(c.rank())]));
  auto all = fixture.template make<T>(expected.size());
  check_account<T>(c, operation::all_gather, v, [&] {
    run_form(
        started, [&] { return c.start_all_gather(mine.in(), in(counts), all.out()); },
        [&] { c.all_gather(mine.in(), in(counts), all.out()); });
  });
  mine.spoil();
  check_same(c, "all_gather", pattern, all.get(), expected);
}

template <class T, class Fixture>
void reduce_scatter(const Fixture& fixture, int pattern, bool started, reduction reduce) {
  const communicator& c = fixture.c;
  std::vector<global_index> counts;
  global_index total = 0, before = 0;
  for (int q = 0; q < c.size(); ++q) {
    if (q == c.rank()) before = total;
    total += counts.emplace_back(elements(pattern, c.size(), q));
  }
  const global_index n = counts[static_cast<std::size_t>(c.rank())];
  auto blocks = fixture.put(values<T>(c.rank(), 0, total));
  auto mine = fixture.template make<T>(static_cast<std::size_t>(n));
  std::vector<T> expected;
  for (global_index i = 0; i < n; ++i) expected.push_back(reduced<T>(c.size(), before + i, reduce));
  const traffic v{(c.size() - 1) * n, n > 0 ? c.size() - 1 : 0};
  check_account<T>(c, operation::reduce_scatter, v, [&] {
    run_form(
        started, [&] { return c.start_reduce_scatter(blocks.in(), in(counts), mine.out(), reduce); },
        [&] { c.reduce_scatter(blocks.in(), in(counts), mine.out(), reduce); });
  });
  blocks.spoil();
  check_reduced(fixture, "reduce_scatter", pattern, reduce, mine.get(), expected);
}

template <class T, class Fixture>
void all_reduce(const Fixture& fixture, int pattern, bool started, reduction reduce) {
  const communicator& c = fixture.c;
  const global_index n = elements(pattern, 1, 0), p = c.size();
  auto data = fixture.put(values<T>(c.rank(), 0, n));
  std::vector<T> expected;
  for (global_index i = 0; i < n; ++i) expected.push_back(reduced<T>(c.size(), i, reduce));
  const global_index mine = n / p + (c.rank() < n % p ? 1 : 0);
  const traffic v{(p - 1) * mine + (n - mine), (mine > 0 ? p - 1 : 0) + std::min(n, p) - (mine > 0 ? 1 : 0)};
  if (n % p == 0) CHECK(v.words * p == 2 * (p - 1) * n);
  check_account<T>(c, operation::all_reduce, v, [&] {
    run_form(
        started, [&] { return c.start_all_reduce(data.out(), reduce); },
        [&] { c.all_reduce(data.out(), reduce); });
  });
  check_reduced(fixture, "all_reduce", pattern, reduce, data.get(), expected);
}

template <class T, class Fixture>
void all_to_all(const Fixture& fixture, int pattern, bool started) {
  const communicator& c = fixture.c;
  std::vector<global_index> to_counts, from_counts;
  std::vector<T> given, expected;
  traffic v;
  for (int q = 0; q < c.size(); ++q) {
    to_counts.push_back(elements(pattern, c.size(), c.rank(), q));
    append(given, values<T>(c.rank(), 1000 * q, to_counts.back()));
    from_counts.push_back(elements(pattern, c.size(), q, c.rank()));
    append(expected, values<T>(q, 1000 * c.rank(), from_counts.back()));
    if (q != c.rank() && from_counts.back() > 0) v += {from_counts.back(), 1};
  }
  auto to = fixture.put(given);
  auto from = fixture.template make<T>(expected.size());
  check_account<T>(c, operation::all_to_all, v, [&] {
    run_form(
        started, [&] { return c.start_all_to_all(to.in(), in(to_counts), from.out(), in(from_counts)); },
        [&] { c.all_to_all(to.in(), in(to_counts), from.out(), in(from_counts)); });
  });
  to.spoil();
  check_same(c, "all_to_all", pattern, from.get(), expected);
}

/// Each rank sends to the next: the message, and only it, is in the ledger.
template <class T, class Fixture>
void ring(const Fixture& fixture, int pattern) {
  const communicator& c = fixture.c;
  if (c.size() == 1) return;
  const int next = (c.rank() + 1) % c.size(), previous = (c.rank() + c.size() - 1) % c.size();
  const global_index n = 2 + elements(pattern, 1, 0);
  auto mine = fixture.put(values<T>(c.rank(), 0, n));
  auto theirs = fixture.template make<T>(static_cast<std::size_t>(n));
  c.ledger().clear();
  request sent = c.start_send(mine.in(), next, pattern);
  request received = c.start_receive(theirs.out(), previous, pattern);
  received.wait();
  sent.wait();
  mine.spoil();
  check_same(c, "ring", pattern, theirs.get(), values<T>(previous, 0, n));
  CHECK(c.ledger().total() == traffic{n, 1});
}

/// A maximum is NaN where one rank has NaN, whichever rank that is, and nowhere else.
template <class T, class Fixture>
void maxima_show_nan(const Fixture& fixture) {
  const communicator& c = fixture.c;
  const auto p = static_cast<std::size_t>(c.size());
  std::vector<T> ones(p + 1, T(1));
  ones[static_cast<std::size_t>(c.rank())] = std::numeric_limits<T>::quiet_NaN();
  auto all = fixture.put(ones);
  c.all_reduce(all.out(), reduction::max);
  auto blocks = fixture.put(std::vector<T>(ones.begin(), ones.end() - 1));
  auto mine = fixture.template make<T>(1);
  c.reduce_scatter(blocks.in(), in(std::vector<global_index>(p, 1)), mine.out(), reduction::max);
  const std::vector<T> maxima = all.get();
  CHECK(std::all_of(maxima.begin(), maxima.end() - 1, [](T x) { return std::isnan(x); }));
  CHECK(maxima.back() == 1);
  CHECK(std::isnan(mine.get().front()));
}

/// Every operation on elements of type T.
template <class T, class Fixture>
void operations(const Fixture& fixture) {
  for (int pattern = 0; pattern < patterns; ++pattern) {
    for (const bool started : {false, true}) {
      broadcast<T>(fixture, pattern, started);
      all_gather<T>(fixture, pattern, started);
      all_to_all<T>(fixture, pattern, started);
      for (const reduction reduce : {reduction::sum, reduction::max}) {
        reduce_scatter<T>(fixture, pattern, started, reduce);
        all_reduce<T>(fixture, pattern, started, reduce);
      }
    }
    broadcast_of_input<T>(fixture, pattern);
    ring<T>(fixture, pattern);
  }
  if constexpr (std::is_floating_point_v<T>) maxima_show_nan<T>(fixture);
}

}  // namespace test_support::laws

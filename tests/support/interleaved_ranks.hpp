// SPDX-License-Identifier: Apache-2.0
#pragma once
// What three thread ranks do and how that may end, for the explorer of interleaving.hpp.

#include <array>
#include <cstdlib>
#include <sys/mman.h>

#include "partita/comm/threads.hpp"
#include "support/gate.hpp"

namespace test_support::interleaved {

using namespace std::chrono_literals;
using partita::communicator, partita::global_index, partita::request, test_support::gate;

constexpr int ranks = 3;
constexpr std::chrono::milliseconds limit = 1s;
constexpr global_index few = 1, many = 1100;  // of many, all operations are exchanged: more than 64 KiB

/// Memory that a rank lends to its peers. Reading it afterwards ends the program.
class lent {
 public:
  lent(const communicator& c, global_index size, int number = 0)
      : all_{reinterpret_cast<double*>(
                 pages_[static_cast<std::size_t>(c.rank())][static_cast<std::size_t>(number)].data()),
             static_cast<std::size_t>(size)} {
    allow(PROT_READ | PROT_WRITE);
  }
  lent(const lent&) = delete;
  lent& operator=(const lent&) = delete;
  ~lent() { allow(PROT_NONE); }

  std::span<double> all() const { return all_; }
  double& operator[](global_index i) const { return all_[static_cast<std::size_t>(i)]; }

 private:
  struct alignas(4096) page_run : std::array<std::byte, 13 * 4096> {};

  void allow(int what) const {
    if (mprotect(all_.data(), sizeof(page_run), what) != 0) std::abort();
  }

  inline static std::array<std::array<page_run, 2>, ranks> pages_;
  std::span<double> all_;
};

inline double value_of(int rank, global_index i) { return 100 * (rank + 1) + static_cast<double>(i % 7); }
inline double sum_of(global_index i) { return 600 + 3 * static_cast<double>(i % 7); }

/// What this rank sends.
inline void fill(const communicator& c, const lent& mine) {
  for (global_index i = 0; i < std::ssize(mine.all()); ++i) mine[i] = value_of(c.rank(), i);
}
/// "right" where result[i] is expected(i).
inline std::string compare(const lent& result, auto expected) {
  for (global_index i = 0; i < std::ssize(result.all()); ++i)
    if (result[i] != expected(i)) return "wrong";
  return "right";
}

/// What a rank does, and returns as text. The gate is that of its schedule; two passes open it.
using rank_function = std::function<std::string(const communicator&, gate&)>;

/// What ranks do, and how that may end.
struct small_case {
  std::string name;
  rank_function rank;
  std::array<std::string, ranks> right{};  ///< what ranks return, with their ledger, where they end well
  std::vector<std::string> errors{};       ///< what run may throw, or else it ends well
  std::vector<std::string> causes{};       ///< what ranks may be told besides
  bool ends_well = errors.empty();         ///< whether run may
  bool limited = false;                    ///< whether there is a time limit
  bool reports = false;                    ///< whether a rank that is stuck is reported, which opens the gate
  int preemptions = 1;                     ///< in the check
};

/// Without " (interleaved_ranks.hpp:40)".
inline std::string without_lines(std::string text) {
  for (std::size_t at; (at = text.find(" (interleav")) != text.npos;)
    text.erase(at, text.find(')', at) + 1 - at);
  return text;
}

inline std::string account_of(const communicator& c) {
  std::string text;
  for (const partita::comm::ledger_entry& e : c.ledger().entries())
    text += std::string("; ") + name_of(e.kind) + " " + e.axis + " " + std::to_string(e.received.words) +
            " in " + std::to_string(e.received.messages);
  return text;
}

/// What each rank returned or threw, and what run threw, by lines.
inline std::string ends_of(const small_case& tried) {
  std::array<std::string, ranks + 1> ends;
  gate opens_by_two(2);
  partita::threads::options o{.pins = false};
  if (tried.limited) o.time_limit = limit;
  std::string stuck;
  if (tried.reports)
    o.if_stuck = [&](const std::string& why) {
      stuck = without_lines(why);
      opens_by_two.pass();
      opens_by_two.pass();
    };
  const auto rank_of = [&](const communicator& c) {
    std::string& mine = ends[static_cast<std::size_t>(c.rank())];
    try {
      mine = tried.rank(c, opens_by_two);
      mine += account_of(c);
    } catch (const std::exception& e) {
      mine = without_lines(e.what());
      throw;
    }
  };
  try {
    partita::threads::run(ranks, rank_of, o);
  } catch (const std::exception& e) {
    ends.back() = without_lines(e.what());
  }
  if (stuck.starts_with(ends.back())) ends.back() = stuck;
  return ends[0] + '\n' + ends[1] + '\n' + ends[2] + '\n' + ends[3];
}

/// Whether a case may end so.
inline bool may_end(const small_case& tried, const std::string& text) {
  std::array<std::string, ranks + 1> ends;
  std::size_t begin = 0;
  for (std::string& e : ends) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    e = text.substr(begin, end - begin);
    begin = end + 1;
  }
  const auto contains = [](const std::vector<std::string>& all, const std::string& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  const bool well = ends.back().empty();
  if (well ? !tried.ends_well : !contains(tried.errors, ends.back())) return false;
  const std::string told = "another rank failed: ";
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (ends[rank] == tried.right[rank]) continue;
    const std::string cause = ends[rank].starts_with(told) ? ends[rank].substr(told.size()) : ends[rank];
    if (well || (!contains(tried.errors, cause) && !contains(tried.causes, cause))) return false;
  }
  return true;
}

struct lamp_error : std::runtime_error {
  lamp_error() : std::runtime_error("the lamp fell") {}
};

inline std::array<std::string, ranks> each(const std::string& text) { return {text, text, text}; }

// Operations of rank r on blocks of n elements: they check and return their result.

using verb = std::string (*)(const communicator& c, global_index n);

inline std::string broadcast(const communicator& c, global_index n) {
  const lent data(c, 3 * n);
  fill(c, data);
  c.broadcast(data.all(), 1);
  return compare(data, [](global_index i) { return value_of(1, i); });
}
inline std::string all_gather(const communicator& c, global_index n) {
  const std::vector<global_index> counts{n, 2 * n, 3 * n};
  const lent mine(c, counts[static_cast<std::size_t>(c.rank())]), all(c, 6 * n, 1);
  fill(c, mine);
  c.all_gather(mine.all(), counts, all.all());
  return compare(all, [&](global_index i) {
    return i < n ? value_of(0, i) : i < 3 * n ? value_of(1, i - n) : value_of(2, i - 3 * n);
  });
}
inline std::string reduce_scatter(const communicator& c, global_index n) {
  const std::vector<global_index> counts(ranks, n);
  const lent blocks(c, 3 * n), mine(c, n, 1);
  fill(c, blocks);
  c.reduce_scatter(blocks.all(), counts, mine.all());
  return compare(mine, [&](global_index i) { return sum_of(c.rank() * n + i); });
}
inline std::string all_reduce(const communicator& c, global_index n) {
  const lent data(c, 3 * n);
  fill(c, data);
  c.all_reduce(data.all());
  return compare(data, sum_of);
}
/// Rank r sends (r + q) mod 3 blocks to rank q.
inline std::string all_to_all(const communicator& c, global_index n) {
  std::vector<global_index> counts;
  for (int q = 0; q < ranks; ++q) counts.push_back((c.rank() + q) % ranks * n);
  const lent mine(c, 3 * n), theirs(c, 3 * n, 1);
  fill(c, mine);
  c.all_to_all(mine.all(), counts, theirs.all(), counts);
  std::vector<double> expected;
  for (int q = 0; q < ranks; ++q) {
    global_index begin = 0;
    for (int before = 0; before < c.rank(); ++before) begin += (q + before) % ranks * n;
    for (global_index i = 0; i < counts[static_cast<std::size_t>(q)]; ++i)
      expected.push_back(value_of(q, begin + i));
  }
  return compare(theirs, [&](global_index i) { return expected[static_cast<std::size_t>(i)]; });
}
/// To the next rank, from the one before.
inline std::string ring(const communicator& c, global_index n) {
  const lent mine(c, n), theirs(c, n, 1);
  const int before = (c.rank() + 2) % ranks;
  fill(c, mine);
  request sent = c.start_send(mine.all(), (c.rank() + 1) % ranks);
  c.receive(theirs.all(), before);
  sent.wait();
  return compare(theirs, [&](global_index i) { return value_of(before, i); });
}
/// Ranks 0 and 2 exchange in a group of their own, in the opposite order.
inline std::string split(const communicator& c, global_index n) {
  const communicator part = c.split(c.rank() % 2, -c.rank(), "part");
  const lent data(c, 2 * n);
  fill(c, data);
  part.all_reduce(data.all());
  return compare(
      data, [&](global_index i) { return c.rank() == 1 ? value_of(1, i) : value_of(0, i) + value_of(2, i); });
}
/// Two operations, in flight at once.
inline std::string two_in_flight(const communicator& c, global_index n) {
  const std::vector<global_index> counts(ranks, n);
  const lent data(c, 3 * n), mine(c, n, 1);
  fill(c, data);
  request sums = c.start_reduce_scatter(data.all(), counts, mine.all());
  double told = value_of(c.rank(), 0);
  request telling = c.start_broadcast(std::span(&told, 1), 2);
  sums.wait();
  telling.wait();
  if (told != value_of(2, 0)) return "wrong";
  return compare(mine, [&](global_index i) { return sum_of(c.rank() * n + i); });
}
/// One more than a group has slots for.
inline std::string nine_in_flight(const communicator& c, global_index) {
  const lent data(c, 9);
  fill(c, data);
  std::vector<request> all;
  for (std::size_t i = 0; i < 9; ++i) all.push_back(c.start_broadcast(data.all().subspan(i, 1), 1));
  for (request& r : all) r.wait();
  return compare(data, [](global_index i) { return value_of(1, i); });
}

}  // namespace test_support::interleaved

// SPDX-License-Identifier: Apache-2.0
// Three thread ranks under every interleaving with few preemptions: one, and two where that takes little, or
// as many as PARTITA_PREEMPTIONS says, which also prints the table of bench/results/interleavings.md.
#include <cstdio>
#include <doctest/doctest.h>

#include "support/interleaved_ranks.hpp"
#include "support/interleaving.hpp"

namespace test_comm_interleavings {

using namespace test_support::interleaved;
using test_support::exploration, test_support::explore;

/// An operation that ends well, with its ledger.
struct sound_verb {
  std::string name;
  verb call;
  std::function<std::array<std::string, ranks>(global_index n)> account;
  std::vector<global_index> sizes;
  std::vector<std::string> waits;  ///< in which its ranks wait for rank 1, if that does not come
  int preemptions = 1;             ///< in the check where it fails; one more where it is small and ends well
  std::vector<std::string> waits_after = {};  ///< in which they wait after that, where a limit may end it

  std::string title(global_index n) const { return name + (n == many ? ", exchanged" : ""); }
  std::array<std::string, ranks> right(global_index n) const {
    std::array<std::string, ranks> all = account(n);
    for (std::string& r : all) r.insert(0, "right");
    return all;
  }
};
const std::vector<sound_verb>& sound_verbs() {
  const auto line = [](std::string kind, global_index words, int messages, std::string axis = "world") {
    return "; " + kind + " " + axis + " " + std::to_string(words) + " in " + std::to_string(messages);
  };
  static const std::vector<sound_verb> all{
      {"broadcast",
       broadcast,
       [=](global_index n) -> std::array<std::string, ranks> {
         return {line("broadcast", 3 * n, 1), line("broadcast", 0, 0), line("broadcast", 3 * n, 1)};
       },
       {many},
       {"broadcast of f64"}},
      {"all_gather",
       all_gather,
       [=](global_index n) -> std::array<std::string, ranks> {
         return {line("all_gather", 5 * n, 2), line("all_gather", 4 * n, 2), line("all_gather", 3 * n, 2)};
       },
       {few, many},
       {"all_gather of f64"}},
      {"reduce_scatter",
       reduce_scatter,
       [=](global_index n) { return each(line("reduce_scatter", 2 * n, 2)); },
       {few, many},
       {"reduce_scatter of f64"}},
      {"all_reduce",
       all_reduce,
       [=](global_index n) { return each(line("all_reduce", 4 * n, 4)); },
       {few, many},
       {"all_reduce of f64"}},
      {"all_to_all",
       all_to_all,
       [=](global_index n) -> std::array<std::string, ranks> {
         return {line("all_to_all", 3 * n, 2), line("all_to_all", n, 1), line("all_to_all", 2 * n, 1)};
       },
       {few, many},
       {"all_to_all of f64"}},
      {"send and receive",
       ring,
       [=](global_index n) { return each(line("receive", n, 1) + line("send", 0, 0)); },
       {many},
       {"send of f64", "receive of f64"}},
      {"split, all_reduce",
       split,
       [=](global_index n) -> std::array<std::string, ranks> {
         const std::string pair = line("all_reduce", 2 * n, 2, "part");
         return {pair, "", pair};
       },
       {few, many},
       {"split"},
       0,
       {"all_reduce of f64 of group part"}},
      {"two in flight",
       two_in_flight,
       [=](global_index n) -> std::array<std::string, ranks> {
         const std::string sums = line("reduce_scatter", 2 * n, 2);
         return {sums + line("broadcast", 1, 1), sums + line("broadcast", 1, 1),
                 sums + line("broadcast", 0, 0)};
       },
       {few, many},
       {"reduce_scatter of f64"},
       0,
       {"broadcast of f64"}},
      {"nine in flight",
       nine_in_flight,
       [=](global_index) -> std::array<std::string, ranks> {
         return {line("broadcast", 9, 9), line("broadcast", 0, 0), line("broadcast", 9, 9)};
       },
       {few},
       {"broadcast of f64"},
       0,
       // Eight are the most in flight: its root waits for room.
       {"broadcast of f64 of group world; rank 1 waits in broadcast of f64"}}};
  return all;
}

std::vector<small_case> sound_cases() {
  std::vector<small_case> all;
  for (const sound_verb& v : sound_verbs())
    for (const global_index n : v.sizes)
      all.push_back({.name = v.title(n),
                     .rank = [call = v.call, n](const communicator& c, gate&) { return call(c, n); },
                     .right = v.right(n),
                     .preemptions = n == few ? v.preemptions + 1 : 1});
  return all;
}

std::string gave_up(const std::string& what) {
  return "a rank gave up its " + what + " of f64 before it was complete";
}
const std::vector<std::string> given_up{gave_up("send"), gave_up("broadcast"), gave_up("reduce_scatter")};
const std::string lamp = "the lamp fell";

/// What a rank says that waits too long for one or both of the others.
std::vector<std::string> too_late(const std::vector<std::string>& waits) {
  const auto name = [](int rank) { return std::to_string(rank); };
  std::vector<std::string> all;
  for (const std::string& w : waits)
    for (int rank = 0; rank < ranks; ++rank) {
      const int a = rank == 0 ? 1 : 0, b = rank == 2 ? 1 : 2;
      for (const std::string& absent :
           {"rank " + name(a), "rank " + name(b), "ranks " + name(a) + ", " + name(b)})
        all.push_back("rank " + name(rank) + " has waited for more than 1 s for " + absent + " in " + w +
                      (w == "split" || w.ends_with(" part") ? "" : " of group world"));
    }
  return all;
}

/// Every operation, where rank 1 throws before or after it, returns without it, or comes when the others have
/// waited too long; and where nobody is late, but for waits that end by time.
std::vector<small_case> failing_cases(const sound_verb& v) {
  std::vector<small_case> all;
  const verb call = v.call;
  const auto add = [&](global_index n, const std::string& how, rank_function rank,
                       std::vector<std::string> errors) {
    all.push_back(
        {.name = v.title(n) + how, .rank = std::move(rank), .errors = std::move(errors), .causes = given_up});
    all.back().preemptions = v.preemptions;
  };
  const global_index n = v.sizes.back();
  std::vector<std::string> ended_by_time = too_late(v.waits);
  for (const std::string& why : too_late(v.waits_after)) ended_by_time.push_back(why);
  add(n, ": aborted before",
      [=](const communicator& c, gate&) {
        if (c.rank() == 1) throw lamp_error();
        return call(c, n);
      },
      {lamp});
  std::vector<std::string> missed;
  for (const std::string& w : v.waits) missed.push_back("rank 1 ended without taking part in " + w);
  add(
      n, ": left by a rank",
      [=](const communicator& c, gate&) { return c.rank() == 1 ? "gone" : call(c, n); }, missed);
  all.back().right = {"", "gone", ""};
  add(
      n, ": one never comes",
      [=](const communicator& c, gate& failures) {
        std::string seen;
        if (c.rank() == 1) failures.wait();
        failures.pass_if_fails([&] { seen = call(c, n); });
        return seen;
      },
      too_late(v.waits));
  all.back().limited = true;
  for (const global_index size : v.sizes) {
    add(size, ": aborted after",
        [=](const communicator& c, gate&) {
          call(c, size);
          if (c.rank() == 1) throw lamp_error();
          return all_reduce(c, few);
        },
        {lamp});
    add(
        size, ": under a limit", [=](const communicator& c, gate&) { return call(c, size); }, ended_by_time);
    all.back().right = v.right(size);
    all.back().limited = all.back().ends_well = true;
  }
  return all;
}

/// What ranks say of a mismatch where rank 1 calls something else, whoever comes last.
std::vector<std::string> disagreements(const std::string& common, const std::string& odd) {
  std::vector<std::string> all;
  for (const std::string q : {"0", "2"}) {
    const std::string one = "rank " + q + " calls " + common, two = "rank 1 calls " + odd;
    all.push_back("ranks disagree: " + one + ", " + two);
    all.push_back("ranks disagree: " + two + ", " + one);
  }
  return all;
}

/// Rank 1 calls something else than the others.
std::vector<small_case> mismatches() {
  const auto unlike = [](std::string name, auto common, auto odd, std::vector<std::string> errors) {
    return small_case{"mismatch: " + name,
                      [=](const communicator& c, gate&) -> std::string {
                        const lent data(c, 4 * many), result(c, 4 * many, 1);
                        c.rank() == 1 ? odd(c, data.all(), result.all())
                                      : common(c, data.all(), result.all());
                        return "right";
                      },
                      each("right; receive world 3 in 1; send world 0 in 0"), std::move(errors), given_up};
  };
  const auto reduce = [](global_index n) {
    return [n](const communicator& c, std::span<double> data, std::span<double>) {
      c.all_reduce(data.first(static_cast<std::size_t>(n)));
    };
  };
  const auto tell = [](const communicator& c, std::span<double> data, std::span<double>) {
    c.broadcast(data.first(3), 0);
  };
  const auto exchange = [](global_index to_first) {
    return [to_first](const communicator& c, std::span<double> data, std::span<double> result) {
      const std::vector<global_index> sent{to_first, 1, 1}, received(ranks, 1);
      c.all_to_all(data.first(static_cast<std::size_t>(to_first) + 2), sent, result.first(3), received);
    };
  };
  const auto pass_on = [](std::size_t received) {
    return [received](const communicator& c, std::span<double> data, std::span<double> result) {
      request sent = c.start_send(data.first(3), (c.rank() + 1) % ranks);
      c.receive(result.first(received), (c.rank() + 2) % ranks);
      sent.wait();
    };
  };
  return {unlike("operation", reduce(3), tell,
                 disagreements("all_reduce of f64 with 3 elements", "broadcast of f64 with 3 elements")),
          unlike("size", reduce(3), reduce(4),
                 disagreements("all_reduce of f64 with 3 elements", "all_reduce of f64 with 4 elements")),
          unlike("counts", exchange(1), exchange(2),
                 {"ranks disagree: rank 0 expects 1 elements in all_to_all of f64, rank 1 sends 2"}),
          unlike("message", pass_on(3), pass_on(4),
                 {"ranks disagree: rank 1 calls receive of f64 for 4 elements, rank 0 calls send of f64 with "
                  "3 elements"})};
}

/// Rank 1 gives up what the others may be reading.
std::vector<small_case> given_up_cases() {
  std::vector<small_case> all;
  const auto add = [&](std::string name, auto start, auto finish) {
    all.push_back({"given up: " + name,
                   [=](const communicator& c, gate&) -> std::string {
                     const lent data(c, 3 * many);
                     fill(c, data);
                     request r = start(c, data.all());
                     if (c.rank() == 1) throw lamp_error();
                     r.wait();
                     return finish(data);
                   },
                   {},
                   {lamp},
                   given_up});
    all.back().causes.push_back(gave_up("all_reduce"));
    all.back().preemptions = 2;
  };
  const auto of_root = [](const lent& data) {
    return compare(data, [](global_index i) { return value_of(1, i); });
  };
  add(
      "all_reduce", [](const communicator& c, std::span<double> data) { return c.start_all_reduce(data); },
      [](const lent& data) { return compare(data, sum_of); });
  add(
      "broadcast", [](const communicator& c, std::span<double> data) { return c.start_broadcast(data, 1); },
      of_root);
  all.back().right = each("right; broadcast world " + std::to_string(3 * many) + " in 1");
  add(
      "send",
      [](const communicator& c, std::span<double> data) {
        if (c.rank() == 2) return request();
        return c.rank() == 1 ? c.start_send(data, 0) : c.start_receive(data, 1);
      },
      [](const lent&) { return "right"; });
  all.back().right = {"right; receive world " + std::to_string(3 * many) + " in 1", "", "right"};
  return all;
}

/// Rank 1 does not come to its group, so that its peer waits there and rank 2 for both; or it is stuck for
/// ever.
std::vector<small_case> absences() {
  const auto apart = [](const communicator& c, gate& failures) -> std::string {
    const lent data(c, 4);
    failures.pass_if_fails([&] {
      const communicator part = c.split(c.rank() / 2, 0, "part");
      if (c.rank() == 1) failures.wait();
      part.all_reduce(data.all());
      c.all_reduce(data.all());
    });
    return "right";
  };
  const std::string who = "rank 0 has waited for more than 1 s for rank 1",
                    in_part = "all_reduce of f64 of group part";
  const std::string whose =
      "rank 2 has waited for more than 1 s for ranks 0, 1 in all_reduce of f64 of group world";
  std::vector<std::string> errors = too_late({"split"});
  errors.insert(errors.end(), {who + " in " + in_part, whose, whose + "; rank 0 waits in " + in_part});
  const auto stuck = [](const communicator& c, gate& reported) {
    if (c.rank() == 1) reported.wait();
    return all_reduce(c, few);
  };
  const std::vector<std::string> late = too_late({"all_reduce of f64"});
  std::vector<std::string> reports;
  for (const std::string& l : late)
    for (const std::string running : {"rank 1 is", "ranks 0, 1 are", "ranks 1, 2 are"})
      reports.push_back(l + "; " + running + " still computing 1 s later");
  return {
      {.name = "two groups: one never comes",
       .rank = apart,
       .errors = errors,
       .limited = true,
       .preemptions = 0},
      {.name = "stuck", .rank = stuck, .errors = reports, .causes = late, .limited = true, .reports = true}};
}

void check(const std::vector<small_case>& cases) {
  const char* const preemptions = std::getenv("PARTITA_PREEMPTIONS");
  for (const small_case& tried : cases) {
    INFO(tried.name);
    const exploration found =
        explore({preemptions ? std::atoi(preemptions) : tried.preemptions}, [&] { return ends_of(tried); });
    if (preemptions)
      std::printf("| %s | %ld | %ld | %zu | %d |\n", tried.name.c_str(), found.schedules, found.longest,
                  found.outcomes.size(), found.deadlock > 0);
    CHECK_MESSAGE(found.deadlock == 0, found.stuck);
    CHECK(found.kept_memory == 0);
    for (const auto& [ends, times] : found.outcomes)
      CHECK_MESSAGE(may_end(tried, ends), times, " times ", ends);
  }
}

TEST_CASE("ranks that do the same end well, with the same ledger") { check(sound_cases()); }
TEST_CASE("ranks that fail, leave or are late free the others, which are told why") {
  for (const sound_verb& v : sound_verbs()) check(failing_cases(v));
}
TEST_CASE("ranks that disagree are named") { check(mismatches()); }
TEST_CASE("memory that is given up is read no more") { check(given_up_cases()); }
TEST_CASE("ranks that do not come to a group, or are stuck, are named") { check(absences()); }

// Twice, since the end of a rank wakes all.
TEST_CASE("where no rank is notified that all have come, there is a deadlock") {
  for (const verb call : {broadcast, all_gather, reduce_scatter, all_reduce, all_to_all, split})
    for (const global_index n : {few, many}) {
      const small_case twice{.name = "",
                             .rank = [=](const communicator& c, gate&) { return call(c, n) + call(c, n); }};
      const exploration found =
          explore({.preemptions = 1, .lost_notification = 1}, [&] { return ends_of(twice); });
      CHECK(found.deadlock > 0);
      CHECK(found.stuck.find("waits for a condition") != found.stuck.npos);
    }
}

}  // namespace test_comm_interleavings

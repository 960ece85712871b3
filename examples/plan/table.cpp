// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "../train/report.hpp"

namespace {

bool fits(const planned& p, const std::optional<std::size_t>& most) { return nn::fits(p.of, most); }

std::string exchange_of(const planned& p) { return exchange_name(p.of.exchange); }
std::string stationary_of(const planned& p) { return stationary_name(p.of.stationary); }
std::string chunks_of(const planned& p) { return p.of.chunks > 0 ? std::to_string(p.of.chunks) : ""; }
int ranks_of(const planned& p) { return std::max(1, p.of.stages) * p.of.mesh.size(); }
/// Four for each stage where none are named.
int stage_chunks_of(const planned& p) {
  return nn::pipeline_options{.stages = p.of.stages, .chunks = p.of.stage_chunks}.chunk_count();
}
std::string placement_of(const planned& p) { return std::string(name_of(p.of.placement)); }
/// What else a row of the table is: stages of this mesh with so many chunks, or how batches are placed.
std::string way_of(const planned& p, const command& c) {
  if (p.of.stages > 0) return fmt::format("{} stages, {} chunks", p.of.stages, stage_chunks_of(p));
  return c.in_batches() ? placement_of(p) : "";
}

/// A word of a command line as a shell reads it.
std::string quoted(const std::string& word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,:=+@%";
  if (!word.empty() && word.find_first_not_of(plain) == word.npos) return word;
  std::string all = "'";
  for (const char c : word) all += c == '\'' ? "'\\''" : std::string(1, c);
  return all + "'";
}

/// The options of `train` that are this candidate.
std::string options_of(const planned& p, const command& c) {
  std::string words =
      fmt::format("--ranks {} --policy {} --mesh {}", ranks_of(p), p.of.policy.name, to_string(p.of.mesh));
  if (p.of.stages > 0) words += fmt::format(" --stages {} --chunks {}", p.of.stages, stage_chunks_of(p));
  if (c.in_batches()) words += " --placement " + placement_of(p);
  if (!exchange_of(p).empty()) words += " --exchange " + exchange_of(p);
  if (!stationary_of(p).empty()) words += " --stationary " + stationary_of(p);
  if (p.of.chunks > 0) words += " --exchange-pieces " + chunks_of(p);
  if (p.partition != "none")
    words += " --partition " + quoted(p.partition == "given" ? "given:" + c.partition.file : p.partition);
  return words;
}

/// Of what seconds and words are.
const char* unit_of(const command& c) { return c.in_batches() ? "an epoch" : "a step"; }

/// What a machine takes, in ms; - where none is given.
std::string milliseconds(double seconds, const command& c) {
  return c.machine ? fmt::format("{:.3f}", 1e3 * seconds) : "-";
}

/// Of those that fit, or of all if none does, the first of those with the fewest words.
auto fewest_words(const std::vector<planned>& all, const command& c) {
  return std::ranges::min_element(
      all, {}, [&](const planned& p) { return std::pair(!fits(p, c.memory), p.of.cost.words.max_rank); });
}

/// What the first is better in, and what limits it.
std::string reason(const std::vector<planned>& all, const command& c) {
  const planned& best = all.front();
  const nn::policy_cost& cost = best.of.cost;
  std::string why = c.machine ? fmt::format("{:.3f} ms {}, of which the rank that waits most waits {:.0f} %",
                                            1e3 * cost.seconds, unit_of(c), 100 * cost.waiting / cost.seconds)
                              : fmt::format(
                                    "the least product of words {} and bytes of the busiest rank, {} and {}; "
                                    "without --machine seconds are unknown",
                                    unit_of(c), cost.words.max_rank, cost.bytes());
  const auto other = std::ranges::find_if(
      all, [&](const planned& p) { return p.of.policy.name != best.of.policy.name && fits(p, c.memory); });
  if (c.machine && other != all.end())
    why += fmt::format("; the next policy, {}, takes {:.2f} times as long", other->of.policy.name,
                       other->of.cost.seconds / cost.seconds);
  const auto least = fewest_words(all, c);
  if (least->of.cost.words.max_rank < cost.words.max_rank)
    why += fmt::format(
        "; the fewest words are {} of {}, and it {}", least->of.cost.words.max_rank, options_of(*least, c),
        c.machine ? fmt::format("takes {:.2f} times as long", least->of.cost.seconds / cost.seconds)
                  : fmt::format("needs {} bytes", least->of.cost.bytes()));
  const auto large = std::ranges::count_if(all, [&](const planned& p) { return !fits(p, c.memory); });
  if (large > 0) why += fmt::format("; {} of {} do not fit into --memory", large, all.size());
  return why;
}

}  // namespace

std::string given_in(const CLI::App& app) {
  constexpr std::array<std::string_view, 13> others{
      "--json",        "--machine",  "--ranks",      "--policy",          "--mesh",
      "--replication", "--exchange", "--stationary", "--exchange-pieces", "--partition",
      "--stages",      "--chunks",   "--placement"};
  std::string line;
  for (const CLI::Option* const o : app.get_options())
    if (o->count() > 0 && o->get_group() != "Plan" &&
        std::ranges::find(others, o->get_name()) == others.end())
      line += " " + o->get_name() +
              (o->get_items_expected_max() > 0 ? " " + quoted(CLI::detail::join(o->results(), ",")) : "");
  return line;
}

void require_fitting(const std::vector<planned>& all, const command& c) {
  if (all.empty() || fits(all.front(), c.memory)) return;
  const auto bytes = [](const planned& p) { return p.of.cost.buffer_bytes.max_rank; };
  const planned& least = *std::ranges::min_element(all, {}, bytes);
  throw partita::budget_error(fmt::format(
      "no candidate fits into --memory, {} bytes of a rank: {} needs least, {} bytes ({:.2f} MiB)", *c.memory,
      options_of(least, c), bytes(least), mebibytes(bytes(least))));
}

void print_plan(const std::vector<planned>& all, const command& c, int ranks, int rows,
                const std::string& given) {
  const std::string_view ways = c.in_batches() ? "placement" : "stages";
  std::size_t width = 0;  // of what else a row is, and a blank; 0: nothing
  for (const planned& p : all)
    if (const std::string way = way_of(p, c); !way.empty())
      width = std::max({width, way.size() + 1, ways.size() + 1});
  fmt::print("{:14} {:16} {:9} {:{}}{:9} {:10} {:6} {:>10} {:>10} {:>14} {:>10}\n", "partition", "policy",
             "mesh", width == 0 ? "" : ways, width, "exchange", "stationary", "chunks",
             fmt::format("ms {}", unit_of(c)), "waiting", "words received", "MiB a rank");
  const auto shown = std::min(std::ssize(all), static_cast<std::ptrdiff_t>(rows));
  std::vector<planned> table(all.begin(), all.begin() + shown);
  if (const auto least = fewest_words(all, c); least - all.begin() >= shown) table.push_back(*least);
  for (const planned& p : table)
    fmt::print("{:14} {:16} {:9} {:{}}{:9} {:10} {:6} {:>10} {:>10} {:14} {:10.2f}{}\n", p.partition,
               p.of.policy.name, to_string(p.of.mesh), way_of(p, c), width, exchange_of(p), stationary_of(p),
               chunks_of(p), milliseconds(p.of.cost.seconds, c), milliseconds(p.of.cost.waiting, c),
               p.of.cost.words.max_rank,
               mebibytes(c.machine ? p.of.cost.buffer_bytes.max_rank : p.of.cost.bytes()),
               fits(p, c.memory) ? "" : "  does not fit");
  fmt::print("{} compared; chosen: {}\n{}train{} {}\n", all.size(), reason(all, c),
             c.comm == "mpi" ? fmt::format("mpirun -n {} ", ranks) : "", given, options_of(all.front(), c));
}

void write_plan(const std::string& path, const std::vector<planned>& all, const command& c, int ranks) {
  nlohmann::ordered_json j{{"data", c.data}, {"model", c.training.model}, {"ranks", ranks}};
  if (c.machine) j["machine"] = c.machine->file;
  j["why"] = reason(all, c);
  j["options"] = options_of(all.front(), c);
  for (const planned& p : all) {
    j["candidates"].push_back({{"partition", p.partition},
                               {"policy", p.of.policy.name},
                               {"mesh", {p.of.mesh.row, p.of.mesh.col, p.of.mesh.depth}},
                               {"exchange", exchange_of(p)},
                               {"stationary", stationary_of(p)},
                               {"exchange_pieces", p.of.chunks},
                               {"predicted_words_received",
                                {{"max_rank", p.of.cost.words.max_rank}, {"total", p.of.cost.words.total}}},
                               {"predicted_bytes", {{"max_rank", p.of.cost.bytes()}}},
                               {"predicted_buffer_bytes", {{"max_rank", p.of.cost.buffer_bytes.max_rank}}},
                               {"fits", fits(p, c.memory)}});
    auto& candidate = j["candidates"].back();
    if (c.machine) {
      candidate["predicted_seconds"] = p.of.cost.seconds;
      candidate["predicted_waiting"] = p.of.cost.waiting;
    }
    if (p.of.stages > 0) candidate["stages"] = p.of.stages, candidate["chunks"] = stage_chunks_of(p);
    if (c.in_batches()) candidate["placement"] = placement_of(p);
  }
  std::ofstream file(path);
  file << j.dump(2) << '\n';
  if (!file.flush()) throw partita::error("cannot write " + path);
}

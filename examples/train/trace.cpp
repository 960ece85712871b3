// SPDX-License-Identifier: Apache-2.0
#include "trace.hpp"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "../ranks/machine.hpp"
#include "partita/io/whole_file.hpp"

namespace {

using nlohmann::json;
using partita::comm::event;

/// What is to be added to a time of this rank's clock to get that of the first rank's: 0 on its machine, else
/// from the quickest of some round trips. Every rank must call.
double clock_difference(const partita::communicator& world) {
  const std::vector<int> near = ranks_on_machine(world);
  const std::vector<int> apart = world.all_gather(static_cast<int>(near.front() != 0));
  double difference = 0;
  for (int other = 1; other < world.size(); ++other) {
    if (apart[static_cast<std::size_t>(other)] == 0) continue;
    double quickest = std::numeric_limits<double>::infinity(), found = 0, time = 0;
    for (int trip = 0; trip < 16; ++trip) {
      const double begin = world.ledger().seconds();
      if (world.rank() == 0) {
        world.send(std::span(&begin, 1), other);
        world.receive(std::span(&time, 1), other);
        const double end = world.ledger().seconds();
        if (end - begin < quickest) quickest = end - begin, found = (begin + end) / 2 - time;
      } else if (world.rank() == other) {
        world.receive(std::span(&time, 1), 0);
        const double now = world.ledger().seconds();
        world.send(std::span(&now, 1), 0);
      }
    }
    if (world.rank() == 0) world.send(std::span(&found, 1), other);
    if (world.rank() == other) world.receive(std::span(&difference, 1), 0);
  }
  return difference;
}

std::string packed(const std::vector<event>& events, double later) {
  json all = json::array();
  for (const event& e : events)
    all.push_back({e.name, e.kind ? static_cast<int>(*e.kind) : -1, e.axis, e.begin + later, e.wait + later,
                   e.end + later, e.bytes});
  return all.dump();
}

std::vector<event> unpacked(const std::vector<std::uint8_t>& text) {
  std::vector<event> events;
  for (const json& j : json::parse(text)) {
    event e{j[0], {}, j[2], j[3], j[4], j[5], j[6]};
    if (const int kind = j[1]; kind >= 0) e.kind = static_cast<partita::operation>(kind);
    events.push_back(std::move(e));
  }
  return events;
}

/// A line of the trace; times in microseconds.
json line(const char* form, const std::string& name, std::size_t rank, int row, double at) {
  return {{"ph", form}, {"name", name}, {"pid", rank}, {"tid", row}, {"ts", 1e6 * at}};
}

}  // namespace

std::vector<std::vector<event>> events_of_ranks(const partita::communicator& world) {
  const std::vector<event> mine = world.ledger().events();
  world.ledger().keep_events(0);
  const std::string packed_text = packed(mine, clock_difference(world));
  const std::vector<std::uint8_t> text(packed_text.begin(), packed_text.end());
  const std::vector<partita::global_index> sizes =
      world.all_gather(static_cast<partita::global_index>(text.size()));
  std::vector<std::vector<event>> all;
  if (world.rank() != 0) {
    world.send(text, 0);
    return all;
  }
  all.push_back(mine);
  for (int rank = 1; rank < world.size(); ++rank) {
    std::vector<std::uint8_t> other(static_cast<std::size_t>(sizes[static_cast<std::size_t>(rank)]));
    world.receive(other, rank);
    all.push_back(unpacked(other));
  }
  return all;
}

void write_trace(const std::string& path, const std::vector<std::vector<event>>& events) {
  double first = std::numeric_limits<double>::infinity();
  for (const auto& of_rank : events)
    for (const event& e : of_rank) first = std::min(first, e.begin);
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  const auto add = [&](const json& j) { text += (text.back() == '[' ? "\n" : ",\n") + j.dump(); };
  std::size_t flights = 0;
  for (std::size_t rank = 0; rank < events.size(); ++rank) {
    json name = line("M", "process_name", rank, 0, 0);
    name["args"] = {{"name", fmt::format("rank {}", rank)}};
    add(name);
    for (const event& e : events[rank]) {
      const std::string what = e.kind ? fmt::format("{} along {}", name_of(*e.kind), e.axis) : e.name;
      json slice = line("X", what, rank, 0, e.wait - first);
      slice["dur"] = 1e6 * (e.end - e.wait);
      if (e.kind) slice["args"] = {{"phase", e.name}, {"bytes received", e.bytes}};
      add(slice);
      if (!e.kind) continue;
      for (const auto& [form, at] : {std::pair("b", e.begin), std::pair("e", e.end)}) {
        json flight = line(form, what, rank, 1, at - first);
        flight["cat"] = "in flight";
        flight["id"] = flights;
        add(flight);
      }
      ++flights;
    }
  }
  text += "\n]}\n";
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(text))};
  io::write_whole_file(path, parts);
}

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Files that describe a machine.

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "../ranks/command_line.hpp"
#include "partita/comm/emulated.hpp"

/// The machine of a JSON file, of which what is not there has its default:
///
///     {"ranks_of_node": 4, "inside": {"latency": 1e-6, "bandwidth": 5e10},
///      "between": {"latency": 2e-6, "bandwidth": 1.25e10}, "slower": 1, "in_real_time": false}
///
/// Throws usage_error for a file that cannot be read, a key that is not one of these, or a number below 0.
inline partita::emulated::machine read_machine(const std::string& path) {
  const auto refuse = [&](const std::string& why) { throw usage_error("--machine " + path + ": " + why); };
  std::ifstream file(path);
  if (!file) refuse("cannot be read");
  const nlohmann::json all = nlohmann::json::parse(file, nullptr, false);
  if (!all.is_object()) refuse("is not an object of JSON");
  const auto number = [&](const std::string& key, const nlohmann::json& j) {
    if (!j.is_number() || !(j.get<double>() >= 0)) refuse(key + " is not a number of 0 or more");
    return j.get<double>();
  };
  const auto link_of = [&](const std::string& name, const nlohmann::json& j) {
    partita::emulated::link l;
    if (!j.is_object()) refuse(name + " is not an object");
    for (const auto& [key, value] : j.items())
      if (key == "latency")
        l.latency = number(name + "." + key, value);
      else if (key == "bandwidth")
        l.bandwidth = number(name + "." + key, value);
      else
        refuse("unknown key " + name + "." + key);
    return l;
  };
  partita::emulated::machine m;
  for (const auto& [key, value] : all.items())
    if (key == "ranks_of_node")
      m.ranks_of_node = static_cast<int>(number(key, value));
    else if (key == "slower")
      m.slower = number(key, value);
    else if (key == "inside" || key == "between")
      (key == "inside" ? m.inside : m.between) = link_of(key, value);
    else if (key == "in_real_time")
      value.is_boolean() ? void(m.in_real_time = value.get<bool>()) : refuse(key + " is not true or false");
    else
      refuse("unknown key " + key);
  if (m.ranks_of_node < 1 || !(m.inside.bandwidth > 0) || !(m.between.bandwidth > 0) || !(m.slower > 0))
    refuse("ranks_of_node, slower and the bandwidths must be positive");
  return m;
}

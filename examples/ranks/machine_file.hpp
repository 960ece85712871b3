// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Files that describe a machine: read by programs that emulate one, and written by one that measures it.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "arrangement.hpp"
#include "partita/comm/emulated.hpp"

/// A machine, and what its file says beside.
struct described_machine : partita::emulated::machine {
  std::string file;            ///< as it was named
  std::string precision = {};  ///< f32 or f64, in which its kernels were measured; empty: not said
  bool has_between = false;    ///< without, messages between nodes are those inside

  /// What messages between nodes are taken to cost where so many ranks are on several, and the file has no
  /// cost of them; empty where nothing is assumed.
  std::string assumption(int ranks) const {
    if (has_between || ranks <= ranks_of_node) return {};
    const bool free = inside.latency == 0 && inside.bandwidth >= partita::emulated::link().bandwidth;
    return file + ": there is no \"between\", and " + std::to_string(ranks) + " ranks are on nodes of " +
           std::to_string(ranks_of_node) + ": messages between nodes are taken to cost what they do inside" +
           (free ? ", which is nothing" : "");
  }
};

namespace machine_file {

using json = nlohmann::ordered_json;
using partita::memory::kernel_call, partita::memory::kernel_rates;

/// The numbers of a measurement, by their keys.
inline constexpr std::array<std::pair<const char*, double kernel_call::*>, 6> sizes{{
    {"rows", &kernel_call::rows},
    {"entries", &kernel_call::entries},
    {"row_bytes", &kernel_call::row_bytes},
    {"table_bytes", &kernel_call::table_bytes},
    {"bytes", &kernel_call::bytes},
    {"work", &kernel_call::work},
}};

/// A file, and what its numbers must be. Throws usage_error that names the file and the key.
class source {
 public:
  source(std::filesystem::path path, std::string option)
      : path_(std::move(path)), option_(std::move(option)) {}

  json read() const {
    std::ifstream file(path_);
    if (!file || std::filesystem::is_directory(path_)) refuse("cannot be read");
    return json::parse(file, nullptr, false);
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw usage_error(option_ + " " + path_.string() + ": " + why);
  }
  double number(const std::string& key, const json& j) const {
    if (!j.is_number() || !(j.get<double>() >= 0)) refuse(key + " is not a number of 0 or more");
    return j.get<double>();
  }
  int whole(const std::string& key, const json& j) const {
    const double x = number(key, j);
    if (x < 1 || x != std::floor(x) || x > 1e9)
      refuse(key + " is not a positive whole number below a billion");
    return static_cast<int>(x);
  }
  /// f(key, value) for each value of an object.
  template <class F>
  void each(const std::string& name, const json& j, const F& f) const {
    if (!j.is_object()) refuse(name + " is not an object");
    for (const auto& [key, value] : j.items()) f(name + "." + key, key, value);
  }
  source beside(const std::string& name) const { return {path_.parent_path() / name, option_}; }

 private:
  std::filesystem::path path_;
  std::string option_;
};

inline partita::emulated::link link_of(const source& from, const std::string& name, const json& j) {
  partita::emulated::link l;
  from.each(name, j, [&](const std::string& path, const std::string& key, const json& value) {
    if (key != "latency" && key != "bandwidth") from.refuse("unknown key " + path);
    (key == "latency" ? l.latency : l.bandwidth) = from.number(path, value);
  });
  return l;
}

inline void add_sample(const source& from, const std::string& name, const json& j, kernel_rates& to) {
  kernel_call call;
  std::string kernel;
  double seconds = 0;
  int times = 1;
  from.each(name, j, [&](const std::string& path, const std::string& key, const json& value) {
    if (key == "kernel")
      value.is_string() ? void(kernel = value.get<std::string>()) : from.refuse(path + " is not a name");
    else if (key == "seconds")
      seconds = from.number(path, value);
    else if (key == "times")
      times = from.whole(path, value);
    else {
      const auto* const size =
          std::ranges::find_if(sizes, [&](const auto& named) { return key == named.first; });
      if (size == sizes.end()) from.refuse("unknown key " + path);
      call.*size->second = from.number(path, value);
    }
  });
  if (kernel.empty() || !(seconds > 0) || !(call.bytes > 0))
    from.refuse(name + " needs a kernel, and bytes and seconds that are positive");
  call.kernel = kernel;
  to.add(call, seconds, times);
}

inline kernel_rates kernels_of(const source& from, const json& list) {
  if (!list.is_array() || list.empty()) from.refuse("kernels is not a list of measurements");
  kernel_rates rates;
  for (std::size_t i = 0; i < list.size(); ++i)
    add_sample(from, "kernels[" + std::to_string(i) + "]", list[i], rates);
  return rates;
}
/// An assumption for all kernels.
inline kernel_rates assumed_kernels(const source& from, const json& j) {
  partita::memory::assumed_rates rates;
  from.each("kernels", j, [&](const std::string& path, const std::string& key, const json& value) {
    if (key != "latency" && key != "bandwidth" && key != "multiplications")
      from.refuse("unknown key " + path);
    (key == "latency"     ? rates.latency
     : key == "bandwidth" ? rates.bandwidth
                          : rates.multiplications) = from.number(path, value);
  });
  if (!(rates.bandwidth > 0) || !(rates.multiplications > 0))
    from.refuse("kernels: bandwidth and multiplications must be positive");
  if (j.empty()) from.refuse("kernels needs a latency, a bandwidth or multiplications");
  return kernel_rates(rates);
}
inline std::string precision_of(const source& from, const json& j) {
  if (j != "f32" && j != "f64") from.refuse("precision is not f32 or f64");
  return j.get<std::string>();
}
/// Measurements, those of a file that is named in their place, or an assumption.
inline kernel_rates kernels_of_machine(const source& from, const json& j, std::string& precision) {
  if (j.is_object()) return assumed_kernels(from, j);
  if (!j.is_string()) return kernels_of(from, j);
  const source other = from.beside(j.get<std::string>());
  const json all = other.read();
  if (!all.is_object() || !all.contains("kernels")) other.refuse("has no kernels");
  if (all.contains("precision")) precision = precision_of(other, all["precision"]);
  return kernels_of(other, all["kernels"]);
}

inline json json_of(const partita::emulated::link& l) {
  return {{"latency", l.latency}, {"bandwidth", l.bandwidth}};
}
inline json json_of(const std::string& kernel, const kernel_rates::sample& s) {
  json j{{"kernel", kernel}};
  for (const auto& [key, size] : sizes) j[key] = s.call.*size;
  j["seconds"] = s.seconds;
  j["times"] = s.times;
  return j;
}

}  // namespace machine_file

/// The machine of a JSON file, of which what is not there has its default:
///
///     {"ranks_of_node": 4, "inside": {"latency": 1e-6, "bandwidth": 5e10},
///      "between": {"latency": 2e-6, "bandwidth": 1.25e10}, "slower": 1, "in_real_time": false,
///      "kernels": [{"kernel": "gemm", "rows": 100, "row_bytes": 64, "bytes": 12800, "work": 25600,
///                   "seconds": 2e-6, "times": 8}]}
///
/// In the place of measurements of kernels stands the name of another file with them, relative to this one,
/// or an assumption, {"latency": 5e-6, "bandwidth": 2.4e11, "multiplications": 3e12}: see
/// memory::assumed_rates. "precision" says in which kernels were measured; without "between" messages between
/// nodes cost what those inside do. `option` is what names the file. Throws usage_error for a file that
/// cannot be read, a key that is not one of these, or a number below 0.
inline described_machine read_machine(const std::string& path, const std::string& option = "--machine") {
  const machine_file::source file(path, option);
  const machine_file::json all = file.read();
  if (!all.is_object()) file.refuse("is not an object of JSON");
  described_machine m;
  m.file = path;
  for (const auto& [key, value] : all.items())
    if (key == "ranks_of_node")
      m.ranks_of_node = file.whole(key, value);
    else if (key == "slower")
      m.slower = file.number(key, value);
    else if (key == "inside" || key == "between")
      (key == "inside" ? m.inside : m.between) = machine_file::link_of(file, key, value);
    else if (key == "in_real_time")
      value.is_boolean() ? void(m.in_real_time = value.get<bool>())
                         : file.refuse(key + " is not true or false");
    else if (key == "precision")
      m.precision = machine_file::precision_of(file, value);
    else if (key == "kernels")
      m.kernels = std::make_shared<const partita::memory::kernel_rates>(
          machine_file::kernels_of_machine(file, value, m.precision));
    else
      file.refuse("unknown key " + key);
  m.has_between = all.contains("between");
  if (!m.has_between) m.between = m.inside;
  if (!(m.inside.bandwidth > 0) || !(m.between.bandwidth > 0) || !(m.slower > 0))
    file.refuse("slower and the bandwidths must be positive");
  if (m.in_real_time && m.kernels) file.refuse("kernels are for virtual time, not for in_real_time");
  return m;
}

/// What read_machine reads, a measurement a line; of `between` nothing where the machine has none.
inline std::string text_of_machine(const described_machine& m) {
  using machine_file::json_of;
  machine_file::json head{{"ranks_of_node", m.ranks_of_node}, {"inside", json_of(m.inside)}};
  if (m.has_between) head["between"] = json_of(m.between);
  head["slower"] = m.slower;
  head["precision"] = m.precision;
  std::string text = head.dump(), separator = "[\n ";
  text.pop_back();
  text += ",\n\"kernels\": ";
  m.kernels->for_each([&](const std::string& kernel, const partita::memory::kernel_rates::sample& s) {
    text += std::exchange(separator, ",\n ") + json_of(kernel, s).dump();
  });
  return text + "]}\n";
}

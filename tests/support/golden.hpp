#pragma once
// Golden cases: small graphs with a model's logits, loss and every gradient from automatic differentiation in
// float64.
#include <cmath>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "partita/base/triplet.hpp"
#include "partita/io/npy.hpp"

namespace test_support {

struct golden_case {
  std::filesystem::path folder;
  nlohmann::json about;
  partita::array<double> x, logits;
  std::vector<std::int64_t> labels;  ///< [n], or [n, C] when the loss is bce
  std::vector<std::uint8_t> mask;
  double loss = 0;
  std::vector<partita::triplet<double>> entries;  ///< (v, u): weight of the edge from u to v

  std::string name() const { return about["name"]; }
  bool bce() const { return about["loss"] == "bce"; }
  partita::global_index vertices() const { return x.shape[0]; }
  partita::global_index classes() const { return logits.shape[1]; }
  partita::array<double> parameter(const std::string& name) const {
    return partita::read_npy<double>(folder / ("param_" + name + ".npy"));
  }
  partita::array<double> gradient(const std::string& name) const {
    return partita::read_npy<double>(folder / ("grad_" + name + ".npy"));
  }
};

inline golden_case read_golden(const std::filesystem::path& folder) {
  golden_case c;
  c.folder = folder;
  std::ifstream(folder / "case.json") >> c.about;
  c.x = partita::read_npy<double>(folder / "x.npy");
  c.logits = partita::read_npy<double>(folder / "logits.npy");
  c.labels = partita::read_npy<std::int64_t>(folder / "labels.npy").values;
  c.mask = partita::read_npy<std::uint8_t>(folder / "mask.npy").values;
  c.loss = partita::read_npy<double>(folder / "loss.npy").values.at(0);
  const auto edges = partita::read_npy<std::int64_t>(folder / "edges.npy");
  const bool weighted = c.about["weighted"];
  const auto weights =
      weighted ? partita::read_npy<double>(folder / "edge_weight.npy").values : std::vector<double>{};
  for (std::size_t e = 0; 2 * e < edges.values.size(); ++e)
    c.entries.push_back({edges.values[2 * e + 1], edges.values[2 * e], weighted ? weights[e] : 1.0});
  return c;
}

/// All cases of one model; at least one, or the test fails.
inline std::vector<golden_case> golden_cases(const std::string& model) {
  const char* folder = std::getenv("PARTITA_GOLDEN");
  REQUIRE_MESSAGE(folder != nullptr, "PARTITA_GOLDEN names no folder of golden cases");
  std::vector<golden_case> cases;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.path().filename().string().starts_with(model + "-")) continue;
    cases.push_back(read_golden(entry.path()));
  }
  REQUIRE(!cases.empty());
  return cases;
}

/// max |a - b| / max |b|
inline double relative_error(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size()) return INFINITY;
  double difference = 0, largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = std::isnan(a[i]) ? INFINITY : std::max(difference, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(b[i]));
  }
  return difference == 0 ? 0 : difference / largest;
}

}  // namespace test_support

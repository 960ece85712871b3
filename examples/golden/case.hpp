#pragma once
/// Golden cases: small graphs with a model's logits, loss and every gradient from automatic differentiation
/// in float64.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "partita/base/triplet.hpp"
#include "partita/io/npy.hpp"

struct golden_case {
  std::filesystem::path folder;
  nlohmann::json about;
  partita::array<double> x, logits;
  std::vector<std::int64_t> labels;  ///< [n], or [n, C] when the loss is bce
  std::vector<std::uint8_t> mask;
  double loss = 0;
  std::map<std::string, std::vector<double>> values, gradients;  ///< by the name of the parameter
  std::vector<partita::triplet<double>> entries;                 ///< (v, u): weight of the edge from u to v

  std::string name() const { return about["name"]; }
  std::string model() const { return about["model"]; }
  bool bce() const { return about["loss"] == "bce"; }
  double hyper(const char* key) const { return about["hyper"][key]; }
  std::vector<partita::global_index> dims() const { return about["dims"]; }
  partita::global_index vertices() const { return x.shape[0]; }
  partita::global_index classes() const { return logits.shape[1]; }
  bool counts(partita::global_index v) const { return mask[static_cast<std::size_t>(v)] != 0; }
};

inline golden_case read_golden(const std::filesystem::path& folder) {
  golden_case c;
  c.folder = folder;
  std::ifstream file(folder / "case.json");
  if (!file) throw partita::input_error((folder / "case.json").string() + ": cannot be read");
  c.about = nlohmann::json::parse(file);
  c.x = partita::read_npy<double>(folder / "x.npy");
  c.logits = partita::read_npy<double>(folder / "logits.npy");
  c.labels = partita::read_npy<std::int64_t>(folder / "labels.npy").values;
  c.mask = partita::read_npy<std::uint8_t>(folder / "mask.npy").values;
  c.loss = partita::read_npy<double>(folder / "loss.npy").values.at(0);
  for (const std::string name : c.about["params"]) {
    c.values[name] = partita::read_npy<double>(folder / ("param_" + name + ".npy")).values;
    c.gradients[name] = partita::read_npy<double>(folder / ("grad_" + name + ".npy")).values;
  }
  const auto edges = partita::read_npy<std::int64_t>(folder / "edges.npy");
  const bool weighted = c.about["weighted"];
  const auto weights =
      weighted ? partita::read_npy<double>(folder / "edge_weight.npy").values : std::vector<double>{};
  for (std::size_t e = 0; 2 * e < edges.values.size(); ++e)
    c.entries.push_back({edges.values[2 * e + 1], edges.values[2 * e], weighted ? weights[e] : 1.0});
  return c;
}

/// Every case folder under `folder`, in order of their names. Throws input_error when there is none.
inline std::vector<golden_case> read_golden_cases(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder))
    throw partita::input_error(folder.string() + ": is not a directory");
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (std::filesystem::exists(entry.path() / "case.json")) folders.push_back(entry.path());
  if (folders.empty()) throw partita::input_error(folder.string() + ": holds no golden case");
  std::sort(folders.begin(), folders.end());
  std::vector<golden_case> cases;
  for (const auto& f : folders) cases.push_back(read_golden(f));
  return cases;
}

#pragma once
/// Golden cases: small graphs with a model's logits, loss and every gradient from automatic differentiation
/// in float64.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "partita/io/labelled_graph.hpp"
#include "partita/io/npy.hpp"
#include "partita/train/options.hpp"

struct golden_case {
  std::filesystem::path folder;
  nlohmann::json about;
  partita::array<double> x, logits;
  std::vector<std::int64_t> labels;  ///< [n], or [n, C] when the loss is bce
  std::vector<std::uint8_t> mask;
  double loss = 0;
  std::map<std::string, std::vector<double>> values, gradients;  ///< by the name of the parameter
  partita::dataset graph;                                        ///< without features and labels

  std::string name() const { return about["name"]; }
  std::string model() const { return about["model"]; }
  bool bce() const { return about["loss"] == "bce"; }
  partita::global_index classes() const { return logits.shape[1]; }
  /// What makes the model of the case.
  partita::training_options options() const {
    const auto& hyper = about["hyper"];
    const std::vector<partita::global_index> widths = about["dims"];
    partita::training_options o;
    o.model = model();
    o.hidden.assign(widths.begin() + 1, widths.end() - 1);
    o.layers = hyper.value("L", 0);
    o.heads = o.last_heads = hyper.value("heads", 1);
    o.hops = hyper.value("K", 1);
    o.alpha = hyper.value("alpha", 0.0);
    o.lambda = hyper.value("lambda", 0.0);
    o.epsilon = hyper.value("eps", 0.0);
    o.dropout = 0;
    return o;
  }
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
  c.graph.name = c.name();
  c.graph.vertices = c.x.shape[0];
  c.graph.features = c.x.shape[1];
  c.graph.classes = c.classes();
  for (std::size_t e = 0; e + 1 < edges.values.size(); e += 2)
    c.graph.edges.push_back({edges.values[e], edges.values[e + 1]});
  if (c.about["weighted"])
    c.graph.edge_weights = partita::read_npy<double>(folder / "edge_weight.npy").values;
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

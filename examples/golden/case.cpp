// SPDX-License-Identifier: Apache-2.0
#include "case.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace partita;

namespace {

nn::training_options options_of(const nlohmann::json& about) {
  const auto& hyper = about["hyper"];
  const std::vector<global_index> widths = about["dims"];
  nn::training_options o;
  o.model = about["model"];
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

golden_case read_golden(const std::filesystem::path& folder) {
  std::ifstream file(folder / "case.json");
  if (!file) throw input_error((folder / "case.json").string() + ": cannot be read");
  const nlohmann::json about = nlohmann::json::parse(file);
  golden_case c;
  c.folder = folder;
  c.name = about["name"];
  c.options = options_of(about);
  c.several_labels = about["loss"] == "bce";
  c.x = io::read_npy<double>(folder / "x.npy");
  c.logits = io::read_npy<double>(folder / "logits.npy");
  c.labels = io::read_npy<std::int64_t>(folder / "labels.npy").values;
  c.mask = io::read_npy<std::uint8_t>(folder / "mask.npy").values;
  c.loss = io::read_npy<double>(folder / "loss.npy").values.at(0);
  for (const std::string name : about["params"]) {
    c.values[name] = io::read_npy<double>(folder / ("param_" + name + ".npy")).values;
    c.gradients[name] = io::read_npy<double>(folder / ("grad_" + name + ".npy")).values;
  }
  const auto edges = io::read_npy<std::int64_t>(folder / "edges.npy");
  c.graph.name = c.name;
  c.graph.vertices = c.x.shape[0];
  c.graph.features = c.x.shape[1];
  c.graph.classes = c.classes();
  for (std::size_t e = 0; e + 1 < edges.values.size(); e += 2)
    c.graph.edges.push_back({edges.values[e], edges.values[e + 1]});
  if (about["weighted"]) c.graph.edge_weights = io::read_npy<double>(folder / "edge_weight.npy").values;
  return c;
}

}  // namespace

std::vector<golden_case> read_golden_cases(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) throw input_error(folder.string() + ": is not a directory");
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (std::filesystem::exists(entry.path() / "case.json")) folders.push_back(entry.path());
  if (folders.empty()) throw input_error(folder.string() + ": holds no golden case");
  std::sort(folders.begin(), folders.end());
  std::vector<golden_case> cases;
  for (const auto& f : folders) cases.push_back(read_golden(f));
  return cases;
}

double golden_errors::worst() const {
  double w = 0;
  for (const auto& [what, error] : parts) w = std::isnan(error) ? INFINITY : std::max(w, error);
  return w;
}

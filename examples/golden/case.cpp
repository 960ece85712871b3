// SPDX-License-Identifier: Apache-2.0
#include "case.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "partita/io/safetensors.hpp"

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
  o.bases = hyper.value("bases", 0);
  o.dropout = 0;
  return o;
}

/// The arrays of a case by name, each in a file of its own or all in values.safetensors.
class case_arrays {
 public:
  explicit case_arrays(const std::filesystem::path& folder) : folder_(folder) {
    if (const auto all = folder / "values.safetensors"; std::filesystem::exists(all))
      all_.emplace(io::load_safetensors(all));
  }
  template <class T>
  io::npy_array<T> read(const std::string& name) const {
    if (!all_) return io::read_npy<T>(folder_ / (name + ".npy"));
    return {all_->at(name).shape, all_->values<T>(name)};
  }
  bool contains(const std::string& name) const {
    if (!all_) return std::filesystem::exists(folder_ / (name + ".npy"));
    return std::ranges::find(all_->tensors(), name, &io::named_tensor::name) != all_->tensors().end();
  }
  std::vector<std::uint8_t> marks(const std::string& name) const {
    if (!all_) return io::read_npy<std::uint8_t>(folder_ / (name + ".npy")).values;
    const auto wide = all_->values<std::int64_t>(name);
    return {wide.begin(), wide.end()};
  }

 private:
  std::filesystem::path folder_;
  std::optional<io::safetensors_file> all_;
};

golden_case read_golden(const std::filesystem::path& folder) {
  std::ifstream file(folder / "case.json");
  if (!file) throw input_error((folder / "case.json").string() + ": cannot be read");
  const nlohmann::json about = nlohmann::json::parse(file);
  const case_arrays arrays(folder);
  golden_case c;
  c.folder = folder;
  c.name = about["name"];
  c.options = options_of(about);
  c.several_labels = about["loss"] == "bce";
  c.x = arrays.read<double>("x");
  c.logits = arrays.read<double>("logits");
  c.labels = arrays.read<std::int64_t>("labels").values;
  c.mask = arrays.marks("mask");
  c.loss = arrays.read<double>("loss").values.at(0);
  for (const std::string name : about["params"]) {
    c.values[name] = arrays.read<double>("param_" + name).values;
    c.gradients[name] = arrays.read<double>("grad_" + name).values;
  }
  const auto edges = arrays.read<std::int64_t>("edges");
  c.graph.name = c.name;
  c.graph.vertices = c.x.shape[0];
  c.graph.features = c.x.shape[1];
  c.graph.classes = c.classes();
  for (std::size_t e = 0; e + 1 < edges.values.size(); e += 2)
    c.graph.edges.push_back({edges.values[e], edges.values[e + 1]});
  if (about["weighted"]) c.graph.edge_weights = arrays.read<double>("edge_weight").values;
  if (arrays.contains("edge_type")) {
    std::vector<std::int64_t> types = arrays.read<std::int64_t>("edge_type").values;
    c.graph.relations = 1 + *std::ranges::max_element(types);
    c.graph.edge_types = std::move(types);
  }
  if (arrays.contains("edge_features")) {
    auto rows = arrays.read<double>("edge_features");
    c.graph.edge_features = {rows.shape[0], rows.shape[1], std::move(rows.values)};
    if (arrays.contains("grad_edge_features"))
      c.gradients["edge_features"] = arrays.read<double>("grad_edge_features").values;
  }
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

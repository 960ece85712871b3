// SPDX-License-Identifier: Apache-2.0
#include "notes.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "partita/train/model_file.hpp"

namespace {

using partita::global_index;

/// Edges from a vertex to itself. Every rank must call.
global_index loops_of(const partita::communicator& world, const partita::io::dataset& data) {
  const partita::interval mine =
      partita::comm::share_of(static_cast<global_index>(data.edges.size()), world.rank(), world.size());
  global_index loops = 0;
  for (global_index k = mine.begin; k < mine.end; ++k) {
    const partita::io::edge e = data.edges[static_cast<std::size_t>(k)];
    loops += e.source == e.target;
  }
  data.edges.forget();
  return world.all_reduce(loops);
}

/// How many classes have no vertex.
global_index unused_classes(const partita::io::dataset& data) {
  std::vector<bool> used(static_cast<std::size_t>(data.classes));
  for (std::size_t v = 0; v < data.labels.size(); ++v)
    if (data.labels[v] >= 0) used[static_cast<std::size_t>(data.labels[v])] = true;
  return std::ranges::count(used, false);
}

/// Where the file of --init is of a model with other options.
void add_other_options(std::vector<std::string>& notes, const command& c) {
  namespace nn = partita::nn;
  if (c.init.empty()) return;
  const partita::io::safetensors_file file = partita::io::load_safetensors(c.init);
  for (const nn::field& f : nn::fields) {
    const auto found = file.metadata().find(nn::detail::model_key(f));
    const std::string here = text_of(f, c.training);
    if (f.kept == nn::field_kept::by_models && f.name != "seed" && f.name != "raw-features" &&
        found != file.metadata().end() && found->second != here)
      notes.push_back(fmt::format("the model in {} has {} {}, and this one {}", c.init, f.name,
                                  partita::io::printable(found->second), here));
  }
}

bool adds_loops(const partita::nn::training_options& t) {
  const partita::nn::model_row* const row = find_row(t);
  return row != nullptr && row->reads("self-loops");
}

bool reads_edge_vectors(const partita::nn::training_options& t) {
  const partita::nn::model_row* const row = find_row(t);
  return row == nullptr || row->reads_edge_vectors;
}

}  // namespace

bool uses_weights(const partita::nn::training_options& t) {
  const partita::nn::model_row* const row = find_row(t);
  return row == nullptr || !is_pattern(row->multiplies_with);
}

std::vector<std::string> notes_on(const partita::communicator& world, const partita::io::dataset& data,
                                  const command& c) {
  const partita::nn::training_options& t = c.training;
  std::vector<std::string> notes = data.notes;
  add_other_options(notes, c);
  if (const global_index unused = data.labels.empty() ? 0 : unused_classes(data); 2 * unused > data.classes)
    notes.push_back(fmt::format("labels go up to {}, so there are {} classes, {} of which no vertex has",
                                data.classes - 1, data.classes, unused));
  const bool reads_features = t.embedding == 0;
  if (reads_features && !t.raw_features && data.vertex_features.has_negative())
    notes.push_back("some features are negative, so features are not divided by their row sums");
  if (!data.edge_weights.empty() && !uses_weights(t))
    notes.push_back(
        t.model == "gat" ? "gat does not use edge weights: its coefficients are computed from features, and "
                           "every edge counts once"
        : t.model == "sage" ? "sage with --aggregation max does not use edge weights: every edge counts once"
                            : t.model + " does not use edge weights: every edge counts once");
  if (data.edge_features.cols > 0 && !reads_edge_vectors(t))
    notes.push_back(fmt::format("{} does not use the {} features of edges; {} do", t.model,
                                data.edge_features.cols,
                                models_that(&partita::nn::model_row::reads_edge_vectors)));
  if (const global_index loops = adds_loops(t) ? loops_of(world, data) : 0;
      loops > 0 && t.loops == partita::graph::self_loops::sum)
    notes.push_back(fmt::format(
        "{} of {} edges are loops, to whose weights A + I adds 1; --self-loops once leaves them as they are",
        loops, data.edges.size()));
  if (t.mini_batch.batch > 0 && reads_features && data.vertex_features.is_sparse()) {
    const double numbers = static_cast<double>(data.vertices) * static_cast<double>(data.features);
    notes.push_back(fmt::format("--batch writes sparse features out: {:.1f} MB on all ranks together",
                                1e-6 * numbers * (c.precision == "f64" ? 8 : 4)));
  }
  return notes;
}

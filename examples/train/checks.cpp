// SPDX-License-Identifier: Apache-2.0
#include "checks.hpp"

#include <algorithm>

#include "../ranks/cores.hpp"
#include "../ranks/same_input.hpp"
#include "complete.hpp"
#include "partita/train/checkpoint.hpp"
#include "process.hpp"

using partita::global_index;

namespace {

bool reads(const nn::training_options& t, const char* field) {
  const nn::model_row* const row = find_row(t);
  return row != nullptr && row->reads(field);
}

/// The least that training needs here: parameters with gradients and two moments on every rank, of which
/// stages share them, and, unless they are far or of batches only, the widest hidden matrix and an embedding.
double least_memory(const command& c, const io::dataset& data, int ranks) {
  const nn::training_options& t = c.training;
  const double here = c.element() * (c.comm == "threads" ? ranks : 1);
  const double weights = nn::detail::least_weights({t, data.features, data.classes});
  const double parameters = 4 * weights * here / std::max(1, t.pipeline.stages);
  if (!c.far.empty() || (c.in_batches() && t.mini_batch.sampled_scores)) return parameters;
  double width = 4 * static_cast<double>(t.embedding);
  if (find_row(t) == nullptr || reads(t, "hidden"))
    for (const global_index h : t.hidden) width = std::max(width, static_cast<double>(h));
  return parameters + static_cast<double>(data.vertices) * width * here / ranks;
}

/// What the ranks of this process know of one another: for every rank, which blocks each sends to which.
double least_lists(const command& c, int ranks) {
  constexpr double bytes = 36;  // measured on 128 to 256 ranks
  return bytes * ranks * ranks * (c.comm == "threads" ? ranks : 1);
}

/// Edges from a vertex to itself. Every rank must call.
global_index loops_of(const partita::communicator& world, const io::dataset& data) {
  const partita::interval mine =
      partita::comm::share_of(static_cast<global_index>(data.edges.size()), world.rank(), world.size());
  global_index loops = 0;
  for (global_index k = mine.begin; k < mine.end; ++k) {
    const io::edge e = data.edges[static_cast<std::size_t>(k)];
    loops += e.source == e.target;
  }
  data.edges.forget();
  return world.all_reduce(loops);
}

/// How many classes have no vertex.
global_index unused_classes(const io::dataset& data) {
  std::vector<bool> used(static_cast<std::size_t>(data.classes));
  for (std::size_t v = 0; v < data.labels.size(); ++v)
    if (data.labels[v] >= 0) used[static_cast<std::size_t>(data.labels[v])] = true;
  return std::ranges::count(used, false);
}

/// Where the file of --init is of a model with other options.
void add_other_options(std::vector<std::string>& notes, const command& c) {
  if (c.init.empty()) return;
  const io::safetensors_file file = io::load_safetensors(c.init);
  for (const nn::field& f : nn::fields) {
    const auto found = file.metadata().find(nn::detail::model_key(f));
    const std::string here = text_of(f, c.training);
    if (f.kept == nn::field_kept::by_models && f.name != "seed" && f.name != "raw-features" &&
        found != file.metadata().end() && found->second != here)
      notes.push_back(fmt::format("the model in {} has {} {}, and this one {}", c.init, f.name,
                                  io::printable(found->second), here));
  }
}

/// What the edges have and the model does not read.
void add_unused(std::vector<std::string>& notes, const io::dataset& data, const nn::training_options& t) {
  using row = nn::model_row;
  const row* const model = find_row(t);
  const auto add = [&](auto row::*is_read, bool is_there, const std::string& what) {
    if (is_there && model != nullptr && !std::invoke(is_read, *model))
      notes.push_back(fmt::format("{} does not use the {}", model->title(), what));
  };
  add(&row::reads_edge_weights, !data.edge_weights.empty(), "weights of edges: each counts once");
  add(&row::reads_edge_vectors, data.edge_features.cols > 0,
      fmt::format("{} features of edges; {} do", data.edge_features.cols,
                  models_that(&row::reads_edge_vectors)));
  add(&row::reads_edge_types, data.relations > 0,
      fmt::format("{} types of edges; {} do", data.relations, models_that(&row::reads_edge_types)));
}

/// What becomes of edges that repeat another one.
std::string of_equal_edges(const nn::training_options& t, const io::dataset& data) {
  const nn::model_row* const row = find_row(t);
  const std::string edges =
      row != nullptr && row->reads_edge_types() ? "equal edges of one type" : "equal edges";
  if (row == nullptr || row->reads_edge_weights()) return "the weights of " + edges + " add up";
  const bool have_vectors = row->reads_edge_vectors && data.edge_features.cols > 0;
  return edges + (have_vectors ? " are one, whose vector is the sum" : " count once");
}

}  // namespace

void require_same_input(const command& c, const io::dataset& data, const partita::communicator& world) {
  if (world.size() == 1) return;
  same_input all;
  auto options = nn::detail::lasting_options<float>(c.training, data);
  for (const char* const of_data : {"vertices", "features", "classes"})
    options.erase(std::string("option.") + of_data);
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, std::string>>{
           {"epochs", std::to_string(c.training.epochs)},
           {"policy", c.policy},
           {"init", c.init},
           {"mesh", c.mesh.value_or("")},
           {"partition", c.partition.name},
           {"precision", c.precision},
           {"reproducible", c.reproducible ? "yes" : "no"},
           {"stages", std::to_string(c.training.pipeline.stages)},
           {"checkpoint", c.checkpoint.folder.empty() ? "no" : std::to_string(c.checkpoint.every)}})
    options[std::string("option.") + name] = value;
  for (const auto& [name, value] : options) all.add("option --" + name.substr(name.find('.') + 1), value);
  all.add(data);
  all.require(world);
}

void require_bounds(const command& c, const io::dataset& data, int ranks) {
  const nn::training_options& t = c.training;
  const auto at_most = [](const char* option, global_index given, global_index most, const char* of) {
    refuse_if(given > most, "{} {} is more than the {} {}", option, given, most, of);
  };
  at_most("--exchange-pieces", t.exchange_pieces, data.vertices, "vertices");
  at_most("--split-pieces", t.split_pieces, data.vertices, "vertices");
  at_most("--chunks", t.pipeline.chunks, data.vertices, "vertices");
  const auto& fanouts = t.mini_batch.fanouts;
  const global_index relations = (t.inverse_relations ? 2 : 1) * data.relations;
  for (std::size_t k = 0; k < fanouts.size(); ++k) {
    const auto& numbers = fanouts[k].numbers;
    const std::string option = fmt::format("--fanout of layer {}:", k + 1);
    if (t.mini_batch.replace)
      at_most(option.c_str(), std::ranges::max(numbers), std::max<global_index>(1, std::ssize(data.edges)),
              "edges");
    refuse_if(numbers.size() > 1 && relations > 0 && std::ssize(numbers) != relations,
              "{} {} numbers for {} relations", option, numbers.size(), relations);
  }
  const auto in_gb = [](double bytes) {
    return fmt::format("{:.{}f} GB", 1e-9 * bytes, bytes < 1e10 ? 1 : 0);
  };
  const auto require = [&, there = memory_of_machine()](double needed, const std::string& who) {
    if (needed > there)
      throw partita::error(
          fmt::format("{} at least {} of memory; this machine has {}", who, in_gb(needed), in_gb(there)));
  };
  require(least_lists(c, ranks), fmt::format("{} ranks need", ranks));
  require(least_memory(c, data, ranks), "this model on this graph needs");
}

std::vector<std::string> notes_on(const partita::communicator& world, const io::dataset& data,
                                  const command& c) {
  const nn::training_options& t = c.training;
  std::vector<std::string> notes = data.notes;
  add_other_options(notes, c);
  if (const global_index unused = data.labels.empty() ? 0 : unused_classes(data); 2 * unused > data.classes)
    notes.push_back(fmt::format("labels go up to {}, so there are {} classes, {} of which no vertex has",
                                data.classes - 1, data.classes, unused));
  const bool reads_features = t.embedding == 0;
  if (reads_features && !t.raw_features && data.vertex_features.has_negative())
    notes.push_back("some features are negative, so features are not divided by their row sums");
  add_unused(notes, data, t);
  if (c.calibration && c.calibration->slower == 1 && share_of_cores(world) < 1)
    notes.push_back(fmt::format(
        "{} ranks share cores, and --calibration takes each to have one; \"slower\" in {} can say otherwise",
        world.size(), c.calibration->file));
  if (const global_index loops = reads(t, "self-loops") ? loops_of(world, data) : 0;
      loops > 0 && t.loops == partita::graph::self_loops::sum)
    notes.push_back(fmt::format(
        "{} of {} edges are loops, to whose weights A + I adds 1; --self-loops once leaves them as they are",
        loops, data.edges.size()));
  if (c.in_batches() && reads_features && data.vertex_features.is_sparse()) {
    const int bytes = t.storage == nn::operand_precision::unrounded ? c.element() : 2;
    notes.push_back(
        fmt::format("--batch makes sparse features dense: {:.1f} MB on all ranks together",
                    1e-6 * static_cast<double>(data.vertices) * static_cast<double>(data.features) * bytes));
  }
  return notes;
}

std::vector<std::string> notes_on_mesh(const command& c, partita::mesh_shape mesh) {
  std::vector<std::string> notes;
  if (mesh.size() == 1 || mesh.row > 1) return notes;
  for (const nn::field& f : nn::fields)
    if (f.group == nn::field_group::products && f.name != "operands" && f.name != "storage" &&
        is_recorded(f, c.training))
      notes.push_back(fmt::format("--{} {} has no effect on a {} mesh, where no rows are sent along row",
                                  f.name, text_of(f, c.training), to_string(mesh)));
  return notes;
}

std::vector<std::string> notes_on_repeated(global_index repeated, const io::dataset& data, const command& c) {
  if (repeated <= 0) return {};
  return {fmt::format("{} of {} edges repeat an earlier one, and {}", repeated, data.edges.size(),
                      of_equal_edges(c.training, data))};
}

// SPDX-License-Identifier: Apache-2.0
#include "input.hpp"

#include <algorithm>
#include <filesystem>

#include "../ranks/command_line.hpp"
#include "../ranks/cores.hpp"
#include "../ranks/files.hpp"
#include "complete.hpp"
#include "partita/graph/link_split.hpp"
#include "partita/io/dataset.hpp"
#include "partita/io/karate.hpp"
#include "partita/io/link_files.hpp"
#include "partita/io/npy.hpp"
#include "partita/train/objective.hpp"
#include "report.hpp"

namespace {

/// What can be trained without the features or labels that are missing, if this error says so.
std::string other_way(const command& c, const std::string& error) {
  if (c.training.embedding == 0 && error.find("has neither features") != error.npos)
    return "; --embedding N learns N numbers of each vertex in their place";
  const bool unlabelled =
      error.ends_with("/labels.npy: no such file") || error.ends_with("has no labels.npy in any type");
  return unlabelled && c.task.empty() ? "; --task links needs none" : "";
}

/// Without the links that its folder says, or those that are drawn.
io::dataset split(io::dataset data, command& c) {
  nn::link_options& links = c.training.links;
  if (auto given = is_built_in(c.data) ? std::nullopt : io::read_links(c.data, data.vertices)) {
    const std::vector<double> none{0, 0};
    refuse_if(c.has_held_out && links.held_out != none,
              "--held-out is for data without links_valid.npy and links_test.npy");
    links.held_out = none;
    return partita::graph::split_links(std::move(data), *std::move(given), links.width);
  }
  return partita::graph::split_links(std::move(data), {.validation = links.held_out.front(),
                                                       .test = links.held_out.back(),
                                                       .columns = links.width,
                                                       .seed = c.training.seed});
}

}  // namespace

io::dataset read_input(command& c, const partita::communicator& world) try {
  const bool links = c.task == "links";
  io::dataset data;
  if (is_built_in(c.data)) {
    refuse_if(!c.task.empty() && c.task != "classes" && !links,
              "--data karate is for --task classes and links, not {}", c.task);
    data = io::karate_club();
  } else {
    using enum io::vertex_data;
    const bool tells = world.rank() == 0 && !c.quiet;
    const io::vertex_data wanted =
        c.training.embedding > 0 ? (links ? edges : labels) : (links ? features : features_and_labels);
    data = io::load_dataset(c.data, wanted, world, cores_per_rank(world), 0,
                            tells ? work_printer({"reading", "MB", 1e6}) : partita::comm::progress(),
                            c.unpack_limit, task_named(c.task));
  }
  return links ? split(std::move(data), c) : std::move(data);
} catch (const partita::input_error& e) {
  const std::string error = e.what();
  throw partita::input_error(error + other_way(c, error));
}

void take_loss(command& c, const io::dataset& data) try {
  nn::training_options& t = c.training;
  const nn::field& weights = *std::ranges::find(nn::fields, "class-weights", &nn::field::name);
  if (c.class_weights == "balanced")
    t.class_weights = nn::balanced_class_weights(data);
  else if (!c.class_weights.empty() && !nn::take(weights, t, c.class_weights)) {
    refuse_if(c.class_weights.find(',') != c.class_weights.npos && !std::filesystem::exists(c.class_weights),
              "--class-weights {} are not numbers of 0 or more", c.class_weights);
    t.class_weights = io::read_npy<double>(c.class_weights).values;
  }
  nn::require_loss(data, t);
} catch (const partita::error& e) {
  throw usage_error(e.what());
}

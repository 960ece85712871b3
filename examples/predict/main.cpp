// SPDX-License-Identifier: Apache-2.0
/// Predicts with a model that train has saved, over any number of ranks, under any partition policy.
/// Exit code 0; 1 when the work fails, with one line on stderr; 2 when the command line is wrong.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fmt/core.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../ranks/command_line.hpp"
#include "../ranks/cores.hpp"
#include "../ranks/files.hpp"
#include "../ranks/program.hpp"
#include "../ranks/same_input.hpp"
#include "../ranks/scores.hpp"
#include "build.hpp"
#include "partita/io/changed_files.hpp"
#include "partita/io/karate.hpp"
#include "partita/io/link_files.hpp"
#include "partita/train/model_data.hpp"
#include "run.hpp"

namespace {

predict_command parse_command(int argc, char** argv) {
  predict_command c;
  CLI::App app(
      "Computes the logits of a graph's vertices with a model saved by train, on any number of "
      "ranks\n"
      "and under any partition policy.",
      "predict");
  app.get_help_ptr()->description("print this and exit");
  app.set_version_flag("--version", "predict " + build::version, "print the version and exit");
  app.add_option("--model", c.model, "a model that train --save wrote")
      ->required()
      ->option_text("FILE.safetensors");
  app.add_option("--data", c.data, "data directory, or karate for the built-in karate club")
      ->required()
      ->option_text("DIR");
  app.add_option("--out", c.out, "write the logits, one row per vertex")->required()->option_text("FILE.npy");
  app.add_option("--links", c.links,
                 "pairs of vertices, one per row: write their scores, for a model of\n"
                 "--task links")
      ->option_text("FILE.npy");
  add_arrangement(app, c.policy, c.ranks, c.mesh);
  words(app.add_option("--comm", c.comm, "how ranks communicate; nccl needs --device cuda, mpi needs mpirun"),
        {"threads", "mpi", "nccl"})
      ->capture_default_str();
  words(app.add_option("--device", c.device, "where the ranks compute"), {"cpu", "cuda"})
      ->capture_default_str();
  app.add_option("--threads", c.threads, "threads of each rank (default: its share of the cores)")
      ->check(count)
      ->option_text("N");
  words(app.add_option("--precision", c.precision, "floating-point type (default: the model's)"),
        {"f32", "f64"});
  add_timeout(app, c.timeout);
  add_unpack_limit(app, c.unpack_limit);
  add_task(app, c.task);
  app.add_flag("--quiet", c.quiet, "print nothing");
  show_defaults(app);
  parse(app, argc, argv);
  if (c.comm == "nccl" && c.device != "cuda") throw usage_error("--comm nccl needs --device cuda");
  return c;
}

/// The graph, with as many classes as the model. Throws input_error when the model does not fit it.
partita::io::dataset data_for(const partita::nn::saved_model& model,
                              const partita::io::safetensors_file& file, const predict_command& c) {
  if (is_built_in(c.data)) return partita::nn::fitted_to(model, file, partita::io::karate_club(), c.data);
  return partita::nn::load_data_for(model, file, c.data, c.unpack_limit, task_named(c.task));
}

prediction_task task_of(predict_command& c) {
  partita::io::safetensors_file file = partita::io::load_safetensors(c.model);
  partita::nn::saved_model model = partita::nn::saved_model_of(file);
  partita::io::dataset data = data_for(model, file, c);
  if (c.precision.empty()) c.precision = model.precision;
  const bool has_labels = !data.split.empty();
  if (!c.links.empty() && model.task != "links")
    throw usage_error("--links is for a model of --task links, and that in " + c.model + " is none");
  partita::io::array<partita::io::edge> pairs;
  if (!c.links.empty()) pairs = partita::io::read_pairs(c.links, data.vertices);
  return {std::move(file), std::move(model), std::move(data), has_labels, std::move(pairs)};
}

/// How many of the pairs are edges of the graph, in either direction.
std::size_t linked_pairs(const prediction_task& task) {
  if (task.pairs.empty()) return 0;
  const auto sorted = [](partita::io::edge e) {
    return partita::io::edge{std::min(e.source, e.target), std::max(e.source, e.target)};
  };
  const auto key = [](const partita::io::edge& e) { return std::pair(e.source, e.target); };
  std::vector<partita::io::edge> pairs;
  for (const partita::io::edge e : task.pairs) pairs.push_back(sorted(e));
  std::ranges::sort(pairs, {}, key);
  std::vector<bool> linked(pairs.size(), false);
  for (const partita::io::edge e : task.data.edges) {
    const auto same = std::ranges::equal_range(pairs, key(sorted(e)), {}, key);
    if (!same.empty()) linked[static_cast<std::size_t>(same.begin() - pairs.begin())] = true;
  }
  std::size_t count = 0;
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    if (k > 0 && key(pairs[k]) == key(pairs[k - 1])) linked[k] = linked[k - 1];
    count += linked[k];
  }
  return count;
}

/// How labels and features are understood, and which pairs are no test of the model.
std::vector<std::string> notes_on(const prediction_task& task) {
  std::vector<std::string> notes = task.data.notes;
  if (task.model.options.embedding == 0 && !task.model.options.raw_features &&
      task.data.vertex_features.has_negative())
    notes.push_back(
        "some features are negative, so features are not divided by their row sums, which the model's were");
  if (const std::size_t linked = linked_pairs(task); linked > 0)
    notes.push_back(
        fmt::format("{} of the {} pairs of --links are edges of this graph, over which messages "
                    "pass: to test the model on held-out ones, leave them out of edges.npy",
                    linked, task.pairs.size()));
  return notes;
}

/// Throws input_error where ranks have other models, data or options than the first. Every rank must call.
void require_same_input(const prediction_task& task, const predict_command& c,
                        const partita::communicator& world) {
  same_input all;
  all.add("option --policy", c.policy);
  all.add("option --mesh", c.mesh.value_or(""));
  all.add("option --precision", c.precision);
  all.add("pairs of --links", std::as_bytes(std::span<const partita::io::edge>(task.pairs)));
  for (const partita::io::named_tensor& tensor : task.file.tensors())
    all.add("tensor " + partita::io::printable(tensor.name) + " of --model", tensor.bytes);
  all.add(task.data);
  all.require(world);
}

void print(const partita::communicator& world, const arrangement& how, const prediction_task& task,
           const predict_command& c, const split_counts& counts) {
  for (const std::string& note : notes_on(task)) fmt::print(stderr, "predict: {}: {}\n", c.data, note);
  if (!c.links.empty())
    return fmt::print("{} on {} {} ({} {}): scores of {} pairs of vertices, in {}\n",
                      task.model.options.model, world.size(), world.size() == 1 ? "rank" : "ranks",
                      how.policy, to_string(how.mesh), task.pairs.size(), c.out);
  const std::string& saved = task.model.task;
  std::string columns = saved.empty() ? "classes" : saved == "links" ? "columns" : saved;
  if (!saved.empty() && task.data.classes == 1) columns.pop_back();
  fmt::print("{} on {} {} ({} {}): {} of {} vertices, {} {}, in {}\n", task.model.options.model, world.size(),
             world.size() == 1 ? "rank" : "ranks", how.policy, to_string(how.mesh),
             saved == "values"  ? "predictions"
             : saved == "links" ? "rows"
                                : "logits",
             task.data.vertices, task.data.classes, columns, c.out);
  const auto score = [&](std::size_t part) {
    return score_text(task.data.task,
                      counts[part].score(task.data, static_cast<partita::io::split_part>(part + 1)));
  };
  if (task.has_labels)
    fmt::print("{}: train {}, validation {}, test {}\n", title_of(task.data.task), score(0), score(1),
               score(2));
}

/// What every rank does.
void predict_on(const partita::communicator& world, const prediction_task& task, predict_command c) {
  c.threads = threads_per_rank(world, c.threads);
  const arrangement how = *arrangement_of(c.policy, c.mesh, {}, world.size());
  const auto predict = c.device == "cuda" ? predict_on_cuda : predict_on_cpu;
  const split_counts counts = predict(world, how, task, c);
  if (world.rank() == 0 && !c.quiet) print(world, how, task, c, counts);
}

int run(predict_command c, int argc, char** argv) {
  const rank_options how{.program = "predict", .comm = c.comm, .ranks = c.ranks, .timeout = c.timeout};
  const bool over_mpi = how.over_mpi();
  if (!over_mpi) (void)arrangement_of(c.policy, c.mesh, {}, c.ranks.value_or(1));
  require_writable(c.out);
  return run_ranks(how, argc, argv, [&](int, const partita::communicator& world) -> rank_body {
    partita::io::end_when_files_change("predict");
    const auto task = std::make_shared<const prediction_task>(task_of(c));
    if (over_mpi) require_same_input(*task, c, world);
    return [task, &c](const partita::communicator& all) {
      predict_on(all, *task, c);
      return 0;
    };
  });
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("predict", [&] { return run(parse_command(argc, argv), argc, argv); });
}

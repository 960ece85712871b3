// SPDX-License-Identifier: Apache-2.0
/// Trains a graph neural network on a whole graph, over any number of ranks, under any partition policy.
/// Exit code 0; 1 when the work fails, with one line on stderr; 2 when the command line is wrong.

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "cores.hpp"
#include "partita/comm/threads.hpp"
#include "partita/io/dataset.hpp"
#include "partita/io/karate.hpp"
#include "presets.hpp"
#include "report.hpp"

namespace {

/// A check whose message is a sentence.
template <class Accept>
CLI::Validator number_that(const std::string& is, Accept accept) {
  return CLI::Validator(
      [=](const std::string& text) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        return *end == 0 && !text.empty() && accept(value) ? std::string() : text + " is not " + is;
      },
      "");
}

/// An option whose values have names; CLI11 would print the numbers of an enumeration as characters.
template <class T>
void add_choice(CLI::App& app, const std::string& name, T& value,
                const std::map<std::string, std::type_identity_t<T>>& names, const std::string& what) {
  CLI::Option* const option = app.add_option_function<std::string>(
      name, [&value, names](const std::string& chosen) { value = names.at(chosen); }, what);
  for (const auto& [text, meaning] : names)
    if (meaning == value) option->default_str(text);
  option->check(CLI::IsMember(names));
}

/// The value of --preset, which is wanted before the other options are read over it.
std::string preset_in(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--preset" && i + 1 < argc) return argv[i + 1];
    if (word.starts_with("--preset=")) return word.substr(9);
  }
  return {};
}

command parse(int argc, char** argv) {
  const auto count = number_that("a positive whole number",
                                 [](double v) { return v >= 1 && v == std::floor(v) && v < 1e9; });
  const auto positive = number_that("a positive number", [](double v) { return v > 0; });
  command c;
  partita::nn::training_options& t = c.training;
  std::string preset;
  CLI::App app("Full-graph GNN training over any number of ranks, under any partition policy", "train");
  app.add_option("--data", c.data, "data directory, or 'karate' for the club that is built in")->required();
  app.add_option("--preset", preset, "a model with its paper's hyperparameters: " + preset_names());
  const auto model = app.add_option("--model", t.model, "gcn, sage, gin, gat, sgc, appnp or gcnii")
                         ->check(CLI::IsMember({"gcn", "sage", "gin", "gat", "sgc", "appnp", "gcnii"}));
  app.add_option("--policy", c.policy,
                 "row_1d, replicated_1_5d, grid_2d, split_3d, feature_column, feature_row or auto")
      ->capture_default_str();
  app.add_option("--ranks", c.ranks, "ranks (threads: 1 unless given; mpi: those of the job)")->check(count);
  app.add_option("--mesh", c.mesh, "ROWxCOLxDEPTH; otherwise the mesh nearest to a square or a cube");
  app.add_option("--replication", c.replication, "copies of the dense operand: the depth of the mesh")
      ->check(count);
  app.add_option("--threads", c.threads, "threads of each rank; otherwise its share of the machine's cores")
      ->check(count);
  app.add_option("--comm", c.comm, "threads, mpi, or nccl (--device cuda; started by mpirun or not)")
      ->check(CLI::IsMember({"threads", "mpi", "nccl"}))
      ->capture_default_str();
  app.add_option("--device", c.device, "cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--hidden", t.hidden, "widths of the hidden layers")
      ->delimiter(',')
      ->check(count)
      ->capture_default_str();
  app.add_option("--layers", t.layers, "layers with parameters; --hidden H then serves all of them")
      ->check(count);
  app.add_option("--heads", t.heads,
                 "attention heads of gat, in all layers but the last; decoupled: their mean")
      ->check(count)
      ->capture_default_str();
  app.add_option("--hops", t.hops, "hops of sgc and appnp")->check(count)->capture_default_str();
  app.add_option("--alpha", t.alpha, "teleport of appnp, initial residual of gcnii")
      ->check(number_that("between 0 and 1", [](double v) { return v >= 0 && v <= 1; }))
      ->capture_default_str();
  app.add_option("--lambda", t.lambda, "of gcnii")->check(positive)->capture_default_str();
  app.add_option("--epsilon", t.epsilon, "of gin")->capture_default_str();
  app.add_option("--convolution-decay", t.convolution_decay, "weight decay of the convolutions of gcnii")
      ->check(number_that("zero or a positive number", [](double v) { return v >= 0; }))
      ->capture_default_str();
  add_choice(app, "--coupling", t.coupling,
             {{"coupled", partita::nn::coupling::coupled}, {"decoupled", partita::nn::coupling::decoupled}},
             "of layers (gcn, sage, gat; decoupled: dense layers first, then hops)");
  add_choice(app, "--aggregation", t.aggregation,
             {{"mean", partita::nn::aggregation::mean}, {"max", partita::nn::aggregation::max}},
             "of neighbours by sage");
  app.add_option("--epochs", t.epochs, "epochs")->check(count)->capture_default_str();
  app.add_option("--lr", t.learning_rate, "learning rate of Adam")->check(positive)->capture_default_str();
  app.add_option("--weight-decay", t.weight_decay, "on the first layer's parameters")
      ->check(number_that("zero or a positive number", [](double v) { return v >= 0; }))
      ->capture_default_str();
  app.add_option("--dropout", t.dropout, "probability, less than 1")
      ->check(number_that("a probability below 1", [](double v) { return v >= 0 && v < 1; }))
      ->capture_default_str();
  app.add_flag("--raw-features", t.raw_features, "do not divide features by their row sums");
  app.add_option("--seed", t.seed, "seed of weights and dropout")->capture_default_str();
  app.add_option("--precision", c.precision, "f32 or f64")
      ->check(CLI::IsMember({"f32", "f64"}))
      ->capture_default_str();
  app.add_option("--json", c.json, "file for the figures of the run");
  app.add_flag("--quiet", c.quiet, "print nothing");
  try {
    preset = preset_in(argc, argv);
    if (!preset.empty()) t = preset_named(preset);
    model->required(preset.empty());
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    std::exit(0);
  } catch (const CLI::ParseError& e) {
    throw usage_error(e.what());
  }
  if (c.comm == "nccl" && c.device != "cuda") throw usage_error("--comm nccl needs --device cuda");
  return c;
}

partita::io::dataset load(const std::string& name) {
  if (name == "karate" && !std::filesystem::exists(name)) return partita::io::karate_club();
  return partita::io::load_dataset(name);
}

/// What every rank does.
void train_on(const partita::communicator& world, const std::optional<arrangement>& asked,
              const partita::io::dataset& data, command c) {
  c.threads = threads_per_rank(world, c.threads);
  const bool first = world.rank() == 0;
  const observers tell =
      first && !c.quiet ? observers{print_start, progress_printer(c.training.epochs)} : observers{};
  const auto train = c.device == "cuda" ? train_on_cuda : train_on_cpu;
  const partita::global_index repeated = first ? partita::io::duplicate_edges(data.edges) : 0;
  if (repeated > 0 && !c.quiet)
    std::fprintf(
        stderr, "train: %s: %lld of %zu edges repeat an earlier one, and the weights of equal edges add up\n",
        c.data.c_str(), static_cast<long long>(repeated), data.edges.size());
  const outcome run = train(world, asked, data, c, tell);
  if (!first) return;
  if (!c.quiet) print_summary(run.how.policy, world.size(), run.result);
  if (!c.json.empty()) write_json(c.json, c, world.size(), run, repeated);
}

int report(const usage_error& e) {
  std::fprintf(stderr, "train: %s; train --help lists every option\n", e.what());
  return 2;
}

int run(const command& c, int argc, char** argv) {
  const bool over_mpi = c.comm == "mpi" || (c.comm == "nccl" && in_mpi_job());
  if (!over_mpi) refuse_separate_runs();
  if (!c.json.empty() && !std::ofstream(c.json, std::ios::app))
    throw partita::error("cannot write " + c.json);
  if (over_mpi)
    return run_mpi(argc, argv, [&](const partita::communicator& world) {
      try {
        if (c.ranks && *c.ranks != world.size())
          throw usage_error("--ranks " + std::to_string(*c.ranks) + " under an MPI job of " +
                            std::to_string(world.size()));
        train_on(world, arrangement_of(c.policy, c.mesh, c.replication, world.size()), load(c.data), c);
        return 0;
      } catch (const usage_error& e) {
        return world.rank() == 0 ? report(e) : 2;
      }
    });
  const int ranks = c.ranks.value_or(1);
  const auto asked = arrangement_of(c.policy, c.mesh, c.replication, ranks);
  const partita::io::dataset data = load(c.data);
  // Loading a kernel late may wait for a card that waits for another rank of this process.
  if (c.comm == "nccl") ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  partita::threads::run(ranks, [&](const partita::communicator& world) { train_on(world, asked, data, c); });
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  return run(parse(argc, argv), argc, argv);
} catch (const usage_error& e) {
  return report(e);
} catch (const std::exception& e) {
  std::fprintf(stderr, "train: %s\n", e.what());
  return 1;
}

// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "../ranks/command_line.hpp"
#include "arrangement.hpp"
#include "build.hpp"
#include "complete.hpp"
#include "presets.hpp"
#include "results.hpp"

namespace {

using partita::nn::aggregation;
using partita::nn::coupling;
using partita::nn::self_loops;
using partita::sampling::placement;

const CLI::Validator whole = whole_number("zero or a positive whole number", 0, 0x1p63);
const CLI::Validator depth = whole_number(
    "a whole number from 1 to " + std::to_string(partita::nn::most_hops), 1, partita::nn::most_hops + 1);
const CLI::Validator finite = number_that("a number", [](double v) { return std::isfinite(v); });
const CLI::Validator not_negative =
    number_that("zero or a positive number", [](double v) { return v >= 0 && std::isfinite(v); });
const CLI::Validator fraction = number_that("between 0 and 1", [](double v) { return v >= 0 && v <= 1; });
const CLI::Validator cosine = number_that("between -1 and 1", [](double v) { return v >= -1 && v <= 1; });
const CLI::Validator probability =
    number_that("a probability below 1", [](double v) { return v >= 0 && v < 1; });

/// An option whose values have names.
template <class T>
CLI::Option* choice(CLI::App& app, const std::string& name, T& value,
                    const value_names<std::type_identity_t<T>>& names, const std::string& what) {
  std::vector<std::string> allowed;
  for (const auto& [word, meaning] : names) allowed.push_back(word);
  const auto take = [&value, names](const std::string& chosen) {
    for (const auto& [word, meaning] : names)
      if (word == chosen) value = meaning;
  };
  CLI::Option* const option = words(app.add_option_function<std::string>(name, take, what), allowed);
  for (const auto& [word, meaning] : names)
    if (meaning == value) option->default_str(word);
  return option;
}

void add_model(CLI::App& app, partita::nn::training_options& t, std::string& preset) {
  const std::string group = "Model";
  words(app.add_option("--model", t.model, "the network")->group(group)->required(preset.empty()),
        {"gcn", "sage", "gin", "gat", "sgc", "appnp", "gcnii", "resgcn"});
  app.add_option("--preset", preset, "instead of --model: one with the hyperparameters of its paper")
      ->group(group)
      ->option_text(preset_names("|"));
  app.add_option("--hidden", t.hidden, "widths of the hidden layers")
      ->group(group)
      ->delimiter(',')
      ->check(count)
      ->option_text("H[,H...]")
      ->default_str(CLI::detail::join(t.hidden, ","));
  app.add_option("--layers", t.layers,
                 "layers with parameters, the hidden ones of one width; gcnii and resgcn: convolutions")
      ->group(group)
      ->check(depth)
      ->option_text("L");
  choice(app, "--coupling", t.coupling, {{"coupled", coupling::coupled}, {"decoupled", coupling::decoupled}},
         "gcn, sage, gat decoupled: dense layers first, then as many hops")
      ->group(group);
  choice(app, "--aggregation", t.aggregation, {{"mean", aggregation::mean}, {"max", aggregation::max}},
         "how sage gathers neighbours")
      ->group(group);
  const auto number = [&](const char* name, auto& value, const CLI::Validator& is, const char* form,
                          const char* what) {
    app.add_option(name, value, what)->group(group)->check(is)->option_text(form)->capture_default_str();
  };
  number("--heads", t.heads, count, "K", "attention heads of gat, in all layers but the last");
  number("--hops", t.hops, depth, "K", "hops of sgc and appnp");
  number("--alpha", t.alpha, fraction, "A", "teleport probability of appnp, initial residual of gcnii");
  number("--lambda", t.lambda, positive, "L", "identity mapping of gcnii");
  choice(app, "--self-loops", t.loops, {{"sum", self_loops::sum}, {"once", self_loops::once}},
         "gcn, sgc, appnp, gcnii: where a vertex has a loop, A + I adds 1 or none")
      ->group(group);
  number("--epsilon", t.epsilon, finite, "E", "gin counts a vertex itself 1 + E times");
  number("--split-chunks", t.split_chunks, count, "N",
         "hops under feature_column: exchanges in N chunks, beside products");
  choice(app, "--recompute", t.recompute, recomputation_names,
         "whether backward computes outputs again instead of storing them")
      ->group(group);
}

void add_training(CLI::App& app, command& c) {
  partita::nn::training_options& t = c.training;
  const std::string group = "Training";
  const auto number = [&](const char* name, auto& value, const CLI::Validator& is, const char* form,
                          const char* what) {
    app.add_option(name, value, what)->group(group)->check(is)->option_text(form)->capture_default_str();
  };
  number("--epochs", t.epochs, count, "N", "epochs");
  number("--lr", t.learning_rate, positive, "R", "learning rate of Adam");
  number("--weight-decay", t.weight_decay, not_negative, "D",
         "of the first layer; gcnii: of its dense layers");
  number("--convolution-decay", t.convolution_decay, not_negative, "D",
         "weight decay of gcnii's convolutions");
  number("--dropout", t.dropout, probability, "P", "probability of dropout");
  number("--seed", t.seed, whole, "S", "of initial weights and embeddings, dropout and --partition");
  words(app.add_option("--precision", c.precision, "floating-point type")->group(group), {"f32", "f64"})
      ->capture_default_str();
  using partita::nn::operand_format;
  choice(app, "--products", t.operands, {{"f32", operand_format::own}, {"bf16", operand_format::bfloat16}},
         "bf16: operands of products with the graph are rounded to 2 bytes")
      ->group(group);
  app.add_flag("--raw-features", t.raw_features, "do not divide features by their row sums")->group(group);
  app.add_option("--embedding", t.embedding,
                 "learn W numbers for each vertex in place of the data's features")
      ->group(group)
      ->check(count)
      ->option_text("W");
}

void add_mini_batches(CLI::App& app, partita::nn::mini_batch_options& m) {
  const std::string group = "Mini-batches";
  app.add_option("--batch", m.batch,
                 "train on sampled neighbourhoods of so many vertices at a time, of all ranks")
      ->group(group)
      ->check(count)
      ->option_text("B");
  using partita::nn::batch_sampler;
  choice(app, "--sampler", m.sampler,
         {{"neighbours", batch_sampler::neighbours},
          {"layers", batch_sampler::layers},
          {"walks", batch_sampler::walks}},
         "what a batch is sampled with")
      ->group(group);
  app.add_option("--fanout", m.fanouts,
                 "neighbours sampled in each layer, the first layer's first, or one\n"
                 "number for all layers; -1: all neighbours (default 10); layers: sizes\n"
                 "of the sets of vertices (default 1000); walks: their length (default 2)")
      ->group(group)
      ->delimiter(',')
      ->check(number_that("a number of neighbours, or -1 for all",
                          [](double v) { return (v >= 1 || v == -1) && v == std::floor(v) && v < 0x1p31; }))
      ->option_text("F1[,F2...]");
  choice(app, "--placement", m.placement,
         {{"auto", placement::automatic},
          {"any", placement::any},
          {"home", placement::home},
          {"column", placement::column},
          {"column_gather", placement::column_gather}},
         "which rank computes for which vertices, and how features are cut")
      ->group(group);
  app.add_option("--micro-batches", m.micro_batches, "parts in which a rank computes its share of a batch")
      ->group(group)
      ->check(count)
      ->option_text("T")
      ->capture_default_str();
  app.add_flag("--replace", m.replace, "sample with replacement")->group(group);
  choice(app, "--graph", m.cut_graph, {{"replicated", false}, {"cut", true}},
         "whether a rank has all edges or those into its vertices")
      ->group(group);
  choice(app, "--scores", m.sampled_scores, {{"exact", false}, {"sampled", true}},
         "whether accuracies are of the whole graph or of samples")
      ->group(group);
}

void take_stage_layers(partita::nn::pipeline_options& p, const std::vector<std::string>& given) {
  p.measured = given.front() == "measured";
  if (p.measured && given.size() == 1) return;
  for (const std::string& text : given) {
    if (text == "measured") throw usage_error("--stage-layers takes numbers, or measured alone");
    p.layers.push_back(std::stoi(text));  // digits, as checked
  }
}

void add_stages(CLI::App& app, command& c) {
  partita::nn::pipeline_options& p = c.training.pipeline;
  const std::string group = "Stages";
  const auto number = [&](const char* name, auto& value, const CLI::Validator& is, const char* form,
                          const char* what) {
    return app.add_option(name, value, what)->group(group)->check(is)->option_text(form);
  };
  number("--stages", p.stages, count, "S",
         "cut the layers over S groups of ranks, through which chunks of vertices flow");
  number("--chunks", p.chunks, count, "K", "chunks (default four per stage)");
  words(app.add_option("--chunk-cut", c.chunk_cut,
                       "how each rank's vertices are cut into chunks: evenly, into nearly\n"
                       "equal numbers of in-edges, or so that few edges cross")
            ->group(group),
        {"even", "nonzeros", "metis"})
      ->capture_default_str();
  const auto take = [&p](const std::vector<std::string>& given) { take_stage_layers(p, given); };
  app.add_option_function<std::vector<std::string>>(
         "--stage-layers", take,
         "layers with parameters of each stage (default nearly equal costs, as\n"
         "estimated, or as measured before training)")
      ->group(group)
      ->delimiter(',')
      ->check(CLI::Validator(
          [](const std::string& text) { return text == "measured" ? std::string() : count(text); }, ""))
      ->option_text("L1[,L2...]|measured");
  choice(app, "--history", p.history, history_names,
         "what a chunk reads of neighbours in chunks that have not run yet: their\n"
         "values of the window before, or zeros; exact: it waits for them; halo:\n"
         "it computes them anew, from those of the window")
      ->group(group);
  number("--window", p.window, count, "W", "epochs for which history is kept")->capture_default_str();
  const auto switch_off = [&](const char* name, bool& value, const char* what) {
    app.add_flag_function(
           name, [&value](std::int64_t times) { value = times <= 0; }, what)
        ->group(group);
  };
  switch_off("--no-shuffle", p.shuffle, "chunks have the same order in every epoch");
  switch_off("--no-correction", p.correct, "do not double gradients that reach other chunks");
  number("--guard", p.guard, count, "N", "compare with an exact epoch every N epochs");
  number("--tolerance", p.tolerance, positive, "X", "relative difference of losses from which the guard acts")
      ->capture_default_str();
  number("--least-cosine", p.least_cosine, cosine, "C",
         "cosine of the angle between gradients below which it acts, too")
      ->capture_default_str();
  choice(app, "--on-divergence", p.on_divergence, guard_action_names,
         "what the guard does: refresh the history, make the epochs until the next\n"
         "comparison exact, or all, or end the run")
      ->group(group);
  number("--exact-epochs", p.exact_epochs, whole, "N", "so many exact epochs come first")
      ->capture_default_str();
}

void add_partition(CLI::App& app, command& c) {
  const std::string group = "Ranks";
  app.add_option("--policy", c.policy,
                 CLI::detail::join(policy_names(), ", ") +
                     "\nor auto: the least product of words that travel and memory")
      ->group(group)
      ->option_text("NAME")
      ->capture_default_str();
  app.add_option("--ranks", c.ranks, "ranks (default 1; under mpirun: those of the job)")
      ->group(group)
      ->check(count)
      ->option_text("N");
  app.add_option("--mesh", c.mesh,
                 "ranks along row, col and depth (default: nearest to a square or a cube),\n"
                 "or auto: each that the policy allows is compared, as by --policy auto")
      ->group(group)
      ->option_text("RxCxD");
  app.add_option("--replication", c.replication, "depth of the mesh: copies of the dense operand")
      ->group(group)
      ->check(count)
      ->option_text("C");
  const auto take = [&c](const std::vector<std::string>& given) { c.partition = parse_ordering(given); };
  app.add_option_function<std::vector<std::string>>(
         "--partition", take,
         "which vertices a rank has: in their order, by chance, so that few edges cross,\n"
         "or as a file says, with the number of a rank for each vertex")
      ->group(group)
      ->expected(1, 2)
      ->option_text("none|random|metis|given FILE")
      ->default_str("none");
  app.add_option("--exchange-chunks", c.training.exchange_chunks,
                 "products with the graph: the rows that ranks need of each other travel in N\n"
                 "chunks, beside products (default 1; with --far as many as its window suggests)")
      ->group(group)
      ->check(count)
      ->option_text("N");
  words(app.add_option("--comm", c.comm, "what the ranks are; nccl needs --device cuda, mpi needs mpirun")
            ->group(group),
        {"threads", "mpi", "nccl"})
      ->capture_default_str();
  add_timeout(app, c.timeout)->group(group);
  words(app.add_option("--device", c.device, "where they compute")->group(group), {"cpu", "cuda"})
      ->capture_default_str();
  const auto limit = [&c](const std::string& size) {
    c.memory = static_cast<std::size_t>(bytes_of("--memory", size));
  };
  app.add_option_function<std::string>(
         "--memory", limit, "fail, saying what is needed, when the buffers of a rank would be larger")
      ->group(group)
      ->option_text("SIZE");
  app.add_option("--far", c.far,
                 "what --memory does not hold lives there, and passes through it in chunks: a\n"
                 "folder on a fast disk; with --device cuda, pinned memory of the host")
      ->group(group)
      ->option_text("FOLDER|pinned");
  app.add_option("--threads", c.threads, "threads of each rank (default: its share of the cores)")
      ->group(group)
      ->check(count)
      ->option_text("N");
  app.add_flag("--reproducible", c.reproducible,
               "the same bits for every policy, mesh, number of ranks and of threads")
      ->group(group);
}

/// Throws usage_error for lists in which a number is missing, as in 4,,5, which CLI11 passes over.
void require_whole_lists(const std::vector<std::string>& words) {
  for (std::size_t k = 1; k < words.size(); ++k)
    for (const std::string name : {"--hidden", "--fanout", "--stage-layers"}) {
      const bool joined = words[k].starts_with(name + "=");
      if (!joined && words[k - 1] != name) continue;
      const std::string list = "," + words[k].substr(joined ? name.size() + 1 : 0) + ",";
      if (list.find(",,") != list.npos)
        throw usage_error(name + ": a number is missing in '" + list.substr(1, list.size() - 2) + "'");
    }
}

/// Throws usage_error where two outputs would be one file.
void require_different_files(const command& c) {
  std::vector<std::pair<const char*, std::filesystem::path>> files;
  for (const auto& [name, path] :
       {std::pair("--json", &c.json), std::pair("--save", &c.save),
        std::pair("--save-logits", &c.save_logits), std::pair("--save-embeddings", &c.save_embeddings)}) {
    if (path->empty()) continue;
    std::error_code ignored;
    const std::filesystem::path file = std::filesystem::weakly_canonical(*path, ignored);
    for (const auto& [other, of_other] : files)
      if (file == of_other) throw usage_error(std::string(other) + " and " + name + " name the same file");
    files.emplace_back(name, file);
  }
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

}  // namespace

command parse_command(int argc, char** argv) {
  command c;
  c.words.assign(argv, argv + argc);
  std::string preset = preset_in(argc, argv);
  if (!preset.empty()) c.training = preset_named(preset);
  CLI::App app(
      "Trains a graph neural network over any number of ranks, on a whole graph under any partition policy, "
      "in\n"
      "mini-batches, or with its layers over stages.",
      "train");
  add_data_and_results(app, c);
  add_model(app, c.training, preset);
  add_training(app, c);
  add_mini_batches(app, c.training.mini_batch);
  add_stages(app, c);
  add_partition(app, c);
  show_defaults(app);
  require_whole_lists(c.words);
  parse(app, argc, argv);
  complete_mini_batches(app, c);
  complete_stages(app, c);
  complete_mesh(c);
  complete_products(c);
  complete_results(app, c);
  require_different_files(c);
  if (c.comm == "threads") require_possible(std::max(c.ranks.value_or(1), c.training.pipeline.stages));
  if (const auto& t = c.training; !c.save_embeddings.empty() && layers_of(t) == 1)
    throw usage_error("--save-embeddings needs a hidden layer, and this model has none");
  if (c.comm == "nccl" && c.device != "cuda") throw usage_error("--comm nccl needs --device cuda");
  return c;
}

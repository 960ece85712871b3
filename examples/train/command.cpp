// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include <algorithm>
#include <cmath>

#include "../ranks/command_line.hpp"
#include "../ranks/parts.hpp"
#include "build.hpp"
#include "complete.hpp"
#include "ordering.hpp"
#include "presets.hpp"

namespace {

CLI::Validator validator_of(const nn::field_range& range, bool whole) {
  const std::string is(range.is);
  if (whole && range.least >= 0) return whole_number(is, range.least, std::nextafter(range.most, HUGE_VAL));
  return number_that(is, [=](double v) {
    return v >= range.least && v <= range.most && (!whole || (v != 0 && v == std::floor(v)));
  });
}

void take_stage_layers(nn::pipeline_options& p, const std::vector<std::string>& given) {
  p.measured = given.front() == "measured";
  if (p.measured && given.size() == 1) return;
  for (const std::string& text : given) {
    if (text == "measured") throw usage_error("--stage-layers takes numbers, or measured alone");
    p.layers.push_back(std::stoi(text));  // digits, as checked
  }
}

CLI::Option* add_words(CLI::App& app, const nn::field& f, nn::training_options& t) {
  std::vector<std::string> allowed;
  for (std::size_t k = 0; k < f.number_of({}); ++k) allowed.emplace_back(f.word(k));
  if (f.name == "model")
    for (const nn::model_row& row : nn::model_rows)
      if (std::ranges::find(allowed, row.name) == allowed.end()) allowed.emplace_back(row.name);
  const auto take = [&](const std::string& word) { nn::take(f, t, word); };
  return words(app.add_option_function<std::string>("--" + std::string(f.name), take, std::string(f.help)),
               allowed)
      ->default_str(f.range.or_none ? "" : text_of(f, t));
}

CLI::Option* add_stage_layers(CLI::App& app, const nn::field& f, nn::pipeline_options& p) {
  const auto take = [&p](const std::vector<std::string>& given) { take_stage_layers(p, given); };
  const CLI::Validator count = validator_of(f.range, true);
  return app
      .add_option_function<std::vector<std::string>>("--" + std::string(f.name), take, std::string(f.help))
      ->delimiter(',')
      ->check(CLI::Validator(
          [count](const std::string& text) { return text == "measured" ? std::string() : count(text); }, ""))
      ->option_text(std::string(f.form));
}

/// Numbers of relations stand between slashes; 0 is one of several, of which one draws some.
void take_fanouts(const nn::field& f, nn::training_options& t, const std::vector<std::string>& given) {
  const CLI::Validator number = validator_of(f.range, true);
  for (std::size_t k = 0; k < given.size(); ++k) {
    std::string why;
    bool draws = false;
    nn::detail::read_pieces(given[k], '/', [&](std::string_view piece) {
      draws = draws || piece != "0";
      if (piece != "0") why = number(std::string(piece));
      return why.empty();
    });
    if (why.empty() && !draws) why = given[k] + " draws nothing";
    if (!why.empty()) throw usage_error(fmt::format("--{} of layer {}: {}", f.name, k + 1, why));
  }
  nn::take(f, t, CLI::detail::join(given, ","));
}

CLI::Option* add_fanouts(CLI::App& app, const nn::field& f, nn::training_options& t) {
  const auto take = [&](const std::vector<std::string>& given) { take_fanouts(f, t, given); };
  return app
      .add_option_function<std::vector<std::string>>("--" + std::string(f.name), take, std::string(f.help))
      ->delimiter(',')
      ->option_text(std::string(f.form));
}

/// The options of a group of fields, under a title.
void add_fields(CLI::App& app, const std::string& title, nn::field_group group, command& c) {
  app.option_defaults()->group(title);
  nn::training_options& t = c.training;
  const auto add = [&]<class V>(const nn::field& f, V* value) -> CLI::Option* {
    const std::string name = "--" + std::string(f.name), help(f.help);
    constexpr bool is_bool = std::is_same_v<V, bool>;
    if (f.name == "class-weights")
      return app.add_option(name, c.class_weights, help)->option_text(std::string(f.form));
    if (f.name == "stage-layers") return add_stage_layers(app, f, t.pipeline);
    if constexpr (std::is_same_v<V, std::vector<partita::sampling::fanout>>) {
      return add_fanouts(app, f, t);
    } else if constexpr (is_bool || std::is_same_v<V, std::uint8_t> || std::is_same_v<V, std::string>) {
      if (!is_bool || f.has_words()) return add_words(app, f, t);
      const auto take = [value, off = f.switches_off()](std::int64_t times) { *value = (times > 0) != off; };
      return app.add_flag_function(name, take, help);
    } else {
      constexpr bool is_number = std::is_arithmetic_v<V>,
                     whole = !std::is_same_v<V, double> && !std::is_same_v<V, std::vector<double>>;
      CLI::Option* const option = app.add_option(name, *value, help)->option_text(std::string(f.form));
      option->check(validator_of(f.range, whole));
      if (!is_number) option->delimiter(',');
      if (!f.range.or_none) is_number ? option->capture_default_str() : option->default_str(text_of(f, t));
      return option;
    }
  };
  for (const nn::field& f : nn::fields)
    if (f.group == group) std::visit([&](auto* value) { add(f, value); }, f.of(t));
}

void add_ranks(CLI::App& app, command& c) {
  app.option_defaults()->group("Ranks");
  std::vector<std::string> policies = policy_names();
  const std::string named = CLI::detail::join(policies, ", ");
  policies.emplace_back("auto");
  words(app.add_option("--policy", c.policy,
                       named + "\nor auto: the least product of words received and memory"),
        policies)
      ->option_text("NAME")
      ->capture_default_str();
  app.add_option("--ranks", c.ranks, "ranks (default 1; under mpirun: those of the job)")
      ->check(count)
      ->option_text("N");
  app.add_option("--mesh", c.mesh,
                 "ranks along row, col and depth (default: nearest to a square or a cube),\n"
                 "or auto: compares every mesh that the policy allows, as --policy auto does")
      ->option_text("RxCxD");
  app.add_option("--replication", c.replication, "depth of the mesh: copies of the dense operand")
      ->check(count)
      ->option_text("C");
  const auto take = [&c](const std::vector<std::string>& given) { c.partition = parse_ordering(given); };
  app.add_option_function<std::vector<std::string>>(
         "--partition", take,
         "how vertices are assigned to ranks: in order, at random, by degree, in an order of\n"
         "small bandwidth, with few cut edges, little traffic or balanced traffic,\n"
         "or by a file with a rank number for each vertex")
      ->expected(1, 2)
      ->option_text(CLI::detail::join(partitioners(), "|") + "|given FILE")
      ->default_str("none");
  words(app.add_option("--comm", c.comm, "how ranks communicate; nccl needs --device cuda, mpi needs mpirun"),
        {"threads", "mpi", "nccl"})
      ->capture_default_str();
  words(app.add_option("--mpi-collectives", c.mpi_collectives,
                       "with --comm mpi: this program's messages, or MPI's own collectives, which may be\n"
                       "tuned for the network; sums are rounded differently"),
        {"messages", "native"})
      ->capture_default_str();
  add_timeout(app, c.timeout);
  app.add_option_function<std::string>(
         "--machine", [&c](const std::string& path) { c.machine = read_machine(path); },
         "emulate the ranks on a machine with this network, in virtual time: seconds are\n"
         "those of a run there")
      ->option_text("FILE.json");
  app.add_option_function<std::string>(
         "--calibration",
         [&c](const std::string& path) { c.calibration = read_machine(path, "--calibration"); },
         "with --policy auto: choose what is fastest on this machine, as `calibrate` measured it")
      ->option_text("FILE.json");
  words(app.add_option("--device", c.device, "where the ranks compute"), {"cpu", "cuda"})
      ->capture_default_str();
  app.add_flag("--no-graphs", c.no_graphs,
               "with --device cuda: launch each kernel of a step by itself, not as a CUDA graph");
  const auto limit = [&c](const std::string& size) {
    c.memory = static_cast<std::size_t>(bytes_of("--memory", size));
  };
  app.add_option_function<std::string>(
         "--memory", limit, "limit the buffers of a rank; a run that exceeds it fails and names the buffer")
      ->option_text("SIZE");
  app.add_option("--far", c.far,
                 "out-of-core: stream what exceeds --memory from a scratch file in this folder on\n"
                 "a fast disk; with --device cuda, offload it to pinned host memory")
      ->option_text("FOLDER|pinned");
  app.add_option("--threads", c.threads, "threads of each rank (default: its share of the cores)")
      ->check(count)
      ->option_text("N");
  app.add_flag("--reproducible", c.reproducible,
               "the same bits for every policy, mesh, number of ranks and of threads");
}

void add_data_and_results(CLI::App& app, command& c) {
  app.option_defaults()->group("Data and results");
  app.add_option("--data", c.data, "data directory, or karate for the built-in karate club")
      ->required()
      ->option_text("DIR");
  add_task(app, c.task);
  add_unpack_limit(app, c.unpack_limit);
  const auto file = [&](const char* name, std::string& path, const char* form, const char* what) {
    app.add_option(name, path, what)->option_text(form);
  };
  const auto number = [&](const char* name, int& value, const char* form, const char* what) {
    app.add_option(name, value, what)->check(count)->option_text(form)->capture_default_str();
  };
  file("--json", c.json, "FILE", "write the results, and how to reproduce them");
  file("--report", c.page, "FILE.html",
       "write a page of plots: losses, words, time by rank, and what limits the run");
  file("--trace", c.trace, "FILE.json", "write when each rank computed and waited, for ui.perfetto.dev");
  file("--checkpoint", c.checkpoint.folder, "DIR", "write checkpoints to this folder, for --resume");
  number("--every", c.checkpoint.every, "N", "epochs from one checkpoint to the next");
  number("--keep", c.checkpoint.keep, "K", "number of newest checkpoints to keep");
  app.add_flag("--resume", c.checkpoint.resume, "continue from the newest complete checkpoint");
  file("--init", c.init, "FILE.safetensors", "start from these parameters, such as those of --save");
  file("--save", c.save, "FILE.safetensors", "write the parameters and what the model computes, for predict");
  file("--save-logits", c.save_logits, "FILE.npy", "write the logits of all vertices");
  file("--save-hidden", c.save_hidden, "FILE.npy", "write the input of the last layer with parameters");
  app.add_flag("--quiet", c.quiet, "print nothing");
  app.get_help_ptr()->group("Data and results")->description("print this and exit");
  app.set_version_flag("--version", app.get_name() + " " + build::version, "print the version and exit");
}

/// Throws usage_error for lists in which a number is missing, as in 4,,5, which CLI11 passes over.
void require_whole_lists(const std::vector<std::string>& words) {
  for (std::size_t k = 1; k < words.size(); ++k)
    for (const nn::field& f : nn::fields) {
      if (f.form.find(',') == f.form.npos) continue;
      const std::string name = "--" + std::string(f.name);
      const bool joined = words[k].starts_with(name + "=");
      if (!joined && words[k - 1] != name) continue;
      const std::string list = "," + words[k].substr(joined ? name.size() + 1 : 0) + ",";
      if (list.find(",,") != list.npos)
        throw usage_error(name + ": a number is missing in '" + list.substr(1, list.size() - 2) + "'");
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

command parse_command(int argc, char** argv, const command_line& of) {
  command c;
  c.words.assign(argv, argv + argc);
  std::string preset = preset_in(argc, argv);
  if (!preset.empty()) c.training = preset_named(preset);
  CLI::App app(of.purpose, of.program);
  using group = nn::field_group;
  add_data_and_results(app, c);
  add_fields(app, "Model", group::model, c);
  option_named(app, "--model")->required(preset.empty())->default_str("");
  app.add_option("--preset", preset, "instead of --model: one with the hyperparameters of its paper")
      ->option_text(preset_names("|"));
  add_fields(app, "Training", group::training, c);
  words(app.add_option("--precision", c.precision,
                       "floating-point type; tf32: f32, with dense products on a CUDA device\n"
                       "rounding their factors"),
        {"f32", "f64", "tf32"})
      ->capture_default_str();
  add_fields(app, "Features", group::features, c);
  add_fields(app, "Links", group::links, c);
  add_fields(app, "Mini-batches", group::batches, c);
  add_fields(app, "Stages", group::stages, c);
  add_ranks(app, c);
  add_fields(app, "Products with the graph", group::products, c);
  if (of.add) of.add(app);
  show_defaults(app);
  require_whole_lists(c.words);
  parse(app, argc, argv);
  complete(app, c);
  return c;
}

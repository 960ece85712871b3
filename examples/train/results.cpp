// SPDX-License-Identifier: Apache-2.0
#include "results.hpp"

#include "../ranks/arrangement.hpp"
#include "../ranks/command_line.hpp"
#include "build.hpp"

namespace {

void complete_reproducible(const command& c) {
  if (!c.reproducible) return;
  const partita::nn::training_options& t = c.training;
  if (c.device != "cpu") throw usage_error("--reproducible needs --device cpu: only there are such sums");
  if (t.pipeline.stages > 0) throw usage_error("--reproducible is not for --stages");
  if (t.mini_batch.batch == 0) return;
  const auto refuse_with_batch = [](bool given, const char* option, const char* why) {
    if (given)
      throw usage_error(std::string("--reproducible with --batch is not for ") + option + ": " + why);
  };
  refuse_with_batch(t.model == "gat", "--model gat", "its sums are in the order of the samples");
  refuse_with_batch(t.mini_batch.sampler == partita::nn::batch_sampler::walks, "--sampler walks",
                    "a subgraph depends on which roots a rank has");
  refuse_with_batch(t.mini_batch.placement == partita::sampling::placement::column, "--placement column",
                    "its products are partial sums over the ranks' columns");
}

/// Throws usage_error for a --far that has no budget, or is for something else.
void complete_far(const CLI::App& app, const command& c) {
  if (app.count("--far") == 0) return;
  if (!c.memory) throw usage_error("--far needs --memory, which says what stays out of it");
  if (c.device == "cuda" && c.far != "pinned")
    throw usage_error("--far with --device cuda takes the word pinned, for page-locked memory of the host");
  if (c.device == "cpu" && c.far == "pinned")
    throw usage_error("--far pinned needs --device cuda; a folder of that name is ./pinned");
  if (c.training.pipeline.stages > 0) throw usage_error("--far and --stages do not go together");
}

/// Throws usage_error where outputs cannot be computed again.
void complete_recomputation(const command& c) {
  const partita::nn::training_options& t = c.training;
  if (t.recompute != partita::nn::recomputation::always) return;
  for (const auto& [given, name] :
       {std::pair(t.mini_batch.batch > 0, "--batch"), std::pair(t.pipeline.stages > 0, "--stages")})
    if (given) throw usage_error(std::string(name) + " and --recompute always do not go together");
  if (t.model == "gcnii")
    throw usage_error("--recompute always is not for gcnii, whose layers read the output of an earlier one");
}

}  // namespace

void add_data_and_results(CLI::App& app, command& c) {
  const std::string group = "Data and results";
  app.add_option("--data", c.data, "data directory, or karate for the karate club, which is built in")
      ->group(group)
      ->required()
      ->option_text("DIR");
  add_task(app, c.task)->group(group);
  add_unpack_limit(app, c.unpack_limit)->group(group);
  const auto file = [&](const char* name, std::string& path, const char* form, const char* what) {
    app.add_option(name, path, what)->group(group)->option_text(form);
  };
  const auto number = [&](const char* name, int& value, const char* form, const char* what) {
    app.add_option(name, value, what)->group(group)->check(count)->option_text(form)->capture_default_str();
  };
  file("--json", c.json, "FILE", "write the results, and what reproduces them");
  file("--checkpoint", c.checkpoint.folder, "DIR", "write checkpoints there, from which a run can go on");
  number("--every", c.checkpoint.every, "N", "epochs from one checkpoint to the next");
  number("--keep", c.checkpoint.keep, "K", "checkpoints that are kept, the newest ones");
  app.add_flag("--resume", c.checkpoint.resume, "go on from the newest checkpoint that is whole")
      ->group(group);
  file("--init", c.init, "FILE.safetensors", "begin with these parameters, such as those of --save");
  file("--save", c.save, "FILE.safetensors", "write the parameters and what the model computes, for predict");
  file("--save-logits", c.save_logits, "FILE.npy", "write the logits of all vertices");
  file("--save-embeddings", c.save_embeddings, "FILE.npy",
       "write the input of the last layer with parameters");
  app.add_flag("--quiet", c.quiet, "print nothing")->group(group);
  app.get_help_ptr()->group(group)->description("print this and exit");
  app.set_version_flag("--version", "train " + build::version, "print the version and exit")->group(group);
}

void complete_results(const CLI::App& app, const command& c) {
  for (const char* name : {"--every", "--keep", "--resume"})
    if (c.checkpoint.folder.empty() && app.count(name) > 0)
      throw usage_error(std::string(name) + " needs --checkpoint");
  complete_far(app, c);
  complete_recomputation(c);
  complete_reproducible(c);
}

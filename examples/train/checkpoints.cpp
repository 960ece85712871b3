// SPDX-License-Identifier: Apache-2.0
#include "checkpoints.hpp"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fmt/core.h>
#include <optional>

#include "../ranks/same_input.hpp"
#include "partita/io/changed_files.hpp"
#include "partita/train/checkpoint.hpp"
#include "partita/train/model_file.hpp"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace {

/// The signal that has asked for the end, or 0.
std::atomic<int> asked_by = 0;
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void ask_for_the_end(int signal) {
  if (asked_by.exchange(signal) == 0) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// What this process has freed goes back to the system: of lists of the set-up, holes would stay that are too
/// small for what epochs need.
void give_back_free_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void say(const std::string& sentence) { fmt::print(stderr, "train: {}\n", sentence); }

}  // namespace

template <class T>
partita::nn::continuation<T> continuation_for(const command& c, const partita::io::dataset& data) {
  partita::nn::continuation<T> how;
  if (const checkpointing& k = c.checkpoint; !k.folder.empty())
    how = partita::nn::checkpoints_in<T>(
        {.folder = k.folder, .every = k.every, .keep = k.keep, .resume = k.resume}, c.training, data, say);
  if (how.load && !c.quiet)
    how.load = [load = how.load, epochs = c.training.epochs] {
      auto found = load();
      if (found && std::ssize(found->epochs) <= epochs)
        fmt::print("resumed after epoch {} of {}\n", found->epochs.size(), epochs);
      return found;
    };
  how.load = [load = how.load]() -> std::optional<partita::nn::training_state<T>> {
    partita::io::require_unchanged_files();  // while matrices were made of them
    give_back_free_memory();
    return load ? load() : std::nullopt;
  };
  if (!c.init.empty()) {
    how.source = c.init;
    how.initial = [file = c.init] { return partita::nn::values_in<T>(partita::io::load_safetensors(file)); };
  }
  how.stop = [] { return asked_by != 0; };
  if (c.old_number) how.old_number = *c.old_number;
  return how;
}
template partita::nn::continuation<float> continuation_for<float>(const command&,
                                                                  const partita::io::dataset&);
template partita::nn::continuation<double> continuation_for<double>(const command&,
                                                                    const partita::io::dataset&);

void require_same_input(const command& c, const partita::io::dataset& data,
                        const partita::communicator& world) {
  if (world.size() == 1) return;
  const partita::nn::training_options& t = c.training;
  same_input all;
  auto options = c.precision == "f64" ? partita::nn::detail::lasting_options<double>(t, data)
                                      : partita::nn::detail::lasting_options<float>(t, data);
  options["option.epochs"] = std::to_string(t.epochs);
  options["option.policy"] = c.policy;
  options["option.init"] = c.init;
  options["option.mesh"] = c.mesh.value_or("");
  options["option.partition"] = c.partition.name;
  options["option.precision"] = c.precision;
  options["option.reproducible"] = c.reproducible ? "yes" : "no";
  options["option.stages"] = std::to_string(t.pipeline.stages);
  options["option.checkpoint"] = c.checkpoint.folder.empty() ? "no" : std::to_string(c.checkpoint.every);
  for (const auto& [name, value] : options)
    if (name != "option.vertices" && name != "option.features" && name != "option.classes")  // of the data
      all.add("option --" + name.substr(name.find('.') + 1), value);
  all.add(data);
  all.require(world);
}

void stop_on_signals() {
  std::signal(SIGTERM, ask_for_the_end);
  std::signal(SIGINT, ask_for_the_end);
}

int ending_signal() { return asked_by; }

std::string writable_test_in(const std::string& folder) {
  std::error_code status;
  std::filesystem::create_directories(folder, status);
  if (status) throw partita::error("cannot make " + folder + ": " + status.message());
  return (std::filesystem::path(folder) / ".partita-unfinished-test").string();
}

void print_stop(const command& c, const partita::nn::training_result& result) {
  const int signal = asked_by;
  const std::string by = signal == SIGTERM  ? "SIGTERM"
                         : signal == SIGINT ? "SIGINT"
                                            : "a signal to another rank";
  const std::size_t done = result.epochs.size();
  say(fmt::format("{} ended training after epoch {} of {}; {}", by, done, c.training.epochs,
                  c.checkpoint.folder.empty() ? "without --checkpoint, nothing of it is kept"
                                              : "--resume goes on from there"));
}

// SPDX-License-Identifier: Apache-2.0
// A run that goes on from a checkpoint ends as one that was never interrupted.
#include "partita/train/checkpoint.hpp"

#include "partita/comm/self.hpp"
#include "partita/compiled/host.hpp"
#include "partita/io/parts.hpp"
#include "partita/io/reordered.hpp"
#include "partita/train/make_training.hpp"
#include "support/datasets.hpp"
#include "support/matrices.hpp"
#include "support/scratch.hpp"

namespace test_checkpoint {

using namespace partita;
using namespace test_support;

constexpr int all_epochs = 6;

nn::training_options run_of(const std::string& model, global_index embedding = 0) {
  return {.model = model,
          .hidden = {7},
          .layers = model == "gcnii" ? 2 : 0,
          .epochs = all_epochs,
          .embedding = embedding,
          .seed = 42};
}

/// Where a run is computed.
struct place {
  policy under = row_1d;
  mesh_shape shape = {};
  int stages = 1;
  int size() const { return stages * shape.size(); }
};

/// How it ended.
struct ending {
  nn::training_result result;
  std::vector<double> weights;
};

/// Trains with checkpoints in the folder, from the newest on; ends after so many epochs if that is not 0,
/// when one rank wishes so.
template <class T>
ending trained_in(const place& at, const io::dataset& d, const nn::training_options& o,
                  const fs::path& folder, int stop_after, std::span<const global_index> old_number) {
  ending end;
  on_threads(at.size(), [&](const communicator& world) {
    nn::run_hooks<T> how;
    if (!folder.empty()) how = nn::checkpoints_in<T>({.folder = folder, .every = 2, .resume = true}, o, d);
    how.old_number = old_number;
    int epochs_seen = 0;
    how.stop = [&] {
      return stop_after > 0 && world.rank() == world.size() - 1 && epochs_seen == stop_after;
    };
    const nn::epoch_observer observe = [&](const nn::epoch_report& r) { epochs_seen = r.epoch; };
    ending mine;
    const mesh_shape ranks = o.pipeline.stages > 0 ? mesh_shape{world.size(), 1, 1} : at.shape;
    const auto training = nn::make_training<T>(mesh<host>(world, ranks), d, o, at.under, at.shape);
    mine.result = training->run(observe, how);
    const std::vector<T> weights = all_values(*training);
    mine.weights.assign(weights.begin(), weights.end());
    if (world.rank() == 0) end = mine;
  });
  return end;
}
/// In float where the options store activations in 2 bytes, else in double.
ending trained(const place& at, const io::dataset& d, const nn::training_options& o, const fs::path& folder,
               int stop_after = 0, std::span<const global_index> old_number = {}) {
  if (o.storage != nn::operand_precision::unrounded)
    return trained_in<float>(at, d, o, folder, stop_after, old_number);
  return trained_in<double>(at, d, o, folder, stop_after, old_number);
}

/// Whether everything that was found is the same, losses and weights to within `tolerance`, relatively; 0: in
/// every bit.
void check_same(const ending& found, const ending& expected, double tolerance, const std::string& what) {
  INFO(what);
  REQUIRE(found.result.epochs.size() == expected.result.epochs.size());
  for (std::size_t e = 0; e < expected.result.epochs.size(); ++e) {
    const nn::epoch_report &a = found.result.epochs[e], &b = expected.result.epochs[e];
    CHECK(a.epoch == b.epoch);
    CHECK(std::abs(a.loss - b.loss) <= tolerance * b.loss);
    CHECK(a.validation_accuracy == b.validation_accuracy);
    CHECK(a.test_accuracy == b.test_accuracy);
  }
  CHECK(found.result.best_validation_epoch == expected.result.best_validation_epoch);
  CHECK(found.result.test_accuracy_at_best_validation == expected.result.test_accuracy_at_best_validation);
  REQUIRE(found.weights.size() == expected.weights.size());
  CHECK(largest_difference(found.weights, expected.weights) <= tolerance);
}

/// Stops a run twice and goes on with it at `second`, then at `first` again.
void check_goes_on(const place& first, const place& second, const io::dataset& d,
                   const nn::training_options& o, double tolerance, const std::string& what) {
  const scratch folder;
  nn::training_options there = o;
  if (second.stages != first.stages) there.pipeline = {};
  const ending expected = trained(first, d, o, {});
  CHECK(expected.result.resumed_from == 0);
  CHECK_FALSE(expected.result.stopped);
  const ending begun = trained(first, d, o, folder.dir, 3);
  CHECK(begun.result.stopped);
  CHECK(begun.result.epochs.size() == 3);
  const ending gone_on = trained(second, d, there, folder.dir, 5);
  CHECK(gone_on.result.resumed_from == 3);
  CHECK(gone_on.result.epochs.size() == 5);
  const ending ended = trained(first, d, o, folder.dir);
  CHECK(ended.result.resumed_from == 5);
  CHECK_FALSE(ended.result.stopped);
  if (first.stages == 1) {  // stages plan in their first epoch, and this is the only one
    CHECK(ended.result.words_received.total == expected.result.words_received.total);
    CHECK(ended.result.messages.total == expected.result.messages.total);
  }
  check_same(ended, expected, tolerance, what);
  const ending nothing_left = trained(second, d, there, folder.dir);
  CHECK(nothing_left.result.resumed_from == all_epochs);
  CHECK(nothing_left.result.words_received.total == 0);
  check_same(nothing_left, ended, 0, what + ", with nothing left to train");
}

nn::training_options in_batches(sampling::placement how, global_index embedding) {
  nn::training_options o = run_of("sage", embedding);
  o.mini_batch = {.batch = 9, .fanouts = {3, 2}, .placement = how};
  return o;
}

std::string said(const std::function<void()>& act) {
  try {
    act();
    return "";
  } catch (const error& e) {
    return e.what();
  }
}

const io::dataset d = directed_graph();

TEST_CASE("on the same ranks a run goes on bit for bit, under every policy") {
  for_each_usual_mesh(std::array{1, 3, 4, 6}, [&](auto policy, mesh_shape shape) {
    const place here{policy, shape};
    for (const global_index embedding : {0, 5}) {
      if (embedding > 0 && shape.size() == 3) continue;
      check_goes_on(here, here, d, run_of("gcn", embedding), 0,
                    std::string(policy.name) + " on " + to_string(shape));
    }
  });
}

TEST_CASE("on other ranks, under another policy, it goes on up to rounding") {
  const place serial{row_1d, {1, 1, 1}}, of_2{replicated_1_5d, {1, 1, 2}}, of_4{grid_2d, {2, 2, 1}},
      of_6{feature_column, {1, 6, 1}}, of_8{split_3d, {2, 2, 2}};
  for (const auto& [first, second] :
       {std::pair(serial, of_4), std::pair(of_4, of_6), std::pair(of_8, of_2), std::pair(of_6, serial)})
    for (const global_index embedding : {0, 5})
      check_goes_on(first, second, d, run_of(embedding > 0 ? "gat" : "gcn", embedding), 1e-12,
                    to_string(first.shape) + ", " + to_string(second.shape));
}

TEST_CASE("an embedding finds its vertices when they are sorted in another way") {
  nn::training_options o = run_of("gcn", 5);
  o.dropout = 0;
  const scratch folder;
  const ending expected = trained({}, d, o, {});
  trained({}, d, o, folder.dir, 2);
  const auto parts = [&](int count) {
    return io::reordered(d, io::random_parts(d.vertices, count, 3), count);
  };
  const auto sorted = [&](const io::reordered_dataset& r, const place& at, int stop_after) {
    nn::training_options with = o;
    with.block_sizes = r.sizes;
    return trained(at, r.data, with, folder.dir, stop_after, r.old_number);
  };
  CHECK(sorted(parts(4), {grid_2d, {2, 2, 1}}, 4).result.resumed_from == 2);
  CHECK(sorted(parts(3), {row_1d, {3, 1, 1}}, 5).result.resumed_from == 4);
  check_same(trained({}, d, o, folder.dir), expected, 1e-12, "as in the data");
}

TEST_CASE("mini-batches go on with the next batch, wherever the rows of X are") {
  using sampling::placement;
  const place of_4{row_1d, {4, 1, 1}}, of_3{row_1d, {3, 1, 1}};
  for (const placement how : {placement::owner, placement::column})
    for (const global_index embedding : {0, 6}) {
      check_goes_on(of_4, of_4, d, in_batches(how, embedding), 0, std::string(name_of(how)));
      check_goes_on(of_4, of_3, d, in_batches(how, embedding), 1e-12, std::string(name_of(how)));
    }
}

TEST_CASE("what stages have learned goes on with other stages, and without") {
  nn::training_options o = run_of("gcnii");
  o.layers = 4;
  o.pipeline = {.stages = 2, .chunks = 3, .history = nn::chunk_history::exact};
  const place two{row_1d, {2, 1, 1}, 2}, whole{grid_2d, {2, 2, 1}};
  check_goes_on(two, two, d, o, 0, "exact history");
  check_goes_on(two, whole, d, o, 1e-12, "stages, none, stages");
  o.pipeline.history = nn::chunk_history::zero;
  check_goes_on(two, two, d, o, 0, "no history");
  nn::training_options stored = o;
  stored.storage = nn::operand_precision::bfloat16;
  check_goes_on(two, two, d, stored, 0, "no history, in 2 bytes a number");
  o.pipeline.history = nn::chunk_history::window;
  o.pipeline.window = 2;
  const scratch folder;
  trained(two, d, o, folder.dir, 3);
  const ending once = trained(two, d, o, folder.dir);
  CHECK(once.result.resumed_from == 3);
  CHECK(once.result.epochs.back().loss < once.result.epochs.front().loss);
}

TEST_CASE("what does not go on says why, and a damaged checkpoint is passed over") {
  const nn::training_options o = run_of("gcn");
  const scratch folder;
  const auto run = [&](const nn::training_options& with, bool resume,
                       std::vector<std::string>* told = nullptr) {
    return said([&] {
      const mesh<host> m(self::world(), {1, 1, 1});
      nn::train_model<double>(
          m, d, with, row_1d, {},
          nn::checkpoints_in<double>({.folder = folder.dir, .every = 2, .keep = 3, .resume = resume}, with, d,
                                     [&](const std::string& what) { told->push_back(what); }));
    });
  };
  std::vector<std::string> told;
  CHECK(run(o, true, &told) == "");
  CHECK(told == std::vector{folder.dir.string() + " has no checkpoint to resume from; training starts anew"});
  CHECK(run(o, false) == folder.dir.string() +
                             ": has checkpoints of an earlier run, the newest of epoch 6; resume it, or take "
                             "another folder");
  const std::string newest = (folder.dir / "checkpoint-6.safetensors").string();
  const auto refused = [&](const std::string& end, auto change) {
    nn::training_options other = o;
    change(other);
    CHECK(run(other, true, &told) == newest + ": that run was trained " + end);
  };
  refused("with --model gcn, this one is with --model sage", [](auto& x) { x.model = "sage"; });
  refused("with --hidden 7, this one is with --hidden 9,3", [](auto& x) { x.hidden = {9, 3}; });
  refused("with --seed 42, this one is with --seed 1", [](auto& x) { x.seed = 1; });
  refused("with --dropout 0.5, this one is with --dropout 0.1", [](auto& x) { x.dropout = 0.1; });
  refused("without --embedding, this one is with --embedding 4", [](auto& x) { x.embedding = 4; });
  refused("without --clip, this one is with --clip 2", [](auto& x) { x.clip = 2; });
  refused("without --raw-features, this one is with --raw-features", [](auto& x) { x.raw_features = true; });
  nn::training_options shorter = o;
  shorter.epochs = 4;
  CHECK(run(shorter, true, &told) == "6 epochs have been trained, more than the 4 requested");
  CHECK(said([&] { nn::checkpoints_in<float>({.folder = folder.dir, .resume = true}, o, d).load(); }) ==
        newest + ": that run was trained with --precision f64, this one is with --precision f32");

  const auto weights_in = [](const std::string& file) {
    std::vector<std::vector<double>> all;
    for (auto& t : nn::load_state<double>(io::load_safetensors(file)).tensors) all.push_back(t.values);
    return all;
  };
  const auto weights = weights_in(newest);
  const std::string whole = read_text(newest);
  told.clear();
  write_text(newest, whole.substr(0, whole.size() / 2));
  std::string flipped = read_text(folder.dir / "checkpoint-4.safetensors");
  flipped[flipped.size() - 9] ^= 4;
  write_text(folder.dir / "checkpoint-4.safetensors", flipped);
  CHECK(run(o, true, &told) == "");
  REQUIRE(told.size() == 2);
  CHECK(told[0].starts_with(newest + ": "));
  CHECK(told[0].ends_with("; it is passed over"));
  CHECK(told[1].ends_with("checkpoint-4.safetensors: is not as its checksum says; it is passed over"));
  CHECK(weights_in(newest) == weights);
}

TEST_CASE("tensors of a checkpoint are checked before they are used") {
  const io::dataset d = directed_graph();
  const scratch folder;
  trained({row_1d, {1, 1, 1}}, d, run_of("gcn"), folder.dir);
  const auto file = io::load_safetensors(folder.dir / "checkpoint-6.safetensors");
  // What becomes of the shapes, of the first value, and of the metadata.
  const auto read = [&](const std::string& name, auto change) {
    std::vector<io::named_tensor> tensors(file.tensors().begin(), file.tensors().end());
    io::tensor_metadata metadata = file.metadata();
    std::vector<double> values = file.values<double>(name);
    for (io::named_tensor& t : tensors)
      if (t.name == name) {
        change(t.shape, values, metadata);
        t = io::tensor_of(name, t.shape, std::span(values));
      }
    io::save_safetensors(folder.dir / "changed", tensors, metadata);
    return said([&] { nn::load_state<double>(io::load_safetensors(folder.dir / "changed")); });
  };
  using shapes = std::vector<global_index>;
  const std::string path = (folder.dir / "changed").string() + ": ";
  for (const io::named_tensor& t : file.tensors()) {
    const auto elements = static_cast<global_index>(t.bytes.size() / 8);
    for (const shapes& other : {shapes{}, shapes{elements}, shapes{1, elements, 1}, shapes{elements, 1},
                                shapes{0, 5}, shapes{5, 0}}) {
      if (other == t.shape) continue;
      INFO(t.name, " with ", other.size(), " dimensions");
      const std::string why = read(t.name, [&](auto& shape, auto& values, auto&) {
        shape = other;
        global_index size = 1;
        for (const global_index s : other) size *= s;
        values.resize(static_cast<std::size_t>(size));
      });
      CHECK((why.starts_with(path) || (t.name == "epochs" && other == shapes{0, 5} && why.empty())));
    }
    for (const double bad : {std::nan(""), HUGE_VAL})
      CHECK(read(t.name, [&](auto&, auto& values, auto&) { values[0] = bad; }) ==
            path + "the tensor " + t.name + " has a value that is not a finite number");
  }
  for (const char* steps : {"-2147483648", "x", "1e3", ""})
    CHECK(read("epochs", [&](auto&, auto&, auto& metadata) { metadata["steps"] = steps; }).starts_with(path));
  nn::training_state<double> state = nn::load_state<double>(file);
  state.tensors.front().values[0] = std::nan("");
  CHECK(said([&] {
          nn::save_state(io::checkpoint_folder(folder.dir, 1), state);
        }).ends_with("what would be saved has a value that is not a finite number"));
}

TEST_CASE("a checkpoint that cannot be written ends the run on every rank, and the last one remains") {
  const nn::training_options o = run_of("gcn");
  const scratch folder;
  fs::create_directories(folder.dir / "checkpoint-4.safetensors");
  const std::string what = said([&] { trained({row_1d, {4, 1, 1}}, d, o, folder.dir); });
  CHECK(what == (folder.dir / "checkpoint-4.safetensors").string() + ": is not a regular file");
  fs::remove_all(folder.dir / "checkpoint-4.safetensors");
  CHECK(trained({row_1d, {2, 1, 1}}, d, o, folder.dir).result.resumed_from == 2);
}

TEST_CASE("the state of another model is refused, naming the parameter") {
  const mesh<host> m(self::world(), {1, 1, 1});
  const auto trainer_of = [&](const nn::training_options& o) {
    return nn::trainer<double, host>(m, d, o, nn::make_model<double>(m, d, o, row_1d));
  };
  auto gcn = trainer_of(run_of("gcn"));
  const auto refusal = [&](nn::training_state<double> state) {
    return said([&] { gcn.restore(std::move(state)); });
  };
  const std::string first = gcn.state().tensors.front().name, last = gcn.state().tensors.back().name;
  nn::training_options wide = run_of("gcn");
  wide.hidden = {9};
  CHECK(refusal(trainer_of(wide).state()) ==
        "the model has a parameter " + first + " (13 x 7) where the state has one of 13 x 9");
  CHECK(refusal(trainer_of(run_of("gcn", 4)).state()).starts_with("the model has a parameter " + first));
  nn::training_state<double> cut = gcn.state();
  cut.tensors.pop_back();
  CHECK(refusal(cut) == "the model has a parameter " + last + ", which the state lacks");
  cut = gcn.state();
  cut.tensors.push_back({"more", {1, 1}, {0}});
  CHECK(refusal(cut) == "the state has a parameter more, which the model lacks");
  cut = gcn.state();
  cut.tensors.back().values.pop_back();
  CHECK(refusal(cut) == "the state has 4 values of adam.second.b1 (1 x 5)");
  cut = gcn.state();
  cut.tensors.push_back({"embedding", {61, 4}, std::vector<double>(244)});
  CHECK(refusal(cut) == "the state has a parameter embedding, which the model lacks");
  CHECK(refusal(gcn.state()) == "");
}

}  // namespace test_checkpoint

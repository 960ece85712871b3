// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <map>
#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "module.hpp"
#include "partita/algebra/reproducible.hpp"
#include "partita/compiled/host.hpp"
#include "partita/train/choose_policy.hpp"
#include "partita/train/model_file.hpp"

namespace partita::python {

namespace {

using shared_data = std::shared_ptr<const io::dataset>;

/// Throws what Python calls a ValueError.
[[noreturn]] void refuse(std::initializer_list<base::sentence_piece> why) {
  throw std::invalid_argument(base::sentence_of(why));
}

const nn::field& field_named(const std::string& key) {
  std::string name = key;
  std::ranges::replace(name, '_', '-');
  const auto found = std::ranges::find(nn::fields, name, &nn::field::name);
  if (found == nn::fields.end()) refuse({"there is no option ", key});
  return *found;
}

/// The options of these names, with _ for - in what train has behind --.
nn::training_options options_of(const std::map<std::string, std::string>& given, const io::dataset& data) {
  nn::training_options options;
  for (const auto& [key, text] : given) {
    const nn::field& f = field_named(key);
    if (f.name == "class-weights" && text == "balanced")
      options.class_weights = nn::balanced_class_weights(data);
    else if (!nn::take(f, options, text))
      refuse({key, ": '", text, "' is not ", f.has_words() ? f.form : f.range.is});
  }
  for (const auto& [key, text] : given)
    if (const auto why = field_named(key).mode.refusal(options); !why.empty())
      refuse({"--", field_named(key).name, why});
  if (const nn::field* const unread = nn::unread_field(options))
    refuse({unread->name, " is for model ", nn::models_of(*unread), ", not ", options.model});
  nn::require_loss(data, options);
  return options;
}

/// Whether somebody has pressed Ctrl-C; the exception is then raised, and found when the call returns.
bool is_interrupted() {
  const nb::gil_scoped_acquire hold;
  return PyErr_CheckSignals() != 0;
}

/// A training that has run: what it reports, and its model on the ranks.
struct fit {
  virtual ~fit() = default;
  virtual nb::object logits() = 0;
  virtual void save(const std::string& path) = 0;

  nn::training_result result;
  std::string policy;
};

template <class T>
class fit_in : public fit {
 public:
  fit_in(shared_data data, const nn::training_options& options, const place& where, bool reproducible)
      : ranks_(current()), data_(std::move(data)), options_(options), parts_(ranks_->places()) {
    const int stages = options.pipeline.stages, parts = std::max(1, stages), size = ranks_->size();
    if (size % parts != 0) refuse({size, " ranks are not ", parts, " stages of equally many"});
    const place first = where.policy == "auto" ? place() : where;
    const bool chooses = where.policy == "auto" && options.mini_batch.batch == 0 && stages == 0;
    const std::pair named{find_policy(first.policy), first.shape(size / parts)};
    const auto make_queue = where.queues(size);
    std::atomic<bool> stops = false;
    ranks_->run(
        [&](std::size_t at, const communicator& world) {
          const auto own = make_queue();
          const auto queue = reproducible ? partita::reproducible(own) : own;
          nn::training_options here = options_;
          here.mini_batch.sampling_threads = queue.threads();
          auto [p, shape] = named;
          if (chooses) {  // as `train --policy auto` does
            const nn::policy_choice choice =
                nn::choose_policy<T>(world, queue, *data_, here, {.threads = queue.threads()});
            here = nn::options_of(choice.chosen(), here);
            here.symmetric = choice.symmetric, p = choice.policy, shape = choice.mesh;
          }
          const mesh<host> m(world, stages > 0 ? mesh_shape{size, 1, 1} : shape, queue);
          m.queue().meter()->restart_peak();  // what candidates needed is no part of the run
          m.ledger().clear();
          parts_[at] = nn::make_training<T>(m, *data_, here, p, shape);
          nn::run_hooks<T> until;
          until.stop = [&] { return stops || (at == 0 && is_interrupted()); };
          const nn::training_result found = parts_[at]->run({}, until);
          if (at > 0) return;
          result = found, policy = p.name;
        },
        [&] { stops = stops || is_interrupted(); });
  }

  nb::object logits() override {
    return gathered<T>(*ranks_, {data_->vertices, data_->classes},
                       [&](std::size_t at, auto&) { return parts_[at]->outputs(false).logits; });
  }
  void save(const std::string& path) override {
    ranks_->run([&](std::size_t at, const communicator& world) {
      const nn::state_dict<T> values = parts_[at]->values();
      if (world.rank() == 0) nn::save_model(path, values, options_, *data_, {{"partita", version_text()}});
    });
  }

 private:
  std::shared_ptr<team> ranks_;
  shared_data data_;
  nn::training_options options_;
  std::vector<std::unique_ptr<nn::training<T, host>>> parts_;
};

std::unique_ptr<fit> train(const shared_data& data, const std::map<std::string, std::string>& given,
                           const place& where, const std::string& precision, bool reproducible) {
  if (precision != "f32" && precision != "f64") refuse({"the precision is f32 or f64, not ", precision});
  const nn::training_options options = options_of(given, *data);
  auto done = in_precision(precision, [&]<class T>(T) -> std::unique_ptr<fit> {
    return std::make_unique<fit_in<T>>(data, options, where, reproducible);
  });
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  return done;
}

}  // namespace

void bind_training(nb::module_& m) {
  using namespace nb::literals;
  using report = nn::epoch_report;
  const auto listed = [](double report::*number) {
    return [number](const fit& f) {
      std::vector<double> all;
      for (const report& epoch : f.result.epochs) all.push_back(epoch.*number);
      return all;
    };
  };
  nb::class_<fit>(m, "Fit", "A training that has run: what it reports, and its model on the ranks.")
      .def_prop_ro("loss", listed(&report::loss), "Of each epoch, before its step.")
      .def_prop_ro("train_accuracies", listed(&report::train_accuracy), "After each epoch.")
      .def_prop_ro("val_accuracies", listed(&report::validation_accuracy), "After each epoch.")
      .def_prop_ro("test_accuracies", listed(&report::test_accuracy), "After each epoch.")
      .def_prop_ro("seconds", listed(&report::seconds), "Of each epoch's step, on the slowest rank.")
      .def_prop_ro(
          "test_accuracy", [](const fit& f) { return f.result.kept().test_accuracy; },
          "Of the weights that are kept.")
      .def_ro("policy", &fit::policy)
      .def_prop_ro(
          "mesh", [](const fit& f) { return to_string(f.result.mesh); }, "ROWxCOLxDEPTH")
      .def_prop_ro(
          "words_received", [](const fit& f) { return f.result.words_received.total; },
          "Numbers that all ranks receive in the step of an epoch.")
      .def_prop_ro(
          "predicted_words_received", [](const fit& f) { return f.result.predicted_words_received.total; },
          "The same, from closed forms.")
      .def("logits", &fit::logits, "Z (n x C), without dropout. Every process must call.")
      .def(
          "save", &fit::save, "path"_a,
          "Writes the model to a safetensors file, for predict. Every process must call. Throws InputError.");
  m.def("train", &train, "data"_a, "options"_a, "place"_a, "precision"_a = "f32", "reproducible"_a = false);
}

}  // namespace partita::python

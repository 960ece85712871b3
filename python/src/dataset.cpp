// SPDX-License-Identifier: Apache-2.0
#include "partita/io/dataset.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <optional>

#include "module.hpp"
#include "partita/io/karate.hpp"

namespace partita::python {

namespace {

std::optional<io::task> task_named(const std::string& name) {
  if (name.empty()) return {};
  if (name == "classes") return io::task::classes;
  if (name == "labels") return io::task::labels;
  if (name == "values") return io::task::values;
  base::throw_error<input_error>({"the task is classes, labels or values here, not ", name});
}

/// The elements of an array of Python, which exist as long as they are used.
template <class T, class Array>
io::array<T> shared(const Array& a) {
  const auto owner = std::make_shared<Array>(a);
  return {std::shared_ptr<const T>(owner, reinterpret_cast<const T*>(a.data())),
          a.size() * sizeof(*a.data()) / sizeof(T)};
}

/// Features (n x f), directed edges (E x 2) and classes (n), whose types and sizes Python has checked.
template <class T>
std::shared_ptr<io::dataset> graph(const matrix_in<std::int64_t>& edges, const matrix_in<T>& features,
                                   const vector_in<std::uint8_t>& split,
                                   const vector_in<std::int64_t>& labels, global_index classes) {
  auto data = std::make_shared<io::dataset>();
  data->name = "arrays";
  data->vertices = shape_of(features).rows, data->features = shape_of(features).cols;
  data->edges = shared<io::edge>(edges);
  data->vertex_features = io::feature_table(data->vertices, data->features, shared<T>(features));
  data->split = shared<std::uint8_t>(split);
  data->labels = shared<std::int64_t>(labels), data->classes = classes;
  return data;
}

/// What training reads of a data directory, or of karate, which is built in; `embedding`: without features.
/// Every process must call. What travels and exceptions: as io::load_dataset.
std::shared_ptr<const io::dataset> load(const std::string& path, const std::string& task, bool embedding) {
  if (path == "karate") return std::make_shared<io::dataset>(io::karate_club());
  const auto wanted = embedding ? io::vertex_data::labels : io::vertex_data::features_and_labels;
  const auto as = task_named(task);
  std::shared_ptr<const io::dataset> data;
  const auto ranks = current();
  team alone(1);  // threads share what one of them has read
  const bool are_threads = ranks->places() == static_cast<std::size_t>(ranks->size());
  (are_threads ? alone : *ranks).run([&](std::size_t, const communicator& world) {
    data = std::make_shared<io::dataset>(io::load_dataset(path, wanted, world, 1, 0, {}, {}, as));
  });
  return data;
}

}  // namespace

void bind_dataset(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<io::dataset>(m, "Dataset", "A graph with features, labels and a split.")
      .def_ro("vertices", &io::dataset::vertices, "n")
      .def_ro("features", &io::dataset::features, "f, the columns of the features")
      .def_ro("classes", &io::dataset::classes, "C, the columns of the logits")
      .def_prop_ro(
          "edges", [](const io::dataset& d) { return d.edges.size(); }, "E, directed");
  m.def("load", &load, "path"_a, "task"_a, "embedding"_a);
  const auto bind_graph = [&](const auto& make) {
    m.def("graph", make, "edges"_a, "features"_a.noconvert(), "split"_a, "labels"_a, "classes"_a);
  };
  bind_graph(&graph<float>), bind_graph(&graph<double>);
}

}  // namespace partita::python

// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "module.hpp"
#include "partita/compiled/host.hpp"
#include "partita/io/karate.hpp"
#include "partita/train/model_data.hpp"
#include "partita/train/point_predictor.hpp"

namespace partita::python {

namespace {

/// A saved model, and the data for it: in a directory, karate, which is built in, or a Dataset.
struct saved {
  io::safetensors_file file;
  nn::saved_model model;
  io::dataset data;
};

/// Throws InputError where they do not fit.
saved open(const std::string& model_file, const nb::object& given) {
  const bool has_data = nb::isinstance<io::dataset>(given);
  io::dataset data = has_data ? nb::cast<const io::dataset&>(given) : io::dataset();
  const std::string path = has_data ? data.name : nb::cast<std::string>(given);
  const nb::gil_scoped_release free;
  io::safetensors_file file = io::load_safetensors(model_file);
  nn::saved_model model = nn::saved_model_of(file);
  if (path == "karate" && !has_data) data = io::karate_club();
  data = has_data || path == "karate" ? nn::fitted_to(model, file, std::move(data), path)
                                      : nn::load_data_for(model, file, path);
  return {std::move(file), std::move(model), std::move(data)};
}

/// The threads of each of so many ranks. Dense products are the library's own, as in the program `predict`:
/// with a BLAS the bits of a row would depend on the number of rows.
int threads_of(const place& where, int ranks) { return where.queues(ranks)().threads(); }

template <class T>
nb::object logits_of(const saved& from, const place& where) {
  const auto ranks = current();
  const mesh_shape shape = where.shape(ranks->size());
  const int threads = threads_of(where, ranks->size());
  const auto& [file, model, data] = from;
  return gathered<T>(*ranks, {data.vertices, data.classes}, [&](std::size_t, const communicator& world) {
    const mesh<host> m(world, shape, device_queue<host>(threads));
    nn::predictor<T, host> on_ranks(m, data, model.options, find_policy(where.policy));
    nn::load_parameters(file, on_ranks.parameters());
    if (auto* const x = on_ranks.embedding()) nn::load_embedding(file, *x);
    return on_ranks.outputs(false).logits;
  });
}

template <class T>
nb::object served_by(saved from, int threads) {
  const auto mesh_of = [](int number) {
    return mesh<host>(self::world(), mesh_shape(), device_queue<host>(number));
  };
  std::unique_ptr<nn::point_predictor<T, host>> made;
  {
    const nb::gil_scoped_release free;
    made = std::make_unique<nn::point_predictor<T, host>>(
        mesh_of(threads_of({"row_1d", "", threads}, 1)), [=] { return mesh_of(1); }, std::move(from.data),
        from.model.options, from.file);
  }
  return nb::cast(std::move(made));
}

nb::object predict(const std::string& model_file, const nb::object& data, const place& where) {
  const saved from = open(model_file, data);
  return from.model.precision == "f64" ? logits_of<double>(from, where) : logits_of<float>(from, where);
}

nb::object serve(const std::string& model_file, const nb::object& data, int threads) {
  saved from = open(model_file, data);
  return from.model.precision == "f64" ? served_by<double>(std::move(from), threads)
                                       : served_by<float>(std::move(from), threads);
}

template <class T>
void bind_in(nb::module_& m, const char* name) {
  using namespace nb::literals;
  using served = nn::point_predictor<T, host>;
  nb::class_<served>(m, name, "A saved model and a graph, on one rank.")
      .def(
          "rows",
          [](const served& from, const vector_in<std::int64_t>& vertices) {
            std::vector<T> found;
            {
              const nb::gil_scoped_release free;
              found = from.rows(values_of<std::int64_t>(vertices));
            }
            return to_numpy(std::move(found), from.width());
          },
          "vertices"_a, "The rows (m x C) of these vertices. Throws ShapeError.")
      .def_prop_ro("keeps_rows", &served::keeps_rows,
                   "Whether rows are kept, and not computed when asked for.");
}

}  // namespace

void bind_prediction(nb::module_& m) {
  using namespace nb::literals;
  bind_in<float>(m, "Served32");
  bind_in<double>(m, "Served64");
  m.def("predict", &predict, "model_file"_a, "data"_a, "place"_a,
        "Z (n x C) of a saved model on a directory or a Dataset.");
  m.def("serve", &serve, "model_file"_a, "data"_a, "threads"_a,
        "The same, for rows that are asked for. Local.");
}

}  // namespace partita::python

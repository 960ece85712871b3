// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "module.hpp"
#include "partita/compiled/host.hpp"
#include "partita/train/model_data.hpp"
#include "partita/train/point_predictor.hpp"

namespace partita::python {

namespace {

/// A directory, or a graph in memory.
using source = std::variant<std::shared_ptr<const io::dataset>, std::string>;

/// A saved model, and the data for it.
struct saved {
  io::safetensors_file file;
  nn::saved_model model;
  io::dataset data;
};

/// Throws InputError where they do not fit.
saved open(const std::string& model_file, const source& from) {
  const nb::gil_scoped_release free;
  saved s{io::load_safetensors(model_file), {}, {}};
  s.model = nn::saved_model_of(s.file);
  const auto* const data = std::get_if<std::shared_ptr<const io::dataset>>(&from);
  s.data = data ? nn::fitted_to(s.model, s.file, **data, (*data)->name)
                : nn::load_data_for(s.model, s.file, std::get<std::string>(from));
  return s;
}

/// Here and in serve, dense products are the library's own, as in the program `predict`: with a BLAS the bits
/// of a row would depend on the number of rows.
nb::object predict(const std::string& model_file, const source& from, const place& where) {
  const auto ranks = current();
  const mesh_shape shape = where.shape(ranks->size());
  const int threads = where.queues(ranks->size())().threads();
  const saved opened = open(model_file, from);
  const auto& [file, model, data] = opened;
  return in_precision(model.precision, [&]<class T>(T) {
    return gathered<T>(*ranks, {data.vertices, data.classes}, [&](std::size_t, const communicator& world) {
      const mesh<host> m(world, shape, device_queue<host>(threads));
      nn::predictor<T, host> on_ranks(m, data, model.options, find_policy(where.policy));
      nn::load_parameters(file, on_ranks.parameters());
      if (auto* const x = on_ranks.embedding()) nn::load_embedding(file, *x);
      return on_ranks.outputs(false).logits;
    });
  });
}

/// What computes rows (m x C) of vertices, and whether it keeps all of them.
nb::object serve(const std::string& model_file, const source& from, const place& where) {
  saved opened = open(model_file, from);
  const auto mesh_of = [](int threads) {
    return mesh<host>(self::world(), mesh_shape(), device_queue<host>(threads));
  };
  return in_precision(opened.model.precision, [&]<class T>(T) -> nb::object {
    const auto made = unlocked([&] {
      return std::make_shared<const nn::point_predictor<T, host>>(
          mesh_of(where.queues(1)().threads()), [=] { return mesh_of(1); }, std::move(opened.data),
          opened.model.options, opened.file);
    });
    const auto rows = [made](const vector_in<std::int64_t>& vertices) {
      return to_numpy(unlocked([&] { return made->rows(values_of(vertices)); }), made->width());
    };
    return nb::make_tuple(nb::cpp_function(rows), made->keeps_rows());
  });
}

}  // namespace

void bind_prediction(nb::module_& m) {
  using namespace nb::literals;
  m.def("predict", &predict, "model_file"_a, "data"_a, "place"_a,
        "Z (n x C) of a saved model on a directory or a Dataset.");
  m.def("serve", &serve, "model_file"_a, "data"_a, "place"_a,
        "What computes rows of it, and whether they are kept. Local.");
}

}  // namespace partita::python

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the parts of the module share: arrays of Python as blocks of distributed matrices, without a copy.

#include <memory>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "partita/matrix/dense.hpp"
#include "partita/version.hpp"
#include "team.hpp"

namespace partita::python {

namespace nb = nanobind;

void bind_products(nanobind::module_& m);
void bind_dataset(nanobind::module_& m);
void bind_training(nanobind::module_& m);
void bind_prediction(nanobind::module_& m);

inline std::string version_text() {
  return base::sentence_of({version::major, ".", version::minor, ".", version::patch});
}

/// Row-major arrays in host memory, of NumPy or of any other library that has DLPack.
template <class T>
using vector_in = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using matrix_in = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using matrix_out = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class Array>
matrix_shape shape_of(const Array& a) {
  return {static_cast<global_index>(a.shape(0)), static_cast<global_index>(a.shape(1))};
}
template <class Array>
auto values_of(const Array& a) {
  return std::span(a.data(), a.size());
}

/// This rank's rows of an array that is whole in this process.
template <class T, class Array>
dense<T, vertex_rows, host> rows_of(const mesh<host>& m, const Array& whole) {
  const matrix_shape shape = shape_of(whole);
  const blocking rows = blocking::even(shape.rows, m.shape(), nesting::rows);
  const interval mine = rows.block(vertex_rows.rows, m.at());
  const auto block = values_of(whole).subspan(static_cast<std::size_t>(mine.begin * shape.cols),
                                              static_cast<std::size_t>(mine.size() * shape.cols));
  return dense<T, vertex_rows, host>::view(m, rows, blocking::even(shape.cols, m.shape(), nesting::cols),
                                           block);
}

/// The array, of which each process has written its rows, becomes whole everywhere. Every rank must call.
/// What travels: where ranks are processes, the array. Otherwise they share it.
template <class T>
void complete(const team& ranks, const mesh<host>& m, const matrix_out<T>& whole) {
  if (ranks.places() == static_cast<std::size_t>(m.size())) return;
  const matrix_shape shape = shape_of(whole);
  const blocking rows = blocking::even(shape.rows, m.shape(), nesting::rows);
  for (int rank = 0; rank < m.size(); ++rank) {
    const interval of = rows.block(vertex_rows.rows, m.shape().at(rank));
    m.world().broadcast(
        std::span(whole.data() + of.begin * shape.cols, static_cast<std::size_t>(of.size() * shape.cols)),
        rank);
  }
}

/// An array that owns these values (rows x cols).
template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<2>> to_numpy(std::vector<T> values, global_index cols) {
  auto* const own = new std::vector<T>(std::move(values));
  const nb::capsule owner(own, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  const auto width = static_cast<std::size_t>(cols);
  return {own->data(), {width == 0 ? 0 : own->size() / width, width}, owner};
}

/// f(), while other threads of the interpreter run.
template <class F>
auto unlocked(const F& f) {
  const nb::gil_scoped_release free;
  return f();
}
/// f(T()) of the type that f64 or f32 names.
template <class F>
auto in_precision(const std::string& name, const F& f) {
  return name == "f64" ? f(double()) : f(float());
}

/// Rows (n x C), whole in each process. values_of_rank(place, world): the same of a rank, on the first one.
template <class T, class ValuesOfRank>
nb::object gathered(team& ranks, matrix_shape shape, const ValuesOfRank& values_of_rank) {
  std::vector<T> all;
  ranks.run([&](std::size_t at, const communicator& world) {
    std::vector<T> found = values_of_rank(at, world);
    if (at > 0) return;
    found.resize(static_cast<std::size_t>(shape.rows * shape.cols));
    if (ranks.places() == 1) world.broadcast(found, 0);
    all = std::move(found);
  });
  return nb::cast(to_numpy(std::move(all), shape.cols));
}

}  // namespace partita::python

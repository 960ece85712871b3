// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Arrays of Python as blocks of distributed matrices, without a copy.

#include <memory>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <span>
#include <utility>
#include <vector>

#include "partita/matrix/dense.hpp"
#include "team.hpp"

namespace partita::python {

namespace nb = nanobind;

/// Row-major arrays in host memory, of NumPy or of any other library that has DLPack.
template <class T>
using vector_in = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using matrix_in = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using matrix_out = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using numpy_matrix = nb::ndarray<nb::numpy, T, nb::ndim<2>>;

template <class Array>
matrix_shape shape_of(const Array& a) {
  return {static_cast<global_index>(a.shape(0)), static_cast<global_index>(a.shape(1))};
}
template <class T>
std::span<const T> values_of(const vector_in<T>& a) {
  return {a.data(), a.size()};
}

/// This rank's rows of an array that is whole in this process.
template <class T, class Array>
dense<T, vertex_rows, host> rows_of(const mesh<host>& m, const Array& whole) {
  const matrix_shape shape = shape_of(whole);
  const blocking rows = blocking::even(shape.rows, m.shape(), nesting::rows);
  const interval mine = rows.block(vertex_rows.rows, m.at());
  const auto all = std::span(whole.data(), whole.size());
  const auto block = all.subspan(static_cast<std::size_t>(mine.begin * shape.cols),
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
numpy_matrix<T> to_numpy(std::vector<T> values, global_index cols) {
  auto* const own = new std::vector<T>(std::move(values));
  const nb::capsule owner(own, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  const auto width = static_cast<std::size_t>(cols);
  return numpy_matrix<T>(own->data(), {width == 0 ? 0 : own->size() / width, width}, owner);
}

/// Rows (n x C), whole in each process. values_of_rank(place, world): the same of a rank, on the first one.
template <class T, class ValuesOfRank>
nb::object gathered(team& ranks, matrix_shape shape, const ValuesOfRank& values_of_rank) {
  std::vector<T> all;
  {
    const nb::gil_scoped_release free;
    ranks.run([&](std::size_t at, const communicator& world) {
      std::vector<T> found = values_of_rank(at, world);
      if (at > 0) return;
      found.resize(static_cast<std::size_t>(shape.rows * shape.cols));
      if (ranks.places() == 1) world.broadcast(found, 0);
      all = std::move(found);
    });
  }
  return nb::cast(to_numpy(std::move(all), shape.cols));
}

}  // namespace partita::python

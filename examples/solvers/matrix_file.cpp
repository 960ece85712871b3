// SPDX-License-Identifier: Apache-2.0
#include "matrix_file.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "partita/comm/cores.hpp"
#include "partita/io/graph_text.hpp"
#include "partita/io/gzip.hpp"
#include "partita/io/matrix_market.hpp"
#include "partita/io/npz.hpp"
#include "partita/io/quote.hpp"
#include "partita/io/unpacked_size.hpp"

namespace {

using partita::global_index;
using partita::triplet;

matrix_file from_edges(partita::io::edge_list list) {
  matrix_file a;
  a.is_edge_list = true;
  a.shape = {list.vertices(), list.vertices()};
  a.ids = std::move(list.ids);
  a.entries.reserve(list.edges.size());
  for (std::size_t k = 0; k < list.edges.size(); ++k)
    a.entries.push_back(
        {list.edges[k].source, list.edges[k].target, list.weights.empty() ? 1 : list.weights[k]});
  return a;
}

/// Text is parsed by as many threads as the process has cores.
int parsers() { return partita::comm::count(partita::comm::usable_cores()); }

matrix_file read_market(const std::string& path, unpack_limit limit) {
  auto from = path.ends_with(".gz")
                  ? partita::io::parse_matrix_market(partita::io::read_gzip(path, limit), path, parsers())
                  : partita::io::read_matrix_market(path, parsers());
  matrix_file a;
  a.shape = from.shape;
  a.entries = std::move(from.entries);
  a.first = 1;
  return a;
}

matrix_file read_edges(const std::string& path, unpack_limit limit) {
  return from_edges(path.ends_with(".gz")
                        ? partita::io::parse_edge_list(partita::io::read_gzip(path, limit), path, parsers())
                        : partita::io::read_edge_list(path, parsers()));
}

/// Sorted by row and column, with the sums of those at one place.
std::vector<triplet<double>> summed(std::vector<triplet<double>> entries) {
  std::ranges::stable_sort(entries, {}, [](const auto& e) { return std::pair(e.row, e.col); });
  std::vector<triplet<double>> sums;
  for (const triplet<double>& e : entries)
    if (!sums.empty() && sums.back().row == e.row && sums.back().col == e.col)
      sums.back().value += e.value;
    else
      sums.push_back(e);
  return sums;
}

std::vector<triplet<double>> transpose(std::vector<triplet<double>> entries) {
  for (triplet<double>& e : entries) std::swap(e.row, e.col);
  return entries;
}

}  // namespace

global_index matrix_file::id(global_index i) const {
  return ids.empty() ? first + i : ids[static_cast<std::size_t>(i)];
}

void matrix_file::fail(const std::string& what) const { throw partita::input_error(path + ": " + what); }

matrix_file read_matrix(const std::string& path, unpack_limit limit) {
  partita::io::detail::name_of_file(path);
  matrix_file a;
  if (path.ends_with(".npz")) {
    auto from = partita::io::read_sparse_npz(path, limit);
    a.shape = from.shape;
    a.entries = std::move(from.entries);
  } else {
    a = path.ends_with(".mtx") || path.ends_with(".mtx.gz") ? read_market(path, limit)
                                                            : read_edges(path, limit);
  }
  a.path = path;
  const std::size_t there = partita::io::available_memory();
  if (static_cast<std::size_t>(std::max(a.shape.rows, a.shape.cols)) >
      there / (8 * sizeof(double)))  // a few vectors, and what a product needs
    a.fail("the matrix is " + to_string(a.shape) + ", whose vectors do not fit into the " +
           std::to_string(there >> 20) + " MiB of memory that are free");
  if (a.shape.rows == 0 || a.shape.cols == 0)
    a.fail(a.is_edge_list ? "has no edges" : "has no entries: it is " + to_string(a.shape));
  for (const triplet<double>& e : a.entries)
    if (!std::isfinite(e.value))
      a.fail("the value at (" + std::to_string(a.first + e.row) + ", " + std::to_string(a.first + e.col) +
             ") is not a finite number");
  return a;
}

matrix_file read_square(const std::string& path, unpack_limit limit) {
  matrix_file a = read_matrix(path, limit);
  if (a.shape.rows != a.shape.cols) a.fail("the matrix is " + to_string(a.shape) + ", not square");
  return a;
}

void require_symmetric(matrix_file& a) {
  a.entries = summed(std::move(a.entries));
  std::erase_if(a.entries, [](const auto& e) { return e.value == 0; });
  const std::vector<triplet<double>> mirrored = summed(transpose(a.entries));
  const auto [here, there] = std::ranges::mismatch(a.entries, mirrored);
  if (here != a.entries.end()) {
    const auto& [row, col, value] = std::min(*here, *there, [](const auto& e, const auto& f) {
      return std::pair(e.row, e.col) < std::pair(f.row, f.col);
    });
    const std::string i = std::to_string(a.first + row), j = std::to_string(a.first + col);
    a.fail("the matrix is not symmetric: (" + i + ", " + j + ") and (" + j + ", " + i + ") differ");
  }
}

matrix_file read_graph(const std::string& path, unpack_limit limit) {
  matrix_file a = read_square(path, limit);
  if (a.is_edge_list) {
    const std::vector<triplet<double>> reversed = transpose(a.entries);
    a.entries.insert(a.entries.end(), reversed.begin(), reversed.end());
    a.entries = summed(std::move(a.entries));
  } else {
    require_symmetric(a);
  }
  std::erase_if(a.entries, [](const auto& e) { return e.row == e.col; });
  for (triplet<double>& e : a.entries) e.value = a.is_edge_list ? 1 : std::abs(e.value);
  return a;
}

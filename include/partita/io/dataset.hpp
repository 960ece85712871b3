// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Reads a dataset directory: the edges, features, labels and split of one graph. Needs libzip.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/io/features.hpp"
#include "partita/io/labelled_graph.hpp"
#include "partita/io/npy.hpp"
#include "partita/io/npz.hpp"

namespace partita::io {

/// What is read about vertices besides the split.
enum class vertex_data : std::uint8_t {
  features_and_labels,
  labels  ///< features, if there are any, are left out: an embedding is to be learned in their place
};

namespace detail {

/// Reads and validates the files of one directory. Features are read first; they fix the number of vertices.
/// Where they are left out, labels do.
class dataset_reader {
 public:
  dataset_reader(const std::filesystem::path& dir, vertex_data wanted) : dir_(dir), wanted_(wanted) {}

  dataset read() {
    std::error_code status;
    if (!std::filesystem::is_directory(dir_, status)) fail(dir_.string(), "is not a directory");
    const std::filesystem::path plain = std::filesystem::absolute(dir_).lexically_normal();
    data_.name = (plain.has_filename() ? plain : plain.parent_path()).filename().string();
    if (wanted_ == vertex_data::features_and_labels) read_features();
    read_labels();
    read_split();
    if (!data_.multi_label) check_labels();
    read_edges();
    read_edge_weights();
    return std::move(data_);
  }

 private:
  std::filesystem::path file(const std::string& name) const { return dir_ / name; }

  bool has(const char* name) const {
    std::error_code status;
    return std::filesystem::exists(file(name), status);
  }

  static std::string number(global_index value) { return std::to_string(value); }

  void check_length(const std::string& name, global_index found, const char* what) const {
    if (found != data_.vertices)
      fail(name, "expected " + number(data_.vertices) + " " + what + ", one for each row of " + counted_in_ +
                     ", found " + number(found));
  }

  void read_features() {
    const bool sparse = has("features_csr.npz");
    if (!sparse && !has("features.npy")) fail(dir_.string(), "has neither features_csr.npz nor features.npy");
    counted_in_ = sparse ? "features_csr.npz" : "features.npy";
    const std::string name = file(counted_in_).string();
    if (sparse) {
      data_.vertex_features = read_csr_features(name);
    } else if (read_npy_header(name).descr == "<f8") {
      take_features(read_npy<double>(name), name);
    } else {
      take_features(read_npy<float>(name), name);
    }
    data_.vertices = data_.vertex_features.rows;
    data_.features = data_.vertex_features.cols;
    if (data_.vertices == 0 || data_.features == 0) fail(name, "holds no features");
    check_finite(name);
  }

  template <class T>
  void take_features(npy_array<T> dense, const std::string& name) {
    if (dense.shape.size() != 2)
      fail(name, "expected a row of features for each vertex, found the shape " + shape_text(dense.shape));
    const global_index rows = dense.rows();
    const global_index cols = dense.cols();
    if (rows > 0 && cols > 0) data_.vertex_features = feature_table(rows, cols, std::move(dense.values));
  }

  void check_finite(const std::string& name) const {
    for (global_index vertex = 0; vertex < data_.vertices; ++vertex)
      data_.vertex_features.for_row(vertex, [&](global_index feature, auto value) {
        if (!std::isfinite(value))
          fail(name, "feature " + number(feature) + " of vertex " + number(vertex) + " is " +
                         std::to_string(value) + ", which is not a finite number");
      });
  }

  void read_labels() {
    const std::string name = file("labels.npy").string();
    const npy_header header = read_npy_header(name);
    data_.multi_label = header.shape.size() == 2;
    if (header.shape.size() != 1 && !data_.multi_label)
      fail(name, "expected a label or a row of labels for each vertex, found the shape " +
                     shape_text(header.shape));
    if (wanted_ == vertex_data::labels) count_labels(header.shape.front(), name);
    check_length(name, header.shape.front(), "labels");
    if (!data_.multi_label) {
      data_.labels = read_npy<std::int64_t>(name).values;
    } else if (header.descr == "|u1" || header.descr == "|b1") {
      read_label_matrix(read_npy<std::uint8_t>(name), name);
    } else {
      read_label_matrix(read_npy<std::int64_t>(name), name);
    }
  }

  void count_labels(global_index count, const std::string& name) {
    if (count == 0) fail(name, "holds no labels");
    data_.vertices = count;
    counted_in_ = "labels.npy";
  }

  template <class T>
  void read_label_matrix(const npy_array<T>& matrix, const std::string& name) {
    data_.classes = matrix.cols();
    if (data_.classes == 0) fail(name, "has no classes");
    const auto bad = std::ranges::find_if(matrix.values, [](T value) { return value != 0 && value != 1; });
    if (bad != matrix.values.end())
      fail(name, "entry " + number((bad - matrix.values.begin()) % data_.classes) + " of row " +
                     number((bad - matrix.values.begin()) / data_.classes) + " is " + std::to_string(*bad) +
                     ", expected 0 or 1");
    data_.label_matrix = converted<std::uint8_t>(matrix);
  }

  void read_split() {
    const std::string name = file("split.npy").string();
    npy_array<std::uint8_t> split = read_npy<std::uint8_t>(name);
    if (split.shape.size() != 1)
      fail(name, "expected a number for each vertex, found the shape " + shape_text(split.shape));
    check_length(name, split.rows(), "entries");
    const auto bad = std::ranges::find_if(split.values, [](std::uint8_t part) { return part > 3; });
    if (bad != split.values.end())
      fail(name, "the split of vertex " + number(bad - split.values.begin()) + " is " + number(*bad) +
                     ", expected 0, 1, 2 or 3");
    if (std::ranges::find(split.values, static_cast<std::uint8_t>(split_part::train)) == split.values.end())
      fail(name, "no vertex is in the training set (split 1)");
    data_.split = std::move(split.values);
  }

  void check_labels() {
    const std::string name = file("labels.npy").string();
    for (std::size_t v = 0; v < data_.labels.size(); ++v) {
      const std::int64_t label = data_.labels[v];
      const std::string which = "label " + number(label) + " of vertex " + std::to_string(v);
      if (label < -1 || label >= data_.vertices) fail(name, which + " is outside the classes");
      if (label == -1 && data_.split[v] != static_cast<std::uint8_t>(split_part::none))
        fail(name, which + " means none, but the split of that vertex is " + number(data_.split[v]));
    }
    data_.classes = 1 + std::ranges::max(data_.labels);
  }

  void read_edges() {
    const std::string name = file("edges.npy").string();
    const npy_array<std::int64_t> table = read_npy<std::int64_t>(name);
    if (table.shape.size() != 2 || table.cols() != 2)
      fail(name, "expected two vertices in each row, found the shape " + shape_text(table.shape));
    data_.edges.reserve(static_cast<std::size_t>(table.rows()));
    const auto outside = [&](global_index v) { return v < 0 || v >= data_.vertices; };
    for (std::size_t k = 0; k < table.values.size(); k += 2) {
      const edge next{table.values[k], table.values[k + 1]};
      if (outside(next.source) || outside(next.target))
        fail(name, "row " + std::to_string(k / 2) + " is the edge " + number(next.source) + " -> " +
                       number(next.target) + ", outside the graph of " + number(data_.vertices) +
                       " vertices");
      data_.edges.push_back(next);
    }
  }

  void read_edge_weights() {
    if (!has("edge_weight.npy")) return;
    const std::string name = file("edge_weight.npy").string();
    const npy_header header = read_npy_header(name);
    const auto edges = static_cast<global_index>(data_.edges.size());
    if (header.shape.size() != 1 || header.shape.front() != edges)
      fail(name, "expected " + number(edges) + " weights, one for each row of edges.npy, found the shape " +
                     shape_text(header.shape));
    data_.edge_weights =
        header.descr == "<f4" ? converted<double>(read_npy<float>(name)) : read_npy<double>(name).values;
    const auto bad =
        std::ranges::find_if_not(data_.edge_weights, [](double w) { return std::isfinite(w) && w >= 0; });
    if (bad != data_.edge_weights.end())
      fail(name, "the weight of row " + number(bad - data_.edge_weights.begin()) + " is " +
                     std::to_string(*bad) + ", expected a finite number that is not negative");
  }

  std::filesystem::path dir_;
  vertex_data wanted_;
  std::string counted_in_;  ///< the file that fixes the number of vertices
  dataset data_;
};

}  // namespace detail

/// The graph in the directory `dir`: edges.npy (int64 [E, 2], source and target), features_csr.npz or else
/// features.npy (float32 or float64 [n, f], precision preserved), labels.npy (int64 [n], -1 for unlabelled
/// vertices with split 0; or a 0/1 matrix [n, C], int64 or uint8), split.npy (uint8 [n], see split_part) and,
/// optionally, edge_weight.npy (float32 or float64 [E]). C is the largest label + 1, or the number of columns
/// of labels.npy. Without features, n is the number of labels. Throws input_error naming the file, and the
/// offending row if any, when a file is missing or malformed, when the sizes of two files disagree, and for
/// values that cannot be trained on.
inline dataset load_dataset(const std::filesystem::path& dir,
                            vertex_data wanted = vertex_data::features_and_labels) {
  return detail::dataset_reader(dir, wanted).read();
}

}  // namespace partita::io

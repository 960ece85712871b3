// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Reads the files of a dataset directory, or of one type of its vertices. Needs libzip and POSIX.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/io/dataset_type.hpp"
#include "partita/io/features.hpp"
#include "partita/io/folder_reading.hpp"
#include "partita/io/label_numbers.hpp"
#include "partita/io/mapped_features.hpp"
#include "partita/io/mapped_npy.hpp"
#include "partita/io/npy.hpp"
#include "partita/io/npz.hpp"
#include "partita/local/parallel.hpp"

namespace partita::io {

namespace detail {

/// The last part of the directory's path. Throws input_error unless it is a directory.
inline std::string name_of_folder(const std::filesystem::path& dir) {
  std::error_code status;
  if (!std::filesystem::is_directory(dir, status)) fail(dir.string(), "is not a directory");
  const std::filesystem::path plain = std::filesystem::absolute(dir).lexically_normal();
  return (plain.has_filename() ? plain : plain.parent_path()).filename().string();
}

/// Reads and validates the files of one directory. Features are read first; they determine the number of
/// vertices. If they are left out, the labels do, or the rows of an embedding.
class dataset_reader {
 public:
  explicit dataset_reader(folder_reading how, global_index vertices = 0) : how_(std::move(how)) {
    data_.vertices = vertices;
  }

  /// The graph in the directory.
  dataset read() {
    data_.name = name_of_folder(how_.dir);
    for (const char* edges : {"edges.npy", "edge_weight.npy", "edge_features.npy", "edge_type.npy"})
      bytes_ += size_of(edges);
    const bool with_labels = how_.trains() || (has("labels.npy") && has("split.npy"));
    if (how_.reads_features())
      bytes_ += size_of(has("features_csr.npz") ? "features_csr.npz" : "features.npy");
    if (with_labels) bytes_ += size_of("labels.npy") + size_of("split.npy");
    if (how_.reads_features()) read_features();
    if (with_labels) {
      read_labels();
      read_split();
      if (data_.task == task::classes) check_labels();
    }
    if (is_one_type_) return std::move(data_);
    if (data_.vertices == 0) {
      counted_in_ = counted_in(how_.dir);
      data_.vertices = vertices_of(file(counted_in_), how_.unpack_limit);
    }
    read_edges();
    read_edge_weights();
    read_edge_features();
    read_edge_types();
    if (how_.observe) how_.observe(bytes_, bytes_);
    return std::move(data_);
  }

  /// Vertices without edges; the file `counted_in` gives their number.
  dataset read_type(const std::string& counted_in) {
    counted_in_ = counted_in;
    is_one_type_ = true;
    return read();
  }

 private:
  std::filesystem::path file(const std::string& name) const { return how_.dir / name; }

  bool has(const char* name) const { return is_there(file(name)); }

  /// 0 if there is no such file.
  global_index size_of(const char* name) const {
    std::error_code status;
    const std::uintmax_t bytes = std::filesystem::file_size(file(name), status);
    return status ? 0 : static_cast<global_index>(bytes);
  }

  /// From now on the rows of this file are checked.
  void begin_file(const char* name) {
    before_ += size_;
    size_ = size_of(name);
  }
  void tell(double part_of_file) {
    if (!how_.observe) return;
    told_ = std::max(told_, before_ + static_cast<global_index>(static_cast<double>(size_) * part_of_file));
    how_.observe(std::min(told_, bytes_), bytes_);
  }

  static std::string number(global_index value) { return std::to_string(value); }

  void check_length(const std::string& name, global_index found, const char* what) const {
    if (found != data_.vertices)
      fail(name, "expected " + number(data_.vertices) + " " + what + ", one for each row of " + counted_in_ +
                     ", found " + number(found));
  }

  void read_features() {
    const bool sparse = has("features_csr.npz");
    if (!sparse && !has("features.npy"))
      fail(how_.dir.string(), "has neither features_csr.npz nor features.npy");
    counted_in_ = sparse ? "features_csr.npz" : "features.npy";
    begin_file(counted_in_.c_str());
    const std::string name = file(counted_in_).string();
    if (sparse) {
      data_.vertex_features = read_csr_features(name, how_.unpack_limit);
    } else {
      data_.vertex_features = map_features(name, "vertex");
    }
    data_.vertices = data_.vertex_features.rows;
    data_.features = data_.vertex_features.cols;
    if (data_.vertices == 0 || data_.features == 0) fail(name, "holds no features");
    check_finite(data_.vertex_features, "vertex", name);
  }

  /// Calls check(begin, end) for parts of this rank's share of `count` rows: piece by piece, and in each
  /// piece one part per thread. The memory of mapped pieces is released.
  template <class Check>
  void check_rows(global_index count, const Check& check) {
    constexpr global_index worth_threads = 1 << 14, most_rows = 1 << 18;
    const interval mine = comm::share_of(count, how_.world.rank(), how_.world.size());
    for (interval piece{mine.begin, mine.begin}; piece.end < mine.end;) {
      piece = {piece.end, std::min(mine.end, piece.end + most_rows)};
      const int parts = piece.size() < worth_threads ? 1 : how_.threads;
      local::run_parts(parts, [&](int part) {
        const interval rows = base::part_of(piece, part, parts);
        check(static_cast<std::size_t>(rows.begin), static_cast<std::size_t>(rows.end));
      });
      data_.vertex_features.forget();
      data_.edges.forget();
      data_.edge_weights.forget();
      data_.edge_features.forget();
      data_.edge_types.forget();
      tell(static_cast<double>(piece.end - mine.begin) / static_cast<double>(mine.size()));
    }
  }
  /// Calls check(row, value) for the values of this rank's share of the rows.
  template <class T, class Check>
  void check_values(const array<T>& values, const Check& check) {
    check_rows(static_cast<global_index>(values.size()), [&](std::size_t begin, std::size_t end) {
      for (std::size_t row = begin; row < end; ++row) check(row, values[row]);
    });
  }

  void check_finite(feature_table& table, const char* what, const std::string& name) {
    std::atomic<int> negative = 0;
    check_rows(table.rows, [&](std::size_t begin, std::size_t end) {
      bool found = false;
      for (std::size_t row = begin; row < end; ++row)
        found |= has_negative(table, static_cast<global_index>(row), what, name);
      if (found) negative = 1;
    });
    table.set_has_negative(how_.world.all_reduce(negative.load(), reduction::max) != 0);
  }

  void read_labels() {
    begin_file("labels.npy");
    const std::string name = file("labels.npy").string();
    const npy_header header = read_npy_header(name);
    if (header.shape.size() != 1 && header.shape.size() != 2)
      fail(name, "expected a label or a row of labels for each vertex, found the shape " +
                     shape_text(header.shape));
    if (data_.vertices == 0) count_labels(header.shape.front(), name);
    check_length(name, header.shape.front(), "labels");
    const bool is_column = header.shape.size() == 1 || header.shape[1] == 1;
    floating_ = npy_type_name(header.descr).starts_with("float");
    data_.task = how_.asked.value_or(floating_ ? task::values : is_column ? task::classes : task::labels);
    if (data_.task == task::classes && !is_column)
      fail(name, "expected one class for each vertex, found the shape " + shape_text(header.shape) +
                     "; labels.argmax(1) makes classes");
    if (data_.task == task::values) return read_values(header, name);
    if (data_.task == task::labels) return read_label_matrix(header, name);
    data_.labels = whole_labels(name, header);
    if (header.shape.size() == 2)
      data_.notes.push_back("labels.npy is a column: each number in it is the class of a vertex");
  }

  void count_labels(global_index count, const std::string& name) {
    if (count == 0) fail(name, "holds no labels");
    data_.vertices = count;
    counted_in_ = "labels.npy";
  }
  /// Sets the number of columns, which must not be 0.
  void take_columns(const npy_header& header, const std::string& name) {
    data_.classes = header.shape.size() == 1 ? 1 : header.shape[1];
    if (data_.classes == 0) fail(name, data_.task == task::values ? "has no columns" : "has no classes");
  }

  void read_values(const npy_header& header, const std::string& name) {
    take_columns(header, name);
    const label_numbers values(name, header);
    check_rows(data_.vertices, [&, columns = static_cast<std::size_t>(data_.classes)](std::size_t begin,
                                                                                      std::size_t end) {
      for (std::size_t k = begin * columns; k < end * columns; ++k)
        if (std::isinf(values[k]))
          fail(name, "value " + std::to_string(k % columns) + " of vertex " + std::to_string(k / columns) +
                         " is " + values.text(k) + ", expected a finite number, or nan for none");
    });
    std::vector<double> all(values.size());
    for (std::size_t k = 0; k < all.size(); ++k) all[k] = values[k];
    data_.values = std::move(all);
    if (!how_.asked)
      data_.notes.push_back("labels.npy holds " + npy_type_name(header.descr) +
                            ": its numbers are values to be predicted; labels.astype(int64) makes classes of "
                            "whole ones");
  }

  void read_label_matrix(const npy_header& header, const std::string& name) {
    take_columns(header, name);
    const label_numbers matrix(name, header);
    const auto classes = static_cast<std::size_t>(data_.classes);
    std::atomic<int> not_one = 0;
    check_rows(data_.vertices, [&](std::size_t begin, std::size_t end) {
      for (std::size_t v = begin; v < end; ++v) {
        std::size_t labels = 0;
        for (std::size_t k = v * classes; k < (v + 1) * classes; ++k) {
          const double value = matrix[k];
          if (value != 0 && value != 1)
            fail(name, "entry " + std::to_string(k - v * classes) + " of row " + std::to_string(v) + " is " +
                           matrix.text(k) + ", expected 0 or 1");
          labels += value == 1;
        }
        if (labels != 1) not_one = 1;
      }
    });
    if (how_.world.all_reduce(not_one.load(), reduction::max) == 0 && !how_.asked)
      data_.notes.push_back(
          "each row of labels.npy has one 1, and is read as the several labels that a vertex may have; "
          "labels.argmax(1) makes classes");
    data_.label_matrix = label_bytes(name, header, matrix);
  }

  void read_split() {
    begin_file("split.npy");
    const std::string name = file("split.npy").string();
    const mapped_array<std::uint8_t> split = map_npy<std::uint8_t>(name);
    if (split.shape.size() != 1)
      fail(name, "expected a number for each vertex, found the shape " + shape_text(split.shape));
    check_length(name, split.shape.front(), "entries");
    std::atomic<global_index> trained = 0;
    check_rows(data_.vertices, [&](std::size_t begin, std::size_t end) {
      for (std::size_t v = begin; v < end; ++v) {
        if (split.values[v] > 3)
          fail(name, "the split of vertex " + std::to_string(v) + " is " + number(split.values[v]) +
                         ", expected 0, 1, 2 or 3");
        if (split.values[v] == static_cast<std::uint8_t>(split_part::train)) trained = 1;
      }
    });
    const global_index any = how_.world.all_reduce(trained.load(), reduction::max);
    if (how_.trains() && any == 0) fail(name, "no vertex is in the training set (split 1)");
    data_.split = split.values;
  }

  void check_labels() {
    const std::string name = file("labels.npy").string();
    data_.classes = kinds_of(data_.labels, [&](std::size_t v) {
      require_label(name, v, data_.labels[v], data_.vertices, data_.split[v], floating_);
    });
  }
  /// 1 more than the largest value of all ranks; each value is checked.
  template <class Check>
  global_index kinds_of(const array<std::int64_t>& values, const Check& check) {
    std::atomic<global_index> kinds = 0;
    check_rows(static_cast<global_index>(values.size()), [&](std::size_t begin, std::size_t end) {
      std::int64_t largest = -1;
      for (std::size_t row = begin; row < end; ++row) {
        check(row);
        largest = std::max(largest, values[row]);
      }
      global_index before = kinds;
      while (before < largest + 1 && !kinds.compare_exchange_weak(before, largest + 1)) {
      }
    });
    return how_.world.all_reduce(kinds.load(), reduction::max);
  }

  void read_edges() {
    begin_file("edges.npy");
    const std::string name = file("edges.npy").string();
    mapped_array<std::int64_t> table = map_npy<std::int64_t>(name);
    if (table.shape.size() != 2 || table.shape[1] != 2)
      fail(name, "expected two vertices in each row, found the shape " + shape_text(table.shape));
    const auto ends = std::make_shared<const array<std::int64_t>>(std::move(table.values));
    data_.edges = {std::shared_ptr<const edge>(ends, reinterpret_cast<const edge*>(ends->data())),
                   ends->size() / 2, ends->is_mapped() ? forget_pages : nullptr};
    const auto outside = [&](global_index v) { return v < 0 || v >= data_.vertices; };
    check_values(data_.edges, [&](std::size_t row, const edge& e) {
      if (outside(e.source) || outside(e.target))
        fail(name, "row " + std::to_string(row) + " is the edge " + number(e.source) + " -> " +
                       number(e.target) + ", outside the graph of " + number(data_.vertices) + " vertices");
    });
  }

  void read_edge_weights() {
    if (!has("edge_weight.npy")) return;
    begin_file("edge_weight.npy");
    const std::string name = file("edge_weight.npy").string();
    data_.edge_weights = map_edge_weights(name, static_cast<global_index>(data_.edges.size()), "edges.npy");
    check_values(data_.edge_weights,
                 [&](std::size_t row, double weight) { require_weight(name, row, weight); });
  }

  void read_edge_features() {
    if (!has("edge_features.npy")) return;
    begin_file("edge_features.npy");
    const std::string name = file("edge_features.npy").string();
    data_.edge_features = map_edge_features(name, static_cast<global_index>(data_.edges.size()), "edges.npy");
    check_finite(data_.edge_features, "edge", name);
  }

  void read_edge_types() {
    if (!has("edge_type.npy")) return;
    begin_file("edge_type.npy");
    const std::string name = file("edge_type.npy").string();
    const auto edges = static_cast<global_index>(data_.edges.size());
    data_.edge_types = edge_types(name, edges);
    data_.relations = kinds_of(data_.edge_types, [&](std::size_t row) {
      if (const std::int64_t type = data_.edge_types[row]; type < 0 || type >= edges)
        fail(name, "the type of row " + std::to_string(row) + " is " + number(type) +
                       ", outside the types, of which there are at most as many as edges");
    });
  }

  folder_reading how_;
  global_index bytes_ = 0, before_ = 0, size_ = 0, told_ = 0;  ///< of all files, earlier ones, this one
  std::string counted_in_ = "the embedding";  ///< what fixes the number of vertices, mostly a file
  bool is_one_type_ = false;                  ///< vertices without edges
  bool floating_ = false;                     ///< labels
  dataset data_;
};

}  // namespace detail

}  // namespace partita::io

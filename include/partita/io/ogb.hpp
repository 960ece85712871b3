// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Reads the node- and link-property folders of the Open Graph Benchmark. Needs zlib and POSIX. Source: Hu et
/// al., "Open Graph Benchmark", NeurIPS (2020).

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/io/csv.hpp"
#include "partita/io/dataset_type.hpp"
#include "partita/io/features.hpp"
#include "partita/io/gzip.hpp"
#include "partita/io/link_files.hpp"
#include "partita/io/quote.hpp"

namespace partita::io {

/// Whether inverse edges are added; an OGB folder has an undirected edge once.
enum class inverse_edges : std::uint8_t { omitted, added };

namespace detail {

/// Reads and validates the files of one folder.
class ogb_reader {
 public:
  ogb_reader(const std::filesystem::path& dir, int threads, std::optional<std::size_t> unpack_limit)
      : dir_(dir), threads_(threads), unpack_limit_(unpack_limit) {}

  dataset read(inverse_edges inverse) {
    std::error_code status;
    if (!std::filesystem::is_directory(dir_, status)) fail(dir_.string(), "is not a directory");
    if (std::filesystem::exists(dir_ / "raw/num-node-dict.csv.gz", status))
      fail(dir_.string(), "has several types of vertices, which convert makes a data directory of");
    const std::filesystem::path plain = std::filesystem::absolute(dir_).lexically_normal();
    data_.name = (plain.has_filename() ? plain : plain.parent_path()).filename().string();
    const std::string links = links_folder();
    data_.vertices = only_number("raw/num-node-list.csv.gz");
    if (data_.vertices == 0) fail(file("raw/num-node-list.csv.gz"), "there are no vertices");
    data_.edges = edges("raw/", data_.vertices, data_.vertices);
    if (inverse == inverse_edges::added)
      for (std::size_t k = 0, count = data_.edges.size(); k < count; ++k)
        data_.edges.push_back({data_.edges[k].target, data_.edges[k].source});
    read_edge_columns(inverse);
    read_features("raw/");
    if (!links.empty()) {
      data_.task = task::links;
      return std::move(data_);
    }
    read_labels("raw/");
    read_split(split_folder());
    return std::move(data_);
  }

  /// The folder with the links of the split, or "" if vertices have labels. Throws input_error for links
  /// that have not been exported.
  std::string links_folder() const {
    if (has("raw/node-label.csv.gz") || !has("split")) return "";
    const std::string folder = split_folder();
    bool found = false;
    for (const std::string part : {"valid", "test"}) {
      const std::string links = "links_" + part + ".npy", packed = folder + part + ".pt";
      if (has(packed) && !has(folder + links))
        fail(file(packed),
             "is an archive of PyTorch, which is not read; the lines of Python in "
             "docs/links.md, OGB's links, make " +
                 links + " of it");
      found |= has(folder + links);
    }
    return found ? folder : "";
  }

  /// The vertices of one of several types, which may have no features, or no labels and no split.
  dataset read_type(const std::string& type, global_index count) {
    data_.name = type, data_.vertices = count;
    read_features("raw/node-feat/" + type + '/');
    std::error_code status;
    if (std::filesystem::exists(dir_ / "raw/node-label" / type, status)) {
      read_labels("raw/node-label/" + type + '/');
      read_split(split_folder() + type + '/');
    }
    return std::move(data_);
  }

  /// The edges in `folder`, from some vertices to the same or others.
  array<edge> edges(const std::string& folder, global_index sources, global_index targets) const {
    const global_index count = only_number(folder + "num-edge-list.csv.gz");
    const std::string name = file(folder + "edge.csv.gz");
    const auto ends = table<std::int64_t>(name);
    check_rows(name, ends.rows, count);
    if (ends.cols != 2 && count > 0)
      fail(name, "expected two vertices in each row, found " + std::to_string(ends.cols));
    std::vector<edge> found;
    found.reserve(static_cast<std::size_t>(count));
    for (std::size_t k = 0; k < ends.values.size(); k += 2) {
      const edge next{ends.values[k], ends.values[k + 1]};
      if (!interval{0, sources}.contains(next.source) || !interval{0, targets}.contains(next.target))
        fail(name, "row " + std::to_string(k / 2) + " is the edge " + std::to_string(next.source) + " -> " +
                       std::to_string(next.target) + ", outside the graph of " +
                       (sources == targets ? "" : std::to_string(sources) + " and ") +
                       std::to_string(targets) + " vertices");
      found.push_back(next);
    }
    return found;
  }

  /// The features of the edges in `folder`; nothing if it has none.
  feature_table edge_features(const std::string& folder, global_index count) const {
    return features(folder + "edge-feat.csv.gz", count, "edge");
  }

  std::string file(const std::string& name) const { return (dir_ / name).string(); }

 private:
  template <class T>
  number_table<T> table(const std::string& name) const {
    return parse_csv<T>(read_gzip(name, unpack_limit_), name, threads_);
  }

  global_index only_number(const std::string& which) const {
    const std::string name = file(which);
    const auto numbers = table<std::int64_t>(name);
    if (numbers.values.size() != 1 || numbers.values.front() < 0)
      fail(name, "expected one number, as the folder has one graph, found " +
                     std::to_string(numbers.values.size()));
    return numbers.values.front();
  }

  void check_rows(const std::string& name, global_index found, global_index expected) const {
    if (found != expected)
      fail(name, "expected " + std::to_string(expected) + " rows, found " + std::to_string(found));
  }

  bool has(const std::string& name) const {
    std::error_code status;
    return std::filesystem::exists(dir_ / name, status);
  }

  /// A nonnegative number for each edge; nothing if there is no such file.
  template <class T>
  array<T> edge_column(const std::string& which, global_index count) const {
    const std::string name = file(which);
    if (!has(which)) return {};
    auto values = table<T>(name);
    check_rows(name, values.rows, count);
    if (values.cols != 1) fail(name, "expected one number in each row, found " + std::to_string(values.cols));
    for (std::size_t e = 0; e < values.values.size(); ++e)
      if (const T value = values.values[e]; !(value >= 0 && value <= std::numeric_limits<T>::max()))
        fail(name, "row " + std::to_string(e) + " is " + std::to_string(value) +
                       ", expected a finite number that is not negative");
    return std::move(values.values);
  }

  /// The same for both directions of an edge.
  void read_edge_columns(inverse_edges inverse) {
    const auto all = static_cast<global_index>(data_.edges.size()),
               count = inverse == inverse_edges::added ? all / 2 : all;
    data_.edge_features = edge_features("raw/", count);
    data_.edge_weights = edge_column<double>("raw/edge_weight.csv.gz", count);
    data_.edge_types = edge_column<std::int64_t>("raw/edge_reltype.csv.gz", count);
    if (!data_.edge_types.empty()) data_.relations = 1 + std::ranges::max(data_.edge_types);
    if (data_.relations > count)
      fail(file("raw/edge_reltype.csv.gz"),
           "has the type " + std::to_string(data_.relations - 1) + " of " + std::to_string(count) + " edges");
    if (inverse == inverse_edges::omitted) return;
    const auto twice = [](auto& values) {
      const auto once = values;
      values.edit().insert(values.edit().end(), once.begin(), once.end());
    };
    twice(data_.edge_weights);
    twice(data_.edge_types);
    if (data_.edge_features.rows == 0) return;
    std::vector<global_index> both(data_.edges.size());
    for (std::size_t k = 0; k < both.size(); ++k) both[k] = static_cast<global_index>(k) % count;
    data_.edge_features = data_.edge_features.rows_at(both);
  }

  /// A row for each `what`; nothing if there is no such file.
  feature_table features(const std::string& which, global_index count, const char* what) const {
    const std::string name = file(which);
    if (!has(which)) return {};
    auto values = table<float>(name);
    check_rows(name, values.rows, count);
    const auto bad = std::ranges::find_if_not(values.values, [](float v) { return std::isfinite(v); });
    if (bad != values.values.end())
      fail(name, "feature " + std::to_string((bad - values.values.begin()) % values.cols) + " of " + what +
                     ' ' + std::to_string((bad - values.values.begin()) / values.cols) +
                     " is not a finite number");
    return {values.rows, values.cols, std::move(values.values)};
  }
  void read_features(const std::string& folder) {
    data_.vertex_features = features(folder + "node-feat.csv.gz", data_.vertices, "vertex");
    data_.features = data_.vertex_features.cols;
  }

  void read_labels(const std::string& folder) {
    const std::string name = file(folder + "node-label.csv.gz");
    const auto labels = table<double>(name);
    check_rows(name, labels.rows, data_.vertices);
    const bool several = labels.cols > 1;
    data_.task = several ? task::labels : task::classes;
    const double most = several ? 1 : static_cast<double>(data_.vertices) - 1;
    for (std::size_t k = 0; k < labels.values.size(); ++k) {
      const double label = labels.values[k];
      const bool none = std::isnan(label) && !several;
      if (!none &&
          !(label >= 0 && label <= most && label == static_cast<double>(static_cast<std::int64_t>(label))))
        fail(name, "label " + std::to_string(label) + " of vertex " +
                       std::to_string(k / static_cast<std::size_t>(labels.cols)) + " is " +
                       (several ? "neither 0 nor 1" : "outside the classes"));
      if (several)
        data_.label_matrix.push_back(static_cast<std::uint8_t>(label));
      else
        data_.labels.push_back(none ? -1 : static_cast<std::int64_t>(label));
    }
    data_.classes = several ? labels.cols : 1 + std::ranges::max(data_.labels);
  }

  /// The only folder in split/.
  std::string split_folder() const {
    std::vector<std::string> names;
    std::error_code status;
    for (std::filesystem::directory_iterator entry(dir_ / "split", status), end; !status && entry != end;
         entry.increment(status))
      if (entry->is_directory(status)) names.push_back(entry->path().filename().string());
    if (status) fail(file("split"), "cannot be read (" + status.message() + ")");
    if (names.size() != 1) fail(file("split"), "expected one folder, found " + std::to_string(names.size()));
    return "split/" + names.front() + "/";
  }

  void read_split(const std::string& folder) {
    std::vector<std::uint8_t>& split = data_.split.edit();
    split.assign(static_cast<std::size_t>(data_.vertices), 0);
    const std::array<const char*, 3> files{"train.csv.gz", "valid.csv.gz", "test.csv.gz"};
    for (std::size_t part = 0; part < files.size(); ++part) {
      const std::string name = file(folder + files[part]);
      const auto vertices = table<std::int64_t>(name);
      for (std::size_t row = 0; row < vertices.values.size(); ++row) {
        const global_index v = vertices.values[row];
        const auto refuse_vertex = [&](const std::string& why) {
          fail(name, "row " + std::to_string(row) + " is vertex " + std::to_string(v) + ", " + why);
        };
        if (v < 0 || v >= data_.vertices)
          refuse_vertex("outside the graph of " + std::to_string(data_.vertices) + " vertices");
        std::uint8_t& mine = split[static_cast<std::size_t>(v)];
        if (mine != 0) refuse_vertex("which has come before");
        if (data_.task == task::classes && data_.labels[static_cast<std::size_t>(v)] == -1)
          refuse_vertex("which has no label");
        mine = static_cast<std::uint8_t>(part + 1);
      }
      if (part == 0 && vertices.values.empty()) fail(name, "no vertex is in the training set");
    }
  }

  std::filesystem::path dir_;
  int threads_;
  std::optional<std::size_t> unpack_limit_;
  dataset data_;
};

}  // namespace detail

/// The graph in an OGB folder of one homogeneous graph, in raw/: edge.csv.gz (source and target),
/// num-node-list.csv.gz, num-edge-list.csv.gz, node-label.csv.gz (one column, nan for none, or several
/// of 0 and 1) and, optionally, node-feat.csv.gz, and for each edge a row of edge-feat.csv.gz, a weight
/// in edge_weight.csv.gz and a type in edge_reltype.csv.gz; and in the only folder of split/
/// train.csv.gz, valid.csv.gz and test.csv.gz, the numbers of vertices. A folder of links has no labels;
/// load_ogb_links reads its split. Edges are directed as in the file; inverse_edges::added appends the
/// inverse edges of undirected graphs, with the same features, weights and types. Each of `threads`
/// threads parses a range of a file's lines. Each file may have `unpack_limit` bytes of text, or as many
/// as most_unpacked says. Local. Throws input_error naming the file, and the line or row if one is at
/// fault, if a file is missing, damaged or malformed, if the sizes of two disagree, and for values that
/// cannot be trained on.
inline dataset load_ogb(const std::filesystem::path& dir, inverse_edges inverse = inverse_edges::omitted,
                        int threads = 1, std::optional<std::size_t> unpack_limit = {}) {
  return detail::ogb_reader(dir, threads, unpack_limit).read(inverse);
}

/// The validation and test links of an OGB folder of links, and their negatives, as read_links finds them in
/// the only folder of split/; the folder's edges are the training links. Nothing if vertices have labels.
/// Local. Throws input_error as read_links does, and for links in valid.pt or test.pt, which only PyTorch
/// reads, that are not also in links_valid.npy or links_test.npy.
inline std::optional<given_links> load_ogb_links(const std::filesystem::path& dir, global_index vertices) {
  const std::string folder = detail::ogb_reader(dir, 1, {}).links_folder();
  return folder.empty() ? std::nullopt : read_links(dir / folder, vertices);
}

}  // namespace partita::io

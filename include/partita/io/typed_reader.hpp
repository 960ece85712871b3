// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Reads a directory of vertices of several types as one graph, in which the rows of each type follow those
/// of the type before. Needs libzip and POSIX.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/io/dataset_reader.hpp"
#include "partita/io/dataset_type.hpp"
#include "partita/io/features.hpp"
#include "partita/io/folder_reading.hpp"
#include "partita/io/mapped_npy.hpp"
#include "partita/io/npy.hpp"
#include "partita/io/npz.hpp"

namespace partita::io::detail {

inline bool has_vertex_types(const std::filesystem::path& dir) {
  std::error_code status;
  return std::filesystem::is_directory(dir / "vertices", status);
}

/// The names in a folder, in ascending order: of folders, or of files that end in .npy.
inline std::vector<std::string> names_in(const std::filesystem::path& dir, bool folders) {
  std::vector<std::string> names;
  std::error_code status;
  for (std::filesystem::directory_iterator entry(dir, status), end; !status && entry != end;
       entry.increment(status))
    if (entry->is_directory() == folders && (folders || entry->path().extension() == ".npy"))
      names.push_back(entry->path().filename().string());
  if (status) fail(dir.string(), "cannot be read (" + status.message() + ")");
  std::ranges::sort(names);
  return names;
}

/// The relation source-relation-target between two of these types.
struct relation_ends {
  std::size_t source = 0;
  std::size_t target = 0;
};
/// Throws input_error naming `path`, of that name, unless exactly two types fit.
inline relation_ends ends_of(const std::string& name, std::span<const vertex_type> types,
                             const std::string& path) {
  std::vector<relation_ends> found;
  for (std::size_t s = 0; s < types.size(); ++s)
    for (std::size_t t = 0; t < types.size(); ++t)
      if (name.starts_with(types[s].name + '-') && name.ends_with('-' + types[t].name) &&
          name.size() > types[s].name.size() + types[t].name.size() + 2)
        found.push_back({s, t});
  if (found.size() == 1) return found.front();
  std::string all;
  for (const vertex_type& type : types) all += (all.empty() ? "" : ", ") + type.name;
  fail(path, (found.empty() ? "expected SOURCE-RELATION-TARGET.npy, with two of the types "
                            : "its name has more than one pair of the types ") +
                 all + (found.empty() ? ", which are the folders in vertices" : ""));
}

/// Features of all types (n x f): each type in its own columns, as the identity if it has none.
template <class T>
feature_table block_diagonal(std::span<const feature_table> tables, std::span<const vertex_type> types,
                             std::size_t entries) {
  csr_array<T> all{types.back().rows.end, types.back().columns.end, {0}, {}, {}};
  all.offsets.reserve(static_cast<std::size_t>(all.rows) + 1);
  all.columns.reserve(entries);
  all.values.reserve(entries);
  for (std::size_t t = 0; t < types.size(); ++t) {
    const auto add = [&, first = types[t].columns.begin](global_index column, auto value) {
      if (value == 0) return;
      all.columns.push_back(first + column);
      all.values.push_back(static_cast<T>(value));
    };
    for (global_index row = 0; row < types[t].rows.size(); ++row) {
      tables[t].cols == 0 ? add(row, T(1)) : tables[t].for_row(row, add);
      all.offsets.push_back(static_cast<global_index>(all.columns.size()));
    }
    tables[t].forget();
  }
  return feature_table(std::move(all));
}
/// In double if one of the tables is.
inline feature_table block_diagonal(std::span<const feature_table> tables,
                                    std::span<const vertex_type> types) {
  std::size_t entries = 0;
  bool is_double = false;
  for (std::size_t t = 0; t < types.size(); ++t) {
    if (tables[t].cols == 0) entries += static_cast<std::size_t>(types[t].rows.size());
    for (global_index row = 0; row < tables[t].rows; ++row)
      tables[t].for_row(row, [&]<class T>(global_index, T value) {
        entries += value != 0;
        is_double |= std::same_as<T, double>;
      });
  }
  return is_double ? block_diagonal<double>(tables, types, entries)
                   : block_diagonal<float>(tables, types, entries);
}

/// Weights and features of the edges of all relations, one relation after the other. For the edges in
/// NAME.npy they are in NAME.weight.npy and NAME.features.npy.
class relation_columns {
 public:
  /// The names among `files` that hold edges. Throws input_error for a column without its edges.
  static std::vector<std::string> files_of_edges(const std::filesystem::path& dir,
                                                 const std::vector<std::string>& files) {
    std::vector<std::string> edges;
    for (const std::string& file : files) {
      const std::filesystem::path stem = std::filesystem::path(file).stem();
      const bool is_column = stem.extension() == ".weight" || stem.extension() == ".features";
      if (!is_column) edges.push_back(file);
      if (const std::string needed = stem.stem().string() + ".npy";
          is_column && !std::ranges::binary_search(files, needed))
        fail((dir / file).string(), "needs " + needed);
    }
    return edges;
  }

  /// Reads the columns of the `count` edges in the file `edges`. Returns the other files that were read.
  std::vector<std::filesystem::path> add(const std::filesystem::path& edges, global_index count) {
    const std::string rows = edges.filename().string();
    const std::filesystem::path stem = edges.parent_path() / edges.stem();
    std::vector<std::filesystem::path> read;
    if (const std::string name = stem.string() + ".weight.npy"; is_there(name)) {
      const array<double> more = map_edge_weights(name, count, rows);
      for (std::size_t row = 0; row < more.size(); ++row) require_weight(name, row, more[row]);
      weights_.resize(static_cast<std::size_t>(edges_), 1);
      weights_.insert(weights_.end(), more.begin(), more.end());
      read.push_back(name);
    }
    if (const std::string name = stem.string() + ".features.npy"; is_there(name)) {
      add_features(name, map_edge_features(name, count, rows));
      read.push_back(name);
    }
    edges_ += count;
    return read;
  }

  /// Moves the columns to `data`, after all of its edges have been added.
  void give_to(dataset& data) {
    if (!weights_.empty()) weights_.resize(static_cast<std::size_t>(edges_), 1);
    data.edge_weights = std::move(weights_);
    if (!features_.empty()) data.edge_features = is_double_ ? stacked<double>() : stacked<float>();
  }

 private:
  struct features_from {
    global_index first;  ///< number of its first edge
    feature_table table;
  };

  void add_features(const std::string& name, feature_table table) {
    for (global_index row = 0; row < table.rows; ++row) has_negative(table, row, "edge", name);
    if (features_.empty()) first_file_ = std::filesystem::path(name).filename().string();
    if (!features_.empty() && table.cols != features_.front().table.cols)
      fail(name, "expected " + std::to_string(features_.front().table.cols) + " features of an edge, as " +
                     first_file_ + " has, found the shape " + shape_text({table.rows, table.cols}));
    is_double_ |= read_npy_header(name).descr == "<f8";
    features_.push_back({edges_, std::move(table)});
  }

  template <class T>
  feature_table stacked() const {
    const global_index k = features_.front().table.cols;
    std::vector<T> all(static_cast<std::size_t>(edges_ * k));
    for (const auto& [first, table] : features_) {
      for (global_index row = 0; row < table.rows; ++row)
        table.fill_row(row, std::span(all).subspan(static_cast<std::size_t>((first + row) * k),
                                                   static_cast<std::size_t>(k)));
      table.forget();
    }
    return {edges_, k, std::move(all)};
  }

  global_index edges_ = 0;
  std::vector<double> weights_;  ///< of the first edges; the others have weight 1
  std::vector<features_from> features_;
  std::string first_file_;  ///< the first one with features
  bool is_double_ = false;  ///< whether features are double
};

/// Reads and validates the files of a directory with vertices/ and edges/.
class typed_reader {
 public:
  explicit typed_reader(folder_reading how) : how_(std::move(how)) {}

  dataset read() {
    data_.name = name_of_folder(how_.dir);
    for (const char* name : {"edges.npy", "edge_weight.npy", "edge_features.npy", "edge_type.npy",
                             "features.npy", "features_csr.npz", "labels.npy", "split.npy"})
      if (std::filesystem::exists(how_.dir / name))
        fail((how_.dir / name).string(),
             "is beside vertices, whose edges are in edges/, and what else there is in vertices/TYPE/");
    const std::vector<std::string> types = names_in(how_.dir / "vertices", true);
    relations_ = relation_columns::files_of_edges(how_.dir / "edges", names_in(how_.dir / "edges", false));
    if (types.empty()) fail((how_.dir / "vertices").string(), "has no folder for a type of vertices");
    if (relations_.empty()) fail((how_.dir / "edges").string(), "has no SOURCE-RELATION-TARGET.npy");
    for (const std::string& name : types) count_vertices(name);
    std::vector<feature_table> tables;
    for (const vertex_type& type : std::vector(data_.vertex_types)) tables.push_back(read_vertices(type));
    if (labelled_.empty() && how_.trains())
      fail((how_.dir / "vertices").string(), "has no labels.npy in any type");
    if (how_.reads_features()) {
      data_.features = set_columns(tables);
      data_.vertex_features = block_diagonal(tables, data_.vertex_types);
    }
    tables.clear();
    for (const std::string& name : relations_) read_relation(name);
    columns_.give_to(data_);
    add_note();
    return std::move(data_);
  }

 private:
  std::filesystem::path folder(const std::string& type) const { return how_.dir / "vertices" / type; }

  void count_vertices(const std::string& type) {
    const std::filesystem::path counted = folder(type) / counted_in(folder(type)),
                                count_file = folder(type) / "count.npy";
    const global_index count = vertices_of(counted, how_.unpack_limit);
    if (std::filesystem::exists(count_file) && vertices_of(count_file, how_.unpack_limit) != count)
      fail(count_file.string(), "says another number of vertices than the " + std::to_string(count) +
                                    " rows of " + counted.filename().string());
    data_.vertex_types.push_back({type, {data_.vertices, data_.vertices + count}, {}});
    data_.vertices += count;
  }

  /// The features of a type, or none; its labels and split, if any, are stored among those of all types.
  feature_table read_vertices(const vertex_type& type) {
    const std::filesystem::path dir = folder(type.name);
    const std::string counted = counted_in(dir);
    const bool labels = std::filesystem::exists(dir / "labels.npy");
    const bool features = how_.reads_features() && counted != "count.npy";
    if (!labels && std::filesystem::exists(dir / "split.npy"))
      fail((dir / "split.npy").string(), "is of a type without labels.npy");
    const vertex_data parts =
        features ? (labels && how_.trains() ? vertex_data::features_and_labels : vertex_data::features)
                 : (labels && how_.trains() ? vertex_data::labels : vertex_data::edges);
    dataset mine = dataset_reader({dir, parts, how_.world, how_.threads, {}, how_.unpack_limit, how_.asked},
                                  type.rows.size())
                       .read_type(counted);
    if (!mine.split.empty()) take_labels(mine, type);
    tell(dir);
    return std::move(mine.vertex_features);
  }

  /// Vertices of other types get none: -1, zeros or NaN, and the split 0.
  void take_labels(const dataset& mine, const vertex_type& type) {
    if (!labelled_.empty())
      fail((folder(type.name) / "labels.npy").string(),
           "is of a second type, and one type has labels: " + labelled_ + " has some");
    labelled_ = type.name;
    data_.task = mine.task, data_.classes = mine.classes;
    data_.notes = mine.notes;
    const auto spread = [&]<class T>(const array<T>& values, T none, global_index width) {
      if (values.empty()) return array<T>();
      std::vector<T> all(static_cast<std::size_t>(data_.vertices * width), none);
      std::ranges::copy(values, all.begin() + type.rows.begin * width);
      return array<T>(std::move(all));
    };
    data_.labels = spread(mine.labels, std::int64_t{-1}, 1);
    data_.label_matrix = spread(mine.label_matrix, std::uint8_t{0}, mine.classes);
    data_.values = spread(mine.values, std::numeric_limits<double>::quiet_NaN(), mine.classes);
    data_.split = spread(mine.split, std::uint8_t{0}, 1);
  }

  global_index set_columns(std::span<const feature_table> tables) {
    global_index end = 0;
    for (std::size_t t = 0; t < tables.size(); ++t) {
      vertex_type& type = data_.vertex_types[t];
      type.columns = {end, end + (tables[t].cols > 0 ? tables[t].cols : type.rows.size())};
      end = type.columns.end;
    }
    return end;
  }

  void read_relation(const std::string& file) {
    const std::filesystem::path path = how_.dir / "edges" / file;
    const std::string name = path.stem().string();
    const relation_ends ends = ends_of(name, data_.vertex_types, path.string());
    const mapped_array<std::int64_t> table = map_npy<std::int64_t>(path);
    if (table.shape.size() != 2 || table.shape[1] != 2)
      fail(path.string(), "expected two vertices in each row, found the shape " + shape_text(table.shape));
    const auto global = [&](std::size_t k, const vertex_type& type, const char* what) {
      const std::int64_t v = table.values[k];
      if (v < 0 || v >= type.rows.size())
        fail(path.string(), "row " + std::to_string(k / 2) + " has the " + what + ' ' + std::to_string(v) +
                                ", outside the " + std::to_string(type.rows.size()) + " vertices of " +
                                type.name);
      return type.rows.begin + v;
    };
    std::vector<edge>& edges = data_.edges.edit();
    std::vector<std::int64_t>& types = data_.edge_types.edit();
    edges.reserve(edges.size() + table.values.size() / 2);
    for (std::size_t k = 0; k < table.values.size(); k += 2)
      edges.push_back({global(k, data_.vertex_types[ends.source], "source"),
                       global(k + 1, data_.vertex_types[ends.target], "target")});
    types.resize(edges.size(), data_.relations);
    ++data_.relations;
    data_.relation_names.push_back(name);
    table.values.forget();
    tell(path);
    for (const auto& column : columns_.add(path, table.shape[0])) tell(column);
  }

  static global_index bytes_in(const std::filesystem::path& path) {
    std::error_code status;
    if (!std::filesystem::is_directory(path, status)) {
      const std::uintmax_t bytes = std::filesystem::file_size(path, status);
      return status ? 0 : static_cast<global_index>(bytes);
    }
    global_index all = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path, status)) all += bytes_in(entry.path());
    return all;
  }
  /// Reports that this file, or the files of this folder, have been read.
  void tell(const std::filesystem::path& path) {
    if (!how_.observe) return;
    done_ += bytes_in(path);
    how_.observe(done_, std::max(done_, bytes_in(how_.dir / "vertices") + bytes_in(how_.dir / "edges")));
  }

  /// Notes which rows belong to which type, and the number of each relation.
  void add_note() {
    std::string rows, relations;
    for (const vertex_type& type : data_.vertex_types)
      rows += (rows.empty() ? "" : ", ") + std::to_string(type.rows.begin) + " to " +
              std::to_string(type.rows.end - 1) + ' ' + type.name;
    for (std::size_t r = 0; r < data_.relation_names.size(); ++r)
      relations += (r == 0 ? "" : ", ") + std::to_string(r) + ' ' + data_.relation_names[r];
    data_.notes.push_back("vertices are " + rows + "; relations are " + relations);
  }

  folder_reading how_;
  global_index done_ = 0;               ///< bytes
  std::string labelled_;                ///< the type with labels
  std::vector<std::string> relations_;  ///< files
  relation_columns columns_;
  dataset data_;
};

}  // namespace partita::io::detail

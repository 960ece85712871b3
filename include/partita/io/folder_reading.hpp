// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What readers of data directories share: what was requested, and tables of edges. Needs libzip and POSIX.

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "partita/base/index.hpp"
#include "partita/comm/communicator.hpp"
#include "partita/io/dataset_type.hpp"
#include "partita/io/features.hpp"
#include "partita/io/mapped_features.hpp"
#include "partita/io/mapped_npy.hpp"
#include "partita/io/npy.hpp"
#include "partita/io/npz.hpp"

namespace partita::io::detail {

/// What is read from which directory, and by whom.
struct folder_reading {
  std::filesystem::path dir;
  vertex_data wanted;
  communicator world;
  int threads;
  comm::progress observe;
  std::optional<std::size_t> unpack_limit;
  std::optional<io::task> asked;

  bool trains() const { return wanted == vertex_data::features_and_labels || wanted == vertex_data::labels; }
  bool reads_features() const {
    return wanted == vertex_data::features_and_labels || wanted == vertex_data::features;
  }
};

/// Whether anything has that name; a link that leads nowhere does not count as a missing file.
inline bool is_there(const std::filesystem::path& path) {
  std::error_code status;
  return std::filesystem::symlink_status(path, status).type() != std::filesystem::file_type::not_found;
}

/// The weights in the file `name` of `edges` edges, the rows of the file `rows`. Throws input_error for
/// another shape.
inline array<double> map_edge_weights(const std::string& name, global_index edges, const std::string& rows) {
  const npy_header header = read_npy_header(name);
  if (header.shape.size() != 1 || header.shape.front() != edges)
    fail(name, "expected " + std::to_string(edges) + " weights, one for each row of " + rows +
                   ", found the shape " + shape_text(header.shape));
  return header.descr == "<f4" ? converted<double>(read_npy<float>(name)) : map_npy<double>(name).values;
}
inline void require_weight(const std::string& name, std::size_t row, double weight) {
  if (!std::isfinite(weight) || weight < 0)
    fail(name, "the weight of row " + std::to_string(row) + " is " + std::to_string(weight) +
                   ", expected a finite number that is not negative");
}

/// The features of edges likewise.
inline feature_table map_edge_features(const std::string& name, global_index edges, const std::string& rows) {
  feature_table table = map_features(name, "edge");
  if (table.rows != edges || table.cols == 0)
    fail(name, "expected a row of features for each of the " + std::to_string(edges) + " rows of " + rows +
                   ", found the shape " + shape_text({table.rows, table.cols}));
  return table;
}

}  // namespace partita::io::detail

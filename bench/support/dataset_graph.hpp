// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The graph of a dataset directory.

#include <filesystem>
#include <memory>

#include "graphs.hpp"
#include "partita/io/npy.hpp"

namespace bench {

/// The edges in the dataset directory `dir`: entry (target, source) is 1. Throws input_error.
inline graph dataset_graph(const std::filesystem::path& dir) {
  const auto edges = std::make_shared<const partita::io::npy_array<std::int64_t>>(
      partita::io::read_npy<std::int64_t>(dir / "edges.npy"));  // [E, 2]
  const auto share = [edges](int rank, int ranks) {
    const partita::interval mine = partita::comm::share_of(edges->rows(), rank, ranks);
    entries list;
    for (auto e = static_cast<std::size_t>(mine.begin); e < static_cast<std::size_t>(mine.end); ++e)
      list.push_back({edges->values[2 * e + 1], edges->values[2 * e], 1.0f});
    return list;
  };
  return {dir.filename().string(), partita::io::read_npy_header(dir / "labels.npy").shape.at(0), share};
}

}  // namespace bench

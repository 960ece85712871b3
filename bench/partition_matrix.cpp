// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <filesystem>
#include <memory>
#include <utility>

#include "partita/base/error.hpp"
#include "partita/comm/cores.hpp"
#include "support/partition_cases.hpp"

#if defined(PARTITA_WITH_NPZ) && defined(PARTITA_WITH_ZLIB)
#include "../examples/convert/graph.hpp"

bench::graph bench::matrix_file(const std::string& path) {
  ::graph read =
      read_graph(path, format_of(path, true), {}, partita::comm::count(partita::comm::usable_cores()));
  if (read.shape.rows != read.shape.cols)
    throw input_error(path + ": the matrix is " + to_string(read.shape) + ", not square");
  if (read.edges.empty()) throw input_error(path + ": has no entries");
  const global_index n = read.shape.rows;
  const std::filesystem::path plain = std::filesystem::absolute(path).lexically_normal();
  const std::string name = (plain.has_filename() ? plain : plain.parent_path()).filename().string();
  const auto a = std::make_shared<const ::graph>(std::move(read));
  const auto share = [a](int rank, int ranks) {
    const interval mine = comm::share_of(static_cast<global_index>(a->edges.size()), rank, ranks);
    entries list;
    list.reserve(static_cast<std::size_t>(mine.size()));
    for (auto e = static_cast<std::size_t>(mine.begin); e < static_cast<std::size_t>(mine.end); ++e)
      list.push_back({a->edges[e].source, a->edges[e].target,
                      a->weights.empty() ? 1.0f : static_cast<float>(a->weights[e])});
    return list;
  };
  return {name, n, share};
}
#else
bench::graph bench::matrix_file(const std::string& path) {
  throw error(path + ": this program was built without libzip or zlib, which readers of matrices need");
}
#endif

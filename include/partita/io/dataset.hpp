// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Reads a dataset directory: the edges, features, labels and split of one graph. Needs libzip and POSIX.

#include <cstddef>
#include <filesystem>
#include <optional>

#include "partita/base/index.hpp"
#include "partita/comm/communicator.hpp"
#include "partita/comm/self.hpp"
#include "partita/io/dataset_reader.hpp"
#include "partita/io/dataset_type.hpp"
#include "partita/io/typed_reader.hpp"

namespace partita::io {

/// The graph in the directory `dir`: edges.npy (int64 or uint64 [E, 2], source and target), features_csr.npz
/// or else features.npy (float32 or float64 [n, f], precision preserved), labels.npy, split.npy (uint8 [n],
/// see split_part) and, optionally, in the order of edges.npy, edge_weight.npy (float32 or float64 [E]),
/// edge_features.npy (the same, [E, k], precision preserved) and edge_type.npy (whole numbers [E], types
/// from 0). Without features, n is the number of labels or, with vertex_data::edges, `vertices`. Files in
/// .npy format are mapped: a rank reads only what it asks the dataset for.
///
/// Unless `as` gives the task, it follows from labels.npy: classes if it has whole numbers [n] or [n, 1],
/// -1 for unlabelled vertices with split 0; labels if it is a 0/1 matrix [n, C] of whole numbers; values if
/// it has float32 or float64 [n] or [n, C], nan for none. C is the largest class + 1, or the number of
/// columns.
///
/// A directory with vertices/ has vertices of several types instead: see dataset::vertex_types. Each type
/// has a folder vertices/TYPE with its features, labels and split; without features, count.npy (int64) gives
/// the number of its vertices. One type has labels. The edges of a relation are in
/// edges/SOURCE-RELATION-TARGET.npy (int64 or uint64 [E, 2], numbers within the types); relations are
/// numbered in the order of these names. Optionally, there are SOURCE-RELATION-TARGET.weight.npy ([E]) and
/// .features.npy ([E, k], the same k for all relations that have one): edges of a relation without them have
/// the weight 1, and zeros. Every rank holds all of these.
///
/// Collective over `world`, whose ranks have the same directory: each checks its share of the rows with
/// `threads` threads. `observe` receives the number of bytes checked so far. An array in features_csr.npz
/// may have `unpack_limit` bytes, or as many as most_unpacked says. What travels: all-reduces of one
/// element. Throws input_error naming the file, and the offending row if any, if a file is missing or
/// malformed, if the sizes of two files disagree, and for values that cannot be trained on.
inline dataset load_dataset(const std::filesystem::path& dir, vertex_data wanted, const communicator& world,
                            int threads = 1, global_index vertices = 0, const comm::progress& observe = {},
                            std::optional<std::size_t> unpack_limit = {}, std::optional<task> as = {}) {
  const detail::folder_reading how{dir, wanted, world, threads, observe, unpack_limit, as};
  return detail::has_vertex_types(dir) ? detail::typed_reader(how).read()
                                       : detail::dataset_reader(how, vertices).read();
}
/// For one rank.
inline dataset load_dataset(const std::filesystem::path& dir,
                            vertex_data wanted = vertex_data::features_and_labels, global_index vertices = 0,
                            std::optional<std::size_t> unpack_limit = {}, std::optional<task> as = {}) {
  return load_dataset(dir, wanted, self::world(), 1, vertices, {}, unpack_limit, as);
}

}  // namespace partita::io

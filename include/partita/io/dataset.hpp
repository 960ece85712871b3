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
#include "partita/io/labelled_graph.hpp"
#include "partita/io/typed_reader.hpp"

namespace partita::io {

/// The graph in the directory `dir`: edges.npy (int64 or uint64 [E, 2], source and target), features_csr.npz
/// or else features.npy (float32 or float64 [n, f], precision preserved), labels.npy, split.npy (uint8 [n],
/// see split_part) and, optionally, edge_weight.npy (float32 or float64 [E]) and edge_features.npy (the same,
/// [E, k], precision preserved) and edge_type.npy (whole numbers [E], types from 0), in the order of
/// edges.npy. Without features, n is the number of labels, or with vertex_data::edges `vertices`. Files in
/// .npy format are mapped: a rank reads of them what it asks the dataset for.
///
/// The task, unless `as` says which, follows from labels.npy: classes where it has whole numbers [n] or [n,
/// 1], -1 for unlabelled vertices with split 0; labels where it is a 0/1 matrix [n, C] of whole numbers;
/// values where it has float32 or float64 [n] or [n, C], nan for none. C is the largest class + 1, or the
/// number of columns.
///
/// A directory with vertices/ has vertices of several types instead: see dataset::vertex_types. Each has a
/// folder vertices/TYPE with its features, labels and split, and without features count.npy (int64, how many
/// there are); one type has labels. edges/SOURCE-RELATION-TARGET.npy (int64 or uint64 [E, 2], numbers within
/// the types) are the edges of a relation, which are numbered in the order of the files' names.
/// Beside them may be SOURCE-RELATION-TARGET.weight.npy ([E]) and .features.npy ([E, k], k the same for all
/// relations that have some): edges of a relation without have the weight 1, and zeros. Every rank holds all
/// of them.
///
/// Collective over `world`, whose ranks have the same directory: each checks its share of the rows, with so
/// many threads. `observe` is told the bytes of the files that have been checked. An array in
/// features_csr.npz may have `unpack_limit` bytes, or as many as most_unpacked says. What travels:
/// all-reduces of one element. Throws input_error naming the file, and the offending row if any, when a file
/// is missing or malformed, when the sizes of two files disagree, and for values that cannot be trained on.
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

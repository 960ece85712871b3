// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A graph, or a sparse matrix, between two files.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/io/edge.hpp"
#include "partita/io/labelled_graph.hpp"

/// What a file is, by its name or by what a folder has.
enum class format { matrix_market, edges, packed_edges, metis, npz, npy, folder, ogb, blocked };

/// The entry (u, v) of the matrix is the weight of the edge u -> v.
struct graph {
  partita::matrix_shape shape;
  std::vector<partita::io::edge> edges;
  std::vector<double> weights;               ///< one per edge; empty when all are 1
  std::vector<partita::global_index> ids;    ///< of the vertices, ascending; empty when they are 0, 1, ...
  std::optional<partita::io::dataset> data;  ///< of an OGB folder: its features, labels and split
};

/// An upper bound of what the conversion holds in memory at once.
struct need {
  partita::global_index entries = 0;
  double bytes = 0;
};

/// Bytes as a sentence has them: 1.5 GiB.
std::string in_words(double bytes);

/// Throws usage_error where the name has no ending of a format. `is_input`: a folder may be an OGB folder.
format format_of(const std::string& path, bool is_input);

/// From headers, the sizes of files, and the lines of an edge list, which are counted. Throws input_error.
need memory_needed(const std::string& in, format from, format to, bool undirected, int threads);

/// `undirected`: the inverse of every edge follows, which an OGB folder has once. Throws input_error.
graph read_graph(const std::string& path, format from, bool undirected, int threads);

/// Writes the graph, and beside it the ids of its vertices where the format numbers them anew; files of a
/// folder besides edges are those of `source`, if that is a folder. `parts`: blocks of a .part. Calls
/// lose(what) for what the format cannot hold. Throws input_error where it cannot hold the graph.
void write_graph(const std::string& path, format to, graph g, const std::string& source, int parts,
                 const std::function<void(const std::string&)>& lose);

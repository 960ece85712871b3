// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A graph, or a sparse matrix, between two files.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/io/dataset_type.hpp"
#include "partita/io/edge.hpp"

/// What a file is, by its name or by what a folder has.
enum class format { matrix_market, edges, packed_edges, metis, npz, npy, folder, ogb, ogb_types, blocked };

/// The entry (u, v) of the matrix is the weight of the edge u -> v.
struct graph {
  partita::matrix_shape shape;
  std::vector<partita::io::edge> edges;
  std::vector<double> weights;                  ///< one per edge; empty when all are 1
  partita::io::feature_table edge_features;     ///< a row for each edge; none in most files
  partita::io::array<std::int64_t> edge_types;  ///< of each edge; empty in most files
  std::vector<partita::global_index> ids;       ///< of the vertices, ascending; empty when they are 0, 1, ...
  std::optional<partita::io::dataset> data;     ///< of an OGB folder or of tables: features, labels and split
  std::optional<partita::io::given_links> links;  ///< of an OGB folder of links
};

/// What is done to the edges, in this order.
struct changes {
  bool undirected = false;  ///< the inverse of every edge that is no loop follows
  bool simple = false;  ///< loops are dropped, and repeated edges become one, with the sum of their weights
  bool unweighted = false;     ///< weights, and all columns of an edge list after the ids, are ignored
  bool edge_features = false;  ///< columns of an edge list after the ids are features of edges, no weights
  bool edge_types = false;     ///< the column of one after the ids is the type of an edge, before features
  bool largest_component = false;  ///< other vertices are left out; at last
};

/// An upper bound of what the conversion holds in memory at once.
struct need {
  partita::global_index entries = 0;
  double bytes = 0;
};

/// Bytes as a sentence has them: 1.5 GiB.
std::string in_words(double bytes);

/// Throws error where a few numbers for each row of a matrix take more than the memory that is free.
void require_memory_for_rows(partita::matrix_shape shape);

/// Throws usage_error where the name has no ending of a format. `is_input`: a folder may be an OGB folder.
format format_of(const std::string& path, bool is_input);

/// From headers; the lines of an edge list, which are counted, for which what is packed is unpacked piece by
/// piece; and the largest vertex of edges in a .npy file. Throws input_error.
need memory_needed(const std::string& in, format from, format to, changes wanted, int threads,
                   std::optional<std::size_t> unpack_limit);

/// The number of vertices, which the largest one in a .npy file of edges says; read piece by piece. Throws
/// input_error where they are no edges.
partita::global_index vertices_of_npy(const std::string& path);

/// Whether a folder has features, labels or a split.
bool has_vertex_files(const std::string& path);

/// The files of a folder that say how many vertices its graph has, and their numbers. Throws input_error.
std::vector<std::pair<std::string, partita::global_index>> counted_vertices(const std::string& path);

/// Where all weights are 1 they stay so. Throws input_error.
graph read_graph(const std::string& path, format from, changes wanted, int threads,
                 std::optional<std::size_t> unpack_limit = {});

/// Tables in CSV with a row for each vertex; "" is none.
struct vertex_tables {
  std::string features;
  std::string labels;  ///< one column of classes, -1 or nothing where there is none, or several of 0 and 1
  std::string split;   ///< one column as split.npy has it; without one, it is drawn at random

  bool any() const { return !(features + labels + split).empty(); }
};

/// What these add to what a conversion holds in memory; 0 for what cannot be read.
double table_bytes(const vertex_tables& tables);

/// What becomes of the vertices of a table that the graph does not have.
enum class isolated_vertices { added, refused, left_out };

/// Gives the graph these features, labels and split. Rows are of vertices in the order of their ids from 0,
/// or of those whose ids are in the first column; a table of labels or of the split that has ids may have
/// some vertices only. Calls say(line) for how ids were read, and for a split that was drawn for `folder`.
/// Throws input_error with file and line.
void add_vertices(graph& g, const vertex_tables& files, isolated_vertices isolated, const std::string& source,
                  const std::string& folder, int threads, const std::function<void(const std::string&)>& say);

/// write(), into a folder. Where that fails, a folder that was not there before is removed: one with some of
/// its files could be taken for another graph.
void whole_or_none(const std::filesystem::path& dir, const std::function<void()>& write);

void write_edges(const std::filesystem::path& path, std::span<const partita::io::edge> edges);

/// In the precision of the table, which has a row.
void write_edge_features(const std::filesystem::path& path, const partita::io::feature_table& table);

/// Whether a folder has links that were taken out of its graph.
bool has_links(const std::string& path);

/// Features, labels and the split, into a folder that is there; or count.npy, if `counted` and there are no
/// features.
void write_vertices(const std::filesystem::path& dir, const partita::io::dataset& data, bool counted = false);

/// Makes a data directory of several types of vertices of such an OGB folder, one type and one relation at a
/// time. Calls say(line) for each. Throws input_error where the directory has files already.
void convert_types(const std::string& in, const std::string& out, int threads,
                   std::optional<std::size_t> unpack_limit,
                   const std::function<void(const std::string&)>& say);

/// Writes the part of each vertex, a line each, as --partition given of train reads it. Calls say(line) for
/// how much they cut and exchange. Throws input_error where there is no graph, or no such file can be
/// written.
void write_parts(const std::string& path, const graph& g, const std::string& partitioner, int parts,
                 const std::function<void(const std::string&)>& say);

/// Writes the graph, and then beside it the ids of its vertices where the format numbers them anew; files of
/// a folder besides edges are those of `source`, if that is a folder. What the output or the folder had
/// before is removed: ids, weights, features, labels and split that this graph does not have. `parts`: blocks
/// of a .part. Calls say(line) for what the format cannot hold, and for ids and removed files. Returns the
/// shape that the output has. Throws input_error where it cannot hold the graph.
partita::matrix_shape write_graph(const std::string& path, format to, graph g, const std::string& source,
                                  int parts, const std::function<void(const std::string&)>& say);

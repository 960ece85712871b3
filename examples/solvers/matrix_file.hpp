// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sparse matrices and graphs in files.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/base/triplet.hpp"

/// The bytes to which a packed file may be unpacked, see partita::io::most_unpacked.
using unpack_limit = std::optional<std::size_t>;

/// A matrix as a file has it.
struct matrix_file {
  std::string path;
  partita::matrix_shape shape;
  std::vector<partita::triplet<double>> entries;  ///< in any order; those at one place add up
  std::vector<partita::global_index> ids;         ///< of the vertices, ascending, in an edge list
  partita::global_index first = 0;                ///< what the file calls row 0, where it has no ids
  bool is_edge_list = false;

  /// What the file calls row i.
  partita::global_index id(partita::global_index i) const;
  /// The file and what is wrong with it. Throws input_error.
  [[noreturn]] void fail(const std::string& what) const;
};

/// The matrix in a file, by the ending of its name: .npz, of scipy.sparse.save_npz in csr, csc or coo; .mtx,
/// Matrix Market; otherwise an edge list, where the edge u -> v is its weight or 1 at (u, v). The last two
/// may end in .gz. Throws input_error naming the file and, in text, the line.
matrix_file read_matrix(const std::string& path, unpack_limit limit);

/// The same. Throws input_error unless it is square.
matrix_file read_square(const std::string& path, unpack_limit limit);

/// Adds up the entries at one place and drops zeros. Throws input_error unless A = A^T.
void require_symmetric(matrix_file& a);

/// The weights of an undirected graph, each edge at (u, v) and (v, u), without loops. Of an edge list: 1 for
/// u -> v, v -> u or both, given once or often. Of another matrix: the absolute values off its diagonal.
/// Throws input_error when that matrix is not symmetric.
matrix_file read_graph(const std::string& path, unpack_limit limit);

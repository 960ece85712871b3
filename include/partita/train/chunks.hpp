// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The vertices of a graph in chunks, which flow through the stages of a pipeline.

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "partita/io/reordered.hpp"
#include "partita/train/options.hpp"

namespace partita::nn {

/// A dataset whose vertices are in the order of their chunks within each rank's block of rows, for all ranks
/// of one mesh. Chunk c is a part of every block. Row i of a chunk: first the rows of rank 0's block, then
/// those of rank 1's. The same on every rank.
class chunked_vertices {
 public:
  /// `rows`: of the vertices of `data`; `chunk_of` (n): the chunk, in [0, chunks), of each. Local. Throws
  /// shape_error as io::reordered.
  chunked_vertices(io::dataset data, const blocking& rows, std::span<const int> chunk_of, int chunks)
      : rows_(rows) {
    const auto ranks = static_cast<int>(rows.shape().size());
    std::vector<int> parts(chunk_of.begin(), chunk_of.end());
    for (std::size_t v = 0; v < parts.size() && chunks > 0; ++v) {
      if (parts[v] < 0 || parts[v] >= chunks)
        base::throw_error<shape_error>(
            {data.name, ": vertex ", v, " is in chunk ", parts[v], " of ", chunks});
      parts[v] += chunks * static_cast<int>(rows.owner(vertex_rows.rows, static_cast<global_index>(v)));
    }
    io::reordered_dataset sorted = io::reordered(std::move(data), parts, ranks * chunks);
    data_ = std::move(sorted.data);
    vertices_ = std::move(sorted.old_number);
    begins_.assign(1, 0);
    for (const global_index size : sorted.sizes) begins_.push_back(begins_.back() + size);
    for (int c = 0; c < chunks; ++c) {
      std::vector<global_index> sizes;
      for (int r = 0; r < ranks; ++r) sizes.push_back(part(r, c).size());
      chunks_.push_back(blocking::given(std::move(sizes), rows.shape(), nesting::rows));
    }
  }

  const io::dataset& data() const { return data_; }
  /// Of all vertices.
  const blocking& rows() const { return rows_; }
  std::size_t count() const { return chunks_.size(); }
  /// Of chunk c.
  const blocking& rows(std::size_t c) const { return chunks_[c]; }

  /// Rows of the whole that are chunk c's part of the block of rank r; the same within that block.
  interval part(int r, std::size_t c) const {
    const std::size_t at = static_cast<std::size_t>(r) * chunk_count() + c;
    return {begins_[at], begins_[at + 1]};
  }
  std::vector<global_index> part_rows(int r, std::size_t c) const {
    std::vector<global_index> found(static_cast<std::size_t>(part(r, c).size()));
    std::iota(found.begin(), found.end(), part(r, c).begin);
    return found;
  }
  interval local_part(int r, std::size_t c) const {
    const global_index begin = begins_[static_cast<std::size_t>(r) * chunk_count()];
    return {part(r, c).begin - begin, part(r, c).end - begin};
  }
  /// Of a row of the whole: its chunk, and its row there.
  std::pair<std::size_t, global_index> place(global_index row) const {
    const auto next = std::upper_bound(begins_.begin(), begins_.end(), row);
    const auto at = static_cast<std::size_t>(next - begins_.begin() - 1);
    const std::size_t c = at % chunk_count(), r = at / chunk_count();
    return {c, row - begins_[at] +
                   chunks_[c].block(vertex_rows.rows, rows_.shape().at(static_cast<int>(r))).begin};
  }
  /// The vertex, in the order that the dataset was given in, of each row of the whole.
  const std::vector<global_index>& vertices() const { return vertices_; }
  /// Of each row of chunk c.
  std::vector<global_index> vertices(std::size_t c) const {
    std::vector<global_index> of_rows;
    for (int r = 0; r < static_cast<int>(rows_.shape().size()); ++r)
      for (const global_index v : part_rows(r, c)) of_rows.push_back(vertices_[static_cast<std::size_t>(v)]);
    return of_rows;
  }

 private:
  std::size_t chunk_count() const {
    return (begins_.size() - 1) / static_cast<std::size_t>(rows_.shape().size());
  }

  io::dataset data_;
  blocking rows_;
  std::vector<blocking> chunks_;
  std::vector<global_index> begins_, vertices_;
};

/// The chunk of each vertex (n): consecutive vertices of each rank's block of rows, in `chunks` chunks of
/// nearly equal weight. Local.
inline std::vector<int> weighted_chunks(const blocking& rows, std::span<const global_index> weights,
                                        int chunks) {
  std::vector<int> chunk_of(static_cast<std::size_t>(rows.size()));
  const mesh_shape cut{chunks, 1, 1};
  for (int r = 0; r < static_cast<int>(rows.shape().size()); ++r) {
    const interval block = rows.block(vertex_rows.rows, rows.shape().at(r));
    const auto mine =
        weights.subspan(static_cast<std::size_t>(block.begin), static_cast<std::size_t>(block.size()));
    const blocking parts = blocking::balanced(mine, cut, nesting::rows);
    for (global_index i = 0; i < block.size(); ++i)
      chunk_of[static_cast<std::size_t>(block.begin + i)] = static_cast<int>(parts.owner(axis::row, i));
  }
  return chunk_of;
}

/// The chunks that the options ask for, some of them empty where there are more than vertices. Local. Throws
/// shape_error for another number of given chunks than vertices, and error where chunks of a partitioner are
/// not given.
inline std::vector<int> vertex_chunks(const io::dataset& data, const blocking& rows,
                                      const pipeline_options& options) {
  const auto n = static_cast<std::size_t>(data.vertices);
  if (!options.chunk_of.empty()) {
    if (options.chunk_of.size() != n)
      base::throw_error<shape_error>(
          {data.name, ": ", options.chunk_of.size(), " chunk numbers for ", data.vertices, " vertices"});
    return options.chunk_of;
  }
  if (options.cut == chunk_cut::partitioned) throw error("chunks of a partitioner need their numbers");
  std::vector<global_index> weights(n, 1);
  if (options.cut == chunk_cut::nonzeros)
    for (const auto& e : data.edges) ++weights[static_cast<std::size_t>(e.target)];
  return weighted_chunks(rows, weights, options.chunk_count());
}

}  // namespace partita::nn

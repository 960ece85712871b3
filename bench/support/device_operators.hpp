#pragma once
/// Graph operators from a graph that was made on the device. The library's own way begins with entries in
/// host memory; that of a hundred million of them takes longer than a benchmark.

#include <array>

#include "device_graphs.hpp"
#include "partita/train/graph_data.hpp"

namespace bench {

/// The key of an entry in this rank's row of tiles.
struct key_of_tile {
  static constexpr std::size_t most = 64;  ///< what a kernel takes as arguments is limited

  partita::gpu::key_space space;
  const std::uint64_t* keys;
  std::uint64_t vertices, first_row;
  std::array<std::uint64_t, most> begins;  ///< the first column of each tile, ascending

  constexpr std::uint64_t operator()(std::int64_t e) const {
    const std::uint64_t row = keys[e] / vertices, col = keys[e] % vertices;
    std::uint64_t tile = 0;
    while (tile + 1 < space.tiles && begins[tile + 1] <= col) ++tile;
    return space.key(tile, row - first_row, col - begins[tile]);
  }
};

/// A graph and the numbers of entries in its rows, on the device of one rank.
class device_graph {
 public:
  /// `loops` adds the diagonal. Waits for the device.
  device_graph(const graph_counts& counts, bool rmat, bool loops)
      : vertices_(counts.vertices), keys_(make_graph(queue_, counts, rmat)) {
    if (loops) keys_ = with_loops(queue_, keys_, vertices_);
    offsets_ = row_offsets(queue_, keys_, vertices_);
  }

  std::size_t nonzeros() const { return keys_.size(); }

  /// This rank's tiles under a layout that cuts no columns among ranks, in memory of the queue of `m`. Waits
  /// for the device.
  std::shared_ptr<const partita::tiles<float, cuda>> tiles_of(const partita::mesh<cuda>& m,
                                                              const partita::blocking& cuts,
                                                              partita::cut layout, weighting how) const {
    const partita::interval rows = cuts.block(layout.rows, m.at());
    auto result = std::make_shared<partita::tiles<float, cuda>>();
    result->rows = partita::narrow(rows.size(), "the number of rows of a sparse block");
    std::array<std::uint64_t, key_of_tile::most> begins{};
    global_index widest = 1;
    partita::coordinates at = m.at();
    for (at.row = 0; at.row < (layout.rows.contains(partita::axis::row) ? m.shape().row : 1); ++at.row) {
      const partita::interval c = cuts.block(partita::column_cut(layout), at);
      begins.at(result->count()) = static_cast<std::uint64_t>(c.begin);
      result->widths.push_back(partita::narrow(c.size(), "the number of columns of a sparse tile"));
      widest = std::max(widest, c.size());
    }

    const auto first = read(queue_, offsets_.data() + rows.begin);
    const auto size = static_cast<std::size_t>(read(queue_, offsets_.data() + rows.end) - first);
    const auto n = static_cast<std::uint64_t>(vertices_);
    const std::uint64_t* const mine = keys_.data() + first;
    const partita::gpu::key_space space(result->count(), result->rows, widest);
    const auto made = partita::gpu::with_policy(queue_, [&](const auto& policy) {
      key_list keys(queue_, size);
      buffer<float, cuda> values(queue_, size);
      thrust::tabulate(policy, keys.data(), keys.data() + size,
                       key_of_tile{space, mine, n, static_cast<std::uint64_t>(rows.begin), begins});
      thrust::tabulate(policy, values.data(), values.data() + size,
                       weight_of_entry{mine, offsets_.data(), n, how});
      return partita::gpu::compress_keys(policy, queue_, space, std::move(keys), std::move(values));
    });
    result->nonzeros = made.nonzeros;
    result->structure = moved(m.queue(), made.structure);
    result->values = moved(m.queue(), made.values);
    return result;
  }

 private:
  /// A copy in memory of another queue.
  template <class U>
  buffer<U, cuda> moved(const queue<cuda>& to, const buffer<U, cuda>& from) const {
    queue_.synchronize();
    buffer<U, cuda> there(to, from.size());
    copy(to, from.span(), there.span());
    return there;
  }

  queue<cuda> queue_;  ///< of its own: what making takes is given back at the end, and not counted
  global_index vertices_;
  key_list keys_;
  buffer<partita::local_index, cuda> offsets_;
};

/// Makes the operator of GCN, or of SAGE's mean, from a graph made on the device, whatever entries it is
/// given, under a policy that cuts no columns of A. `nonzeros` becomes the graph's number of entries.
template <class Policy>
partita::operator_maker<float, cuda> operators_on_device(const partita::mesh<cuda>& m, graph_counts counts,
                                                         bool rmat, bool mean, std::int64_t& nonzeros) {
  constexpr partita::cut layout = Policy::sparse_layout::value;
  static_assert(layout.cols.empty(), "the tiles of a rank must cover all columns");
  const auto cut = [=, &nonzeros](global_index n, const auto&) {
    const device_graph graph(counts, rmat, !mean);
    nonzeros = static_cast<std::int64_t>(graph.nonzeros());
    const auto cuts = partita::blocking::even(n, m.shape(), partita::nesting::rows);
    const auto forward = graph.tiles_of(m, cuts, layout, mean ? weighting::row : weighting::both);
    const auto backward = mean ? graph.tiles_of(m, cuts, layout, weighting::column) : forward;
    return partita::graph_operator<float, cuda>(m, cuts, cuts, layout, Policy::dense_layout::value, forward,
                                                backward);
  };
  return {cut, cut};
}

}  // namespace bench

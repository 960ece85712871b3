// SPDX-License-Identifier: Apache-2.0
/// A graph is the sorted list of the keys row * vertices + column of its entries, with both directions of
/// every edge and no duplicates.

#include <array>
#include <bit>
#include <cmath>
#include <thrust/copy.h>
#include <thrust/count.h>
#include <thrust/inner_product.h>
#include <thrust/set_operations.h>
#include <thrust/unique.h>

#include "device_compress.hpp"
#include "device_models.hpp"
#include "graphs.hpp"

namespace {

using namespace bench;
using bench::cuda_device;
using key_list = buffer<std::uint64_t, cuda_device>;

/// Entry 2 e is an edge, entry 2 e + 1 the same in the opposite direction.
struct random_entry {
  std::uint64_t word;
  global_index vertices;
  int scale;  ///< number of R-MAT levels; 0 for a uniform graph

  constexpr std::uint64_t operator()(std::int64_t number) const {
    const std::int64_t e = number / 2;
    global_index ends[2] = {};
    if (scale == 0)
      for (int side = 0; side < 2; ++side)
        ends[side] = static_cast<global_index>(partita::base::random_bits(word, e, side) %
                                               static_cast<std::uint64_t>(vertices));
    else
      fall(e, ends);
    const bool swapped = number % 2 != 0;
    return static_cast<std::uint64_t>(ends[swapped ? 1 : 0] * vertices + ends[swapped ? 0 : 1]);
  }

 private:
  /// Quadrants .57, .19, .19 and .05, with 16 random bits per level. The 2^scale labels are scaled down to
  /// the vertices, so that some vertices have two.
  constexpr void fall(std::int64_t e, global_index (&ends)[2]) const {
    std::uint64_t bits = 0;
    for (int level = 0; level < scale; ++level) {
      bits = level % 4 == 0 ? partita::base::random_bits(word, e, level) : bits >> 16;
      const auto u = static_cast<std::uint32_t>(bits & 0xffff);
      ends[0] = 2 * ends[0] + (u >= 49807);
      ends[1] = 2 * ends[1] + ((u >= 37356 && u < 49807) || u >= 62259);
    }
    for (global_index& end : ends) end = renamed(end, scale) * vertices >> scale;
  }
};

/// Selects a share of the edges, in both directions.
struct is_kept {
  std::uint64_t word;
  std::uint64_t vertices;
  double share;

  constexpr bool operator()(std::uint64_t key) const {
    const auto row = static_cast<global_index>(key / vertices),
               col = static_cast<global_index>(key % vertices);
    return partita::base::random_uniform(word, row < col ? row : col, row < col ? col : row) < share;
  }
};

/// Only the first `count` of `keys`.
key_list cut_to(const device_queue<cuda_device>& q, const key_list& keys, std::size_t count) {
  key_list result(q, count);
  copy(q, keys.span().first(count), result.span());
  return result;
}

/// As many entries as `counts` requests, to within a few thousand; fewer if ten rounds of sampling do not
/// yield enough distinct ones. Synchronises with the device.
key_list make_graph(const device_queue<cuda_device>& q, const graph_counts& counts, bool rmat,
                    std::uint64_t seed = 1) {
  const std::uint64_t word = partita::random_key{.seed = seed}.word();
  const int scale = rmat ? std::bit_width(static_cast<std::uint64_t>(counts.vertices - 1)) : 0;
  return with_policy(q, [&](const auto& policy) {
    global_index edges = counts.nonzeros / 2 + 1;
    for (int round = 1;; ++round) {
      key_list keys(q, 2 * static_cast<std::size_t>(edges));
      std::uint64_t *const begin = keys.data(), *end = begin + keys.size();
      thrust::tabulate(policy, begin, end, random_entry{word, counts.vertices, scale});
      thrust::sort(policy, begin, end);
      end = thrust::unique(policy, begin, end);
      const global_index missing = counts.nonzeros - (end - begin);
      if (missing > 0 && round < 10) {
        edges += missing * 5 / 8 + 1;
        continue;
      }
      if (missing >= 0) return cut_to(q, keys, static_cast<std::size_t>(end - begin));
      const is_kept kept{partita::random_key{.seed = seed, .step = 1}.word(),
                         static_cast<std::uint64_t>(counts.vertices),
                         static_cast<double>(counts.nonzeros) / static_cast<double>(end - begin)};
      key_list result(q, static_cast<std::size_t>(thrust::count_if(policy, begin, end, kept)));
      thrust::copy_if(policy, begin, end, result.data(), kept);
      return result;
    }
  });
}

/// The key of diagonal entry v.
struct key_of_loop {
  std::uint64_t vertices;

  constexpr std::uint64_t operator()(std::int64_t v) const {
    return static_cast<std::uint64_t>(v) * (vertices + 1);
  }
};

/// The entries plus the whole diagonal. Synchronises with the device.
key_list with_loops(const device_queue<cuda_device>& q, const key_list& keys, global_index vertices) {
  return with_policy(q, [&](const auto& policy) {
    const auto n = static_cast<std::size_t>(vertices);
    key_list loops(q, n), all(q, keys.size() + n);
    thrust::tabulate(policy, loops.data(), loops.data() + n, key_of_loop{n});
    const auto end = thrust::set_union(policy, keys.data(), keys.data() + keys.size(), loops.data(),
                                       loops.data() + n, all.data());
    return cut_to(q, all, static_cast<std::size_t>(end - all.data()));
  });
}

struct first_key_of_row {
  std::uint64_t vertices;

  constexpr std::uint64_t operator()(std::int64_t row) const {
    return static_cast<std::uint64_t>(row) * vertices;
  }
};

/// The offset of each row in `keys`; one more than there are rows.
buffer<local_index, cuda_device> row_offsets(const device_queue<cuda_device>& q, const key_list& keys,
                                             global_index vertices) {
  partita::base::to_local(static_cast<global_index>(keys.size()), "the number of entries of a graph");
  const std::size_t size = static_cast<std::size_t>(vertices) + 1;
  buffer<local_index, cuda_device> offsets(q, size);
  with_policy(q, [&](const auto& policy) {
    key_list firsts(q, size);
    thrust::tabulate(policy, firsts.data(), firsts.data() + size,
                     first_key_of_row{static_cast<std::uint64_t>(vertices)});
    thrust::lower_bound(policy, keys.data(), keys.data() + keys.size(), firsts.data(), firsts.data() + size,
                        offsets.data());
  });
  q.synchronize();
  return offsets;
}

/// The weights of a graph's entries, from the row counts.
enum class weighting : std::uint8_t {
  both,    ///< 1 / sqrt(row count * column count), as in GCN
  row,     ///< 1 / row count: a mean
  column,  ///< 1 / column count: the transpose of a mean
  one
};

/// The value of an entry, given its key.
struct weight_of_entry {
  const std::uint64_t* keys;
  const local_index* offsets;
  std::uint64_t vertices;
  weighting how;

  constexpr float operator()(std::int64_t e) const {
    const float row = count(keys[e] / vertices), col = count(keys[e] % vertices);
    if (how == weighting::both) return 1 / std::sqrt(row * col);
    return how == weighting::row ? 1 / row : how == weighting::column ? 1 / col : 1;
  }

 private:
  constexpr float count(std::uint64_t v) const { return static_cast<float>(offsets[v + 1] - offsets[v]); }
};

/// The key of an entry in this rank's row of tiles.
struct key_of_tile {
  static constexpr std::size_t most = 64;  ///< kernel arguments are limited in size

  key_space space;
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

/// A graph and the entry counts of its rows, on the device of one rank.
class device_graph {
 public:
  /// `loops` adds the diagonal. Synchronises with the device.
  device_graph(const bench::graph_counts& counts, bool rmat, bool loops)
      : vertices_(counts.vertices), keys_(make_graph(queue_, counts, rmat)) {
    if (loops) keys_ = with_loops(queue_, keys_, vertices_);
    offsets_ = row_offsets(queue_, keys_, vertices_);
  }

  std::size_t nonzeros() const { return keys_.size(); }

  /// This rank's tiles under a layout that does not partition columns, in memory of the queue of `m`.
  /// Synchronises with the device.
  std::shared_ptr<partita::local::csr_tiles<float, cuda_device>> tiles_of(const partita::mesh<cuda_device>& m,
                                                                          const partita::blocking& cuts,
                                                                          partita::layout layout,
                                                                          weighting how) const {
    const partita::interval rows = cuts.block(layout.rows, m.at());
    auto result = std::make_shared<partita::local::csr_tiles<float, cuda_device>>();
    result->rows = partita::base::to_local(rows.size(), "the number of rows of a sparse block");
    std::array<std::uint64_t, key_of_tile::most> begins{};
    global_index widest = 1;
    partita::coordinates at = m.at();
    for (at.row = 0; at.row < (layout.rows.contains(partita::axis::row) ? m.shape().row : 1); ++at.row) {
      const partita::interval c = cuts.block(partita::partition::column_cut(layout), at);
      begins.at(result->count()) = static_cast<std::uint64_t>(c.begin);
      result->widths.push_back(partita::base::to_local(c.size(), "the number of columns of a sparse tile"));
      widest = std::max(widest, c.size());
    }

    const auto first = partita::on_cuda::read(queue_, offsets_.data() + rows.begin);
    const auto size =
        static_cast<std::size_t>(partita::on_cuda::read(queue_, offsets_.data() + rows.end) - first);
    const auto n = static_cast<std::uint64_t>(vertices_);
    const std::uint64_t* const mine = keys_.data() + first;
    const key_space space(result->count(), result->rows, widest);
    const auto made = with_policy(queue_, [&](const auto& policy) {
      key_list keys(queue_, size);
      buffer<float, cuda_device> values(queue_, size);
      thrust::tabulate(policy, keys.data(), keys.data() + size,
                       key_of_tile{space, mine, n, static_cast<std::uint64_t>(rows.begin), begins});
      thrust::tabulate(policy, values.data(), values.data() + size,
                       weight_of_entry{mine, offsets_.data(), n, how});
      return compress_keys(policy, queue_, space, std::move(keys), std::move(values));
    });
    result->nonzeros = made.nonzeros;
    result->structure = moved(m.queue(), made.structure);
    result->values = moved(m.queue(), made.values);
    for (std::size_t t = 0; t < result->count(); ++t) {
      const auto* const offsets = made.structure.data() + t * (static_cast<std::size_t>(result->rows) + 1);
      result->entries_of_parts.push_back(partita::on_cuda::read(queue_, offsets + result->rows) -
                                         partita::on_cuda::read(queue_, offsets));
    }
    return result;
  }

 private:
  /// A copy in the memory of another queue.
  template <class U>
  buffer<U, cuda_device> moved(const device_queue<cuda_device>& to,
                               const buffer<U, cuda_device>& from) const {
    queue_.synchronize();
    buffer<U, cuda_device> there(to, from.size());
    copy(to, from.span(), there.span());
    return there;
  }

  device_queue<cuda_device> queue_;  ///< a separate queue, whose memory is freed afterwards and not metered
  global_index vertices_;
  key_list keys_;
  buffer<partita::local_index, cuda_device> offsets_;
};

struct column_of_key {
  const std::uint64_t* keys;
  std::uint64_t vertices;

  constexpr local_index operator()(std::int64_t e) const {
    return static_cast<local_index>(keys[e] % vertices);
  }
};

struct feature {
  constexpr float operator()(std::int64_t i) const {
    return static_cast<float>(partita::base::random_uniform(partita::random_key{.seed = 3}.word(), i, 0));
  }
};

struct larger {
  constexpr float operator()(float a, float b) const { return a < b ? b : a; }
};
struct difference {
  constexpr float operator()(float a, float b) const {
    const float d = std::abs(a - b), size = 1e-3f + std::abs(b);
    return d <= size ? d / size : 1;
  }
};

template <class T, class Function>
buffer<T, cuda_device> tabulated(const device_queue<cuda_device>& q, std::size_t size, const Function& f) {
  buffer<T, cuda_device> result(q, size);
  with_policy(q,
              [&](const auto& policy) { thrust::tabulate(policy, result.data(), result.data() + size, f); });
  q.synchronize();
  return result;
}

}  // namespace

bench::device_operand bench::operand_on_device(const device_queue<cuda_device>& q, const graph_counts& counts,
                                               bool rmat) {
  const key_list keys = make_graph(q, counts, rmat);
  const auto n = static_cast<std::uint64_t>(counts.vertices);
  device_operand a;
  a.rows = static_cast<local_index>(counts.vertices);
  a.entries = static_cast<local_index>(keys.size());
  a.offsets = row_offsets(q, keys, counts.vertices);
  a.columns = tabulated<local_index>(q, keys.size(), column_of_key{keys.data(), n});
  const auto weights = [&](weighting how) {
    return tabulated<float>(q, keys.size(), weight_of_entry{keys.data(), a.offsets.data(), n, how});
  };
  a.values = weights(weighting::both);
  return a;
}

bench::buffer<float, bench::cuda_device> bench::features_on_device(const device_queue<cuda_device>& q,
                                                                   std::size_t size) {
  return tabulated<float>(q, size, feature{});
}

float bench::largest_difference(const device_queue<cuda_device>& q, const float* a, const float* b,
                                std::size_t size) {
  return with_policy(q, [&](const auto& policy) {
    return thrust::inner_product(policy, a, a + size, b, 0.0f, larger{}, difference{});
  });
}

partita::sparse<float, partita::dynamic_layout, bench::cuda_device> bench::matrix_on_device(
    const partita::mesh<cuda_device>& m, const partita::policy& p, const graph_counts& counts, bool rmat,
    bool mean, std::int64_t& nonzeros) {
  if (!p.sparse.cols.empty()) throw partita::error("a graph made on the device has whole rows of tiles");
  const device_graph graph(counts, rmat, !mean);
  nonzeros = static_cast<std::int64_t>(graph.nonzeros());
  const auto rows = partita::blocking::even(counts.vertices, m.shape(), partita::nesting::rows);
  const auto forward = graph.tiles_of(m, rows, p.sparse, mean ? weighting::row : weighting::both);
  const auto backward = mean ? graph.tiles_of(m, rows, p.sparse, weighting::column) : forward;
  return {m, p.sparse, p.dense, rows, rows, forward, backward};
}

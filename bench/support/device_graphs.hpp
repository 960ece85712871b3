#pragma once
/// Undirected graphs made on a CUDA device, as pure functions of a seed: uniform ones, and R-MAT with the
/// parameters of Graph500. A graph is the sorted list of the keys row * vertices + column of its entries,
/// both directions of every edge, none twice.

#include <bit>
#include <cmath>
#include <string>
#include <thrust/copy.h>
#include <thrust/count.h>
#include <thrust/set_operations.h>
#include <thrust/unique.h>

#include "graphs.hpp"
#include "partita/local/cuda/compress.hpp"

namespace bench {

using partita::buffer;
using partita::cuda;
using partita::queue;
using key_list = buffer<std::uint64_t, cuda>;

/// What a graph is to be like.
struct graph_counts {
  std::string name;
  global_index vertices = 0;
  global_index nonzeros = 0;  ///< entries of the adjacency matrix

  /// The same degrees on fewer vertices.
  graph_counts divided_by(int factor) const {
    return {name, std::max<global_index>(vertices / factor, 64),
            std::max<global_index>(nonzeros / factor, 64)};
  }
};

inline graph_counts reddit_counts() { return {"reddit", 232965, 114'800'000}; }
inline graph_counts products_counts() { return {"products", 2449029, 123'700'000}; }

/// Entry number 2 e is an edge, number 2 e + 1 the same in the other direction.
struct random_entry {
  std::uint64_t word;
  global_index vertices;
  int scale;  ///< R-MAT's levels; 0 for a uniform graph

  constexpr std::uint64_t operator()(std::int64_t number) const {
    const std::int64_t e = number / 2;
    global_index ends[2] = {};
    if (scale == 0)
      for (int side = 0; side < 2; ++side)
        ends[side] = static_cast<global_index>(partita::random_bits(word, e, side) %
                                               static_cast<std::uint64_t>(vertices));
    else
      fall(e, ends);
    const bool swapped = number % 2 != 0;
    return static_cast<std::uint64_t>(ends[swapped ? 1 : 0] * vertices + ends[swapped ? 0 : 1]);
  }

 private:
  /// Quadrants .57, .19, .19 and .05, 16 random bits a level. The 2^scale names are spread over the vertices,
  /// so that some vertices have two.
  constexpr void fall(std::int64_t e, global_index (&ends)[2]) const {
    std::uint64_t bits = 0;
    for (int level = 0; level < scale; ++level) {
      bits = level % 4 == 0 ? partita::random_bits(word, e, level) : bits >> 16;
      const auto u = static_cast<std::uint32_t>(bits & 0xffff);
      ends[0] = 2 * ends[0] + (u >= 49807);
      ends[1] = 2 * ends[1] + ((u >= 37356 && u < 49807) || u >= 62259);
    }
    for (global_index& end : ends) end = renamed(end, scale) * vertices >> scale;
  }
};

/// Keeps a share of the edges, in both directions.
struct is_kept {
  std::uint64_t word;
  std::uint64_t vertices;
  double share;

  constexpr bool operator()(std::uint64_t key) const {
    const auto row = static_cast<global_index>(key / vertices),
               col = static_cast<global_index>(key % vertices);
    return partita::random_uniform(word, row < col ? row : col, row < col ? col : row) < share;
  }
};

/// The first `count` of `keys`, alone.
inline key_list cut_to(const queue<cuda>& q, const key_list& keys, std::size_t count) {
  key_list result(q, count);
  copy(q, keys.span().first(count), result.span());
  return result;
}

/// As many entries as `counts` says, to a few thousand; fewer where ten rounds of drawing do not find so many
/// different ones. Waits for the device.
inline key_list make_graph(const queue<cuda>& q, const graph_counts& counts, bool rmat,
                           std::uint64_t seed = 1) {
  const std::uint64_t word = partita::random_key{.seed = seed}.word();
  const int scale = rmat ? std::bit_width(static_cast<std::uint64_t>(counts.vertices - 1)) : 0;
  return partita::gpu::with_policy(q, [&](const auto& policy) {
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

/// The key of the diagonal's v-th entry.
struct key_of_loop {
  std::uint64_t vertices;

  constexpr std::uint64_t operator()(std::int64_t v) const {
    return static_cast<std::uint64_t>(v) * (vertices + 1);
  }
};

/// The entries together with the whole diagonal. Waits for the device.
inline key_list with_loops(const queue<cuda>& q, const key_list& keys, global_index vertices) {
  return partita::gpu::with_policy(q, [&](const auto& policy) {
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

/// Where the entries of each row begin in `keys`; one more than there are rows.
inline buffer<partita::local_index, cuda> row_offsets(const queue<cuda>& q, const key_list& keys,
                                                      global_index vertices) {
  partita::narrow(static_cast<global_index>(keys.size()), "the number of entries of a graph");
  const std::size_t size = static_cast<std::size_t>(vertices) + 1;
  buffer<partita::local_index, cuda> offsets(q, size);
  partita::gpu::with_policy(q, [&](const auto& policy) {
    key_list firsts(q, size);
    thrust::tabulate(policy, firsts.data(), firsts.data() + size,
                     first_key_of_row{static_cast<std::uint64_t>(vertices)});
    thrust::lower_bound(policy, keys.data(), keys.data() + keys.size(), firsts.data(), firsts.data() + size,
                        offsets.data());
  });
  q.synchronize();
  return offsets;
}

/// How the entries of a graph are weighted from the numbers of entries in rows.
enum class weighting : std::uint8_t {
  both,    ///< 1 / sqrt(of the row * of the column), as GCN has it
  row,     ///< 1 / of the row: a mean
  column,  ///< 1 / of the column: the transpose of a mean
  one
};

/// The value of an entry by its key.
struct weight_of_entry {
  const std::uint64_t* keys;
  const partita::local_index* offsets;
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

}  // namespace bench

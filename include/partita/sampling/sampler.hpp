// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The interface of samplers, and what those that go hop by hop share.

#include <cstdint>
#include <span>

#include "partita/base/random.hpp"
#include "partita/sampling/hop.hpp"

namespace partita::sampling {

/// Makes small operators from a graph, one per layer. What is drawn is a pure function of the sampler's seed,
/// the epoch and vertices: it depends on neither the ranks nor the threads.
///
/// An object is used by one thread at a time, which may be any; it shares nothing with others but the graph's
/// arrays, which do not change. Over a replicated graph sampling is local. Over a cut one it is collective
/// over the graph's ranks: each has its own roots, none or more, in the same epoch.
template <class T>
class sampler {
 public:
  virtual ~sampler() = default;

  /// `out` = the sample of these roots in this epoch. Throws shape_error naming a root that is not a vertex
  /// or is given twice.
  virtual void operator()(std::span<const global_index> roots, std::uint64_t epoch, sample<T>& out) = 0;
  /// L, the number of blocks.
  virtual std::size_t layers() const = 0;
  virtual const partita::sampling::graph<T>& graph() const = 0;

  /// Throws shape_error unless a sample has a block for each of so many layers.
  void require_layers(std::size_t wanted) const {
    if (layers() != wanted)
      base::throw_error<shape_error>(
          {"a sampler for ", layers(), " layers cannot serve a model of ", wanted});
  }
};

/// Key of what is drawn in one step of an epoch; not that of a dropout mask with the same numbers.
constexpr std::uint64_t draw_key(std::uint64_t seed, std::uint64_t epoch, std::uint64_t step) {
  return random_key{base::mixed_bits(~seed), epoch, step}.word();
}

/// A uniform number below `count` from 64 random bits: the upper bits of their product with it.
constexpr local_index below(local_index count, std::uint64_t bits) {
  const auto n = static_cast<std::uint64_t>(count);
  return static_cast<local_index>(((bits >> 32) * n + ((bits & 0xffffffffu) * n >> 32)) >> 32);
}

/// Calls take(i) for k distinct, uniformly drawn numbers i below `count`; the draws are those of the field
/// `key` at row `v`. Source: Floyd's algorithm, Bentley, Floyd, CACM 30(9), 1987.
template <class Take>
void draw_subset(local_index count, local_index k, std::uint64_t key, global_index v,
                 base::numbering<local_index>& seen, const Take& take) {
  constexpr local_index few = 32;
  const auto draw = [&](const auto& is_new) {
    for (local_index i = 0; i < k; ++i) {
      const local_index last = count - k + i, drawn = below(last + 1, base::random_bits(key, v, i));
      take(is_new(drawn) ? drawn : (is_new(last), last));
    }
  };
  if (k <= few) {
    local_index taken[few], size = 0;
    draw([&](local_index i) {
      for (local_index j = 0; j < size; ++j)
        if (taken[j] == i) return false;
      taken[size++] = i;
      return true;
    });
  } else {
    seen.clear();
    draw([&](local_index i) { return seen(i).second; });
  }
}

/// The entries of a row that are drawn from: all, or all but the diagonal one.
struct neighbours {
  constexpr neighbours(const graph_row& row, bool without_diagonal)
      : begin(row.begin),
        skipped(without_diagonal && row.diagonal >= 0 ? row.diagonal : row.count),
        count(row.count - (skipped < row.count ? 1 : 0)) {}

  /// Number i of `count`, as an entry of the graph.
  constexpr std::size_t entry(local_index i) const {
    return begin + static_cast<std::size_t>(i) + (i >= skipped ? 1 : 0);
  }

  std::size_t begin;
  local_index skipped, count;
};

/// Samples hop by hop, from the roots outwards: the targets of a hop are all vertices met before it.
/// draw_of(h) is what chooses in hop h, 0 being that of the roots.
template <class T, class DrawOf>
void sample_hops(hop<T>& h, std::size_t layers, std::span<const global_index> roots, const DrawOf& draw_of,
                 sample<T>& out) {
  h.begin(roots, out);
  out.blocks.resize(layers);
  out.sampled_edges = 0;
  out.weights.clear();
  for (std::size_t i = 0; i < layers; ++i) {
    h.choose(out.vertices, draw_of(i));
    h.make_block(out.blocks[layers - 1 - i], out);
  }
}

}  // namespace partita::sampling

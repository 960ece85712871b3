// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sampling of subgraphs that random walks visit.

#include <algorithm>
#include <utility>
#include <vector>

#include "partita/sampling/sampler.hpp"

namespace partita::sampling {

/// What walk_sampler draws.
struct walk_options {
  std::size_t layers = 2;
  int length = 2;  ///< steps from each root
  std::uint64_t seed = 0;
  bool keep_diagonal = false;  ///< (v, v) is no step
  int threads = 1;
  /// Subgraphs from which the probabilities of normalisation are estimated; 0: no normalisation.
  int presampled = 0;
  local_index batch = 0;              ///< roots of each of these
  std::vector<global_index> roots{};  ///< from which those are drawn; empty: all vertices
};

/// How often the entries that a rank stores, and all vertices, were in presampled subgraphs.
struct visits {
  std::vector<local_index> entries;   ///< (stored nonzeros)
  std::vector<local_index> vertices;  ///< (n)

  /// p(v, u) / p(v), the probability of entry e in row v, given v.
  double share(std::size_t e, global_index v) const {
    return static_cast<double>(std::max(entries[e], 1)) / of(v);
  }
  local_index of(global_index v) const { return std::max(vertices[static_cast<std::size_t>(v)], 1); }
};

/// Keeps the entries of which both vertices are members, divided by their shares if `seen` is given.
class induced_draw {
 public:
  induced_draw(const local_index* columns, const base::numbering<local_index>& members, const visits* seen)
      : columns_(columns), members_(members), seen_(seen) {}

  void operator()(const graph_row& row, global_index v, choice& chosen) const {
    for (std::size_t e = row.begin; e < row.begin + static_cast<std::size_t>(row.count); ++e)
      if (members_.contains(columns_[e])) chosen.take(e, seen_ == nullptr ? 1 : 1 / seen_->share(e, v));
  }

 private:
  const local_index* columns_;
  const base::numbering<local_index>& members_;
  const visits* seen_;
};

/// Counts the same entries, and takes none.
class induced_count {
 public:
  induced_count(const local_index* columns, const base::numbering<local_index>& members,
                std::vector<local_index>& counts)
      : columns_(columns), members_(members), counts_(counts) {}

  void operator()(const graph_row& row, global_index, choice&) const {
    for (std::size_t e = row.begin; e < row.begin + static_cast<std::size_t>(row.count); ++e)
      counts_[e] += members_.contains(columns_[e]) ? 1 : 0;
  }

 private:
  const local_index* columns_;
  const base::numbering<local_index>& members_;
  std::vector<local_index>& counts_;
};

/// GraphSAINT's subgraphs: a walk of `length` steps from each root, each to an in-neighbour drawn uniformly,
/// or none where there is none; the sample is A restricted to the vertices visited, the same block for all
/// layers. All of them are targets: rows = cols, roots first. Unlike other samples it depends on which roots
/// are sampled together; the walks do not.
///
/// With normalisation a value is divided by the probability that its edge is in a subgraph of which its
/// target is, and `weights` are the inverse probabilities of the targets: the weighted sum of a loss
/// estimates that over all vertices. Both are estimated from `presampled` subgraphs, of which those never
/// seen count as seen once. Source: Zeng et al., ICLR 2020.
///
/// Over a cut graph, what travels to a rank: an exchange (requests) per step, in which a question is two
/// words and an answer one; then all ranks' vertices, and for each vertex of its own that others have the
/// number of entries kept, their columns and values.
template <class T>
class walk_sampler final : public sampler<T> {
 public:
  /// Over a cut graph collective over its ranks: presampling travels as samples do, but for the entries.
  /// Throws shape_error naming an option out of range, and error for several relations.
  walk_sampler(partita::sampling::graph<T> g, walk_options options)
      : hop_(std::move(g), options.threads), requests_(graph()), options_(std::move(options)) {
    if (graph().relations() > 1) throw error("walks are of a graph of one relation");
    if (options_.layers < 1) throw shape_error("a walk sampler needs at least 1 layer, not 0");
    if (options_.length < 0)
      base::throw_error<shape_error>({"a random walk has 0 steps or more, not ", options_.length});
    if (options_.presampled < 0)
      base::throw_error<shape_error>({"0 subgraphs or more can be presampled, not ", options_.presampled});
    if (options_.presampled == 0) return;
    const global_index most =
        options_.roots.empty() ? graph().vertices() : static_cast<global_index>(options_.roots.size());
    if (options_.batch < 1 || options_.batch > most)
      base::throw_error<shape_error>(
          {"presampled subgraphs have 1 to ", most, " roots, not ", options_.batch});
    presample(base::to_local(most, "the number of roots"));
  }

  void operator()(std::span<const global_index> roots, std::uint64_t epoch, sample<T>& out) override {
    walk(roots, epoch, out);
    const visits* const seen = options_.presampled > 0 ? &seen_ : nullptr;
    if (graph().is_replicated()) {
      hop_.choose_here(out.vertices, induced_draw(graph().columns().data(), hop_.numbers(), seen));
    } else {
      given_.clear();
      for_members(out, [&](std::span<const global_index> rows, const base::numbering<local_index>& members) {
        hop_.choose_here(rows, induced_draw(graph().columns().data(), members, seen));
        given_.append(hop_.chosen());
      });
      requests_.answer(given_, hop_.chosen());
    }
    out.blocks.resize(layers());
    out.sampled_edges = 0;
    hop_.make_block(out.blocks[0], out);
    for (std::size_t l = 1; l < layers(); ++l) out.blocks[l] = out.blocks[0];
    out.weights.clear();
    if (seen == nullptr) return;
    for (const global_index v : out.vertices)
      out.weights.push_back(static_cast<double>(options_.presampled) / seen->of(v));
  }
  std::size_t layers() const override { return options_.layers; }
  const partita::sampling::graph<T>& graph() const override { return hop_.graph(); }

 private:
  /// The vertices of `out` are the roots and those that walks from them visit.
  void walk(std::span<const global_index> roots, std::uint64_t epoch, sample<T>& out) {
    hop_.begin(roots, out);
    at_.assign(roots.begin(), roots.end());
    for (int step = 0; step < options_.length; ++step) {
      const std::uint64_t key = draw_key(options_.seed, epoch, static_cast<std::uint64_t>(step));
      if (graph().is_replicated()) {
        hop_.for_ranges(at_.size(), [&](std::size_t, std::size_t begin, std::size_t end) {
          for (std::size_t i = begin; i < end; ++i)
            at_[i] = next(at_[i], base::random_bits(key, roots[i], 0));
        });
      } else {
        questions_.clear();
        for (std::size_t i = 0; i < at_.size(); ++i)
          questions_.insert(questions_.end(),
                            {at_[i], static_cast<global_index>(base::random_bits(key, roots[i], 0))});
        requests_.ask(questions_, 2);
        const auto asked = requests_.questions();
        steps_.clear();
        for (std::size_t i = 0; i < asked.size(); i += 2)
          steps_.push_back(next(asked[i], static_cast<std::uint64_t>(asked[i + 1])));
        requests_.answer(steps_, at_, questions_);
      }
      for (const global_index v : at_) hop_.add(v, out);
    }
  }
  /// Where a walk with these random bits goes from v.
  global_index next(global_index v, std::uint64_t bits) const {
    const neighbours all(graph().row(v), options_.keep_diagonal);
    if (all.count == 0) return v;
    return graph().columns()[all.entry(below(all.count, bits))];
  }

  /// f(rows, members) for every rank: its vertices, and those of them whose rows are here.
  template <class F>
  void for_members(const sample<T>& s, const F& f) {
    requests_.tell(s.vertices);
    for (std::size_t q = 0; q < static_cast<std::size_t>(graph().ranks().size()); ++q) {
      members_.clear();
      for (const global_index v : requests_.told(q)) members_(static_cast<local_index>(v));
      f(requests_.questions(q), members_);
    }
  }

  /// Counts what subgraphs have, of which each rank of a cut graph walks every ranks-th.
  void presample(local_index candidates) {
    seen_.entries.assign(graph().columns().size(), 0);
    seen_.vertices.assign(static_cast<std::size_t>(graph().vertices()), 0);
    const bool here = graph().is_replicated();
    const int ranks = here ? 1 : graph().ranks().size(), mine = here ? 0 : graph().ranks().rank();
    const auto count = [&](std::span<const global_index> rows, const base::numbering<local_index>& members) {
      hop_.choose_here(rows, induced_count(graph().columns().data(), members, seen_.entries));
    };
    const auto count_vertices = [&](std::span<const global_index> all) {
      for (const global_index v : all) ++seen_.vertices[static_cast<std::size_t>(v)];
    };
    sample<T> s;
    std::vector<global_index> roots;
    for (int first = 0; first < options_.presampled; first += ranks) {
      roots.clear();
      const int subgraph = first + mine;
      const auto epoch = ~static_cast<std::uint64_t>(subgraph);  // none that a program counts up to
      if (subgraph < options_.presampled)
        draw_subset(
            candidates, options_.batch, draw_key(options_.seed, epoch, ~std::uint64_t{0}), 0, members_,
            [&](local_index i) {
              roots.push_back(options_.roots.empty() ? i : options_.roots[static_cast<std::size_t>(i)]);
            });
      walk(roots, epoch, s);
      if (here) {
        count(s.vertices, hop_.numbers());
        count_vertices(s.vertices);
      } else {
        for_members(s, count);
        for (int q = 0; q < ranks; ++q) count_vertices(requests_.told(static_cast<std::size_t>(q)));
      }
    }
  }

  hop<T> hop_;
  requests<T> requests_;
  walk_options options_;
  visits seen_;
  base::numbering<local_index> members_;
  entry_rows<T> given_;
  std::vector<global_index> at_, questions_, steps_;
};

}  // namespace partita::sampling

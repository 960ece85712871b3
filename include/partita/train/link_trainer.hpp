// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Full-graph training of a model whose rows predict links.

#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "partita/algebra/pair_loss.hpp"
#include "partita/graph/link_rows.hpp"
#include "partita/sampling/negative_edges.hpp"
#include "partita/train/link_scores.hpp"
#include "partita/train/models.hpp"

namespace partita::nn {

/// Trains a model and a decoder (link_options) on the links of a graph that graph::split_links has split,
/// with negatives that are drawn anew in each epoch (sampling::links_and_negatives), the same for any number
/// of ranks. Scores are MRR and Hits of validation and test links among all vertices (full_ranks), among
/// negatives that are drawn for each link once and for all (link_options::ranking_negatives), or among those
/// of the data (dataset::negatives); Hits among shared ones are those of hits_above. scores() also has the
/// area under the ROC curve, of these links and of shared negatives, or else of one that is drawn for each
/// link u -> v once and for all: u -> w for the first of 64 uniform w that is not u and for which u -> w is
/// not known.
///
/// Collective over the mesh, with the same data on every rank: constructor and members. What travels: as for
/// trainer, and what the decoder sends; in the phase "distribute" of each epoch, which is not counted as
/// training, its pairs, to the ranks that hold them, and what their plans do; what full_ranks sends. In an
/// emulated::rehearsal pairs are drawn and distributed nevertheless.
template <class T, class Device>
class link_trainer final : public trainer<T, Device> {
  using above = trainer<T, Device>;
  using above::mesh_;
  using above::options_;

 public:
  using matrix = dense<T, vertex_rows, Device>;

  /// The model has data.classes columns. Throws input_error for data without links for training, and error
  /// for mini-batches and stages.
  link_trainer(const mesh<Device>& m, const io::dataset& data, const training_options& options,
               const policy& p)
      : link_trainer(m, data, options, p, make_model<T>(m, data, possible(data, options), p)) {}
  /// With this model, and `input`: see trainer.
  link_trainer(const mesh<Device>& m, const io::dataset& data, const training_options& options,
               const policy& p, nn::model<T, Device> net, matrix_contents input = matrix_contents::filled)
      : above(m, data, possible(data, options), std::move(net), input),
        policy_(p),
        decoder_(options.links.decoder, data.classes, this->parameters(), options.seed),
        rows_(this->model().row_blocking()),
        by_source_(options.links.ranking_negatives > 0),
        links_(graph::link_rows<T>(m, p, rows_, data, {.of_sources = true})),
        known_(graph::link_rows<T>(m, p, rows_, data, {.held_out = true, .of_sources = by_source_})),
        held_out_{data.validation_links, data.test_links},
        negatives_(data.negatives) {
    if (options.links.ranking_negatives > 0) negatives_ = {};
    for (std::size_t k = 0; k < held_out_.size(); ++k)
      if (negatives_[k].vertices.empty() &&
          !std::ranges::is_sorted(held_out_[k], {}, &io::edge::source))  // as full_ranks needs them
        std::ranges::stable_sort(held_out_[k].edit(), {}, &io::edge::source);
  }

  link_decoder<T, Device>& decoder() { return decoder_; }

  std::array<double, 3> split_scores(int) override {
    const task_scores found = ranking(this->evaluate());
    return {found.parts[0].score, found.parts[1].score, found.parts[2].score};
  }
  /// Of validation and test links; what travels: a forward pass, see full_ranks and scores_of_pairs, and
  /// all-reduces of the targets of drawn negatives.
  task_scores scores() override {
    const matrix& h = this->evaluate();
    task_scores found = ranking(h);
    for (std::size_t k = 0; k < held_out_.size(); ++k)
      found.parts[k + 1].roc_auc =
          area_under_roc(scores_of(held_out_[k], h), scores_of(unlinked_pairs(k, h.row_range()), h));
    return found;
  }
  /// Throws error: a loss of one's own is one of vertices.
  void set_loss(loss_function<T, Device>) override {
    throw error("a loss of vertices is not for links, whose loss is one of pairs");
  }
  traffic predicted() const override {
    return this->model().predicted() + decoder_.predicted() +
           (drawn_ ? algebra::predicted_pair_loss(drawn_->gradient) : traffic());
  }

 private:
  /// The pairs of an epoch.
  struct pairs_drawn {
    explicit pairs_drawn(const sparse<T, dynamic_layout, Device>& pairs) : signs(pairs), gradient(pairs, 1) {}
    algebra::pair_signs<T, Device> signs;
    edge_matrix<T, Device> gradient;
  };

  static const training_options& possible(const io::dataset& data, const training_options& options) {
    const auto refuse = [&](const char* what) {
      base::throw_error<error>({data.name, ": links are not predicted ", what});
    };
    if (options.mini_batch.batch > 0) refuse("in mini-batches");
    if (options.pipeline.stages > 0) refuse("over stages");
    if (data.task != io::task::links || data.edges.empty())
      base::throw_error<input_error>({data.name, ": there are no links for training; graph::split_links"});
    return options;
  }

  /// Scores without the area under the ROC curve.
  task_scores ranking(const matrix& h) const {
    task_scores found{io::task::links, {}};
    for (std::size_t k = 0; k < held_out_.size(); ++k)
      if (negatives_[k].are_shared)
        score_among_shared(k, h, found.parts[k + 1]);
      else
        score_ranks(ranks_of(k, h), found.parts[k + 1]);
    return found;
  }
  void score_ranks(const std::vector<double>& ranks, part_scores& of) const {
    of.score = mean_reciprocal_rank(ranks);
    of.hits = hits_at(ranks, options_.links.hits);
  }
  void score_among_shared(std::size_t part, const matrix& h, part_scores& of) const {
    const std::vector<double> links = scores_of(held_out_[part], h);
    std::vector<double> negatives = scores_of(shared_pairs(part), h);
    of.score = mean_reciprocal_rank(ranks_among_shared(links, negatives));
    of.hits = hits_above(links, std::move(negatives), options_.links.hits);
  }
  std::vector<double> scores_of(std::span<const io::edge> pairs, const matrix& h) const {
    return scores_of_pairs(decoder_, h, pairs);
  }
  std::vector<io::edge> shared_pairs(std::size_t part) const {
    const std::span<const std::int64_t> ends = negatives_[part].vertices;
    std::vector<io::edge> pairs;
    for (std::size_t k = 0; k < ends.size(); k += 2) pairs.push_back({ends[k], ends[k + 1]});
    return pairs;
  }
  /// Those that the links of a part have in common, or one for each link. Of (u, w) the rank draws that has
  /// the row that tells whether it is known.
  std::vector<io::edge> unlinked_pairs(std::size_t part, interval own) const {
    if (negatives_[part].are_shared) return shared_pairs(part);
    constexpr std::uint64_t stream = 0x6e200000u;
    constexpr global_index draws = 64;
    const std::uint64_t word = random_key{options_.seed, part, stream}.word();
    const auto n = static_cast<std::uint64_t>(known_.vertices());
    const auto& links = held_out_[part];
    const auto drawn = [&](std::size_t i, global_index t) {
      return static_cast<global_index>(base::random_bits(word, static_cast<std::int64_t>(i), t) % n);
    };
    std::vector<global_index> left(links.size(), 0);  // draws from the first that serves, it included
    for (std::size_t i = 0; i < links.size(); ++i) {
      if (by_source_ && !own.contains(links[i].source)) continue;
      for (global_index t = 0; t < draws && left[i] == 0; ++t) {
        const global_index u = links[i].source, w = drawn(i, t), row = by_source_ ? u : w;
        if (w != u && own.contains(row) && !sampling::is_link(known_, row, by_source_ ? w : u))
          left[i] = draws - t;
      }
    }
    mesh_.world().all_reduce(left, reduction::max);
    std::vector<io::edge> pairs;
    for (std::size_t i = 0; i < links.size(); ++i)
      if (left[i] > 0) pairs.push_back({links[i].source, drawn(i, draws - left[i])});
    return pairs;
  }
  std::vector<double> ranks_of(std::size_t part, const matrix& h) const {
    const std::span<const io::edge> links = held_out_[part];
    const std::span<const std::int64_t> given = negatives_[part].vertices;
    if (const auto drawn = static_cast<std::size_t>(options_.links.ranking_negatives); drawn > 0)
      return ranks_among_targets(decoder_, h, links, drawn, [&](std::size_t first, std::size_t count) {
        return drawn_targets(links.subspan(first, count), h.row_range(), part, first);
      });
    if (given.empty()) return full_ranks(decoder_, h, known_, links);
    const std::size_t of_each = given.size() / links.size();
    return ranks_among_targets(decoder_, h, links, of_each, [&](std::size_t first, std::size_t count) {
      return given.subspan(first * of_each, count * of_each);
    });
  }
  /// The ranking negatives of these links, of which the first has this number in its part: of a link's source
  /// the rank draws that has it.
  std::vector<global_index> drawn_targets(std::span<const io::edge> links, interval own, std::size_t part,
                                          std::size_t first) const {
    constexpr std::uint64_t stream = 0x6e100000u;
    const auto of_each = static_cast<std::size_t>(options_.links.ranking_negatives);
    std::vector<global_index> targets(links.size() * of_each, -1);
    for (std::size_t k = 0; k < targets.size(); ++k)
      if (const global_index u = links[k / of_each].source; own.contains(u))
        targets[k] = sampling::negative_of(known_, random_key{options_.seed, part, stream}, u,
                                           static_cast<std::int64_t>(first * of_each + k))
                         .value_or(-1);
    mesh_.world().all_reduce(targets, reduction::max);
    return targets;
  }

  std::optional<double> loss_of_pairs(int number, const matrix& h, matrix& gradient) override {
    draw(number, h);
    const edge_matrix<T, Device>& scores = decoder_.forward(h);
    const auto& how = options_.links;
    const double mean =
        how.loss == link_loss::bce
            ? algebra::pair_loss(scores, drawn_->signs, drawn_->gradient, algebra::logistic_pair_loss{})
            : algebra::pair_loss(scores, drawn_->signs, drawn_->gradient,
                                 algebra::margin_pair_loss{how.margin});
    decoder_.backward(drawn_->gradient, gradient);
    return mean;
  }
  void add_gradients() override { decoder_.give_gradients(); }

  void draw(int number, const matrix& h) {
    const comm::phase_scope phase(mesh_.ledger(), "distribute");
    constexpr std::uint64_t stream = 0x6e000000u;
    const auto pairs =
        sampling::links_and_negatives(links_, h.row_range(), options_.links.negatives,
                                      random_key{options_.seed, static_cast<std::uint64_t>(number), stream});
    const auto a = distribute(mesh_, policy_.sparse, rows_, rows_, pairs, symmetry::one_way, policy_.dense,
                              transfer::sharing::trusted);
    drawn_.emplace(a);
    decoder_.set_pairs(a, h);
  }

  policy policy_;
  link_decoder<T, Device> decoder_;
  blocking rows_;
  bool by_source_;  ///< whether rows of known_ are of sources
  sampling::graph<T> links_, known_;
  std::array<io::array<io::edge>, 2> held_out_;
  std::array<io::link_negatives, 2> negatives_;
  std::optional<pairs_drawn> drawn_;
};

}  // namespace partita::nn

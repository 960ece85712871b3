// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Full-graph training of a model whose rows predict links.

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "partita/algebra/pair_loss.hpp"
#include "partita/graph/link_rows.hpp"
#include "partita/sampling/negative_edges.hpp"
#include "partita/train/link_scores.hpp"
#include "partita/train/models.hpp"

namespace partita::nn {

/// Trains a model and a decoder (link_options) on the links of a graph that graph::split_links has split,
/// with negatives that are drawn anew in each epoch (sampling::links_and_negatives), the same for any number
/// of ranks. Scores are MRR and Hits of validation and test links among all vertices (full_ranks).
///
/// Collective over the mesh, with the same data on every rank: constructor and members. What travels: as for
/// trainer, and what the decoder sends; in the phase "distribute" of each epoch, which is not counted as
/// training, its pairs, to the ranks that hold them, and what their plans do; what full_ranks sends.
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
      : above(m, data, possible(data, options), make_model<T>(m, data, options, p)),
        policy_(p),
        decoder_(options.links.decoder, data.classes, this->parameters(), options.seed),
        rows_(this->model().row_blocking()),
        links_(graph::link_rows<T>(m, p, rows_, data, {.of_sources = true})),
        known_(graph::link_rows<T>(m, p, rows_, data, {.held_out = true})),
        held_out_{data.validation_links, data.test_links} {}

  link_decoder<T, Device>& decoder() { return decoder_; }

  std::array<double, 3> split_scores(int) override {
    const task_scores found = scores();
    return {found.parts[0].score, found.parts[1].score, found.parts[2].score};
  }
  /// Of validation and test links; what travels: a forward pass, and see full_ranks.
  task_scores scores() override {
    task_scores found{io::task::links, {}};
    const matrix& h = this->evaluate();
    for (std::size_t k = 0; k < held_out_.size(); ++k) {
      const std::vector<double> ranks =
          full_ranks(decoder_, h, known_, std::span<const io::edge>(held_out_[k]));
      part_scores& of = found.parts[k + 1];
      of.score = mean_reciprocal_rank(ranks);
      of.hits = hits_at(ranks, options_.links.hits);
    }
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
  sampling::graph<T> links_, known_;
  std::array<io::array<io::edge>, 2> held_out_;
  std::optional<pairs_drawn> drawn_;
};

}  // namespace partita::nn

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a training run is asked for and what it gives back.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "partita/comm/ledger.hpp"
#include "partita/nn/parameters.hpp"

namespace partita::nn {

enum class coupling : std::uint8_t {
  coupled,   ///< a product with the graph in every layer
  decoupled  ///< dense layers first, then hops: another model, with four redistributions an epoch whatever
             ///< its depth
};

/// How sage gathers its neighbours.
enum class aggregation : std::uint8_t { mean, max };

/// How vertices are cut into blocks where no sizes are given.
enum class vertex_blocks : std::uint8_t {
  even,
  balanced  ///< nearly equal numbers of in-edges
};

/// The defaults are those of Kipf and Welling (ICLR 2017) for Cora.
struct training_options {
  std::string model = "gcn";  ///< gcn, sage, gin, gat, sgc, appnp, gcnii
  partita::nn::coupling coupling = coupling::coupled;
  partita::nn::aggregation aggregation = partita::nn::aggregation::mean;
  std::vector<global_index> hidden = {16};  ///< widths of the hidden layers; one width serves all of `layers`
  int layers = 0;       ///< layers with parameters (gcnii: convolutions); 0: as many as `hidden` says
  int heads = 8;        ///< gat, in all layers but the last; decoupled: of its one attention, averaged
  int last_heads = 1;   ///< gat, averaged in the last layer
  int hops = 10;        ///< appnp and sgc
  double alpha = 0.1;   ///< teleport of appnp, initial residual of gcnii
  double lambda = 0.5;  ///< of gcnii
  coefficient_gradient coefficients = coefficient_gradient::automatic;  ///< of gat
  double epsilon = 0;  ///< gin counts a vertex itself 1 + epsilon times
  int epochs = 200;
  double learning_rate = 0.01;
  double weight_decay = 5e-4;       ///< on the first layer's parameters (gcnii: on its dense layers)
  double convolution_decay = 0.01;  ///< on the convolutions of gcnii
  double dropout = 0.5;
  bool raw_features = false;  ///< otherwise features are divided by their row sums
  vertex_blocks blocks = vertex_blocks::even;
  std::vector<global_index> block_sizes = {};  ///< as blocking::given takes them, from a partitioner
  std::uint64_t seed = 0;
};

/// What every model is made with, of what training is asked for.
inline nn::model_options options_of_model(const training_options& options) {
  return {.seed = options.seed,
          .weight_decay = options.weight_decay,
          .convolution_decay = options.convolution_decay,
          .dropout = options.dropout,
          .coefficients = options.coefficients};
}

/// One epoch, the same on every rank.
struct epoch_report {
  int epoch = 0;  ///< from 1
  double loss = 0;
  double train_accuracy = 0, validation_accuracy = 0,
         test_accuracy = 0;  ///< micro-F1 where vertices have several labels
  double seconds = 0;        ///< of the training step, on the slowest rank
};

/// The largest of a figure over the ranks, and the sum.
struct over_ranks {
  global_index max_rank = 0;
  global_index total = 0;
};

/// What training under a policy costs, known before the first step.
struct policy_cost {
  over_ranks words;             ///< received in a training step
  over_ranks buffer_bytes;      ///< the most in live buffers at once, during set-up
  global_index list_bytes = 0;  ///< lists in ordinary memory, on each rank, while A's entries are distributed

  /// Of the busiest rank.
  global_index bytes() const { return buffer_bytes.max_rank + list_bytes; }
};

/// The same on every rank. Traffic is that of the training step of the last epoch; evaluation is apart.
struct training_result {
  mesh_shape mesh;
  std::vector<epoch_report> epochs;
  int best_validation_epoch = 0;
  double test_accuracy_at_best_validation = 0;
  double seconds_per_epoch = 0;  ///< median
  over_ranks words_received, predicted_words_received, messages;
  over_ranks peak_bytes;             ///< the most in live buffers at once, since the meter of the queue began
  over_ranks setup_peak_bytes;       ///< the same, before the first epoch
  std::vector<ledger_entry> ledger;  ///< of the last epoch, evaluation included, summed over the ranks
};

/// Called on every rank after each epoch.
using epoch_observer = std::function<void(const epoch_report&)>;

}  // namespace partita::nn

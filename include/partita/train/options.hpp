// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Options and results of a training run.

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "partita/comm/ledger.hpp"
#include "partita/graph/matrix_options.hpp"
#include "partita/nn/builder.hpp"
#include "partita/nn/learning_rate.hpp"
#include "partita/nn/link_decoder.hpp"
#include "partita/nn/optimizer.hpp"
#include "partita/sampling/fanout.hpp"
#include "partita/sampling/placement.hpp"
#include "partita/train/task_scores.hpp"

namespace partita::nn {

/// Whether a model multiplies with the graph in every layer or after all dense layers.
enum class coupling : std::uint8_t {
  coupled,   ///< one product with the graph per layer
  decoupled  ///< dense layers first, then hops: a different model; four redistributions per epoch
};

/// How sage aggregates over neighbours.
enum class aggregation : std::uint8_t { mean, max };

/// The sampler of a batch's seed vertices (roots); see partita/sampling/.
enum class batch_sampler : std::uint8_t {
  neighbours,  ///< a number of neighbours of each vertex, per layer (GraphSAGE)
  layers,      ///< neighbours in a random set for each layer, whose mean size is given (FastGCN)
  walks        ///< the subgraph that random walks from the roots visit (GraphSAINT)
};

/// Training on sampled neighbourhoods of batches of vertices instead of the whole graph.
struct mini_batch_options {
  global_index batch = 0;  ///< seed vertices of an iteration, over all ranks; 0: whole-graph training
  batch_sampler sampler = batch_sampler::neighbours;
  /// Of each layer, the first layer's first, or one for all: fan-outs, -1 for all neighbours, or sizes of the
  /// layers' sets; for walks, their length.
  std::vector<sampling::fanout> fanouts;
  int presampled = 50;  ///< subgraphs from which the normalisation of walks is estimated; 0: none
  sampling::placement placement = sampling::placement::automatic;
  int micro_batches = 1;        ///< parts in which a rank processes its share of a batch
  bool replace = false;         ///< neighbours are drawn with replacement
  bool cut_graph = false;       ///< a rank stores only the edges into its own vertices
  bool sampled_scores = false;  ///< evaluate on sampled neighbourhoods, too, instead of the whole graph
  int sampling_threads = 1;     ///< of each rank
};

/// What a chunk reads for vertices of chunks that have not run yet in this epoch.
enum class chunk_history : std::uint8_t {
  window,  ///< their values of the last epoch of the previous window; zeros in the first one
  halo,    ///< recomputed for the chunk from those of the window; they pass with it between stages
  zero,    ///< zeros
  exact    ///< nothing is missing: a stage starts when all chunks have arrived; so it does with one stage or
           ///< chunk
};

/// How chunks are cut where none are given, within each rank's block of vertices.
enum class chunk_cut : std::uint8_t {
  even,
  nonzeros,    ///< nearly equal numbers of in-edges
  partitioned  ///< with few edges between them: by a partitioner, in pipeline_options::chunk_of
};

/// What happens when a pipeline no longer follows the exact computation; see pipeline_options::guard. Except
/// with `report`, the epoch's step is taken with the exact gradients.
enum class guard_action : std::uint8_t {
  report,
  refresh,  ///< the history becomes that of the exact forward pass
  warm_up,  ///< as many epochs as `guard` are exact, and twice as many each time
  exact,    ///< all later epochs are exact
  stop      ///< training ends with an error, after this epoch
};

/// Pipelined training: layers are divided into stages, through which chunks of vertices flow.
struct pipeline_options {
  int stages = 0;  ///< groups of ranks; 0: no pipeline
  int chunks = 0;  ///< 0: four per stage
  chunk_cut cut = chunk_cut::even;
  std::vector<int> chunk_of = {};  ///< of each vertex, from a partitioner; empty: as `cut` says
  /// The number of layers with parameters of each stage; empty: stages of nearly equal cost.
  std::vector<int> layers = {};
  bool measured = false;  ///< the cost by the time that products take here; otherwise estimated
  chunk_history history = chunk_history::window;
  int window = 23;      ///< epochs for which the history is kept
  bool shuffle = true;  ///< the order of the chunks is drawn anew in each epoch
  bool compensate =
      true;       ///< gradients that reach other chunks are doubled, since half of them come too late
  int guard = 0;  ///< epochs between comparisons with an exact pass, also made in the first epoch after
                  ///< exact ones; 0: never
  double tolerance = 0.1;     ///< relative difference of the losses from which the guard acts
  double least_cosine = 0.5;  ///< of the angle between gradients, below which it acts
  guard_action on_divergence = guard_action::report;
  int exact_epochs = 0;  ///< exact epochs at the start

  int chunk_count() const { return chunks > 0 ? chunks : 4 * stages; }
};

/// The error whose mean is the loss of values; see algebra::squared_error, absolute_error and huber_error.
enum class value_error : std::uint8_t { squared, absolute, huber };

/// The loss of links and negatives; see algebra::logistic_pair_loss and margin_pair_loss.
enum class link_loss : std::uint8_t { bce, margin };

/// Predicting links instead of labels or values of vertices.
struct link_options {
  global_index width = 0;  ///< columns of the rows that a model makes for the decoder; 0: not links
  link_decoding decoder = link_decoding::dot;
  int negatives = 1;  ///< drawn for each link in each epoch
  link_loss loss = link_loss::bce;
  double margin = 1;
  int hits = 10;  ///< K of Hits at K
  /// Drawn for each link that is ranked; 0: links are ranked among those of the data, or all vertices.
  int ranking_negatives = 0;
  std::vector<double> held_out = {0.05,
                                  0.1};  ///< shares of validation and test links; see graph::split_links
};

/// Defaults are those of Kipf and Welling (ICLR 2017) for Cora.
struct training_options {
  std::string model = "gcn";  ///< gcn, sage, gin, gat, sgc, appnp, gcnii, resgcn, rgcn, rgat
  partita::nn::coupling coupling = coupling::coupled;
  partita::nn::aggregation aggregation = partita::nn::aggregation::mean;
  std::vector<global_index> hidden = {16};  ///< hidden widths; a single one is used for all of `layers`
  int layers = 0;  ///< layers with parameters (gcnii, resgcn: convolutions); 0: as many as `hidden` implies
  int heads = 8;   ///< gat: in all layers but the last; decoupled gat: of its attention, averaged
  int last_heads = 1;   ///< gat: averaged in the last layer
  int hops = 10;        ///< appnp and sgc
  double alpha = 0.1;   ///< appnp: teleport probability; gcnii: initial residual
  double lambda = 0.5;  ///< of gcnii
  algebra::coefficient_gradient coefficients = algebra::coefficient_gradient::automatic;  ///< of gat
  /// Decoupled models: pieces of the redistributions that overlap products; see nn::propagation.
  int split_pieces = 1;
  /// What ranks exchange in products with the graph; see row_exchange. `cover` not on reproducible meshes.
  row_exchange exchange = row_exchange::automatic;
  /// What stays in place along col in these products; see partita::stationary.
  partita::stationary stationary = partita::stationary::automatic;
  /// Pieces of the exchange of needed rows in products with the graph: spmm_options::chunks; 0: slices by a
  /// rule, or over far memory as many as its window asks for; 1: at once.
  int exchange_pieces = 0;
  /// Consecutive ranks of the mesh on one node, to which needed rows cross once in products with the graph:
  /// spmm_options::ranks_of_node.
  int ranks_of_node = 1;
  /// How rows are sent in products with the graph: spmm_options::encoding, for models that round operands.
  algebra::row_encoding encoding = algebra::row_encoding::exact;
  /// bfloat16: for float, coupled gcn, sage (mean), gin, gcnii and resgcn.
  operand_precision operands = operand_precision::unrounded;
  /// What dense features, and activations until backward, are stored as. bfloat16: for float on the host,
  /// and the models of `operands`, which are then rounded, too.
  operand_precision storage = operand_precision::unrounded;
  /// Activation checkpointing: `always` recomputes hidden outputs; not for stages, mini-batches and gcnii.
  activation_checkpointing recompute = activation_checkpointing::never;
  global_index bases = 0;            ///< rgcn: W_r are sums over this many bases; 0: no bases
  global_index relation_blocks = 0;  ///< rgcn: W_r have this many diagonal blocks; 0: are full
  bool inverse_relations = false;    ///< rgcn, rgat: also the reversed edges of each type
  double epsilon = 0;                ///< gin: the vertex itself has weight 1 + epsilon
  /// Of gcn, sgc, appnp and gcnii: what A + I is where vertices have loops already.
  graph::self_loops loops = graph::self_loops::sum;
  int epochs = 200;
  double learning_rate = 0.01;
  update_rule optimizer = update_rule::adam;  ///< of the parameters; an embedding is moved by nn::sparse_adam
  double momentum = 0;                        ///< of sgd
  /// A period of 0 means 10 epochs, for a cosine all epochs after the warm-up; plateaus are those of the
  /// training loss.
  nn::schedule schedule = {.period = 0};
  double clip = 0;         ///< the largest norm of all gradients in a step; 0: any
  int patience = 0;        ///< epochs without a better validation score after which the best weights are the
                           ///< result; 0: the last ones are, after all epochs
  int evaluate_every = 1;  ///< epochs from one evaluation to the next; the last one always has scores
  double weight_decay = 5e-4;       ///< of the first layer's parameters (gcnii: of its dense layers)
  double convolution_decay = 0.01;  ///< of the convolutions of gcnii
  double dropout = 0.5;
  std::vector<double> class_weights = {};  ///< of classes: what each counts in the loss; empty: 1
  double label_smoothing = 0;  ///< of classes: the share of a target spread over all classes, in [0, 1)
  value_error error = value_error::squared;  ///< of values
  double huber_delta = 1;                    ///< from where huber's error is linear
  bool raw_features = false;   ///< otherwise scaled by 1 / their row sum, if none in all rows is negative
  global_index embedding = 0;  ///< learned columns in place of the data's features; 0: these
  graph::vertex_blocks blocks = graph::vertex_blocks::even;
  std::vector<global_index> block_sizes = {};  ///< from a partitioner, as for blocking::given
  /// Whether A = A^T, if the edges have been checked already; otherwise they are checked.
  std::optional<bool> symmetric = {};
  std::uint64_t seed = 0;
  mini_batch_options mini_batch = {};
  pipeline_options pipeline = {};
  link_options links = {};
  std::map<std::string, double, std::less<>> own = {};  ///< options that the library does not know, by name

  operator graph::matrix_options() const { return {blocks, block_sizes, loops, epsilon, symmetric}; }
};

/// How the learning rate changes, with the period that 0 stands for.
inline nn::schedule schedule_of(const training_options& options) {
  nn::schedule how = options.schedule;
  if (how.period == 0)
    how.period = how.curve == rate_curve::cosine ? std::max(1, options.epochs - how.warmup) : 10;
  return how;
}

/// More hops than any network has: a larger number is a mistake.
inline constexpr int most_hops = 10000;

/// The model options contained in the training options.
inline nn::model_options options_of_model(const training_options& options) {
  return {.seed = options.seed,
          .weight_decay = options.weight_decay,
          .convolution_decay = options.convolution_decay,
          .dropout = options.dropout,
          .learned_input = options.embedding > 0,
          .products = {.stationary = options.stationary,
                       .rows = options.exchange,
                       .chunks = options.exchange_pieces,
                       .encoding = options.encoding,
                       .ranks_of_node = options.ranks_of_node},
          .operands = options.operands,
          .storage = options.storage,
          .split_pieces = static_cast<std::size_t>(std::max(options.split_pieces, 1)),
          .coefficients = options.coefficients,
          .recompute = options.recompute};
}

/// A training step of a pipeline against an exact one with the same parameters and dropout.
struct pipeline_comparison {
  int epoch = 0;
  double loss = 0, exact_loss = 0;
  double logits_difference = 0;  ///< |Z - Z_exact| / |Z_exact|, Frobenius norms
  double gradient_cosine = 0;    ///< of the angle between the gradients of all parameters
  bool diverged = false;         ///< by the measure of pipeline_options
  std::string reason = {};       ///< if it has: what differs, and how much may
};

/// The report of one epoch, the same on every rank.
struct epoch_report {
  int epoch = 0;  ///< from 1
  double loss = 0;
  /// Micro-F1 of labels, R^2 of values, MRR of links; not a number for a part of the split without vertices.
  double train_accuracy = 0, validation_accuracy = 0, test_accuracy = 0;
  double seconds = 0;  ///< of the training step, on the slowest rank
  std::optional<pipeline_comparison> comparison = {};
  std::string not_finite = {};  ///< after the step: a gradient, parameter or moment that is not; empty: none

  /// Of training, validation and test set.
  void set_scores(const std::array<double, 3>& scores) {
    train_accuracy = scores[0], validation_accuracy = scores[1], test_accuracy = scores[2];
  }
};

/// The maximum and the sum of a quantity over the ranks.
struct max_and_total {
  global_index max_rank = 0;
  global_index total = 0;
};

/// The cost of training under a policy, known before the first step.
struct policy_cost {
  max_and_total words;              ///< received per training step
  max_and_total buffer_bytes = {};  ///< peak of live buffers during set-up
  global_index list_bytes = 0;      ///< lists in host memory per rank, while A's entries arrive
  double seconds = 0;               ///< of a training step, where a machine is given
  double waiting = 0;               ///< of these, those of operations, on the rank that waits longest

  /// For the busiest rank.
  global_index bytes() const { return buffer_bytes.max_rank + list_bytes; }
};

/// What sampling cost in the last epoch of training, the same on every rank.
struct mini_batch_result {
  sampling::placement placement = sampling::placement::even;  ///< the one in effect
  int iterations = 0;
  max_and_total remote_rows;        ///< rows of X of which other ranks have a part, received
  global_index requested_rows = 0;  ///< rows of X that all micro-batches need, on all ranks
  global_index sampled_edges = 0;
  global_index most_roots = 0;  ///< of one rank in one iteration
  /// Words that the busiest rank would receive in an iteration, of those placements that were compared.
  std::vector<std::pair<sampling::placement, global_index>> candidates;
};

/// What a pipeline did, the same on every rank.
struct pipeline_result {
  int stages = 0, chunks = 0;
  std::vector<int> layers;       ///< with parameters, of each stage
  std::vector<double> bubble;    ///< of each stage: the share of the steps in which it did not work
  max_and_total boundary_words;  ///< received from other stages per training step
  max_and_total history_bytes;   ///< of rows that are kept for chunks
  std::vector<pipeline_comparison> comparisons;
};

/// What passed between near and far memory in the last epoch, the same on every rank; with its evaluation,
/// unless that was made only because the run was stopped.
struct far_result {
  max_and_total chunks;         ///< of all operations
  max_and_total read, written;  ///< bytes
  /// What trainer::forecast said before the first epoch, if it was asked; bytes.
  std::optional<max_and_total> predicted_read = {}, predicted_written = {};
  double replication = 1;    ///< rows that chunks of sparse products read, for each row
  max_and_total peak_bytes;  ///< peak of live far buffers
  std::optional<double> overlap =
      {};  ///< far_traffic::overlap() of all ranks; none where times are not taken
};

/// The result of training, the same on every rank. Traffic is that of the last epoch's training step, without
/// evaluation.
struct training_result {
  mesh_shape mesh;
  std::vector<epoch_report> epochs;  ///< those before a checkpoint included
  int resumed_from = 0;              ///< the epoch of the checkpoint; 0: none
  bool stopped = false;              ///< before the last epoch, because run_hooks::stop said so
  bool out_of_patience = false;      ///< before the last epoch, because training_options::patience said so
  int kept_epoch = 0;                ///< whose weights are the result; 0 before the first
  int best_validation_epoch = 0;     ///< 0 where no vertex is for validation
  double test_accuracy_at_best_validation = std::numeric_limits<double>::quiet_NaN();
  double seconds_per_epoch = 0;  ///< median
  max_and_total words_received, predicted_words_received, messages;
  max_and_total peak_bytes;        ///< peak of live near buffers since the queue's meter was reset
  max_and_total setup_peak_bytes;  ///< the same, before the first epoch
  double distribute_seconds =
      0;  ///< before the first epoch, to make matrices of the data, on the slowest rank
  std::chrono::steady_clock::time_point first_epoch = {};  ///< when it began on this rank
  /// Of the last epoch, summed over the ranks; with its evaluation, unless that was made only because the run
  /// was stopped.
  std::vector<comm::ledger_entry> ledger;
  task_scores scores;  ///< of the model that is kept
  std::optional<mini_batch_result> mini_batch;
  std::optional<pipeline_result> pipeline;
  std::optional<far_result> far;  ///< of queues with far memory

  /// The report of the epoch whose weights are the result: the best one with patience, or else the last.
  const epoch_report& kept() const {
    return kept_epoch > 0 ? epochs.at(static_cast<std::size_t>(kept_epoch) - 1) : epochs.back();
  }
};

/// Called on every rank after each epoch; again, with its scores, for one without an evaluation after which
/// run_hooks::stop ended the run.
using epoch_observer = std::function<void(const epoch_report&)>;

}  // namespace partita::nn

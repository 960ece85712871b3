// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The options of training, each once: command lines, records, saved models and checkpoints are walks over
/// this table.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "partita/train/field.hpp"
#include "partita/train/model_table.hpp"

namespace partita::nn {

/// What the table below is written with.
namespace detail::table {

inline constexpr double largest = std::numeric_limits<double>::max();
inline constexpr field_range count{"a positive whole number below a billion", 1, 999999999},
    depth{"a whole number from 1 to 10000", 1, most_hops},
    count_or_none{count.is, count.least, count.most, true},
    depth_or_none{depth.is, depth.least, depth.most, true},
    whole{"zero or a positive whole number", 0, 0x1.fffffffffffffp62}, finite{"a number", -largest, largest},
    positive{"a positive number", std::numeric_limits<double>::denorm_min(), largest},
    not_negative{"zero or a positive number", 0, largest}, fraction{"between 0 and 1", 0, 1},
    positive_or_none{positive.is, positive.least, positive.most, true},
    between{"between 0 and 1, both excluded", positive.least, 0x1.fffffffffffffp-1},
    below_one{"at least 0 and below 1", 0, 0x1.fffffffffffffp-1}, cosine{"between -1 and 1", -1, 1},
    below_one_or_none{below_one.is, below_one.least, below_one.most, true},
    probability{"a probability below 1", 0, 0x1.fffffffffffffp-1},
    weight_or_none{"zero or a positive number", 0, largest, true},
    neighbours_or_none{"a number of neighbours, or -1 for all", -1, 0x1p31 - 1, true}, words,
    words_or_none{.or_none = true};

using options = training_options;
using batches = mini_batch_options;
using stages = pipeline_options;
using rates = schedule;
using links = link_options;
using enum field_kept;
using group = field_group;

inline constexpr field_mode always,
    not_sgd_of_rows{" sgd is not for --embedding, whose rows Adam updates",
                    [](const options&o) { return o.optimizer != update_rule::sgd || o.embedding == 0; }},
    with_sgd{" needs --optimizer sgd", [](const options&o) { return o.optimizer == update_rule::sgd; }},
    with_curve{" needs --schedule step, cosine or plateau",
               [](const options&o) { return o.schedule.curve != rate_curve::constant; }},
    with_factor{" needs --schedule step or plateau",
                [](const options&o) {
                  return o.schedule.curve == rate_curve::step || o.schedule.curve == rate_curve::plateau;
                }},
    without_embedding{" and --embedding do not go together: gradients of its rows are not in the norm",
                      [](const options&o) { return o.embedding == 0; }},
    with_relations{" is for --model rgcn and rgat",
                   [](const options&o) { return o.model == "rgcn" || o.model == "rgat"; }},
    with_weights{" is for --model rgcn", [](const options&o) { return o.model == "rgcn"; }},
    without_bases{" and --bases do not go together: weights are either sums or blocks",
                  [](const options&o) { return o.bases == 0; }, &with_weights},
    with_scores{" is less than --evaluate-every",
                [](const options&o) { return o.patience == 0 || o.patience >= o.evaluate_every; }},
    with_huber{" is for --value-loss huber", [](const options&o) { return o.error == value_error::huber; }},
    with_batch{" needs --batch", [](const options&o) { return o.mini_batch.batch > 0; }},
    with_stages{" needs --stages", [](const options&o) { return o.pipeline.stages > 0; }},
    with_window{" is for --history window and halo",
                [](const options&o) {
                  return o.pipeline.history == chunk_history::window ||
                         o.pipeline.history == chunk_history::halo;
                },
                &with_stages},
    with_links{" needs --task links", [](const options&o) { return o.links.width > 0; }},
    with_margin{" needs --link-loss margin",
                [](const options&o) { return o.links.loss == link_loss::margin; }, &with_links},
    with_guard{" needs --guard", [](const options&o) { return o.pipeline.guard > 0; }, &with_stages};

/// In the order of records.
inline constexpr field rows[] = {
    {"model", group::model, at<&options::model>, "", words, by_models, always, "the network"},
    {"hidden", group::model, at<&options::hidden>, "H[,H...]", count, by_models, always,
     "widths of the hidden layers"},
    {"layers", group::model, at<&options::layers>, "L", depth_or_none, by_models, always,
     "layers with parameters, hidden ones of equal width; gcnii, resgcn: convolutions"},
    {"coupling", group::model, at<&options::coupling>, "coupled|decoupled", words, by_models, always,
     "decoupled: dense layers first, then as many hops"},
    {"aggregation", group::model, at<&options::aggregation>, "mean|max", words, by_models, always,
     "how neighbours are aggregated"},
    {"heads", group::model, at<&options::heads>, "K", count, by_models, always,
     "attention heads, in all layers but the last"},
    {"last-heads", group::none, at<&options::last_heads>, "", count, by_models, always, ""},
    {"hops", group::model, at<&options::hops>, "K", depth, by_models, always, "products with the graph"},
    {"split-pieces", group::model, at<&options::split_pieces>, "N", count, nowhere, always,
     "hops under feature_column: overlap exchanges with products, in N pieces"},
    {"recompute", group::model, at<&options::recompute>, "never|always", words, nowhere, always,
     "activation checkpointing: whether backward recomputes outputs"},
    {"alpha", group::model, at<&options::alpha>, "A", fraction, by_models, always,
     "appnp: teleport probability; gcnii: initial residual"},
    {"lambda", group::model, at<&options::lambda>, "L", positive, by_models, always, "identity mapping"},
    {"bases", group::model, at<&options::bases>, "B", count_or_none, by_models, with_weights,
     "relation weights are sums over B bases"},
    {"relation-blocks", group::model, at<&options::relation_blocks>, "B", count_or_none, by_models,
     without_bases, "relation weights are block-diagonal, with B blocks"},
    {"inverse-relations", group::model, at<&options::inverse_relations>, "", words, by_models, with_relations,
     "add a reversed relation for each edge type"},
    {"epsilon", group::model, at<&options::epsilon>, "E", finite, by_models, always,
     "a vertex itself counts 1 + E times"},
    {"self-loops", group::model, at<&options::loops>, "sum|once", words, by_models, always,
     "sum: A + I adds 1 to self-loops in the data; once: it leaves them"},
    {"epochs", group::training, at<&options::epochs>, "N", count, nowhere, always, "epochs"},
    {"lr", group::training, at<&options::learning_rate>, "R", positive, by_checkpoints, always,
     "learning rate"},
    {"optimizer", group::training, at<&options::optimizer>, "adam|adamw|sgd", words, by_checkpoints_if_given,
     not_sgd_of_rows, "the optimizer"},
    {"momentum", group::training, at<&options::momentum>, "M", below_one, by_checkpoints_if_given, with_sgd,
     "momentum of sgd"},
    {"schedule", group::training, at<&rates::curve>, "constant|step|cosine|plateau", words,
     by_checkpoints_if_given, always, "how the learning rate changes with the epochs"},
    {"schedule-period", group::training, at<&rates::period>, "E", count_or_none, by_checkpoints_if_given,
     with_curve,
     "epochs of a step, of the cosine decay (default: all after the warm-up), or of\n"
     "patience before plateau lowers the rate (default 10)"},
    {"schedule-factor", group::training, at<&rates::factor>, "F", between, by_checkpoints_if_given,
     with_factor, "factor by which the learning rate is multiplied"},
    {"schedule-least", group::training, at<&rates::least>, "R", not_negative, by_checkpoints_if_given,
     with_curve, "lower bound of the learning rate"},
    {"warmup", group::training, at<&rates::warmup>, "E", count_or_none, by_checkpoints_if_given, always,
     "epochs in which the learning rate rises to --lr"},
    {"clip", group::training, at<&options::clip>, "G", positive_or_none, by_checkpoints_if_given,
     without_embedding, "clip the gradients of a step to this norm over all parameters"},
    {"patience", group::training, at<&options::patience>, "E", count_or_none, by_checkpoints_if_given,
     with_scores,
     "stop after E epochs without a better validation score, and keep the weights\n"
     "of the best epoch"},
    {"evaluate-every", group::training, at<&options::evaluate_every>, "E", count, nowhere, always,
     "compute scores every E epochs, and after the last"},
    {"weight-decay", group::training, at<&options::weight_decay>, "D", not_negative, by_checkpoints, always,
     "of the first layer; gcnii: of its dense layers"},
    {"convolution-decay", group::training, at<&options::convolution_decay>, "D", not_negative, by_checkpoints,
     always, "weight decay of convolutions"},
    {"dropout", group::training, at<&options::dropout>, "P", probability, by_checkpoints, always,
     "probability of dropout"},
    {"class-weights", group::training, at<&options::class_weights>, "balanced|W1,W2,...|FILE", weight_or_none,
     by_checkpoints_if_given, always, "weight of each class in the loss: balanced, a list, or a .npy file"},
    {"label-smoothing", group::training, at<&options::label_smoothing>, "S", below_one_or_none,
     by_checkpoints_if_given, always, "share of a target that is spread over all classes"},
    {"value-loss", group::training, at<&options::error>, "squared|absolute|huber", words_or_none,
     by_checkpoints_if_given, always, "for values: the error whose mean is the loss"},
    {"huber-delta", group::training, at<&options::huber_delta>, "D", positive, by_checkpoints_if_given,
     with_huber, "error above which the huber loss is linear"},
    {"seed", group::training, at<&options::seed>, "S", whole, by_models, always,
     "random seed of initial weights and embeddings, dropout and --partition"},
    {"raw-features", group::features, at<&options::raw_features>, "", words, by_models, always,
     "do not divide features by their row sums"},
    {"embedding", group::features, at<&options::embedding>, "W", count_or_none, by_models, always,
     "learn W numbers for each vertex in place of the data's features"},
    {"operands", group::products, at<&options::operands>, "f32|bf16", words_or_none, by_checkpoints_if_given,
     always, "bf16: round operands of products with the graph to 2 bytes"},
    {"storage", group::products, at<&options::storage>, "f32|bf16", words_or_none, by_checkpoints_if_given,
     always, "bf16: also store dense features and activations in 2 bytes, on the CPU only"},
    {"exchange", group::products, at<&options::exchange>, "automatic|full|needed|cover", words_or_none,
     nowhere, always,
     "what is sent along row in products with the graph: whole blocks (full), needed rows,\n"
     "the fewest rows of operands or sums (cover, if A stays), or the cheaper of the\n"
     "first two (automatic)"},
    {"stationary", group::products, at<&options::stationary>, "automatic|c|a", words_or_none, nowhere, always,
     "what stays in place along col in products with the graph: X and Y (c), A (a), or\n"
     "the cheaper of these (automatic)"},
    {"exchange-pieces", group::products, at<&options::exchange_pieces>, "N", count_or_none, nowhere, always,
     "overlap the exchange of needed rows with products with the graph, in N pieces\n"
     "(default: in slices by a rule; 1: at once; with --far, chosen by its window)"},
    {"ranks-of-node", group::products, at<&options::ranks_of_node>, "G", count_or_none, nowhere, always,
     "G consecutive ranks share a node: rows that several of them need are sent to the\n"
     "node once and forwarded inside (default 1)"},
    {"row-encoding", group::products, at<&options::encoding>, "exact|bf16|int8|int4", words_or_none,
     by_checkpoints_if_given, always,
     "send needed rows in 2, 1 or 1/2 bytes per number; int8 and int4 use stochastic\n"
     "rounding"},
    {"batch", group::batches, at<&batches::batch>, "B", count_or_none, by_checkpoints, always,
     "train on sampled neighbourhoods of B seed vertices at a time, over all ranks"},
    {"sampler", group::batches, at<&batches::sampler>, "neighbours|layers|walks", words, by_checkpoints,
     with_batch, "the sampler of batches"},
    {"fanout", group::batches, at<&batches::fanouts>, "F1[,F2...]", neighbours_or_none, by_checkpoints,
     with_batch,
     "neighbours sampled in each layer, the first layer's first, or one\n"
     "number for all layers; -1: all neighbours (default 10); rgcn and rgat:\n"
     "per relation, or R numbers separated by slashes; layers: vertices per layer\n"
     "(default 1000); walks: their length (default 2)"},
    {"placement", group::batches, at<&batches::placement>, "auto|even|owner|column|column_gather", words,
     nowhere, with_batch, "which rank processes which seed vertices, and how features are cut"},
    {"micro-batches", group::batches, at<&batches::micro_batches>, "T", count, nowhere, with_batch,
     "parts in which a rank processes its share of a batch"},
    {"replace", group::batches, at<&batches::replace>, "", words, by_checkpoints, with_batch,
     "sample with replacement"},
    {"graph", group::batches, at<&batches::cut_graph>, "replicated|cut", words, nowhere, with_batch,
     "whether each rank stores all edges or those into its vertices"},
    {"scores", group::batches, at<&batches::sampled_scores>, "exact|sampled", words, nowhere, with_batch,
     "whether scores are computed on the whole graph or on samples"},
    {"stages", group::stages, at<&stages::stages>, "S", count_or_none, nowhere, always,
     "pipeline: divide the layers among S groups of ranks, through which chunks of\n"
     "vertices flow"},
    {"chunks", group::stages, at<&stages::chunks>, "K", count_or_none, nowhere, with_stages,
     "chunks (default four per stage)"},
    {"chunk-cut", group::stages, at<&stages::cut>, "even|nonzeros|metis", words, nowhere, with_stages,
     "how each rank's vertices are cut into chunks: evenly, by numbers of\n"
     "in-edges, or with few cut edges"},
    {"stage-layers", group::stages, at<&stages::layers>, "L1[,L2...]|measured", count_or_none, nowhere,
     with_stages,
     "layers with parameters per stage (default: balanced by estimated costs;\n"
     "measured: by costs measured before training)"},
    {"history", group::stages, at<&stages::history>, "window|halo|zero|exact", words, nowhere, with_stages,
     "what a chunk reads for neighbours in chunks that have not run yet: values of the\n"
     "previous window; halo: values recomputed from these; zero: zeros; exact: it\n"
     "waits for their values"},
    {"window", group::stages, at<&stages::window>, "W", count, nowhere, with_window,
     "epochs for which history is kept"},
    {"no-shuffle", group::stages, at<&stages::shuffle>, "", words, nowhere, with_stages,
     "process chunks in the same order in every epoch"},
    {"no-compensation", group::stages, at<&stages::compensate>, "", words, nowhere, with_stages,
     "do not double gradients that reach other chunks"},
    {"guard", group::stages, at<&stages::guard>, "N", count_or_none, nowhere, with_stages,
     "compare with an exact epoch every N epochs"},
    {"tolerance", group::stages, at<&stages::tolerance>, "X", positive, nowhere, with_guard,
     "relative difference of losses at which the guard acts"},
    {"least-cosine", group::stages, at<&stages::least_cosine>, "C", cosine, nowhere, with_guard,
     "cosine of the angle between gradients below which the guard also acts"},
    {"on-divergence", group::stages, at<&stages::on_divergence>, "report|refresh|warm-up|exact|stop", words,
     nowhere, with_guard,
     "what the guard does: report, refresh the history, train exactly until the next\n"
     "comparison (warm-up) or to the end, or stop the run"},
    {"exact-epochs", group::stages, at<&stages::exact_epochs>, "N", whole, nowhere, with_stages,
     "start with N exact epochs"},
    {"decoder", group::links, at<&links::decoder>, "dot|distmult|mlp", words, by_models, with_links,
     "how a pair is scored from the rows of its ends: their dot product, one with learned\n"
     "weights, or an MLP on their elementwise product"},
    {"link-width", group::links, at<&links::width>, "W", count_or_none, by_checkpoints_if_given, with_links,
     "width of the vertex embeddings (default: the last hidden width)"},
    {"held-out", group::links, at<&links::held_out>, "V,T", below_one, by_checkpoints_if_given, with_links,
     "shares of the links held out for validation and test"},
    {"negatives", group::links, at<&links::negatives>, "N", count, by_checkpoints_if_given, with_links,
     "negative pairs drawn for each link in each epoch"},
    {"link-loss", group::links, at<&links::loss>, "bce|margin", words, by_checkpoints_if_given, with_links,
     "binary cross-entropy of logits, or margin loss"},
    {"margin", group::links, at<&links::margin>, "M", positive, by_checkpoints_if_given, with_margin,
     "of the margin loss"},
    {"hits", group::links, at<&links::hits>, "K", count, nowhere, with_links,
     "Hits at K: the share of links ranked at most K"},
    {"ranking-negatives", group::links, at<&links::ranking_negatives>, "N", count_or_none, nowhere,
     with_links,
     "negatives drawn for each ranked link (default: those in the data, or all\n"
     "vertices)"},
};

}  // namespace detail::table

namespace detail {

inline std::vector<field>& known_fields() {
  static std::vector<field> all(std::begin(table::rows), std::end(table::rows));
  return all;
}

}  // namespace detail

/// Every option of training, in the order of records, and then your own.
inline const std::vector<field>& fields = detail::known_fields();

/// Makes an option of your own known, which is in training_options::own: files and command lines have it.
/// Before ranks start; not collective. Throws error where there is one of this name.
inline void add_field(const field& f) {
  if (std::ranges::find(fields, f.name, &field::name) != fields.end())
    base::throw_error<error>({"there is an option ", f.name, " already"});
  detail::known_fields().push_back(f);
}

/// The value as it is written to files: numbers so that they are read back exactly, lists with commas,
/// and a slash between the numbers of a fan-out. Local.
inline std::string text_of(const field& f, training_options o) {
  const auto number = [](auto value) {
    char text[32];
    return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
  };
  const auto text = [&]<class V>(V* value) -> std::string {
    if constexpr (std::is_same_v<V, std::string>)
      return *value;
    else if constexpr (std::is_same_v<V, bool>)
      return f.has_words() ? std::string(f.word(*value)) : *value != f.switches_off() ? "true" : "false";
    else if constexpr (std::is_same_v<V, std::uint8_t>)
      return std::string(f.word(*value));
    else if constexpr (std::is_arithmetic_v<V>)
      return number(*value);
    else {
      const auto listed = [](const auto& list, const char* separator, const auto& text_of_one) {
        std::string all;
        for (const auto& each : list) all += (&each == &list.front() ? "" : separator) + text_of_one(each);
        return all;
      };
      if constexpr (std::is_same_v<typename V::value_type, sampling::fanout>)
        return listed(*value, ",", [&](const auto& each) { return listed(each.numbers, "/", number); });
      else
        return listed(*value, ",", number);
    }
  };
  return std::visit(text, f.of(o));
}

/// The value becomes that of a text as above. Returns false, and changes nothing, where the text is none, or
/// a whole number, or one of a list, outside the range and not 0 for "none". Local.
inline bool take(const field& f, training_options& o, std::string_view text) {
  const auto most = [&]<class N>(N) {  // a seed may be any
    return std::is_same_v<N, double> || std::is_same_v<N, std::uint64_t> ? HUGE_VAL : f.range.most;
  };
  const auto read = [&]<class V>(V* value) {
    if constexpr (std::is_same_v<V, std::string>) {
      *value = text;
      return true;
    } else if constexpr (std::is_same_v<V, bool> || std::is_same_v<V, std::uint8_t>) {
      if (!f.has_words()) {
        const bool known = text == "true" || text == "false";
        if (known) *value = (text == "true") != f.switches_off();
        return known;
      }
      const std::size_t k = f.number_of(text);
      const bool known = k < f.number_of({});
      if (known) *value = static_cast<V>(k);
      return known;
    } else if constexpr (std::is_same_v<V, double>) {
      return detail::parse_number(text, *value, -detail::table::largest);
    } else if constexpr (std::is_arithmetic_v<V>) {
      return detail::parse_number(text, *value, f.range.or_none ? 0 : f.range.least, most(*value));
    } else {
      V found;
      const auto number = [&](auto& to, std::string_view word) {
        return detail::parse_number(word, to, f.range.least, most(to));
      };
      const bool good = text.empty() || detail::read_pieces(text, ',', [&](std::string_view piece) {
                          auto& one = found.emplace_back();
                          if constexpr (std::is_same_v<typename V::value_type, sampling::fanout>)
                            return detail::read_pieces(piece, '/', [&](std::string_view word) {
                              return number(one.numbers.emplace_back(), word);
                            });
                          else
                            return number(one, piece);
                        });
      if (good) *value = std::move(found);
      return good;
    }
  };
  return std::visit(read, f.of(o));
}

/// Whether the value is that of training_options{}. Local.
inline bool is_default(const field& f, const training_options& o) { return text_of(f, o) == text_of(f, {}); }

/// Whether the option has an effect, and does not say that there is none: then records have it. Local.
inline bool is_recorded(const field& f, const training_options& o) {
  return f.mode.refusal(o).empty() && !(f.range.or_none && is_default(f, o));
}

/// "gcn, sage and gat", those that read the field; empty where every model does. Variants that are not the
/// usual one are named where that one does not. Local.
inline std::string models_of(const field& f) {
  return models_that([&](const model_row& row) {
    const model_row& usual = *find_row(row.name, coupling::coupled, aggregation::mean);
    return row.reads(f.name) && (&row == &usual || !usual.reads(f.name));
  });
}

/// The first field that the model does not read and whose value is not the default; null where there is none,
/// or no such model. Local.
inline const field* unread_field(const training_options& o) {
  const model_row* const variant = find_row(o);
  const auto has = [&](const model_row& row) { return variant ? &row == variant : row.name == o.model; };
  if (std::ranges::none_of(model_rows, has)) return nullptr;
  for (const field& f : fields)
    if (!is_default(f, o) && !models_of(f).empty() &&
        std::ranges::none_of(model_rows, [&](const model_row& row) { return has(row) && row.reads(f.name); }))
      return &f;
  return nullptr;
}

}  // namespace partita::nn

// SPDX-License-Identifier: Apache-2.0
#include "complete.hpp"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "../ranks/command_line.hpp"

namespace {

/// Of an option: with which other one it does not go, and why.
struct conflict {
  bool given;
  std::string_view other, why;
};

/// Throws usage_error for the first of them that is given.
void refuse_beside(std::string_view option, std::initializer_list<conflict> others) {
  for (const auto& [given, other, why] : others)
    refuse_if(given, "{} and {} do not go together: {}", other, option, why);
}

/// Throws usage_error for the first option that the model or the mode does not use.
void require_use(const CLI::App& app, const nn::training_options& t) {
  for (const nn::field& f : nn::fields) {
    const std::string name = "--" + std::string(f.name);
    refuse_if(f.group != nn::field_group::none && is_given(app, name) && !f.mode.refusal(t).empty(), "{}{}",
              name, f.mode.refusal(t));
  }
  if (const nn::field* const unread = unread_field(t)) {
    const nn::model_row* const row = find_row(t);
    throw usage_error(fmt::format("--{} is for --model {}, not {}", unread->name, models_of(*unread),
                                  row == nullptr ? t.model : row->title()));
  }
  refuse_if(t.schedule.curve != nn::rate_curve::constant && t.schedule.least > t.learning_rate,
            "--schedule-least {} is more than --lr {}", t.schedule.least, t.learning_rate);
  refuse_beside("--embedding",
                {{t.raw_features && t.embedding > 0, "--raw-features", "no features are read"}});
}

/// row_1d for a policy that is not given, which is that of the evaluation.
void complete_policy(const CLI::App& app, command& c) {
  if (c.policy != "auto") return;
  refuse_if(is_given(app, "--policy"),
            "--policy auto and --batch do not go together: auto compares steps on the whole graph at once; "
            "name a policy, or none for row_1d");
  c.policy = "row_1d";
}

/// The columns of rows for links become those of the hidden layer.
void complete_links(const CLI::App& app, command& c) {
  nn::link_options& links = c.training.links;
  if (c.task != "links") return refuse_if(links.width > 0, "--link-width needs --task links");
  refuse_beside(
      "--task links",
      {{c.in_batches(), "--batch", "samples are of labelled vertices, not of pairs"},
       {c.on_stages(), "--stages", "a stage has the rows of a chunk, and a pair may be in two"},
       {c.reproducible, "--reproducible", "gradients of pairs are summed in the order of the ranks"},
       {!c.far.empty(), "--far", "pairs are redrawn and replanned in each epoch"}});
  if (links.width == 0) links.width = c.training.hidden.back();
  c.has_held_out = is_given(app, "--held-out");
  refuse_if(links.held_out.size() != 2 || links.held_out[0] + links.held_out[1] >= 1,
            "--held-out takes two shares, of validation and test links, below 1 together");
}

/// Throws usage_error for a model that samples, or the rows of a placement, are not for.
void require_batches_possible(const command& c) {
  const nn::model_row* const row = find_row(c.training);
  if (!c.in_batches() || row == nullptr) return;
  const nn::mini_batch_options& b = c.training.mini_batch;
  refuse_if(!row->is_on_blocks(),
            "--batch: model {} cannot be trained on sampled neighbours; {} can, coupled and with mean "
            "aggregation",
            row->title(), models_that(&nn::model_row::is_on_blocks));
  refuse_if(b.placement == partita::sampling::placement::column && !row->on_blocks.slices,
            "--placement column multiplies slices of the columns of X, not possible with model {}",
            row->title());
  refuse_if(
      b.sampler == nn::batch_sampler::layers && row->carries_edges,
      "--sampler layers draws other edges for each layer, and model {} carries vectors of edges from one "
      "to the next",
      row->title());
  refuse_if(b.sampler == nn::batch_sampler::walks && row->reads_edge_types(),
            "--sampler walks is for edges of one type, and model {} reads their types", row->title());
}

/// One fan-out becomes that of all layers.
void complete_mini_batches(const CLI::App& app, command& c) {
  if (!c.in_batches()) return;
  nn::training_options& t = c.training;
  nn::mini_batch_options& b = t.mini_batch;
  refuse_if(b.micro_batches > b.batch, "--micro-batches {} are more parts than a batch of {} has vertices",
            b.micro_batches, b.batch);
  const nn::model_row* const row = find_row(t);
  const std::size_t layers = row != nullptr && row->convolutions > 0
                                 ? static_cast<std::size_t>(row->convolutions_of(t))
                             : t.layers > 0 && t.hidden.size() == 1 ? static_cast<std::size_t>(t.layers)
                                                                    : t.hidden.size() + 1;
  const bool walks = b.sampler == nn::batch_sampler::walks;
  const bool neighbours = b.sampler == nn::batch_sampler::neighbours;
  const partita::sampling::fanout usual = walks ? 2 : neighbours ? 10 : 1000;
  std::vector<partita::sampling::fanout>& f = b.fanouts;
  if (f.size() < 2) f.assign(walks ? 1 : layers, partita::sampling::fanout(f.empty() ? usual : f[0]));
  refuse_if(walks && (f.size() > 1 || f[0][0] < 1 || f[0][0] > nn::most_hops),
            "--fanout of --sampler walks is one length from 1 to {}", nn::most_hops);
  refuse_if(!walks && f.size() != layers, "--fanout has {} numbers, and the model {} layers", f.size(),
            layers);
  for (std::size_t k = 0; k < f.size(); ++k) {
    const auto& numbers = f[k].numbers;
    refuse_if(numbers.size() > 1 && (!neighbours || row == nullptr || !row->reads_edge_types()),
              "--fanout of layer {}: numbers with slashes are for --sampler neighbours and the models that "
              "read types of edges, {}",
              k + 1, models_that(&nn::model_row::reads_edge_types));
    refuse_if(!neighbours && numbers[0] < 1, "--fanout of layer {}: -1 is for --sampler neighbours", k + 1);
    refuse_if(row != nullptr && row->carries_edges && f[k] != f[0],
              "--fanout of layer {} is {}, and that of layer 1 {}: layers of {} have the same edges", k + 1,
              numbers[0], f[0][0], row->title());
  }
  refuse_if(b.replace && !neighbours, "--replace is for --sampler neighbours");
  refuse_if(walks && b.sampled_scores, "--sampler walks needs --scores exact");
  complete_policy(app, c);
}

void complete_stages(const CLI::App& app, command& c) {
  if (!c.on_stages()) return;
  const nn::pipeline_options& p = c.training.pipeline;
  const bool chunked = is_given(app, "--exchange-pieces"), exchanges = is_given(app, "--exchange");
  refuse_beside("--stages",
                {{c.in_batches(), "--batch", "a batch passes all layers on one rank"},
                 {is_given(app, "--embedding"), "--embedding", "the first stage learns no input"},
                 {exchanges, "--exchange", "chunks have their own exchange"},
                 {chunked, "--exchange-pieces", "vertices are in --chunks already"},
                 {is_given(app, "--stationary"), "--stationary", "chunks have their own exchange"},
                 {is_given(app, "--ranks-of-node"), "--ranks-of-node", "chunks have their own exchange"}});
  require_stages_possible(c.training, "--stages");
  refuse_if(!p.layers.empty() && std::ssize(p.layers) != p.stages,
            "--stage-layers has {} numbers for {} stages", p.layers.size(), p.stages);
  const int layers = layers_of(c.training), given = std::accumulate(p.layers.begin(), p.layers.end(), 0);
  refuse_if(layers < p.stages, "--stages: a model of {} layers with parameters cannot be cut into {} stages",
            layers, p.stages);
  refuse_if(!p.layers.empty() && given != layers,
            "--stage-layers: {} layers in total for {} stages; this model has {} layers with parameters "
            "(dense layers and norms count)",
            given, p.stages, layers);
  refuse_if(p.guard > 0 && p.history == nn::chunk_history::exact,
            "--guard has nothing to compare with --history exact");
  refuse_if(p.guard > c.training.epochs, "--guard {} compares nothing in {} epochs", p.guard,
            c.training.epochs);
  const bool chooses = (is_given(app, "--policy") && c.policy == "auto") || c.mesh == "auto";
  refuse_if(chooses && c.cuts_chunks(),
            "--chunk-cut metis needs a --policy and a --mesh: it cuts the blocks of one mesh");
  if (!is_given(app, "--policy")) c.policy = "row_1d";
}

void require_mesh(const command& c) {
  if (c.mesh == "auto")
    refuse_beside("--mesh auto",
                  {{c.replication.has_value(), "--replication", "each depth is compared"},
                   {c.in_batches(), "--batch", "it compares steps on the whole graph at once"}});
}

void require_products(const CLI::App& app, const command& c) {
  const bool stores = c.training.storage != nn::operand_precision::unrounded,
             rounds = stores || c.training.operands != nn::operand_precision::unrounded;
  const std::string option = stores ? "--storage bf16" : rounds ? "--operands bf16" : "--row-encoding";
  const bool encodes = c.training.encoding != partita::algebra::row_encoding::exact;
  if (!rounds && !encodes) return;
  require_stages_possible(c.training, option.c_str());
  refuse_beside(
      option,
      {{rounds && c.precision == "f64", "--precision f64", "operands of 2 bytes become f32"},
       {stores && app.count("--operands") > 0 && c.training.operands == nn::operand_precision::unrounded,
        "--operands f32", "numbers stored in 2 bytes are multiplied as they are"},
       {stores && c.device == "cuda", "--device cuda", "dense products read such operands on the CPU"},
       {c.reproducible, "--reproducible", "its sums are exact, of unrounded numbers"},
       {!rounds && c.in_batches(), "--batch", "products of a batch send no rows"},
       {!rounds && c.on_stages(), "--stages", "products of a stage read a history of exact rows"},
       {rounds && encodes, "--row-encoding", "rows then have 2 bytes per number already"}});
  refuse_if(!rounds && c.policy == "auto",
            "--row-encoding needs a --policy that cuts rows, such as row_1d or grid_2d: only rows that "
            "are sent along row are encoded, and auto may choose a policy without them");
  refuse_if(!rounds && c.training.exchange == partita::row_exchange::full,
            "--row-encoding is for needed rows: not with --exchange full");
}

/// Takes --precision tf32 apart: a type, and how a device multiplies it.
void take_precision(command& c) {
  if (c.precision != "tf32") return;
  refuse_if(c.device != "cuda", "--precision tf32 needs --device cuda: the CPU has no such products");
  c.precision = "f32";
  c.tf32 = true;
}

/// Throws usage_error for a --far that has no budget, or is for something else.
void require_far(const CLI::App& app, const command& c) {
  if (!is_given(app, "--far")) return;
  refuse_if(!c.memory, "--far needs --memory: it streams what exceeds that");
  refuse_if(c.device == "cuda" && c.far != "pinned",
            "--far with --device cuda takes the word pinned, for page-locked memory of the host");
  refuse_if(c.device == "cpu" && c.far == "pinned",
            "--far pinned needs --device cuda; a folder of that name is ./pinned");
  refuse_beside("--far", {{c.on_stages(), "--stages", "a stage keeps its history in memory"}});
}

/// Throws usage_error where outputs cannot be computed again.
void require_recomputation(const command& c) {
  if (c.training.recompute != nn::activation_checkpointing::always) return;
  refuse_beside("--recompute always",
                {{c.in_batches(), "--batch", "outputs of a batch are small, and stay in memory"},
                 {c.on_stages(), "--stages", "outputs of a chunk stay in memory until its backward"}});
  refuse_if(c.training.model == "gcnii",
            "--recompute always is not for gcnii, whose layers read the output of an earlier one");
}

void require_reproducible(const command& c) {
  if (!c.reproducible) return;
  refuse_if(c.device != "cpu", "--reproducible needs --device cpu: CUDA devices have no such sums");
  refuse_beside("--reproducible", {{c.on_stages(), "--stages", "chunks are cut from the rows of a rank"},
                                   {c.training.exchange == partita::row_exchange::cover, "--exchange cover",
                                    "which sums are sent depends on the ranks"}});
  if (!c.in_batches()) return;
  const nn::mini_batch_options& b = c.training.mini_batch;
  const nn::model_row* const row = find_row(c.training);
  const std::string of_model = "--model " + c.training.model + ": its sums are in the order of the samples";
  for (const auto& [given, what] :
       {std::pair(row != nullptr && row->is_on_blocks() && !row->is_reproducible_on_blocks(),
                  of_model.c_str()),
        std::pair(b.sampler == nn::batch_sampler::walks,
                  "--sampler walks: a subgraph depends on which roots a rank has"),
        std::pair(b.placement == partita::sampling::placement::column,
                  "--placement column: its products are partial sums over the ranks' columns")})
    refuse_if(given, "--reproducible with --batch is not for {}", what);
}

/// Throws usage_error where two outputs would be one file.
void require_different_files(const command& c) {
  std::map<std::filesystem::path, const char*> files;
  for (const auto& [name, path] :
       {std::pair("--json", &c.json), std::pair("--report", &c.page), std::pair("--trace", &c.trace),
        std::pair("--save", &c.save), std::pair("--save-logits", &c.save_logits),
        std::pair("--save-hidden", &c.save_hidden)}) {
    std::error_code ignored;
    if (path->empty()) continue;
    const auto [other, is_new] = files.emplace(std::filesystem::weakly_canonical(*path, ignored), name);
    refuse_if(!is_new, "{} and {} name the same file", other->second, name);
  }
}

/// Throws usage_error for blocks of weights that hidden layers cannot have.
void require_blocks_fit(const nn::training_options& t) {
  if (t.relation_blocks <= 0 || layers_of(t) == 1) return;
  for (const partita::global_index width : t.hidden)
    refuse_if(width % t.relation_blocks != 0, "--relation-blocks {} do not divide --hidden {}",
              t.relation_blocks, width);
}

}  // namespace

void require_stages_possible(const nn::training_options& t, const char* option) {
  const nn::model_row* const row = find_row(t);
  refuse_if(row == nullptr || !row->on_stages, "{} is for --model {}, coupled and with mean aggregation",
            option, models_that(&nn::model_row::on_stages));
}

int layers_of(const nn::training_options& t) {
  const nn::model_row* const row = find_row(t);
  if (row == nullptr || !row->reads("layers")) return 0;
  if (row->convolutions == 0) return t.layers > 0 ? t.layers : static_cast<int>(t.hidden.size()) + 1;
  const int convolutions = t.layers > 0 ? t.layers : row->convolutions;
  return row->other_layers > 0 ? convolutions + row->other_layers : 0;
}

void complete(const CLI::App& app, command& c) {
  take_precision(c);
  refuse_if(c.no_graphs && c.device != "cuda", "--no-graphs needs --device cuda: the CPU has no graphs");
  complete_links(app, c);
  require_use(app, c.training);
  require_blocks_fit(c.training);
  require_batches_possible(c);
  complete_mini_batches(app, c);
  complete_stages(app, c);
  require_mesh(c);
  require_products(app, c);
  refuse_if(c.training.exchange_pieces > 1 && c.training.exchange == partita::row_exchange::full,
            "--exchange-pieces is for needed rows: not with --exchange full");
  const std::string nodes = fmt::format("--ranks-of-node {}", c.training.ranks_of_node);
  refuse_if(c.training.ranks_of_node > 1 && c.training.exchange == partita::row_exchange::full,
            "{} is for needed rows: not with --exchange full", nodes);
  refuse_if(c.training.ranks_of_node > 1 && c.training.exchange_pieces > 1,
            "{} and --exchange-pieces {} do not go together: rows are forwarded in one piece", nodes,
            c.training.exchange_pieces);
  for (const char* name : {"--every", "--keep", "--resume"})
    refuse_if(c.checkpoint.folder.empty() && is_given(app, name), "{} needs --checkpoint", name);
  require_far(app, c);
  require_recomputation(c);
  require_reproducible(c);
  require_different_files(c);
  if (c.comm == "threads") require_possible(std::max(c.ranks.value_or(1), c.training.pipeline.stages));
  refuse_if(!c.save_hidden.empty() && layers_of(c.training) == 1,
            "--save-hidden needs a hidden layer, and this model has none");
  refuse_if(c.calibration && c.calibration->kernels == nullptr,
            "--calibration needs a file with kernels, such as `calibrate FILE.json` writes it");
  for (const auto& [option, m] :
       {std::pair("--machine", &c.machine), std::pair("--calibration", &c.calibration)})
    refuse_if(*m && !(*m)->precision.empty() && (*m)->precision != c.precision,
              "{} {} has kernels that were measured in {}, and --precision is {}: `calibrate --precision {}` "
              "measures those",
              option, (*m)->file, (*m)->precision, c.precision, c.precision);
  if (c.calibration)
    refuse_beside("--calibration",
                  {{c.in_batches(), "--batch", "it compares steps on the whole graph at once"}});
  refuse_if(c.calibration && c.policy != "auto" && c.mesh != "auto",
            "--calibration is for --policy auto and --mesh auto");
  refuse_if(c.calibration && c.machine,
            "--calibration and --machine do not go together: --policy auto compares seconds of the machine");
  refuse_if(c.machine && (c.device != "cpu" || c.threads.value_or(1) > 1),
            "--machine emulates ranks of --device cpu with a thread each");
  refuse_if(c.machine && c.machine->kernels && !c.far.empty(),
            "--machine with kernels and --far do not go together");
  refuse_if(c.comm != "mpi" && c.mpi_collectives == "native", "--mpi-collectives native needs --comm mpi");
  refuse_if(c.comm == "nccl" && c.device != "cuda", "--comm nccl needs --device cuda");
}

// SPDX-License-Identifier: Apache-2.0
/// Says how a model is trained fastest on a machine: under which policy, on which mesh, with what exchanged
/// and in which order of the vertices. The machine need not be there, and nothing is set up but for models
/// that read entries when they are made. Without a machine it compares words and bytes.
/// Exit code 0; 1 when the work fails, with one line on stderr; 2 when the command line is wrong. Of several
/// processes of a job, the first one plans.

#include <algorithm>
#include <fmt/core.h>
#include <functional>
#include <utility>

#include "../ranks/arrangement.hpp"
#include "../ranks/command_line.hpp"
#include "../ranks/files.hpp"
#include "../ranks/parts.hpp"
#include "../ranks/program.hpp"
#include "../train/compare.hpp"
#include "../train/complete.hpp"
#include "../train/input.hpp"
#include "../train/ordering.hpp"
#include "../train/report.hpp"
#include "partita/comm/self.hpp"
#include "partita/comm/threads.hpp"
#include "table.hpp"

namespace {

/// What is planned beside the options of `train`.
struct plan_command {
  std::vector<std::string> partitions, exchanges{"full", "needed"};
  std::vector<int> chunks{0, 1}, stage_chunks;
  std::vector<std::string> stages;
  bool names_policy = false;
  int rows = 12;      ///< of the table
  std::string given;  ///< see given_in
};

void add_plan(CLI::App& app, plan_command& p) {
  app.callback([&] { p.given = given_in(app), p.names_policy = is_given(app, "--policy"); });
  app.option_defaults()->group("Plan");
  const auto list = [&](const char* name, std::vector<std::string>& to, std::vector<std::string> allowed,
                        const char* what) {
    app.add_option(name, to, what)
        ->delimiter(',')
        ->check(CLI::IsMember(allowed))
        ->option_text(CLI::detail::join(allowed, "|") + "[,...]");
  };
  list("--partitions", p.partitions, partitioners(),
       "orders of the vertices that are compared (default: that of --partition)");
  list("--exchanges", p.exchanges, {"full", "needed", "cover"},
       "exchanges along row that are compared, but with --exchange (default: full, needed; covers are set up "
       "for)");
  app.add_option("--chunk-counts", p.chunks,
                 "--exchange-pieces to compare for needed rows; 0: slices by rule, 1: at once (more: set "
                 "up for)")
      ->delimiter(',')
      ->check(CLI::Range(0, 1 << 20))
      ->option_text("N[,...]")
      ->capture_default_str();
  app.add_option("--stage-counts", p.stages,
                 "numbers of stages to compare, instead of --stages; 0: the whole graph at\n"
                 "once; auto: all that divide the ranks and have a layer for each stage")
      ->delimiter(',')
      ->check(CLI::Validator(
          [number = whole_number("auto or a number of stages", 0, 1 << 20)](const std::string& text) {
            return text == "auto" ? std::string() : number(text);
          },
          ""))
      ->option_text("S[,...]|auto");
  app.add_option("--stage-chunks", p.stage_chunks, "--chunks to compare for stages (default: four per stage)")
      ->delimiter(',')
      ->check(count)
      ->option_text("K[,...]");
  app.add_option("--rows", p.rows,
                 "rows of the table, the fastest first; the one with the fewest words\nis there in any case")
      ->check(count)
      ->option_text("N")
      ->capture_default_str();
}

partita::row_exchange exchange_named(const std::string& name) {
  return name == "full"     ? partita::row_exchange::full
         : name == "needed" ? partita::row_exchange::sparsity_aware
                            : partita::row_exchange::cover;
}

/// The numbers of stages that are compared; 0: the whole graph at once. Throws usage_error for those that
/// `train` would refuse.
std::vector<int> stages_of(const command& c, const plan_command& p, int ranks) {
  const nn::training_options& t = c.training;
  std::vector<int> found;
  for (const std::string& word : p.stages)
    if (word != "auto") {
      found.push_back(std::stoi(word));
    } else {
      if (!c.on_stages()) found.push_back(0);
      for (int s = 2; s <= std::min(ranks, layers_of(t)); ++s)
        if (ranks % s == 0) found.push_back(s);
    }
  if (found.empty()) found = {t.pipeline.stages};
  if (!p.stages.empty()) {
    require_stages_possible(t, "--stage-counts");
    for (const auto& [given, option] :
         {std::pair(c.in_batches(), "--batch"), std::pair(t.embedding > 0, "--embedding"),
          std::pair(t.ranks_of_node > 1, "--ranks-of-node"),
          std::pair(t.encoding != partita::algebra::row_encoding::exact, "--row-encoding"),
          std::pair(t.operands != nn::operand_precision::unrounded, "--operands"),
          std::pair(t.storage != nn::operand_precision::unrounded, "--storage"),
          std::pair(c.task == "links", "--task links")})
      refuse_if(given, "--stage-counts and {} do not go together: stages train without it", option);
  }
  for (const int s : found) {
    refuse_if(s == 0 && c.on_stages(), "--stage-counts 0 is the whole graph at once, which --stages is not");
    refuse_if(s > 0 && ranks % s != 0, "{} ranks are not {} stages of equally many", ranks, s);
    refuse_if(s > layers_of(t), "a model of {} layers with parameters cannot be cut into {} stages",
              layers_of(t), s);
  }
  refuse_if(!p.stage_chunks.empty() && (std::ranges::max(found) == 0 || t.pipeline.chunks > 0),
            "--stage-chunks is for stages without --chunks");
  return found;
}

/// The candidates for the data in one order of its vertices, on so many stages, or none.
std::vector<nn::policy_candidate> compared(const command& c, const plan_command& p, int ranks, int stages,
                                           const io::dataset& data) {
  plan_search from{.policies = {.every_mesh = !c.in_batches()}, .stages = stages};
  from.stage_chunks = p.stage_chunks.empty() ? std::vector{c.training.pipeline.chunks} : p.stage_chunks;
  if (c.policy != "auto") from.policies.policies = {partita::find_policy(c.policy)};
  if (c.mesh && c.mesh != "auto")
    from.policies.mesh = arrangement_of(c.policy, c.mesh, {}, ranks / std::max(1, stages))->mesh;
  const nn::model_row* const row = nn::find_row(c.training);
  if (row != nullptr && row->reads("exchange")) {
    for (const std::string& name : p.exchanges) from.policies.exchanges.push_back(exchange_named(name));
    from.policies.stationaries = {partita::stationary::c, partita::stationary::a};
    from.policies.chunks = p.chunks;
  }
  std::vector<nn::policy_candidate> all;
  partita::threads::run(ranks, [&](const partita::communicator& world) {
    plan_search here = from;
    if (world.rank() == 0 && !c.quiet)
      here.policies.observe = work_printer({.name = "plan: comparing", .unit = "candidates", .to = stderr});
    nn::policy_choice found = choose_on(c.machine ? &*c.machine : nullptr, here, world, data, c);
    if (world.rank() == 0) all = std::move(found.candidates);
  });
  return all;
}

/// All candidates in the order in which they are taken. Throws budget_error where none fits.
std::vector<planned> plan(command& c, const plan_command& p, int ranks) {
  const partita::communicator alone = partita::self::world();
  const io::dataset data = read_input(c, alone);
  take_loss(c, data);
  std::vector<std::string> orders = p.partitions;
  if (orders.empty()) orders = {c.partition.name};
  std::vector<planned> all;
  for (const std::string& name : orders) {
    command ordered = c;
    if (name != c.partition.name) ordered.partition = parse_ordering({name});
    for (const int stages : stages_of(c, p, ranks)) {
      const io::dataset sorted = order_vertices(data, ordered, ranks / std::max(1, stages), alone);
      for (const nn::policy_candidate& k : compared(ordered, p, ranks, stages, sorted))
        if (k.same_as.empty()) all.push_back({name, k});
    }
    if (!c.quiet) fmt::print(stderr, "plan: --partition {}, {} candidates so far\n", name, all.size());
  }
  nn::sort_by_cost(all, c.memory, std::mem_fn(&planned::of));
  require_fitting(all, c);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("plan", [&] {
    if (!first_of_job()) return 0;  // no rank of MPI is there: the others would print the same
    plan_command p;
    command c = parse_command(
        argc, argv,
        {.program = "plan",
         .purpose = "Predicts with which policy, mesh and exchanges `train` is fastest with these\n"
                    "options on the machine described by --machine, as written by `calibrate`.\n"
                    "Without --machine it compares words and bytes, and seconds are unknown.",
         .add = [&](CLI::App& app) { add_plan(app, p); }});
    if (c.machine)
      refuse_if(c.machine->kernels == nullptr,
                "--machine {} has no kernels, such as `calibrate FILE.json` writes; without --machine plan "
                "compares words and bytes",
                c.machine->file);
    refuse_if(!c.machine && c.in_batches(),
              "plan compares placements of --batch by seconds, which need --machine FILE.json with kernels");
    for (const auto& [given, option] :
         {std::pair(!c.far.empty(), "--far"), std::pair(c.reproducible, "--reproducible"),
          std::pair(c.device != "cpu", "--device cuda")})
      refuse_if(given, "plan is for graphs in the memory of hosts, without {}", option);
    refuse_if(!p.partitions.empty() && c.partition.name != "none",
              "--partitions and --partition do not go together: name all that are compared in --partitions");
    require_writable(c.json);
    const int ranks = c.ranks.value_or(ranks_of_job());
    if (c.on_stages() && !p.names_policy) c.policy = "auto";
    refuse_if(c.training.pipeline.measured,
              "plan is for a machine that need not be there, without --stage-layers measured");
    for (const int stages : stages_of(c, p, ranks))
      if (c.mesh && c.mesh != "auto")
        arrangement_of(c.policy, c.mesh, {}, ranks / std::max(1, stages));  // throws if it does not fit
    if (!c.quiet && !c.ranks && ranks > 1)
      fmt::print(stderr, "plan: for {} ranks, those of this job\n", ranks);
    const std::string assumed = c.machine ? c.machine->assumption(ranks) : "";
    if (!c.quiet && !assumed.empty()) fmt::print(stderr, "plan: {}\n", assumed);
    const std::vector<planned> all = plan(c, p, ranks);
    if (!c.quiet) print_plan(all, c, ranks, p.rows, p.given);
    if (!c.json.empty()) write_plan(c.json, all, c, ranks);
    return 0;
  });
}

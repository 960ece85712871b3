// SPDX-License-Identifier: Apache-2.0
/// Says how a model is trained fastest on a machine: under which policy, on which mesh, with what exchanged
/// and in which order of the vertices. The machine need not be there, and nothing is set up but for models
/// that read entries when they are made.
/// Exit code 0; 1 when the work fails, with one line on stderr; 2 when the command line is wrong. Of several
/// processes of a job, the first one plans.

#include <algorithm>
#include <fmt/core.h>
#include <functional>
#include <utility>

#include "../ranks/arrangement.hpp"
#include "../ranks/command_line.hpp"
#include "../ranks/compiled.hpp"
#include "../ranks/files.hpp"
#include "../ranks/parts.hpp"
#include "../ranks/precision.hpp"
#include "../ranks/program.hpp"
#include "../train/complete.hpp"
#include "../train/input.hpp"
#include "../train/ordering.hpp"
#include "partita/comm/self.hpp"
#include "partita/comm/threads.hpp"
#include "table.hpp"

namespace {

/// What is planned beside the options of `train`.
struct plan_command {
  std::vector<std::string> partitions, exchanges{"full", "needed"};
  std::vector<int> chunks{0, 1};
  int rows = 12;      ///< of the table
  std::string given;  ///< see given_in
};

void add_plan(CLI::App& app, plan_command& p) {
  app.callback([&] { p.given = given_in(app); });
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
  app.add_option(
         "--chunk-counts", p.chunks,
         "--exchange-chunks that are compared for needed rows; 0: slices by rule, 1: at once (more: set "
         "up for)")
      ->delimiter(',')
      ->check(CLI::Range(0, 1 << 20))
      ->option_text("N[,...]")
      ->capture_default_str();
  app.add_option("--rows", p.rows, "rows of the table, the fastest first")
      ->check(count)
      ->option_text("N")
      ->capture_default_str();
}

partita::row_exchange exchange_named(const std::string& name) {
  return name == "full"     ? partita::row_exchange::full
         : name == "needed" ? partita::row_exchange::sparsity_aware
                            : partita::row_exchange::cover;
}

/// The candidates for the data in one order of its vertices.
template <class T>
std::vector<nn::policy_candidate> compared(const command& c, const plan_command& p, int ranks,
                                           const io::dataset& data) {
  nn::policy_search from{.every_mesh = true};
  if (c.policy != "auto") from.policies = {partita::find_policy(c.policy)};
  const nn::model_row* const row = nn::find_row(c.training);
  if (row != nullptr && row->reads("exchange")) {
    for (const std::string& name : p.exchanges) from.exchanges.push_back(exchange_named(name));
    from.stationaries = {partita::stationary::c, partita::stationary::a};
    from.chunks = p.chunks;
  }
  std::vector<nn::policy_candidate> all;
  partita::threads::run(ranks, [&](const partita::communicator& world) {
    nn::policy_choice found = nn::choose_policy<T>(world, *c.machine, partita::device_queue<partita::host>(),
                                                   data, c.training, from);
    if (world.rank() == 0) all = std::move(found.candidates);
  });
  if (c.mesh && c.mesh != "auto")
    std::erase_if(all, [kept = arrangement_of(c.policy, c.mesh, {}, ranks)->mesh](
                           const nn::policy_candidate& k) { return k.mesh != kept; });
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
    const io::dataset sorted = order_vertices(data, ordered, ranks, alone);
    for (const nn::policy_candidate& k : in_precision(
             c.precision, [&](auto zero) { return compared<decltype(zero)>(ordered, p, ranks, sorted); }))
      if (k.same_as.empty()) all.push_back({name, k});
    if (!c.quiet) fmt::print(stderr, "plan: {} candidates, --partition {}\n", all.size(), name);
  }
  nn::sort_by_cost(all, c.memory, std::mem_fn(&planned::of));
  require_fitting(all, c, ranks);
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
         .purpose =
             "Says under which policy, on which mesh and with which exchanges `train` is fastest with these\n"
             "options on the machine that --machine describes, such as `calibrate` writes it.",
         .add = [&](CLI::App& app) { add_plan(app, p); }});
    refuse_if(!c.machine || c.machine->kernels == nullptr,
              "plan needs --machine FILE.json with kernels, such as `calibrate FILE.json` writes it");
    for (const auto& [given, option] :
         {std::pair(c.in_batches(), "--batch"), std::pair(c.on_stages(), "--stages"),
          std::pair(!c.far.empty(), "--far"), std::pair(c.reproducible, "--reproducible"),
          std::pair(c.device != "cpu", "--device cuda")})
      refuse_if(given, "plan is for whole graphs in the memory of hosts, without {}", option);
    require_writable(c.json);
    const int ranks = c.ranks.value_or(ranks_of_job());
    if (c.mesh && c.mesh != "auto") arrangement_of(c.policy, c.mesh, {}, ranks);  // throws if it does not fit
    if (!c.quiet && !c.ranks && ranks > 1)
      fmt::print(stderr, "plan: for {} ranks, those of this job\n", ranks);
    if (const std::string assumed = c.machine->assumption(ranks); !c.quiet && !assumed.empty())
      fmt::print(stderr, "plan: {}\n", assumed);
    const std::vector<planned> all = plan(c, p, ranks);
    if (!c.quiet) print_plan(all, c, ranks, p.rows, p.given);
    if (!c.json.empty()) write_plan(c.json, all, c, ranks);
    return 0;
  });
}

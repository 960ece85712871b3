// SPDX-License-Identifier: Apache-2.0
// Training over two stages under MPI, in which one rank fails:
// mpi_pipeline_program throw|shorten|kill|kill-later RANK N. mpi_pipeline_failures.sh runs it and looks at
// how the job ends.
//
// throw, shorten, kill: in receive N of the third epoch the rank throws, expects an element too few, or kills
// itself; kill-later: it kills itself N microseconds after the second epoch, wherever it is then.

#include "partita/comm/mpi.hpp"
#include "partita/compiled/host.hpp"
#include "partita/train/pipeline_trainer.hpp"
#include "support/datasets.hpp"
#include "support/failing_transport.hpp"

namespace {

using partita::communicator, partita::host;

/// What no handler sees; the time is printed before it, in ms since 1970.
void kill_myself() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::printf("%lld\n",
              static_cast<long long>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()));
  std::fflush(stdout);
  kill(getpid(), SIGKILL);
}

void train(const communicator& world, const std::string& what, int rank, int n) {
  partita::nn::training_options o{
      .model = "gcnii", .hidden = {8}, .layers = 6, .pipeline = {.stages = 2, .chunks = 8}};
  const auto wrong = std::make_shared<test_support::fault>();
  const int ways = world.size() / 2;
  partita::nn::pipeline_trainer<double, host> t(
      partita::mesh<host>(test_support::failing(world, wrong), {world.size(), 1, 1}),
      test_support::directed_graph(150), o, partita::row_1d, {ways, 1, 1});
  t.epoch(1);
  t.epoch(2);
  std::thread killer;
  if (world.rank() == rank && what == "kill-later")
    killer = std::thread([n] {
      std::this_thread::sleep_for(std::chrono::microseconds(n));
      kill_myself();
    });
  else if (world.rank() == rank)
    *wrong = {.kind = partita::operation::receive, .after = n, .shortens = what == "shorten"};
  if (what == "kill") wrong->act = kill_myself;
  for (int e = 3;; ++e) t.epoch(e);
}

}  // namespace

int main(int argc, char** argv) {
  partita::mpi::options o;
  o.time_limit = std::chrono::seconds(40);
  return partita::mpi::run(
      argc, argv,
      [&](const communicator& world) { train(world, argv[1], std::stoi(argv[2]), std::stoi(argv[3])); }, o);
}

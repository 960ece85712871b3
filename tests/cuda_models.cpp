// Models at the place cuda, on the stand-in of its runtime: every golden case, and training as on the host.
#include <cstdlib>
#include <doctest/doctest.h>

#include "../examples/golden/compare.hpp"
#include "../examples/training/cuda.hpp"
#include "../examples/training/host.hpp"
#include "partita/comm/cuda_memory.hpp"
#include "partita/local/cuda/kernels.hpp"
#include "support/datasets.hpp"
#include "support/meshes.hpp"

using namespace partita;
using namespace test_support;

namespace {

void check_model(const std::string& model) {
  const char* folder = std::getenv("PARTITA_GOLDEN");
  REQUIRE_MESSAGE(folder != nullptr, "PARTITA_GOLDEN names no folder of golden cases");
  std::vector<golden_case> cases;
  for (golden_case& c : read_golden_cases(folder))
    if (c.options.model == model) cases.push_back(std::move(c));
  for_each_mesh(std::array{1, 4, 6}, [&](auto policy, mesh_shape shape) {
    on_threads(shape.size(), [&](const communicator& world) {
      const mesh<cuda> m(world, shape);
      for (const golden_case& c : cases) {
        const auto errors = compare_golden(m, c, c.options, operators_of<double>(m, policy.name));
        for (const auto& [what, error] : errors.parts)
          CHECK_MESSAGE(error < 1e-10, c.name, ", ", std::string(policy.name), " on ", to_string(shape), ": ",
                        what, " is off by ", error);
      }
    });
  });
  CHECK(cases.size() == 3);
}

training_options options_of(const std::string& model) {
  training_options o;
  o.model = model;
  o.hidden = {6};
  o.heads = 2;
  o.hops = 3;
  o.epochs = 4;
  return o;
}

}  // namespace

TEST_CASE("golden cases at the place cuda") {
  for (const char* model : {"gcn", "sage", "gin", "gat", "sgc", "appnp", "gcnii"}) check_model(model);
}

TEST_CASE(
    "a device gives the losses of the host, epoch for epoch, under every policy, from tiles in parts too") {
  const dataset d = directed_graph();
  for (const char* model : {"gcn", "sage", "gat", "appnp"})
    for_each_mesh(std::array{1, 4}, [&](auto policy, mesh_shape shape) {
      on_threads(shape.size(), [&](const communicator& world) {
        const auto host_run =
            train_model<double>(mesh<host>(world, shape), d, options_of(model), policy.name);
        for (const std::size_t most : {most_tile_entries, std::size_t{20}}) {
          const mesh<cuda> m(world, shape, queue<cuda>(), most);
          const auto cuda_run = train_model<double>(m, d, options_of(model), policy.name);
          for (std::size_t e = 0; e < host_run.epochs.size(); ++e)
            CHECK(std::abs(cuda_run.epochs[e].loss - host_run.epochs[e].loss) <
                  1e-9 * host_run.epochs[e].loss);
          CHECK(cuda_run.words_received.total == cuda_run.predicted_words_received.total);
          if (most < most_tile_entries) continue;  // the offsets of parts travel with A
          CHECK(cuda_run.words_received.total == host_run.words_received.total);
          CHECK(cuda_run.messages.total == host_run.messages.total);
        }
      });
    });
}

TEST_CASE("a steady step of training on a device allocates nothing and waits for nothing but its loss") {
  const dataset d = directed_graph();
  for (const char* model : {"gcn", "sage", "gin", "gat", "sgc", "appnp", "gcnii"})
    for_each_mesh(std::array{1, 4}, [&](auto policy, mesh_shape shape) {
      on_threads(shape.size(), [&](const communicator& world) {
        const mesh<cuda> m(world, shape);
        const training_options o = options_of(model);
        trainer<double, cuda> training(m, d, o, make_model(m, d, o, operators_of<double>(m, policy.name)));
        const auto now = [&] {
          std::array<std::int32_t, 1> nothing{};
          world.all_reduce(std::span<std::int32_t>(nothing));
          const stand_in::counters calls = stand_in::count();
          world.all_reduce(std::span<std::int32_t>(nothing));
          return calls;
        };
        for (int e = 1; e < 3; ++e) training.step(e);
        const stand_in::counters before = now();
        training.step(3);
        const stand_in::counters during = now() - before;
        CAPTURE(model);
        CAPTURE(policy.name);
        CHECK(during.allocations == 0);
        CHECK(during.stream_synchronisations == static_cast<std::uint64_t>(world.size()));
      });
    });
  CHECK(stand_in::count().device_synchronisations == 0);
}

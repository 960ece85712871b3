// SPDX-License-Identifier: Apache-2.0
// Models on a CUDA device: training as on the host, and what it costs.
#include <algorithm>
#include <array>
#include <cstdint>
#include <doctest/doctest.h>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emulator/control.hpp"
#include "examples/ranks/cuda_device.hpp"
#include "partita/compiled/cuda.hpp"
#include "partita/compiled/host.hpp"
#include "support/datasets.hpp"
#include "support/runs.hpp"

using namespace partita;
using namespace test_support;

namespace {

nn::training_options options_of(const std::string& model) {
  return {.model = model, .hidden = {6}, .heads = 2, .hops = 3, .epochs = 4};
}

}  // namespace

TEST_CASE(
    "a device gives the losses of the host, epoch for epoch, under every policy, from tiles in parts too") {
  const io::dataset d = directed_graph();
  for (const char* model : {"gcn", "sage", "gat", "appnp"})
    for_each_mesh(std::array{1, 4}, [&](auto policy, mesh_shape shape) {
      on_threads(shape.size(), [&](const communicator& world) {
        const auto host_run = nn::train_model<double>(mesh<host>(world, shape), d, options_of(model), policy);
        for (const std::size_t most : {base::max_tile_entries, std::size_t{20}}) {
          const mesh<cuda_device> m = cuda_mesh(world, shape, device_queue<cuda_device>(), most);
          const auto cuda_run = nn::train_model<double>(m, d, options_of(model), policy);
          check_run(cuda_run, host_run, 1e-9);
          if (most < base::max_tile_entries) continue;  // the offsets of parts travel with A
          if (shape.col > 1)  // blocks of A may travel, on devices with values in the place of factors
            CHECK(cuda_run.words_received.total >= host_run.words_received.total);
          else
            CHECK(cuda_run.words_received.total == host_run.words_received.total);
          CHECK(cuda_run.messages.total == host_run.messages.total);
        }
      });
    });
}

namespace {

/// Losses and, where nothing but rows travels, bytes.
void check_bfloat16(const communicator& world, mesh_shape shape, const policy& p, nn::training_options o) {
  const io::dataset d = directed_graph();
  o.operands = nn::operand_precision::bfloat16;
  o.epochs = 2;
  const auto host_run = nn::train_model<float>(mesh<host>(world, shape), d, o, p);
  const auto cuda_run = nn::train_model<float>(cuda_mesh(world, shape, device_queue<cuda_device>()), d, o, p);
  check_run(cuda_run, host_run, 1e-5, o.model + ", " + where(p, shape));
  const auto bytes = [](const nn::training_result& r) {
    global_index sum = 0;
    for (const comm::ledger_entry& e : r.ledger) sum += e.bytes;
    return sum;
  };
  if (shape.col == 1) CHECK(bytes(cuda_run) == bytes(host_run));
}

}  // namespace

TEST_CASE("operands of bfloat16 on a device: losses and bytes of the host, under every policy and schedule") {
  for_each_mesh(std::array{1, 4}, [&](auto policy, mesh_shape shape) {
    on_threads(shape.size(),
               [&](const communicator& world) { check_bfloat16(world, shape, policy, options_of("gcn")); });
  });
  for (const char* model : {"sage", "gin", "gcnii", "resgcn"})
    on_threads(2, [&](const communicator& world) {
      check_bfloat16(world, {2, 1, 1}, row_1d, options_of(model));
    });
  on_threads(4, [](const communicator& world) {
    for (const policy& p : {row_1d, grid_2d})
      for (const row_exchange rows :
           {row_exchange::full, row_exchange::sparsity_aware, row_exchange::cover}) {
        nn::training_options o = options_of("gcn");
        o.exchange = rows;
        o.stationary = stationary::a;
        if (rows == row_exchange::sparsity_aware) o.exchange_pieces = 3;
        check_bfloat16(world, default_mesh(p, 4), p, o);
      }
  });
}

TEST_CASE("a steady step of training on a device allocates nothing and waits for nothing but its loss") {
  const io::dataset d = directed_graph();
  for (const char* model : {"gcn", "sage", "gin", "gat", "sgc", "appnp", "gcnii"})
    for_each_mesh(std::array{1, 4}, [&](auto policy, mesh_shape shape) {
      on_threads(shape.size(), [&](const communicator& world) {
        const mesh<cuda_device> m = cuda_mesh(world, shape, device_queue<cuda_device>());
        const nn::training_options o = options_of(model);
        nn::trainer<double, cuda_device> training(m, d, o, nn::make_model<double>(m, d, o, policy));
        const auto now = [&] {
          std::array<std::int32_t, 1> nothing{};
          world.all_reduce(std::span<std::int32_t>(nothing));
          const emulator::counters calls = emulator::count();
          world.all_reduce(std::span<std::int32_t>(nothing));
          return calls;
        };
        for (int e = 1; e < 3; ++e) training.step(e);
        const emulator::counters before = now();
        training.step(3);
        const emulator::counters during = now() - before;
        CAPTURE(model);
        CAPTURE(policy.name);
        CHECK(during.allocations == 0);
        CHECK(during.stream_synchronisations == static_cast<std::uint64_t>(world.size()));
      });
    });
  CHECK(emulator::count().device_synchronisations == 0);
}

TEST_CASE("launches, copies, waits and graphs of a steady step on one rank, and waits of an epoch") {
  using numbers = std::array<std::uint64_t, 4>;  // launches of kernels and of products, copies, waits, graphs
  const auto now = [] {
    const emulator::counters calls = emulator::count();
    return numbers{calls.launches, emulator::calls("cudaMemcpyAsync") + emulator::calls("cudaMemsetAsync"),
                   calls.stream_synchronisations, emulator::calls("cudaGraphLaunch")};
  };
  const auto of = [&](const std::string& model, const device_queue<cuda_device>& q) {
    const io::dataset d = directed_graph();
    std::string found;
    on_threads(1, [&](const communicator& world) {
      const mesh<cuda_device> m = cuda_mesh(world, {1, 1, 1}, q);
      nn::trainer<double, cuda_device> training(m, d, options_of(model),
                                                nn::make_model<double>(m, d, options_of(model), row_1d));
      for (int e = 1; e < 5; ++e) training.epoch(e);
      const numbers before = now();
      training.step(5);
      const numbers step = now();
      training.epoch(6);
      for (std::size_t k = 0; k < step.size(); ++k) found += std::to_string(step[k] - before[k]) + " ";
      found += std::to_string(now()[2] - step[2]);
    });
    return found;
  };
  const auto own = [&](const char* model, bool graphs) {
    const device_queue<cuda_device> q;
    if (!graphs) q.extend(std::make_shared<on_cuda::without_graphs>());
    return of(model, q);
  };
  CHECK(own("gcn", false) == "18 1 1 0 2");
  CHECK(own("sage", false) == "23 1 1 0 2");
  CHECK(own("gat", false) == "34 1 1 0 2");
  for (const char* model : {"gcn", "sage", "gat"}) CHECK(own(model, true) == "0 1 1 1 2");
  CHECK(own("gin", true) == own("gin", false));  // whose layers do not say that they repeat
  std::optional<device_queue<cuda_device>> q;
  on_threads(1, [&](const communicator& world) { q.emplace(cuda_queue(world, "threads")); });
  const std::uint64_t products = emulator::calls("cublasLtMatmul");
  const std::string with_library = of("gcn", *q);
  if (emulator::calls("cublasLtMatmul") == products) return;  // built without it
  CHECK(with_library == "0 1 1 1 2");
  q->extend(std::make_shared<on_cuda::without_graphs>());
  CHECK(of("gcn", *q) == "18 1 1 0 2");
  CHECK(of("sage", *q) == "24 1 1 0 2");
  CHECK(of("gat", *q) == "34 1 1 0 2");
}

TEST_CASE("on one rank the gradients of attention take two kernels a layer, and no numbers of entries") {
  const io::dataset d = directed_graph();
  on_threads(1, [&](const communicator& world) {
    const device_queue<cuda_device> q;
    q.extend(std::make_shared<on_cuda::without_graphs>());
    const mesh<cuda_device> m = cuda_mesh(world, {1, 1, 1}, q);
    nn::trainer<double, cuda_device> training(m, d, options_of("gat"),
                                              nn::make_model<double>(m, d, options_of("gat"), row_1d));
    for (int step = 1; step < 4; ++step) training.step(step);
    q.synchronize();
    const auto before = emulator::kernel_costs();
    training.step(4);
    q.synchronize();
    std::uint64_t products = 0, targets = 0;
    for (auto [name, cost] : emulator::kernel_costs()) {
      if (const auto earlier = before.find(name); earlier != before.end()) cost -= earlier->second;
      if (cost.launches == 0) continue;
      for (const char* of_entries : {"warp_dots", "target_gradient", "source_gradient", "softmax_row_dots"})
        CHECK(name.find(of_entries) == std::string::npos);
      if (name.find("bent_weights<double, true>") != std::string::npos) products += cost.launches;
      if (name.find("finish_targets") != std::string::npos) targets += cost.launches;
    }
    CHECK(products == 2);
    CHECK(targets == 2);
  });
}

TEST_CASE("a step that is a graph has the bits of one that is launched kernel by kernel") {
  const io::dataset d = directed_graph();
  const auto losses = [&]<class T>(T, const nn::training_options& o, bool graphs) {
    std::vector<double> found;
    on_threads(1, [&](const communicator& world) {
      const device_queue<cuda_device> q;
      if (!graphs) q.extend(std::make_shared<on_cuda::without_graphs>());
      const mesh<cuda_device> m = cuda_mesh(world, {1, 1, 1}, q);
      const auto run = nn::train_model<T>(m, d, o, row_1d);
      for (const nn::epoch_report& r : run.epochs) {
        found.push_back(r.loss);
        if (r.train_accuracy == r.train_accuracy) found.push_back(r.train_accuracy);
      }
    });
    return found;
  };
  const auto check = [&](const nn::training_options& o, std::uint64_t most) {
    CAPTURE(o.model);
    const auto launched = [] { return emulator::calls("cudaGraphLaunch"); };
    const std::uint64_t before = launched();
    const auto without = losses(0.0, o, false);
    CHECK(launched() == before);
    CHECK(losses(0.0, o, true) == without);
    CHECK(launched() - before == most);
  };
  for (const char* model : {"gcn", "sage", "gat", "appnp", "sgc"}) {
    nn::training_options o = options_of(model);
    o.epochs = 10;
    o.schedule.curve = nn::rate_curve::cosine;
    check(o, o.model == "appnp" || o.model == "sgc" ? 8 : 7);  // others keep cuts in the second epoch
    if (o.model != "gcn" && o.model != "sage") continue;
    o.optimizer = o.model == "gcn" ? nn::update_rule::sgd : nn::update_rule::adamw;
    o.momentum = o.model == "gcn" ? 0.9 : 0;
    check(o, 7);
  }
  nn::training_options o = options_of("gcn");
  o.epochs = 10;
  CHECK(losses(0.0F, o, true) == losses(0.0F, o, false));
  o.evaluate_every = 5;
  check(o, 7);
  o.clip = 1;  // the norm of gradients is read
  check(o, 0);
}

TEST_CASE("an iteration of mini-batches on a device waits for nothing but its loss, and ceases to allocate") {
  const io::dataset d = directed_graph();
  const auto iterations = static_cast<std::uint64_t>(std::ranges::count(d.split, std::uint8_t{1}) + 3) / 4;
  on_threads(1, [&](const communicator& world) {
    for (const char* model : {"gcn", "sage", "gat"}) {
      const mesh<cuda_device> m = cuda_mesh(world, {1, 1, 1}, device_queue<cuda_device>());
      nn::training_options o = options_of(model);
      o.mini_batch.batch = 4;
      o.mini_batch.fanouts = {3, 3};
      nn::mini_batch_trainer<double, cuda_device> training(m, d, o, row_1d);
      for (int e = 1; e < 10; ++e) training.epoch(e);
      const emulator::counters before = emulator::count();
      training.epoch(10);
      CAPTURE(model);
      const emulator::counters during = emulator::count() - before;
      constexpr std::uint64_t of_scores = 3;  // at the end of an epoch
      CHECK(during.stream_synchronisations == iterations + of_scores);
      CHECK(during.allocations == 0);
    }
  });
}

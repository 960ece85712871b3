// SPDX-License-Identifier: Apache-2.0
// Training with operands of bfloat16, and with features and activations stored so: near the losses of float,
// same words, half of the bytes.
#include "laws/training_laws.hpp"
#include "partita/memory/mapped_store.hpp"
#include "partita/train/pipeline_trainer.hpp"
#include "support/far_store.hpp"

namespace test_bfloat16_products {

using namespace test_support;

nn::training_options short_run(const char* model) {
  return of_model({.hidden = {7}, .epochs = 6, .seed = 42}, model);
}

nn::training_result train(const communicator& world, mesh_shape shape, const policy& p,
                          const nn::training_options& o) {
  return nn::train_model<float>(mesh<host>(world, shape), directed_graph(), o, p);
}

/// Received in a step, in bytes, by all ranks together, of this phase.
global_index bytes_of(const nn::training_result& r) {
  global_index bytes = 0;
  for (const comm::ledger_entry& e : r.ledger) bytes += e.bytes;
  return bytes;
}

TEST_CASE(
    "operands of bfloat16: losses within 1 % of float's, the same words, fewer bytes, on every policy") {
  for (const char* model : {"gcn", "sage", "gin", "gcnii", "resgcn"}) {
    nn::training_options own = short_run(model), rounded = own;
    rounded.operands = nn::operand_precision::bfloat16;
    on_usual_meshes(std::array{1, 2, 4}, [&](const host_mesh& m, const policy& p) {
      const nn::training_result expected = train(m.world(), m.shape(), p, own);
      nn::training_options stored = own;
      stored.storage = nn::operand_precision::bfloat16;
      for (const nn::training_options& o : {rounded, stored}) {
        INFO(std::string(model), ", ", std::string(p.name), " on ", to_string(m.shape()));
        const nn::training_result r = train(m.world(), m.shape(), p, o);
        CHECK(r.words_received.total == r.predicted_words_received.total);
        CHECK(r.words_received.total == expected.words_received.total);
        CHECK(r.messages.total == expected.messages.total);
        if (r.words_received.total > 0 && std::string_view(p.name) == "row_1d")
          CHECK(bytes_of(r) < bytes_of(expected));
        bool differs = false;
        for (std::size_t e = 0; e < r.epochs.size(); ++e) {
          CHECK(std::abs(r.epochs[e].loss - expected.epochs[e].loss) < 0.01 * expected.epochs[e].loss);
          differs = differs || r.epochs[e].loss != expected.epochs[e].loss;
        }
        CHECK(differs);
      }
    });
  }
}

/// Live bytes of this rank after two steps.
std::size_t bytes_after(const host_mesh& m, const io::dataset& data, const nn::training_options& o) {
  m.queue().meter()->restart_peak();
  const std::size_t before = m.queue().meter()->current();
  nn::trainer<float, host> t(m, data, o, nn::make_model<float>(m, data, o, row_1d));
  (void)t.epoch(1);
  (void)t.epoch(2);
  return m.queue().meter()->current() - before;
}

/// Of f features and h hidden columns: X, X after dropout and the hidden layer take 2 bytes a number less. So
/// does A X where A is multiplied first, whose rounded operand need not be a copy then.
TEST_CASE("stored as bfloat16: features and activations take half of their bytes, in closed form") {
  const io::dataset data = directed_graph();
  const global_index f = data.features;
  on_threads(4, [&](const communicator& world) {
    const mesh<host> m(world, {4, 1, 1});
    for (const double dropout : {0.0, 0.5})
      for (const global_index h : {6, 7}) {
        nn::training_options rounded = short_run("gcn"), stored = rounded;
        rounded.hidden = stored.hidden = {h};
        rounded.dropout = stored.dropout = dropout;
        rounded.operands = stored.storage = nn::operand_precision::bfloat16;
        const bool constant = dropout == 0, aggregates = constant || f < 2 * h;
        const global_index mine = (world.rank() == 0 ? 16 : 15);
        const global_index numbers = mine * (f + (constant ? 0 : f) + h + (aggregates ? 2 * f : 0));
        const std::size_t expected = bytes_after(m, data, rounded);
        CHECK(expected - bytes_after(m, data, stored) == static_cast<std::size_t>(2 * numbers));
      }
  });
}

/// Of L convolutions on h columns: X, X after dropout and the first dense layer. gcnii: S and the output of
/// each convolution, what the last layer reads, and the operand of a product forward, which need not be a
/// copy then. resgcn: of each block what its norm divided, what its convolution reads, and the sum; of the
/// last norm two.
TEST_CASE("stored as bfloat16: deep models keep half of the bytes, in closed form") {
  const io::dataset data = directed_graph();
  const global_index f = data.features, h = 6, layers = 3;
  on_threads(4, [&](const communicator& world) {
    const mesh<host> m(world, {4, 1, 1});
    const global_index mine = (world.rank() == 0 ? 16 : 15);
    for (const auto& [model, matrices] : {std::pair("gcnii", global_index{1 + 1 + 2 * layers + 1}),
                                          std::pair("resgcn", global_index{1 + 3 * layers + 2})}) {
      nn::training_options rounded = short_run(model), stored = rounded;
      rounded.hidden = stored.hidden = {h};
      rounded.layers = stored.layers = layers;
      rounded.dropout = stored.dropout = 0.5;
      rounded.operands = stored.storage = nn::operand_precision::bfloat16;
      const std::size_t expected = bytes_after(m, data, rounded);
      CHECK(expected - bytes_after(m, data, stored) ==
            static_cast<std::size_t>(2 * mine * (2 * f + matrices * h)));
    }
  });
}

TEST_CASE("stored as bfloat16: computed again the bits of what was stored, over far memory too") {
  const io::dataset data = directed_graph();
  nn::training_options o = short_run("gcn");
  o.hidden = {7, 9, 6};
  o.storage = nn::operand_precision::bfloat16;
  on_threads(3, [&](const communicator& world) {
    const mesh<host> m(world, {3, 1, 1});
    nn::trainer<float, host> t(m, data, o, nn::make_model<float>(m, data, o, row_1d));
    const nn::training_result expected = t.run();
    const std::vector<float> hidden = t.outputs(true).hidden;
    CHECK(hidden.size() == (world.rank() == 0 ? 61 * 6 : 0));
    CHECK(std::ranges::all_of(hidden, [](float x) { return x == float{base::bfloat16(x)}; }));
    nn::training_options again = o;
    again.recompute = nn::activation_checkpointing::always;
    const nn::training_result r = train(world, m.shape(), row_1d, again);
    const mesh<host> over_far(world, m.shape());
    use_far(over_far.queue(), {.store = new_far_store(), .window = 16384, .from = 512});
    const nn::training_result far =
        nn::train_model<float>(over_far, data, o, row_1d, {}, {.forecast = [](const far_forecast&) {}});
    for (std::size_t e = 0; e < r.epochs.size(); ++e) {
      CHECK(r.epochs[e].loss == expected.epochs[e].loss);
      CHECK(std::abs(far.epochs[e].loss - expected.epochs[e].loss) < 1e-5 * expected.epochs[e].loss);
    }
    REQUIRE(far.far->predicted_read.has_value());
    CHECK(far.far->read.total > 0);
    CHECK(far.far->predicted_read->total == far.far->read.total);
    CHECK(far.far->predicted_written->total == far.far->written.total);
  });
}

nn::training_options deep(const char* model, int stages, int chunks) {
  nn::training_options o = short_run(model);
  o.layers = 3;
  o.epochs = 3;
  o.dropout = 0.3;
  o.pipeline = {.stages = stages, .chunks = chunks, .window = 2};
  return o;
}
/// The same with rounded operands, and stored.
std::array<nn::training_options, 2> in_2_bytes(const nn::training_options& o) {
  std::array<nn::training_options, 2> both{o, o};
  both[0].operands = both[1].storage = nn::operand_precision::bfloat16;
  return both;
}

TEST_CASE("in 2 bytes a number, stages with one chunk or exact history have the losses of the whole graph") {
  const io::dataset data = directed_graph();
  for (const char* model : {"gcn", "sage", "gin", "gcnii", "resgcn"})
    for (const int stages : {1, 2})
      for (const nn::training_options& o : in_2_bytes(deep(model, stages, 1))) {
        const mesh<host> alone(self::world(), {1, 1, 1});
        nn::training_options whole = o, exact = o;
        whole.pipeline = {};
        exact.pipeline.history = nn::chunk_history::exact;
        exact.pipeline.chunks = 3;
        const nn::training_result expected = nn::train_model<float>(alone, data, whole, row_1d);
        on_mesh({stages, 1, 1}, [&](const host_mesh& m) {
          INFO("model ", model, ", stages ", stages, ", stored ", o.storage != whole.operands);
          const nn::training_result r = nn::train<float>(m, data, o, row_1d, {1, 1, 1}),
                                    in_chunks = nn::train<float>(m, data, exact, row_1d, {1, 1, 1});
          for (std::size_t e = 0; e < r.epochs.size(); ++e) {
            const double loss = expected.epochs[e].loss;
            CHECK(r.epochs[e].loss == loss);
            CHECK(std::abs(in_chunks.epochs[e].loss - loss) < 1e-5 * loss);
          }
        });
      }
}

TEST_CASE("stages in 2 bytes a number: losses near those of float, the same words, half of the history") {
  const io::dataset data = directed_graph();
  for (const char* model : {"gcn", "gcnii", "resgcn"})
    for (const policy& p : {row_1d, grid_2d})
      for (const auto history : {nn::chunk_history::window, nn::chunk_history::halo}) {
        nn::training_options own = deep(model, 2, 4);
        own.pipeline.history = history;
        own.pipeline.guard = 3;
        on_mesh({4, 1, 1}, [&](const host_mesh& m) {
          const mesh_shape inside = default_mesh(p, 2);
          const nn::training_result expected = nn::train<float>(m, data, own, p, inside);
          for (const nn::training_options& o : in_2_bytes(own)) {
            INFO("model ", model, ", ", std::string(p.name), ", history ", static_cast<int>(history));
            const nn::training_result r = nn::train<float>(m, data, o, p, inside);
            CHECK(r.words_received.total == r.predicted_words_received.total);
            CHECK(r.words_received.total == expected.words_received.total);
            CHECK(r.messages.total == expected.messages.total);
            CHECK(2 * r.pipeline->history_bytes.total == expected.pipeline->history_bytes.total);
            for (std::size_t e = 0; e < r.epochs.size(); ++e)
              CHECK(std::abs(r.epochs[e].loss - expected.epochs[e].loss) < 0.01 * expected.epochs[e].loss);
            CHECK(r.epochs[2].loss != expected.epochs[2].loss);
          }
        });
      }
}

struct received_bytes {
  global_index words = 0, bytes = 0;
};
/// Of a phase of the second step: between stages, or in messages for copies of rows inside them.
received_bytes of_phase(const host_mesh& m, const std::string& phase, bool between) {
  received_bytes all;
  for (const comm::ledger_entry& e : m.ledger().entries())
    if (e.phase == phase && (e.axis == "stages") == between && (between || e.kind == operation::all_to_all))
      all.words += e.received.words, all.bytes += e.bytes;
  return all;
}

/// 2 layers on 2 stages. Kept in 2 bytes: X, the rows of chunks after dropout, and what passes, on both
/// sides.
TEST_CASE("stages in 2 bytes a number: bytes of each message, and of memory, in closed form") {
  const io::dataset data = directed_graph();
  nn::training_options own = deep("gcn", 2, 3);
  own.layers = 2;
  own.hidden = {6};
  const auto both = in_2_bytes(own);
  on_mesh({4, 1, 1}, [&](const host_mesh& like) {
    const bool is_last = like.rank() >= 2;
    const auto bytes_after = [&](const nn::training_options& o, int size) {
      const host_mesh m(like.world(), like.shape());
      nn::pipeline_trainer<float, host> t(m, data, o, row_1d, {2, 1, 1});
      t.step(1);
      m.ledger().clear();
      t.step(2);
      const received_bytes passed = of_phase(m, "forward", true), back = of_phase(m, "backward", true),
                           copied = of_phase(m, "forward", false), sums = of_phase(m, "backward", false);
      const bool stores = o.storage != nn::operand_precision::unrounded;
      CHECK(passed.bytes == (stores ? 2 : 4) * passed.words);
      CHECK(back.bytes == 4 * back.words);
      CHECK(copied.bytes == size * copied.words);
      CHECK(sums.bytes == 4 * sums.words);
      CHECK((passed.words > 0) == is_last);
      CHECK(copied.words > 0);
      CHECK(sums.words > 0);
      return m.queue().meter()->current();
    };
    const global_index rows = like.rank() % 2 == 0 ? 31 : 30, passing = rows * 6;
    (void)bytes_after(own, 4);
    const std::size_t rounded = bytes_after(both[0], 2), stored = bytes_after(both[1], 2);
    CHECK(rounded - stored ==
          static_cast<std::size_t>(2 * (passing + (is_last ? 0 : 2 * rows * data.features))));
  });
}

TEST_CASE("operands of bfloat16 are refused where a product has others") {
  nn::training_options o = short_run("gcn");
  o.operands = nn::operand_precision::bfloat16;
  const auto refused = [&](const char* model, auto change) {
    nn::training_options other = of_model(o, model);
    change(other);
    CHECK_THROWS_AS((nn::find_model<float, host>(other)), error);
  };
  for (const char* model : {"gat", "sgc", "appnp"}) refused(model, [](auto&) {});
  refused("sage", [](auto& x) { x.aggregation = nn::aggregation::max; });
  refused("gcn", [](auto& x) { x.coupling = nn::coupling::decoupled; });
  CHECK_NOTHROW((nn::find_model<float, host>(o)));
  CHECK_THROWS_AS((nn::find_model<double, host>(o)), error);
  std::swap(o.operands, o.storage);
  refused("gat", [](auto&) {});
  CHECK_NOTHROW((nn::find_model<float, host>(o)));
  expect_error<error>("for float, on the host", [&] { (void)nn::find_model<double, host>(o); });
  o.pipeline.stages = 2;
  CHECK_NOTHROW((nn::find_model<float, host>(o)));
  o.encoding = algebra::row_encoding::int8;
  expect_error<error>("encoded rows are not for stages", [&] { (void)nn::find_model<float, host>(o); });
}

}  // namespace test_bfloat16_products

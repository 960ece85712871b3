// SPDX-License-Identifier: Apache-2.0
// Training with operands of bfloat16, and with features and activations stored so: near the losses of float,
// same words, half of the bytes.
#include "laws/training_laws.hpp"
#include "partita/memory/mapped_store.hpp"
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
  refused("gcn", [](auto& x) { x.pipeline.stages = 2; });
  CHECK_NOTHROW((nn::find_model<float, host>(o)));
  CHECK_THROWS_AS((nn::find_model<double, host>(o)), error);
  std::swap(o.operands, o.storage);
  refused("gat", [](auto&) {});
  refused("gcn", [](auto& x) { x.pipeline.stages = 2; });
  CHECK_NOTHROW((nn::find_model<float, host>(o)));
  expect_error<error>("for float, on the host", [&] { (void)nn::find_model<double, host>(o); });
}

}  // namespace test_bfloat16_products

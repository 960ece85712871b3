// SPDX-License-Identifier: Apache-2.0
// Training with the operands of products rounded to bfloat16: near the ordinary losses, with the same words
// and half the bytes of the operands, under every policy; refused where products have other operands.
#include <doctest/doctest.h>

#include "partita/comm/self.hpp"
#include "partita/compiled/host.hpp"
#include "partita/train/models.hpp"
#include "support/datasets.hpp"
#include "support/meshes.hpp"

namespace test_bfloat16_products {

using namespace test_support;

namespace {

nn::training_options short_run(const char* model) {
  nn::training_options o{.model = model, .hidden = {7}};
  o.layers = o.model == "resgcn" ? 2 : 0;
  o.epochs = 6;
  o.seed = 42;
  return o;
}

nn::training_result train(const communicator& world, mesh_shape shape, const policy& p,
                          const nn::training_options& o) {
  return nn::train_model<float>(mesh<host>(world, shape), directed_graph(), o, p);
}

/// Received in a step, in bytes, by all ranks together, of this phase.
global_index bytes_of(const nn::training_result& r) {
  global_index bytes = 0;
  for (const ledger_entry& e : r.ledger) bytes += e.bytes;
  return bytes;
}

}  // namespace

TEST_CASE(
    "operands of bfloat16: losses within 1 % of float's, the same words, fewer bytes, on every policy") {
  for (const char* model : {"gcn", "sage", "gin", "gcnii", "resgcn"}) {
    nn::training_options own = short_run(model), rounded = own;
    rounded.operands = nn::operand_format::bfloat16;
    for_each_usual_mesh(std::array{1, 2, 4}, [&](auto p, mesh_shape shape) {
      on_threads(shape.size(), [&](const communicator& world) {
        INFO(std::string(model), ", ", std::string(p.name), " on ", to_string(shape));
        const nn::training_result expected = train(world, shape, p, own), r = train(world, shape, p, rounded);
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
      });
    });
  }
}

TEST_CASE("operands of bfloat16 are refused where a product has others") {
  const auto refused = [](nn::training_options o) {
    o.operands = nn::operand_format::bfloat16;
    CHECK_THROWS_AS((nn::find_model<float, host>(o)), error);
  };
  for (const char* model : {"gat", "sgc", "appnp"}) refused(short_run(model));
  nn::training_options o = short_run("sage");
  o.aggregation = nn::aggregation::max;
  refused(o);
  o = short_run("gcn");
  o.coupling = nn::coupling::decoupled;
  refused(o);
  o = short_run("gcn");
  o.mini_batch.batch = 10;
  refused(o);
  o = short_run("gcn");
  o.pipeline.stages = 2;
  refused(o);
  o = short_run("gcn");
  o.operands = nn::operand_format::bfloat16;
  CHECK_NOTHROW((nn::find_model<float, host>(o)));
  CHECK_THROWS_AS((nn::find_model<double, host>(o)), error);
}

}  // namespace test_bfloat16_products

// SPDX-License-Identifier: Apache-2.0
// Training with operands of bfloat16: near the losses of float, same words, half of the bytes.
#include "laws/training_laws.hpp"

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
    rounded.operands = nn::operand_format::bfloat16;
    on_usual_meshes(std::array{1, 2, 4}, [&](const host_mesh& m, const policy& p) {
      INFO(std::string(model), ", ", std::string(p.name), " on ", to_string(m.shape()));
      const nn::training_result expected = train(m.world(), m.shape(), p, own),
                                r = train(m.world(), m.shape(), p, rounded);
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
  }
}

TEST_CASE("operands of bfloat16 are refused where a product has others") {
  nn::training_options o = short_run("gcn");
  o.operands = nn::operand_format::bfloat16;
  const auto refused = [&](const char* model, auto change) {
    nn::training_options other = of_model(o, model);
    change(other);
    CHECK_THROWS_AS((nn::find_model<float, host>(other)), error);
  };
  for (const char* model : {"gat", "sgc", "appnp"}) refused(model, [](auto&) {});
  refused("sage", [](auto& x) { x.aggregation = nn::aggregation::max; });
  refused("gcn", [](auto& x) { x.coupling = nn::coupling::decoupled; });
  refused("gcn", [](auto& x) { x.mini_batch.batch = 10; });
  refused("gcn", [](auto& x) { x.pipeline.stages = 2; });
  CHECK_NOTHROW((nn::find_model<float, host>(o)));
  CHECK_THROWS_AS((nn::find_model<double, host>(o)), error);
}

}  // namespace test_bfloat16_products

// SPDX-License-Identifier: Apache-2.0
// Every model under every policy gives the logits, the loss and every gradient of its golden cases.
#include <doctest/doctest.h>
#include <functional>

#include "examples/golden/compare.hpp"
#include "partita/compiled/host.hpp"
#include "support/datasets.hpp"
#include "support/meshes.hpp"

using namespace test_support;

namespace {

template <class T = double>
void check_model(
    const std::string& model, double tolerance, const auto& ranks,
    const std::function<void(nn::training_options&)>& change = [](nn::training_options&) {}) {
  const char* folder = std::getenv("PARTITA_GOLDEN");
  REQUIRE_MESSAGE(folder != nullptr, "PARTITA_GOLDEN names no folder of golden cases");
  std::vector<golden_case> cases;
  for (golden_case& c : read_golden_cases(folder))
    if (c.options.model == model) cases.push_back(std::move(c));
  on_usual_meshes(ranks, [&](const host_mesh& m, const partita::policy& policy) {
    for (const golden_case& c : cases) {
      nn::training_options options = c.options;
      change(options);
      const auto errors = compare_golden<T>(m, c, options, policy);
      CHECK(errors.parts.size() == 2 + c.values.size());
      for (const auto& [what, error] : errors.parts)
        CHECK_MESSAGE(error < tolerance, c.name, ", ", std::string(policy.name), " on ", to_string(m.shape()),
                      ": ", what, " is off by ", error);
    }
  });
  CHECK(cases.size() == 3);
}

void check_model(const std::string& model, double tolerance) { check_model(model, tolerance, rank_counts); }

}  // namespace

TEST_CASE("gcn") { check_model("gcn", 1e-10); }
TEST_CASE("sage") { check_model("sage", 1e-10); }
TEST_CASE("gin") { check_model("gin", 1e-10); }
TEST_CASE("gat") { check_model("gat", 1e-10); }
TEST_CASE("gat, the gradient of its coefficients by rows and by edges") {
  for (algebra::coefficient_gradient form :
       {algebra::coefficient_gradient::rows, algebra::coefficient_gradient::edges})
    check_model("gat", 1e-10, std::array{1, 4, 6}, [&](auto& o) { o.coefficients = form; });
}
TEST_CASE("sgc") { check_model("sgc", 1e-10); }
TEST_CASE("appnp") { check_model("appnp", 1e-10); }
TEST_CASE("gcnii") { check_model("gcnii", 1e-10); }

/// Of 16 unit roundoffs: gradients of first layers jump where rounding moves a hidden number across 0.
TEST_CASE("gcn, sage and gin in 2 bytes a number: off by 2^-4 of the largest number at most") {
  for (const char* model : {"gcn", "sage", "gin"})
    check_model<float>(model, 0x1p-4, std::array{1, 4},
                       [](auto& o) { o.storage = nn::operand_precision::bfloat16; });
}

TEST_CASE("a policy costs what it was predicted to") {
  const io::dataset d = directed_graph();
  nn::training_options o;
  o.epochs = 1;
  for (const policy& p : named_policies)
    on_threads(6, [&](const communicator& world) {
      const mesh_shape shape = default_mesh(p, world.size());
      const nn::policy_cost cost = nn::predict_cost<double>(mesh<host>(world, shape), d, o, p);
      const nn::training_result run = nn::train_model<double>(mesh<host>(world, shape), d, o, p);
      CHECK(cost.words.max_rank == run.words_received.max_rank);
      CHECK(cost.words.total == run.words_received.total);
      CHECK(cost.buffer_bytes.max_rank == run.setup_peak_bytes.max_rank);
      CHECK(cost.buffer_bytes.total == run.setup_peak_bytes.total);
      const global_index different = shape.size(p.sparse.used());
      CHECK(cost.list_bytes == (std::ssize(d.edges) + d.vertices) / different * 16);
      CHECK(cost.bytes() == cost.buffer_bytes.max_rank + cost.list_bytes);
    });
}

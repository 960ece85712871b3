// SPDX-License-Identifier: Apache-2.0
// Mini-batches with operands of bfloat16, and with features and activations stored so: near those of float,
// the same words, rows of half of the bytes.
#include "laws/training_laws.hpp"
#include "support/far_store.hpp"
#include "support/mini_batches.hpp"

namespace test_bfloat16_batches {

using namespace test_support;

using trainer = nn::mini_batch_trainer<float, host>;

const io::dataset d = directed_graph();

nn::training_options rounded(nn::training_options o) {
  o.operands = nn::operand_precision::bfloat16;
  return o;
}
nn::training_options stored(nn::training_options o) {
  o.storage = nn::operand_precision::bfloat16;
  return o;
}

struct step_result {
  double loss = 0;
  std::vector<double> gradients, of_last;
};

/// of_last: the gradients of the last two parameters, which are behind every ReLU.
step_result result_of(double loss, nn::parameters<float, host>& of) {
  const auto all = of.gradients().values();
  std::size_t count = 0;
  for (std::size_t k = of.list().size() - 2; k < of.list().size(); ++k)
    count += of.list()[k].value().values().size();
  const auto last = all.last(count);
  return {loss, {all.begin(), all.end()}, {last.begin(), last.end()}};
}
/// The first batch of the first epoch.
step_result step_of(const host_mesh& m, const io::dataset& data, const nn::training_options& o) {
  trainer t(m, data, o, row_1d);
  const double loss = t.gradients(1, 0);
  return result_of(loss, t.parameters());
}

double largest(const std::vector<double>& all) {
  return largest_difference(all, std::vector<double>(all.size(), 0));
}

/// The bounds of whole graphs: 1 % of the loss, and 16 unit roundoffs of the largest gradient; with a ReLU
/// only of those behind it, as others jump where rounding moves a hidden number across 0.
void check_near(const step_result& found, const step_result& expected, bool has_relu) {
  CHECK(std::abs(found.loss - expected.loss) < 0.01 * expected.loss);
  const auto gradients = has_relu ? &step_result::of_last : &step_result::gradients;
  CHECK(largest_difference(found.*gradients, expected.*gradients) < 0x1p-4 * largest(expected.*gradients));
  CHECK(found.gradients != expected.gradients);
}

TEST_CASE("batches in 2 bytes a number: losses and gradients near those of floats, in every placement") {
  for (const char* model : {"gcn", "sage", "gin"})
    for (const int ranks : {1, 3})
      for (const placement how : placements) {
        INFO("model ", model, ", ranks ", ranks, ", how ", static_cast<int>(how));
        for (const bool has_relu : {false, true}) {
          if (!has_relu && std::string_view(model) == "gin") continue;
          nn::training_options o = batch_options(model, {3});
          if (!has_relu) o.hidden.clear();
          o.mini_batch.placement = how;
          o.mini_batch.micro_batches = 2;
          on_mesh({ranks, 1, 1}, [&](const host_mesh& m) {
            const step_result expected = step_of(m, d, o);
            check_near(step_of(m, d, rounded(o)), expected, has_relu);
            check_near(step_of(m, d, stored(o)), expected, has_relu);
          });
        }
      }
}

/// Of a model that aggregates first in every layer, on a block as on the whole graph: both round the same.
TEST_CASE("in 2 bytes a number, with all neighbours and one batch: loss and gradients of the whole graph") {
  io::dataset data = d;
  data.classes = 9;
  for (const char* model : {"gcn", "sage", "gin"})
    for (const double dropout : {0.0, 0.3}) {
      nn::training_options o = batch_options(model, {-1, -1});
      o.hidden = {7};
      o.dropout = dropout;
      o.weight_decay = 0;
      o.mini_batch.batch = 1000;
      for (const nn::training_options& with : {o, rounded(o), stored(o)}) {
        step_result expected;
        on_mesh({1, 1, 1}, [&](const host_mesh& m) {
          nn::training_options whole = with;
          whole.mini_batch = {};
          nn::trainer<float, host> t(m, data, whole, nn::make_model<float>(m, data, whole, row_1d));
          const double loss = t.epoch(1).loss;
          expected = result_of(loss, t.parameters());
        });
        for (const placement how : placements) {
          if (how == placement::column && with.storage != o.storage) continue;  // slices stay floats
          on_mesh({3, 1, 1}, [&](const host_mesh& m) {
            nn::training_options batched = with;
            batched.mini_batch.placement = how;
            const step_result found = step_of(m, data, batched);
            CHECK(std::abs(found.loss - expected.loss) < 1e-6 * expected.loss);
            CHECK(largest_difference(found.gradients, expected.gradients) <
                  1e-6 * largest(expected.gradients));
          });
        }
      }
    }
}

struct received {
  global_index words = 0, bytes = 0;
};

/// By all ranks together, of the rows of batches and their ids.
received of_features(const nn::training_result& r) {
  received all;
  for (const comm::ledger_entry& e : r.ledger)
    if (e.phase == "features") all.words += e.received.words, all.bytes += e.bytes;
  return all;
}

TEST_CASE("batches of features stored in 2 bytes: the words of floats, and half of the bytes of each row") {
  for (const placement how : placements)
    for (const int ranks : {1, 3}) {
      INFO("how ", static_cast<int>(how), ", ranks ", ranks);
      nn::training_options o = batch_options("sage");
      o.mini_batch.placement = how;
      on_mesh({ranks, 1, 1}, [&](const host_mesh& m) {
        const nn::training_result own = trainer(m, d, o, row_1d).run(),
                                  half = trainer(m, d, stored(o), row_1d).run();
        check_words(half);
        CHECK(half.words_received.total == own.words_received.total);
        CHECK(half.messages.total == own.messages.total);
        const received expected = of_features(own), found = of_features(half);
        CHECK(found.words == expected.words);
        const global_index rows = half.mini_batch->remote_rows.total;
        CHECK((rows > 0) == (ranks > 1 && how != placement::column));
        if (how == placement::column_gather)
          CHECK((found.bytes < expected.bytes) == (ranks > 1));
        else
          CHECK(expected.bytes - found.bytes == 2 * rows * d.features);
      });
    }
}

/// Live bytes of this rank before the first batch.
std::size_t bytes_of_features(const host_mesh& like, const nn::training_options& o) {
  const host_mesh m(like.world(), like.shape());
  const trainer t(m, d, o, row_1d);
  return m.queue().meter()->current();
}

TEST_CASE("batches of features stored in 2 bytes: they take half of the memory, in closed form") {
  on_mesh({4, 1, 1}, [](const host_mesh& m) {
    nn::training_options o = batch_options("sage");
    o.mini_batch.sampled_scores = true;
    const global_index columns = comm::share_of(d.features, m.rank(), 4).size(),
                       rows = m.rank() == 0 ? 16 : 15;
    for (const placement how : placements) {
      o.mini_batch.placement = how;
      const bool by_columns = how == placement::column || how == placement::column_gather;
      const global_index numbers = by_columns ? d.vertices * columns : rows * d.features;
      CHECK(bytes_of_features(m, o) - bytes_of_features(m, stored(o)) ==
            static_cast<std::size_t>(2 * numbers));
    }
  });
}

TEST_CASE("batches over far features stored in 2 bytes: losses of near ones, each row read once as 2 bytes") {
  const io::dataset large = directed_graph(310);
  for (const placement how : placements)
    for (const int ranks : {1, 2}) {
      INFO("how ", static_cast<int>(how), ", ranks ", ranks);
      nn::training_options o = stored(batch_options("sage"));
      o.epochs = 1;
      o.mini_batch.placement = how;
      o.mini_batch.sampled_scores = true;
      on_mesh({ranks, 1, 1}, [&](const host_mesh& m) {
        const nn::training_result near = trainer(m, large, o, row_1d).run();
        const host_mesh over_far(m.world(), m.shape());
        over_far.queue().limit_memory(std::size_t{1} << 30);
        use_far(over_far.queue(),
                {.store = new_far_store(), .window = 4096, .from = std::size_t(310 / ranks * 13 * 2)});
        const nn::training_result far = trainer(over_far, large, o, row_1d).run();
        CHECK(far.epochs[0].loss == near.epochs[0].loss);
        CHECK(far.epochs[0].test_accuracy == near.epochs[0].test_accuracy);
        REQUIRE(far.far.has_value());
        if (ranks == 1) CHECK(far.far->read.total == 310 * 13 * 2);
      });
    }
}

TEST_CASE("batches in 2 bytes a number: a learned input stays of floats, and encoded rows are refused") {
  nn::training_options o = batch_options("sage");
  o.embedding = 5;
  const io::dataset bare = without_features(d);
  for (const placement how : placements) {
    o.mini_batch.placement = how;
    on_mesh({2, 1, 1}, [&](const host_mesh& m) {
      const nn::training_result own = trainer(m, bare, o, row_1d).run(),
                                half = trainer(m, bare, stored(o), row_1d).run();
      check_words(half);
      CHECK(of_features(half).bytes == of_features(own).bytes);
      CHECK(std::abs(half.epochs[1].loss - own.epochs[1].loss) < 0.01 * own.epochs[1].loss);
      CHECK(half.epochs[1].loss != own.epochs[1].loss);
    });
  }
  o.encoding = algebra::row_encoding::int8;
  expect_error<error>("encoded rows are for whole graphs, not for mini-batches",
                      [&] { (void)nn::find_model<float, host>(o); });
}

}  // namespace test_bfloat16_batches

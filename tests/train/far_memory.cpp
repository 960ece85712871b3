// SPDX-License-Identifier: Apache-2.0
// Training over far memory: the losses of near memory, within a budget that refuses what exceeds it.
#include "laws/training_laws.hpp"
#include "partita/memory/mapped_store.hpp"
#include "support/far_store.hpp"

namespace test_far_memory {

using namespace test_support;

/// Bytes of near memory, and how many chunks an operation on one rank has with them, at least and in the
/// mean.
constexpr std::pair<std::size_t, int> windows[] = {{65536, 2}, {24576, 7}, {7424, 50}};

nn::training_options short_run(const char* model = "gcn") {
  return of_model({.hidden = {7}, .heads = 2, .hops = 3, .epochs = 2, .seed = 42}, model);
}

/// Trains with near memory for little but the window.
nn::training_result train_far(const mesh<host>& m, const io::dataset& d, const nn::training_options& o,
                              const policy& p, const std::shared_ptr<far_store>& store, std::size_t window,
                              const std::function<void(const far_forecast&)>& observe = {}) {
  const std::size_t budget = window + 2048;
  m.queue().limit_memory(budget);
  use_far(m.queue(), {.store = store, .window = window, .from = 512});
  int forecasts = 0;
  nn::training_result r = nn::train_model<double>(m, d, o, p, {}, {.forecast = [&](const far_forecast& f) {
                                                    ++forecasts;
                                                    CHECK(f.total().chunks > 0);
                                                    if (observe) observe(f);
                                                  }});
  CHECK(forecasts == 1);
  REQUIRE(r.far.has_value());
  REQUIRE(r.far->predicted_read.has_value());
  CHECK(r.far->predicted_read->max_rank == r.far->read.max_rank);
  CHECK(r.far->predicted_read->total == r.far->read.total);
  CHECK(r.far->predicted_written->max_rank == r.far->written.max_rank);
  CHECK(r.far->predicted_written->total == r.far->written.total);
  CHECK(r.peak_bytes.max_rank >= static_cast<global_index>(window));
  CHECK(r.peak_bytes.max_rank <= static_cast<global_index>(budget));
  return r;
}

void expect_same_losses(const nn::training_result& r, const nn::training_result& expected,
                        const std::string& what) {
  check_run(r, expected, 1e-12, what, scores::compared);
  CHECK(r.words_received.total == expected.words_received.total);
}

/// How much wider a window must be that holds the vectors of a vertex's edges.
std::size_t rows_of_edges(const nn::training_options& o) {
  return nn::find_row(o)->reads_edge_vectors ? 24 : 1;
}

/// One model under every policy, on these numbers of ranks: with every window on one rank, and on more with
/// one, another for the next policy, and for the next `turn`.
void check_model(const io::dataset& d, const nn::training_options& o,
                 std::initializer_list<int> ranks = {1, 2, 4}, std::size_t turn = 0) {
  const auto store = new_far_store();
  for_each_mesh(std::vector(ranks), [&](const policy& p, mesh_shape shape) {
    if (shape != default_mesh(p, shape.size()) || (shape.size() == 1 && p.name != row_1d.name)) return;
    if (sanitized && shape.size() > 2 && p.name != split_3d.name) return;
    nn::training_result expected;
    with_mesh(shape, [&](const host_mesh& m) {
      const nn::training_result r = nn::train_model<double>(m, d, o, p);
      CHECK(!r.far);
      if (m.rank() == 0) expected = r;
    });
    ++turn;
    for (std::size_t w = 0; w < std::size(windows); ++w) {
      const auto& [window, chunks] = windows[w];
      if (sanitized ? chunks != 7 : shape.size() > 1 && w != turn % std::size(windows)) continue;
      with_mesh(shape, [&](const host_mesh& m) {
        const std::size_t bytes = window * rows_of_edges(o);
        expect_same_losses(
            train_far(m, d, o, p, store, bytes), expected,
            o.model + ", " + where(p, shape) + ", a window of " + std::to_string(bytes) + " bytes");
      });
    }
  });
}

/// The chunks of the product that has most.
std::uint64_t chunks_of_a_product(const far_forecast& f) {
  std::uint64_t most = 0;
  for (const far_forecast::entry& e : f.entries())
    if (e.what.starts_with("product")) most = std::max(most, e.all.chunks / e.times);
  return most;
}

TEST_CASE("far memory: exactly 2, 7 and 50 chunks") {
  struct other_number {};
  const io::dataset d = directed_graph(311);
  const nn::training_options o = short_run();
  const nn::training_result expected = serial(d, o);
  std::size_t window = 1 << 19;
  for (const std::uint64_t chunks : {2, 7, 50}) {
    if (sanitized && chunks != 7) continue;
    bool found = false;
    for (; window > 8192 && !found; window -= window / 64) {
      const mesh<host> m(self::world(), {1, 1, 1});
      try {
        expect_same_losses(train_far(m, d, o, row_1d, new_far_store(), window,
                                     [&](const far_forecast& f) {
                                       found = chunks_of_a_product(f) == chunks;
                                       if (!found) throw other_number();
                                     }),
                           expected, std::to_string(chunks) + " chunks");
      } catch (const other_number&) {
      }
    }
    CHECK_MESSAGE(found, chunks, " chunks");
  }
}

TEST_CASE("far memory: windows force 2, 7 and 50 chunks and more") {
  if (sanitized) return;  // of sizes: what runs here runs below
  const io::dataset d = directed_graph(311);
  for (const char* const model : {"gcn", "gat"}) {
    const auto run = [&](std::size_t window) {
      const mesh<host> m(self::world(), {1, 1, 1});
      return *train_far(m, d, short_run(model), row_1d, new_far_store(), window).far;
    };
    const auto whole = run(std::size_t{1} << 24);
    for (const auto& [window, least] : windows) {
      const auto found = run(window);
      CHECK_MESSAGE(found.chunks.total >= least * whole.chunks.total, model, ": ", found.chunks.total,
                    " chunks of ", whole.chunks.total, " operations");
      CHECK(found.read.total >= whole.read.total);
    }
  }
}

TEST_CASE("far memory: attention passes the values of its edges through the window") {
  const io::dataset d = directed_graph(311);
  const mesh<host> m(self::world(), {1, 1, 1});
  const auto far = *train_far(m, d, short_run("gat"), row_1d, new_far_store(), 24576).far;
  // two layers of two heads; written are the coefficients when they train, when they are evaluated and for
  // the transpose, their gradients, and these again, before dropout
  const auto values = static_cast<global_index>(d.edges.size() * 2 * sizeof(double));
  CHECK(far.written.total >= 2 * 5 * values);
  CHECK(far.read.total >= 2 * 5 * values);
}

TEST_CASE("far memory: the losses of near memory, for every model under every policy") {
  const io::dataset d = directed_graph(311);
  std::size_t turn = 0;
  for (const nn::training_options& o : every_variant(short_run()))
    if (o.model != "resgcn" && (!sanitized || o.model == "gcn" || o.model == "gat"))
      check_model(d, o, {1, 2, 4}, turn++);
}

TEST_CASE(
    "far memory: optimisers, schedules and patience, and gradients that are clipped or might have been") {
  const io::dataset d = directed_graph(311);
  for (const double clip : {1e-3, 1e3})
    for (const auto rule : {nn::update_rule::adamw, nn::update_rule::sgd}) {
      nn::training_options o = short_run();
      o.optimizer = rule;
      o.momentum = rule == nn::update_rule::sgd ? 0.5 : 0;
      o.clip = clip;
      o.schedule = {.curve = nn::rate_curve::cosine, .period = 0, .warmup = 1};
      o.patience = 5;
      check_model(d, o, {4});
    }
}

TEST_CASE("far memory: exchanges in any number of chunks have the words and losses of one") {
  const io::dataset d = directed_graph(311);
  const auto store = new_far_store();
  for (const policy& p : {row_1d, split_3d}) {
    nn::training_options o = short_run("gcn");
    const auto run = [&](int chunks, bool far, const auto& check) {
      o.exchange_pieces = chunks;
      with_mesh(default_mesh(p, 4), [&](const host_mesh& m) {
        const nn::training_result r =
            far ? train_far(m, d, o, p, store, 24576) : nn::train_model<double>(m, d, o, p);
        if (m.rank() == 0) check(r);
      });
    };
    nn::training_result expected;
    run(2, false, [&](const nn::training_result& r) { expected = r; });
    global_index messages = expected.messages.total;
    for (const int chunks : {2, 4, 9})
      run(chunks, true, [&](const nn::training_result& r) {
        expect_same_losses(r, expected, std::to_string(chunks) + " chunks");
        CHECK((chunks == 2 ? r.messages.total == messages : r.messages.total > messages));
        messages = r.messages.total;
      });
    if (!(p.name == row_1d.name)) continue;
    run(1, false, [&](const nn::training_result& r) { expected = r; });
    run(0, true, [&](const nn::training_result& r) {
      expect_same_losses(r, expected, "chunks of the window");
      CHECK(r.messages.total > expected.messages.total);
    });
  }
}

// Needed rows of several ranks: their tiles of A are merged into one, in far memory. train_far compares with
// the closed form.
TEST_CASE("far memory: merged tiles of other ranks, exchanged at once and in chunks") {
  const io::dataset d = directed_graph(311);
  const auto store = new_far_store();
  for (const int ranks : {2, 4})
    for (const int chunks : {1, 3}) {
      nn::training_options o = short_run();
      o.exchange_pieces = chunks;
      nn::training_result expected;
      for (const bool far : {false, true})
        with_mesh(default_mesh(row_1d, ranks), [&](const host_mesh& m) {
          const auto r =
              far ? train_far(m, d, o, row_1d, store, 24576) : nn::train_model<double>(m, d, o, row_1d);
          if (m.rank() != 0) return;
          if (!far) expected = r;
          expect_same_losses(r, expected, std::to_string(chunks) + " chunks on " + std::to_string(ranks));
        });
    }
}

TEST_CASE("far memory: the losses of near memory, for an embedding and for sparse features") {
  io::dataset d = directed_graph(311);
  nn::training_options o = short_run("gcn");
  o.embedding = 6;
  check_model(d, o);
  o.embedding = 0;
  d.vertex_features = sparse_features(d.vertices, d.features);
  check_model(d, o);
}

}  // namespace test_far_memory

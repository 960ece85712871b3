// SPDX-License-Identifier: Apache-2.0
// What ranks of a pipeline receive in an epoch, in closed form.
#include <map>
#include <set>

#include "bench/support/pipeline_words.hpp"
#include "partita/compiled/host.hpp"
#include "partita/train/pipeline_trainer.hpp"
#include "support/datasets.hpp"
#include "support/matrices.hpp"

namespace test_pipeline_traffic {

using namespace test_support;

using trainer = nn::pipeline_trainer<double, host>;

constexpr global_index hidden = 6, n = 61;

/// What passes between layers, what each multiplies with A and with A^T, and its parameters.
struct layer_widths {
  global_index input, forward, backward, weights;
};

/// gcn multiplies what is narrower: with A the output of the first and the last layer; gcnii has dense layers
/// around its convolutions, and H_0 passes beside H.
std::vector<layer_widths> layers_of(const std::string& model, int layers) {
  const global_index features = directed_graph().features, classes = directed_graph().classes;
  std::vector<layer_widths> all;
  if (model == "gcn") {
    for (int l = 0; l < layers; ++l) {
      const global_index in = l == 0 ? features : hidden, out = l + 1 == layers ? classes : hidden;
      all.push_back({l == 0 ? 0 : hidden, out, out, in * out + out});
    }
    return all;
  }
  all.push_back({0, 0, 0, features * hidden + hidden});
  for (int l = 0; l < layers; ++l)
    all.push_back({l == 0 ? hidden : 2 * hidden, hidden, hidden, hidden * hidden});
  all[1].input = 2 * hidden;  // H_0 is written before the first convolution
  all.push_back({hidden, 0, 0, hidden * classes + classes});
  return all;
}

/// A pipeline of `stages` stages of `ways` ranks; its last chunk but one is empty.
struct problem {
  io::dataset data = directed_graph(n);
  nn::training_options options;
  int stages, ways;
  std::vector<layer_widths> layers;
  blocking rows;
  std::vector<std::size_t> cuts{0};

  problem(const std::string& model, int count, int s, int w, int chunks)
      : stages(s),
        ways(w),
        layers(layers_of(model, count)),
        rows(blocking::even(n, {w, 1, 1}, nesting::rows)) {
    options.model = model;
    options.hidden = {hidden};
    options.layers = count;
    options.dropout = 0;
    options.pipeline.stages = s;
    options.pipeline.chunks = chunks;
    for (global_index v = 0; v < n; ++v) {
      const auto c = static_cast<int>(base::random_bits(5, v, 2) % static_cast<std::uint64_t>(chunks));
      options.pipeline.chunk_of.push_back(chunks > 2 && c == chunks - 2 ? 0 : c);
    }
    // the first stage has what is left
    const auto each = layers.size() / static_cast<std::size_t>(s);
    for (int k = s - 1; k >= 0; --k) cuts.push_back(layers.size() - static_cast<std::size_t>(k) * each);
    for (std::size_t k = 0; k + 1 < cuts.size(); ++k)
      options.pipeline.layers.push_back(static_cast<int>(cuts[k + 1] - cuts[k]));
  }

  std::size_t chunk(global_index v) const {
    return static_cast<std::size_t>(options.pipeline.chunk_of[static_cast<std::size_t>(v)]);
  }
  int way(global_index v) const { return static_cast<int>(rows.owner(vertex_rows.rows, v)); }
  interval rows_of(int w) const { return rows.block(vertex_rows.rows, rows.shape().at(w)); }

  /// By way and chunk: vertices; and messages and rows, for whose copies, or sums for them, it waits.
  std::map<std::pair<int, std::size_t>, global_index> sizes() const {
    std::map<std::pair<int, std::size_t>, global_index> found;
    for (global_index v = 0; v < n; ++v) ++found[{way(v), chunk(v)}];
    return found;
  }
  /// Pairs of a vertex and a way that has a target of its edges, but not itself.
  std::set<std::pair<global_index, int>> mirrors() const {
    std::set<std::pair<global_index, int>> found;
    for (const io::edge& e : data.edges)
      if (way(e.source) != way(e.target)) found.insert({e.source, way(e.target)});
    return found;
  }
  traffic copies(int w, bool backward) const {
    std::set<std::pair<int, std::size_t>> messages;  // from whom, in which chunk
    global_index count = 0;
    for (const auto& [v, to] : mirrors())
      if ((backward ? way(v) : to) == w) {
        ++count;
        messages.insert({backward ? to : way(v), chunk(v)});
      }
    return {count, std::ssize(messages)};
  }

  traffic between_stages(int stage, int w, bool backward) const {
    if (stage == (backward ? stages - 1 : 0)) return {};
    const std::size_t l = cuts[static_cast<std::size_t>(backward ? stage + 1 : stage)];
    traffic t;
    for (const auto& [at, rows_there] : sizes())
      if (at.first == w) t += {rows_there * layers[l].input, layers[l].input > hidden ? 2 : 1};
    return t;
  }
  traffic inside(int stage, int w, bool backward) const {
    traffic t;
    const traffic rows_of_layer = copies(w, backward);
    for (std::size_t l = cuts[static_cast<std::size_t>(stage)]; l < cuts[static_cast<std::size_t>(stage) + 1];
         ++l)
      if (const global_index width = backward ? layers[l].backward : layers[l].forward; width > 0)
        t += {rows_of_layer.words * width, rows_of_layer.messages};
    return t;
  }
  global_index weights(int stage) const {
    global_index all = 0;
    for (std::size_t l = cuts[static_cast<std::size_t>(stage)]; l < cuts[static_cast<std::size_t>(stage) + 1];
         ++l)
      all += layers[l].weights;
    return all;
  }
};

traffic entered(const host_mesh& m, const std::string& phase, const std::string& axis) {
  return m.ledger().total([&](const comm::ledger_entry& e) {
    return e.phase == phase && (e.axis == "stages") == (axis == "stages");
  });
}

void check(const problem& of) {
  const int ranks = of.stages * of.ways;
  with_mesh({ranks, 1, 1}, [&](const host_mesh& m) {
    trainer t(m, of.data, of.options, row_1d, {of.ways, 1, 1});
    t.step(1);
    m.ledger().clear();
    t.step(2);
    const int stage = m.rank() / of.ways, w = m.rank() % of.ways;
    const traffic forward = of.between_stages(stage, w, false), backward = of.between_stages(stage, w, true);
    same(entered(m, "forward", "stages"), forward, "forward, from the stage before");
    same(entered(m, "backward", "stages"), backward, "backward, from the stage behind");
    same(t.boundary(), forward + backward, "boundary");
    const traffic loss = stage + 1 == of.stages ? all_reduced(1, w, of.ways) : traffic{};
    const traffic parameters = all_reduced(of.weights(stage), w, of.ways);
    const traffic layers = of.inside(stage, w, false) + of.inside(stage, w, true);
    same(heard(m), forward + backward + layers + parameters + loss, "the whole step");
    same(t.predicted(), heard(m), "prediction");
    same(entered(m, "forward", "inside"), of.inside(stage, w, false) + loss,
         "products forward, and the loss");
    same(entered(m, "backward", "inside"), of.inside(stage, w, true) + parameters,
         "products backward, and gradients");

    const global_index all = m.world().all_reduce(heard(m).words);
    if (m.rank() != 0) return;
    std::vector<global_index> boundaries, forward_widths, backward_widths;
    for (int s = 1; s < of.stages; ++s)
      boundaries.push_back(of.layers[of.cuts[static_cast<std::size_t>(s)]].input);
    for (const layer_widths& l : of.layers) {
      forward_widths.push_back(l.forward);
      backward_widths.push_back(l.backward);
    }
    const global_index mirrors = bench::mirror_pairs(of.data.edges, of.rows, vertex_rows.rows);
    CHECK(mirrors == std::ssize(of.mirrors()));
    global_index sums = 0;
    for (int s = 0; s < of.stages; ++s) sums += bench::gradient_words(of.weights(s), of.ways);
    CHECK(all == bench::boundary_words(n, boundaries) + bench::halo_words(mirrors, forward_widths) +
                     bench::halo_words(mirrors, backward_widths) + sums + 2 * (of.ways - 1));
  });
}

TEST_CASE("words and messages of each rank and of all are the closed forms, over stages, ways and layers") {
  for (const char* model : {"gcn", "gcnii"})
    for (const int layers : {2, 4, 8})
      for (int stages = 1; stages <= 4; ++stages)
        for (int ways = 1; ways <= 4; ++ways) {
          const int cuttable = layers + (std::string(model) == "gcnii" ? 2 : 0);
          if (stages > cuttable || !sees(stages * ways)) continue;
          INFO("model ", model, ", layers ", layers, ", stages ", stages, ", ways ", ways);
          check(problem(model, layers, stages, ways, stages == 3 ? 5 : 4));
        }
}

TEST_CASE("where all layers but the first and the last are equally wide, the sum is GNNPipe's") {
  for (const char* model : {"gcn", "gcnii"})
    for (const int stages : {2, 3, 4}) {
      const problem of(model, 8, stages, 1, 6);
      with_mesh({stages, 1, 1}, [&](const host_mesh& m) {
        trainer t(m, of.data, of.options, row_1d, {1, 1, 1});
        t.step(1);
        m.ledger().clear();
        t.step(2);
        const bench::layered_network net{
            .vertices = n, .width = hidden, .layers = 8, .shared = std::string(model) == "gcnii" ? 1 : 0};
        CHECK(m.world().all_reduce(heard(m).words) == bench::pipeline_words(net, stages));
      });
    }
}

}  // namespace test_pipeline_traffic

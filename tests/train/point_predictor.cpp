// SPDX-License-Identifier: Apache-2.0
// Saved models answer for single vertices and pairs with the bits of a pass over the whole graph.
#include "partita/train/point_predictor.hpp"

#include <doctest/doctest.h>
#include <numeric>
#include <thread>

#include "partita/compiled/host.hpp"
#include "partita/local/host/gemm_backend.hpp"
#include "partita/train/make_training.hpp"
#include "partita/train/model_data.hpp"
#include "support/datasets.hpp"
#include "support/scratch.hpp"

namespace test_point_predictor {

using namespace test_support;

nn::training_options options_for(std::string model, int layers = 2) {
  return {.model = std::move(model), .hidden = {6}, .layers = layers, .heads = 2, .hops = 3, .epochs = 2};
}

mesh<host> mesh_of(int threads) { return {self::world(), mesh_shape{}, device_queue<host>(threads)}; }

/// The graph, without weights where none are wanted: then A is stored as factors.
io::dataset graph_for(bool weighted, global_index n = 61) {
  io::dataset d = directed_graph(n);
  if (!weighted) d.edge_weights = {};
  return d;
}

/// Vertex 0 has more edges than are summed at once.
io::dataset graph_with_hub() {
  io::dataset d = directed_graph(40);
  constexpr global_index n = 9000;
  std::vector<float> x;
  for (global_index v = 0; v < n; ++v) {
    if (v >= 40) d.edges.push_back({v, 0}), d.edge_weights.push_back(0.5 + base::random_uniform(7, v, 0));
    for (global_index j = 0; j < d.features; ++j)
      x.push_back(static_cast<float>(base::random_uniform(5, v, j)));
  }
  d.vertices = n;
  d.labels = std::vector<std::int64_t>(n, 1);
  d.split = std::vector<std::uint8_t>(n, 1);
  d.vertex_features = io::feature_table(n, d.features, std::move(x));
  return d;
}

/// A model that has been trained for two epochs, and what a pass over the whole graph makes of it.
template <class T>
struct trained {
  trained(const io::dataset& d, const nn::training_options& o, int threads = 1) {
    const mesh<host> m = mesh_of(threads);
    const auto training = nn::make_training<T>(m, d, o, row_1d, mesh_shape{});
    training->run();
    nn::save_model(folder / "model", training->values(), o, d);
    file.emplace(io::load_safetensors(folder / "model"));
    nn::predictor<T, host> whole(m, d, o, row_1d);
    std::optional<nn::link_decoder<T, host>> decoder;
    if (d.task == io::task::links) decoder.emplace(o.links.decoder, d.classes, whole.parameters(), 0);
    nn::load_parameters(*file, whole.parameters());
    if (auto* const x = whole.embedding()) nn::load_embedding(*file, *x);
    of_whole = collect(whole.evaluate());
    std::vector<io::edge> all;
    for (global_index u = 0; u < d.vertices; u += 3)
      for (global_index v = 0; v < d.vertices; v += 5) all.push_back({u, v});
    if (!decoder) return;
    pairs = all;
    scores_of_whole = nn::scores_of_pairs(*decoder, whole.evaluate(), std::span<const io::edge>(all));
  }

  scratch folder;
  std::optional<io::safetensors_file> file;
  std::vector<T> of_whole;  ///< (n, classes)
  std::vector<io::edge> pairs;
  std::vector<double> scores_of_whole;
};

template <class T>
struct answering : trained<T>, nn::point_predictor<T, host> {
  answering(const io::dataset& d, const nn::training_options& o,
            nn::served_rows how = nn::served_rows::automatic)
      : trained<T>(d, o),
        nn::point_predictor<T, host>(
            mesh_of(2), [] { return mesh_of(1); }, d, o, *this->file, how) {}

  /// Whether the rows of these vertices are those of the pass over the whole graph.
  bool has_bits(const std::vector<global_index>& vertices) const {
    std::vector<T> expected;
    for (const global_index v : vertices)
      expected.insert(expected.end(), this->of_whole.begin() + v * this->width(),
                      this->of_whole.begin() + (v + 1) * this->width());
    return this->rows(vertices) == expected;
  }
  /// Each vertex by itself, all of them, and backwards and twice.
  void require_bits(global_index step = 1) const {
    std::vector<global_index> all;
    for (global_index v = 0; v < this->vertices(); v += step) {
      CHECK(has_bits({v}));
      all.push_back(v);
    }
    CHECK(has_bits(all));
    for (std::size_t k = all.size(); k-- > 0;) all.push_back(all[k]);
    CHECK(has_bits(all));
    CHECK(has_bits({}));
  }
};

TEST_CASE_TEMPLATE("rows are those of a pass over the whole graph", T, float, double) {
  for (const bool weighted : {false, true})
    for (const char* model : {"gcn", "sage", "gin"})
      for (const int layers : {1, 2, 3}) {
        CAPTURE(model);
        CAPTURE(layers);
        CAPTURE(weighted);
        const answering<T> some(graph_for(weighted), options_for(model, layers));
        CHECK(!some.keeps_rows());
        some.require_bits();
      }
}

TEST_CASE("models whose rows are not computed keep those of all vertices") {
  for (const char* model : {"gat", "sgc", "appnp", "gcnii", "resgcn"}) {
    CAPTURE(model);
    const answering<double> all(graph_for(true), options_for(model));
    CHECK(all.keeps_rows());
    all.require_bits();
  }
  CHECK(answering<double>(graph_for(true), options_for("gcn", 4)).keeps_rows());
  const answering<double> asked(graph_for(true), options_for("gcn"), nn::served_rows::kept);
  CHECK(asked.keeps_rows());
  asked.require_bits();
}

/// C = A B, where the terms of the sums of few rows are added the other way round.
template <class T>
void few_rows_differ(int, bool ta, bool tb, int m, int n, int k, T alpha, const T* a, int lda, const T* b,
                     int ldb, T beta, T* c, int ldc) {
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      T sum = 0;
      for (int p = 0; p < k; ++p) {
        const int q = m < 20 ? k - 1 - p : p;
        sum += (ta ? a[q * lda + i] : a[i * lda + q]) * (tb ? b[j * ldb + q] : b[q * ldb + j]);
      }
      c[i * ldc + j] = alpha * sum + (beta == 0 ? T(0) : beta * c[i * ldc + j]);
    }
}

TEST_CASE("rows are kept where products have other bits for few of them") {
  const io::dataset d = graph_for(true);
  const trained<double> of(d, options_for("gcn"));
  const mesh<host> m(
      self::world(), mesh_shape{},
      device_queue<host>(1, on_host::gemm_backend{few_rows_differ<float>, few_rows_differ<double>}));
  const nn::point_predictor<double, host> some(
      m, [&] { return m; }, d, options_for("gcn"), *of.file, nn::served_rows::computed);
  CHECK(some.keeps_rows());
}

TEST_CASE_TEMPLATE("inputs are dense, sparse or learned, and layers wide or narrow", T, float, double) {
  io::dataset sparse = graph_for(false);
  sparse.features = 90;
  sparse.vertex_features = sparse_features(sparse.vertices, 90);
  for (const char* model : {"gcn", "sage", "gin"}) {
    CAPTURE(model);
    nn::training_options o = options_for(model);
    const answering<T> with_sparse(sparse, o);
    CHECK(with_sparse.keeps_rows() == (o.model == "sage"));
    with_sparse.require_bits();
    o.hidden = {70};
    answering<T>(graph_for(true), o).require_bits();
    o.embedding = 9;
    o.dropout = 0;
    const answering<T> learned(graph_for(true), o);
    CHECK(!learned.keeps_rows());
    learned.require_bits();
  }
}

TEST_CASE_TEMPLATE("a row of very many entries is summed as in the whole graph", T, float, double) {
  const answering<T> some(graph_with_hub(), options_for("gcn"));
  CHECK(!some.keeps_rows());
  some.require_bits(500);
  // Both ends of each of those edges have the hub as a neighbour: too many for an answer
  io::dataset d = graph_with_hub();
  for (global_index v = 40; v < d.vertices; ++v) d.edges.push_back({0, v}), d.edge_weights.push_back(1);
  const answering<T> kept(d, options_for("gcn"));
  CHECK(!kept.keeps_rows());
  const answering<T> deeper(d, options_for("gcn", 3));
  CHECK(deeper.keeps_rows());
  deeper.require_bits(500);
  const answering<T> computed(d, options_for("gcn", 3), nn::served_rows::computed);
  CHECK(!computed.keeps_rows());
  computed.require_bits(1000);
}

TEST_CASE_TEMPLATE("pairs have the scores of a pass over the whole graph", T, float, double) {
  io::dataset d = graph_for(false);
  d.task = io::task::links, d.labels = {}, d.split = {}, d.classes = 8;
  for (const nn::link_decoding how :
       {nn::link_decoding::dot, nn::link_decoding::distmult, nn::link_decoding::mlp})
    for (const char* model : {"gcn", "gat"}) {
      CAPTURE(model);
      nn::training_options o = options_for(model);
      o.links.decoder = how, o.links.width = 8;
      const answering<T> some(d, o);
      CHECK(some.scores(some.pairs) == some.scores_of_whole);
      for (std::size_t k = 0; k < some.pairs.size(); k += 7)
        CHECK(some.scores(std::span(some.pairs).subspan(k, 1)) == std::vector{some.scores_of_whole[k]});
      CHECK(some.has_bits({3, 1}));
    }
}

TEST_CASE("several threads ask at once") {
  const answering<double> some(graph_for(true), options_for("sage"));
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int& of_thread : wrong)
    threads.emplace_back([&] {
      for (global_index k = 0; k < 200; ++k) of_thread += !some.has_bits({k % 61, k * k % 61});
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == std::vector<int>(4, 0));
}

TEST_CASE("what is no vertex, and a model of other things than links, are refused") {
  for (const char* model : {"gcn", "gat"}) {
    const answering<double> some(graph_for(true), options_for(model));
    CHECK_THROWS_WITH_AS((void)some.rows(std::vector<global_index>{0, 61}), doctest::Contains("61"),
                         shape_error);
    CHECK_THROWS_AS((void)some.rows(std::vector<global_index>{-1}), shape_error);
    CHECK_THROWS_AS((void)some.scores({}), error);
    CHECK(some.has_bits({0, 60}));
  }
}

TEST_CASE("a model that does not fit the data is refused") {
  const io::dataset d = graph_for(true);
  const trained<double> of(d, options_for("gcn"));
  const nn::saved_model model = nn::saved_model_of(*of.file);
  CHECK(nn::fitted_to(model, *of.file, d, "d").classes == 5);
  io::dataset other = d;
  other.features = 14;
  CHECK_THROWS_WITH_AS(
      nn::fitted_to(model, *of.file, other, "d"),
      doctest::Contains("does not fit d: the model has 13 features, and the data 14 features"), input_error);
  other = d;
  other.classes = 6;
  CHECK_THROWS_WITH_AS(nn::fitted_to(model, *of.file, other, "d"), doctest::Contains("5 classes"),
                       input_error);
  CHECK_THROWS_WITH_AS(nn::load_data_for(model, *of.file, "no such folder"),
                       doctest::Contains("no such folder"), input_error);
}

}  // namespace test_point_predictor

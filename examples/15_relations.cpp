// SPDX-License-Identifier: Apache-2.0
/// A graph whose labels need relations. Of each vertex v, three in-edges of type 0 come from vertices of the
/// colour that is v's label, and three of type 1 from vertices of another colour. Features are colours.
/// Without the types, both colours are as likely; R-GCN (Schlichtkrull et al., ESWC 2018) tells them apart:
///   Z = H W + b + sum over r of A_r H W_r
#include <cstdio>

#include <partita/partita.hpp>
using namespace partita;

constexpr global_index n = 600, colours = 4;

io::dataset coloured_graph() {
  io::dataset data;
  data.name = "colours", data.vertices = n, data.features = data.classes = colours, data.relations = 2;
  std::vector<double> x(static_cast<std::size_t>(n * colours), 0);
  std::vector<io::edge> edges;
  std::vector<std::int64_t> types, labels;
  std::vector<std::uint8_t> split;
  const auto draw = [](global_index v, global_index k) {
    return static_cast<global_index>(base::random_bits(7, v, k) >> 1);
  };
  for (global_index v = 0; v < n; ++v) {
    const global_index label = draw(v, 0) % colours,
                       other = (label + 1 + draw(v, 1) % (colours - 1)) % colours;
    x[static_cast<std::size_t>(v * colours + v % colours)] = 1;  // the colour of v is v % colours
    labels.push_back(label), split.push_back(static_cast<std::uint8_t>(1 + draw(v, 2) % 3));
    for (global_index k = 0; k < 6; ++k) {
      edges.push_back({draw(v, 3 + k) % (n / colours) * colours + (k < 3 ? label : other), v});
      types.push_back(k < 3 ? 0 : 1);
    }
  }
  data.edges = std::move(edges), data.edge_types = std::move(types);
  data.labels = std::move(labels), data.split = std::move(split);
  data.vertex_features = io::feature_table(n, colours, std::move(x));
  return data;
}

int main() {
  const io::dataset data = coloured_graph();
  threads::run(4, [&](const communicator& world) {
    const mesh<host> m(world, default_mesh(grid_2d, world.size()));
    const auto accuracy = [&](const char* model) {
      const nn::training_result r = nn::train_model<double>(
          m, data, {.model = model, .epochs = 100, .weight_decay = 0, .dropout = 0, .seed = 1}, grid_2d);
      if (world.rank() == 0)
        std::printf("%s: test accuracy %.1f %%, %lld words received per epoch\n", model,
                    100 * r.epochs.back().test_accuracy, static_cast<long long>(r.words_received.max_rank));
      return r.epochs.back().test_accuracy;
    };
    if (accuracy("gcn") > 0.7 || accuracy("rgcn") < 0.95 || accuracy("rgat") < 0.95)
      throw error("labels that need relations were not learned by models with relations alone");
  });
}

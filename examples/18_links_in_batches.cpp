// SPDX-License-Identifier: Apache-2.0
/// A training loop of your own over pairs of vertices, on sampled neighbourhoods: a GCN makes rows h of the
/// ends of a batch's links and negatives, the score of a pair is h_u . h_v, and the loss its cross-entropy.
#include <cstdio>
#include <numeric>
#include <optional>
#include <vector>

#include <partita/graph/link_split.hpp>
#include <partita/partita.hpp>
#include <partita/sampling/negative_edges.hpp>
#include <partita/train/batch_order.hpp>
#include <partita/train/link_scores.hpp>
#include <partita/train/mini_batch.hpp>
using namespace partita;

constexpr int ranks = 4;
constexpr global_index n = 1000, parts = 10, part = n / parts, width = 16, batch = 512;

/// Vertices with some ten neighbours in their part; a tenth of the links is held out.
io::dataset communities() {
  io::dataset data;
  data.vertices = n;
  for (global_index v = 0; v < n; ++v)
    for (global_index k = 0; k < 5; ++k) {
      const auto w = v / part * part + global_index(base::random_bits(1, v, k) % part);
      data.edges.push_back({v, w}), data.edges.push_back({w, v});
    }
  return graph::split_links(std::move(data), {.validation = 0, .test = 0.1, .columns = width, .seed = 1});
}

/// A rank's share of links u -> v, and negatives u -> w: entries (v, u, 1) and (w, u, -1) of places in
/// `ends`.
struct pair_batch {
  std::vector<triplet<double>> entries;
  std::vector<global_index> ends;
  pair_batch(const sampling::graph<double>& graph, const io::array<io::edge>& links,
             std::span<const global_index> chosen, int rank, random_key key) {
    base::numbering<global_index> numbers;
    const auto place = [&](global_index v) {
      if (!numbers.contains(v)) ends.push_back(v);
      return numbers(v).first;
    };
    const sampling::root_lists shares = sampling::equal_shares(chosen, ranks);
    for (const global_index k : shares[rank]) {
      const auto [u, v] = links[k];
      entries.push_back({place(v), place(u), 1});
      if (const auto w = sampling::negative_of(graph, key, u, k))
        entries.push_back({place(*w), place(u), -1});
    }
  }
};

int main() {
  const io::dataset data = communities();
  threads::run(ranks, [&](const communicator& world) {
    const mesh<host> m(world, {.row = ranks}), whole(world, {.col = ranks}), alone(self::world(), {});
    const auto a = distribute(whole, feature_column, {n, n}, graph::gcn_normalized(world, data));
    const auto value = [](auto v, auto j) { return base::random_uniform(2, v, j) + (v / part == j) / 2.0; };
    const auto x = generate<vertex_rows, double>(m, {n, parts}, value);  // (n/P, parts)
    const sampling::graph<double> graph(a);                              // whole on every rank
    sampling::neighbour_sampler<double> draw(graph, {.fanouts = {5, 5}, .keep_diagonal = true});
    sampling::sample<double> s;
    gather_rows_plan rows(x);
    const auto parameters = std::make_shared<nn::parameters<double, host>>(alone);  // of all batches
    nn::link_decoder<double, host> decoder(nn::link_decoding::dot, width, *parameters, 0);
    nn::adam<double, host> optimizer(0.01);
    std::optional<dense<double, vertex_rows, host>> h;  // (n_0, parts): R X
    std::optional<nn::model<double, host>> net;         // on the blocks of the last sample
    const auto forward = [&](const pair_batch& pairs, std::uint64_t step, bool training) -> const auto& {
      draw(pairs.ends, step, s);
      rows.assign(s.vertices);
      h.emplace(alone, rows.shape(0));
      rows(x, *h);
      const nn::builder<double, host> b(alone, h->row_blocking(), {.seed = 1, .sampled = true}, parameters);
      net.emplace(
          nn::convolutions<nn::gcn_conv>(nn::block_matrices(alone, s.blocks, false), {parts, 32, width}, b));
      return net->forward(*h, {.training = training});  // (ends, width)
    };
    std::vector<global_index> links(data.edges.size());
    std::iota(links.begin(), links.end(), 0);
    const auto held_out_auc = [&] {  // the mean over the ranks' shares
      const pair_batch pairs(graph, data.test_links, std::span(links).first(data.test_links.size()),
                             world.rank(), {3});
      const auto& z = forward(pairs, 0, false);
      std::vector<io::edge> of_sign[2];
      for (const auto& [v, u, sign] : pairs.entries) of_sign[sign > 0].push_back({u, v});
      const auto scores = [&](auto& of) { return nn::scores_of_pairs(decoder, z, of); };
      return world.all_reduce(nn::area_under_roc(scores(of_sign[1]), scores(of_sign[0]))) / ranks;
    };
    const double before = held_out_auc();
    nn::batch_order order(links, batch, 1);
    double loss = 0;
    for (std::uint64_t epoch = 1, step = 1; epoch <= 6; ++epoch) {
      order.begin(epoch);
      for (std::size_t i = 0; i < order.iterations(); ++i, ++step) {
        const pair_batch pairs(graph, data.edges, order.batch(i), world.rank(), {2, epoch});
        const auto& z = forward(pairs, step, true);
        const global_index ends = z.shape().rows;
        const auto scored = distribute(alone, row_1d, {ends, ends}, pairs.entries, symmetry::one_way);
        const algebra::pair_signs<double, host> signs(scored);
        edge_matrix<double, host> ds(scored, 1);
        dense<double, vertex_rows, host> dz(alone, z.shape());
        decoder.set_pairs(scored, z);
        loss = algebra::pair_loss(decoder.forward(z), signs, ds, algebra::logistic_pair_loss{});
        decoder.backward(ds, dz);
        const double share = signs.weight() / world.all_reduce(signs.weight());  // of the batch
        transform(dz, dz, base::scaled<double>{share});
        net->backward(dz);
        world.all_reduce(parameters->gradients().values());
        optimizer.step(*parameters);
        loss = world.all_reduce(share * loss);
      }
    }
    const double auc = held_out_auc();
    if (world.rank() == 0) std::printf("loss %.3f; AUC of held-out links %.3f -> %.3f\n", loss, before, auc);
    if (auc < 0.9 || auc < before + 0.2) throw error("it did not learn");
  });
}

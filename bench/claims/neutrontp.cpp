// SPDX-License-Identifier: Apache-2.0
// What decoupled training moves and computes.
#include "neutrontp.hpp"

#include <algorithm>

#include "../support/pipeline_words.hpp"
#include "partita/io/karate.hpp"
#include "runs.hpp"

namespace bench::claims {

namespace {

using partita::feature_column, partita::operation, partita::row_1d;

nn::training_options decoupled(int layers, global_index hidden = 9, const char* model = "gcn") {
  nn::training_options o;
  o.model = model, o.coupling = nn::coupling::decoupled, o.epochs = 2;
  o.hidden = std::vector<global_index>(static_cast<std::size_t>(layers - 1), hidden);
  return o;
}

nn::training_options coupled(std::vector<global_index> hidden) {
  nn::training_options o;
  o.hidden = std::move(hidden), o.epochs = 2;
  return o;
}

global_index piece(global_index n, int ranks, int r) { return n / ranks + (r < n % ranks ? 1 : 0); }

/// What all ranks receive when n x c goes from rows to columns, or back: everything but what stays.
global_index one_way(global_index n, global_index c, int ranks) {
  global_index stays = 0;
  for (int r = 0; r < ranks; ++r) stays += piece(n, ranks, r) * piece(c, ranks, r);
  return n * c - stays;
}

/// Weights and biases of dense layers.
global_index parameters(global_index features, const std::vector<global_index>& hidden,
                        global_index classes) {
  global_index sum = 0, in = features;
  for (const global_index h : hidden) sum += in * h + h, in = h;
  return sum + in * classes + classes;
}

/// Words of an epoch in closed form, without the sums of gradients and of the loss.
global_index predicted(const io::dataset& d, const nn::training_options& o, const partita::policy& p,
                       mesh_shape shape) {
  return predicted_words(d, o, p, shape).total -
         2 * (shape.size() - 1) * (parameters(d.features, o.hidden, d.classes) + 1);
}

/// Redistributions in an epoch: each has a message from every rank to every other one.
global_index redistributions(const nn::training_result& r, int ranks) {
  return of_operation(r, operation::all_to_all).messages / (ranks * (ranks - 1));
}

outcome four_redistributions() {
  parts p;
  constexpr int ranks = 3;
  const io::dataset d = random_graph(40, 4, 13, 5);
  for (int layers = 1; layers <= 8; ++layers) {
    const auto r = train(d, decoupled(layers), feature_column, {1, ranks, 1});
    p.equal(redistributions(r, ranks), 4, text("decoupled, %d layers", layers));
    p.equal(of_operation(r, operation::all_to_all).words, 4 * one_way(40, 5, ranks), "words");
  }
  std::string found;
  for (int layers = 2; layers <= 4; ++layers) {
    const std::vector<global_index> hidden(static_cast<std::size_t>(layers - 1), 5);
    nn::training_options o = coupled(hidden);
    // from wide to narrow A (H W) is cheaper, from narrow to wide (A H) W; without dropout A X is kept
    const auto narrow = train(d, o, feature_column, {1, ranks, 1});
    o.dropout = 0;
    const auto wide = train(random_graph(40, 4, 3, 9), o, feature_column, {1, ranks, 1});
    const global_index a = redistributions(narrow, ranks), b = redistributions(wide, ranks);
    p.equal(a, 4 * layers, text("transform first, %d layers", layers));
    p.require(b <= 2 * (2 * layers - 1) - 1,
              text("aggregate first, %d layers: %d", layers, static_cast<int>(b)));
    found += text("%s%d and %d", found.empty() ? "" : ", ", static_cast<int>(a), static_cast<int>(b));
  }
  return p.result("decoupled 4 for L = 1 to 8; coupled, transform and aggregate first, L = 2, 3, 4: " +
                  found);
}

outcome volume_of_reddit() {
  parts p;
  const io::dataset d = counts(232'965, 602, 41);
  const auto bytes = [](global_index words) { return 4e-9 * static_cast<double>(words); };
  std::string found;
  struct figures {
    int ranks;
    double coupled, decoupled;
  };
  for (const figures& f : {figures{4, 0.830, 0.1147}, {16, 1.038, 0.143}}) {
    const global_index few = predicted(d, decoupled(2, 256), feature_column, {1, f.ranks, 1}),
                       many = predicted(d, coupled({256}), feature_column, {1, f.ranks, 1});
    p.equal(few, 4 * one_way(d.vertices, 41, f.ranks), "decoupled");
    p.equal(many, 4 * (one_way(d.vertices, 256, f.ranks) + one_way(d.vertices, 41, f.ranks)), "coupled");
    p.near(bytes(few), f.decoupled, 0.005, "decoupled, GB");
    p.near(bytes(many), f.coupled, 0.005, "coupled, GB");
    found += text("%sP = %d: %.3f and %.4f GB, ratio %.2f", found.empty() ? "" : "; ", f.ranks, bytes(many),
                  bytes(few), bytes(many) / bytes(few));
  }
  return p.result(found);
}

outcome independent_of_width_and_depth() {
  parts p;
  const global_index expected = 4 * one_way(4096, 41, 8);
  for (const global_index features : {128, 256, 512, 1024})
    p.equal(predicted(counts(4096, features, 41), decoupled(2), feature_column, {1, 8, 1}), expected,
            text("%d features", static_cast<int>(features)));
  for (int layers = 1; layers <= 8; ++layers)
    p.equal(predicted(counts(4096, 128, 41), decoupled(layers), feature_column, {1, 8, 1}), expected,
            text("%d layers", layers));
  return p.result("the same words for d_0 = 128 to 1024 and L = 1 to 8");
}

/// M: rows that ranks need of each other, for all edges, where these go one way and where they are reversed.
global_index needed_rows(const io::dataset& d, int ranks) {
  std::vector<int> parts;
  for (int r = 0; r < ranks; ++r)
    parts.insert(parts.end(), static_cast<std::size_t>(piece(d.vertices, ranks, r)), r);
  std::vector<io::edge> reversed;
  for (const io::edge& e : d.edges) reversed.push_back({e.target, e.source});
  return mirror_pairs(std::vector<io::edge>(d.edges.begin(), d.edges.end()), parts, ranks) +
         mirror_pairs(reversed, parts, ranks);
}

outcome decoupled_rows() {
  parts p;
  constexpr int ranks = 4;
  std::string found;
  struct graph {
    const char* name;
    io::dataset data;
  };
  for (const graph& g :
       {graph{"planted", planted_dataset(2000, 16, 0.02, 8)}, {"R-MAT", rmat_graph(9, 8, 8)}}) {
    const global_index both = needed_rows(g.data, ranks), n = g.data.vertices;
    const double rho = static_cast<double>(both) / 2 / static_cast<double>(n);
    for (const int layers : {1, 2, 4, 8}) {
      const global_index rows = predicted(g.data, decoupled(layers), row_1d, {ranks, 1, 1}),
                         columns = predicted(g.data, decoupled(layers), feature_column, {1, ranks, 1});
      p.equal(rows, layers * both * 8, text("%s, rows, L = %d", g.name, layers));
      p.require((columns < rows) == (layers * rho > 2 * (ranks - 1.0) / ranks),
                text("%s, L = %d: the rule is wrong", g.name, layers));
      if (layers == 2)
        found += text("%s%s (rho = %.2f): %s", found.empty() ? "L = 2: " : ", ", g.name, rho,
                      columns < rows ? "columns" : "rows");
    }
  }
  return p.result(found + "; rule right for L = 1, 2, 4, 8");
}

outcome balanced_nonzeros() {
  parts p;
  const io::dataset d = rmat_graph(12, 4, 16);
  const double columns = busiest_multiplications(d, feature_column, {1, 16, 1}),
               rows = busiest_multiplications(d, row_1d, {16, 1, 1});
  p.near(columns, 1, 1e-9, "columns");
  p.require(rows > 1.3, text("rows: %.2f", rows));
  return p.result(text("max/mean %.2f by columns, %.2f by rows, R-MAT 2^12, P = 16", columns, rows));
}

outcome chunks_of_rows() {
  parts p;
  constexpr int ranks = 4;
  const io::dataset d = rmat_graph(9, 8, 8);
  std::string found;
  for (const int chunks : {2, 7, 16}) {
    nn::training_options o = decoupled(2);
    o.split_pieces = chunks;
    const auto r = train(d, o, feature_column, {1, ranks, 1});
    p.equal(of_operation(r, operation::all_to_all).words, 4 * one_way(d.vertices, 8, ranks),
            text("%d chunks", chunks));
    global_index needed = 0;  // sum of |N_j|, a chunk being a range of targets
    std::vector<bool> seen(static_cast<std::size_t>(d.vertices * chunks), false);
    for (const io::edge& e : d.edges) {
      const auto at = static_cast<std::size_t>(e.target * chunks / d.vertices * d.vertices + e.source);
      needed += !seen[at];
      seen[at] = true;
    }
    found += text("%s%.2f (%d)", found.empty() ? "" : ", ",
                  static_cast<double>(needed) / static_cast<double>(d.vertices), chunks);
  }
  return p.result("every row once, for 2, 7 and 16 chunks; without reuse, of V, R-MAT: " + found);
}

outcome equals_serial() {
  parts p;
  nn::training_options without_dropout = decoupled(2, 3);
  without_dropout.dropout = 0;  // rows that it empties are at the kink of relu
  double off = 0;
  for (const global_index classes : {2, 7, 41, 64}) {
    const io::dataset d = random_graph(48, 5, 6, classes);
    nn::training_options o = decoupled(3);
    const auto serial = trained(d, o, feature_column, {1, 1, 1});
    for (const int ranks : {2, 3, 4, 5, 8, 16}) {
      const auto found = trained(d, o, feature_column, {1, ranks, 1});
      for (std::size_t i = 0; i < serial.size(); ++i) off = std::max(off, std::abs(found[i] - serial[i]));
    }
    off = std::max(
        off, gradient_error(random_graph(24, 3, 4, classes), without_dropout, feature_column, {1, 3, 1}));
  }
  p.require(off < 1e-5, text("off by %.1e", off));
  return p.result(text("weights and gradients off by at most %.0e, P = 1 to 16, C = 2 to 64, directed", off));
}

outcome attention_gradients() {
  parts p;
  const io::dataset d = random_graph(30, 4, 5, 4);
  nn::training_options o = decoupled(2, 3, "gat");
  o.heads = 2, o.epochs = 3, o.dropout = 0;
  double off = 0, weights = 0;
  const auto serial = trained(d, o, feature_column, {1, 1, 1});
  for (const int ranks : {1, 2, 3}) {
    off = std::max(off, gradient_error(d, o, feature_column, {1, ranks, 1}));
    const auto found = trained(d, o, feature_column, {1, ranks, 1});
    for (std::size_t i = 0; i < serial.size(); ++i)
      weights = std::max(weights, std::abs(found[i] - serial[i]));
  }
  p.require(off < 1e-5, text("gradients off by %.1e", off));
  p.require(weights < 1e-9, text("weights differ by %.1e", weights));
  return p.result(
      text("off by %.0e of finite differences, P = 1, 2, 3; weights differ by %.0e", off, weights));
}

/// What a decoupled gat shares forward, and its gradients back, on all ranks.
struct shared_words {
  global_index forward = 0, backward = 0;
};
shared_words words_of_attention(const io::dataset& d, nn::training_options o, int ranks) {
  const auto r = train(d, o, feature_column, {1, ranks, 1});
  shared_words w;
  for (const auto& e : r.ledger) {
    if (e.phase == "forward" && e.kind == operation::all_gather) w.forward += e.received.words;
    if (e.phase == "backward" && e.kind != operation::all_reduce) w.backward += e.received.words;
  }
  w.backward -= 2 * one_way(d.vertices, d.classes, ranks);  // as without attention
  return w;
}

outcome attention_words() {
  parts p;
  using partita::algebra::coefficient_gradient;
  constexpr global_index n = 40, classes = 5;
  struct kind {
    int layers;
    global_index degree;
    coefficient_gradient how;
  };
  for (const kind& k : {kind{3, 4, coefficient_gradient::edges}, {1, 35, coefficient_gradient::rows}})
    for (const int heads : {1, 3})
      for (const int ranks : {2, 4}) {
        const io::dataset d = random_graph(n, k.degree, 6, classes);
        nn::training_options o = decoupled(k.layers, 9, "gat");
        o.heads = heads, o.coefficients = k.how;
        const shared_words w = words_of_attention(d, o, ranks);
        const global_index scalars = (ranks - 1) * n * heads,
                           by_edges = (ranks - 1) * (std::ssize(d.edges) + n),
                           by_rows = (ranks - 1) * 2 * n * classes;
        p.equal(w.forward, 2 * scalars, text("P = %d, %d heads, forward", ranks, heads));
        p.require(
            w.backward <= std::min(by_edges, by_rows) + scalars,
            text("P = %d, %d heads, %d layers: %d words backward for %d", ranks, heads, k.layers,
                 static_cast<int>(w.backward), static_cast<int>(std::min(by_edges, by_rows) + scalars)));
      }
  const double reddit = 4e-9 * 15 * 2 * 232'965;
  p.near(reddit, 0.028, 0.01, "Reddit");
  return p.result(
      text("2 (P-1) V scalars a head in the ledger, Reddit, P = 16: %.3f GB; backward the least of edges and "
           "rows, and "
           "the scalars' gradients",
           reddit));
}

outcome accuracy_table() {
  parts p;
  const io::dataset d = io::karate_club();
  std::string found;
  for (const int layers : {2, 4, 8}) {
    double sums[] = {0, 0};
    for (const bool apart : {false, true})
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        nn::training_options o = decoupled(layers, 16);
        if (!apart) o.coupling = nn::coupling::coupled;
        o.epochs = 100, o.seed = seed;
        sums[apart] += train(d, o, row_1d, {1, 1, 1}).epochs.back().test_accuracy / 5;
      }
    found +=
        text("%sL = %d: %.0f and %.0f %%", found.empty() ? "" : ", ", layers, 100 * sums[0], 100 * sums[1]);
    if (layers == 2)
      p.require(sums[0] > 0.4 && sums[1] > 0.4, text("L = 2: %.2f and %.2f", sums[0], sums[1]));
  }
  return p.result("karate club, 5 seeds, coupled and decoupled: " + found +
                  "; Cora and CiteSeer: docs/models.md");
}

}  // namespace

std::vector<claim> training_of_neutrontp() {
  return {{"NeutronTP", "3", "decoupled: 4 redistributions an epoch, whatever L; coupled: 4 L or 4 L - 3",
           "4; 2 (2 L - 1)", four_redistributions},
          {"NeutronTP", "4", "Reddit's counts, 602-256-41: coupled and decoupled", "7.23 times less on P = 4",
           volume_of_reddit},
          {"NeutronTP", "5", "words do not depend on d_0 and L", "flat", independent_of_width_and_depth},
          {"NeutronTP", "9", "decoupled by rows: 2 L sum|R_i| C; columns win if L rho > 2 (P-1)/P",
           "not measured", decoupled_rows},
          {"NeutronTP", "10", "nonzeros of the busiest rank: 1.00 of the mean by columns",
           "others 1.91, 2.38", balanced_nonzeros},
          {"NeutronTP", "11", "chunks receive every row once", "V rows, whatever the number", chunks_of_rows},
          {"NeutronTP", "13", "decoupled training is the serial one, on directed graphs, too", "1e-5",
           equals_serial},
          {"NeutronTP", "14", "decoupled gat: exact gradients of the attention, whatever P",
           "none in its code", attention_gradients},
          {"NeutronTP", "15", "gat shares two scalars a vertex and head", "21.3 GB on Reddit, P = 16",
           attention_words},
          {"NeutronTP", "18", "accuracy, coupled and decoupled, by depth", "no table", accuracy_table},
          {"NeutronTP", "27", "epochs over data-parallel ones, 16 T4 and 15 Gbit/s, in virtual time",
           "1.29 to 8.72 times as fast as other systems", over_data_parallel}};
}

std::vector<claim> of_neutrontp() {
  std::vector<claim> all = words_of_neutrontp();
  for (const claim& c : training_of_neutrontp()) all.push_back(c);
  std::ranges::sort(all, {}, [](const claim& c) { return std::stoi(std::string(c.number)); });
  return all;
}

}  // namespace bench::claims

// SPDX-License-Identifier: Apache-2.0
// CAGNET: words of whole epochs, and what its training computes.
#include "cagnet.hpp"

#include <algorithm>
#include <chrono>

#include "cagnet_words.hpp"
#include "runs.hpp"

namespace bench::claims {

namespace {

using namespace cagnet;
using partita::feature_column, partita::grid_2d, partita::named_policies, partita::replicated_1_5d,
    partita::row_1d, partita::split_3d;

nn::training_options gcn(std::vector<global_index> hidden = {16}) {
  nn::training_options o;
  o.hidden = std::move(hidden);
  return o;
}

/// Words of an epoch that the busiest rank receives for products, by the closed forms of a run, for a random
/// graph with a network's degree and 1/scale of its vertices, times the scale.
double epoch_words(const network& g, double scale, const policy& p, mesh_shape shape) {
  const auto n = static_cast<global_index>(g.vertices / scale);
  const io::dataset d =
      random_graph(n, static_cast<global_index>(g.entries / g.vertices), g.widths.front(), g.widths.back());
  const double gradients =
      2.0 * (shape.size() - 1) / shape.size() * (g.widths[0] * g.widths[1] + g.widths[1] * g.widths[2]);
  return scale * (static_cast<double>(predicted_words(d, gcn(), p, shape).max_rank) - gradients);
}

/// Columns of a vertex that a rank receives in an epoch if it needs all vertices, by a run's ledger. Without
/// dropout A X is kept from the first epoch.
double columns_of_epoch(const network& g, bool kept) {
  constexpr int ranks = 4;
  constexpr global_index n = 32;
  const io::dataset d = complete_graph(n, g.widths.front(), g.widths.back());
  nn::training_options o = gcn();
  o.epochs = 2, o.dropout = kept ? 0 : 0.5;
  const auto r = train(d, o, row_1d, {ranks, 1, 1});
  const global_index gradients =
      2 * (ranks - 1) *
      (g.widths[0] * g.widths[1] + g.widths[1] * g.widths[2] + g.widths[1] + g.widths[2] + 1);
  return static_cast<double>(r.words_received.total - gradients) / ((ranks - 1) * n);
}

outcome order_of_products() {
  parts p;
  std::string found;
  struct gain {
    network of;
    double reordered, cached;
  };
  for (const gain& g : {gain{reddit, 10.5, 21}, {amazon, 5.6, 11}, {protein, 6.5, 13}}) {
    const double shipped = g.of.columns(), reordered = columns_of_epoch(g.of, false),
                 kept = columns_of_epoch(g.of, true);
    p.near(reordered, reordered_columns(g.of), 1e-9, std::string(g.of.name) + ", columns");
    p.near(shipped / reordered, g.reordered, 0.01, std::string(g.of.name) + ", reordered");
    p.near(shipped / kept, g.cached, 0.02, std::string(g.of.name) + ", kept");
    found += text("%s%s %.1f and %.1f", found.empty() ? "" : ", ", std::string(g.of.name).c_str(),
                  shipped / reordered, shipped / kept);
    for (const int ranks : {4, 16, 64, 100}) {
      const double ours = g.of.vertices * (ranks - 1.0) / ranks * reordered_columns(g.of);
      p.require(ours < words_2d(g.of, ranks), text("2D moves less on %d", ranks));
      for (const int c : {2, 4, 8})
        if (c * c <= ranks)
          p.require(ours < words_1_5d(g.of, ranks, c), text("1.5D moves less on %d, c = %d", ranks, c));
    }
  }
  return p.result("in the ledger " + found +
                  " times less than CAGNET's 1D; reordered it beats its 2D and 1.5D up to P = 100");
}

/// Rows of a graph that ranks need of each other, along its edges and against them.
global_index needed_both_ways(const io::dataset& d, int ranks) {
  const global_index block = d.vertices / ranks;
  std::vector<bool> seen(static_cast<std::size_t>(2 * ranks * d.vertices), false);
  global_index needed = 0;
  const auto see = [&](global_index rank, global_index row) {
    const auto at = static_cast<std::size_t>(rank * d.vertices + row);
    if (row / block % ranks != rank % ranks && !seen[at]) seen[at] = true, ++needed;
  };
  for (const io::edge& e : d.edges) {
    see(e.target / block, e.source);
    see(ranks + e.source / block, e.target);
  }
  return needed;
}

/// Reddit's widths on 64 ranks: without dropout A X is kept, and of the second layer 16 columns travel, both
/// ways.
outcome reddit_on_64() {
  parts p;
  constexpr int ranks = 64;
  constexpr global_index in = reddit.widths[0], width = reddit.widths[1], classes = reddit.widths[2],
                         gradients = 2 * (ranks - 1) * (in * width + width * classes + width + classes + 1);
  nn::training_options o = gcn();
  o.dropout = 0, o.exchange = partita::row_exchange::sparsity_aware;
  const auto rows_sent = [&](const io::dataset& d) {
    return predicted_words(d, o, row_1d, {ranks, 1, 1}).total - gradients;
  };
  p.equal(rows_sent(complete_graph(128, in, classes)), 2 * width * (ranks - 1) * 128, "a complete graph");
  // a rank needs a share 1 - exp(-degree/P) of a uniform graph's rows, whatever n
  const io::dataset d =
      random_graph(1024, static_cast<global_index>(reddit.entries / reddit.vertices), in, classes);
  const global_index needed = needed_both_ways(d, ranks), all = 2 * (ranks - 1) * d.vertices;
  p.equal(rows_sent(d), width * needed, "a uniform graph");
  o.encoding = partita::algebra::row_encoding::bf16;
  p.equal(rows_sent(d), 2 * width * needed, "its rows in bf16, bytes");
  o.encoding = partita::algebra::row_encoding::exact, o.exchange = partita::row_exchange::cover;
  const auto share = [&](global_index of) { return static_cast<double>(of) / static_cast<double>(all); };
  const global_index covered = rows_sent(d) / width;
  p.require(covered <= needed, "covers are more than the rows");
  const double megabytes = 4e-6 * 2 * width * reddit.vertices * (ranks - 1) / ranks;
  p.near(megabytes * 1e6, 28.0 * (1 << 20), 0.001, "MiB");
  return p.result(text("blocks %.1f MB (28.0 MiB) a rank, needed rows %.1f, covers %.1f, rows in bf16 %.1f",
                       megabytes, megabytes * share(needed), megabytes * share(covered),
                       megabytes * share(needed) / 2));
}

outcome split_in_3d() {
  parts p;
  std::string found;
  struct figures {
    network of;
    double scale, shipped, factor;  // MB a process and epoch on 64, as shipped
  };
  for (const figures& g :
       {figures{reddit, 128, 648, 1.38}, {amazon, 2000, 13134, 1.77}, {protein, 4000, 14670, 1.39}}) {
    const double megabytes = 4e-6 * epoch_words(g.of, g.scale, split_3d, {4, 4, 4});
    p.require(g.shipped / megabytes >= g.factor,
              text("%s: %.0f MB", std::string(g.of.name).c_str(), megabytes));
    found += text("%s%s %.0f MB instead of %.0f, %.1f times less", found.empty() ? "" : "; ",
                  std::string(g.of.name).c_str(), megabytes, g.shipped, g.shipped / megabytes);
  }
  return p.result(found);
}

struct mesh_of {
  policy p;
  mesh_shape shape;
};
const std::vector<mesh_of> four_algorithms{
    {row_1d, {4, 1, 1}}, {replicated_1_5d, {2, 1, 2}}, {grid_2d, {2, 2, 1}}, {split_3d, {2, 2, 2}}};

outcome directed_gradients() {
  parts p;
  const io::dataset d = random_graph(23, 4, 5, 3);
  double off = 0;
  for (const mesh_of& m : four_algorithms) off = std::max(off, gradient_error(d, gcn({4}), m.p, m.shape));
  p.require(off < 1e-5, text("off by %.1e", off));
  return p.result(text("off by %.0e of finite differences, 1D, 1.5D, 2D and 3D", off));
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double off = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) off = std::max(off, std::abs(a[i] - b[i]));
  return off;
}

outcome any_ranks() {
  parts p;
  const io::dataset d = random_graph(41, 5, 13, 7);
  nn::training_options o = gcn({6});
  o.epochs = 10;
  const auto serial = trained(d, o, row_1d, {1, 1, 1});
  double off = 0;
  int runs = 0;
  for (const policy& by : named_policies)
    for (const int ranks : {2, 3, 4, 6, 8}) {
      off = std::max(off, largest_difference(trained(d, o, by, default_mesh(by, ranks)), serial));
      ++runs;
    }
  p.require(off < 1e-5, text("off by %.1e", off));
  return p.result(
      text("weights after 10 epochs differ by at most %.0e in %d runs, six policies, P = 2 to 8", off, runs));
}

outcome uneven_sizes() {
  parts p;
  const auto begin = std::chrono::steady_clock::now();
  const io::dataset d = random_graph(41, 5, 13, 7);
  nn::training_options o = gcn({5});
  o.epochs = 2;
  const auto serial = trained(d, o, row_1d, {1, 1, 1});
  for (const mesh_of& m : {mesh_of{grid_2d, {3, 2, 1}},
                           {grid_2d, {2, 3, 1}},
                           {grid_2d, {7, 1, 1}},
                           {split_3d, {2, 1, 3}},
                           {replicated_1_5d, {3, 1, 2}}})
    p.require(largest_difference(trained(d, o, m.p, m.shape), serial) < 1e-10,
              std::string(m.p.name) + " differs");
  const std::string refused = parts::error_of([&] { require_mesh(grid_2d, {2, 2, 1}, 6); });
  p.require(refused.find("4 places for 6 ranks") != std::string::npos, "a wrong mesh is accepted");
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return p.result(
      text("41 rows, 7 classes on 3 x 2, 2 x 3, 7 x 1, 2 x 1 x 3, 3 x 1 x 2 in %.1f s; else \"%s\"", seconds,
           refused.c_str()));
}

outcome not_c_times() {
  parts p;
  const io::dataset d = random_graph(40, 5, 13, 5);
  nn::training_options o = gcn({6});
  o.epochs = 1, o.optimizer = nn::update_rule::sgd, o.learning_rate = 1;
  const auto serial = trained(d, o, row_1d, {1, 1, 1});
  double off = 0;
  for (const int c : {2, 4})
    off = std::max(off, largest_difference(trained(d, o, replicated_1_5d, {8 / c, 1, c}), serial));
  p.require(off < 1e-12, text("a step differs by %.1e", off));
  return p.result(text("a step of gradient descent differs by %.0e, c = 2 and 4 of 8", off));
}

outcome crossovers() {
  parts p;
  std::string found;
  for (const machine& on : {summit, perlmutter})
    for (const network& g : {reddit, amazon, protein}) {
      std::string last;
      found += text("%s%s, %s:", found.empty() ? "" : "; ", std::string(g.name).c_str(),
                    std::string(on.name).c_str());
      for (int ranks = 4; ranks <= 1024; ranks *= 4) {
        const int c = static_cast<int>(std::lround(std::sqrt(ranks)));
        p.require(seconds_1_5d(g, ranks, c, on) <= seconds_2d(g, ranks, on),
                  text("2D is faster on %d", ranks));
        const std::string best = fastest(g, ranks, on);
        if (best != last) found += text(" %s from %d", best.c_str(), ranks);
        last = best;
      }
    }
  for (const int q : {2, 4, 8}) {
    const auto [moving, staying] = words_over_2d(q);
    p.require(moving <= 1, text("P = %d: %.2f of 2D's words by ledger", q * q, moving));
    found += text("%s%.2f and %.2f",
                  q == 2 ? "; words over 2D with A moving and A in place, P = 4, 16, 64: " : ", ", moving,
                  staying);
  }
  return p.result(found);
}

}  // namespace

std::vector<claim> of_cagnet() {
  std::vector<claim> all = words_of_cagnet();
  for (const claim& c : rows_of_cagnet()) all.push_back(c);
  for (const claim& c : std::vector<claim>{
           {"CAGNET", "E4",
            "the order of products by layer: 1D moves 10.5, 5.6, 6.5 times less; 21, 11, 13 with A X kept",
            "always (A H) W", order_of_products},
           {"CAGNET", "E4+", "Reddit's counts, 602-16-41, uniform, P = 64: 28.0 MiB a rank and epoch",
            "1D 619, 1.5D 207, 2D 818, 3D 648 MB", reddit_on_64},
           {"CAGNET", "E5", "3D on 64: 1.38, 1.77, 1.39 times less than as shipped", "648, 13134, 14670 MB",
            split_in_3d},
           {"CAGNET", "E10", "gradients of a directed A", "wrong: A = A^T is assumed", directed_gradients},
           {"CAGNET", "E11", "weights do not depend on P, policy and training vertices", "they do",
            any_ranks},
           {"CAGNET", "E12", "sizes that q does not divide, P that is no square: exact, or refused at once",
            "hangs or index errors", uneven_sizes},
           {"CAGNET", "E15", "1.5D: the gradient is not c times too large", "c times too large", not_c_times},
           {"CAGNET", "E20",
            "crossovers of 1D, 1.5D, 2D, 3D by alpha-beta; 1.5D with c = sqrt P never behind 2D",
            "1.5D mostly best; 2D behind", crossovers},
           {"CAGNET", "E23", "steady products without allocation and synchronisation, 1.5 times as fast",
            "coo2csr, 2 mallocs, transposes",
            [] { return on_a_card("times of one GPU against CAGNET's sequence of calls"); }}})
    all.push_back(c);
  std::ranges::stable_sort(all, {},
                           [](const claim& c) { return std::stoi(std::string(c.number.substr(1))); });
  return all;
}

}  // namespace bench::claims

// SPDX-License-Identifier: Apache-2.0
// LeapGNN: rows and words of mini-batches, on planted graphs and in small runs.
#include "leapgnn.hpp"

#include <algorithm>

#include "claim.hpp"
#include "placement_counts.hpp"
#include "runs.hpp"

namespace bench::claims {

namespace {

using partita::row_1d;
using partita::sampling::placement;

int vertices_of_graphs = 200'000;

/// The order of the communities, and a random one; made once.
const placement_counts& planted_order() {
  planted how;
  how.vertices = vertices_of_graphs;
  static const placement_counts graph(how);
  return graph;
}
const placement_counts& random_order() {
  planted how;
  how.vertices = vertices_of_graphs;
  how.in_random_order = true;
  static const placement_counts graph(how);
  return graph;
}

double ratio(global_index a, global_index b) { return static_cast<double>(a) / static_cast<double>(b); }

/// Batches of 1024 roots, 2 hops.
struct counted_rows {
  const char* order;
  int ranks;
  placement_rows rows;
};
const std::vector<counted_rows>& two_hops() {
  static const std::vector<counted_rows> all = [] {
    struct order {
      const char* name;
      const placement_counts& graph;
      bool uneven;
    };
    std::vector<counted_rows> found;
    for (const order& o : {order{"planted", planted_order(), false},
                           {"uneven", planted_order(), true},
                           {"random", random_order(), false}})
      for (const int ranks : {2, 4, 8, 16})
        found.push_back({o.name, ranks, o.graph.rows({2, 1024, false, 10}, ranks, o.uneven)});
    return found;
  }();
  return all;
}

outcome random_batches_miss() {
  parts p;
  double off = 0;
  for (const auto& [order, ranks, r] : two_hops()) {
    const double expected = (ranks - 1.0) / ranks, missed = ratio(r.even.remote, r.even.needed);
    off = std::max(off, std::abs(missed - expected));
    p.require(std::abs(missed - expected) <= 0.01, text("%s, P = %d: %.4f", order, ranks, missed));
  }
  return p.result(text("within %.4f: three partitions, P = 2, 4, 8, 16", off));
}

outcome home_roots() {
  parts p;
  double least = 1e9, most = 0, worst = 0, cut = 0;
  for (const auto& [order, ranks, r] : two_hops()) {
    worst = std::max(worst, ratio(r.owner.remote, r.even.remote));
    if (std::string_view(order) != "planted") continue;
    least = std::min(least, ratio(r.even.remote, r.owner.remote));
    most = std::max(most, ratio(r.even.remote, r.owner.remote));
    cut = std::max(cut, r.cut);
  }
  p.require(worst <= 1.01, text("%.3f times the rows on some partition", worst));
  p.require(cut <= 0.15, text("the planted graph has a cut of %.3f", cut));
  p.require(least >= 2.9, text("only %.2f times fewer", least));
  return p.result(
      text("%.1f to %.1f times fewer with a cut up to %.2f; at most %.2f times as many on any partition",
           least, most, cut, worst));
}

outcome without_gathering() {
  parts p;
  std::string found;
  double least = 1e9, most = 0;
  for (const int ranks : {2, 4}) {
    const placement_rows r = planted_order().rows({3, 4096, true, 1}, ranks);
    const double apart = ratio(r.apart.remote, r.even.remote);
    least = std::min(least, apart), most = std::max(most, apart);
    found += text("%s%.1f times more on %d", found.empty() ? "" : ", ", apart, ranks);
    p.require(r.owner.remote <= r.even.remote, "together, owner receives more");
  }
  p.require(most >= 1.9 && least > 1, text("%.2f to %.2f times", least, most));
  return p.result(found + "; partita gathers once for all, and never receives more");
}

nn::training_options batches(placement how) {
  nn::training_options o;
  o.model = "sage", o.hidden = {6}, o.epochs = 3, o.seed = 7;
  o.mini_batch = {.batch = 9, .fanouts = {3, 2}, .placement = how, .sampled_scores = true};
  return o;
}

outcome weighted_gradients() {
  parts p;
  const io::dataset d = random_graph(61, 5, 13, 5);
  const auto serial = trained(d, batches(placement::even), row_1d, {1, 1, 1});
  double off = 0;
  for (const int ranks : {2, 3, 4}) {
    const auto found = trained(d, batches(placement::owner), row_1d, {ranks, 1, 1});
    for (std::size_t i = 0; i < serial.size(); ++i) off = std::max(off, std::abs(found[i] - serial[i]));
  }
  p.require(off < 1e-5, text("weights differ by %.1e", off));
  return p.result(text("weights after 3 epochs differ by %.0e, P = 2, 3, 4, unequal shares", off));
}

outcome words_of_the_model() {
  parts p;
  const io::dataset d = random_graph(61, 5, 13, 5);
  const auto weights =
      static_cast<global_index>(trained(d, batches(placement::even), row_1d, {1, 1, 1}).size());
  for (const int ranks : {2, 4})
    for (const placement how : {placement::even, placement::owner}) {
      nn::training_options o = batches(how);
      o.mini_batch.micro_batches = 3;
      const auto r = train(d, o, row_1d, {ranks, 1, 1});
      global_index sums = 0, others = 0;
      for (const auto& e : r.ledger)
        if (e.phase == "training")
          (e.kind == partita::operation::all_reduce ? sums : others) += e.received.words;
      p.equal(sums, r.mini_batch->iterations * 2 * (ranks - 1) * weights + 2 * (ranks - 1),
              text("P = %d", ranks));
      p.equal(others, 0, "words of anything else in a step");
    }
  return p.result("2 (P-1) |W| an iteration on P = 2 and 4, in the ledger, and nothing else of the model");
}

outcome input_frontier() {
  parts p;
  const row_counts two = planted_order().frontier(2, 1024), three = planted_order().frontier(3, 4096);
  const double less = ratio(two.of_layers, two.needed), more = ratio(three.of_layers, three.needed);
  p.near(less, 1.19, 0.05, "2 hops");
  p.near(more, 1.81, 0.1, "3 hops");
  return p.result(text("%.2f times fewer (2 hops), %.2f (3 hops, 4096 roots)", less, more));
}

outcome cheapest_placement() {
  parts p;
  int cells = 0, agree = 0;
  for (const int ranks : {2, 4, 8, 16}) {
    const choice_table table = planted_order().choices({10, 10}, ranks);
    for (const global_index f : feature_widths)
      for (const global_index d : hidden_widths) {
        ++cells;
        agree += table.column_wins(f, d) == table.rule_says_so(f, d, ranks);
      }
  }
  p.require(agree >= 0.9 * cells, text("the rule is right in %d of %d cells", agree, cells));
  for (const global_index f : {2, 600})  // the planner of a run
    for (const int ranks : {2, 4}) {
      const auto r = train(random_graph(61, 5, f, 5), batches(placement::automatic), row_1d, {ranks, 1, 1});
      const auto& all = r.mini_batch->candidates;
      const auto best = std::ranges::min_element(all, {}, &std::pair<placement, global_index>::second);
      p.require(all.size() > 1 && r.mini_batch->placement == best->first, "the least is not taken");
    }
  return p.result(
      text("the rule is right in %d of %d cells of (f, d, P); runs take the least", agree, cells));
}

outcome crowded_roots() {
  parts p;
  std::string found;
  double balanced = 0;
  for (const double times : {1.2, 2.0, 3.0}) {
    const skew_counts c = planted_order().skew(4, times);
    const double more = ratio(c.after.remote, c.before.remote) - 1;
    balanced = std::max(balanced, c.balanced);
    found += text("%s%+.0f %% rows at %.1f", found.empty() ? "" : ", ", 100 * more, times);
    p.require(more <= 0.1,
              text("%.0f %% more remote rows where part 0 has %.1f times the mean", 100 * more, times));
  }
  p.require(balanced <= 1.11, text("%.2f times the mean", balanced));
  return p.result(text("max/mean %.2f; ", balanced) + found);
}

}  // namespace

void set_vertices_of_leapgnn(int vertices) { vertices_of_graphs = vertices; }

std::vector<claim> of_leapgnn() {
  return {{"LeapGNN", "19", "random batches miss (P-1)/P of their rows, however vertices are cut", "0.01",
           random_batches_miss},
          {"LeapGNN", "20",
           "roots at their owners, gathered together: never more rows, far fewer with a good cut",
           "at most 1.01 times; at least 2.9 times fewer", home_roots},
          {"LeapGNN", "21", "without gathering together: more rows, 3 hops, 4096 roots a rank",
           "1.9 to 2.7 times more", without_gathering},
          {"LeapGNN", "22", "gradients of roots at their owners are those of the batch", "1e-5",
           weighted_gradients},
          {"LeapGNN", "23", "the model moves in one all-reduce", "(T-1) P |W| and T all-reduces",
           words_of_the_model},
          {"LeapGNN", "24", "only rows of the input frontier are fetched", "1.19 to 1.81 times fewer",
           input_frontier},
          {"LeapGNN", "25", "P3 wins if f n_0/n_1 > 2 P d; the least is taken", "a rule of thumb",
           cheapest_placement},
          {"LeapGNN", "26", "crowded roots: at most 1.1 of the mean for at most 10 % more rows",
           "max/min 2.0 to 3.3", crowded_roots,
           "with q times the mean on one part, (q - 1.1)/P of the batch must leave their owners, and each "
           "such root "
           "costs 25 to 52 "
           "rows: 10 % hold up to q = 1.2 on 4 ranks and 1.5 on 16"}};
}

}  // namespace bench::claims

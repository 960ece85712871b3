// SPDX-License-Identifier: Apache-2.0
// What bench/results/placements.md quotes.
#include <cstdio>
#include <string>

#include "placement_counts.hpp"
#include "tables.hpp"

namespace bench::claims {

namespace {

using partita::local_index;

constexpr int rank_counts[] = {2, 4, 8, 16};

double ratio(global_index a, global_index b) { return static_cast<double>(a) / static_cast<double>(b); }

void print_remote_rows(const placement_counts& g, const char* order, bool uneven, const batch_size& size) {
  for (const int ranks : rank_counts) {
    if (size.per_rank && size.roots * ranks > g.vertices() / 4) continue;
    const placement_rows all = g.rows(size, ranks, uneven);
    std::printf("| %d | %lld %s | %s | %d | %.3f | %.4f | %lld | %lld | %.2f | %.2f |\n", size.hops,
                static_cast<long long>(size.roots), size.per_rank ? "a rank" : "in all", order, ranks,
                all.cut, ratio(all.even.remote, all.even.needed),
                static_cast<long long>(all.even.remote / all.batches),
                static_cast<long long>(all.owner.remote / all.batches),
                ratio(all.even.remote, all.owner.remote), ratio(all.even.remote, all.apart.remote));
    std::fflush(stdout);
  }
}

void print_layers(const placement_counts& g) {
  std::printf(
      "\n## Rows of the input frontier against rows of all layers\n\n"
      "| hops | roots a rank | rows of the frontier | rows of all layers | factor "
      "|\n|---|---|---|---|---|\n");
  for (const auto& [hops, roots] : {std::pair{2, 1024}, {2, 4096}, {3, 1024}, {3, 4096}}) {
    const row_counts c = g.frontier(hops, roots);
    std::printf("| %d | %d | %lld | %lld | %.2f |\n", hops, roots, static_cast<long long>(c.needed),
                static_cast<long long>(c.of_layers), ratio(c.of_layers, c.needed));
  }
}

void print_skew(const placement_counts& g, const char* order, int ranks) {
  for (const double times : {1.0, 1.2, 1.5, 2.0, 3.0, 4.0}) {
    const skew_counts c = g.skew(ranks, times);
    std::printf("| %s | %d | %.1f | %.2f | %.2f | %lld | %lld | %lld | %+.1f %% | %.1f | %.2f | %.2f |\n",
                order, ranks, times, c.unbalanced, c.balanced, static_cast<long long>(c.moved),
                static_cast<long long>(c.before.remote), static_cast<long long>(c.after.remote),
                100 * (ratio(c.after.remote, c.before.remote) - 1),
                c.moved > 0 ? ratio(c.after.remote - c.before.remote, c.moved) : 0,
                ratio(c.after.most_remote * ranks, c.after.remote), ratio(c.after.remote, c.even.remote));
  }
}

void print_choices(const placement_counts& g, const std::vector<local_index>& fanouts) {
  std::printf("\nFan-outs %d, %d:\n\n| P | d | n_0/n_1 |", fanouts[0], fanouts[1]);
  for (const global_index f : feature_widths) std::printf(" f = %lld |", static_cast<long long>(f));
  std::printf("\n|---|---|---|---|---|---|---|---|\n");
  int cells = 0, agree = 0;
  for (const int ranks : rank_counts) {
    const choice_table table = g.choices(fanouts, ranks);
    for (const global_index d : hidden_widths) {
      std::printf("| %d | %lld | %.1f |", ranks, static_cast<long long>(d), table.inputs_per_target);
      for (const global_index f : feature_widths) {
        const auto best = table.least(f, d);
        const bool wins = table.column_wins(f, d), rule = table.rule_says_so(f, d, ranks);
        ++cells;
        agree += wins == rule;
        std::printf(" %s %.2f%s |", std::string(name_of(best.first)).c_str(),
                    ratio(best.second, table.words_under(partita::sampling::placement::even, f, d)),
                    wins == rule ? wins ? " +" : ""
                    : wins       ? " + (rule: -)"
                                 : " (rule: +)");
      }
      std::printf("\n");
    }
  }
  std::printf("\nThe rule and the closed forms agree in %d of %d cells.\n", agree, cells);
}

}  // namespace

void print_placements(int vertices) {
  planted how;
  how.vertices = vertices;
  const placement_counts planted_order(how);
  how.in_random_order = true;
  const placement_counts random_order(how);
  std::printf(
      "%d vertices, %lld communities, %zu entries, %.0f %% of the edges drawn without regard to "
      "communities\n\n"
      "## Remote rows\n\n"
      "| hops | roots | vertices | P | edge cut | missed by even | even | owner | even / owner | even / "
      "apart "
      "|\n|---|---|---|---|---|---|---|---|---|---|\n",
      vertices, static_cast<long long>(how.communities), planted_order.entries(), 100 * how.mixing);
  for (const batch_size& size :
       {batch_size{2, 1024, false, 10}, {2, 1024, true, 1}, {3, 4096, false, 1}, {3, 4096, true, 1}}) {
    print_remote_rows(planted_order, "planted", false, size);
    if (!size.per_rank) print_remote_rows(planted_order, "uneven", true, size);
    print_remote_rows(random_order, "random", false, size);
  }
  how.in_random_order = false;
  for (const auto& [mixing, order] : {std::pair{0.2, "planted, 20 %"}, {0.3, "planted, 30 %"}}) {
    how.mixing = mixing;
    print_remote_rows(placement_counts(how), order, false, {2, 1024, false, 10});
  }
  print_layers(planted_order);
  std::printf(
      "\n## Training vertices that crowd on one rank\n\n"
      "| vertices | P | part 0, times mean | roots, max/mean: unbalanced | balanced | roots moved | remote "
      "rows: "
      "unbalanced | balanced | more | a root moved | rows, max/mean | balanced / even "
      "|\n|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const int ranks : {4, 16}) {
    print_skew(planted_order, "planted", ranks);
    print_skew(random_order, "random", ranks);
  }
  std::printf("\n## Which placement receives least\n");
  for (const std::vector<local_index>& fanouts : {std::vector<local_index>{10, 10}, {25, 10}, {5, 5}})
    print_choices(planted_order, fanouts);
}

}  // namespace bench::claims

// SPDX-License-Identifier: Apache-2.0
#include "support/sampling_claims.hpp"

#include <cstdio>
#include <map>
#include <numeric>
#include <string>
#include <thread>

#include "partita/comm/self.hpp"
#include "partita/comm/threads.hpp"
#include "partita/sampling/neighbour_sampler.hpp"
#include "partita/train/batch_order.hpp"
#include "partita/train/batch_traffic.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/planted_graph.hpp"

namespace bench {

namespace {

using namespace partita;
using sampling::placement;
using sampling::root_lists;
using sampling::row_homes;
using float_graph = sampling::graph<float>;

constexpr int rank_counts[] = {2, 4, 8, 16};

float_graph graph_of(const planted& p) {
  const mesh<host> alone(self::world(), {1, 1, 1});
  return float_graph(
      distribute(alone, row_1d, {p.vertices, p.vertices}, planted_graph(p), symmetry::one_way));
}

/// Equal blocks of vertices, or one with half of them and equal shares of the rest.
row_homes homes(global_index n, int ranks, bool uneven = false) {
  std::vector<global_index> sizes;
  for (int r = 0; r < ranks; ++r)
    sizes.push_back(!uneven  ? comm::share_of(n, r, ranks).size()
                    : r == 0 ? n / 2
                             : comm::share_of(n - n / 2, r - 1, ranks - 1).size());
  return {blocking::given(sizes, {ranks, 1, 1}, nesting::rows), vertex_rows.rows, ranks};
}

double edge_cut(const float_graph& g, const row_homes& home) {
  global_index cut = 0;
  for (global_index v = 0; v < g.vertices(); ++v) {
    const sampling::graph_row row = g.row(v);
    for (std::size_t e = row.begin; e < row.begin + static_cast<std::size_t>(row.count); ++e)
      cut += home(v) != home(g.columns()[e]);
  }
  return static_cast<double>(cut) / static_cast<double>(g.columns().size());
}

sampling::neighbour_options options_of(const std::vector<local_index>& fanouts, int threads) {
  sampling::neighbour_options options{{fanouts.begin(), fanouts.end()}, 1};
  options.threads = threads;
  return options;
}

/// Rows of X that all ranks need of each other, and in all.
struct row_counts {
  global_index needed = 0, remote = 0, most_remote = 0;
  global_index of_layers = 0;  ///< vertices of all layers, roots included

  void operator+=(const row_counts& c) {
    needed += c.needed, remote += c.remote, of_layers += c.of_layers;
    most_remote = std::max(most_remote, c.remote);
  }
};

class row_counter {
 public:
  row_counter(const float_graph& g, const std::vector<local_index>& fanouts)
      : sampler_(g,
                 options_of(fanouts, static_cast<int>(std::max(1u, std::thread::hardware_concurrency())))) {}

  /// The roots of one rank.
  row_counts operator()(std::span<const global_index> roots, const row_homes& home, std::size_t rank) {
    sampler_(roots, 1, sample_);
    row_counts c;
    c.needed = std::ssize(sample_.vertices);
    for (const global_index v : sample_.vertices) c.remote += home(v) != rank;
    for (const auto& b : sample_.blocks) c.of_layers += b.cols;
    c.of_layers += std::ssize(roots);
    return c;
  }
  /// The roots of each rank.
  row_counts operator()(const root_lists& lists, const row_homes& home) {
    row_counts all;
    for (std::size_t r = 0; r < lists.size(); ++r) all += (*this)(lists[r], home, r);
    return all;
  }
  const float_graph& sampled() const { return sampler_.graph(); }

 private:
  sampling::neighbour_sampler<float> sampler_;
  sampling::sample<float> sample_;
};

/// The roots on the ranks that have their rows, whatever their number.
root_lists unbalanced_home_shares(std::span<const global_index> batch, const row_homes& home) {
  root_lists lists(static_cast<std::size_t>(home.ranks));
  for (const global_index v : batch) lists[home(v)].push_back(v);
  return lists;
}

/// The first batches of an epoch over these vertices.
std::vector<std::vector<global_index>> batches_of(const std::vector<global_index>& vertices,
                                                  global_index roots, std::size_t count) {
  nn::batch_order order(vertices, roots, 3);
  order.begin(1);
  std::vector<std::vector<global_index>> batches;
  for (std::size_t i = 0; i < std::min(count, order.iterations()); ++i)
    batches.emplace_back(order.batch(i).begin(), order.batch(i).end());
  return batches;
}

std::vector<global_index> all_vertices(global_index n) {
  std::vector<global_index> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), global_index{0});
  return all;
}

double ratio(global_index a, global_index b) { return static_cast<double>(a) / static_cast<double>(b); }

/// One batch under `any`, under `home`, and in micrographs whose rows are gathered one by one: those of the
/// roots that share r of the batch has at rank s, for every r and s.
struct comparison {
  row_counts any, home, apart;

  void add(row_counter& rows_of, std::span<const global_index> batch, const row_homes& home_of) {
    const root_lists shares = sampling::equal_shares(batch, home_of.ranks);
    any += rows_of(shares, home_of);
    home += rows_of(sampling::home_shares(rows_of.sampled(), batch, home_of), home_of);
    for (const auto& share : shares) apart += rows_of(unbalanced_home_shares(share, home_of), home_of);
  }
};

struct batch_size {
  int hops;
  global_index roots;
  bool per_rank;
  std::size_t batches;
};

void print_remote_rows(const float_graph& g, const char* order, bool uneven, const batch_size& size) {
  row_counter rows_of(g, std::vector<local_index>(static_cast<std::size_t>(size.hops), 10));
  for (const int ranks : rank_counts) {
    if (size.per_rank && size.roots * ranks > g.vertices() / 4) continue;
    const row_homes home = homes(g.vertices(), ranks, uneven);
    const auto batches =
        batches_of(all_vertices(g.vertices()), size.per_rank ? size.roots * ranks : size.roots, size.batches);
    comparison all;
    for (const auto& batch : batches) all.add(rows_of, batch, home);
    std::printf("| %d | %lld %s | %s | %d | %.3f | %.4f | %lld | %lld | %.2f | %.2f |\n", size.hops,
                static_cast<long long>(size.roots), size.per_rank ? "a rank" : "in all", order, ranks,
                edge_cut(g, home), ratio(all.any.remote, all.any.needed),
                static_cast<long long>(all.any.remote / std::ssize(batches)),
                static_cast<long long>(all.home.remote / std::ssize(batches)),
                ratio(all.any.remote, all.home.remote), ratio(all.any.remote, all.apart.remote));
    std::fflush(stdout);
  }
}

void print_layers(const float_graph& g) {
  std::printf(
      "\n## Rows of the input frontier against rows of all layers\n\n"
      "| hops | roots a rank | rows of the frontier | rows of all layers | factor "
      "|\n|---|---|---|---|---|\n");
  for (const auto& [hops, roots] : {std::pair{2, 1024}, {2, 4096}, {3, 1024}, {3, 4096}}) {
    row_counter rows_of(g, std::vector<local_index>(static_cast<std::size_t>(hops), 10));
    const row_counts c =
        rows_of(batches_of(all_vertices(g.vertices()), roots, 1)[0], homes(g.vertices(), 1), 0);
    std::printf("| %d | %d | %lld | %lld | %.2f |\n", hops, roots, static_cast<long long>(c.needed),
                static_cast<long long>(c.of_layers), ratio(c.of_layers, c.needed));
  }
}

/// Training vertices such that part 0 has `times` the mean number of them.
std::vector<global_index> skewed_vertices(const row_homes& home, double times) {
  const double others = (home.ranks - times) / (times * (home.ranks - 1));
  std::vector<global_index> chosen;
  for (global_index v = 0; v < home.rows.size(); ++v)
    if (base::random_uniform(random_key{.seed = 5}.word(), v, 0) < 0.2 * (home(v) == 0 ? 1 : others))
      chosen.push_back(v);
  return chosen;
}

std::size_t most_of(const root_lists& lists) {
  return std::ranges::max_element(lists, {}, [](const auto& l) { return l.size(); })->size();
}

void print_skew(const float_graph& g, const char* order, int ranks) {
  row_counter rows_of(g, {10, 10});
  const row_homes home = homes(g.vertices(), ranks);
  for (const double times : {1.0, 1.2, 1.5, 2.0, 3.0, 4.0}) {
    const auto batch = batches_of(skewed_vertices(home, times), 1024, 1)[0];
    const double mean = static_cast<double>(batch.size()) / ranks;
    const root_lists before = unbalanced_home_shares(batch, home),
                     after = sampling::home_shares(g, batch, home);
    const row_counts any = rows_of(sampling::equal_shares(batch, ranks), home), b = rows_of(before, home),
                     a = rows_of(after, home);
    global_index moved = 0;
    for (std::size_t r = 0; r < before.size(); ++r)
      moved += std::max<global_index>(0, std::ssize(before[r]) - std::ssize(after[r]));
    std::printf("| %s | %d | %.1f | %.2f | %.2f | %lld | %lld | %lld | %+.1f %% | %.1f | %.2f | %.2f |\n",
                order, ranks, times, static_cast<double>(most_of(before)) / mean,
                static_cast<double>(most_of(after)) / mean, static_cast<long long>(moved),
                static_cast<long long>(b.remote), static_cast<long long>(a.remote),
                100 * (ratio(a.remote, b.remote) - 1), moved > 0 ? ratio(a.remote - b.remote, moved) : 0,
                ratio(a.most_remote * ranks, a.remote), ratio(a.remote, any.remote));
  }
}

constexpr global_index feature_widths[] = {16, 64, 256, 1024, 4096}, hidden_widths[] = {16, 64, 256};

/// Words of the busiest rank by the closed forms, per number of features and hidden width.
using words_of =
    std::map<std::pair<global_index, global_index>, std::vector<std::pair<placement, global_index>>>;

struct choice_table {
  words_of words;
  double inputs_per_target = 0;  ///< n_0 / n_1 under `any`
};

choice_table choices(const float_graph& g, const std::vector<local_index>& fanouts, int ranks) {
  choice_table table;
  threads::run(ranks, [&](const communicator& world) {
    const row_homes home = homes(g.vertices(), ranks);
    const auto batches = batches_of(all_vertices(g.vertices()), 1024, 2);
    sampling::neighbour_sampler<float> sampler(g, options_of(fanouts, 1));
    std::vector<std::pair<placement, std::vector<sampling::sample<float>>>> samples;
    double sizes[] = {0, 0};
    for (const auto& batch : batches)
      for (const placement how : {placement::any, placement::home}) {
        const root_lists lists = how == placement::any ? sampling::equal_shares(batch, ranks)
                                                       : sampling::home_shares(g, batch, home);
        auto& [placed, parts] = samples.emplace_back(how, std::vector<sampling::sample<float>>(1));
        sampler(lists[static_cast<std::size_t>(world.rank())], 1, parts[0]);
        if (placed == placement::home) continue;
        sizes[0] += parts[0].blocks[0].cols;
        sizes[1] += parts[0].blocks[0].rows;
      }
    world.all_reduce(sizes);
    for (const global_index f : feature_widths)
      for (const global_index d : hidden_widths) {
        nn::batch_traffic cost(world.rank(), ranks, f, d, {1, true});
        for (const auto& [how, parts] : samples) cost.add(how, parts, home);
        auto words = cost.busiest_rank(world, std::ssize(batches));
        if (world.rank() == 0) table.words[{f, d}] = std::move(words);
      }
    if (world.rank() == 0) table.inputs_per_target = sizes[0] / sizes[1];
  });
  return table;
}

void print_choices(const float_graph& g, const std::vector<local_index>& fanouts) {
  std::printf("\nFan-outs %d, %d:\n\n| P | d | n_0/n_1 |", fanouts[0], fanouts[1]);
  for (const global_index f : feature_widths) std::printf(" f = %lld |", static_cast<long long>(f));
  std::printf("\n|---|---|---|---|---|---|---|---|\n");
  int cells = 0, agree = 0;
  for (const int ranks : rank_counts) {
    const choice_table table = choices(g, fanouts, ranks);
    for (const global_index d : hidden_widths) {
      std::printf("| %d | %lld | %.1f |", ranks, static_cast<long long>(d), table.inputs_per_target);
      for (const global_index f : feature_widths) {
        const auto& words = table.words.at({f, d});
        const auto of = [&](placement how) {
          return std::ranges::find(words, how, &std::pair<placement, global_index>::first)->second;
        };
        const auto best = std::ranges::min_element(words, {}, &std::pair<placement, global_index>::second);
        const bool wins = of(placement::column) < of(placement::any);
        const bool rule =
            static_cast<double>(f) * table.inputs_per_target > static_cast<double>(2 * ranks * d);
        ++cells;
        agree += wins == rule;
        std::printf(" %s %.2f%s |", std::string(name_of(best->first)).c_str(),
                    ratio(best->second, of(placement::any)),
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

void print_claims(int vertices) {
  planted how;
  how.vertices = vertices;
  const float_graph planted_order = graph_of(how);
  how.in_random_order = true;
  const float_graph random_order = graph_of(how);
  std::printf(
      "%d vertices, %lld communities, %zu entries, %.0f %% of the edges drawn without regard to "
      "communities\n\n"
      "## Remote rows\n\n"
      "| hops | roots | vertices | P | edge cut | missed by any | any | home | any / home | any / apart "
      "|\n|---|---|---|---|---|---|---|---|---|---|\n",
      vertices, static_cast<long long>(how.communities), planted_order.columns().size(), 100 * how.mixing);
  for (const batch_size& size :
       {batch_size{2, 1024, false, 10}, {2, 1024, true, 1}, {3, 4096, false, 1}, {3, 4096, true, 1}}) {
    print_remote_rows(planted_order, "planted", false, size);
    if (!size.per_rank) print_remote_rows(planted_order, "uneven", true, size);
    print_remote_rows(random_order, "random", false, size);
  }
  how.in_random_order = false;
  for (const auto& [mixing, order] : {std::pair{0.2, "planted, 20 %"}, {0.3, "planted, 30 %"}}) {
    how.mixing = mixing;
    print_remote_rows(graph_of(how), order, false, {2, 1024, false, 10});
  }
  print_layers(planted_order);
  std::printf(
      "\n## Training vertices that crowd on one rank\n\n"
      "| vertices | P | part 0, times mean | roots, max/mean: unbalanced | balanced | roots moved | remote "
      "rows: "
      "unbalanced | balanced | more | a root moved | rows, max/mean | balanced / any "
      "|\n|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const int ranks : {4, 16}) {
    print_skew(planted_order, "planted", ranks);
    print_skew(random_order, "random", ranks);
  }
  std::printf("\n## Which placement receives least\n");
  for (const std::vector<local_index>& fanouts : {std::vector<local_index>{10, 10}, {25, 10}, {5, 5}})
    print_choices(planted_order, fanouts);
}

}  // namespace bench

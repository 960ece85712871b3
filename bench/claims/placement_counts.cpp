// SPDX-License-Identifier: Apache-2.0
#include "placement_counts.hpp"

#include <algorithm>
#include <numeric>
#include <thread>

#include "partita/comm/self.hpp"
#include "partita/compiled/algebra.hpp"
#include "partita/sampling/neighbour_sampler.hpp"
#include "partita/train/batch_order.hpp"
#include "partita/train/batch_traffic.hpp"

namespace bench {

namespace {

using namespace partita;
using sampling::placement;
using sampling::root_lists;
using sampling::vertex_owners;
using sampled_graph = sampling::graph<double>;

sampled_graph graph_of(const planted& p) {
  const mesh<host> alone(self::world(), {1, 1, 1});
  std::vector<triplet<double>> list;
  for (const auto& e : planted_graph(p)) list.push_back({e.row, e.col, 1.0});
  return sampled_graph(distribute(alone, row_1d, {p.vertices, p.vertices}, list, symmetry::one_way));
}

/// Equal blocks of vertices, or one with half of them and equal shares of the rest.
vertex_owners owners(global_index n, int ranks, bool uneven = false) {
  std::vector<global_index> sizes;
  for (int r = 0; r < ranks; ++r)
    sizes.push_back(!uneven  ? comm::share_of(n, r, ranks).size()
                    : r == 0 ? n / 2
                             : comm::share_of(n - n / 2, r - 1, ranks - 1).size());
  return {blocking::given(sizes, {ranks, 1, 1}, nesting::rows), vertex_rows.rows, ranks};
}

double edge_cut(const sampled_graph& g, const vertex_owners& owner) {
  global_index cut = 0;
  for (global_index v = 0; v < g.vertices(); ++v) {
    const sampling::graph_row row = g.row(v);
    for (std::size_t e = row.begin; e < row.begin + static_cast<std::size_t>(row.count); ++e)
      cut += owner(v) != owner(g.columns()[e]);
  }
  return static_cast<double>(cut) / static_cast<double>(g.columns().size());
}

sampling::neighbour_options options_of(const std::vector<local_index>& fanouts, int threads) {
  sampling::neighbour_options options{{fanouts.begin(), fanouts.end()}, 1};
  options.threads = threads;
  return options;
}

class row_counter {
 public:
  row_counter(const sampled_graph& g, const std::vector<local_index>& fanouts)
      : sampler_(g,
                 options_of(fanouts, static_cast<int>(std::max(1u, std::thread::hardware_concurrency())))) {}

  /// The roots of one rank.
  row_counts operator()(std::span<const global_index> roots, const vertex_owners& owner, std::size_t rank) {
    sampler_(roots, 1, sample_);
    row_counts c;
    c.needed = std::ssize(sample_.vertices);
    for (const global_index v : sample_.vertices) c.remote += owner(v) != rank;
    for (const auto& b : sample_.blocks) c.of_layers += b.cols;
    c.of_layers += std::ssize(roots);
    return c;
  }
  /// The roots of each rank.
  row_counts operator()(const root_lists& lists, const vertex_owners& owner) {
    row_counts all;
    for (std::size_t r = 0; r < lists.size(); ++r) all += (*this)(lists[r], owner, r);
    return all;
  }
  const sampled_graph& sampled() const { return sampler_.graph(); }

 private:
  sampling::neighbour_sampler<double> sampler_;
  sampling::sample<double> sample_;
};

/// The roots on the ranks that have their rows, whatever their number.
root_lists unbalanced_owner_shares(std::span<const global_index> batch, const vertex_owners& owner) {
  root_lists lists(static_cast<std::size_t>(owner.ranks));
  for (const global_index v : batch) lists[owner(v)].push_back(v);
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

/// Training vertices such that part 0 has `times` the mean number of them.
std::vector<global_index> skewed_vertices(const vertex_owners& owner, double times) {
  const double others = (owner.ranks - times) / (times * (owner.ranks - 1));
  std::vector<global_index> chosen;
  for (global_index v = 0; v < owner.rows.size(); ++v)
    if (base::random_uniform(random_key{.seed = 5}.word(), v, 0) < 0.2 * (owner(v) == 0 ? 1 : others))
      chosen.push_back(v);
  return chosen;
}

std::size_t most_of(const root_lists& lists) {
  return std::ranges::max_element(lists, {}, [](const auto& l) { return l.size(); })->size();
}

}  // namespace

struct placement_counts::graph {
  sampled_graph sampled;
};

placement_counts::placement_counts(const planted& how) : graph_(new graph{graph_of(how)}) {}
placement_counts::~placement_counts() = default;

global_index placement_counts::vertices() const { return graph_->sampled.vertices(); }
std::size_t placement_counts::entries() const { return graph_->sampled.columns().size(); }

placement_rows placement_counts::rows(const batch_size& size, int ranks, bool uneven) const {
  row_counter rows_of(graph_->sampled, std::vector<local_index>(static_cast<std::size_t>(size.hops), 10));
  const vertex_owners owner = owners(vertices(), ranks, uneven);
  placement_rows all;
  all.cut = edge_cut(graph_->sampled, owner);
  for (const auto& batch :
       batches_of(all_vertices(vertices()), size.per_rank ? size.roots * ranks : size.roots, size.batches)) {
    const root_lists shares = sampling::equal_shares(batch, ranks);
    all.even += rows_of(shares, owner);
    all.owner += rows_of(sampling::owner_shares(rows_of.sampled(), batch, owner), owner);
    for (const auto& share : shares) all.apart += rows_of(unbalanced_owner_shares(share, owner), owner);
    ++all.batches;
  }
  return all;
}

row_counts placement_counts::frontier(int hops, global_index roots) const {
  row_counter rows_of(graph_->sampled, std::vector<local_index>(static_cast<std::size_t>(hops), 10));
  return rows_of(batches_of(all_vertices(vertices()), roots, 1)[0], owners(vertices(), 1), 0);
}

skew_counts placement_counts::skew(int ranks, double times) const {
  row_counter rows_of(graph_->sampled, {10, 10});
  const vertex_owners owner = owners(vertices(), ranks);
  const auto batch = batches_of(skewed_vertices(owner, times), 1024, 1)[0];
  const double mean = static_cast<double>(batch.size()) / ranks;
  const root_lists before = unbalanced_owner_shares(batch, owner),
                   after = sampling::owner_shares(graph_->sampled, batch, owner);
  skew_counts c;
  c.times = times;
  c.unbalanced = static_cast<double>(most_of(before)) / mean;
  c.balanced = static_cast<double>(most_of(after)) / mean;
  c.even = rows_of(sampling::equal_shares(batch, ranks), owner);
  c.before = rows_of(before, owner);
  c.after = rows_of(after, owner);
  for (std::size_t r = 0; r < before.size(); ++r)
    c.moved += std::max<global_index>(0, std::ssize(before[r]) - std::ssize(after[r]));
  return c;
}

choice_table placement_counts::choices(const std::vector<local_index>& fanouts, int ranks) const {
  const sampled_graph& g = graph_->sampled;
  choice_table table;
  threads::run(ranks, [&](const communicator& world) {
    const vertex_owners owner = owners(g.vertices(), ranks);
    const auto batches = batches_of(all_vertices(g.vertices()), 1024, 2);
    sampling::neighbour_sampler<double> sampler(g, options_of(fanouts, 1));
    std::vector<std::pair<placement, std::vector<sampling::sample<double>>>> samples;
    double sizes[] = {0, 0};
    for (const auto& batch : batches)
      for (const placement how : {placement::even, placement::owner}) {
        const root_lists lists = how == placement::even ? sampling::equal_shares(batch, ranks)
                                                        : sampling::owner_shares(g, batch, owner);
        auto& [placed, parts] = samples.emplace_back(how, std::vector<sampling::sample<double>>(1));
        sampler(lists[static_cast<std::size_t>(world.rank())], 1, parts[0]);
        if (placed == placement::owner) continue;
        sizes[0] += parts[0].blocks[0].cols;
        sizes[1] += parts[0].blocks[0].rows;
      }
    world.all_reduce(sizes);
    for (const global_index f : feature_widths)
      for (const global_index d : hidden_widths) {
        nn::batch_traffic cost(world.rank(), ranks, f, d, {1, true});
        for (const auto& [how, parts] : samples) cost.add(how, parts, owner);
        auto words = cost.busiest_rank(world, std::ssize(batches));
        if (world.rank() == 0) table.words[{f, d}] = std::move(words);
      }
    if (world.rank() == 0) table.inputs_per_target = sizes[0] / sizes[1];
  });
  return table;
}

global_index choice_table::words_under(placement how, global_index features, global_index hidden) const {
  return std::ranges::find(words.at({features, hidden}), how, &std::pair<placement, global_index>::first)
      ->second;
}

std::pair<placement, global_index> choice_table::least(global_index features, global_index hidden) const {
  return *std::ranges::min_element(words.at({features, hidden}), {},
                                   &std::pair<placement, global_index>::second);
}

bool choice_table::column_wins(global_index features, global_index hidden) const {
  return words_under(placement::column, features, hidden) < words_under(placement::even, features, hidden);
}

bool choice_table::rule_says_so(global_index features, global_index hidden, int ranks) const {
  return static_cast<double>(features) * inputs_per_target > static_cast<double>(2 * ranks * hidden);
}

}  // namespace bench

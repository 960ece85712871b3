// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What GNNPipe's authors measured: arXiv 2308.10087, and the logs of their system. On 8 RTX A5000, 4 in a
/// node, with 32 layers, f32, 4 chunks per GPU; their GB are 2^30 bytes.

#include <array>
#include <cmath>
#include <string_view>

#include "pipeline_words.hpp"

namespace bench::gnnpipe {

using partita::global_index;

inline constexpr int layers = 32, gpus = 8, hybrid_stages = 4, hybrid_ways = 2;
inline constexpr double gigabyte = 1 << 30;

struct graph {
  std::string_view name;
  global_index vertices, features, classes, hidden;
  global_index mirrors;  ///< of their partition over 8 GPUs
};
inline constexpr graph squirrel{"squirrel", 5'201, 2'089, 5, 1'000, 11'547},
    flickr{"flickr", 89'250, 500, 7, 100, 192'232}, reddit{"reddit", 232'965, 602, 41, 100, 607'420},
    physics{"physics", 34'493, 8'415, 5, 100, 34'236};

enum class model { gcn, sage, gcnii, resgcn };
constexpr std::string_view name_of(model m) {
  constexpr std::string_view names[] = {"GCN", "SAGE", "GCNII", "ResGCN+"};
  return names[static_cast<std::size_t>(m)];
}

/// One of three values each: the graph cut over 8 GPUs, 8 stages, 4 stages of 2 ways.
struct row {
  gnnpipe::graph graph;
  gnnpipe::model model;
  double seconds[3];    ///< of an epoch
  double gigabytes[3];  ///< received in an epoch, over all GPUs
  double waiting[2];    ///< seconds of communication in an epoch, of the first two
};
inline constexpr std::array<row, 16> rows{{
    {squirrel, model::gcn, {.190, .081, .111}, {4.43, .27, 1.38}, {.114, .0075}},
    {squirrel, model::sage, {.268, .147, .191}, {6.10, .27, 1.61}, {.123, .0078}},
    {squirrel, model::gcnii, {.198, .108, .140}, {4.53, .54, 1.51}, {.113, .0120}},
    {squirrel, model::resgcn, {.269, .187, .241}, {6.20, .27, 1.63}, {.115, .0080}},
    {flickr, model::gcn, {.156, .064, .090}, {4.60, .47, 2.00}, {.124, .0081}},
    {flickr, model::sage, {.173, .104, .126}, {4.62, .47, 2.00}, {.124, .0096}},
    {flickr, model::gcnii, {.166, .095, .116}, {4.60, .93, 2.19}, {.124, .0148}},
    {flickr, model::resgcn, {.186, .162, .187}, {4.62, .47, 2.00}, {.124, .0111}},
    {reddit, model::gcn, {.874, .357, .392}, {14.50, 1.22, 5.87}, {.634, .0257}},
    {reddit, model::sage, {1.082, .533, .568}, {14.52, 1.22, 5.87}, {.714, .0262}},
    {reddit, model::gcnii, {.902, .415, .449}, {14.50, 2.43, 6.39}, {.636, .0421}},
    {reddit, model::resgcn, {.934, .509, .546}, {14.52, 1.22, 5.87}, {.638, .0264}},
    {physics, model::gcn, {.053, .066, .077}, {.88, .18, .62}, {.036, .0060}},
    {physics, model::sage, {.069, .132, .125}, {.94, .18, .63}, {.037, .0061}},
    {physics, model::gcnii, {.060, .108, .105}, {.88, .36, .70}, {.037, .0109}},
    {physics, model::resgcn, {.080, .141, .153}, {.89, .18, .62}, {.037, .0062}},
}};
/// Seconds of an epoch of GCN over so many stages. Strong: reddit, 32 layers; weak: 8 layers for each GPU.
struct scaling {
  int gpus;
  double seconds;
};
inline constexpr scaling strong[] = {{1, 1.922}, {2, 1.107}, {4, .598}, {8, .352}, {16, .256}},
                         weak_reddit[] = {{1, .474}, {16, .779}}, weak_flickr[] = {{1, .037}, {16, .207}};
inline constexpr int weak_layers = 8, chunks_per_gpu = 4, gpus_per_node = 4;
/// Of the epoch of GCN on reddit over 8 stages: seconds of work, and the share of imbalance.
inline constexpr double work_of_8 = .238, imbalance_of_8 = .055;
/// Bytes per second of messages between layers, the least of the rates that they report for a GPU.
inline constexpr double slowest_link = 35e9 / 8;
/// RTX A5000, f32, by its vendor's data sheet.
inline constexpr double peak_flops = 27.8e12;

inline constexpr double most_volume_ratio = 22.89, mean_volume_ratio = 8.69, claimed_mean_speed_up = 1.58;

/// |W|. GCN: f x H, 30 times H x H, H x C; SAGE: each of these twice; GCNII: f x H, 32 times H x H, H x C;
/// ResGCN+: f x H, 32 times two of H x H and the scales and shifts of a layer norm, H x C.
constexpr global_index parameters(const graph& g, model m) {
  const global_index h = g.hidden, ends = h * (g.features + g.classes);
  switch (m) {
    case model::gcn:
      return ends + (layers - 2) * h * h;
    case model::sage:
      return 2 * (ends + (layers - 2) * h * h);
    case model::gcnii:
      return ends + layers * h * h;
    case model::resgcn:
      return ends + layers * 2 * (h * h + h);
  }
  return 0;
}

constexpr bench::layered_network network(const row& r) {
  return {r.graph.vertices, r.graph.hidden, layers, parameters(r.graph, r.model), r.model == model::gcnii};
}

/// Gigabytes of so many words of f32.
constexpr double gigabytes(global_index words) {
  return static_cast<double>(bench::bytes_of<float>(words)) / gigabyte;
}

/// M of the partition over 2 ways, which is not published: from the volume of GCN's hybrid on that graph.
inline global_index mirrors_of_hybrid(const graph& g) {
  for (const row& r : rows)
    if (r.graph.name == g.name && r.model == model::gcn) {
      const auto words = std::llround(r.gigabytes[2] * gigabyte / sizeof(float));
      const bench::layered_network net = network(r);
      return (words - bench::hybrid_words(net, hybrid_stages, hybrid_ways, 0)) / (2 * net.layers * net.width);
    }
  return 0;
}

/// The n-th root of the product of value(row) over the rows.
template <class Value>
double root_of_product(Value value, double n = rows.size()) {
  double sum = 0;
  for (const row& r : rows) sum += std::log(value(r));
  return std::exp(sum / n);
}

/// How many times sooner 8 stages finish an epoch than the graph over 8 GPUs.
constexpr double speed_up(const row& r) { return r.seconds[0] / r.seconds[1]; }

/// How many times less they receive, by the closed forms.
inline double volume_ratio(const row& r) {
  const bench::layered_network net = network(r);
  return static_cast<double>(bench::graph_parallel_words(net, gpus, r.graph.mirrors)) /
         static_cast<double>(bench::pipeline_words(net, gpus));
}

}  // namespace bench::gnnpipe

// SPDX-License-Identifier: Apache-2.0
#include "fuzz/text.hpp"

#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

#include "partita/io/csv.hpp"
#include "partita/io/graph_text.hpp"
#include "partita/io/matrix_market.hpp"
#include "partita/io/metis_graph.hpp"

namespace fuzz {

namespace io = partita::io;

namespace {

/// Of values, among them those that are not equal to themselves.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && text_of(std::as_bytes(std::span(a))) == text_of(std::as_bytes(std::span(b)));
}

template <class T>
void read_csv(input bytes, io::table_form form = io::table_form::commas) {
  read_by_threads(
      bytes,
      [&](int threads) { return io::parse_csv<T>(io::text_source(text_of(bytes), "input"), threads, form); },
      [](const auto& a, const auto& b) {
        return a.rows == b.rows && a.cols == b.cols && same_bits(a.values, b.values);
      });
}

template <class T>
void read_market(input bytes) {
  read_by_threads(
      bytes, [&](int threads) { return io::parse_matrix_market<T>(text_of(bytes), "input", threads); },
      [](const auto& a, const auto& b) { return a.shape == b.shape && same_bits(a.entries, b.entries); });
}

}  // namespace

void csv(input bytes) {
  read_csv<double>(bytes);
  read_csv<double>(bytes, io::table_form::edge_list);
  read_csv<std::int64_t>(bytes);
}

void matrix_market(input bytes) {
  read_market<double>(bytes);
  read_market<std::int64_t>(bytes);
}

void edge_list(input bytes) {
  read_by_threads(
      bytes, [&](int threads) { return io::parse_edge_list(text_of(bytes), "input", threads); },
      [](const auto& a, const auto& b) {
        return same_bits(a.edges, b.edges) && a.ids == b.ids && same_bits(a.weights, b.weights);
      });
}

void metis_graph(input bytes) {
  read_by_threads(
      bytes, [&](int threads) { return io::parse_metis_graph(text_of(bytes), "input", threads); },
      [](const auto& a, const auto& b) {
        return a.offsets == b.offsets && a.neighbours == b.neighbours && a.edge_weights == b.edge_weights &&
               a.vertex_weights == b.vertex_weights && a.vertex_sizes == b.vertex_sizes;
      });
}

}  // namespace fuzz

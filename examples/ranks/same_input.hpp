// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Whether the processes of a job were given the same options and the same data.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "partita/comm/communicator.hpp"
#include "partita/io/dataset_type.hpp"
#include "partita/io/fnv1a.hpp"

/// What has to be the same on all ranks, under its name.
class same_input {
 public:
  void add(std::string name, std::span<const std::byte> bytes) {
    partita::io::fnv1a_64 sum;
    sum.add(bytes);
    hashes_.push_back(static_cast<partita::global_index>(std::stoull(sum.text(), nullptr, 16)));
    names_.push_back(std::move(name));
  }
  void add(std::string name, const std::string& text) {
    add(std::move(name), std::as_bytes(std::span(text)));
  }

  /// The sizes, and of each array up to 2^16 bytes in 256 pieces at equal distances, the first and the last
  /// bytes among them.
  void add(const partita::io::dataset& data) {
    add("number of vertices", std::to_string(data.vertices));
    add("number of features", std::to_string(data.features));
    add("number of classes", std::to_string(data.classes));
    add("number of edges", std::to_string(data.edges.size()));
    add_sample("edges", std::as_bytes(std::span(data.edges.data(), data.edges.size())));
    add_sample("weights of edges",
               std::as_bytes(std::span(data.edge_weights.data(), data.edge_weights.size())));
    add_sample("labels", std::as_bytes(std::span(data.labels.data(), data.labels.size())));
    add_sample("labels", std::as_bytes(std::span(data.label_matrix.data(), data.label_matrix.size())));
    add_sample("labels", std::as_bytes(std::span(data.values.data(), data.values.size())));
    add_sample("split", std::as_bytes(std::span(data.split.data(), data.split.size())));
    for (const auto* const links : {&data.validation_links, &data.test_links})
      add_sample("links", std::as_bytes(std::span(links->data(), links->size())));
    for (const partita::io::link_negatives& negatives : data.negatives)
      add_sample("negatives", std::as_bytes(std::span(negatives.vertices.data(), negatives.vertices.size())));
    std::vector<double> features;
    for (partita::global_index k = 0; data.vertex_features.rows > 0 && k < pieces; ++k)
      data.vertex_features.for_row(k * (data.vertex_features.rows - 1) / (pieces - 1),
                                   [&](partita::global_index feature, auto value) {
                                     features.push_back(static_cast<double>(feature));
                                     features.push_back(static_cast<double>(value));
                                   });
    add("features", std::as_bytes(std::span(features)));
  }

  /// Throws input_error, on every rank, that names what differs, and the first rank that has another. Every
  /// rank must call.
  void require(const partita::communicator& world) const {
    partita::io::fnv1a_64 sum;
    for (const std::string& name : names_) sum.add(std::as_bytes(std::span(name)));
    same_input names;
    names.names_ = {"options"};
    names.hashes_ = {static_cast<partita::global_index>(std::stoull(sum.text(), nullptr, 16))};
    if (names_.size() > 1) names.require(world);
    const std::vector<partita::global_index> all = world.all_gather(hashes_);
    for (std::size_t k = 0; k < all.size(); ++k)
      if (const std::size_t what = k % hashes_.size(); all[k] != all[what])
        partita::base::throw_error<partita::input_error>({"the processes of the job differ in their ",
                                                          names_[what], ": rank ", k / hashes_.size(),
                                                          "'s differ from those of rank 0"});
  }

 private:
  static constexpr partita::global_index pieces = 256;

  void add_sample(std::string name, std::span<const std::byte> bytes) {
    constexpr std::size_t piece = 256;
    std::vector<std::byte> sample;
    if (bytes.size() <= pieces * piece) return add(std::move(name), bytes);
    for (std::size_t k = 0; k < pieces; ++k) {
      const auto part = bytes.subspan(k * ((bytes.size() - piece) / (pieces - 1)), piece);
      sample.insert(sample.end(), part.begin(), part.end());
    }
    const auto end = bytes.last(piece);
    sample.insert(sample.end(), end.begin(), end.end());
    add(std::move(name), sample);
  }

  std::vector<std::string> names_;
  std::vector<partita::global_index> hashes_;
};

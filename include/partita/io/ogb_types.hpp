// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Reads OGB's node-property folders of several types of vertices, piece by piece. Needs zlib.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "partita/io/csv.hpp"
#include "partita/io/dataset_type.hpp"
#include "partita/io/gzip.hpp"
#include "partita/io/ogb.hpp"

namespace partita::io {

/// An OGB folder of several types of vertices: raw/num-node-dict.csv.gz (their names, and the number of
/// vertices of each), raw/triplet-type-list.csv.gz (source, relation and target), and for each relation and
/// each type a folder of the files that load_ogb reads: raw/relations/SOURCE___RELATION___TARGET,
/// raw/node-feat/TYPE, raw/node-label/TYPE and, in the only folder of split/, TYPE. Local. Each member
/// function reads its files when called and throws input_error as load_ogb does.
class ogb_types {
 public:
  struct type {
    std::string name;
    global_index vertices = 0;
  };
  struct relation {
    std::size_t source = 0, target = 0;  ///< of types()
    std::string name;
  };

  explicit ogb_types(std::filesystem::path dir, int threads = 1, std::optional<std::size_t> unpack_limit = {})
      : dir_(std::move(dir)), threads_(threads), unpack_limit_(unpack_limit) {
    read_types();
    read_relations();
  }

  static bool are_in(const std::filesystem::path& dir) {
    return std::filesystem::exists(dir / "raw/num-node-dict.csv.gz");
  }

  const std::vector<type>& types() const { return types_; }
  const std::vector<relation>& relations() const { return relations_; }

  /// The vertices of a type, with its features, labels and split, if any, and without edges.
  dataset vertices(const type& of) const { return reader().read_type(of.name, of.vertices); }
  /// The edges of a relation, with vertex numbers within their types.
  array<edge> edges(const relation& of) const {
    return reader().edges(folder_of(of), types_[of.source].vertices, types_[of.target].vertices);
  }
  /// The features of its `count` edges; 0 x 0 if they have none.
  feature_table edge_features(const relation& of, global_index count) const {
    return reader().edge_features(folder_of(of), count);
  }

 private:
  std::string folder_of(const relation& of) const {
    return "raw/relations/" + types_[of.source].name + "___" + of.name + "___" + types_[of.target].name + '/';
  }

  detail::ogb_reader reader() const { return {dir_, threads_, unpack_limit_}; }

  /// The words of each line, which commas separate.
  static std::vector<std::vector<std::string>> words_of(const std::string& text) {
    std::vector<std::vector<std::string>> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
      if (line.ends_with('\r')) line.pop_back();
      if (line.empty()) continue;
      std::istringstream words(line);
      std::vector<std::string>& found = lines.emplace_back();
      for (std::string word; std::getline(words, word, ',');) found.push_back(std::move(word));
    }
    return lines;
  }

  /// Throws input_error for a word that cannot be the name of a folder, or part of one.
  static void require_name(const std::string& word, const std::string& file, std::size_t row) {
    if (word.empty() || word.starts_with('.') || word.find('/') != word.npos)
      detail::fail(file, "row " + std::to_string(row) + " has " + detail::quoted(word) +
                             ", which cannot be the name of a folder");
  }

  void read_types() {
    const std::string name = reader().file("raw/num-node-dict.csv.gz"), text = read_gzip(name, unpack_limit_);
    const auto lines = words_of(text);
    const auto counts = parse_csv<std::int64_t>(text, name);
    if (lines.size() != 2 || counts.rows != 1 || lines.front().size() != counts.values.size())
      detail::fail(name, "expected a line of types of vertices, and one of how many there are of each");
    for (std::size_t t = 0; t < counts.values.size(); ++t) {
      require_name(lines.front()[t], name, 0);
      if (counts.values[t] <= 0)
        detail::fail(name, "there are " + std::to_string(counts.values[t]) + " vertices of the type " +
                               lines.front()[t]);
      types_.push_back({lines.front()[t], counts.values[t]});
    }
  }

  std::size_t type_named(const std::string& word, const std::string& file, std::size_t row) const {
    const auto found = std::ranges::find(types_, word, &type::name);
    if (found == types_.end())
      detail::fail(file, "row " + std::to_string(row) + " has " + detail::quoted(word) +
                             ", which is no type of vertices in num-node-dict.csv.gz");
    return static_cast<std::size_t>(found - types_.begin());
  }

  void read_relations() {
    const std::string name = reader().file("raw/triplet-type-list.csv.gz");
    for (const std::vector<std::string>& words : words_of(read_gzip(name, unpack_limit_))) {
      const std::size_t row = relations_.size();
      if (words.size() != 3)
        detail::fail(name, "row " + std::to_string(row) + " has " + std::to_string(words.size()) +
                               " words, expected source, relation and target");
      require_name(words[1], name, row);
      relations_.push_back({type_named(words[0], name, row), type_named(words[2], name, row), words[1]});
    }
    if (relations_.empty()) detail::fail(name, "has no relation");
  }

  std::filesystem::path dir_;
  int threads_;
  std::optional<std::size_t> unpack_limit_;
  std::vector<type> types_;
  std::vector<relation> relations_;
};

}  // namespace partita::io

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Questions about vertices of a cut graph, asked of the ranks that have their rows.

#include <span>
#include <utility>
#include <vector>

#include "partita/sampling/graph.hpp"
#include "partita/transfer/row_lists.hpp"

namespace partita::sampling {

/// Entries with global columns, row by row; their vectors, where the graph has some.
template <class T>
struct entry_rows {
  std::vector<local_index> counts;   ///< (rows)
  std::vector<local_index> columns;  ///< (sum of counts)
  std::vector<T> values;             ///< (sum of counts)
  std::vector<T> vectors = {};       ///< (sum of counts x width)

  void clear() {
    counts.clear();
    columns.clear();
    values.clear();
    vectors.clear();
  }
  void append(const entry_rows& other) {
    counts.insert(counts.end(), other.counts.begin(), other.counts.end());
    columns.insert(columns.end(), other.columns.begin(), other.columns.end());
    values.insert(values.end(), other.values.begin(), other.values.end());
    vectors.insert(vectors.end(), other.vectors.begin(), other.vectors.end());
  }
};

/// One exchange: ask() sends every question to the rank that has the row it is about, answer() returns the
/// answers in the order of the questions. Collective over the graph's ranks. What travels to a rank: one
/// count from every other rank, and the questions that it is asked by others; then the answers to what it
/// asked others.
template <class T>
class requests {
 public:
  explicit requests(const graph<T>& g) : graph_(g) {}

  /// Questions of `width` words each, the first of which is the vertex.
  void ask(std::span<const global_index> questions, std::size_t width = 1) {
    sort(questions, width);
    words_.received = transfer::elements_of(asked_, static_cast<global_index>(width));
    words_.exchange(graph_.ranks(), packed_);
    asks_ = words_.sent;
    for (global_index& n : asks_) n /= static_cast<global_index>(width);
  }
  void tell(std::span<const global_index> vertices) {
    const communicator& ranks = graph_.ranks();
    sort(vertices, 1);
    ones_.assign(asked_.size(), 1);
    told_counts_.resize(asked_.size());
    const auto count = static_cast<global_index>(vertices.size());
    ranks.all_gather(std::span<const global_index>(&count, 1), ones_, told_counts_);
    told_.resize(comm::total_of(told_counts_));
    ranks.all_gather(vertices, told_counts_, told_);
    asks_.resize(asked_.size());
    std::vector<global_index>& mine = words_.rows;
    mine.clear();
    for (std::size_t q = 0; q < asks_.size(); ++q) {
      const std::size_t before = mine.size();
      for (const global_index v : told(q))
        if (graph_.row_range().contains(v)) mine.push_back(v);
      asks_[q] = static_cast<global_index>(mine.size() - before);
    }
  }

  /// What this rank was asked, rank by rank, and that by rank q alone, in single words.
  std::span<const global_index> questions() const { return words_.rows; }
  std::span<const global_index> questions(std::size_t q) const { return block(words_.rows, asks_, q); }
  /// All vertices that rank q told.
  std::span<const global_index> told(std::size_t q) const { return block(told_, told_counts_, q); }

  /// One element for each of questions().
  template <class Answer>
  void answer(const std::vector<Answer>& given, std::vector<Answer>& answers,
              std::vector<Answer>& buffer) const {
    buffer.resize(places_.size());
    graph_.ranks().all_to_all(given, asks_, buffer, asked_);
    answers.resize(places_.size());
    for (std::size_t i = 0; i < places_.size(); ++i) answers[i] = buffer[places_[i]];
  }
  /// A row of entries, or one for each relation, for each of questions().
  void answer(const entry_rows<T>& given, entry_rows<T>& answers) {
    const communicator& ranks = graph_.ranks();
    const auto relations = static_cast<std::size_t>(graph_.relations()),
               width = static_cast<std::size_t>(graph_.width());
    const auto times = [](std::vector<global_index> counts, std::size_t factor) {
      for (global_index& n : counts) n *= static_cast<global_index>(factor);
      return counts;
    };
    entry_rows<T>& all = packed_rows_;
    all.counts.resize(places_.size() * relations);
    ranks.all_to_all(given.counts, times(asks_, relations), all.counts, times(asked_, relations));
    sum(given.counts, times(asks_, relations), sent_);
    sum(all.counts, times(asked_, relations), received_);
    all.columns.resize(comm::total_of(received_));
    all.values.resize(all.columns.size());
    all.vectors.resize(all.columns.size() * width);
    ranks.all_to_all(given.columns, sent_, all.columns, received_);
    ranks.all_to_all(given.values, sent_, all.values, received_);
    if (width > 0) ranks.all_to_all(given.vectors, times(sent_, width), all.vectors, times(received_, width));

    begins_.resize(all.counts.size() + 1);
    begins_[0] = 0;
    for (std::size_t i = 0; i < all.counts.size(); ++i)
      begins_[i + 1] = begins_[i] + static_cast<std::size_t>(all.counts[i]);
    answers.clear();
    const auto append = [](auto& to, const auto& from, std::size_t begin, std::size_t end) {
      to.insert(to.end(), from.data() + begin, from.data() + end);
    };
    for (const std::size_t place : places_) {
      const std::size_t first = place * relations, begin = begins_[first], end = begins_[first + relations];
      append(answers.counts, all.counts, first, first + relations);
      append(answers.columns, all.columns, begin, end);
      append(answers.values, all.values, begin, end);
      append(answers.vectors, all.vectors, begin * width, end * width);
    }
  }

 private:
  /// Packs the questions by owner.
  void sort(std::span<const global_index> questions, std::size_t width) {
    const std::size_t count = questions.size() / width;
    owners_.resize(count);
    asked_.assign(static_cast<std::size_t>(graph_.ranks().size()), 0);
    for (std::size_t i = 0; i < count; ++i) {
      owners_[i] = graph_.owner(questions[i * width]);
      ++asked_[owners_[i]];
    }
    next_.resize(asked_.size());
    std::size_t begin = 0;
    for (std::size_t q = 0; q < asked_.size(); ++q)
      next_[q] = std::exchange(begin, begin + static_cast<std::size_t>(asked_[q]));
    places_.resize(count);
    packed_.resize(questions.size());
    for (std::size_t i = 0; i < count; ++i) {
      places_[i] = next_[owners_[i]]++;
      for (std::size_t k = 0; k < width; ++k) packed_[places_[i] * width + k] = questions[i * width + k];
    }
  }
  static std::span<const global_index> block(const std::vector<global_index>& all,
                                             const std::vector<global_index>& counts, std::size_t q) {
    return std::span(all).subspan(static_cast<std::size_t>(comm::offset_of(counts, static_cast<int>(q))),
                                  static_cast<std::size_t>(counts[q]));
  }
  /// sums[q] = the sum of the next of[q] lengths.
  static void sum(const std::vector<local_index>& lengths, const std::vector<global_index>& of,
                  std::vector<global_index>& sums) {
    sums.assign(of.size(), 0);
    std::size_t i = 0;
    for (std::size_t q = 0; q < of.size(); ++q)
      for (global_index k = 0; k < of[q]; ++k) sums[q] += lengths[i++];
  }

  graph<T> graph_;
  std::vector<std::size_t> owners_, next_, places_, begins_;  ///< places_[i]: of question i among those sent
  std::vector<global_index> asked_, asks_;                    ///< questions to and from each rank
  transfer::row_lists<global_index> words_;                   ///< of the questions
  std::vector<global_index> sent_, received_, ones_, packed_, told_, told_counts_;
  entry_rows<T> packed_rows_;
};

}  // namespace partita::sampling

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Questions about vertices of a cut graph, asked of the ranks that have their rows.

#include <span>
#include <vector>

#include "partita/sampling/graph.hpp"

namespace partita::sampling {

/// Entries with global columns, row by row.
template <class T>
struct entry_rows {
  std::vector<local_index> counts;   ///< (rows)
  std::vector<local_index> columns;  ///< (sum of counts)
  std::vector<T> values;             ///< (sum of counts)

  void clear() {
    counts.clear();
    columns.clear();
    values.clear();
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
    const communicator& ranks = graph_.ranks();
    const auto size = static_cast<std::size_t>(ranks.size());
    const std::size_t count = questions.size() / width;
    owners_.resize(count);
    asked_.assign(size, 0);
    for (std::size_t i = 0; i < count; ++i) {
      owners_[i] = graph_.owner(questions[i * width]);
      ++asked_[owners_[i]];
    }
    order(asked_, next_);
    places_.resize(count);
    packed_.resize(questions.size());
    for (std::size_t i = 0; i < count; ++i) {
      places_[i] = static_cast<std::size_t>(next_[owners_[i]]++);
      for (std::size_t k = 0; k < width; ++k) packed_[places_[i] * width + k] = questions[i * width + k];
    }
    ones_.assign(size, 1);
    asks_.resize(size);
    ranks.all_to_all(asked_, ones_, asks_, ones_);
    const auto words = static_cast<global_index>(width);
    scale(asked_, words, sent_);
    scale(asks_, words, received_);
    questions_.resize(comm::total_of(received_));
    ranks.all_to_all(packed_, sent_, questions_, received_);
  }
  /// What this rank was asked, rank by rank.
  std::span<const global_index> questions() const { return questions_; }

  /// One element for each of questions().
  template <class Answer>
  void answer(const std::vector<Answer>& given, std::vector<Answer>& answers,
              std::vector<Answer>& buffer) const {
    buffer.resize(places_.size());
    graph_.ranks().all_to_all(given, asks_, buffer, asked_);
    answers.resize(places_.size());
    for (std::size_t i = 0; i < places_.size(); ++i) answers[i] = buffer[places_[i]];
  }
  /// A row of entries for each of questions().
  void answer(const entry_rows<T>& given, entry_rows<T>& answers) {
    const communicator& ranks = graph_.ranks();
    answer(given.counts, answers.counts, packed_rows_.counts);
    sum(given.counts, asks_, sent_);
    sum(packed_rows_.counts, asked_, received_);
    packed_rows_.columns.resize(comm::total_of(received_));
    packed_rows_.values.resize(packed_rows_.columns.size());
    ranks.all_to_all(given.columns, sent_, packed_rows_.columns, received_);
    ranks.all_to_all(given.values, sent_, packed_rows_.values, received_);

    begins_.resize(places_.size() + 1);
    begins_[0] = 0;
    for (std::size_t i = 0; i < places_.size(); ++i)
      begins_[i + 1] = begins_[i] + static_cast<std::size_t>(packed_rows_.counts[i]);
    answers.columns.clear();
    answers.values.clear();
    for (const std::size_t place : places_)
      for (std::size_t e = begins_[place]; e < begins_[place + 1]; ++e) {
        answers.columns.push_back(packed_rows_.columns[e]);
        answers.values.push_back(packed_rows_.values[e]);
      }
  }

 private:
  /// begins[q] = the sum of counts before q.
  static void order(const std::vector<global_index>& counts, std::vector<global_index>& begins) {
    begins.resize(counts.size());
    global_index begin = 0;
    for (std::size_t q = 0; q < counts.size(); ++q) {
      begins[q] = begin;
      begin += counts[q];
    }
  }
  static void scale(const std::vector<global_index>& counts, global_index by, std::vector<global_index>& to) {
    to.resize(counts.size());
    for (std::size_t q = 0; q < counts.size(); ++q) to[q] = counts[q] * by;
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
  std::vector<std::size_t> owners_, places_, begins_;  ///< places_[i]: of question i among those sent
  std::vector<global_index> asked_, asks_;             ///< questions to and from each rank
  std::vector<global_index> sent_, received_, next_, ones_, packed_, questions_;
  entry_rows<T> packed_rows_;
};

}  // namespace partita::sampling

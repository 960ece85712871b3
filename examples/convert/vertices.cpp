// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph.hpp"
#include "partita/base/random.hpp"
#include "partita/io/csv.hpp"
#include "partita/io/text_output.hpp"

namespace {

namespace io = partita::io;
using partita::global_index;
using partita::input_error;

/// What the rows of a table are of.
struct row_of {
  global_index id, row;
};

/// A row of numbers for each of some vertices.
class table {
 public:
  /// `ids`: of the vertices that edges have, ascending. The first column of several is taken for ids where
  /// its numbers are whole and have all of these, or, unless `complete`, where they are whole and all
  /// different; otherwise row v is vertex v.
  table(const std::string& path, std::span<const global_index> ids, bool complete, int threads)
      : text_(std::filesystem::path(path)), numbers_(numbers_of(text_, threads)) {
    if (numbers_.rows == 0) throw input_error(path + ": has no rows");
    for (global_index row = 0; row < numbers_.rows; ++row) rows_.push_back({row, row});
    if (numbers_.cols > 1 && begins_with_ids(ids, complete)) first_ = 1;
  }

  bool has_ids() const { return first_ == 1; }
  global_index cols() const { return numbers_.cols - first_; }
  std::span<const row_of> rows() const { return rows_; }
  double operator()(global_index row, global_index col) const {
    return numbers_.values[static_cast<std::size_t>(row * numbers_.cols + first_ + col)];
  }
  bool has(global_index id) const { return std::ranges::binary_search(rows_, id, {}, &row_of::id); }
  const std::string& path() const { return text_.name(); }
  [[noreturn]] void refuse(global_index row, const std::string& reason) const {
    io::fail_at_row(text_, row, reason);
  }

  /// Calls use(place in `ids`, row) for each vertex that has a row, in the order of ids, and missing(id) for
  /// others.
  template <class Use, class Missing>
  void for_vertices(std::span<const global_index> ids, const Use& use, const Missing& missing) const {
    auto at = rows_.begin();
    for (std::size_t v = 0; v < ids.size(); ++v) {
      while (at != rows_.end() && at->id < ids[v]) ++at;
      if (at != rows_.end() && at->id == ids[v])
        use(v, at->row);
      else
        missing(ids[v]);
    }
  }

 private:
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
  static io::number_table<double> numbers_of(const io::text_source& text, int threads) try {
    return io::parse_csv<double>(text, threads);
  } catch (const input_error& e) {
    const std::string_view said = e.what(), found = said.substr(std::min(said.find("found \""), said.size()));
    if (std::ranges::none_of(found.substr(std::min(found.size(), std::size_t{7})), is_letter)) throw;
    throw input_error(std::string(said) +
                      "; replace names by numbers first, in NumPy with names, classes = "
                      "numpy.unique(column, return_inverse=True)");
  }
  bool begins_with_ids(std::span<const global_index> ids, bool complete) {
    std::vector<row_of> rows(rows_);
    for (auto& [id, row] : rows) {
      const double value = (*this)(row, 0);
      if (!(value >= 0 && value < 0x1p53 && value == std::floor(value))) return false;
      id = static_cast<global_index>(value);
    }
    std::ranges::stable_sort(rows, {}, &row_of::id);
    const auto repeated = std::ranges::adjacent_find(rows, {}, &row_of::id);
    const bool different = repeated == rows.end();
    if (!std::ranges::includes(rows, ids, {}, &row_of::id) && (complete || !different)) return false;
    if (!different) refuse(repeated[1].row, "vertex " + std::to_string(repeated->id) + " has come before");
    rows_ = std::move(rows);
    return true;
  }

  io::text_source text_;
  io::number_table<double> numbers_;
  std::vector<row_of> rows_;  ///< in ascending order of ids
  global_index first_ = 0;    ///< column that is no id
};

std::string in_digits(double value) {
  std::string text;
  io::detail::append_number(text, value);
  return text;
}

/// The ids of all vertices.
std::vector<global_index> all_ids(const std::vector<global_index>& known,
                                  std::span<const table* const> tables, isolated_vertices isolated,
                                  const std::string& source) {
  std::vector<global_index> ids = known;
  for (const table* const t : tables)
    for (const auto& [id, row] : t->rows()) {
      if (isolated == isolated_vertices::left_out || std::ranges::binary_search(known, id)) continue;
      if (isolated == isolated_vertices::refused)
        t->refuse(row, "vertex " + std::to_string(id) + " is not in " + source);
      ids.push_back(id);
    }
  std::ranges::sort(ids);
  const auto repeated = std::ranges::unique(ids);
  ids.erase(repeated.begin(), repeated.end());
  return ids;
}

/// Why row v of a table is vertex v.
const char* const no_ids =
    "row v, from 0, is vertex v: its first column is not of ids, which would be whole numbers, none of them "
    "twice, with all the vertices of edges";

/// What is thrown where a vertex, which is the first such one, has no row in one of the tables: with the line
/// of the row before, in the order of ids, if there is one.
auto missing_in(const table& t, std::span<const table* const> tables) {
  return [&t, tables](global_index id) {
    std::string why;
    const auto after = std::ranges::lower_bound(t.rows(), id, {}, &row_of::id);
    const auto text = [&](const std::string& row) {
      return "has no row for vertex " + std::to_string(id) + row;
    };
    if (!t.has_ids()) why = ", as it has " + std::to_string(t.rows().size()) + " rows, and " + no_ids;
    for (const table* const other : tables)
      if (why.empty() && other != &t && other->has(id))
        why =
            ", which " + other->path() + " has" + (other->has_ids() ? "" : std::string(", where ") + no_ids);
    if (after == t.rows().begin()) throw input_error(t.path() + ": " + text(why));
    const row_of& before = after[-1];
    t.refuse(before.row, text(why) + "; this is the row of vertex " + std::to_string(before.id));
  };
}

void take_features(io::dataset& data, const table& t, std::span<const global_index> ids,
                   std::span<const table* const> tables) {
  std::vector<float> values;  // (n, f)
  values.reserve(ids.size() * static_cast<std::size_t>(t.cols()));
  const auto take = [&](std::size_t, global_index row) {
    for (global_index j = 0; j < t.cols(); ++j) {
      values.push_back(static_cast<float>(t(row, j)));
      if (!std::isfinite(values.back()))
        t.refuse(row, "feature " + std::to_string(j) + " is " + in_digits(t(row, j)) +
                          ", which is not a finite 32-bit number");
    }
  };
  t.for_vertices(ids, take, missing_in(t, tables));
  data.features = t.cols();
  data.vertex_features = io::feature_table(data.vertices, t.cols(), std::move(values));
}

/// A class, or -1, or some of the classes; returns which vertices have a label.
std::vector<bool> take_labels(io::dataset& data, const table& t, std::span<const global_index> ids) {
  std::vector<bool> labelled(ids.size(), false);
  const bool several = t.cols() > 1;
  data.task = several ? io::task::labels : io::task::classes;
  data.classes = several ? t.cols() : 0;
  std::vector<std::int64_t> labels(several ? 0 : ids.size(), -1);
  std::vector<std::uint8_t> matrix(several ? ids.size() * static_cast<std::size_t>(t.cols()) : 0, 0);
  const auto take = [&](std::size_t v, global_index row) {
    for (global_index j = 0; j < t.cols(); ++j) {
      const double label = t(row, j);
      if (!several && (std::isnan(label) || label == -1)) continue;
      const double most = several ? 1 : static_cast<double>(ids.size()) - 1;
      if (!(label >= 0 && label <= most && label == std::floor(label)))
        t.refuse(row, "the label " + in_digits(label) +
                          (several ? " is neither 0 nor 1, as one of several is"
                                   : " is not a class, a whole number from 0 to " +
                                         std::to_string(ids.size() - 1) + ", or -1 or nothing for none"));
      labelled[v] = true;
      if (several)
        matrix[v * static_cast<std::size_t>(t.cols()) + static_cast<std::size_t>(j)] =
            static_cast<std::uint8_t>(label);
      else
        labels[v] = static_cast<std::int64_t>(label);
    }
  };
  const auto missing = missing_in(t, {});
  t.for_vertices(ids, take, [&](global_index id) {
    if (!t.has_ids()) missing(id);
  });
  data.labels = std::move(labels);
  data.label_matrix = std::move(matrix);
  return labelled;
}

void take_split(io::dataset& data, const table& t, std::span<const global_index> ids,
                const std::vector<bool>& labelled) {
  if (t.cols() != 1)
    throw input_error(t.path() + ": expected one column, or ids and one, found " + std::to_string(t.cols()) +
                      " besides ids");
  std::vector<std::uint8_t> split(ids.size(), 0);
  const auto take = [&](std::size_t v, global_index row) {
    const double part = t(row, 0);
    if (std::isnan(part)) return;
    if (part != 0 && part != 1 && part != 2 && part != 3)
      t.refuse(row,
               "the split " + in_digits(part) + " is not 1 (training), 2 (validation), 3 (test) or 0 (none)");
    if (part != 0 && !labelled[v])
      t.refuse(row, "vertex " + std::to_string(ids[v]) + " is in the split, but has no label");
    split[v] = static_cast<std::uint8_t>(part);
  };
  const auto missing = missing_in(t, {});
  t.for_vertices(ids, take, [&](global_index id) {
    if (!t.has_ids()) missing(id);
  });
  if (std::ranges::find(split, 1) == split.end())
    throw input_error(t.path() + ": no vertex is in the training set (1)");
  data.split = std::move(split);
}

/// Of the labelled vertices 60 % to train on, and half of the others each for validation and test.
void draw_split(io::dataset& data, std::span<const global_index> ids, const std::vector<bool>& labelled,
                const std::string& folder, const std::function<void(const std::string&)>& say) {
  std::vector<std::pair<std::uint64_t, std::size_t>> order;
  const std::uint64_t word = partita::random_key{}.word();
  for (std::size_t v = 0; v < ids.size(); ++v)
    if (labelled[v]) order.emplace_back(partita::base::random_bits(word, ids[v], 0), v);
  std::ranges::sort(order);
  const std::size_t train = (6 * order.size() + 9) / 10, validation = (order.size() - train) / 2;
  std::vector<std::uint8_t> split(ids.size(), 0);
  for (std::size_t k = 0; k < order.size(); ++k)
    split[order[k].second] = k < train ? 1 : k < train + validation ? 2 : 3;
  data.split = std::move(split);
  say(folder + "/split.npy: " + std::to_string(train) + " vertices for training, " +
      std::to_string(validation) + " for validation and " +
      std::to_string(order.size() - train - validation) +
      " for test, drawn at random; --split FILE says which");
}

void renumber(graph& g, const std::vector<global_index>& old, std::vector<global_index> ids) {
  std::vector<global_index> place(old.size());
  for (std::size_t v = 0; v < old.size(); ++v) place[v] = std::ranges::lower_bound(ids, old[v]) - ids.begin();
  for (io::edge& e : g.edges)
    e = {place[static_cast<std::size_t>(e.source)], place[static_cast<std::size_t>(e.target)]};
  const auto n = static_cast<global_index>(ids.size());
  g.shape = {n, n};
  g.ids = ids.back() == n - 1 ? std::vector<global_index>{} : std::move(ids);
}

}  // namespace

void add_vertices(graph& g, const vertex_tables& files, isolated_vertices isolated, const std::string& source,
                  const std::string& folder, int threads,
                  const std::function<void(const std::string&)>& say) {
  if (g.shape.rows != g.shape.cols)
    throw input_error(source + ": the matrix is " + to_string(g.shape) + ", which is no graph");
  std::vector<global_index> old = g.ids;
  if (old.empty()) {
    old.resize(static_cast<std::size_t>(g.shape.rows));
    std::iota(old.begin(), old.end(), global_index{0});
  }
  std::vector<global_index> known = old;  // ascending, unlike those that somebody else has put into a folder
  std::ranges::sort(known);
  if (const auto repeated = std::ranges::adjacent_find(known); repeated != known.end())
    throw input_error(source + ": two vertices have the id " + std::to_string(*repeated));
  std::optional<table> features, labels, split;
  if (!files.features.empty()) features.emplace(files.features, known, true, threads);
  if (!files.labels.empty()) labels.emplace(files.labels, known, false, threads);
  if (!files.split.empty()) split.emplace(files.split, known, false, threads);
  std::vector<const table*> tables;
  for (const std::optional<table>* const t : {&features, &labels, &split}) {
    if (!*t) continue;
    tables.push_back(&**t);
    if ((*t)->has_ids()) say((*t)->path() + ": the first column is taken for the ids of vertices");
  }
  const std::vector<global_index> ids = all_ids(known, tables, isolated, source);
  if (ids.empty()) throw input_error(source + ": has no vertices");
  io::dataset data;
  data.vertices = static_cast<global_index>(ids.size());
  if (features) take_features(data, *features, ids, tables);
  if (labels) {
    const std::vector<bool> labelled = take_labels(data, *labels, ids);
    if (std::ranges::find(labelled, true) == labelled.end())
      throw input_error(files.labels + ": no vertex has a label");
    if (split)
      take_split(data, *split, ids, labelled);
    else
      draw_split(data, ids, labelled, folder, say);
  }
  renumber(g, old, ids);
  g.data = std::move(data);
}

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Reads links, and the negatives among which they are ranked, from a dataset directory. Needs POSIX.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include "partita/io/dataset_type.hpp"
#include "partita/io/mapped_npy.hpp"

namespace partita::io {

namespace detail {

/// The whole numbers of a file [rows, columns], each the number of one of `vertices` vertices.
inline mapped_array<std::int64_t> read_vertices(const std::filesystem::path& path, global_index vertices) {
  mapped_array<std::int64_t> table = map_npy<std::int64_t>(path);
  if (table.shape.size() != 2 || table.shape[1] < 1)
    fail(path.string(),
         "expected a row of vertices for each link, found the shape " + shape_text(table.shape));
  for (std::size_t k = 0; k < table.values.size(); ++k)
    if (const std::int64_t v = table.values[k]; v < 0 || v >= vertices)
      fail(path.string(), "row " + std::to_string(k / static_cast<std::size_t>(table.shape[1])) +
                              " has vertex " + std::to_string(v) + ", which is not one of " +
                              std::to_string(vertices));
  table.values.forget();
  return table;
}

}  // namespace detail

/// The links u -> v in the file [m, 2]. Local. Throws input_error naming the file, and the row, if the shape
/// differs or a number is not a vertex.
inline array<edge> read_pairs(const std::filesystem::path& path, global_index vertices) {
  const mapped_array<std::int64_t> table = detail::read_vertices(path, vertices);
  if (table.shape[1] != 2)
    detail::fail(path.string(),
                 "expected two vertices in each row, found the shape " + detail::shape_text(table.shape));
  const auto ends = std::make_shared<const array<std::int64_t>>(table.values);
  return {std::shared_ptr<const edge>(ends, reinterpret_cast<const edge*>(ends->data())), ends->size() / 2,
          ends->is_mapped() ? detail::forget_pages : nullptr};
}

/// Reads from the directory the files that exist: links_train.npy, links_valid.npy, links_test.npy ([m, 2],
/// source and target), links_valid_negatives.npy and links_test_negatives.npy. Negatives are [m, K], the
/// targets of each link's own negatives, or [m', 2], pairs that all links share; two columns always mean
/// pairs. Nothing if neither links_valid.npy nor links_test.npy exists. Local. Throws input_error as
/// read_pairs does, for negatives of another number of links, and for files whose links are missing.
inline std::optional<given_links> read_links(const std::filesystem::path& dir, global_index vertices) {
  const auto there = [&](const std::string& name) {
    std::error_code status;
    return std::filesystem::symlink_status(dir / name, status).type() !=
           std::filesystem::file_type::not_found;
  };
  given_links links;
  bool any = false;
  for (const auto& [part, to, negatives] : {std::tuple{"valid", &links.validation, &links.negatives[0]},
                                            {"test", &links.test, &links.negatives[1]}}) {
    const std::string name = std::string("links_") + part, file = name + ".npy",
                      others = name + "_negatives.npy";
    any |= there(file);
    if (there(file)) *to = read_pairs(dir / file, vertices);
    if (!there(others)) continue;
    if (!there(file)) detail::fail((dir / others).string(), "needs " + file);
    mapped_array<std::int64_t> table = detail::read_vertices(dir / others, vertices);
    if (table.values.empty()) detail::fail((dir / others).string(), "holds no negatives");
    negatives->are_shared = table.shape[1] == 2;
    if (!negatives->are_shared && table.shape[0] != static_cast<global_index>(to->size()))
      detail::fail((dir / others).string(),
                   "expected a row for each of the " + std::to_string(to->size()) + " links of " + file +
                       ", or two vertices in each row, found the shape " + detail::shape_text(table.shape));
    negatives->vertices = std::move(table.values);
  }
  if (there("links_train.npy")) {
    if (!any) detail::fail((dir / "links_train.npy").string(), "needs links_valid.npy or links_test.npy");
    links.train = read_pairs(dir / "links_train.npy", vertices);
    if (links.train.empty()) detail::fail((dir / "links_train.npy").string(), "holds no links");
  }
  return any ? std::optional(std::move(links)) : std::nullopt;
}

}  // namespace partita::io

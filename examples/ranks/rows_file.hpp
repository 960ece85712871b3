// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Rows of vertices in .npy files.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "partita/io/npy.hpp"
#include "partita/io/whole_file.hpp"
#include "partita/train/state_dict.hpp"

/// Rows (n x width) in the order of `vertices`, see in_order_of_vertices, as a matrix in an .npy file, whole
/// or not at all. Throws error for values that are not finite.
template <class T>
void write_rows(const std::string& path, std::vector<T> rows, partita::global_index width,
                const std::vector<partita::global_index>& vertices) {
  const std::vector<T> sorted = partita::nn::in_order_of_vertices(std::move(rows), width, vertices);
  const auto bad = std::ranges::find_if_not(sorted, [](T value) { return std::isfinite(value); });
  if (bad != sorted.end())
    partita::base::throw_error<partita::error>({path, " is not written: its value for vertex ",
                                                (bad - sorted.begin()) / width, " is not a finite number"});
  const std::string head =
      partita::io::npy_header_text<T>({std::ssize(sorted) / width, width}, sorted.size() * sizeof(T), path);
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(head)),
                                              std::as_bytes(std::span(sorted))};
  partita::io::write_whole_file(path, parts);
}

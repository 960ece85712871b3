// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The exchange of rows of X, or of sums of rows of Y, along the row axis.

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "partita/comm/mesh.hpp"
#include "partita/local/row_encoding.hpp"
#include "partita/local/view.hpp"

namespace partita {

/// Which rows each rank receives: whole row blocks (`full`), only the rows referenced by A's nonzero columns
/// (`sparsity_aware`), or from each other rank the fewest rows that suffice (`cover`): rows of X, or rows of
/// Y if the other rank can sum them; see transfer::row_cover. `automatic` chooses one of the first two, by
/// what the busiest rank receives.
enum class row_exchange : std::uint8_t { automatic, full, sparsity_aware, cover };

namespace algebra {

using local::row_encoding;

}  // namespace algebra

namespace algebra::detail {

/// Whether rows of X come before a product's kernels, or sums of rows of Y go after them.
enum class row_flow : std::uint8_t { rows_come, sums_go };

/// The row blocks of X for block k of A (of Y, for products with A^T): this rank's sub-block, from which
/// other ranks may need rows, and the rows per rank of the row axis.
struct row_group {
  local_index first_row = 0;         ///< of this rank's sub-block, within its block of X
  std::vector<global_index> rows;    ///< of each rank's sub-block, along the row axis
  std::vector<global_index> needed;  ///< of those, how many this rank receives from each; none from itself
};

/// The exchange along the row axis for the tiles of A, in steps that all ranks start in the same order, as
/// many for each block of A. start and arrive exchange rows of X; leave and finish exchange sums.
template <class T>
class row_traffic {
 public:
  virtual ~row_traffic() = default;

  /// How many steps may be in flight before the first is used.
  virtual std::size_t at_first() const { return 2; }
  /// How many steps may be in flight beyond the one whose rows are used.
  virtual std::size_t ahead() const { return 1; }
  /// Begins to send the rows of x that are exchanged in step n.
  virtual void start(std::size_t n, matrix_view<const T> x) = 0;
  /// The rows for tile t that arrived in step n and, for the same block, in earlier steps.
  virtual matrix_view<const T> arrive(std::size_t n, std::size_t t) = 0;

  /// sums: where to write the sums of tile t that are sent in step n. leave: begins to send them, to their
  /// rows of `sums`.
  virtual matrix_view<T> sums(std::size_t n, std::size_t t) = 0;
  virtual void leave(std::size_t n, std::size_t t, matrix_view<T> sums) = 0;
  /// Completes the sums of all ranks for block k, in their rows of `sums`.
  virtual void finish(std::size_t k, matrix_view<T> sums) = 0;
};

/// Whole sub-blocks, those of one rank in each step, broadcast or summed to that rank. Double buffered: one
/// is in flight while the other is multiplied.
template <class T, class Device>
class whole_exchange final : public row_traffic<T> {
 public:
  whole_exchange(const mesh<Device>& m, const std::vector<row_group>& groups, local_index width)
      : row_(m.along(axis::row)), groups_(groups), width_(width) {
    global_index largest = 0;
    for (const row_group& g : groups_)
      for (global_index n : g.rows) largest = std::max(largest, n);
    for (auto& b : buffers_) b = buffer<T, Device>(m.queue(), static_cast<std::size_t>(largest * width));
  }

  void start(std::size_t n, matrix_view<const T> x) override {
    const row_group& group = groups_[n / steps_of_block()];
    const std::size_t root = n % steps_of_block();
    const std::span<const T> mine(x.row_data(group.first_row), elements(group, own()));
    requests_[n % 2] = row_.start_broadcast(mine, buffers_[n % 2].span().first(elements(group, root)),
                                            static_cast<int>(root));
  }
  matrix_view<const T> arrive(std::size_t n, std::size_t t) override { return sums(n, t); }

  matrix_view<T> sums(std::size_t n, std::size_t t) override {
    requests_[n % 2].wait();
    const row_group& group = groups_[n / steps_of_block()];
    return {buffers_[n % 2].data(), static_cast<local_index>(group.rows[t]), width_, width_};
  }
  void leave(std::size_t n, std::size_t t, matrix_view<T> sums) override {
    const row_group& group = groups_[n / steps_of_block()];
    const std::size_t size = elements(group, t);
    counts_[n % 2].assign(steps_of_block(), 0);
    counts_[n % 2][t] = static_cast<global_index>(size);
    requests_[n % 2] =
        row_.start_reduce_scatter(std::as_const(buffers_[n % 2]).span().first(size), counts_[n % 2],
                                  std::span<T>(sums.row_data(group.first_row), t == own() ? size : 0));
  }
  void finish(std::size_t, matrix_view<T>) override {
    for (request& r : requests_) r.wait();
  }

 private:
  std::size_t steps_of_block() const { return static_cast<std::size_t>(row_.size()); }
  std::size_t own() const { return static_cast<std::size_t>(row_.rank()); }
  std::size_t elements(const row_group& group, std::size_t r) const {
    return static_cast<std::size_t>(group.rows[r] * width_);
  }

  communicator row_;
  std::vector<row_group> groups_;
  local_index width_;
  std::array<buffer<T, Device>, 2> buffers_;
  std::array<std::vector<global_index>, 2> counts_;
  std::array<request, 2> requests_;
};

}  // namespace algebra::detail

}  // namespace partita

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What products with a row of tiles share: the columns that its tiles name, and copies of the tiles in which
/// these are counted.

#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "partita/local/csr_inverse.hpp"
#include "partita/matrix/needed_rows.hpp"
#include "partita/matrix/tiles.hpp"
#include "partita/memory/device.hpp"

namespace partita::local {

/// The tiles of one rank with what plans ask of them. Each answer is found when it is first asked for, and
/// shared by all plans of the matrix; the thread of the rank alone asks. Rows of a counted block have room,
/// but are neither read nor written.
template <class T, class Device>
class tile_analysis {
 public:
  using block = csr_tiles<T, Device>;

  /// `own`: the tile whose rows of X this rank has; `most`: entries of a part of merged().
  tile_analysis(const device_queue<Device>& q, std::shared_ptr<block> tiles, std::size_t own,
                std::size_t most)
      : queue_(q), tiles_(std::move(tiles)), own_(own), most_(most) {}

  const block& tiles() const { return *tiles_; }

  /// The nonempty columns of every tile except the own one.
  const needed_rows& needed() {
    if (!needed_.of_tile.empty()) return needed_;
    if (tiles_->is_counted()) needed_ = tiles_->counted_rows();
    if (is_single())
      needed_.of_tile.resize(1);
    else if (!tiles_->is_counted())
      needed_ = find_needed_rows(*tiles_, tiles_->entries(queue_), own_);
    return needed_;
  }
  /// The structure as one contiguous device array; for a view, a copy.
  std::span<const local_index> contiguous() {
    if (tiles_->viewed.offsets.empty()) return std::as_const(*tiles_).structure.span();
    if (contiguous_.size() == 0) contiguous_ = on_device(tiles_->entries(queue_).structure());
    return contiguous_.span();
  }
  /// The structure with the columns of every tile except the own one renumbered to positions among the needed
  /// rows.
  std::span<const local_index> compacted() {
    if (is_single()) return contiguous();
    if (compacted_.size() > 0) return compacted_.span();
    if (tiles_->is_counted()) {
      compacted_ = buffer<local_index, Device>(queue_, tiles_->structure_size());
      copy(queue_, contiguous().first(tiles_->offsets_size()),
           compacted_.span().first(tiles_->offsets_size()));
    } else
      compacted_ = on_device(local::compacted(*tiles_, tiles_->entries(queue_), own_, needed()).structure());
    return compacted_.span();
  }
  /// The values for the entries of compacted(): the stored ones, but for factors of columns that are not
  /// needed.
  std::span<const T> compacted_values() {
    if (is_single() || !tiles_->form.columns) return tiles_->stored_values();
    if (compacted_factors_.size() == 0) compacted_factors_ = on_device(factors(false));
    return compacted_factors_.span();
  }
  /// The needed rows in so many slices.
  row_slices sliced(std::size_t slices) { return {needed().counts(), own_, slices}; }
  /// The own tile, and one for the needed rows of each slice, in its order. A second copy of A, for products
  /// with needed rows only. If the block `stays` on this rank, tiles begin where libraries of a device accept
  /// them; otherwise its arrays have no gaps.
  const block& merged(std::size_t slices = 1, bool stays = true) {
    if (is_single()) return *tiles_;
    const std::pair as(slices, stays && memory::enqueues<Device>);
    if (const auto made = merged_.find(as); made != merged_.end()) return made->second;
    if (tiles_->is_counted())
      return merged_.try_emplace(as, queue_, merged_counts(slices), needed_rows{}).first->second;
    const merged_tiles found = merge(as);
    block& made = merged_[as];
    static_cast<tile_shape&>(made) = found.shape;
    made.structure = on_device(found.structure);
    made.values = on_device(tiles_->form.factored ? merged_factors(slices)
                                                  : reordered(tiles_->stored_in_host(queue_), found));
    return made;
  }
  /// The shape of merged() with one slice, without building it.
  const tile_shape& merged_shape() {
    if (is_single()) return *tiles_;
    if (!merged_shape_)
      merged_shape_ =
          tiles_->is_counted()
              ? merged_counts(1)
              : local::merged_shape(*tiles_, tiles_->entries(queue_), own_, needed(), most_).shape;
    return *merged_shape_;
  }
  /// The inverses of its parts, and of those of compacted(), that plans make; kept as long as one of them is.
  std::shared_ptr<csr_inverses<Device>> inverses() {
    auto shared = inverses_.lock();
    if (!shared) inverses_ = shared = std::make_shared<csr_inverses<Device>>();
    return shared;
  }

  /// What plans have on this rank and others because of the values, made by make() where none of them has it;
  /// kept as long as one of them does.
  template <class Make>
  auto shared_copies(Make make) {
    using copies = const decltype(make());
    auto shared = std::static_pointer_cast<copies>(copies_.lock());
    if (!shared) copies_ = shared = std::make_shared<copies>(make());
    return shared;
  }
  bool has_copies() const { return !copies_.expired(); }

  /// Replaces the values, which are not factored, in storage order; every product with the tiles, or with a
  /// copy of them on this rank, sees the new ones.
  void assign_values(std::span<const T> given) {
    copy(queue_, given, tiles_->values.span());
    for (auto& [as, made] : merged_) {
      const std::vector<T> moved = reordered(given, merge(as));
      copy(queue_, std::span<const T>(moved), made.values.span());
    }
  }

 private:
  bool is_single() const { return tiles_->count() == 1; }

  template <class E>
  buffer<E, Device> on_device(const std::vector<E>& list) const {
    buffer<E, Device> made(queue_, list.size());
    copy(queue_, std::span<const E>(list), made.span());
    return made;
  }
  std::vector<T> factors(bool own_first) {
    return factors_of_needed(*tiles_, tiles_->stored_in_host(queue_), own_, needed(), own_first);
  }
  std::vector<T> merged_factors(std::size_t slices) {
    std::vector<T> all = factors(true);
    const row_slices order = sliced(slices);
    if (tiles_->form.columns) order.sort(std::span(all).last(order.slice().size()));
    return all;
  }
  merged_tiles merge(std::pair<std::size_t, bool> as) {
    constexpr std::size_t aligned = 4;  // columns and values at multiples of 16 bytes
    return local::merge(*tiles_, tiles_->entries(queue_), own_, needed(), sliced(as.first), most_,
                        as.second ? aligned : 1);
  }
  static std::vector<T> reordered(std::span<const T> given, const merged_tiles& merged) {
    std::vector<T> values;
    values.reserve(given.size());
    if (!given.empty())
      for (const std::size_t e : merged.order) values.push_back(given[e]);
    return values;
  }
  /// The entries of several slices are supposed to be shared out as their columns are.
  tile_shape merged_counts(std::size_t slices) {
    const local_index here = tiles_->entries_of_parts[own_];
    tile_shape shape{tiles_->rows, {tiles_->widths[own_]}, tiles_->nonzeros, {}, {}, tiles_->form};
    const row_slices order = sliced(slices);
    shape.widths.insert(shape.widths.end(), order.widths().begin(), order.widths().end());
    shape.entries_of_parts = {here};
    global_index left = static_cast<global_index>(tiles_->nonzeros) - here,
                 columns = std::accumulate(order.widths().begin(), order.widths().end(), global_index{0});
    for (const local_index width : order.widths()) {
      const global_index entries = columns == width ? left : left * width / columns;
      shape.entries_of_parts.push_back(static_cast<local_index>(entries));
      left -= entries, columns -= width;
    }
    return shape;
  }

  device_queue<Device> queue_;
  std::shared_ptr<block> tiles_;
  std::size_t own_, most_;
  needed_rows needed_;
  buffer<local_index, Device> contiguous_, compacted_;
  buffer<T, Device> compacted_factors_;
  std::optional<tile_shape> merged_shape_;
  std::map<std::pair<std::size_t, bool>, block>
      merged_;  ///< by the number of slices, and whether it has gaps
  std::weak_ptr<csr_inverses<Device>> inverses_;
  std::weak_ptr<const void> copies_;
};

}  // namespace partita::local

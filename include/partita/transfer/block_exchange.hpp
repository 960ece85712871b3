// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The exchange of blocks of a dense matrix, in stages of which the next is in flight while one is used.

#include <array>
#include <utility>
#include <vector>

#include "partita/local/pass.hpp"
#include "partita/matrix/dense.hpp"
#include "partita/partition/exchange.hpp"

namespace partita::transfer {

/// The block r of a matrix in contiguous memory that begins at `data`.
template <class T>
matrix_view<T> view_of(T* data, const partition::rectangle& r) {
  return {data, static_cast<local_index>(r.rows.size()), static_cast<local_index>(r.cols.size())};
}
/// The part r of the block `whole` of a matrix.
template <class T>
matrix_view<T> part_of(matrix_view<T> block, const partition::rectangle& whole,
                       const partition::rectangle& r) {
  return block.block(static_cast<local_index>(r.rows.begin - whole.rows.begin),
                     static_cast<local_index>(r.cols.begin - whole.cols.begin),
                     static_cast<local_index>(r.rows.size()), static_cast<local_index>(r.cols.size()));
}

/// A planned exchange of blocks. Stages must be started and finished in order, at most two at a time.
///
/// Collective over the mesh: constructor and members. What travels: the part of each stage's block that a
/// rank does not own.
template <class T, class Device>
class block_exchange {
 public:
  block_exchange(const mesh<Device>& m, partition::exchange plan);

  /// Starts stage s; x is the owned block, contiguous.
  void start(std::size_t s, matrix_view<const T> x);

  /// y = the block of stage s; x is the owned block.
  void finish(std::size_t s, matrix_view<const T> x, matrix_view<T> y);
  /// The block of stage s, valid until the next call and as long as x: a part of x where nothing travels, the
  /// receive buffer where that is the block, else a buffer allocated by the first call or by reserve().
  matrix_view<const T> finish(std::size_t s, matrix_view<const T> x);
  /// Allocates what finish(s, x) needs.
  void reserve();

  std::size_t stages() const { return plan_.stages.size(); }
  const partition::exchange& plan() const { return plan_; }
  /// What this rank receives in all stages.
  traffic predicted() const;

 private:
  static std::vector<global_index> sizes_of(const std::vector<partition::rectangle>& parts);
  /// This rank's contribution to an all-gather.
  std::span<const T> gathered(std::size_t s, matrix_view<const T> x);

  mesh<Device> mesh_;
  partition::exchange plan_;
  std::vector<std::vector<global_index>> send_, recv_;
  std::array<buffer<T, Device>, 2> outgoing_, incoming_;
  buffer<T, Device> unpacked_;
  std::array<request, 2> requests_;
};

template <class T, class Device>
block_exchange<T, Device>::block_exchange(const mesh<Device>& m, partition::exchange plan)
    : mesh_(m), plan_(std::move(plan)) {
  if (!plan_.travels()) return;
  for (const auto& s : plan_.stages) {
    send_.push_back(sizes_of(s.send));
    recv_.push_back(sizes_of(s.recv));
  }
  for (std::size_t slot = 0; slot < std::min<std::size_t>(2, plan_.stages.size()); ++slot) {
    outgoing_[slot] = buffer<T, Device>(m.queue(), static_cast<std::size_t>(plan_.largest.packed));
    incoming_[slot] = buffer<T, Device>(m.queue(), static_cast<std::size_t>(plan_.largest.incoming));
  }
}

template <class T, class Device>
void block_exchange<T, Device>::start(std::size_t s, matrix_view<const T> x) {
  if (!plan_.travels()) return;
  const auto& stage = plan_.stages[s];
  const communicator& group = mesh_.along(plan_.how.group);
  const auto incoming = incoming_[s % 2].span().first(comm::total_of(std::span(recv_[s])));
  if (plan_.how.kind == partition::movement::all_gather) {
    requests_[s % 2] = group.start_all_gather(gathered(s, x), recv_[s], incoming);
  } else {
    T* to = outgoing_[s % 2].data();
    for (const partition::rectangle& r : stage.send) {
      local::pack_block(mesh_.queue(), part_of(x, plan_.owned, r), to);
      to += r.size();
    }
    requests_[s % 2] = group.start_all_to_all(std::span<const T>(outgoing_[s % 2].span().first(
                                                  static_cast<std::size_t>(to - outgoing_[s % 2].data()))),
                                              send_[s], incoming, recv_[s]);
  }
}

template <class T, class Device>
void block_exchange<T, Device>::finish(std::size_t s, matrix_view<const T> x, matrix_view<T> y) {
  const auto& stage = plan_.stages[s];
  if (!plan_.travels()) return local::copy_block(mesh_.queue(), part_of(x, plan_.owned, stage.block), y);
  requests_[s % 2].wait();
  const T* from = incoming_[s % 2].data();
  for (const partition::rectangle& r : stage.recv) {
    local::unpack_block(mesh_.queue(), from, part_of(y, stage.block, r));
    from += r.size();
  }
}

template <class T, class Device>
matrix_view<const T> block_exchange<T, Device>::finish(std::size_t s, matrix_view<const T> x) {
  const auto& stage = plan_.stages[s];
  if (!plan_.travels()) return part_of(x, plan_.owned, stage.block);
  if (stage.sizes.unpacked == 0) {
    requests_[s % 2].wait();
    return view_of(std::as_const(incoming_[s % 2]).data(), stage.block);
  }
  reserve();
  const matrix_view<T> block = view_of(unpacked_.data(), stage.block);
  finish(s, x, block);
  return block;
}

template <class T, class Device>
void block_exchange<T, Device>::reserve() {
  const auto most = static_cast<std::size_t>(plan_.largest.unpacked);
  if (unpacked_.size() < most) unpacked_ = buffer<T, Device>(mesh_.queue(), most);
}

template <class T, class Device>
traffic block_exchange<T, Device>::predicted() const {
  const int me = partition::rank_in_group(mesh_.shape(), plan_.how.group, mesh_.at());
  traffic v;
  for (const auto& counts : recv_)
    for (std::size_t q = 0; q < counts.size(); ++q)
      if (static_cast<int>(q) != me && counts[q] > 0) v += {counts[q], 1};
  return v;
}

template <class T, class Device>
std::vector<global_index> block_exchange<T, Device>::sizes_of(
    const std::vector<partition::rectangle>& parts) {
  std::vector<global_index> sizes;
  for (const partition::rectangle& r : parts) sizes.push_back(r.size());
  return sizes;
}

template <class T, class Device>
std::span<const T> block_exchange<T, Device>::gathered(std::size_t s, matrix_view<const T> x) {
  const partition::rectangle mine = plan_.stages[s].send[0];
  const matrix_view<const T> from = part_of(x, plan_.owned, mine);
  const auto size = static_cast<std::size_t>(mine.size());
  if (plan_.stages[s].sizes.packed == 0) return {from.data, size};
  local::pack_block(mesh_.queue(), from, outgoing_[s % 2].data());
  return std::as_const(outgoing_[s % 2]).span().first(size);
}

}  // namespace partita::transfer

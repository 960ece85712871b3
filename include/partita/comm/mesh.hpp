// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A mesh of ranks over the axes row, col and depth, with a communicator for every set of axes.

#include <array>
#include <memory>
#include <optional>

#include "partita/comm/communicator.hpp"
#include "partita/comm/self.hpp"
#include "partita/memory/device.hpp"
#include "partita/partition/mesh_shape.hpp"

namespace partita {

/// A mesh of ranks and the device queue of this rank. Value handle: copies refer to the same mesh. Matrices
/// hold one, so operations take neither a communicator nor a queue.
///
/// Matrix blocks are in device memory and are communicated through along(). Counts, index lists and other
/// host data are in host memory and use control() or world(). For `mesh<host>` the two coincide.
///
/// A mesh is reproducible if its queue is (see partita::reproducible), on all ranks: kernels that sum,
/// world(), whole() and the groups along axes then throw if a sum would depend on the arrangement, unless
/// they belong to with_exact_sums().
template <class Device>
class mesh {
 public:
  using device = Device;

  /// Collective over `world`, with the same shape on all ranks; `tile_entries` as in tile_entries(). What
  /// travels: an all-reduce of two numbers, not recorded. Throws mesh_error if the shape does not match the
  /// number of ranks, and on every rank if only some queues are reproducible.
  mesh(const communicator& world, mesh_shape shape,
       partita::device_queue<Device> queue = partita::device_queue<Device>(),
       std::size_t tile_entries = base::max_tile_entries,
       std::source_location where = std::source_location::current())
      : state_(std::make_shared<state>(world, shape, std::move(queue), tile_entries)) {
    require_one_mode(where);
  }

  /// A mesh of this rank alone, with the queue of `m`. If the queue is reproducible, matrices on this mesh
  /// are parts of larger ones whose rows are spread over all ranks of m: sums over rows, and counts for them,
  /// run over all ranks of m, and verbs with such sums are collective over m (except operations already in
  /// flight there). Construction is then also collective over m.
  static mesh alone(const mesh& m, std::source_location where = std::source_location::current()) {
    mesh part(self::world(), mesh_shape{}, m.queue(), m.tile_entries());
    if (m.reproducible()) part.state_->whole.emplace(m.world().split(0, m.rank(), "parts", where));
    return part;
  }

  mesh_shape shape() const { return state_->shape; }
  int size() const { return state_->world.adding.size(); }
  int rank() const { return state_->world.adding.rank(); }
  coordinates at() const { return state_->at; }
  /// What this rank receives in an all-reduce of `count` elements along `axes`, in closed form.
  traffic all_reduced(axis_set axes, global_index count) const {
    comm::collective op;
    op.kind = operation::all_reduce;
    op.count = count;
    return received(op, partition::rank_in_group(shape(), axes, at()), shape().size(axes));
  }
  /// All ranks, over host memory. Groups split from it have no restriction on sums.
  const communicator& world() const { return state_->world.of(reproducible()); }
  const partita::device_queue<Device>& queue() const {
    return adds_ ? memory::reproducible_sums_of(state_->queue)->beneath : state_->queue;
  }
  /// Maximum nonzeros per sparse tile; larger tiles are split into parts of consecutive rows.
  std::size_t tile_entries() const { return state_->tile_entries; }
  /// Whether its verbs give the same bits for every policy, mesh, number of ranks and number of threads, or
  /// throw.
  bool reproducible() const { return memory::reproducible_sums_of(queue()) != nullptr; }
  /// This mesh, for sums that need no rounding or are not spread over ranks: kernels and groups do not refuse
  /// them.
  mesh with_exact_sums() const {
    mesh m(*this);
    m.adds_ = m.adds_ || reproducible();
    return m;
  }
  /// Whether its matrices are parts of larger ones on other ranks; see alone.
  bool is_part() const { return state_->whole.has_value(); }
  /// The ranks over which rows are summed: all ranks, or all ranks of the mesh of which this is a part.
  const communicator& whole() const { return is_part() ? state_->whole->of(reproducible()) : world(); }
  partita::ledger& ledger() const { return state_->world.adding.ledger(); }

  /// The ranks that differ from this one only in the axes of `s`, over device memory. Its rank p is at
  /// group_member(shape(), s, at(), p); along(every_axis) numbers ranks as the mesh does.
  ///
  /// Created on first use, by a split of the world unless the group is a single rank or all ranks. All ranks
  /// of the mesh must request the same sets in the same order; this holds if they call plans and operations
  /// in the same order. Sets that define the same groups share one split. The reference is valid for the
  /// lifetime of the mesh. Throws as communicator::split, naming `where`.
  const communicator& along(axis_set s, std::source_location where = std::source_location::current()) const {
    return state_->along(s, where, reproducible());
  }
  /// The same ranks over host memory, created as in along().
  const communicator& control(axis_set s,
                              std::source_location where = std::source_location::current()) const {
    return state_->control(s, where, reproducible());
  }
  /// values = their sums over along(s), in rank order. Collective over these ranks. What travels: an
  /// all-reduce. Throws error on a reproducible mesh, unless s is empty.
  template <class Values>
  void sum_along(axis_set s, Values&& values) const {
    if (!s.empty()) memory::refuse_reproducible(queue(), "a sum over ranks");
    if (const communicator& group = along(s); group.size() > 1) group.all_reduce(values);
  }

  friend bool operator==(const mesh& a, const mesh& b) { return a.state_ == b.state_; }

 private:
  /// Throws mesh_error unless all ranks have a reproducible queue or none has.
  void require_one_mode(std::source_location where) const {
    if (size() == 1) return;
    const communicator unrecorded(world().transport(), "mesh");
    const global_index mode = reproducible();
    global_index bounds[] = {mode, -mode};
    unrecorded.all_reduce(bounds, reduction::max, where);
    if (bounds[0] != -bounds[1])
      throw mesh_error("only some ranks of a mesh have a queue that partita::reproducible made");
  }

  /// The same ranks, once refusing and once allowing sums of floating-point numbers.
  struct guarded {
    explicit guarded(const communicator& ranks)
        : adding(ranks.refusing_sums(false)), refusing(ranks.refusing_sums()) {}

    const communicator& of(bool refuses) const { return refuses ? refusing : adding; }

    communicator adding, refusing;
  };

  struct state {
    state(const communicator& w, mesh_shape m, partita::device_queue<Device> q, std::size_t entries)
        : world(w),
          shape(m),
          at(),
          queue(std::move(q)),
          tile_entries(entries),
          memory(device_memory_of(queue)) {
      if (m.row < 1 || m.col < 1 || m.depth < 1 || m.places() != w.size())
        base::throw_error<mesh_error>({"mesh ", m, " does not match ", w.size(), " ranks"});
      at = m.at(w.rank());
    }

    const communicator& control(axis_set s, std::source_location where, bool refuses) {
      return entered(on_host[s.bits], s, refuses, [&] { return host_ranks(parting(s), where); });
    }
    const communicator& along(axis_set s, std::source_location where, bool refuses) {
      if (!memory) return control(s, where, refuses);
      return entered(on_place[s.bits], s, refuses, [&] {
        std::shared_ptr<comm::transport>& ranks = place_groups[parting(s).bits];
        if (!ranks) ranks = host_ranks(parting(s), where)->on_memory(memory);
        return ranks;
      });
    }

    guarded world;
    mesh_shape shape;
    coordinates at;
    partita::device_queue<Device> queue;
    std::size_t tile_entries;
    std::optional<guarded> whole;

   private:
    /// The axes of a set that have more than one rank.
    axis_set parting(axis_set s) const {
      for (const axis a : partition::all_axes)
        if (shape[a] == 1) s = s - a;
      return s;
    }
    const std::shared_ptr<comm::transport>& host_ranks(axis_set s, std::source_location where) {
      std::shared_ptr<comm::transport>& ranks = host_groups[s.bits];
      if (!ranks && shape.size(s) == 1) ranks = std::make_shared<comm::detail::self_transport>();
      if (!ranks && shape.size(s) == shape.size()) ranks = world.adding.transport();
      if (!ranks) {
        const int color = partition::rank_in_group(shape, partition::every_axis - s, at),
                  key = partition::rank_in_group(shape, s, at);
        ranks = world.adding.split(color, key, "", where).transport();
      }
      return ranks;
    }
    struct group {
      std::optional<communicator> adding, refusing;
    };
    /// Returns the matching group in `made`, first creating it by make() if needed; the ledger records it
    /// under the name of `s`.
    template <class Make>
    const communicator& entered(group& made, axis_set s, bool refuses, Make make) {
      if (!made.adding) made.adding = world.adding.with_transport(make()).named(partition::name_of(s));
      if (!refuses) return *made.adding;
      if (!made.refusing) made.refusing = made.adding->refusing_sums();
      return *made.refusing;
    }

    std::shared_ptr<comm::device_memory> memory;
    std::array<std::shared_ptr<comm::transport>, 8> host_groups,
        place_groups;  ///< by the axes with more than one rank
    std::array<group, 8> on_host, on_place;
  };

  std::shared_ptr<state> state_;
  bool adds_ = false;  ///< even though its queue is reproducible
};

}  // namespace partita

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Ranks arranged on the axes row, col, depth, with a communicator along every set of axes and the queue of
/// their device.

#include <array>
#include <memory>
#include <optional>

#include "partita/comm/communicator.hpp"
#include "partita/comm/self.hpp"
#include "partita/memory/device.hpp"
#include "partita/partition/mesh_shape.hpp"

namespace partita {

/// A value handle: copies are the same mesh. Matrices hold one, so no operation takes a communicator or a
/// queue. What travels along axes is memory of the device: blocks of matrices. Counts, lists of indices and
/// what else the host computes with lie in its memory and travel by control() or world(). On the host's own
/// device that is one and the same.
template <class Device>
class mesh {
 public:
  using device = Device;

  /// `tile_entries`: see tile_entries(). Every rank of `world` must call, with the same shape. Throws
  /// mesh_error when the shape does not fill the ranks.
  mesh(communicator world, mesh_shape shape,
       partita::device_queue<Device> queue = partita::device_queue<Device>(),
       std::size_t tile_entries = base::max_tile_entries)
      : state_(std::make_shared<state>(std::move(world), shape, std::move(queue), tile_entries)) {}

  mesh_shape shape() const { return state_->shape; }
  int size() const { return state_->world.size(); }
  int rank() const { return state_->world.rank(); }
  coordinates at() const { return state_->at; }
  /// All ranks, over memory of the host.
  const communicator& world() const { return state_->world; }
  const partita::device_queue<Device>& queue() const { return state_->queue; }
  /// A sparse tile with more entries than this is kept in parts of consecutive rows.
  std::size_t tile_entries() const { return state_->tile_entries; }
  partita::ledger& ledger() const { return state_->world.ledger(); }

  /// The ranks that differ from this one only in the axes of `s`, over memory of the device; rank p of it
  /// stands at group_member(shape(), s, at(), p), which of every_axis is rank p of the mesh.
  ///
  /// Made when it is first asked for, which for a part of the mesh is a split of the world: all ranks of the
  /// mesh must ask for the same sets in the same order, as they do where they call plans and verbs in the
  /// same order. Sets that part the ranks alike share one split, and what parts none is the world. The
  /// reference lives as long as the mesh. Throws what communicator::split throws, naming `where`.
  const communicator& along(axis_set s, std::source_location where = std::source_location::current()) const {
    return state_->along(s, where);
  }
  /// The same ranks over memory of the host, made as along() makes them.
  const communicator& control(axis_set s,
                              std::source_location where = std::source_location::current()) const {
    return state_->control(s, where);
  }

  friend bool operator==(const mesh& a, const mesh& b) { return a.state_ == b.state_; }

 private:
  struct state {
    state(communicator w, mesh_shape m, partita::device_queue<Device> q, std::size_t entries)
        : world(std::move(w)),
          shape(m),
          at(),
          queue(std::move(q)),
          tile_entries(entries),
          memory(device_memory_of(queue)) {
      if (m.row < 1 || m.col < 1 || m.depth < 1 || m.size() != world.size())
        throw_error<mesh_error>({"mesh ", m, " does not fill ", world.size(), " ranks"});
      at = m.at(world.rank());
    }

    const communicator& control(axis_set s, std::source_location where) {
      return entered(on_host[s.bits], s, [&] { return host_ranks(parting(s), where); });
    }
    const communicator& along(axis_set s, std::source_location where) {
      if (!memory) return control(s, where);
      return entered(on_place[s.bits], s, [&] {
        std::shared_ptr<transport>& ranks = place_groups[parting(s).bits];
        if (!ranks) ranks = host_ranks(parting(s), where)->on_memory(memory);
        return ranks;
      });
    }

    communicator world;
    mesh_shape shape;
    coordinates at;
    partita::device_queue<Device> queue;
    std::size_t tile_entries;

   private:
    /// Those axes of a set that have several ranks.
    axis_set parting(axis_set s) const {
      for (const axis a : all_axes)
        if (shape[a] == 1) s = s - a;
      return s;
    }
    const std::shared_ptr<transport>& host_ranks(axis_set s, std::source_location where) {
      std::shared_ptr<transport>& ranks = host_groups[s.bits];
      if (!ranks && shape.size(s) == 1) ranks = std::make_shared<detail::self_transport>();
      if (!ranks && shape.size(s) == shape.size()) ranks = world.transport();
      if (!ranks) {
        const int color = partition::rank_in_group(shape, every_axis - s, at),
                  key = partition::rank_in_group(shape, s, at);
        ranks = world.split(color, key, "", where).transport();
      }
      return ranks;
    }
    /// `made`, or the ranks that make() returns, entered in the ledger under the name of `s`.
    template <class Make>
    const communicator& entered(std::optional<communicator>& made, axis_set s, Make make) {
      if (!made) made = world.with_transport(make()).entered_under(name_of(s));
      return *made;
    }

    std::shared_ptr<comm::device_memory> memory;
    std::array<std::shared_ptr<transport>, 8> host_groups, place_groups;  ///< by the axes that part the ranks
    std::array<std::optional<communicator>, 8> on_host, on_place;
  };

  std::shared_ptr<state> state_;
};

}  // namespace partita

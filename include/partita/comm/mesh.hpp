#pragma once
/// Ranks arranged on the axes row, col, depth, with a communicator along every set of axes and the queue of
/// their place.

#include <array>
#include <memory>

#include "partita/comm/communicator.hpp"
#include "partita/comm/self.hpp"
#include "partita/memory/place.hpp"
#include "partita/partition/mesh_shape.hpp"

namespace partita {

/// A value handle: copies are the same mesh. Matrices hold one, so no operation takes a communicator or a
/// queue. What travels along axes is memory of the place: blocks of matrices. Counts, lists of indices and
/// what else the host computes with lie in its memory and travel by control() or world(). On the host's own
/// place that is one and the same.
template <class Place>
class mesh {
 public:
  using place = Place;

  /// `tile_entries`: see tile_entries(). Every rank of `world` must call, with the same shape. Throws
  /// mesh_error when the shape does not fill the ranks.
  mesh(communicator world, mesh_shape shape, partita::queue<Place> queue = partita::queue<Place>(),
       std::size_t tile_entries = most_tile_entries)
      : state_(std::make_shared<const state>(std::move(world), shape, std::move(queue), tile_entries)) {}

  mesh_shape shape() const { return state_->shape; }
  int size() const { return state_->world.size(); }
  int rank() const { return state_->world.rank(); }
  coordinates at() const { return state_->at; }
  /// All ranks, over memory of the host.
  const communicator& world() const { return state_->world; }
  const partita::queue<Place>& queue() const { return state_->queue; }
  /// A sparse tile with more entries than this is kept in parts of consecutive rows.
  std::size_t tile_entries() const { return state_->tile_entries; }
  partita::ledger& ledger() const { return state_->world.ledger(); }

  /// The ranks that differ from this one only in the axes of `s`, over memory of the place; rank p of it
  /// stands at member(shape(), s, at(), p), which of every_axis is rank p of the mesh.
  const communicator& along(axis_set s) const { return state_->along[s.bits]; }
  /// The same ranks over memory of the host.
  const communicator& control(axis_set s) const { return state_->control[s.bits]; }

  friend bool operator==(const mesh& a, const mesh& b) { return a.state_ == b.state_; }

 private:
  struct state {
    state(communicator w, mesh_shape m, partita::queue<Place> q, std::size_t entries)
        : world(std::move(w)),
          shape(m),
          at(),
          queue(std::move(q)),
          tile_entries(entries),
          control(every_group(world, m)),
          along(over(device_memory_of(queue), m, control)) {
      at = shape.at(world.rank());
    }

    /// Sets of axes that part the ranks alike share a transport, and what parts none of them is the world.
    static std::array<communicator, 8> every_group(const communicator& world, mesh_shape m) {
      if (m.row < 1 || m.col < 1 || m.depth < 1 || m.size() != world.size())
        throw mesh_error("mesh " + to_string(m) + " does not fill " + std::to_string(world.size()) +
                         " ranks");
      const coordinates me = m.at(world.rank());
      std::array<std::shared_ptr<transport>, 8> made;
      const auto group = [&](unsigned bits) {
        const axis_set s(bits);
        std::shared_ptr<transport>& ranks = made[parting(m, s).bits];
        if (!ranks && m.size(s) == 1) ranks = std::make_shared<detail::self_transport>();
        if (!ranks && m.size(s) == m.size()) ranks = world.model();
        if (!ranks) ranks = world.split(position(m, every_axis - s, me), position(m, s, me), "").model();
        return world.with(ranks).entered_under(name_of(s));
      };
      return {group(0), group(1), group(2), group(3), group(4), group(5), group(6), group(7)};
    }
    /// Those axes of a set that have several ranks.
    static axis_set parting(mesh_shape m, axis_set s) {
      for (const axis a : all_axes)
        if (m[a] == 1) s = s - a;
      return s;
    }

    static std::array<communicator, 8> over(const std::shared_ptr<device_memory>& memory, mesh_shape m,
                                            std::array<communicator, 8> groups) {
      std::array<std::shared_ptr<transport>, 8> made;
      for (unsigned bits = 0; memory && bits < groups.size(); ++bits) {
        std::shared_ptr<transport>& ranks = made[parting(m, axis_set(bits)).bits];
        if (!ranks) ranks = groups[bits].over(memory).model();
        groups[bits] = groups[bits].with(ranks);
      }
      return groups;
    }

    communicator world;
    mesh_shape shape;
    coordinates at;
    partita::queue<Place> queue;
    std::size_t tile_entries;
    std::array<communicator, 8> control, along;
  };

  std::shared_ptr<const state> state_;
};

}  // namespace partita

// SPDX-License-Identifier: Apache-2.0
// Lists in far memory, and matrices that are set up with them.
#include "partita/memory/large_list.hpp"

#include <set>

#include "partita/memory/mapped_store.hpp"
#include "partita/partition/policies.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/far_store.hpp"
#include "support/matrices.hpp"

namespace test_large_list {

using namespace test_support;
using local::list_allocator, local::large_list;

/// A store that counts.
class counting_store : public far_store {
 public:
  void* allocate(std::size_t bytes) override {
    used += bytes;
    peak = std::max(peak, used);
    void* const block = ::operator new(bytes);
    blocks_.insert(block);
    return block;
  }
  void release(void* memory, std::size_t bytes) noexcept override {
    used -= bytes;
    blocks_.erase(memory);
    ::operator delete(memory);
  }
  bool contains(const void* address) const override { return blocks_.contains(address); }

  std::size_t used = 0, peak = 0;

 private:
  std::set<const void*> blocks_;  ///< their beginnings
};

/// Some values of every kind of entry, some of them repeated.
std::vector<triplet<double>> entries_with_repeats(matrix_shape shape) {
  std::vector<triplet<double>> entries = sparse_entries(shape, 5);
  for (std::size_t e = 0, count = entries.size(); e < count; e += 3) entries.push_back(entries[e]);
  return entries;
}

std::pair<std::vector<local_index>, std::vector<double>> tiles_of(const auto& a) {
  const auto structure = a.local()->structure.span();
  const auto values = a.local()->values.span();
  return {{structure.begin(), structure.end()}, {values.begin(), values.end()}};
}

TEST_CASE("large_list: what is large is in the store, and goes back") {
  const auto store = std::make_shared<counting_store>();
  {
    large_list<global_index> list(list_allocator<std::byte>(store, 100));
    list.resize(12);
    CHECK(store->used == 0);
    list.reserve(13);
    CHECK(store->used == 13 * 8);
    list.assign(13, 7);
    large_list<global_index> copy = list, moved = std::move(list);
    CHECK(store->used == 2 * 13 * 8);
    CHECK(copy == moved);
    CHECK(std::accumulate(moved.begin(), moved.end(), global_index{0}) == 13 * 7);
    copy = {1, 2};
    moved = large_list<global_index>();
    CHECK(store->used == 13 * 8);
    CHECK(copy == large_list<global_index>{1, 2});
  }
  CHECK(store->used == 0);
  large_list<float> plain(3);
  CHECK(plain.get_allocator() == list_allocator<float>());
  CHECK(plain.get_allocator() != list_allocator<float>(store));
}

TEST_CASE("large_list: elements without a value are not initialised, others are") {
  const auto store = new_far_store();
  large_list<int> list(1 << 16, 5, list_allocator<int>(store, 1));
  CHECK(store->contains(list.data()));
  list.clear();
  list.resize(1 << 16);
  CHECK(list[99] == 5);
  list.resize((1 << 16) + 3, 8);
  CHECK(list[99] == 5);
  CHECK(list.back() == 8);
}

TEST_CASE("list_memory: as the buffers of the queue") {
  const device_queue<host> near, far;
  CHECK(local::list_memory(near) == list_allocator<std::byte>());
  const auto store = new_far_store();
  use_far(far, {.store = store, .window = 1024, .from = 50});
  CHECK(local::list_memory(far) == list_allocator<std::byte>(store, 50));
  CHECK(local::list_memory(far) != list_allocator<std::byte>(store, 51));
  const device_queue<host> large;
  use_far(large, {.store = store, .window = 1024, .from = std::size_t{1} << 30});
  CHECK(local::list_memory(large) == list_allocator<std::byte>(store, std::size_t{8} << 20));
}

TEST_CASE("far lists: matrices are set up with the same bits, and from the store") {
  const matrix_shape shape{37, 23};
  const std::vector<int> ranks_tried{1, 2, 3, 4, 6, 8, 9};
  for_each_usual_mesh(ranks_tried, [&](const policy& p, mesh_shape mesh_of) {
    const auto all = entries_with_repeats(shape);
    on_threads(mesh_of.size(), [&](const communicator& world) {
      const auto mine = share(all, world);
      const mesh<host> near(world, mesh_of), far(world, mesh_of);
      const auto store = std::make_shared<counting_store>();
      use_far(far.queue(), {.store = store, .window = 1024, .from = 1});
      const auto expected = distribute(near, p, shape, mine);
      {
        const auto a = distribute(far, p, shape, mine);
        CHECK_MESSAGE(tiles_of(a) == tiles_of(expected), p.name, " on mesh ", to_string(mesh_of));
        CHECK_MESSAGE(tiles_of(transposed(a)) == tiles_of(transposed(expected)), p.name);
        const std::size_t entries = a.local()->nonzeros;
        if (entries > 0) CHECK(store->peak >= entries * (sizeof(global_index) + sizeof(double)));
      }
    });
  });
}

}  // namespace test_large_list

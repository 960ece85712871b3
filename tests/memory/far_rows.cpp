// SPDX-License-Identifier: Apache-2.0
// Rows of a far matrix for batches: the rows, and how many are read.
#include "partita/memory/far_rows.hpp"

#include <doctest/doctest.h>
#include <set>

#include "partita/local/pass.hpp"
#include "support/far_store.hpp"

namespace test_far_rows {

using namespace partita;
using host_queue = device_queue<host>;

constexpr local_index rows = 90, cols = 6;
constexpr std::size_t row_bytes = cols * sizeof(double);
constexpr interval here{200, 200 + rows};

/// Batches of `size` distinct rows, among them rows that others have.
std::vector<std::vector<global_index>> some_batches(int count, std::size_t size) {
  std::vector<std::vector<global_index>> all;
  for (int b = 0; b < count; ++b) {
    std::set<global_index> ids;
    for (int k = 0; ids.size() < size; ++k)
      ids.insert(here.begin + static_cast<global_index>(base::random_bits(1, b, k) % (rows + 20)));
    all.emplace_back(ids.rbegin(), ids.rend());
  }
  return all;
}
std::vector<local_index> own(const std::vector<global_index>& ids) {
  std::vector<local_index> found;
  for (const global_index id : ids)
    if (here.contains(id)) found.push_back(static_cast<local_index>(id - here.begin));
  return found;
}

/// The rows that Belady's rule reads with so many places: a batch evicts rows that neither it nor the batch
/// before needs, those first that are needed last.
std::size_t least_reads(const std::vector<std::vector<global_index>>& batches, std::size_t places) {
  std::set<local_index> near, before;
  std::size_t read = 0;
  for (std::size_t b = 0; b < batches.size(); ++b) {
    const std::vector<local_index> list = own(batches[b]);
    std::set<local_index> now(list.begin(), list.end());
    if (now.size() > places / 2) {
      read += now.size();
      before.clear();
      continue;
    }
    const auto next = [&](local_index r) {
      for (std::size_t k = b + 1; k < batches.size(); ++k) {
        const std::vector<local_index> later = own(batches[k]);
        if (later.size() <= places / 2 && std::ranges::count(later, r) > 0) return k;
      }
      return batches.size();
    };
    for (const local_index r : now) {
      if (near.contains(r)) continue;
      ++read;
      if (near.size() == places) {
        std::vector<local_index> free;
        for (const local_index k : near)
          if (!now.contains(k) && !before.contains(k)) free.push_back(k);
        near.erase(*std::ranges::max_element(free, {}, next));
      }
      near.insert(r);
    }
    before = now;
  }
  return read;
}

/// A queue on which matrices are far, and a table gets these places.
host_queue with_places(std::size_t places) {
  const host_queue q;
  q.limit_memory(512 + 2 * places * row_bytes);
  use_far(q, {.store = test_support::new_far_store(), .window = 512, .from = rows * row_bytes});
  return q;
}

struct far_matrix {
  explicit far_matrix(const host_queue& q) : memory(q, rows * cols) {
    std::iota(memory.span().begin(), memory.span().end(), 1.0);
  }
  matrix_view<const double> view() const { return {memory.data(), rows, cols, cols}; }
  buffer<double, host> memory;
};

/// Whether all rows of a batch are where they should be.
bool arrived(memory::row_cache& cache, const far_matrix& x, const std::vector<local_index>& list,
             std::span<const local_index> places) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const double* const row =
        places.empty() ? x.view().row_data(list[i])
                       : reinterpret_cast<const double*>(cache.data()) + std::size_t(places[i]) * cols;
    if (!std::equal(row, row + cols, x.view().row_data(list[i]))) return false;
  }
  return true;
}

TEST_CASE("far memory: foreseen batches read what Belady's rule does, and no rows are lost") {
  for (const std::size_t places : {40, 64, 80, 89})
    for (const std::size_t size : {5, 20, 38}) {
      const host_queue q = with_places(places);
      const far_matrix x(q);
      const auto kept = local::make_row_cache<double>(q, x.view(), here.begin);
      memory::row_cache& cache = *kept;
      REQUIRE(cache.places() == static_cast<local_index>(places));
      CHECK(cache.chooses());
      const auto batches = some_batches(12, size);
      for (int epoch = 0; epoch < 2; ++epoch) {
        const memory::far_traffic before = far_of(q)->traffic();
        cache.begin();
        for (const auto& ids : batches) cache.foresee(ids), cache.end_batch();
        for (const auto& ids : batches) {
          const std::vector<local_index> list = own(ids);
          const std::span<const local_index> found = cache.assign(list);
          cache.finish();
          CHECK(arrived(cache, x, list, found));
        }
        const memory::far_traffic t = far_of(q)->traffic() - before;
        CHECK(t.rows_read == least_reads(batches, places));
        CHECK(t.read == t.rows_read * row_bytes);
        CHECK(t.operand_rows == rows);
        CHECK(t.chunks == batches.size());
      }
    }
}

TEST_CASE("far memory: rows of the batch before stay while those of the next one arrive") {
  const host_queue q = with_places(40);
  const far_matrix x(q);
  const auto kept = local::make_row_cache<double>(q, x.view(), here.begin);
  memory::row_cache& cache = *kept;
  const auto batches = some_batches(12, 20);
  cache.begin();
  for (const auto& ids : batches) cache.foresee(ids), cache.end_batch();
  std::vector<local_index> list, places;
  for (const auto& ids : batches) {
    const std::vector<local_index> before = std::exchange(list, own(ids));
    const std::vector<local_index> places_before = places;
    const std::span<const local_index> found = cache.assign(list);
    cache.finish();
    places.assign(found.begin(), found.end());
    REQUIRE(places.size() == list.size());
    CHECK(arrived(cache, x, before, places_before));
    CHECK(arrived(cache, x, list, places));
  }
}

TEST_CASE("far memory: with places for all, each row is read once; without, each batch is read in place") {
  const auto batches = some_batches(9, 30);
  const auto run = [&](std::size_t places) {
    const host_queue q = with_places(places);
    const far_matrix x(q);
    const auto kept = local::make_row_cache<double>(q, x.view(), here.begin);
    memory::row_cache& cache = *kept;
    CHECK(!cache.chooses() == (places == 0 || places == rows));
    cache.begin();
    for (const auto& ids : batches) {  // that nobody has foreseen
      const std::vector<local_index> list = own(ids);
      const std::span<const local_index> found = cache.assign(list);
      cache.finish();
      CHECK(found.empty() == (places < rows));
      CHECK(arrived(cache, x, list, found));
    }
    return far_of(q)->traffic().rows_read;
  };
  std::set<local_index> distinct;
  std::size_t all = 0;
  for (const auto& ids : batches) {
    const std::vector<local_index> list = own(ids);
    distinct.insert(list.begin(), list.end());
    all += list.size();
  }
  CHECK(run(rows) == distinct.size());
  CHECK(run(70) == all);
  CHECK(run(0) == all);
}

TEST_CASE("far memory: a batch that is not the one that was foreseen is refused") {
  const host_queue q = with_places(40);
  const far_matrix x(q);
  const auto kept = local::make_row_cache<double>(q, x.view(), here.begin);
  memory::row_cache& cache = *kept;
  cache.begin();
  const std::vector<global_index> ids{203, 207};
  cache.foresee(ids), cache.end_batch();
  CHECK_THROWS_WITH_AS(cache.assign(std::vector<local_index>{3, 8}),
                       "the rows of a batch are not those that were foreseen", error);
}

}  // namespace test_far_rows

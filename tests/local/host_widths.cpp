// SPDX-License-Identifier: Apache-2.0
// The host's sparse kernels at every width in tight allocations; rows of hubs; distances of prefetching.

#include "laws/width_laws.hpp"
#include "partita/local/kernels.hpp"

using namespace test_support;

TEST_CASE_TEMPLATE("cpu widths: products", T, float, double) { products_of_every_width<T>(); }
TEST_CASE_TEMPLATE("cpu widths: edge products", T, float, double) { edge_products_of_every_width<T>(); }
TEST_CASE_TEMPLATE("cpu widths: maxima", T, float, double) { maxima_of_every_width<T>(); }
TEST_CASE_TEMPLATE("cpu widths: maxima of zeros, infinities and NaN", T, float, double) {
  maxima_of_special_numbers_of_every_width<T>();
}
TEST_CASE_TEMPLATE("cpu hubs: a star", T, float, double) { stars_have_the_same_bits<T>(); }
TEST_CASE_TEMPLATE("cpu hubs: edge products of a star", T, float, double) {
  edge_products_of_stars_have_the_same_bits<T>();
}

// The number of vectors times that of strips is beyond 32 bits.
TEST_CASE("cpu widths: products and maxima of millions of columns") {
  constexpr local_index width = 6'000'001, offsets[] = {0, 1, 2}, columns[] = {1, 0};
  constexpr float values[] = {2, 3};
  std::vector<float> x(2 * std::size_t{width}), y(x.size(), -1);
  std::vector<local_index> arg(x.size(), -1);
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k % 8191);
  const device_queue<host> q;
  const local::csr_view<float> a{2, 2, offsets, columns, values};
  const matrix_view<const float> from{x.data(), 2, width};
  const matrix_view<float> to{y.data(), 2, width};
  const auto wrong = [&](float first, float second) {
    std::size_t found = 0;
    for (std::size_t j = 0; j < width; ++j)
      found += y[j] != first * x[width + j] || y[width + j] != second * x[j];
    return found;
  };
  spmm_fused(q, a, from, {}, to);
  CHECK(wrong(2, 3) == 0);
  max_aggregate(q, a, from, to, matrix_view<local_index>{arg.data(), 2, width});
  CHECK(wrong(1, 1) == 0);
}

namespace {

template <partita::on_host::instruction_set I>
struct exponentials_in_place {
  template <class T>
  void operator()(T* x, std::size_t count) const {
    partita::on_host::exponentials<I>(x, count);
  }
};

}  // namespace

TEST_CASE_TEMPLATE("cpu widths: exponentials", T, float, double) {
  for (local_index n = 1; n <= widest; ++n) {
    const exact_block<T> x(1, n, 1);
    const std::vector<T> z = x.memory.values();
    partita::on_host::with_instructions([&](auto i) {
      partita::on_host::run_with<i>(exponentials_in_place<i>(), x.memory.data(), static_cast<std::size_t>(n));
    });
    std::vector<T> expected;
    for (const T v : z) expected.push_back(std::exp(v));
    CHECK(distance(x.memory.values(), expected) < width_tolerance<T>);
  }
}

TEST_CASE("pieces of a long row cover it, and depend on its length only") {
  using partita::on_host::row_pieces;
  for (const local_index entries : {8193, 8194, 40'001, 262'144, 262'145, 1 << 30})
    for (const local_index first : {0, 5, 1 << 30}) {
      const row_pieces pieces(first, first + (entries - 1)), there(0, entries - 1);
      CHECK(pieces.begin(0) == first);
      CHECK(pieces.begin(pieces.count) == first + (entries - 1));
      CHECK(pieces.count <= row_pieces::most);
      CHECK(pieces.count > 1);
      for (int k = 0; k < pieces.count; ++k) {
        CHECK(pieces.begin(k) < pieces.begin(k + 1));
        CHECK(pieces.begin(k) - first == there.begin(k));
      }
    }
}

TEST_CASE("a prefetch distance is a number of entries") {
  using partita::on_host::prefetch_distance_named;
  CHECK(!prefetch_distance_named(nullptr));
  CHECK(!prefetch_distance_named(""));
  CHECK(*prefetch_distance_named("0") == 0);
  CHECK(*prefetch_distance_named("48") == 48);
  for (const char* text : {"-1", "4097", "12a", "many", "99999999999"})
    CHECK_THROWS_WITH(
        prefetch_distance_named(text),
        (std::string("PARTITA_PREFETCH must be a number of entries from 0 to 4096, and is ") + text).c_str());
}

TEST_CASE("the prefetch distance found is the fastest, and the usual one where little is gained") {
  using partita::on_host::prefetch_search;
  const auto found = [](auto seconds) {
    prefetch_search search(32, std::nullopt);
    CHECK(search.distance() == 32);
    for (int k = 0; !search.found(); ++k) {
      REQUIRE(k < 1000);
      const std::size_t number = search.next();
      const double disturbed = k % 5 == 0 ? 10 : 1;
      search.add(number, disturbed * seconds(prefetch_search::distances[number]));
    }
    return search.distance();
  };
  CHECK(found([](local_index d) { return d == 64 ? 1.0 : 2.0; }) == 64);
  CHECK(found([](local_index d) { return d == 16 ? 1.0 : 1.1; }) == 16);
  CHECK(found([](local_index d) { return d == 64 ? 1.0 : 1.02; }) == 32);
  const prefetch_search given(32, 7);
  CHECK(given.found());
  CHECK(given.distance() == 7);
}

/// Long enough that distances are tried.
TEST_CASE("products have the same bits while prefetch distances are tried, and after") {
  constexpr local_index rows = sanitized ? 9'000 : 18'000, k = 70'000;
  const exact_sparse<float> a(std::vector<local_index>(rows, 32), k);
  for (const local_index f : {16, 40, 70}) {
    const exact_block<float> x(k, f, 1);
    std::vector<float> first;
    for (int round = 0; round < 4; ++round) {
      const exact_block<float> y(rows, f, 2);
      spmm(partita::device_queue<partita::host>(1 + round), a.view(), x.view(), 0.0f, y.view());
      if (first.empty()) first = y.memory.values();
      CHECK(same_bits(y.memory.values(), first));
    }
  }
  if (std::getenv("PARTITA_PREFETCH") == nullptr && !sanitized)
    CHECK(partita::on_host::prefetch_search_of(16 * sizeof(float)).found());
}

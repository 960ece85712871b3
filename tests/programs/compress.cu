// SPDX-License-Identifier: Apache-2.0
// Compressed rows built on the device, against what make_csr_tiles() builds of the same entries on the host.
#include <doctest/doctest.h>

#include "bench/support/device_compress.hpp"
#include "partita/matrix/tiles.hpp"
#include "partita/memory/host.hpp"
#include "support/on_device.hpp"

using partita::interval, partita::local_index, partita::triplet, partita::local::csr_view;
using device = partita::cuda_device;

namespace {

template <class T>
std::vector<T> list(const partita::device_queue<device>& q, const partita::buffer<T, device>& memory) {
  std::vector<T> values(memory.size());
  partita::copy(q, memory.span(), std::span(values));
  return values;
}
template <class T>
std::vector<T> list(const partita::buffer<T, partita::host>& memory) {
  return {memory.span().begin(), memory.span().end()};
}

/// `count` entries in 3000 rows and 4000 columns, about one in ten at the place of another.
template <class T>
std::vector<triplet<T>> entries(std::int64_t count) {
  std::vector<triplet<T>> list;
  for (std::int64_t e = 0; e < count; ++e) {
    const std::uint64_t random = partita::base::random_bits(3, e % 10 == 9 ? e / 2 : e, 0);
    list.push_back({static_cast<std::int64_t>(random % 3000), static_cast<std::int64_t>(random / 3000 % 4000),
                    static_cast<T>(partita::base::random_uniform(4, e, 0) - 0.5)});
  }
  return list;
}

}  // namespace

TEST_CASE_TEMPLATE("rows compressed on the device equal make_csr_tiles in every bit", T, float, double) {
  const partita::device_queue<device> q;
  const interval rows{0, 3000};
  for (const auto& columns :
       std::vector<std::vector<interval>>{{{0, 4000}}, {{1000, 4000}, {10, 10}, {0, 1000}}})
    for (const std::int64_t count : {0, 1, 1000, 300000}) {
      const auto given = entries<T>(count);
      const auto expected = partita::local::make_csr_tiles(partita::device_queue<partita::host>(), rows,
                                                           std::span<const interval>(columns), given);
      const auto found = bench::compress<T>(q, rows, columns, given);
      CHECK(found.nonzeros == expected.nonzeros);
      CHECK(list(q, found.structure) == list(expected.structure));
      CHECK(list(q, found.values) == list(expected.values));
    }
}

TEST_CASE_TEMPLATE("the transpose of the transpose, on the device", T, float, double) {
  const partita::device_queue<device> q;
  const std::vector<interval> columns{{0, 4000}};
  const auto a = bench::compress<T>(q, {0, 3000}, columns, entries<T>(100000));
  const auto view = [](const bench::compressed<T, device>& c, local_index rows, local_index cols) {
    return partita::local::csr_view<T>{rows, cols, c.structure.data(),
                                       c.structure.data() + partita::local::offsets_size(1, rows),
                                       c.values.data()};
  };
  const auto nonzeros = static_cast<local_index>(a.nonzeros);
  const auto b = bench::transpose(q, view(a, 3000, 4000), nonzeros);
  const auto c = bench::transpose(q, view(b, 4000, 3000), nonzeros);
  CHECK(b.nonzeros == a.nonzeros);
  CHECK(list(q, b.structure) != list(q, a.structure));
  CHECK(list(q, c.structure) == list(q, a.structure));
  CHECK(list(q, c.values) == list(q, a.values));
}

TEST_CASE("rows in parts on the device") {
  const partita::device_queue<device> q;
  const test_support::on_device<local_index> offsets(q, {3, 5, 7, 9, 11}), firsts(q, {-1, -1, -1});
  bench::partition_rows(q, 4, offsets.data(), std::span(firsts.data(), 3));
  CHECK(firsts.read() == std::vector<local_index>{0, 2, 4});
}

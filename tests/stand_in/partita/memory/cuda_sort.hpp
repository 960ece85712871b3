#pragma once
// Stands in for partita/memory/cuda_sort.hpp: the sort of the standard library, when the stream gets there.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "partita/memory/cuda.hpp"

namespace partita::detail {

/// Keys with their values, and memory of the same sizes.
template <class Key, class Value>
struct sorted_pairs {
  Key* keys;
  Value* values;
  Key* other_keys;
  Value* other_values;
};

/// Sorts `count` pairs by the low `bits` bits of their keys, which are not negative; pairs with equal keys
/// keep their order. `pairs` says afterwards where they are: here in the other memory, as nobody may rely on
/// either.
template <class Key, class Value>
void sort_pairs(const queue<cuda>& q, std::int64_t count, int bits, sorted_pairs<Key, Value>& pairs) {
  stand_in::launch(q.stream(), [=] {
    const Key mask =
        bits < static_cast<int>(8 * sizeof(Key)) ? (Key{1} << bits) - 1 : static_cast<Key>(~Key{0});
    std::vector<std::int64_t> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return (pairs.keys[a] & mask) < (pairs.keys[b] & mask);
    });
    for (std::int64_t t = 0; t < count; ++t) {
      pairs.other_keys[t] = pairs.keys[order[static_cast<std::size_t>(t)]];
      pairs.other_values[t] = pairs.values[order[static_cast<std::size_t>(t)]];
    }
    std::fill_n(pairs.keys, count, static_cast<Key>(~Key{0}));
    std::fill_n(pairs.values, count, static_cast<Value>(-1));
  });
  check_cuda(cudaGetLastError(), "a sort's launch");
  pairs = {pairs.other_keys, pairs.other_values, pairs.keys, pairs.values};
}

}  // namespace partita::detail

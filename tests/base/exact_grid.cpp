// SPDX-License-Identifier: Apache-2.0
// Terms on a grid add up without rounding, in every order.
#include "partita/base/exact_grid.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <numeric>
#include <vector>

#include "partita/base/random.hpp"

namespace test_exact_grid {

using namespace partita;
using base::exact_grid;

/// Products of numbers of both signs and many magnitudes.
std::vector<double> factors(std::uint64_t seed, std::size_t count) {
  std::vector<double> x;
  for (std::size_t i = 0; i < count; ++i)
    x.push_back(std::ldexp(base::random_uniform(seed, i, 0) - 0.5,
                           static_cast<int>(base::random_bits(seed, i, 1) % 60)));
  return x;
}

double largest(const std::vector<double>& x) {
  return std::abs(
      *std::max_element(x.begin(), x.end(), [](double a, double b) { return std::abs(a) < std::abs(b); }));
}

double sum(const std::vector<double>& x, const std::vector<double>& y, auto part) {
  double total = 0;
  for (std::size_t i = 0; i < x.size(); ++i) part.template add_product<double>(x[i], y[i], total);
  return total;
}

TEST_CASE("products of floats are exact, those of doubles are rounded with the sum they are added to") {
  for (const double x : factors(1, 1000)) {
    const double y = 1 / (3 + x * x);
    double sum = -(x * y);
    base::multiply_add<double>(x, y, sum);
    CHECK(sum == std::fma(x, y, -(x * y)));
    const auto narrow = static_cast<double>(static_cast<float>(x)),
               other = static_cast<double>(static_cast<float>(y));
    sum = -(narrow * other);
    base::multiply_add<float>(narrow, other, sum);
    CHECK(sum == 0);
  }
}

TEST_CASE("the parts of a product are its nearest multiple of the unit, and what that leaves") {
  // 2^e = 2^-42 for 2^9 terms of at most 1.
  const exact_grid grid = exact_grid::of_products(0.75, 0.75, 511);
  const double unit = std::ldexp(1.0, -42), x = 0.5 + std::ldexp(1.0, -30), y = 0.5 + std::ldexp(1.0, -52);
  double coarse = 0, fine = 0;
  grid.coarse().add_product<double>(x, y, coarse);
  grid.fine().add_product<double>(x, y, fine);
  CHECK(coarse == 0.25 + std::ldexp(1.0, -31));
  CHECK(std::fmod(coarse, unit) == 0);
  CHECK(fine == std::ldexp(1.0, -53) + std::ldexp(1.0, -82));
}

TEST_CASE("sums of products do not depend on the order, and have the digits of their type") {
  const std::vector<double> x = factors(2, 5000), y = factors(3, 5000);
  const exact_grid grid = exact_grid::of_products(largest(x), largest(y), 5000);
  long double exact = 0;
  for (std::size_t i = 0; i < x.size(); ++i) exact += static_cast<long double>(x[i]) * y[i];
  const double coarse = sum(x, y, grid.coarse()), fine = sum(x, y, grid.fine());
  const double scale = largest(x) * largest(y);
  CHECK(std::abs(static_cast<double>(coarse - exact)) < 1e-6 * scale);
  CHECK(std::abs(static_cast<double>(coarse + static_cast<long double>(fine) - exact)) < 1e-15 * scale);
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    std::sort(order.begin(), order.end(),
              [&](auto a, auto b) { return base::random_bits(seed, a, 7) < base::random_bits(seed, b, 7); });
    std::vector<double> u, v;
    for (const std::size_t i : order) {
      u.push_back(x[i]);
      v.push_back(y[i]);
    }
    CHECK(sum(u, v, grid.coarse()) == coarse);
    CHECK(sum(u, v, grid.fine()) == fine);
  }
}

TEST_CASE("the grid of nothing, of many, and of what is not finite") {
  CHECK(exact_grid::of_products(0, 1, 0).coarse()(0.0) == 0);
  CHECK(exact_grid::of_products(1, 1, global_index{1} << 40).coarse()(0.75) == 0.75);
  CHECK(std::isnan(exact_grid::of_products(std::numeric_limits<double>::infinity(), 1, 4).coarse()(1.0)));
  CHECK(std::isnan(exact_grid::of_products(NAN, 1, 4).fine()(1.0)));
}

}  // namespace test_exact_grid

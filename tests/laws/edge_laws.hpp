// SPDX-License-Identifier: Apache-2.0
#pragma once
// Laws of kernels of edges that need no reference, and the sizes at which they are held against it.

#include "support/edges.hpp"

namespace test_support {

/// What sanitizers see of a list.
inline std::vector<local_index> seen(const std::vector<local_index>& all,
                                     const std::vector<local_index>& some) {
  return sanitized ? some : all;
}

template <class T, class Device>
void scores_and_maps() {
  for (const local_index heads : seen({0, 1, 3, 8, 9}, {0, 3, 8})) {
    const local_index many = std::is_same_v<Device, host> || heads == 3 ? 3001 : 97;
    for (const auto& [m, k] : std::vector<std::array<local_index, 2>>{
             {0, 0}, {0, 4}, {4, 0}, {1, 1}, {23, 19}, {2, 1000}, {many, 400}}) {
      check_scores<T, Device>(m, k, heads);
      check_maps<T, Device>(m, k, heads);
    }
  }
}

/// Columns that a slice lacks, before and behind: on a device those that go other ways.
template <class Device>
std::vector<std::array<local_index, 2>> columns_cut_off() {
  if (!std::is_same_v<Device, host>) return {{0, 0}, {0, 11}, {4, 4}, {7, 1}, {16, 0}};
  std::vector<std::array<local_index, 2>> all;
  for (const local_index first : seen({0, 1, 4, 7, 16}, {0, 7}))
    for (const local_index cut : seen({0, 1, 11}, {0, 11})) all.push_back({first, cut});
  return all;
}

template <class T, class Device>
void products_of_slices_cut_anywhere() {
  constexpr bool on_host = std::is_same_v<Device, host>;
  const auto check_rest = [](local_index m, local_index k, head_slice s, local_index cut, placing place) {
    check_products<T, Device>(m, k, s, s.heads * s.head_width - s.first_col - cut, place);
  };
  for (const local_index heads : {1, 3, 8})
    for (const local_index width : seen({1, 2, 4, 5, 8, 16, 33}, {1, 5, 16}))
      for (const auto& [first, cut] : columns_cut_off<Device>())
        if (first + cut <= heads * width)
          check_rest(23, 19, {heads, width, first}, cut, first % 4 == 0 ? placing{4, 0} : placing{});
  for (const head_slice s : {head_slice{1, 41, 3},
                             {3, 5, 2},
                             {8, 8, 0},
                             {8, 8, 12},
                             {2, 130, 5},
                             {9, 1, 0},
                             {1, 48, 0},
                             {40, 4, 0},
                             {35, 2, 1}}) {
    const bool wide = s.heads * s.head_width > (sanitized ? 40 : 100);
    const local_index on_device = s.head_width == 5 ? 3001 : 97;
    const local_index many = on_host ? (wide ? 301 : 3001) : on_device, long_row = on_host ? 1000 : 300;
    for (const auto& [m, k] :
         std::vector<std::array<local_index, 2>>{{0, 0}, {0, 4}, {4, 0}, {1, 1}, {2, long_row}, {many, 400}})
      check_rest(m, k, s, 0, {});
  }
}

template <class T, class Device>
void largest_neighbours() {
  for (const local_index f : seen({0, 1, 7, 16, 33, 64}, {0, 7, 16}))
    for (const auto& [m, k] :
         std::vector<std::array<local_index, 2>>{{0, 0}, {0, 4}, {4, 0}, {1, 1}, {23, 19}, {3001, 400}})
      check_max<T, Device>(m, k, f, f == 16 ? placing{0, 0} : placing{});
}

template <class T, class Device>
void an_infinite_neighbour_counts() {
  const sparse_block<T> a({2, 0, 1}, 3);
  const T infinity = std::numeric_limits<T>::infinity();
  const block<T> x(3, 2, std::vector<T>(6, -infinity));
  for (const auto& q : queues<Device>()) {
    stage<Device> at(q);
    staged_block<T, Device> y(q, block<T>(3, 2, 1, 0)), indices(q, block<T>(3, 2, 1, 0));
    const staged_indices<T, Device> where(at, 3, 2);
    max_aggregate(q, at.pattern(a), at(x), y.view(), where.view);
    where.put(at, indices.view());
    const auto first = static_cast<T>(2), last = static_cast<T>(4);
    CHECK(indices.fetch() == std::vector<T>{first, first, -1, -1, last, last});
    CHECK(y.fetch() == std::vector<T>{-infinity, -infinity, 0, 0, -infinity, -infinity});
  }
}

template <class T, class Device>
void a_neighbour_that_is_nan_counts() {
  sparse_block<T> a(std::vector<local_index>{3}, 3);
  std::iota(a.columns.end() - 3, a.columns.end(), 0);
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (const local_index at_entry : {0, 1, 2}) {
    block<T> x(3, 1, std::vector<T>{1, 1, 1});
    x.values[static_cast<std::size_t>(at_entry)] = nan;
    for (const auto& q : queues<Device>()) {
      stage<Device> at(q);
      staged_block<T, Device> y(q, block<T>(1, 1, 1, 0)), indices(q, block<T>(1, 1, 1, 0));
      const staged_indices<T, Device> where(at, 1, 1);
      max_aggregate(q, at.pattern(a), at(x), y.view(), where.view);
      where.put(at, indices.view());
      CHECK(std::isnan(y.fetch().front()));
      CHECK(indices.fetch().front() == static_cast<T>(a.offsets.front() + at_entry));
    }
  }
}

/// What `kernel(stage, staged block)` makes of y.
template <class Device, class T, class Kernel>
std::vector<T> result_of(const block<T>& y, Kernel kernel) {
  stage<Device> at(queues<Device>()[1]);
  staged_block<T, Device> r(at.queue, y);
  kernel(at, r);
  return r.fetch();
}

template <class Device>
void products_are_adjoint() {
  const sparse_block<double> p(301, 40);
  const partita::local::head_slice s{8, 5, 3};
  const block<double> x(40, 31, 1, 0), y(301, 31, 2, 0);
  block<double> values = edge_block(p, 8, 3);
  std::fill_n(values.values.begin(), 16, 0.0);
  const auto ax = result_of<Device>(y, [&](auto& at, auto& r) {
    edge_multiply(at.queue, at.pattern(p), s, at(values.values), at(x), 0.0, r.view());
  });
  const auto aty = result_of<Device>(x, [&](auto& at, auto& r) {
    edge_multiply_transposed(at.queue, inverse_of(at.queue, at.pattern(p)), s, at(values.values), at(y), 0.0,
                             r.view());
  });
  const auto dvalues = result_of<Device>(
      values, [&](auto& at, auto& r) { edge_dot(at.queue, at.pattern(p), s, at(y), at(x), 0.0, r.data()); });
  const double product = inner(ax, y.values);
  CHECK(std::abs(product) > 1e-3);
  CHECK(inner(x.values, aty) == doctest::Approx(product).epsilon(1e-12));
  CHECK(inner(values.values, dvalues) == doctest::Approx(product).epsilon(1e-12));
}

/// Compares each element of a gradient, from `from` on, with a difference of f.
void check_differences(numbers& at, const numbers& gradient, const auto& f, std::size_t from) {
  constexpr double step = 1e-6;
  for (std::size_t i = from; i < at.size(); ++i) {
    const double here = at[i];
    at[i] = here + step;
    const double above = f();
    at[i] = here - step;
    const double below = f();
    at[i] = here;
    CHECK(std::abs((above - below) / (2 * step) - gradient[i]) < 1e-8);
  }
}

template <class Device>
void gradients_of_softmax_are_differences() {
  const sparse_block<double> p(8, 6);
  const local_index heads = 3;
  block<double> source(6, heads, 1, 0), target(8, heads, 2, 0);
  const block<double> log_sum(8, heads, 3, 0);
  block<double> weights = edge_block(p, heads, 4);
  std::fill_n(weights.values.begin(), 2 * heads, 0.0);
  const auto alpha = [&] {
    return result_of<Device>(weights, [&](auto& at, auto& r) {
      staged_block<double, Device> sums(at.queue, log_sum);
      const auto s = at(source), t = at(target);
      edge_log_sum(at.queue, at.pattern(p), heads, 0.2, s, t, sums.view());
      edge_softmax(at.queue, at.pattern(p), heads, 0.2, s, t, sums.view(), r.data());
    });
  };
  const auto loss = [&] { return inner(alpha(), weights.values); };
  block<double> both(14, heads, 5, 0);
  both.values = result_of<Device>(both, [&](auto& at, auto& r) {
    staged_block<double, Device> sums(at.queue, log_sum), dots(at.queue, log_sum);
    const auto s = at(source), t = at(target);
    edge_log_sum(at.queue, at.pattern(p), heads, 0.2, s, t, sums.view());
    edge_row_dot(at.queue, at.pattern(p), heads, at(alpha()), at(weights.values), dots.view());
    staged_block<double, Device> edges(at.queue, weights);
    const partita::local::csr_view<double> staged = at.pattern(p);
    edge_softmax_gradient(at.queue, staged, inverse_of(at.queue, staged), heads, 0.2, s, t, sums.view(),
                          dots.view(), 0.0, edges.data(), r.view().block(0, 0, 6, heads),
                          r.view().block(6, 0, 8, heads));
  });
  CHECK(inner(both.values, both.values) > 1e-3);
  const auto middle = both.values.begin() + 6 * heads;
  check_differences(source.values, numbers(both.values.begin(), middle), loss, 0);
  check_differences(target.values, numbers(middle, both.values.end()), loss, 0);
}

template <class Device>
void large_scores_have_a_finite_softmax() {
  small_case c;
  sparse_block<double> p({2, 0, 1}, 3);
  p.offsets = c.offsets;
  p.columns = c.columns;
  const block<double> source{3, 2, {1e4, -1e6, 0, -1e6, 1e4, -1e4}}, target{3, 2, numbers(6)};
  const block<double> out(4, 2, c.out);
  const auto softmax = result_of<Device>(out, [&](auto& at, auto& r) {
    staged_block<double, Device> sums(at.queue, c.y);
    edge_log_sum(at.queue, at.pattern(p), 2, 0.5, at(source), at(target), sums.view());
    edge_softmax(at.queue, at.pattern(p), 2, 0.5, at(source), at(target), sums.view(), r.data());
  });
  CHECK(distance(softmax, {-1, -1, 0.5, 0, 0.5, 1, 1, 1}) < 1e-9);
}

/// Shapes are refused before any memory is touched.
template <class Device>
void edges_refuse_shapes(const partita::device_queue<Device>& q) {
  using partita::shape_error;
  const partita::local::csr_view<double> a{3, 3, nullptr, nullptr, nullptr};
  const matrix_view<double> x{nullptr, 3, 2, 2}, wrong{nullptr, 4, 2, 2};
  const matrix_view<local_index> where{nullptr, 4, 2, 2};
  const partita::local::csr_inverse<Device> inverse{3, 3, {}, {}, {}}, other{3, 4, {}, {}, {}};
  double* const out = nullptr;
  const partita::buffer<local_index, Device> nothing(q, 1);
  CHECK_THROWS_AS(edge_log_sum(q, a, 2, 0.5, wrong, x, x), shape_error);
  CHECK_THROWS_AS(edge_log_sum(q, a, 3, 0.5, x, x, x), shape_error);
  CHECK_THROWS_AS(edge_log_sum(q, a, 2, 0.5, x, x, wrong), shape_error);
  CHECK_THROWS_AS(edge_softmax(q, a, 2, 0.5, x, x, wrong, out), shape_error);
  CHECK_THROWS_AS(edge_softmax_gradient(q, a, inverse, 2, 0.5, x, x, x, wrong, 0.0, out, x, x), shape_error);
  CHECK_THROWS_AS(edge_softmax_gradient(q, a, other, 2, 0.5, x, x, x, x, 0.0, out, x, x), shape_error);
  CHECK_THROWS_AS(edge_row_dot(q, a, 2, out, out, wrong), shape_error);
  CHECK_THROWS_AS(edge_row_fold(q, a, 2, smaller_of<double>{}, out, wrong), shape_error);
  CHECK_THROWS_AS(edge_multiply(q, a, {1, 2, 0}, out, wrong, 0.0, x), shape_error);
  CHECK_THROWS_AS(edge_multiply_transposed(q, inverse, {1, 2, 0}, out, wrong, 0.0, x), shape_error);
  CHECK_THROWS_AS(edge_dot(q, a, {1, 2, 1}, x, x, 0.0, out), shape_error);
  CHECK_THROWS_AS(max_aggregate(q, a, x, x, where), shape_error);
  const auto way =
      max_scatter_pattern(q, partita::local::csr_view<double>{0, 3, nothing.data(), nullptr, nullptr, 0});
  const matrix_view<double> none{nullptr, 0, 2, 2};
  CHECK_THROWS_AS(max_scatter(q, way, where, none, x), shape_error);
  CHECK_THROWS_AS(max_scatter(q, way, where.block(0, 0, 0, 2), none, none), shape_error);
  try {
    edge_multiply(q, a, {2, 2, 3}, out, x, 0.0, x);
    FAIL("edge_multiply accepted columns of no head");
  } catch (const shape_error& failure) {
    CHECK(std::string(failure.what()) == "edge_multiply: columns [3, 5) are not among 2 heads of 2");
  }
}

}  // namespace test_support

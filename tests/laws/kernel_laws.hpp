// SPDX-License-Identifier: Apache-2.0
#pragma once
// What kernels of dense blocks must do anywhere: the reference's results, and the same bits again.

#include "laws/spmm_laws.hpp"

namespace test_support {

template <class T, class Device>
void check_gemm(local_index m, local_index n, local_index k, bool ta, bool tb) {
  for (const T beta : {T{0}, T{1}, T(-0.75)})
    for (const T alpha : {T{1}, T(0.5), T{0}}) {
      block<T> a(ta ? k : m, ta ? m : k, 1, placing{}), b(tb ? n : k, tb ? k : n, 2, 0), c(m, n, 3, 2);
      if (beta == 0) c.poison();
      INFO("k ", k, " ta ", ta, " tb ", tb, " alpha ", alpha, " beta ", beta);
      agree_with<Device>(
          c, law_tolerance<T> * (1 + std::sqrt(double(k))),
          [&](auto& at, auto& r) { gemm(at.queue, ta, tb, alpha, at(a), at(b), beta, r.view()); },
          [&](auto& r) { reference::gemm(ta, tb, alpha, a.view(), b.view(), beta, r.view()); });
    }
}

template <class T, class Device>
void gemm_of_odd_shapes() {
  const std::vector<std::array<local_index, 3>> shapes{
      {0, 0, 0},     {0, 3, 4},     {3, 0, 4},      {3, 4, 0},     {1, 1, 1},
      {2, 3, 5},     {7, 31, 13},   {8, 32, 1},     {33, 65, 17},  {130, 7, 3},
      {40, 50, 600}, {16, 7, 5000}, {300, 129, 70}, {65, 300, 33}, {257, 4, 257}};
  for (const auto& [m, n, k] : shapes)
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        if (!sanitized || m * n * k < 600'000) check_gemm<T, Device>(m, n, k, ta, tb);
}

template <class T, class Device>
void affine_of_odd_shapes() {
  for (const auto& [m, n, k] : std::vector<std::array<local_index, 3>>{
           {0, 3, 4}, {3, 0, 4}, {3, 4, 0}, {1, 1, 1}, {33, 65, 17}, {16, 7, 2000}})
    for (const bool relu : {false, true})
      for (const bool biased : {false, true})
        for (const T beta : {T{0}, T(-0.75)}) {
          const block<T> a(m, k, 1, placing{}), b(k, n, 2, 0);
          block<T> c(m, n, 3, 2);
          partita::local::block_dropout<T> drop;
          if (relu) drop = {{7, std::uint64_t{1} << 51, T(1.25)}, 1000, 3};
          const std::vector<T> bias = block<T>(1, n, 4, 0).values;
          if (beta == 0) c.poison();
          agree_with<Device>(
              c, law_tolerance<T> * (1 + std::sqrt(double(k))),
              [&](auto& at, auto& r) {
                gemm_bias_relu(at.queue, at(a), at(b), biased ? at(bias) : nullptr, relu, beta, r.view(),
                               drop);
              },
              [&](auto& r) {
                reference::gemm_bias_relu(a.view(), b.view(), biased ? bias.data() : nullptr, relu, beta,
                                          r.view(), drop);
              });
        }
}

/// Of c = a b + bias, where a is (m, k) and c is (m, n): the gradients of b and bias, which lie one behind
/// the other; and of z, where a = relu(z).
template <class T, class Device>
void affine_gradients_of_odd_shapes() {
  for (const auto& [m, n, k] : std::vector<std::array<local_index, 3>>{
           {0, 3, 4}, {3, 0, 4}, {3, 4, 0}, {1, 1, 1}, {33, 65, 17}, {2000, 7, 16}, {16, 7, 300}}) {
    const block<T> a(m, k, 1, placing{}), b(k, n, 2, 0), dc(m, n, 3, placing{4, 1});
    block<T> db(k + 1, n, 4, 0), dz(m, k, 5, 2);
    db.poison(), dz.poison();
    const auto rows_of = [&](matrix_view<T> both) { return both.block(0, 0, both.rows - 1, both.cols); };
    agree_with<Device>(
        db, law_tolerance<T> * (1 + std::sqrt(double(m))),
        [&](auto& at, auto& r) {
          gemm_bias_gradient(at.queue, at(a), at(dc), rows_of(r.view()),
                             r.view().row_data(r.view().rows - 1));
        },
        [&](auto& r) {
          reference::gemm_bias_gradient(a.view(), dc.view(), rows_of(r.view()),
                                        r.view().row_data(r.view().rows - 1));
        });
    agree_with<Device>(
        dz, law_tolerance<T> * (1 + std::sqrt(double(n))),
        [&](auto& at, auto& r) { gemm_relu_backward(at.queue, at(dc), at(b), at(a), r.view()); },
        [&](auto& r) { reference::gemm_relu_backward(dc.view(), b.view(), a.view(), r.view()); });
  }
}

/// `kernel(stage, x, y, line)` against `expect(x, y, line)`: x and y are (m, n), line has m + n + 2 elements.
template <class T, class Device, class Kernel, class Expect>
void check_block(Kernel kernel, Expect expect) {
  const std::vector<std::array<local_index, 2>> shapes{{0, 0},     {0, 5},     {5, 0},    {1, 1},
                                                       {3, 7},     {17, 9},    {65, 8},   {1000, 33},
                                                       {257, 130}, {5000, 16}, {16500, 3}};
  for (const auto& [m, n] : shapes)
    for (const placing p : {placing{3, 0}, {0, 0}, {4, 1}}) {
      if (sanitized && m * n > 20'000 && p.gap != 3) continue;
      const block<T> x(m, n, 11, p);
      block<T> y(m, n, 12, p.gap == 3 ? placing{1, 0} : p);
      const std::ptrdiff_t area = std::ptrdiff_t{y.rows} * y.stride;
      const block<T> line(1, m + n + 2, 13, 0);
      y.values.insert(y.values.end(), line.values.begin(), line.values.end());
      agree_with<Device>(
          y, law_tolerance<T>, [&](auto& at, auto& r) { kernel(at, at(x), r.view(), r.data() + area); },
          [&](auto& r) { expect(x.view(), r.view(), r.data() + area); });
    }
}

template <class T, class Device>
void moves() {
  check_block<T, Device>([](auto& at, auto x, auto y, T*) { copy(at.queue, x, y); },
                         [](auto x, auto y, T*) { reference::copy(x, y); });
  check_block<T, Device>([](auto& at, auto, auto y, T*) { fill(at.queue, T(1.5), y); },
                         [](auto, auto y, T*) { reference::fill(T(1.5), y); });
  check_block<T, Device>(
      [](auto& at, auto x, auto y, T*) {
        T* const line =
            at.template room<T>(static_cast<std::size_t>(x.rows) * static_cast<std::size_t>(x.cols));
        pack(at.queue, x, line);
        unpack(at.queue, line, y);
      },
      [](auto x, auto y, T*) { reference::copy(x, y); });
  std::vector<local_index> rows;
  for (local_index i = 0; i < 3000; ++i) rows.push_back((i * 7) % 50);
  const block<T> x(50, 21, 1, placing{});
  agree_with<Device>(
      block<T>(3000, 21, 2, 0), 1e-300,
      [&](auto& at, auto& r) { gather_rows(at.queue, at(x), at.span(rows), r.data()); },
      [&](auto& r) { reference::gather_rows(x.view(), rows, r.data()); });
  const block<T> elsewhere(40, 33, 3, 0);
  std::vector<partita::global_index> starts;
  for (partita::global_index i = 0; i < 3000; ++i)
    starts.push_back(i % 3 == 1 ? -1 - (i * 7) % 50 * x.stride : (i * 11) % 1200);
  agree_with<Device>(
      block<T>(3000, 21, 2, placing{}), 1e-300,
      [&](auto& at, auto& r) {
        gather_rows_of_two(at.queue, at(x.values), at(elsewhere.values), at.span(starts), r.view());
      },
      [&](auto& r) {
        reference::gather_rows_of_two(x.values.data(), elsewhere.values.data(), starts, r.view());
      });
  std::vector<local_index> distinct;
  for (local_index i = 0; i < 900; ++i) distinct.push_back((i * 7) % 1000);
  const block<T> summands(900, 21, 1, 0);
  agree_with<Device>(
      block<T>(1000, 21, 2, placing{}), 1e-300,
      [&](auto& at, auto& r) {
        scatter_add_distinct_rows(at.queue, at(summands.values), at.span(distinct), r.view());
      },
      [&](auto& r) { reference::scatter_add_rows(summands.values.data(), distinct, r.view()); });
  agree_with<Device>(
      block<T>(1000, 21, 2, placing{}), 1e-300,
      [&](auto& at, auto& r) { scatter_rows(at.queue, at(summands.values), at.span(distinct), r.view()); },
      [&](auto& r) { reference::scatter_rows(summands.values.data(), distinct, r.view()); });
  agree_with<Device>(
      block<T>(1000, 21, 2, placing{}), 1e-300,
      [&](auto& at, auto& r) {
        move_rows(at.queue, at(x), at.span(rows).first(900), at.span(distinct), r.view());
      },
      [&](auto& r) {
        std::vector<T> gathered(3000 * 21);
        reference::gather_rows(x.view(), rows, gathered.data());
        reference::scatter_rows(gathered.data(), distinct, r.view());
      });
  std::vector<local_index> lengths;
  for (local_index i = 0; i < 301; ++i) lengths.push_back(i == 7 ? 90 : i % 5);
  sparse_block<T> a(lengths, 90);
  for (std::size_t e = 2; e < a.columns.size(); ++e) a.columns[e] = static_cast<local_index>(7 * e % 90);
  agree_with<Device>(
      block<T>(301, 90, 2, 3), 1e-300, [&](auto& at, auto& r) { sparse_to_dense(at.queue, at(a), r.view()); },
      [&](auto& r) { reference::sparse_to_dense(a.view(), r.view()); });
}

template <class T>
struct square_plus_one {
  constexpr T operator()(T v) const { return v * v + 1; }
};
template <class T>
struct plus_place {
  constexpr T operator()(local_index i, local_index j, T v) const { return static_cast<T>(i * 3 + j) + v; }
};
template <class T>
struct minus_twice {
  constexpr T operator()(T a, T b) const { return a - 2 * b; }
};

template <class T, class Device>
void elementwise() {
  const square_plus_one<T> square{};
  check_block<T, Device>([=](auto& at, auto x, auto y, T*) { transform(at.queue, square, x, y); },
                         [=](auto x, auto y, T*) { reference::transform(square, x, y); });
  check_block<T, Device>([=](auto& at, auto, auto y, T*) { transform(at.queue, square, y, y); },
                         [=](auto, auto y, T*) { reference::transform(square, y, y); });
  const plus_place<T> place{};
  check_block<T, Device>([=](auto& at, auto x, auto y, T*) { transform_indexed(at.queue, place, x, y); },
                         [=](auto x, auto y, T*) { reference::transform_indexed(place, x, y); });
  const minus_twice<T> minus{};
  check_block<T, Device>([=](auto& at, auto x, auto y, T*) { zip(at.queue, minus, x, y, y); },
                         [=](auto x, auto y, T*) { reference::zip(minus, x, y, y); });
  check_block<T, Device>([](auto& at, auto, auto y, T* line) { add_row(at.queue, line, y); },
                         [](auto, auto y, T* line) { reference::add_row(line, y); });
  check_block<T, Device>([](auto& at, auto, auto y, T* line) { divide_rows(at.queue, line, y); },
                         [](auto, auto y, T* line) { reference::divide_rows(line, y); });
}

template <class T, class Device>
void reductions_and_softmax() {
  check_block<T, Device>([](auto& at, auto x, auto, T* line) { column_sums(at.queue, x, line); },
                         [](auto x, auto, T* line) { reference::column_sums(x, line); });
  check_block<T, Device>([](auto& at, auto x, auto, T* line) { row_sums(at.queue, x, line); },
                         [](auto x, auto, T* line) { reference::row_sums(x, line); });
  check_block<T, Device>([](auto& at, auto x, auto, T* line) { row_max(at.queue, x, line); },
                         [](auto x, auto, T* line) { reference::row_max(x, line); });
  check_block<T, Device>([](auto& at, auto x, auto, T* line) { at.put(sum(at.queue, x), line); },
                         [](auto x, auto, T* line) { *line = reference::sum(x); });
  check_block<T, Device>([](auto& at, auto x, auto y, T* line) { column_dots(at.queue, x, y, line); },
                         [](auto x, auto y, T* line) { reference::column_dots(x, y, line); });
  check_block<T, Device>([](auto& at, auto x, auto y, T* line) { at.put(dot(at.queue, x, y), line); },
                         [](auto x, auto y, T* line) { *line = reference::dot<T>(x, y); });
  check_block<T, Device>([](auto& at, auto x, auto y, T* line) { softmax_exp(at.queue, x, line, y, line); },
                         [](auto x, auto y, T* line) { reference::softmax_exp(x, line, y, line); });
}

template <class T, class Device>
void maxima_show_nan() {
  for (const local_index cols : {4, 33, 300})
    for (const local_index nan_at : {0, 1, cols - 1}) {
      block<T> x(3, cols, std::vector<T>(3 * static_cast<std::size_t>(cols), T(1)));
      x.view()(1, nan_at) = std::numeric_limits<T>::quiet_NaN();
      for (const auto& q : queues<Device>()) {
        stage<Device> at(q);
        staged_block<T, Device> line(q, block<T>(1, 3, 1, 0));
        row_max(q, at(x), line.data());
        const std::vector<T> maxima = line.fetch();
        CHECK(maxima[0] == 1);
        CHECK(std::isnan(maxima[1]));
        CHECK(maxima[2] == 1);
      }
    }
}

inline std::vector<local_index> some_labels(local_index rows, local_index cols) {
  std::vector<local_index> labels;
  for (local_index i = 0; i < rows; ++i) labels.push_back(i % 4 == 2 || cols == 0 ? -1 : (i * 5) % cols);
  return labels;
}

template <class T, class Device>
void loss() {
  check_block<T, Device>(
      [](auto& at, auto x, auto y, T* line) {
        const auto labels = at(some_labels(x.rows, x.cols));
        at.put(static_cast<T>(cross_entropy(at.queue, x, labels, T(0.25), y)), line);
        at.put(static_cast<T>(count_correct(at.queue, x, std::array<const local_index*, 1>{labels})[0]),
               line + 1);
      },
      [](auto x, auto y, T* line) {
        const auto labels = some_labels(x.rows, x.cols);
        line[0] = static_cast<T>(reference::cross_entropy(x, labels.data(), T(0.25), y));
        line[1] = static_cast<T>(reference::count_correct(x, labels.data()));
      });
  check_block<T, Device>([](auto& at, auto, auto y,
                            T*) { cross_entropy(at.queue, y, at(some_labels(y.rows, y.cols)), T(0.25), y); },
                         [](auto, auto y, T*) {
                           std::vector<T> logits;
                           for (local_index i = 0; i < y.rows; ++i)
                             logits.insert(logits.end(), y.row_data(i), y.row_data(i) + y.cols);
                           reference::cross_entropy(
                               matrix_view<const T>{logits.data(), y.rows, y.cols, y.cols},
                               some_labels(y.rows, y.cols).data(), T(0.25), y);
                         });
}

/// A row with a logit that is not a number is never right, wherever that is.
template <class Device>
void nan_is_never_right(const partita::device_queue<Device>& q) {
  stage<Device> at(q);
  const float none = std::numeric_limits<float>::quiet_NaN();
  const block<float> logits(4, 3, {none, 0, 0, 2, none, 1, 3, 2, none, 2, 2, 2});
  const std::vector<local_index> labels{0, 0, 0, 0};
  CHECK(count_correct(q, at(logits), std::array<const local_index*, 1>{at(labels)})[0] == 1);
}

/// Shapes are refused before any memory is touched.
template <class Device>
void refuse_shapes(const partita::device_queue<Device>& q) {
  const matrix_view<float> x{nullptr, 4, 3, 3}, y{nullptr, 3, 4, 4};
  const partita::local::csr_view<float> a{4, 5, nullptr, nullptr, nullptr};
  CHECK_THROWS_AS(spmm(q, a, x, 0, x), partita::shape_error);
  CHECK_THROWS_AS(spmm(q, a, matrix_view<float>{nullptr, 5, 2, 2}, 0, x), partita::shape_error);
  CHECK_THROWS_AS(spmm_fused(q, a, x, {}, x), partita::shape_error);
  CHECK_THROWS_AS(spmm_transposed(q, a, x, 1, 0, x), partita::shape_error);
  CHECK_THROWS_AS(spmm_transposed(q, a, y, 1, 0, x), partita::shape_error);
  CHECK_THROWS_AS(sparse_to_dense(q, a, x), partita::shape_error);
  CHECK_THROWS_AS(gather_rows_of_two(q, nullptr, nullptr, std::vector<partita::global_index>(3), x),
                  partita::shape_error);
  CHECK_THROWS_AS(gemm(q, false, false, 1, x, x, 0, y), partita::shape_error);
  CHECK_THROWS_AS(gemm(q, false, false, 1, x, y, 0, y), partita::shape_error);
  CHECK_THROWS_AS(gemm_bias_relu(q, x, x, nullptr, true, 0, y), partita::shape_error);
  CHECK_THROWS_AS(gemm_bias_gradient(q, x, x, y, nullptr), partita::shape_error);
  CHECK_THROWS_AS(gemm_relu_backward(q, x, x, x, y), partita::shape_error);
  CHECK_THROWS_AS(transform(q, square_plus_one<float>{}, y, x), partita::shape_error);
  CHECK_THROWS_AS(transform_indexed(q, plus_place<float>{}, y, x), partita::shape_error);
  CHECK_THROWS_AS(zip(q, minus_twice<float>{}, x, y, x), partita::shape_error);
  CHECK_THROWS_AS(softmax_exp(q, x, nullptr, y, nullptr), partita::shape_error);
  CHECK_THROWS_AS(cross_entropy(q, x, nullptr, 1, y), partita::shape_error);
  try {
    copy(q, x, y);
    FAIL("copy accepted different shapes");
  } catch (const partita::shape_error& failure) {
    CHECK(std::string(failure.what()) == "copy: from is 4 x 3 but to is 3 x 4");
  }
}

template <class Device>
void refuse_labels(const partita::device_queue<Device>& q) {
  stage<Device> at(q);
  const block<float> logits(4, 3, 1, 0);
  staged_block<float, Device> gradient(q, logits);
  const std::vector<local_index> labels{0, 2, 3, -1};
  try {
    cross_entropy(q, at(logits), at(labels), 1, gradient.view());
    FAIL("cross_entropy accepted a label that is no column");
  } catch (const partita::shape_error& failure) {
    CHECK(std::string(failure.what()) == "cross_entropy: row 2 has label 3 of 3 columns");
  }
}

}  // namespace test_support

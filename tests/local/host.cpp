// SPDX-License-Identifier: Apache-2.0
// The host kernels against the reference: odd shapes, strides, threads, and the same bits for all.
#include <set>

#include "laws/kernel_laws.hpp"

using namespace test_support;

TEST_CASE("parts run once each, on threads that stay") {
  std::set<std::thread::id> threads;
  for (const int parts : {4, 1, 3, 0, 4}) {
    std::vector<std::thread::id> ran(static_cast<std::size_t>(parts));
    partita::on_host::run_parts(
        parts, [&](int part) { ran[static_cast<std::size_t>(part)] = std::this_thread::get_id(); });
    for (const std::thread::id thread : ran) CHECK(thread != std::thread::id());
    if (parts > 0) CHECK(ran[0] == std::this_thread::get_id());
    threads.insert(ran.begin(), ran.end());
  }
  CHECK(threads.size() == 4);
}

TEST_CASE("parts may have parts") {
  std::atomic<int> ran{0};
  for (int round = 0; round < 100; ++round)
    partita::on_host::run_parts(3, [&](int) { partita::on_host::run_parts(2, [&](int) { ++ran; }); });
  CHECK(ran == 600);
}

TEST_CASE("what a part throws, the caller gets, and can go on") {
  for (const int bad : {0, 2}) {
    std::atomic<int> ran{0};
    const auto run = [&](int failing) {
      partita::on_host::run_parts(3, [&](int part) {
        ++ran;
        if (part == failing) throw std::runtime_error("part " + std::to_string(part));
      });
    };
    CHECK_THROWS_WITH(run(bad), ("part " + std::to_string(bad)).c_str());
    CHECK_NOTHROW(run(-1));
    CHECK(ran == 6);
  }
}

TEST_CASE("a set of instructions is the best one, or the one named") {
  using namespace partita::on_host;
  const instruction_set best = instructions_named(nullptr);
  CHECK(best == instructions_named(""));
  CHECK(has_instructions(best));
  for (const instruction_set i : {instruction_set::baseline, instruction_set::avx2, instruction_set::avx512})
    if (i >= compiled_instructions && has_instructions(i)) {
      CHECK(instructions_named(name_of(i)) == i);
      CHECK(i <= best);
    } else {
      CHECK_THROWS_AS(instructions_named(name_of(i)), partita::error);
    }
  CHECK_THROWS_WITH(instructions_named("avx1024"),
                    "PARTITA_ISA must be baseline, avx2 or avx512, and is avx1024");
}

namespace {

template <partita::on_host::instruction_set I>
struct exponentials_in_place {
  template <class T>
  void operator()(T* x, std::size_t count) const {
    partita::on_host::exponentials<I>(x, count);
  }
};

template <class T>
std::vector<T> exponentials_of(std::vector<T> x) {
  partita::on_host::with_instructions(
      [&](auto i) { partita::on_host::run_with<i>(exponentials_in_place<i>(), x.data(), x.size()); });
  return x;
}

}  // namespace

TEST_CASE_TEMPLATE("cpu exponentials are right to one unit in the last place", T, float, double) {
  using limits = std::numeric_limits<T>;
  const T most = std::log(limits::max()), least = std::log(limits::min());
  for (const T& from : {least, T(-5), T(-1e-3)}) {
    std::vector<T> x;
    for (int i = 0; i < 4099; ++i)
      x.push_back(from + (from == least ? most - least : -from) *
                             static_cast<T>(partita::base::random_uniform(7, i, 0)));
    const std::vector<T> y = exponentials_of(x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const long double right = std::exp(static_cast<long double>(x[i]));
      if (right < limits::min() * 2) continue;
      CHECK(std::abs(static_cast<long double>(y[i]) - right) <= limits::epsilon() * right);
    }
  }
}
TEST_CASE_TEMPLATE("cpu exponentials: any number of them, and special values", T, float, double) {
  constexpr T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  for (std::size_t n = 0; n < 40; ++n) {
    std::vector<T> x(n, T(1));
    for (const T y : exponentials_of(x)) CHECK(y == doctest::Approx(std::exp(1.0)));
  }
  const std::vector<T> y = exponentials_of<T>({0, -infinity, infinity, nan, T(-1e30), T(1e30)});
  CHECK(y[0] == 1);
  CHECK(y[1] == 0);
  CHECK(y[2] == infinity);
  CHECK(y[3] != y[3]);
  CHECK(y[4] == 0);
  CHECK(y[5] == infinity);
}

namespace {

/// spmm_fused and spmm_transposed with the factors of a block, against the reference with their products.
template <class T>
void products_with_factors(local_index m, local_index k, local_index f, bool by_rows, bool by_columns) {
  multiply_factors(partita::device_queue<partita::host>(), T());
  sparse_block<T> a = sparse_block<T>(m, k).ascending();
  const std::vector<T> r = block<T>(1, m, 6, 0).values, c = block<T>(1, k, 7, 0).values;
  for (local_index i = 0; i < m; ++i)
    for (local_index e = a.view().offsets[i]; e < a.view().offsets[i + 1]; ++e)
      a.values[a.values_lead + static_cast<std::size_t>(e)] =
          (by_rows ? r[static_cast<std::size_t>(i)] : T(1)) *
          (by_columns ? c[static_cast<std::size_t>(a.view().columns[e])] : T(1));
  const auto factored = [&](auto& at) {
    auto view = at(a);
    view.values = nullptr;
    if (by_rows) view.row_factors = at(r);
    if (by_columns) view.column_factors = at(c);
    return view;
  };
  INFO("width ", f, " by rows ", by_rows, " by columns ", by_columns);
  const double tolerance = law_tolerance<T> * (1 + std::sqrt(double(a.end())) / 100);
  const std::vector<T> bias = block<T>(1, f, 5, 0).values;
  for (const auto& [alpha, beta] : {std::pair(T{1}, T{0}), std::pair(T(-0.75), T(0.5))}) {
    const block<T> x(k, f, 1, placing{}), z(m, f, 3, placing{});
    block<T> y(m, f, 2, placing{}), yt(k, f, 4, placing{});
    if (beta == 0) y.poison(), yt.poison();
    agree_with<host>(
        y, tolerance,
        [&](auto& at, auto& to) {
          spmm_fused(at.queue, factored(at), at(x), {alpha, beta, at(bias), true}, to.view());
        },
        [&](auto& to) {
          reference::spmm_fused(a.view(), x.view(), {alpha, beta, bias.data(), true}, to.view());
        });
    agree_with<host>(
        yt, tolerance,
        [&](auto& at, auto& to) { spmm_transposed(at.queue, factored(at), at(z), alpha, beta, to.view()); },
        [&](auto& to) { reference::spmm_transposed(a.view(), z.view(), alpha, beta, to.view()); });
  }
}

}  // namespace

TEST_CASE_TEMPLATE("cpu spmm: every width", T, float, double) { spmm_of_every_width<T, host>(); }
TEST_CASE_TEMPLATE("cpu spmm: many rows, and blocks without rows, columns or width", T, float, double) {
  spmm_of_many_rows_and_none<T, host>();
}
TEST_CASE_TEMPLATE("cpu spmm: any alignment", T, float, double) { spmm_at_any_alignment<T, host>(); }
TEST_CASE_TEMPLATE("cpu spmm: long rows", T, float, double) { spmm_of_long_rows<T, host>(); }
TEST_CASE_TEMPLATE("cpu spmm_transposed", T, float, double) { spmm_of_transposed_blocks<T, host>(); }
TEST_CASE_TEMPLATE("cpu spmm: everything fused", T, float, double) { spmm_with_everything_fused<T, host>(); }
TEST_CASE_TEMPLATE("cpu products with factors of rows and columns, or none, in the place of values", T, float,
                   double) {
  for (const bool by_rows : {false, true})
    for (const bool by_columns : {false, true})
      for (local_index f = 1; f <= 70; ++f)
        for (const auto& [m, k] : {std::pair(23, 19), std::pair(301, 90)})
          if (m == 23 || f % 16 == 1) products_with_factors<T>(m, k, f, by_rows, by_columns);
}
TEST_CASE_TEMPLATE("cpu gemm: odd shapes and all transpositions", T, float, double) {
  gemm_of_odd_shapes<T, host>();
}
TEST_CASE_TEMPLATE("cpu gemm_bias_relu", T, float, double) { affine_of_odd_shapes<T, host>(); }
TEST_CASE_TEMPLATE("cpu gradients of gemm_bias_relu", T, float, double) {
  affine_gradients_of_odd_shapes<T, host>();
}
TEST_CASE_TEMPLATE("cpu moves", T, float, double) { moves<T, host>(); }
TEST_CASE_TEMPLATE("cpu elementwise", T, float, double) { elementwise<T, host>(); }
TEST_CASE_TEMPLATE("cpu reductions and softmax", T, float, double) { reductions_and_softmax<T, host>(); }
TEST_CASE_TEMPLATE("cpu maxima show NaN", T, float, double) { maxima_show_nan<T, host>(); }
TEST_CASE_TEMPLATE("cpu loss", T, float, double) { loss<T, host>(); }

namespace {

void check_rounded_operand(const sparse_block<float>& unsorted, local_index f, placing p, int threads) {
  const sparse_block<float> a = unsorted.ascending();
  const partita::device_queue<partita::host> q(threads);
  multiply_factors(q, float());
  const rounded_block x(block<float>(a.cols, f, 1, p)), up(block<float>(a.rows, f, 3, p));
  for (const float beta : {0.0F, -0.75F}) {
    INFO("f ", f, " beta ", beta);
    block<float> y(a.rows, f, 2, p), z = y, expected = y, dx(a.cols, f, 2, p), dz = dx;
    spmm_fused(q, a.view(), std::as_const(x.widened).view(), {1.5F, beta}, y.view());
    spmm_fused(q, a.view(), x.view(), {1.5F, beta}, z.view());
    CHECK(y.values == z.values);
    spmm_transposed(q, a.view(), std::as_const(up.widened).view(), 1.5F, beta, dx.view());
    spmm_transposed(q, a.view(), up.view(), 1.5F, beta, dz.view());
    CHECK(dx.values == dz.values);
    partita::reference::spmm_fused(a.view(), std::as_const(x.widened).view(), {1.5F, beta}, expected.view());
    for (std::size_t i = 0; i < z.values.size(); ++i)
      if (!(std::abs(z.values[i] - expected.values[i]) < 1e-4)) FAIL("element ", i);
  }
}

/// Rows of every kind, with hubs in pieces, values or factors, and everything fused: the bits of the floats.
void check_rounded_hubs(local_index f, int threads, bool by_rows, bool by_columns) {
  sparse_block<float> a(std::vector<local_index>{3, 0, 40'001, 9000, 17, 1}, 500);
  const block<float> r(1, a.rows, 6, 0), c(1, a.cols, 7, 0), bias(1, f, 5, 0);
  partita::local::csr_view<float> of = a.view();
  if (by_rows || by_columns) of.values = nullptr;
  if (by_rows) of.row_factors = r.data();
  if (by_columns) of.column_factors = c.data();
  for (local_index i = 0; i < a.rows && of.values == nullptr; ++i)
    for (local_index e = of.offsets[i]; e < of.offsets[i + 1]; ++e)
      a.values[static_cast<std::size_t>(e)] =
          (by_rows ? r.view()(0, i) : 1) * (by_columns ? c.view()(0, of.columns[e]) : 1);
  INFO("f ", f, " threads ", threads, " by rows ", by_rows, " by columns ", by_columns);
  const partita::local::spmm_epilogue<float> fusion{
      1.5F, -0.75F, bias.data(), true, {{7, std::uint64_t{1} << 51, 1.25F}, 5, 2}};
  const partita::device_queue<partita::host> q(threads);
  const rounded_block x(block<float>(a.cols, f, 1, placing{}));
  block<float> y(a.rows, f, 2, placing{}), z = y, expected = y;
  spmm_fused(q, of, std::as_const(x.widened).view(), fusion, y.view());
  spmm_fused(q, of, x.view(), fusion, z.view());
  CHECK(y.values == z.values);
  partita::reference::spmm_fused(a.view(), std::as_const(x.widened).view(), fusion, expected.view());
  for (std::size_t i = 0; i < z.values.size(); ++i)
    if (!(std::abs(z.values[i] - expected.values[i]) < 1e-4F * (100 + std::abs(expected.values[i]))))
      FAIL("element ", i);
}

}  // namespace

TEST_CASE("x stored as bfloat16 gives the bits of the floats that it stores") {
  for (local_index f = 1; f <= 70; ++f)
    for (const placing p : {placing{3, 0}, placing{0, 0}, placing{4, 1}})
      check_rounded_operand(sparse_block<float>(23, 19), f, p, 1);
  for (const local_index f : {0, 100, 127, 128, 129, 256, 300, 513})
    check_rounded_operand(sparse_block<float>(301, 190), f, {}, 3);
  for (const auto& [m, k] : std::vector<std::array<local_index, 2>>{{0, 5}, {5, 0}, {1, 1}})
    check_rounded_operand(sparse_block<float>(m, k), 33, {}, 2);
}

TEST_CASE("x stored as bfloat16 gives the bits of its floats in hub rows, with factors and epilogues") {
  for (const local_index f : {1, 7, 16, 33, 70, 129})
    for (const int threads : {1, 4})
      for (const bool by_rows : {false, true})
        for (const bool by_columns : {false, true}) check_rounded_hubs(f, threads, by_rows, by_columns);
}

TEST_CASE("floats are rounded to bfloat16 and back, with strides, by any number of threads") {
  for (const local_index f : {1, 7, 16, 33, 130}) {
    const block<float> x(57, f, 1, placing{3, 0});
    std::vector<bfloat16> stored(static_cast<std::size_t>(57 * f));
    block<float> back(57, f, 2, placing{2, 0});
    const partita::device_queue<partita::host> q(f % 3 + 1);
    copy(q, x.view(), partita::matrix_view<bfloat16>{stored.data(), 57, f, f});
    copy(q, partita::matrix_view<const bfloat16>{stored.data(), 57, f, f}, back.view());
    std::size_t faults = 0;
    for (local_index i = 0; i < 57; ++i)
      for (local_index j = 0; j < f; ++j) faults += back.view()(i, j) != float{bfloat16(x.view()(i, j))};
    CHECK(faults == 0);
  }
}

// SPDX-License-Identifier: Apache-2.0
// Products of cuBLASLt and cuSPARSE through the queue that carries them, against the reference on the host.
#include <cstdlib>
#include <doctest/doctest.h>

#include "partita/local/cublas/gemm.hpp"
#include "partita/local/cusparse/spmm.hpp"
#include "reference/gemm.hpp"
#include "reference/spmm.hpp"
#include "support/blocks.hpp"
#include "support/on_device.hpp"

using partita::local_index, partita::matrix_view, partita::local::csr_view, partita::on_cuda::spmm_choice;
using partita::on_cuda::vendor_epilogue, test_support::distance, test_support::on_device;
using test_support::random_numbers, test_support::same_bits;

using device_queue = partita::device_queue<partita::cuda_device>;

namespace {

template <class T>
constexpr double tolerance = sizeof(T) == sizeof(float) ? 2e-5 : 1e-13;

/// Vendors have other algorithms for large operands, which take long where the emulator multiplies.
const int large = std::getenv("EMULATOR_CUSPARSE") == nullptr ? 8 : 1;

constexpr std::size_t area(int rows, int stride) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(stride);
}

struct gemm_case {
  int m, n, k;
  bool ta, tb, relu, with_bias;
  std::size_t skip;  // elements by which operands miss an aligned address

  int a_rows() const { return ta ? k : m; }
  int a_cols() const { return ta ? m : k; }
  int b_rows() const { return tb ? n : k; }
  int b_cols() const { return tb ? k : n; }
};

template <class T>
void check_gemm(const device_queue& q, const gemm_case& p, T beta) {
  const int lda = p.a_cols() + 2, ldb = p.b_cols() + 1, ldc = p.n + 3;
  const auto a = random_numbers<T>(area(p.a_rows(), lda), 1), b = random_numbers<T>(area(p.b_rows(), ldb), 2),
             bias = random_numbers<T>(static_cast<std::size_t>(p.n), 4);
  auto c = random_numbers<T>(area(p.m, ldc), 3);
  auto expected = c;
  if (beta == 0) c[0] = std::numeric_limits<T>::quiet_NaN();

  const matrix_view<T> e{expected.data(), p.m, p.n, ldc};
  partita::reference::gemm<T>(p.ta, p.tb, T(1.5), {a.data(), p.a_rows(), p.a_cols(), lda},
                              {b.data(), p.b_rows(), p.b_cols(), ldb}, beta, e);
  for (local_index i = 0; i < p.m; ++i)
    for (local_index j = 0; j < p.n; ++j) {
      if (p.with_bias) e(i, j) += bias[static_cast<std::size_t>(j)];
      if (p.relu) e(i, j) = std::max(e(i, j), T{0});
    }

  const on_device<T> on_a(q, a, p.skip), on_b(q, b, p.skip), on_bias(q, bias, p.skip);
  std::vector<std::vector<T>> results;
  for (int run = 0; run < 2; ++run) {
    const on_device<T> on_c(q, c, p.skip);
    if (!partita::on_cuda::libraries_of(q).gemm<T>()(q, p.ta, p.tb, p.m, p.n, p.k, T(1.5), on_a.data(), lda,
                                                     on_b.data(), ldb, beta, on_c.data(), ldc,
                                                     {p.with_bias ? on_bias.data() : nullptr, p.relu})) {
      CHECK((p.with_bias || p.relu));  // of products without an epilogue it must know all
      MESSAGE("cuBLASLt has no algorithm with this epilogue: bias ", p.with_bias, ", relu ", p.relu);
      return;
    }
    results.push_back(on_c.read());
  }
  INFO("p.m ", p.m, ", p.n ", p.n, ", p.k ", p.k, ", p.ta ", p.ta, ", p.tb ", p.tb, ", p.skip ", p.skip);
  CHECK(distance(results[0], expected) < tolerance<T> * std::sqrt(double(p.k)));
  CHECK(same_bits(results[0], results[1]));
}

/// Compressed rows with 0 to 9 entries each, in different columns, whose offsets begin at `first`; what lies
/// before is never read.
template <class T>
struct rows_case {
  local_index rows, cols;
  std::vector<local_index> offsets, columns;
  std::vector<T> values;

  rows_case(local_index rows, local_index cols, local_index first) : rows(rows), cols(cols), offsets{first} {
    columns.assign(static_cast<std::size_t>(first), cols);
    for (local_index i = 0; i < rows; ++i) {
      const auto count = static_cast<local_index>(partita::base::random_bits(7, i, 0) % 10);
      for (local_index e = 0; e < count; ++e)
        columns.push_back(static_cast<local_index>(
            (e * cols +
             static_cast<local_index>(partita::base::random_bits(8, i, e) % static_cast<unsigned>(cols))) /
            count));
      offsets.push_back(offsets.back() + count);
    }
    values = random_numbers<T>(columns.size(), 5);
  }
  int nonzeros() const { return offsets.back() - offsets.front(); }
  partita::local::csr_view<T> view() const {
    return {rows, cols, offsets.data(), columns.data(), values.data()};
  }
};

template <class T>
class spmm_on_device {
 public:
  spmm_on_device(const device_queue& q, const rows_case<T>& a, std::size_t skip = 0)
      : q_(q), a_(a), offsets_(q, a.offsets), columns_(q, a.columns, skip), values_(q, a.values) {}

  bool run(const on_device<T>& x, int x_stride, int f, T beta, const on_device<T>& y, int y_stride,
           bool with_values = true) {
    return partita::on_cuda::libraries_of(q_).spmm<T>()(
        q_, plan_, a_.rows, a_.cols, a_.nonzeros(), offsets_.data(), columns_.data(),
        with_values ? values_.data() : nullptr, x.data(), x_stride, f, beta, y.data(), y_stride);
  }

 private:
  device_queue q_;
  const rows_case<T>& a_;
  on_device<local_index> offsets_, columns_;
  on_device<T> values_;
  std::shared_ptr<void> plan_;
};

template <class T>
void check_spmm(const device_queue& q, const rows_case<T>& a, bool repeatable) {
  spmm_on_device<T> product(q, a);
  for (const int f : {4, 8, 7, 16, 64, 100})
    for (const T beta : {T{0}, T(0.5)}) {
      const int x_stride = (f + 7) / 4 * 4, y_stride = (f + 3) / 4 * 4;
      const auto x = random_numbers<T>(area(a.cols, x_stride), 11);
      const auto y = random_numbers<T>(area(a.rows, y_stride), 12);
      auto expected = y;
      partita::reference::spmm<T>(a.view(), {x.data(), a.cols, f, x_stride}, beta,
                                  {expected.data(), a.rows, f, y_stride});
      const on_device<T> on_x(q, x);
      std::vector<std::vector<T>> results;
      for (int run = 0; run < 3; ++run) {
        const on_device<T> on_y(q, y);
        REQUIRE(product.run(on_x, x_stride, f, beta, on_y, y_stride));
        results.push_back(on_y.read());
      }
      INFO("f ", f, ", beta ", beta);
      for (const auto& result : results) {
        CHECK(distance(result, expected) < tolerance<T>);
        if (repeatable) CHECK(same_bits(result, results[0]));
      }
    }
}

}  // namespace

TEST_CASE_TEMPLATE("cublas gemm agrees with the reference and repeats its bits", T, float, double) {
  const device_queue q(0, partita::cublas_gemm());
  REQUIRE((partita::on_cuda::libraries_of(q).gemm<T>() != nullptr));
  for (const auto& shape : std::vector<std::array<int, 3>>{{1, 1, 1},
                                                           {5, 7, 3},
                                                           {33, 17, 65},
                                                           {1, 40, 9},
                                                           {16, 1, 100},
                                                           {24 * large, 16 * large, 32 * large}})
    for (int options = 0; options < 16; ++options)
      for (const std::size_t skip : {0, 1})
        check_gemm<T>(q,
                      {shape[0], shape[1], shape[2], (options & 1) != 0, (options & 2) != 0,
                       (options & 4) != 0, (options & 8) != 0, skip},
                      options % 3 == 0 ? T{0} : T(0.5));
}

TEST_CASE("cublas gemm by TF32 is off by rounded factors, and by no more") {
  const device_queue q(0, partita::cublas_gemm({}, partita::f32_products::tf32));
  const int m = 64 * large, n = 48 * large, k = 96 * large;
  const auto a = random_numbers<float>(area(m, k), 1), b = random_numbers<float>(area(k, n), 2);
  const on_device<float> on_a(q, a), on_b(q, b), on_c(q, std::vector<float>(area(m, n)));
  REQUIRE(partita::on_cuda::libraries_of(q).gemm<float>()(q, false, false, m, n, k, 1.0F, on_a.data(), k,
                                                          on_b.data(), n, 0.0F, on_c.data(), n, {}));
  const std::vector<float> c = on_c.read();
  double worst = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0, magnitude = 0;
      for (int p = 0; p < k; ++p) {
        const double product = double(a[area(i, k) + p]) * b[area(p, n) + j];
        sum += product;
        magnitude += std::abs(product);
      }
      worst = std::max(worst, std::abs(c[area(i, n) + j] - sum) / magnitude);
    }
  CHECK(worst < 0x1p-9);
  CHECK(worst > 0x1p-17);  // which sums in f32 of exact products do not reach
}

TEST_CASE_TEMPLATE("the gradient of a weight: a long inner dimension", T, float, double) {
  const device_queue q(0, partita::cublas_gemm());
  check_gemm<T>(q, {33, 17, 10003 * large, true, false, false, false, 0}, T{0});
  check_gemm<T>(q, {64, 16, 5000 * large, true, false, false, false, 0}, T{1});
}

TEST_CASE_TEMPLATE("the gradient of a bias beside that of a weight, where cublas knows it", T, float,
                   double) {
  const device_queue q(0, partita::cublas_gemm());
  for (const auto& shape : std::vector<std::array<int, 3>>{
           {1, 1, 1}, {5, 7, 3}, {33, 17, 65}, {40, 16, 5003 * large}, {24 * large, 40, 1000}})
    for (const std::size_t skip : {0, 1}) {
      const auto [m, n, k] = shape;
      const auto a = random_numbers<T>(area(k, m + 2), 1), b = random_numbers<T>(area(k, n + 1), 2);
      auto c = random_numbers<T>(area(m, n + 3), 3);
      std::vector<T> sums(static_cast<std::size_t>(n));
      const on_device<T> on_a(q, a, skip), on_b(q, b, skip);
      std::vector<std::vector<T>> results;
      bool known = true;
      for (int run = 0; run < 2; ++run) {
        const on_device<T> on_c(q, c, skip), on_sums(q, sums, skip);
        known = partita::on_cuda::libraries_of(q).gemm<T>()(q, true, false, m, n, k, T{1}, on_a.data(), m + 2,
                                                            on_b.data(), n + 1, T{0}, on_c.data(), n + 3,
                                                            {.column_sums = on_sums.data()});
        results.push_back(on_c.read());
        results.push_back(on_sums.read());
      }
      INFO("m ", m, ", n ", n, ", k ", k);
      if (!known) {
        CHECK(same_bits(results[0], c));
        continue;
      }
      partita::reference::gemm_bias_gradient<T>({a.data(), k, m, m + 2}, {b.data(), k, n, n + 1},
                                                {c.data(), m, n, n + 3}, sums.data());
      CHECK(distance(results[0], c) < tolerance<T> * std::sqrt(double(k)));
      CHECK(distance(results[1], sums) < tolerance<T> * std::sqrt(double(k)));
      CHECK(same_bits(results[0], results[2]));
      CHECK(same_bits(results[1], results[3]));
    }
}

TEST_CASE("errors of cublas name the call and the shapes") {
  const device_queue q(0, partita::cublas_gemm());
  const on_device<float> memory(q, random_numbers<float>(64, 1));
  const auto wrong = [&] {
    partita::on_cuda::libraries_of(q).gemm<float>()(q, false, false, 4, 4, 4, 1, memory.data(), 3,
                                                    memory.data(), 4, 0, memory.data(), 4, {});
  };
  CHECK_THROWS_WITH_AS(wrong(), doctest::Contains("a 4 x 4 with stride 3"), partita::device_error);
}

TEST_CASE_TEMPLATE("cusparse spmm agrees with the reference and repeats its bits", T, float, double) {
  const device_queue q(0, partita::cusparse_spmm());
  REQUIRE((partita::on_cuda::libraries_of(q).spmm<T>() != nullptr));
  check_spmm<T>(q, {101 * large, 60 * large, 0}, true);
  check_spmm<T>(q, {17, 200, 0}, true);
}

TEST_CASE_TEMPLATE("a tile whose offsets do not begin at 0", T, float, double) {
  const device_queue q(0, partita::cusparse_spmm());
  check_spmm<T>(q, {101 * large, 60 * large, 12}, true);
}

TEST_CASE_TEMPLATE("the fastest algorithm agrees with the reference", T, float, double) {
  const device_queue q(
      0, partita::cusparse_spmm(partita::cublas_gemm(), partita::on_cuda::spmm_choice::fastest));
  check_spmm<T>(q, {101 * large, 60 * large, 0}, false);
}

TEST_CASE_TEMPLATE("cusparse is not asked for patterns, nor at addresses it cannot serve", T, float, double) {
  const device_queue q(0, partita::cusparse_spmm());
  const rows_case<T> a(20, 20, 0), tile(20, 20, 3);
  const on_device<T> x(q, random_numbers<T>(area(20, 8), 1)), y(q, random_numbers<T>(area(20, 8), 2));
  const on_device<T> unaligned(q, random_numbers<T>(area(20, 8), 1), 1);
  CHECK(spmm_on_device<T>(q, a).run(x, 8, 8, 0, y, 8));
  CHECK_FALSE(spmm_on_device<T>(q, a).run(x, 8, 8, 0, y, 8, false));
  CHECK_FALSE(spmm_on_device<T>(q, a).run(unaligned, 8, 8, 0, y, 8));
  CHECK_FALSE(spmm_on_device<T>(q, a).run(x, 8, 8, 0, unaligned, 8));
  CHECK_FALSE(spmm_on_device<T>(q, a).run(x, 7, 7, 0, y, 8));
  CHECK_FALSE(spmm_on_device<T>(q, a, 1).run(x, 8, 8, 0, y, 8));
  CHECK_FALSE(spmm_on_device<T>(q, tile).run(x, 8, 8, 0, y, 8));
}

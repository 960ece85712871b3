// SPDX-License-Identifier: Apache-2.0
// Kernels of CUDA devices that use a library where the queue has one: libraries that count their calls.

#include "emulator/control.hpp"
#include "laws/kernel_laws.hpp"
#include "support/stage_cuda.hpp"

namespace test_local_cuda_libraries {

using namespace test_support;

template <class T>
struct multiply_entry {
  bool ta, tb;
  int m, n, k, lda, ldb, ldc;
  T alpha, beta;
  const T* a;
  const T* b;
  T* c;
  partita::on_cuda::vendor_epilogue<T> epilogue;

  constexpr void operator()(std::int64_t thread) const {
    const std::int64_t i = thread / n, j = thread % n;
    T sum = 0;
    for (int p = 0; p < k; ++p)
      sum += (ta ? a[std::int64_t{p} * lda + i] : a[i * lda + p]) *
             (tb ? b[j * ldb + p] : b[std::int64_t{p} * ldb + j]);
    T value = alpha * sum + (beta == 0 ? T{0} : beta * c[i * ldc + j]);
    if (epilogue.bias != nullptr) value += epilogue.bias[j];
    c[i * ldc + j] = epilogue.relu && value < 0 ? T{0} : value;
    if (epilogue.column_sums == nullptr || i > 0) return;
    epilogue.column_sums[j] = 0;
    for (int p = 0; p < k; ++p) epilogue.column_sums[j] += tb ? b[j * ldb + p] : b[std::int64_t{p} * ldb + j];
  }
};

int gemm_calls = 0;
bool knows_epilogues = true;

template <class T>
bool gemm_library(const partita::device_queue<cuda_device>& q, bool ta, bool tb, int m, int n, int k, T alpha,
                  const T* a, int lda, const T* b, int ldb, T beta, T* c, int ldc,
                  partita::on_cuda::vendor_epilogue<T> epilogue) {
  ++gemm_calls;
  const bool plain = epilogue.column_sums == nullptr && epilogue.bias == nullptr && !epilogue.relu;
  if (!plain && !knows_epilogues) return false;
  partita::on_cuda::launch(q, std::int64_t{m} * n,
                           multiply_entry<T>{ta, tb, m, n, k, lda, ldb, ldc, alpha, beta, a, b, c, epilogue});
  return true;
}

/// y = A x + beta y, one thread a row.
template <class T>
struct multiply_row {
  const int* offsets;
  const int* columns;
  const T* values;
  matrix_view<const T> x;
  T beta;
  matrix_view<T> y;

  constexpr void operator()(std::int64_t thread) const {
    const auto i = static_cast<local_index>(thread);
    for (local_index j = 0; j < y.cols; ++j) {
      T sum = 0;
      for (int e = offsets[i]; e < offsets[i + 1]; ++e) sum += values[e] * x(columns[e], j);
      y(i, j) = beta == 0 ? sum : sum + beta * y(i, j);
    }
  }
};

struct spmm_account {
  int calls = 0, plans = 0, nonzeros = 0;
  bool refuses = false, fails = false, lacks_memory = false;
  int repeats = 1;
};
spmm_account account;

template <class T>
bool spmm_library(const partita::device_queue<cuda_device>& q, std::shared_ptr<void>& plan, int rows,
                  int cols, int nonzeros, const int* offsets, const int* columns, const T* values, const T* x,
                  std::ptrdiff_t x_stride, int f, T beta, T* y, std::ptrdiff_t y_stride) {
  ++account.calls;
  account.nonzeros = nonzeros;
  if (account.refuses) return false;
  if (account.fails) throw partita::device_error("the library has no memory");
  if (account.lacks_memory) throw partita::budget_error("the library is over the budget");
  if (!plan) {
    plan = std::make_shared<int>(1);
    ++account.plans;
  }
  const multiply_row<T> work{offsets, columns, values, {x, cols, f, x_stride}, beta, {y, rows, f, y_stride}};
  for (int r = 1; r < account.repeats; ++r) {
    multiply_row<T> idle = work;
    idle.beta = 1;
    idle.y.cols = 0;
    partita::on_cuda::launch(q, rows, idle);
  }
  partita::on_cuda::launch(q, rows, work);
  return true;
}

partita::device_queue<cuda_device> queue_with_libraries() {
  return partita::device_queue<cuda_device>(
      0, partita::on_cuda::cuda_libraries{gemm_library<float>, gemm_library<double>, spmm_library<float>,
                                          spmm_library<double>});
}

/// Offsets from 0, all arrays at multiples of 16 bytes.
template <class T>
sparse_block<T> aligned_block() {
  sparse_block<T> a({5, 0, 1, 70, 3}, 40);
  for (local_index& offset : a.offsets) offset -= 2;
  a.columns.erase(a.columns.begin(), a.columns.begin() + 2);
  a.values.erase(a.values.begin(), a.values.begin() + 2);
  return a;
}

/// The product of a and x added to y, by `product`, against the reference.
template <class T>
void check_product(partita::local::tuned_spmm<T, cuda_device>& product, stage<cuda_device>& at,
                   const partita::local::csr_view<T>& staged, const sparse_block<T>& a, const block<T>& x,
                   const block<T>& y) {
  staged_block<T, cuda_device> r(at.queue, y);
  product(at.queue, staged, at(x), {.beta = T(0.5)}, r.view());
  block<T> expected = y;
  reference::spmm(a.view(), x.view(), T(0.5), expected.view());
  CHECK(distance(r.fetch(), expected.values) < law_tolerance<T>);
}

TEST_CASE_TEMPLATE("cuda gemm and gemm_bias_relu: what the library is given", T, float, double) {
  gemm_calls = 0;
  stage<cuda_device> at(queue_with_libraries());
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      const block<T> a(ta ? 9 : 7, ta ? 7 : 9, 1, placing{}), b(tb ? 5 : 9, tb ? 9 : 5, 2, 0), c(7, 5, 3, 2);
      staged_block<T, cuda_device> r(at.queue, c);
      gemm(at.queue, ta, tb, T(0.5), at(a), at(b), T(-2), r.view());
      block<T> expected = c;
      reference::gemm(ta, tb, T(0.5), a.view(), b.view(), T(-2), expected.view());
      CHECK(distance(r.fetch(), expected.values) < law_tolerance<T>);
      gemm(at.queue, ta, tb, T(0), at(a), at(b), T(-2), r.view());
    }
  CHECK(gemm_calls == 4);
  const block<T> a(7, 9, 1, placing{}), b(9, 5, 2, 0), c(7, 5, 3, 2);
  const std::vector<T> bias = block<T>(1, 5, 4, 0).values;
  for (const bool knows : {true, false})
    for (const bool relu : {true, false}) {
      knows_epilogues = knows;
      gemm_calls = 0;
      staged_block<T, cuda_device> r(at.queue, c);
      gemm_bias_relu(at.queue, at(a), at(b), at(bias), relu, T(-2), r.view());
      block<T> expected = c;
      reference::gemm_bias_relu(a.view(), b.view(), bias.data(), relu, T(-2), expected.view());
      CHECK(distance(r.fetch(), expected.values) < law_tolerance<T>);
      CHECK(gemm_calls == (knows ? 1 : 2));
    }
  knows_epilogues = true;
}

TEST_CASE_TEMPLATE("cuda gradients of gemm_bias_relu: what the library is given, and what it refuses", T,
                   float, double) {
  stage<cuda_device> at(queue_with_libraries());
  const block<T> a(7, 9, 1, placing{}), b(9, 5, 2, 0), dc(7, 5, 3, 2), db(9, 5, 4, 1), dbias(1, 5, 5, 0);
  for (const bool serves : {true, false}) {
    knows_epilogues = serves;
    gemm_calls = 0;
    staged_block<T, cuda_device> weight(at.queue, db), bias(at.queue, dbias), z(at.queue, a);
    gemm_bias_gradient(at.queue, at(a), at(dc), weight.view(), bias.data());
    CHECK(gemm_calls == (serves ? 1 : 2));
    block<T> expected = db, sums = dbias, dz = a;
    reference::gemm_bias_gradient(a.view(), dc.view(), expected.view(), sums.view().data);
    CHECK(distance(weight.fetch(), expected.values) < law_tolerance<T>);
    CHECK(distance(bias.fetch(), sums.values) < law_tolerance<T>);
    gemm_relu_backward(at.queue, at(dc), at(b), at(a), z.view());
    reference::gemm_relu_backward(dc.view(), b.view(), a.view(), dz.view());
    CHECK(distance(z.fetch(), dz.values) < law_tolerance<T>);
  }
  knows_epilogues = true;
}

TEST_CASE_TEMPLATE("cuda tuned_spmm: tries the library once and plans once", T, float, double) {
  account = {};
  stage<cuda_device> at(queue_with_libraries());
  partita::local::tuned_spmm<T, cuda_device> product;
  const sparse_block<T> a = aligned_block<T>();
  const partita::local::csr_view<T> staged = at(a);
  const block<T> x(40, 8, 1, placing{4, 0}), y(5, 8, 2, placing{0, 0});
  const block<T> wide(40, 16, 1, placing{4, 0}), wide_y(5, 16, 2, placing{0, 0});
  check_product(product, at, staged, a, x, y);
  CHECK(account.plans == 1);
  CHECK(account.nonzeros == 79);
  const int tried = account.calls;
  CHECK(tried >= 4);
  for (int round = 0; round < 3; ++round) check_product(product, at, staged, a, x, y);
  CHECK(account.plans == 1);
  CHECK(account.calls <= tried + 3);
  check_product(product, at, staged, a, wide, wide_y);
  CHECK(account.plans == 2);
  const sparse_block<T> from_two({5, 0, 1, 70, 3}, 40);  // as the second tile of a rank is
  check_product(product, at, at(from_two), from_two, x, y);
  CHECK(account.plans == 3);
}

TEST_CASE_TEMPLATE("cuda tuned_spmm: the own kernel fuses the epilogue though there is a library", T, float,
                   double) {
  const sparse_block<T> a = aligned_block<T>();
  const block<T> x(40, 8, 1, placing{4, 0}), y(5, 8, 2, placing{0, 0}), bias(1, 8, 3, 0);
  for (const int repeats : {1, 3000}) {  // the faster one, and a slow one
    account = {.repeats = repeats};
    stage<cuda_device> at(queue_with_libraries());
    partita::local::tuned_spmm<T, cuda_device> product;
    const partita::local::csr_view<T> staged = at(a);
    const auto of_x = at(x);
    const T* const of_bias = at(bias.values);
    for (const auto& [alpha, beta] : {std::pair(T(1), T(0.5)), std::pair(T(-2), T(0)), std::pair(T(2), T(3))})
      for (int round = 0; round < 2; ++round) {
        const partita::local::spmm_epilogue<T> e{alpha, beta, of_bias, true};
        staged_block<T, cuda_device> r(at.queue, y);
        const emulator::counters before = emulator::count();
        product(at.queue, staged, of_x, e, r.view());
        const std::uint64_t launches = (emulator::count() - before).launches;
        if (repeats > 1 && round == 1) CHECK(launches == 3);  // the three of a fold
        block<T> expected = y;
        reference::spmm_fused(a.view(), x.view(), {alpha, beta, bias.values.data(), true}, expected.view());
        CHECK(distance(r.fetch(), expected.values) < law_tolerance<T>);
      }
    CHECK(account.plans == 1);
  }
}

TEST_CASE_TEMPLATE("cuda tuned_spmm: the own kernel where the library cannot serve", T, float, double) {
  account = {};
  stage<cuda_device> at(queue_with_libraries());
  partita::local::tuned_spmm<T, cuda_device> product;
  const sparse_block<T> a = aligned_block<T>();
  const partita::local::csr_view<T> staged = at(a);
  const block<T> x(40, 8, 1, placing{4, 0}), y(5, 8, 2, placing{0, 0});
  check_product(product, at, staged, a, block<T>(40, 8, 1, placing{4, 1}), y);
  check_product(product, at, staged, a, x, block<T>(5, 8, 2, placing{4, 1}));
  check_product(product, at, staged, a, block<T>(40, 8, 1, placing{1, 0}), y);
  CHECK(account.calls == 0);
  account.refuses = true;
  check_product(product, at, staged, a, x, y);
  check_product(product, at, staged, a, x, y);
  CHECK(account.calls == 1);
  account = {.fails = true};
  partita::local::tuned_spmm<T, cuda_device> another;
  for (int round = 0; round < 2; ++round) check_product(another, at, staged, a, x, y);
  CHECK(account.calls == 1);
  account = {.lacks_memory = true};
  partita::local::tuned_spmm<T, cuda_device> bounded;
  for (int round = 0; round < 2; ++round) check_product(bounded, at, staged, a, x, y);
  CHECK(account.calls == 1);
  partita::device_queue<cuda_device> without;
  stage<cuda_device> there(without);
  check_product(product, there, there(a), a, x, y);
  CHECK(account.calls == 1);
}

TEST_CASE("the inverse of a pattern reads the number of entries only where the view does not know it") {
  stage<cuda_device> at{partita::device_queue<cuda_device>()};
  const sparse_block<double> p(23, 19);
  partita::local::csr_view<double> a = at.pattern(p);
  const auto entries = [&] {
    const std::uint64_t before = emulator::calls("cudaStreamSynchronize");
    const auto inverse = inverse_of(at.queue, a);
    const std::uint64_t waits = emulator::calls("cudaStreamSynchronize") - before;
    std::vector<local_index> numbers(inverse.entry_numbers.size());
    copy(at.queue, inverse.entry_numbers.span(), std::span(numbers));
    return std::pair(waits, numbers);
  };
  const auto [waits, numbers] = entries();
  a.entries = p.end() - 2;
  const auto [no_waits, same] = entries();
  CHECK(waits == 2);
  CHECK(no_waits == 0);
  CHECK(numbers == same);
}

TEST_CASE("products with a pattern by its columns sort and allocate nothing once its inverse is made") {
  stage<cuda_device> at{partita::device_queue<cuda_device>()};
  const sparse_block<double> p(23, 19);
  const block<double> rows(23, 4, 1, 0), cols(19, 4, 2, 0), edges(p.end(), 4, 3, 0);
  const partita::local::csr_view<double> a = at.pattern(p);
  const auto inverse = inverse_of(at.queue, a);
  const auto target = at(rows), source = at(cols);
  staged_block<double, cuda_device> x(at.queue, cols), dsource(at.queue, cols), dtarget(at.queue, rows),
      g(at.queue, edges);
  const auto backward = [&] {
    const emulator::counters before = emulator::count();
    edge_multiply_transposed(at.queue, inverse, {4, 1, 0}, g.data(), target, 0.0, x.view());
    edge_softmax_gradient(at.queue, a, inverse, 4, 0.2, source, target, target, target, 0.0, g.data(),
                          dsource.view(), dtarget.view());
    return emulator::count() - before;
  };
  backward();
  const emulator::counters steady = backward();
  CHECK(steady.launches == 3 * 3);  // three folds
  CHECK(steady.allocations == 0);
  CHECK(steady.stream_synchronisations == 0);
}

}  // namespace test_local_cuda_libraries

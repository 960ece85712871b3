// Every kernel of the place cuda, compiled by nvcc for float and double: what only nvcc refuses shows here.
// It need not run. Functions that kernels are given are objects of named types with a constexpr operator().
#include <span>

#include "partita/local/cuda/kernels.hpp"

namespace {

using partita::csr_view;
using partita::head_slice;
using partita::local_index;
using partita::matrix_view;
using kernels = partita::kernels<partita::cuda>;

struct twice {
  template <class T>
  constexpr T operator()(T x) const {
    return 2 * x;
  }
};
struct plus_place {
  template <class T>
  constexpr T operator()(local_index i, local_index j, T x) const {
    return x + static_cast<T>(i + j);
  }
};
struct minus_half {
  template <class T>
  constexpr T operator()(T x, T y) const {
    return x - y / 2;
  }
};
struct by_head {
  template <class T>
  constexpr T operator()(local_index, local_index, local_index h, T x) const {
    return x * static_cast<T>(h);
  }
};

template <class T>
void dense(const partita::queue<partita::cuda>& q, matrix_view<T> x, matrix_view<T> y, T* line,
           std::span<const local_index> rows) {
  kernels::gemm(q, false, true, T(1), x, x, T(0), y);
  kernels::affine(q, x, y, line, true, y);
  kernels::copy(q, x, y);
  kernels::fill(q, T(1), y);
  kernels::pack(q, x, line);
  kernels::unpack(q, line, y);
  kernels::gather_rows(q, x, rows, line);
  kernels::map(q, twice{}, x, y);
  kernels::map_indexed(q, plus_place{}, x, y);
  kernels::zip(q, minus_half{}, x, y, y);
  kernels::add_row(q, line, y);
  kernels::scale_rows(q, line, y);
  kernels::divide_rows(q, line, y);
  kernels::column_sums(q, x, line);
  kernels::row_sums(q, x, line);
  kernels::row_max(q, x, line);
  kernels::fill(q, kernels::sum(q, x), y);
  kernels::softmax_exp(q, x, line, y, line);
  kernels::fill(q, static_cast<T>(kernels::cross_entropy(q, x, rows.data(), T(1), y)), y);
  kernels::fill(q, static_cast<T>(kernels::count_correct(q, x, rows.data())), y);
  kernels::scatter_add_rows(q, line, rows, y);
}

template <class T>
void sparse(const partita::queue<partita::cuda>& q, csr_view<T> a, matrix_view<T> x, matrix_view<T> y,
            matrix_view<local_index> arg) {
  kernels::spmm(q, a, x, T(0), y);
  kernels::spmm_fused(q, a, x, {T(0), x.data, x.data, x.data, true}, y);
  kernels::spmm_product<T> product;
  product(q, a, x, T(1), y);
  product.forget();
  kernels::max_aggregate(q, a, x, 0, true, y, arg);
  kernels::finish_max(q, y, matrix_view<const local_index>(arg));
  kernels::max_scatter(q, matrix_view<const local_index>(arg), y, 0, x);
}

template <class T>
void edges(const partita::queue<partita::cuda>& q, csr_view<T> a, matrix_view<T> x, matrix_view<T> y,
           T* values) {
  const head_slice s{2, 8, 0};
  kernels::edge_apply(q, a, 2, by_head{}, values, values);
  kernels::edge_scores(q, a, 2, T(1), x, y, values);
  kernels::edge_log_sum(q, a, 2, T(1), x, y, y);
  kernels::edge_softmax(q, a, 2, T(1), x, y, y, values);
  kernels::edge_softmax_gradient(q, a, 2, T(1), x, y, y, values, y, T(0), x, y);
  kernels::edge_row_dot(q, a, 2, values, values, y);
  kernels::edge_row_fold(q, a, 2, minus_half{}, values, y);
  kernels::edge_row_softmax(q, a, 2, values, values);
  kernels::edge_row_softmax_gradient(q, a, 2, values, values, values);
  kernels::edge_multiply(q, a, s, values, x, T(0), y);
  kernels::edge_multiply_transposed(q, a, s, values, y, T(0), x);
  kernels::edge_dot(q, a, s, y, x, T(0), values);
}

template <class T>
void all(const partita::queue<partita::cuda>& q) {
  dense<T>(q, {}, {}, nullptr, {});
  sparse<T>(q, {}, {}, {}, {});
  edges<T>(q, {}, {}, {}, nullptr);
}

}  // namespace

void instantiate_kernels(const partita::queue<partita::cuda>& q) {
  all<float>(q);
  all<double>(q);
}

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Factorisations of small dense matrices of one rank through LAPACKE, on row-major blocks of any row stride.
/// Local, on one thread. Singular matrices are results or return values; LAPACK's other complaints are errors
/// that name the routine, the shapes and `info`.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <lapacke.h>
#include <span>
#include <type_traits>
#include <vector>

#include "partita/local/blas/gemm.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"

namespace partita::lapack {

namespace detail {

/// single of float, otherwise double, as they are in LAPACKE.
template <class T, class Single, class Double>
constexpr auto routine_of(Single single, Double twofold) {
  if constexpr (sizeof(T) == sizeof(float))
    return single;
  else
    return twofold;
}

/// Throws error unless info is 0. LAPACKE reports an argument that contains NaN as info < 0.
inline void require_done(const char* routine, matrix_shape a, lapack_int info) {
  if (info == 0) return;
  base::throw_error<error>({"LAPACK's ", routine, " of ", a, " failed with info ",
                            static_cast<long long>(info),
                            info < 0 ? ": an argument contains NaN" : ": no convergence"});
}

template <class View>
void require_square(const char* what, const View& a) {
  if (a.rows != a.cols)
    base::throw_error<shape_error>({what, " needs a square matrix, not ", local::shape_of(a)});
}

inline void require_count(const char* what, std::size_t given, local_index needed, const char* of) {
  if (given != static_cast<std::size_t>(needed))
    base::throw_error<shape_error>({what, " writes ", needed, " ", of, ", not ", given});
}

template <class View>
bool is_empty(const View& a) {
  return a.rows == 0 || a.cols == 0;
}

/// Throws shape_error if rows overlap.
template <class View>
lapack_int leading(const View& a) {
  if (a.rows > 1 && a.row_stride < a.cols)
    base::throw_error<shape_error>({"a block of ", local::shape_of(a), " has ",
                                    static_cast<long long>(a.row_stride),
                                    " elements from one row to the next"});
  return static_cast<lapack_int>(local::leading_size(a));
}

/// A(i, j) = 0 below the diagonal.
template <class T>
void clear_lower(matrix_view<T> a) {
  for (local_index i = 1; i < a.rows; ++i) std::fill_n(a.row_data(i), std::min(i, a.cols), T(0));
}

}  // namespace detail

/// G = R^T R; the upper triangular R replaces G, its lower triangle is 0. Of G only the upper triangle is
/// read.
///
/// G is n x n. Returns false, with G unspecified, if it is not positive definite to working precision or
/// contains numbers that are not finite. Throws shape_error unless G is square.
template <class T>
[[nodiscard]] bool cholesky(matrix_view<T> g) {
  detail::require_square("a Cholesky factorisation", g);
  if (detail::is_empty(g)) return true;
  const blas::one_thread limit;
  constexpr auto potrf = detail::routine_of<T>(LAPACKE_spotrf, LAPACKE_dpotrf);
  // The upper triangle by rows is the lower one by columns: G = L L^T with L = R^T.
  if (potrf(LAPACK_COL_MAJOR, 'L', g.rows, g.data, detail::leading(g)) != 0) return false;
  detail::clear_lower(g);
  for (local_index i = 0; i < g.rows; ++i)
    if (!std::isfinite(g(i, i))) return false;
  return true;
}

/// R = R^-1 of an upper triangular R; the lower triangle is neither read nor written.
///
/// R is n x n. Returns false, with R unchanged, if a diagonal element is 0. Throws shape_error unless R is
/// square, error if it contains NaN.
template <class T>
[[nodiscard]] bool invert_upper(matrix_view<T> r) {
  detail::require_square("an inverse", r);
  if (detail::is_empty(r)) return true;
  const blas::one_thread limit;
  constexpr auto trtri = detail::routine_of<T>(LAPACKE_strtri, LAPACKE_dtrtri);
  const lapack_int info = trtri(LAPACK_COL_MAJOR, 'L', 'N', r.rows, r.data, detail::leading(r));
  if (info > 0) return false;
  detail::require_done("trtri", local::shape_of(r), info);
  return true;
}

/// B = R^-1 B, or R^-T B; of R only the upper triangle is read. One after the other, transposed first, they
/// solve (R^T R) X = B after `cholesky`.
///
/// R is n x n, B n x k. A diagonal element of 0 gives numbers that are not finite. Throws shape_error naming
/// the shapes.
template <class T>
void solve_upper(local::input_view<T> r, matrix_view<T> b, bool transposed = false) {
  detail::require_square("a triangular solve", r);
  local::require_equal("solve_upper", "b", local::shape_of(b), "the b that r needs",
                       matrix_shape{r.rows, b.cols});
  if (detail::is_empty(b)) return;
  const blas::one_thread limit;
  constexpr auto trsm = detail::routine_of<T>(cblas_strsm, cblas_dtrsm);
  trsm(CblasRowMajor, CblasLeft, CblasUpper, transposed ? CblasTrans : CblasNoTrans, CblasNonUnit, b.rows,
       b.cols, T(1), r.data, detail::leading(r), b.data, detail::leading(b));
}

/// A = Q R by Householder reflections; the first k = min(m, n) columns of A become Q, with orthonormal
/// columns even where A is singular.
///
/// A is m x n, R k x n, upper triangular or trapezoidal. Signs of R's diagonal are as LAPACK leaves them.
/// Throws shape_error naming the shapes, error if A contains NaN.
template <class T>
void qr(matrix_view<T> a, matrix_view<T> r) {
  const local_index k = std::min(a.rows, a.cols);
  local::require_equal("qr", "r", local::shape_of(r), "the r of a", matrix_shape{k, a.cols});
  if (k == 0) return;
  const blas::one_thread limit;
  constexpr auto geqrf = detail::routine_of<T>(LAPACKE_sgeqrf, LAPACKE_dgeqrf);
  constexpr auto orgqr = detail::routine_of<T>(LAPACKE_sorgqr, LAPACKE_dorgqr);
  const lapack_int lead = detail::leading(a);
  std::vector<T> tau(static_cast<std::size_t>(k));
  detail::require_done("geqrf", local::shape_of(a),
                       geqrf(LAPACK_ROW_MAJOR, a.rows, a.cols, a.data, lead, tau.data()));
  for (local_index i = 0; i < k; ++i) std::copy_n(a.row_data(i), a.cols, r.row_data(i));
  detail::clear_lower(r);
  detail::require_done("orgqr", local::shape_of(a),
                       orgqr(LAPACK_ROW_MAJOR, a.rows, k, k, a.data, lead, tau.data()));
}

/// A V = V diag(values): the eigenvalues of a symmetric A in ascending order; the orthonormal eigenvectors
/// replace A, as columns. Of A only the upper triangle is read.
///
/// A is n x n, `values` has n elements. Throws shape_error naming the shapes, error if A contains NaN or the
/// iteration does not converge.
template <class T>
void symmetric_eigen(matrix_view<T> a, std::span<std::type_identity_t<T>> values) {
  detail::require_square("a symmetric eigenproblem", a);
  detail::require_count("a symmetric eigenproblem", values.size(), a.rows, "eigenvalues");
  if (detail::is_empty(a)) return;
  const blas::one_thread limit;
  constexpr auto syevd = detail::routine_of<T>(LAPACKE_ssyevd, LAPACKE_dsyevd);
  detail::require_done("syevd", local::shape_of(a),
                       syevd(LAPACK_ROW_MAJOR, 'V', 'U', a.rows, a.data, detail::leading(a), values.data()));
}

/// A V = B V diag(values), V^T B V = I, for a symmetric A and a symmetric positive definite B: eigenvalues in
/// ascending order, the eigenvectors replace A, as columns. Of A and B only the upper triangles are read; B
/// is overwritten.
///
/// A and B are n x n, `values` has n elements. Returns false, with A unspecified, if B is not positive
/// definite. Throws shape_error naming the shapes, error if an operand contains NaN or the iteration does not
/// converge.
template <class T>
[[nodiscard]] bool generalized_eigen(matrix_view<T> a, std::type_identity_t<matrix_view<T>> b,
                                     std::span<std::type_identity_t<T>> values) {
  detail::require_square("a generalised eigenproblem", a);
  local::require_equal("generalized_eigen", "a", local::shape_of(a), "b", local::shape_of(b));
  detail::require_count("a generalised eigenproblem", values.size(), a.rows, "eigenvalues");
  if (detail::is_empty(a)) return true;
  const blas::one_thread limit;
  constexpr auto sygvd = detail::routine_of<T>(LAPACKE_ssygvd, LAPACKE_dsygvd);
  const lapack_int info = sygvd(LAPACK_ROW_MAJOR, 1, 'V', 'U', a.rows, a.data, detail::leading(a), b.data,
                                detail::leading(b), values.data());
  if (info > a.rows) return false;
  detail::require_done("sygvd", local::shape_of(a), info);
  return true;
}

/// A = U diag(values) V^T, the thin singular value decomposition, with singular values in descending order. A
/// is overwritten.
///
/// A is m x n, U m x k, V^T k x n, `values` has k elements, k = min(m, n). Throws shape_error naming the
/// shapes, error if A contains NaN or the iteration does not converge.
template <class T>
void svd(matrix_view<T> a, std::type_identity_t<matrix_view<T>> u, std::span<std::type_identity_t<T>> values,
         std::type_identity_t<matrix_view<T>> v_transposed) {
  const local_index k = std::min(a.rows, a.cols);
  local::require_equal("svd", "u", local::shape_of(u), "the u of a", matrix_shape{a.rows, k});
  local::require_equal("svd", "v_transposed", local::shape_of(v_transposed), "the v_transposed of a",
                       matrix_shape{k, a.cols});
  detail::require_count("a singular value decomposition", values.size(), k, "singular values");
  if (k == 0) return;
  const blas::one_thread limit;
  constexpr auto gesdd = detail::routine_of<T>(LAPACKE_sgesdd, LAPACKE_dgesdd);
  detail::require_done("gesdd", local::shape_of(a),
                       gesdd(LAPACK_ROW_MAJOR, 'S', a.rows, a.cols, a.data, detail::leading(a), values.data(),
                             u.data, detail::leading(u), v_transposed.data, detail::leading(v_transposed)));
}

}  // namespace partita::lapack

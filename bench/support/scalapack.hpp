// SPDX-License-Identifier: Apache-2.0
#pragma once
/// ScaLAPACK's distributed GEMM. The library is installed without a header, so its functions are declared
/// here.

#include <algorithm>
#include <array>
#include <mpi.h>

#include "partita/base/error.hpp"

extern "C" {
int Csys2blacs_handle(MPI_Comm comm);
void Cfree_blacs_system_handle(int handle);
void Cblacs_gridinit(int* context, const char* order, int rows, int cols);
void Cblacs_gridinfo(int context, int* rows, int* cols, int* row, int* col);
void Cblacs_gridexit(int context);
void descinit_(int* descriptor, const int* m, const int* n, const int* mb, const int* nb, const int* row,
               const int* col, const int* context, const int* lld, int* info);
void pdgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n, const int* k,
             const double* alpha, const double* a, const int* ia, const int* ja, const int* of_a,
             const double* b, const int* ib, const int* jb, const int* of_b, const double* beta, double* c,
             const int* ic, const int* jc, const int* of_c);
}

namespace bench {

/// A process grid, numbered by rows, over all ranks of MPI_COMM_WORLD. Collective.
class process_grid {
 public:
  process_grid(int rows, int cols)
      : rows_(rows), cols_(cols), handle_(Csys2blacs_handle(MPI_COMM_WORLD)), context_(handle_) {
    Cblacs_gridinit(&context_, "Row", rows, cols);
    Cblacs_gridinfo(context_, &rows_, &cols_, &row_, &col_);
  }
  process_grid(const process_grid&) = delete;
  process_grid& operator=(const process_grid&) = delete;
  ~process_grid() {
    Cblacs_gridexit(context_);
    Cfree_blacs_system_handle(handle_);
  }

  int rows() const { return rows_; }
  int cols() const { return cols_; }
  int row() const { return row_; }
  int col() const { return col_; }
  int context() const { return context_; }

 private:
  int rows_, cols_, row_ = 0, col_ = 0;
  int handle_, context_;
};

/// One dimension, dealt to processes in blocks by turns.
struct dealt {
  int size = 0, block = 1, process = 0, processes = 1;

  /// Indices of this process.
  int count() const {
    const int whole = size / block, rounds = whole / processes, more = whole % processes;
    return rounds * block + (process < more ? block : process == more ? size % block : 0);
  }
  int global(int local) const { return (local / block * processes + process) * block + local % block; }
};

/// The cut of a block-cyclic matrix; a process holds its part by columns.
class block_cyclic {
 public:
  /// Throws error if ScaLAPACK refuses it.
  block_cyclic(const process_grid& g, int m, int n, int row_block, int col_block)
      : rows_{m, row_block, g.row(), g.rows()}, cols_{n, col_block, g.col(), g.cols()} {
    const int origin = 0, context = g.context(), leading = std::max(1, rows_.count());
    int info = 0;
    descinit_(descriptor_.data(), &m, &n, &row_block, &col_block, &origin, &origin, &context, &leading,
              &info);
    if (info != 0) partita::base::throw_error<partita::error>({"descinit refuses its argument ", -info});
  }

  const dealt& rows() const { return rows_; }
  const dealt& cols() const { return cols_; }
  std::size_t size() const {
    return static_cast<std::size_t>(rows_.count()) * static_cast<std::size_t>(cols_.count());
  }
  const int* descriptor() const { return descriptor_.data(); }

 private:
  dealt rows_, cols_;
  std::array<int, 9> descriptor_{};
};

/// C = op(A) B (m x n = m x k times k x n), op(A) = A or A^T. Collective over the grid.
inline void pdgemm(bool transpose_a, int m, int n, int k, const double* a, const block_cyclic& of_a,
                   const double* b, const block_cyclic& of_b, double* c, const block_cyclic& of_c) {
  const double alpha = 1, beta = 0;
  const int one = 1;
  pdgemm_(transpose_a ? "T" : "N", "N", &m, &n, &k, &alpha, a, &one, &one, of_a.descriptor(), b, &one, &one,
          of_b.descriptor(), &beta, c, &one, &one, of_c.descriptor());
}

}  // namespace bench

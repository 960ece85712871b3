// SPDX-License-Identifier: Apache-2.0
#pragma once
/// MPI calls from C++: error codes become exceptions, communicators are owned, counts are range-checked.

#include <climits>
#include <exception>
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1  // the C++ bindings, deprecated in 2009, do not compile without warnings
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>
#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#include <string>
#include <utility>

#include "partita/comm/operation.hpp"

namespace partita::mpi::detail {

inline int error_class(int code) {
  int number = MPI_ERR_UNKNOWN;
  MPI_Error_class(code, &number);
  return number;
}
inline bool is_truncation(int code) { return code != MPI_SUCCESS && error_class(code) == MPI_ERR_TRUNCATE; }

/// Throws communication_error naming the call when `code` is not success.
inline void check(int code, const char* call) {
  if (code != MPI_SUCCESS)
    base::throw_error<communication_error>({call, " failed: MPI answers error class ", error_class(code)});
}
/// Throws communication_error naming the operation when `code` is not success.
inline void check(int code, const comm::collective& op) {
  if (code != MPI_SUCCESS)
    base::throw_error<communication_error>(
        {describe(op), " failed: MPI answers error class ", error_class(code)});
}
/// The same of a message from or to a rank.
inline void check(int code, const comm::collective& op, bool incoming, int rank) {
  if (code != MPI_SUCCESS)
    base::throw_error<communication_error>({describe(op), " failed: MPI answers error class ",
                                            error_class(code), " to a message ", incoming ? "from" : "to",
                                            " rank ", rank});
}

/// Whether this MPI accepts device pointers; false if it does not tell.
inline bool cuda_aware() {
#ifdef MPIX_CUDA_AWARE_SUPPORT
  return MPIX_Query_cuda_support() == 1;
#else
  return false;
#endif
}

inline MPI_Datatype datatype(comm::element_type type) {
  switch (type) {
    case comm::element_type::u8:
      return MPI_UINT8_T;
    case comm::element_type::i32:
      return MPI_INT32_T;
    case comm::element_type::i64:
      return MPI_INT64_T;
    case comm::element_type::f32:
      return MPI_FLOAT;
    case comm::element_type::f64:
      return MPI_DOUBLE;
    case comm::element_type::bf16:
      return MPI_UINT16_T;  // reductions are not left to MPI
  }
  return MPI_DATATYPE_NULL;
}

/// Converts a count or displacement to int. Throws communication_error naming the operation beyond INT_MAX.
inline int fit(global_index elements, const comm::collective& op) {
  if (elements < 0 || elements > INT_MAX)
    base::throw_error<communication_error>(
        {describe(op), ": MPI counts no more than ", INT_MAX, " elements, not ", elements});
  return static_cast<int>(elements);
}

/// Owns an MPI communicator. Its name tells tools, and the byte counters of the tests, its purpose.
class owned_comm {
 public:
  explicit owned_comm(MPI_Comm comm, const char* name) : comm_(comm) {
    check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_set_name(comm_, name), "MPI_Comm_set_name");
  }
  owned_comm(owned_comm&& other) noexcept : comm_(std::exchange(other.comm_, MPI_COMM_NULL)) {}
  owned_comm& operator=(owned_comm&&) = delete;
  /// Freeing is collective, so it is skipped during stack unwinding and after MPI_Finalize.
  ~owned_comm() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (comm_ != MPI_COMM_NULL && finalized == 0 && std::uncaught_exceptions() == 0) MPI_Comm_free(&comm_);
  }

  MPI_Comm get() const { return comm_; }
  void leak() { comm_ = MPI_COMM_NULL; }
  int rank() const {
    int rank = 0;
    check(MPI_Comm_rank(comm_, &rank), "MPI_Comm_rank");
    return rank;
  }
  int size() const {
    int size = 0;
    check(MPI_Comm_size(comm_, &size), "MPI_Comm_size");
    return size;
  }

 private:
  MPI_Comm comm_;
};

inline owned_comm duplicate(MPI_Comm comm, const char* name) {
  MPI_Comm copy = MPI_COMM_NULL;
  check(MPI_Comm_dup(comm, &copy), "MPI_Comm_dup");
  return owned_comm(copy, name);
}

/// Name of communicators for control traffic, which does not belong to any operation.
inline constexpr const char* check_comm_name = "partita checks";

}  // namespace partita::mpi::detail

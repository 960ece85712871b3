// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What computes a product in the GEMM benchmark: partita under a schedule, ScaLAPACK's pdgemm, serial CBLAS.

#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <thread>

#include "gemm_problem.hpp"
#include "partita/algebra/gemm.hpp"
#include "partita/comm/mpi.hpp"
#include "partita/local/blas/gemm.hpp"
#include "partita/partition/gemm_grid.hpp"
#ifdef BENCH_WITH_SCALAPACK
#include "scalapack.hpp"
#endif

namespace bench {

using namespace partita;

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Memory for A, B and C that all contenders of a rank share. Only the check needs the values of a product;
/// those that another contender left are as good for measuring.
class operand_memory {
 public:
  explicit operand_memory(const device_queue<host>& q) : queue_(q) {}

  void fit(std::size_t a, std::size_t b, std::size_t c) {
    const std::size_t sizes[] = {a, b, c};
    for (std::size_t x = 0; x < 3; ++x) {
      if (sizes[x] <= all_[x].size()) continue;
      all_[x] = buffer<double, host>(queue_, sizes[x]);
      std::ranges::fill(all_[x].span(), 1.0);
    }
  }
  std::span<double> a(std::size_t size) { return all_[0].span().first(size); }
  std::span<double> b(std::size_t size) { return all_[1].span().first(size); }
  std::span<double> c(std::size_t size) { return all_[2].span().first(size); }

 private:
  device_queue<host> queue_;
  std::array<buffer<double, host>, 3> all_;
};

/// One way to compute a product. Members are collective, except where they say otherwise.
class contender {
 public:
  virtual ~contender() = default;
  /// Makes the memory large enough. Local.
  virtual void reserve(operand_memory&) const = 0;
  /// Takes the operands' memory, and plans.
  virtual void prepare(operand_memory&) = 0;
  virtual void fill() = 0;
  virtual void multiply() = 0;
  /// The largest difference of this rank's part of C to the result. Local.
  virtual double difference() const = 0;
  /// Seconds of one product on the slowest rank, the same on all ranks.
  virtual double measure(const communicator& world) {
    world.all_reduce(0.0);
    const auto begin = std::chrono::steady_clock::now();
    multiply();
    return world.all_reduce(seconds_since(begin), reduction::max);
  }

  std::string program, mesh, layouts, schedule;
  bool automatic = false;        ///< the schedule that the library chooses
  global_index words = 0;        ///< that the busiest rank receives
  double planning = 0;           ///< seconds
  std::size_t buffer_bytes = 0;  ///< of the busiest rank
  global_index stages = 0;
  std::vector<double> seconds;
};

/// partita's product of matrices in given places.
class planned_product final : public contender {
  using matrix = dense<double, dynamic_layout, host>;

 public:
  planned_product(const gemm_problem& p, const partita::mesh<host>& m, const partition::gemm_problem& places,
                  std::string layout_names, std::optional<partition::gemm_schedule> given)
      : problem_(p), mesh_(m), places_(places), given_(given) {
    program = "partita";
    mesh = to_string(m.shape());
    layouts = std::move(layout_names);
    automatic = !given;
  }

  void reserve(operand_memory& memory) const override {
    memory.fit(size(places_.a), size(places_.b), size(places_.c));
  }
  void prepare(operand_memory& memory) override {
    const auto matrix_in = [&](const partition::block_layout& p, std::span<double> block) {
      return matrix::view(mesh_, p.axes, p.rows, p.cols, block);
    };
    a_.emplace(matrix_in(places_.a, memory.a(size(places_.a))));
    b_.emplace(matrix_in(places_.b, memory.b(size(places_.b))));
    c_.emplace(matrix_in(places_.c, memory.c(size(places_.c))));
    const auto begin = std::chrono::steady_clock::now();
    if (problem_.transposed_a())
      plan_.emplace(transposed(*a_), *b_, *c_, gemm_options{given_, {}});
    else
      plan_.emplace(*a_, *b_, *c_, gemm_options{given_, {}});
    planning = mesh_.world().all_reduce(seconds_since(begin), reduction::max);
    words = mesh_.world().all_reduce(plan_->predicted().words, reduction::max);
    schedule = to_string(plan_->schedule());
    stages = plan_->stages().count;
    buffer_bytes = plan_->buffer_bytes();
  }
  void fill() override {
    set(*a_, [&](global_index i, global_index j) { return problem_.a(i, j); });
    set(*b_, [&](global_index i, global_index j) { return problem_.b(i, j); });
  }
  void multiply() override {
    if (problem_.transposed_a())
      (*plan_)(transposed(*a_), *b_, *c_);
    else
      (*plan_)(*a_, *b_, *c_);
  }
  double difference() const override {
    double most = 0;
    const interval rows = c_->row_range(), cols = c_->col_range();
    auto next = c_->values().begin();
    for (global_index i = rows.begin; i < rows.end; ++i)
      for (global_index j = cols.begin; j < cols.end; ++j)
        most = std::max(most, std::abs(*next++ - problem_.c(i, j)));
    return most;
  }

 private:
  std::size_t size(const partition::block_layout& p) const {
    return static_cast<std::size_t>(p.block(mesh_.at()).size());
  }
  template <class Value>
  static void set(matrix& x, Value value) {
    const interval rows = x.row_range(), cols = x.col_range();
    auto next = x.values().begin();
    for (global_index i = rows.begin; i < rows.end; ++i)
      for (global_index j = cols.begin; j < cols.end; ++j) *next++ = value(i, j);
  }

  const gemm_problem& problem_;
  partita::mesh<host> mesh_;
  partition::gemm_problem places_;
  std::optional<partition::gemm_schedule> given_;
  std::optional<matrix> a_, b_, c_;
  std::optional<gemm_plan<double, host>> plan_;
};

#ifdef BENCH_WITH_SCALAPACK

/// pdgemm on a process grid, with blocks of given sizes along i, j and k.
class scalapack_product final : public contender {
 public:
  struct blocks {
    int i, j, k;
  };

  scalapack_product(const gemm_problem& p, int rows, int cols, blocks size)
      : problem_(p),
        grid_(rows, cols),
        of_a_(p.transposed_a() ? cut(p.k(), p.m(), size.k, size.i) : cut(p.m(), p.k(), size.i, size.k)),
        of_b_(cut(p.k(), p.n(), size.k, size.j)),
        of_c_(cut(p.m(), p.n(), size.i, size.j)) {
    program = "pdgemm";
    mesh = base::sentence_of({rows, "x", cols});
    layouts = base::sentence_of({size.i, " x ", size.j, " x ", size.k});
  }

  void reserve(operand_memory& memory) const override {
    memory.fit(of_a_.size(), of_b_.size(), of_c_.size());
  }
  void prepare(operand_memory& memory) override { memory_ = &memory; }
  void fill() override {
    set(of_a_, memory_->a(of_a_.size()), [&](int i, int j) { return problem_.a(i, j); });
    set(of_b_, memory_->b(of_b_.size()), [&](int i, int j) { return problem_.b(i, j); });
  }
  void multiply() override {
    const blas::one_thread limit;
    pdgemm(problem_.transposed_a(), static_cast<int>(problem_.m()), static_cast<int>(problem_.n()),
           static_cast<int>(problem_.k()), memory_->a(of_a_.size()).data(), of_a_,
           memory_->b(of_b_.size()).data(), of_b_, memory_->c(of_c_.size()).data(), of_c_);
  }
  double difference() const override {
    double most = 0;
    auto next = memory_->c(of_c_.size()).begin();
    for (int j = 0; j < of_c_.cols().count(); ++j)
      for (int i = 0; i < of_c_.rows().count(); ++i)
        most = std::max(most, std::abs(*next++ - problem_.c(of_c_.rows().global(i), of_c_.cols().global(j))));
    return most;
  }

 private:
  block_cyclic cut(global_index m, global_index n, int row_block, int col_block) const {
    return {grid_, static_cast<int>(m), static_cast<int>(n), row_block, col_block};
  }
  template <class Value>
  static void set(const block_cyclic& of, std::span<double> part, Value value) {
    auto next = part.begin();
    for (int j = 0; j < of.cols().count(); ++j)
      for (int i = 0; i < of.rows().count(); ++i) *next++ = value(of.rows().global(i), of.cols().global(j));
  }

  const gemm_problem& problem_;
  process_grid grid_;
  block_cyclic of_a_, of_b_, of_c_;
  operand_memory* memory_ = nullptr;
};

#endif

/// CBLAS on rank 0, with as many threads as there are ranks; the others sleep.
class serial_product final : public contender {
 public:
  serial_product(const gemm_problem& p, const communicator& world) : problem_(p), world_(world) {
    program = "cblas_dgemm";
    mesh = base::sentence_of({world.size(), " threads"});
  }

  void reserve(operand_memory& memory) const override {
    if (world_.rank() == 0)
      memory.fit(size(problem_.shape_of_a()), size(problem_.shape_of_b()), size(problem_.shape_of_c()));
  }
  void prepare(operand_memory& memory) override { memory_ = &memory; }
  void fill() override {
    if (world_.rank() != 0) return;
    set(problem_.shape_of_a(), memory_->a(size(problem_.shape_of_a())),
        [&](global_index i, global_index j) { return problem_.a(i, j); });
    set(problem_.shape_of_b(), memory_->b(size(problem_.shape_of_b())),
        [&](global_index i, global_index j) { return problem_.b(i, j); });
  }
  void multiply() override {
    if (world_.rank() == 0) {
      const auto leading = [](matrix_shape s) { return static_cast<int>(s.cols); };
      blas::multiply(world_.size(), problem_.transposed_a(), false, static_cast<int>(problem_.m()),
                     static_cast<int>(problem_.n()), static_cast<int>(problem_.k()), 1.0,
                     memory_->a(size(problem_.shape_of_a())).data(), leading(problem_.shape_of_a()),
                     memory_->b(size(problem_.shape_of_b())).data(), leading(problem_.shape_of_b()), 0.0,
                     memory_->c(size(problem_.shape_of_c())).data(), leading(problem_.shape_of_c()));
    }
  }
  double difference() const override {
    if (world_.rank() != 0) return 0;
    double most = 0;
    auto next = memory_->c(size(problem_.shape_of_c())).begin();
    for (global_index i = 0; i < problem_.m(); ++i)
      for (global_index j = 0; j < problem_.n(); ++j)
        most = std::max(most, std::abs(*next++ - problem_.c(i, j)));
    return most;
  }
  double measure(const communicator& world) override {
    sleep_until_all_are_here();
    const auto begin = std::chrono::steady_clock::now();
    multiply();
    const double seconds = seconds_since(begin);
    if (world.rank() == 0)  // the threads of the library spin for a while before they sleep
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    sleep_until_all_are_here();
    return world.broadcast(seconds, 0);
  }

 private:
  static std::size_t size(matrix_shape s) {
    return static_cast<std::size_t>(s.rows) * static_cast<std::size_t>(s.cols);
  }
  template <class Value>
  static void set(matrix_shape shape, std::span<double> whole, Value value) {
    auto next = whole.begin();
    for (global_index i = 0; i < shape.rows; ++i)
      for (global_index j = 0; j < shape.cols; ++j) *next++ = value(i, j);
  }
  static void sleep_until_all_are_here() {
    MPI_Request request;
    int complete = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (;;) {
      MPI_Test(&request, &complete, MPI_STATUS_IGNORE);
      if (complete != 0) return;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

  const gemm_problem& problem_;
  communicator world_;
  operand_memory* memory_ = nullptr;
};

}  // namespace bench

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "module.hpp"
#include "partita/compiled/algebra.hpp"
#include "partita/transfer/csr_rows.hpp"

namespace partita::python {

namespace {

/// A sparse matrix on the ranks, with the plans of its products.
template <class T>
class rank_matrix {
 public:
  /// From the arrays of a CSR matrix whose columns ascend in each row. One rank uses them where they are if
  /// they have 32 bits; otherwise each rank gives some rows, which `distribute` sends.
  template <class Index>
  rank_matrix(global_index cols, vector_in<Index> offsets, vector_in<Index> columns, vector_in<T> values,
              const place& where)
      : ranks_(current()),
        shape_{static_cast<global_index>(offsets.size()) - 1, cols},
        arrays_{nb::cast(offsets), nb::cast(columns), nb::cast(values)},
        parts_(ranks_->places()) {
    const mesh_shape shape = where.shape(ranks_->size());
    const auto make_queue = where.queues(ranks_->size());
    const policy& p = find_policy(where.policy);
    ranks_->run([&](std::size_t at, const communicator& world) {
      const mesh<host> m(world, shape, make_queue());
      if constexpr (std::is_same_v<Index, local_index>)
        if (world.size() == 1) {
          parts_[at].emplace(
              matrix::view(m, p, shape_, {values_of(offsets), values_of(columns), values_of(values)}));
          return;
        }
      const interval rows = comm::share_of(shape_.rows, world.rank(), world.size());
      const auto first = offsets.data() + rows.begin;
      std::vector<global_index> from_zero(first, first + rows.size() + 1);
      const auto begin = static_cast<std::size_t>(from_zero.front());
      for (global_index& offset : from_zero) offset -= static_cast<global_index>(begin);
      const auto count = static_cast<std::size_t>(from_zero.back());
      parts_[at].emplace(
          distribute(m, p, shape_,
                     transfer::csr_rows(rows.begin, from_zero, values_of(columns).subspan(begin, count),
                                        values_of(values).subspan(begin, count)),
                     symmetry::one_way));
    });
  }

  rank_matrix(const rank_matrix&) = delete;
  rank_matrix& operator=(const rank_matrix&) = delete;

  /// Y = A X, or A^T X. Returns the seconds of the product itself, on the slowest rank here.
  double multiply(const matrix_in<T>& x, const matrix_out<T>& y, bool transpose) {
    constexpr std::size_t most_plans = 8;  // of as many widths of X
    if (plans_.size() >= most_plans && !plans_.contains({transpose, shape_of(x).cols})) plans_.clear();
    auto& known = plans_[{transpose, shape_of(x).cols}];
    if (!known) known = std::make_shared<rank_plans>(parts_.size());
    const auto plans = known;
    std::vector<double> seconds(parts_.size());
    ranks_->run([&](std::size_t at, const communicator&) {
      const mesh<host>& m = parts_[at]->mesh();
      const auto block = rows_of<T>(m, x);  // (n/P, f)
      auto result = rows_of<T>(m, y);       // (n/P, f)
      auto& plan = (*plans)[at];
      if (!plan)
        plan = transpose ? std::make_unique<spmm_plan<T, host>>(transposed(*parts_[at]), block)
                         : std::make_unique<spmm_plan<T, host>>(*parts_[at], block);
      const double begin = m.ledger().seconds();
      (*plan)(block, result);
      seconds[at] = m.ledger().seconds() - begin;
      complete(*ranks_, m, y);
    });
    return std::ranges::max(seconds);
  }

  /// Whether it is on the ranks of now.
  bool is_usable() const { return ranks_ == current(); }

 private:
  using matrix = sparse<T, dynamic_layout, host>;
  using rank_plans = std::vector<std::unique_ptr<spmm_plan<T, host>>>;

  std::shared_ptr<team> ranks_;
  matrix_shape shape_;
  nb::object arrays_[3];  ///< which a view reads
  std::vector<std::optional<matrix>> parts_;
  std::map<std::pair<bool, global_index>, std::shared_ptr<rank_plans>> plans_;
};

/// C = A B, or A^T B, of arrays that are whole in each process.
template <class T>
void multiply_dense(const matrix_in<T>& a, const matrix_in<T>& b, const matrix_out<T>& c, bool transpose,
                    const place& where) {
  const auto ranks = current();
  const auto make_queue = where.queues(ranks->size());
  ranks->run([&](std::size_t at, const communicator& world) {
    const mesh<host> m(world, {world.size(), 1, 1}, make_queue());
    const auto left = rows_of<T>(m, a);  // (m/P, k)
    if (!transpose) {
      const auto right = dense<T, replicated, host>::view(m, shape_of(b), values_of(b));  // (k, n)
      auto product = rows_of<T>(m, c);                                                    // (m/P, n)
      gemm(T(1), left, right, T(0), product);
      return complete(*ranks, m, c);
    }
    const auto right = rows_of<T>(m, b);  // (k/P, n)
    auto product = at == 0 ? dense<T, replicated, host>::view(m, shape_of(c), values_of(c))
                           : dense<T, replicated, host>(m, shape_of(c));  // (m, n)
    gemm(T(1), transposed(left), right, T(0), product);
  });
}

template <class T>
void bind_in(nb::module_& m, const char* name) {
  using namespace nb::literals;
  const auto make = [](auto index) {
    using Index = decltype(index);
    return nb::init<global_index, vector_in<Index>, vector_in<Index>, vector_in<T>, const place&>();
  };
  nb::class_<rank_matrix<T>>(m, name, "A sparse matrix on the ranks, from the arrays of a CSR matrix.")
      .def(make(local_index()), "cols"_a, "indptr"_a.noconvert(), "indices"_a.noconvert(),
           "data"_a.noconvert(), "place"_a)
      .def(make(global_index()), "cols"_a, "indptr"_a.noconvert(), "indices"_a.noconvert(),
           "data"_a.noconvert(), "place"_a)
      .def("multiply", &rank_matrix<T>::multiply, "x"_a.noconvert(), "y"_a.noconvert(), "transpose"_a = false,
           "Y = A X, or A^T X. Returns the seconds of the product itself.")
      .def_prop_ro("is_usable", &rank_matrix<T>::is_usable, "Whether it is on the ranks of now.");
  m.def("gemm", &multiply_dense<T>, "a"_a.noconvert(), "b"_a.noconvert(), "c"_a.noconvert(),
        "transpose"_a = false, "place"_a = place(), "C = A B, or A^T B. Every process must call.");
}

}  // namespace

void bind_products(nb::module_& m) {
  bind_in<float>(m, "RankMatrix32");
  bind_in<double>(m, "RankMatrix64");
}

}  // namespace partita::python

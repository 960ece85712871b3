// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Consecutive rows of a sparse matrix, read as entries from borrowed CSR arrays.

#include <concepts>
#include <cstddef>
#include <iterator>
#include <span>

#include "partita/base/triplet.hpp"
#include "partita/comm/element_range.hpp"

namespace partita::transfer {

/// Rows first_row, first_row + 1, ... with global columns: row first_row + i has the entries [offsets[i],
/// offsets[i + 1]). A range of triplets for distribute that borrows the arrays without a copy; they must
/// outlive it. Offset, Column: any integer types, 32 or 64 bits. Columns may be unsorted; duplicates are
/// summed. Matches the rows of a PETSc rank (MatCreateMPIAIJWithArrays).
template <class T, std::integral Offset, std::integral Column>
class csr_rows {
 public:
  /// offsets (rows + 1), starting at 0; columns and values (offsets[rows]): contiguous ranges, such as
  /// std::span. Local; no communication. Throws shape_error naming inconsistent sizes or a row with
  /// decreasing offsets. Columns are checked by distribute.
  template <class Offsets, class Columns, class Values>
  csr_rows(global_index first_row, const Offsets& offsets, const Columns& columns, const Values& values)
      : first_row_(first_row), offsets_(offsets), columns_(columns), values_(values) {
    if (offsets_.empty() || offsets_.front() != 0)
      base::throw_error<shape_error>({"the offsets of CSR rows from ", first_row, " on do not begin with 0"});
    for (std::size_t i = 1; i < offsets_.size(); ++i)
      if (offsets_[i] < offsets_[i - 1])
        base::throw_error<shape_error>({"row ", first_row + static_cast<global_index>(i - 1),
                                        " of CSR rows ends at ", offsets_[i], ", before it begins at ",
                                        offsets_[i - 1]});
    if (columns_.size() != static_cast<std::size_t>(offsets_.back()) || values_.size() != columns_.size())
      base::throw_error<shape_error>({"CSR rows with offsets up to ", offsets_.back(), " have ",
                                      columns_.size(), " columns and ", values_.size(), " values"});
  }

  class iterator {
   public:
    using value_type = triplet<T>;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    using iterator_concept = std::forward_iterator_tag;

    iterator() = default;
    triplet<T> operator*() const {
      return {rows_->first_row_ + static_cast<global_index>(row_),
              static_cast<global_index>(rows_->columns_[entry_]), rows_->values_[entry_]};
    }
    iterator& operator++() {
      ++entry_;
      skip_ended_rows();
      return *this;
    }
    iterator operator++(int) {
      iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const iterator& a, const iterator& b) { return a.entry_ == b.entry_; }

   private:
    friend class csr_rows;
    iterator(const csr_rows* rows, std::size_t entry) : rows_(rows), entry_(entry) { skip_ended_rows(); }
    void skip_ended_rows() {
      while (entry_ < rows_->columns_.size() && static_cast<std::size_t>(rows_->offsets_[row_ + 1]) <= entry_)
        ++row_;
    }

    const csr_rows* rows_ = nullptr;
    std::size_t row_ = 0, entry_ = 0;
  };

  iterator begin() const { return {this, 0}; }
  iterator end() const { return {this, columns_.size()}; }

 private:
  global_index first_row_;
  std::span<const Offset> offsets_;
  std::span<const Column> columns_;
  std::span<const T> values_;
};

template <class Offsets, class Columns, class Values>
csr_rows(global_index, const Offsets&, const Columns&, const Values&)
    -> csr_rows<comm::element_of<const Values>, comm::element_of<const Offsets>,
                comm::element_of<const Columns>>;

}  // namespace partita::transfer

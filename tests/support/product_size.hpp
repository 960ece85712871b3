// SPDX-License-Identifier: Apache-2.0
#pragma once
// What of a product with a sparse block is far, for tests that cut it into chunks themselves.

#include "partita/memory/far_cut.hpp"

namespace test_support {

/// The row operand has a row for each row of A, the column operand one for each of its columns.
struct product_size {
  bool structure = false, values = false;            ///< whether those of A are far
  bool row_operand = false, column_operand = false;  ///< whether they are far
  bool reuses = false;             ///< whether rows of the column operand are gathered; else added to
  partita::local_index width = 0;  ///< columns of the dense operands
  std::size_t element = 0;         ///< bytes
  std::size_t slot = 0;            ///< bytes of a slot

  /// For an A of so many columns.
  partita::local::pass_layout of(partita::local_index cols) const {
    using partita::local::along;
    const std::size_t row_bytes = static_cast<std::size_t>(width) * element;
    const partita::local::pass_layout s{
        .structure = structure,
        .renumbers = column_operand,
        .of = {values ? element : 0, column_operand ? row_bytes : 0, row_operand ? row_bytes : 0},
        .has = {along::entries, along::columns, along::rows},
        .kept = {0, 0, row_operand ? row_bytes : 0},
        .slot = slot};
    return reuses && column_operand ? partita::local::with_shared_table(s, cols) : s;
  }
};

}  // namespace test_support

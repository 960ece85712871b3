// SPDX-License-Identifier: Apache-2.0
// Text out of files inside error messages.
#include "partita/io/quote.hpp"

#include <doctest/doctest.h>

namespace test_quote {

namespace text = partita::io::detail;  // not std::quoted

TEST_CASE("quotes: printable, and not too long") {
  CHECK(text::quoted("") == "\"\"");
  CHECK(text::quoted("a b~") == "\"a b~\"");
  CHECK(text::quoted("a\tb\xff\n") == "\"a?b??\"");
  CHECK(text::quoted(std::string(40, 'x')) == '"' + std::string(40, 'x') + '"');
  CHECK(text::quoted(std::string(41, 'x')) == '"' + std::string(40, 'x') + "...\"");
}

}  // namespace test_quote

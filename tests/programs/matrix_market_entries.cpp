// SPDX-License-Identifier: Apache-2.0
// Prints the matrices in Matrix Market files, for matrix_market_scipy.py: the shape and the entries, values
// in hexadecimal, or why the file is refused. Each is read on one thread and on three.
#include <cstdio>

#include "partita/io/matrix_market.hpp"

int main(int argc, char** argv) {
  for (int k = 1; k < argc; ++k)
    for (const int threads : {1, 3}) {
      std::printf("file\n");
      try {
        const auto a = partita::io::read_matrix_market(argv[k], threads);
        std::printf("%lld %lld\n", static_cast<long long>(a.shape.rows),
                    static_cast<long long>(a.shape.cols));
        for (const auto& e : a.entries)
          std::printf("%lld %lld %a\n", static_cast<long long>(e.row), static_cast<long long>(e.col),
                      e.value);
      } catch (const std::exception& e) {
        std::printf("refused %s\n", e.what());
      }
    }
}

"""Plants violations, one at a time, and checks that floors.py finds each."""

import pathlib
import sys
import tempfile

import floors

HEADER = "#pragma once\n"

# What is planted: a file, its text, and what is said about it.
BAD = [
    ("base/planted.hpp", HEADER + '#include "partita/memory/place.hpp"\n', "base (floor 0) includes memory (floor 1)"),
    ("base/planted.hpp", HEADER + "#include <zip.h>\n", "base includes only the standard library"),
    ("memory/planted.hpp", HEADER + '#include "partita/partition/axis.hpp"\n', "memory (floor 1) includes partition (floor 1)"),
    ("comm/planted.hpp", HEADER + '#include "partita/local/view.hpp"\n', "comm (floor 2) includes local (floor 2)"),
    ("matrix/planted.hpp", HEADER + '  #  include "partita/algebra/spmm.hpp"\n', "matrix (floor 3) includes algebra (floor 5)"),
    ("nn/planted.hpp", HEADER + '#include "partita/partita.hpp"\n', "includes the roof"),
    ("nn/planted.hpp", HEADER + '#include "partita/cellar/wine.hpp"\n', "is on no floor"),
    ("nn/planted.hpp", HEADER + '#include "linear.hpp"\n', "must be spelled from partita/ on"),
    ("nn/planted.hpp", HEADER + "#include <partita/base/index.hpp>\n", "must be written in quotes"),
    ("cellar/planted.hpp", HEADER, "the header is on no floor"),
    ("planted.hpp", HEADER, "the header is on no floor"),
    ("base/planted.cpp", "", "only headers belong here"),
    ("transfer/planted.hpp", HEADER + "#include <mpi.h>\n", "is a vendor's header"),
    ("transfer/planted.hpp", HEADER + "#include <nccl.h>\n", "is a vendor's header"),
    ("algebra/planted.hpp", HEADER + "#include <cuda_runtime.h>\n", "is a vendor's header"),
    ("algebra/planted.hpp", HEADER + "#include <cublas_v2.h>\n", "is a vendor's header"),
    ("algebra/planted.hpp", HEADER + "#include <cusparse.h>\n", "is a vendor's header"),
    ("matrix/planted.hpp", HEADER + "#include <cub/cub.cuh>\n", "is a vendor's header"),
    ("train/planted.hpp", HEADER + "#include <thrust/sort.h>\n", "is a vendor's header"),
    ("matrix/planted.hpp", HEADER + '#include "partita/memory/host.hpp"\n', "is of one place"),
    ("matrix/planted.hpp", HEADER + "using here = host;\n", "names the place host"),
    ("algebra/planted.hpp", HEADER + "using there = partita::cuda_device;\n", "names the place cuda_device"),
    ("base/planted.hpp", "int f();\n", "there is no #pragma once"),
    ("base/planted.hpp", "// #pragma once\n", "there is no #pragma once"),
    ("base/planted.hpp", HEADER + "\n" * floors.TOO_LONG, "lines are too many"),
    ("base/planted.hpp", HEADER + 'inline void f() { std::cout << "x"; }\n', "prints nothing: std::cout"),
    ("comm/planted.hpp", HEADER + 'inline void f() { std::fprintf(stderr, "x"); }\n', "prints nothing: fprintf"),
    ("comm/planted.hpp", HEADER + 'inline void f() { puts("x"); }\n', "prints nothing: puts"),
    ("comm/mpi_planted.hpp", HEADER + "inline void f() { std::exit(1); }\n", "ends no program, it throws: exit"),
    ("io/planted.hpp", HEADER + "inline void f() { std::abort (); }\n", "ends no program, it throws: abort"),
    ("nn/planted.hpp", HEADER + "inline void f(int x) { assert(x); }\n", "instead of asserting: assert"),
    ("nn/planted.hpp", HEADER + "using namespace std;\n", "opens no namespace"),
    ("partita.hpp", HEADER + "namespace partita {}\n", "nothing but includes"),
]

# What looks like a violation and is none.
GOOD = [
    ("transfer/planted.hpp", HEADER + "// host, cuda_device, printf(), #include <mpi.h>\n/* host\n exit(1) */\n"),
    ("transfer/planted.hpp", HEADER + 'inline const char* f() { return "host \\" printf(1)"; }\n'),
    ("transfer/planted.hpp", HEADER + 'inline const char* f() { return R"(host " exit(1))"; }\n'),
    ("transfer/planted.hpp", HEADER + "inline int f() { return 1'000'000; }  // it's a host\n"),
    ("transfer/planted.hpp", HEADER + "static_assert(true);\ninline int localhost, hosts, my_exit;\n"),
    ("transfer/planted.hpp", HEADER + '#include "partita/matrix/dense.hpp"\n#include "partita/transfer/distribute.hpp"\n'),
    ("transfer/planted.hpp", HEADER + '#include "partita/memory/place.hpp"\n'),
    ("comm/planted.hpp", HEADER + "#include <mpi.h>\n"),
    ("comm/mpi_planted.hpp", HEADER + 'inline void f() { std::fputs("x", stderr); MPI_Abort(w, 1); }\n'),
    ("local/planted.hpp", HEADER + '#include "partita/memory/host.hpp"\nvoid fill(const queue<host>& q);\n'),
    ("partita.hpp", HEADER + '// The roof.\n#include "partita/base/index.hpp"\n'),
]


def violations_of(file, text):
    """What floors.py says of a tree that holds `file` with this text and nothing else."""
    with tempfile.TemporaryDirectory() as include_dir:
        path = pathlib.Path(include_dir) / "partita" / file
        path.parent.mkdir(parents=True)
        path.write_text(text)
        return list(floors.violations(include_dir))


def main():
    failures = 0
    for file, text, sentence in BAD:
        found = violations_of(file, text)
        if not any(file in v and sentence in v for v in found):
            failures += 1
            print(f"not found: {sentence!r} for {file} with {text[:80]!r}; found {found}")
    for file, text in GOOD:
        found = violations_of(file, text)
        if found:
            failures += 1
            print(f"found in innocent {file} with {text!r}: {found}")
    print(f"{len(BAD)} violations planted, {len(GOOD)} innocent texts, {failures} judged wrongly")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

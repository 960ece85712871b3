# SPDX-License-Identifier: Apache-2.0
"""Plants violations, one at a time, and checks that floors.py finds each."""

import pathlib
import sys
import tempfile

import floors

HEADER = "#pragma once\n"

# What is planted: a file, its text, and what is said about it.
BAD = [
    ("base/planted.hpp", HEADER + '#include "partita/memory/device.hpp"\n', "base (floor 0) includes memory (floor 1)"),
    ("base/planted.hpp", HEADER + "#include <zip.h>\n", "base includes only the standard library"),
    ("memory/planted.hpp", HEADER + 'inline const char* f() { return "/proc/meminfo"; }\n', "Linux alone has /proc/"),
    ("base/posix_system.hpp", HEADER + "inline void f() { ::fallocate(0, 0, 0, 0); }\n", "Linux alone has fallocate"),
    ("memory/planted.hpp", HEADER + '#include "partita/partition/axis.hpp"\n', "memory (floor 1) includes partition (floor 1)"),
    ("comm/planted.hpp", HEADER + '#include "partita/local/view.hpp"\n', "comm (floor 2) includes local (floor 2)"),
    ("matrix/planted.hpp", HEADER + '  #  include "partita/algebra/spmm.hpp"\n', "matrix (floor 3) includes algebra (floor 5)"),
    ("nn/planted.hpp", HEADER + '#include "partita/partita.hpp"\n', "includes the roof"),
    ("nn/planted.hpp", HEADER + '#include "partita/cellar/wine.hpp"\n', "is on no floor"),
    ("nn/planted.hpp", HEADER + '#include "linear.hpp"\n', "must be spelled from partita/ on"),
    ("nn/planted.hpp", HEADER + "#include <partita/base/index.hpp>\n", "must be written in quotes"),
    ("cellar/planted.hpp", HEADER, "the header is on no floor"),
    ("algebra/planted.hpp", HEADER + "namespace partita::detail {\n}\n", "algebra opens partita::detail"),
    ("algebra/planted.hpp", HEADER + "namespace partita {\nstruct s {};\nnamespace nn {\n}\n}\n", "algebra opens partita::nn"),
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
    ("nn/planted.hpp", HEADER + "inline int* f(const int* x) { return const_cast<int*>(x); }\n", "stays so: const_cast"),
    ("partita.hpp", HEADER + "namespace partita {}\n", "nothing but includes"),
    ("version.hpp", HEADER + "#include <string>\n", "the version includes nothing"),
    ("base/planted.hpp", HEADER + '#include "partita/version.hpp"\n', "is on no floor"),
    ("nn/planted.hpp", HEADER + "inline void f() { fill(q, 1); }\n", "nn is above floor 5 and calls the kernel fill"),
    ("train/planted.hpp", HEADER + "inline void f() { fill(x.mesh().queue(), 1); }\n", "train is above floor 5 and calls the kernel fill"),
    ("nn/planted.hpp", HEADER + '#include "partita/local/kernels.hpp"\n', "nn is above floor 5 and includes kernels"),
    ("train/planted.hpp", HEADER + '#include "partita/local/view.hpp"\n', "train is above floor 5 and includes kernels"),
    ("algebra/planted.hpp", HEADER + "inline bool f() { return far_of(q) != nullptr; }\n", "algebra is above floor 2 and asks far_of"),
    ("nn/planted.hpp", HEADER + "void f(local::head_slice s);\n", "nn is above floor 5 and names local::head_slice"),
    ("nn/planted.hpp", HEADER + "inline bool f() { return m.reproducible(); }\n", "nn is above floor 2 and asks reproducible"),
]

# What algebra declares in its detail, and a use of it elsewhere that must be found.
DETAILS = """#pragma once
namespace partita {
inline int open() { return 0; }
namespace algebra::detail {
template <class T>
requires(sizeof(T) > 1) constexpr T function(T x = T{}) { int local(0); return x + local; }
template <class T> class type { void member(); };
enum class choice { first };
template <class T> concept fits = requires(T x) { x.size(); };
template <class T> using alias = type<T>;
inline constexpr int constant = 3;
inline int state{4};
struct function_object { void operator()() const; } ;
}  // namespace algebra::detail
namespace algebra::other_detail { void secret(); }
}  // namespace partita
namespace partita::algebra::detail { void late(); }
"""
USED = ["function(1)", "type<int>()", "choice::first", "fits<int>", "alias<int>()", "constant", "state", "function_object()", "late()"]
NOT_DECLARED = ["open()", "local()", "member()", "first", "unknown()"]

# What looks like a violation and is none.
GOOD = [
    ("transfer/planted.hpp", HEADER + "// host, cuda_device, printf(), #include <mpi.h>\n/* host\n exit(1) */\n"),
    ("transfer/planted.hpp", HEADER + 'inline const char* f() { return "host \\" printf(1)"; }\n'),
    ("transfer/planted.hpp", HEADER + 'inline const char* f() { return R"(host " exit(1))"; }\n'),
    ("transfer/planted.hpp", HEADER + "inline int f() { return 1'000'000; }  // it's a host\n"),
    ("transfer/planted.hpp", HEADER + "static_assert(true);\ninline int localhost, hosts, my_exit;\n"),
    ("transfer/planted.hpp", HEADER + '#include "partita/matrix/dense.hpp"\n#include "partita/transfer/distribute.hpp"\n'),
    ("transfer/planted.hpp", HEADER + '#include "partita/memory/device.hpp"\n'),
    ("comm/planted.hpp", HEADER + "#include <mpi.h>\n"),
    ("io/gzip.hpp", HEADER + "inline int* f(const int* x) { return const_cast<int*>(x); }\n"),
    ("comm/mpi_planted.hpp", HEADER + 'inline void f() { std::fputs("x", stderr); MPI_Abort(w, 1); }\n'),
    ("local/planted.hpp", HEADER + '#include "partita/memory/host.hpp"\nvoid fill(const device_queue<host>& q);\n'),
    ("algebra/planted.hpp", HEADER + '#include "partita/local/kernels.hpp"\ninline void f() { fill(q, 1); }\n'),
    ("algebra/planted.hpp", HEADER + "namespace partita {\nvoid f() {}\nnamespace algebra::nn {\n}\n}\nnamespace std {\n}\n"),
    ("train/planted.hpp", HEADER + "namespace partita::nn::detail {\n}\n"),
    ("nn/planted.hpp", HEADER + "// fill(q, 1)\ninline void f() { fill(y, 1), refill(q, 1); }\n"),
    ("nn/planted.hpp", HEADER + "namespace partita::nn::detail { void own(); }\ninline void f() { detail::own(); }\n"),
    ("algebra/planted.hpp", HEADER + "void f(local::head_slice s);\n"),
    ("nn/planted.hpp", HEADER + "// local::head_slice\nvoid f(int local);\n"),
    ("partita.hpp", HEADER + '// The roof.\n#include "partita/base/index.hpp"\n#include "partita/version.hpp"\n'),
    ("version.hpp", HEADER + "namespace partita::version {}\n"),
]


KERNELS = ("local/host/kernels.hpp", HEADER + '#include "partita/memory/host.hpp"\nvoid fill(const device_queue<host>& q, int value);\n')
ALL = {rule: set(floors.FLOORS) for rule in floors.ENFORCED}


def violations_of(file, text, enforced=ALL, excused=None, **others):
    """What floors.py says of a tree that holds `file` with this text, others of their names, and nothing else."""
    with tempfile.TemporaryDirectory() as include_dir:
        for name, content in {KERNELS[0]: KERNELS[1], file: text, **others}.items():
            path = pathlib.Path(include_dir) / "partita" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        return list(floors.violations(include_dir, enforced, excused))


def detail_failures():
    """Cases of detail:: that are judged wrongly, as sentences."""
    declared = {"algebra/declares.hpp": DETAILS}

    def said(folder, use, **how):
        text = HEADER + f"inline auto f() {{ return {use}; }}\n"
        return violations_of(f"{folder}/planted.hpp", text, **how, **declared)

    for use in USED:
        for folder in ("nn", "comm"):
            found = said(folder, "detail::" + use)
            if len(found) != 1 or f"{folder} uses detail::" not in found[0] or "of algebra" not in found[0]:
                yield f"detail::{use} in {folder}: {found}"
        if found := said("algebra", "detail::" + use):
            yield f"detail::{use} where it is declared: {found}"
    for use in NOT_DECLARED:
        if found := said("nn", "detail::" + use):
            yield f"detail::{use}, which nobody declares: {found}"
    if len(said("nn", "other_detail::secret()")) != 1:
        yield "other_detail::secret()"
    excused = []
    nobody = {rule: set() for rule in floors.ENFORCED}
    if said("nn", "detail::" + USED[0], enforced=nobody, excused=excused) or len(excused) != 1:
        yield f"what is held against nobody: {excused}"


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
    for sentence in detail_failures():
        failures += 1
        print(f"judged wrongly: {sentence}")
    print(f"{len(BAD)} violations planted, {len(GOOD)} innocent texts, {failures} judged wrongly")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

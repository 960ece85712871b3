# SPDX-License-Identifier: Apache-2.0
"""Shows that public_names.py can fail: names that std has, too many names, and what is no name of the library's."""

import pathlib
import sys
import tempfile

import public_names

HEADER = """#pragma once
namespace partita {
template <class T, class U = T> requires(sizeof(T) > 1) class first {};
enum class second : int { one, two };
using third = int;
inline constexpr int fourth[] = {1, 2}, unseen = 3;
template <class T> T fifth(first<T> x = {}, int y = 0) { int local = 1; return {}; }
class first_again;
namespace detail { class hidden {}; }
namespace nn { class elsewhere {}; inline int also() { return 0; } }
}  // namespace partita
namespace partita::comm { class apart {}; }
"""


def main():
    names = set(public_names.names_in(HEADER))
    expected = {"first", "second", "third", "fourth", "fifth", "first_again"}
    failures = [] if names == expected else [f"found {sorted(names)}"]
    shared = public_names.in_std(["map", "sddmm", "copy", "exchange"], sys.argv[1])
    if shared != {"map", "copy", "exchange"}:
        failures.append(f"std has {sorted(shared)}")
    with tempfile.TemporaryDirectory() as folder:
        include = pathlib.Path(folder)
        (include / "partita").mkdir()
        (include / "partita/one.hpp").write_text(HEADER + "namespace partita { class queue {}; inline void fill() {} }\n")
        said = public_names.complaints(include, sys.argv[1], most=len(expected))
        if len(said) != 2 or "queue is ambiguous" not in said[0] or "8 names" not in said[1]:
            failures.append(f"of a header with one name too many: {said}")
    print("\n".join(failures) or "every planted name was found")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Checks the floors of the house: who may include whom, and what may not occur where.

usage: floors.py INCLUDE_DIR

A header includes its own folder and strictly lower floors, opens its folder's namespaces, and uses `detail::` of its own
folder alone. Prints every
violation as FILE:LINE: SENTENCE and ends with 1 if there is one. What folders that are not in ENFORCED do against a rule is
counted and no violation.
"""

import pathlib
import re
import sys

FLOORS = {
    "base": 0,
    "partition": 1,
    "memory": 1,
    "comm": 2,
    "local": 2,
    "matrix": 3,
    "io": 3,
    "transfer": 4,
    "algebra": 5,
    "sampling": 5,
    "graph": 6,
    "autodiff": 6,
    "nn": 7,
    "train": 8,
    "compiled": 9,
}
ROOF = "partita.hpp"
# Stands beside the house, under the roof alone.
VERSION = "version.hpp"
# The folders that a rule is held against; set(FLOORS) means all.
# What is compiled once is instantiated for each device, what is in detail too.
INSTANTIATES = "compiled"
ENFORCED = {"detail": set(FLOORS) - {INSTANTIATES}, "kernels": set(FLOORS)}
# Below partita a header opens the namespace of its folder, or one of these: transports, places and vendors; a rank's
# blocks and passes over them, since many classes call a type of theirs `matrix`; training, which belongs to the models.
NAMESPACES = {
    "comm": {"comm", "threads", "self", "mpi", "nccl", "emulated", "on_host", "on_cuda"},
    "local": {"local", "on_host", "on_cuda", "blas", "cublas", "cusparse", "lapack"},
    "matrix": {"local"},
    "memory": {"memory", "local", "on_host", "on_cuda"},
    "train": {"nn"},
}
HIGHEST_VENDOR_FLOOR = 2
LONG, TOO_LONG = 250, 400

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
VENDOR = re.compile(r"^(mpi\.h|cblas|lapacke|metis|nccl|cuda|cublas|cusparse|cub/|thrust/)")
PLACE = re.compile(r"\b(host|cuda_device)\b")
PLACE_HEADER = re.compile(r"^partita/memory/(?!(?:captured|device|far|far_forecast|index_reader|large_list|large_pages|out_of_core)\.hpp$)")
# A kernel is an overload on a queue; copies of spans between host and device are another thing of the same name.
KERNEL = re.compile(r"^(?!copy\b)(\w+)\(const device_queue<host>& q\b|^[\w:<>&*, ]+ (?!copy\b)(\w+)\(const device_queue<host>&", re.MULTILINE)
QUEUE = r"\s*\(\s*(?:q|[\w.()>-]*queue\(\))\s*,"
HIGHEST_KERNEL_FLOOR = FLOORS["algebra"]
# Whether a queue is reproducible or has far memory is asked in local/ and below, of which plans are made.
FORK = re.compile(r"\b(far_of)\s*\(|\b(reproducible)\s*\(\s*\)")
HIGHEST_FORK_FLOOR = 2
MAY_FORK = {
    # What the mode is for verbs, and the one place where equal entries of ranks meet.
    "algebra/reproducible_verbs.hpp",
    # In which layout sums of edges stand, and that each rank has the whole sum and not a part.
    "algebra/edge_rows.hpp",
    "algebra/edge_verbs.hpp",
    "transfer/entry_routing.hpp",
    # Which sums of weights, and whose neighbourhoods stand apart: what is computed differs, not how.
    "graph/propagation_matrices.hpp",
    "graph/relation_matrices.hpp",
    "train/mini_batch_trainer.hpp",
    # In which order products are made, which must not depend on the number of ranks there.
    "nn/conv/rgcn.hpp",
    # What far memory has counted is reported, and what moves there does not depend on a norm.
    "nn/optimizer.hpp",
    "train/trainer.hpp",
    "train/training.hpp",
}
# A rank's blocks, and what devices can do, are asked by verbs: above them there are none.
LOCAL = re.compile(r"\blocal\s*::\s*(\w+)")
HIGHEST_LOCAL_FLOOR = FLOORS["algebra"]
DETAIL = re.compile(r"\b((?:\w+_)?detail)\s*::\s*(\w+)")
FORBIDDEN = [
    (re.compile(r"\bstd\s*::\s*(cout|cerr|clog)\b"), "the library prints nothing"),
    (re.compile(r"\bv?f?printf\s*\("), "the library prints nothing"),
    (re.compile(r"\b(f?puts|f?putc|putchar|perror)\s*\("), "the library prints nothing"),
    (re.compile(r"\b(exit|_Exit|quick_exit|abort)\s*\("), "the library ends no program, it throws"),
    (re.compile(r"\bassert\s*\("), "the library throws instead of asserting"),
    (re.compile(r"\busing\s+namespace\b"), "a header opens no namespace for its users"),
    (re.compile(r"\bconst_cast\b"), "what may only be read stays so"),
]
# What ends an MPI job says why and takes the other ranks along.
MAY_PRINT = re.compile(r"^comm/mpi\w*\.hpp$")
# What faces C, whose parameters are not const, and what operands of passes become without their types.
CASTS = {
    "comm/mpi_native.hpp",
    "comm/nccl_transport.hpp",
    "io/gzip.hpp",
    "io/npz_archive.hpp",
    "local/cusparse/product.hpp",
    "local/operands.hpp",
    "memory/cuda_far.hpp",
}

# The operating system is asked in three headers of base, Linux for what POSIX has not in two.
SYSTEM = re.compile(r"^base/((linux|posix)_system|processor)\.hpp$")
LINUX_HEADERS = {"base/linux_system.hpp", "base/processor.hpp"}
LINUX = re.compile(r"/proc/|/sys/|\b(sched_[gs]etaffinity|cpu_set_t|pthread_[gs]etaffinity_np|fallocate|O_TMPFILE|FALLOC_\w+|MADV_HUGEPAGE|SYS_\w+|syscall|prctl|memfd_create|mremap)\b")

TOKEN = re.compile(
    r"""(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
      | (?P<raw>R"(?P<mark>[^\s()\\]*)\(.*?\)(?P=mark)")
      | (?P<string>"(?:\\.|[^"\\\n])*"|(?<![0-9a-zA-Z_])'(?:\\.|[^'\\\n])+')""",
    re.VERBOSE | re.DOTALL,
)


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def without_comments(text):
    return TOKEN.sub(lambda m: blank(m[0]) if m["comment"] else m[0], text)


def without_strings(code):
    """Code without comments, includes, and the contents of strings."""
    code = INCLUDE.sub(lambda m: blank(m[0]), code)
    return TOKEN.sub(lambda m: blank(m[0]), code)


def check_include(folder, quote, name, system=False):
    """Why `folder` must not include `name`, or None; `system`: whether it is for the operating system."""
    floor = FLOORS[folder]
    if not name.startswith("partita/"):
        if quote == '"':
            return f'"{name}" must be spelled from partita/ on'
        if floor == 0 and "." in name and not system:
            return f"base includes only the standard library, not <{name}>"
        if floor > HIGHEST_VENDOR_FLOOR and VENDOR.match(name):
            return f"<{name}> is a vendor's header, and {folder} is above floor {HIGHEST_VENDOR_FLOOR}"
        return None
    if quote == "<":
        return f"<{name}> must be written in quotes"
    other = name.split("/")[1]
    if other == ROOF:
        return f"{folder} (floor {floor}) includes the roof"
    if other not in FLOORS:
        return f"{name} is on no floor"
    if other != folder and FLOORS[other] >= floor:
        return f"{folder} (floor {floor}) includes {other} (floor {FLOORS[other]})"
    if floor > HIGHEST_VENDOR_FLOOR and folder != INSTANTIATES and PLACE_HEADER.match(name):
        return f"{name} is of one place, and {folder} is above floor {HIGHEST_VENDOR_FLOOR}"
    return None


class detail_reader:
    """Collects the names that are declared in namespaces called detail, or something_detail, of code without strings."""

    WORD = re.compile(r"\w+|::|[^\s\w]")
    NAMED = {"class", "struct", "union", "enum", "concept", "using"}
    NO_FUNCTION = {"requires", "decltype", "noexcept", "static_assert", "alignas", "sizeof", "explicit"}

    def __init__(self):
        self.names = set()

    def read(self, code):
        code = re.sub(r"^[ \t]*#.*$", "", code, flags=re.MULTILINE)
        words = self.WORD.findall(code)
        inside = []  # of every open brace: whether it is a namespace's, and that of a detail
        statement = []  # since the last one ended; what is in braces or parentheses or <> is left out
        depth = angles = 0
        for at, word in enumerate(words):
            level = inside[-1] if inside else "namespace"
            if word == "{":
                namespace = len(statement) > 0 and "namespace" in statement
                if namespace:
                    last = statement[-1]
                    inside.append("detail" if level == "detail" or re.fullmatch(r"(\w+_)?detail", last) else "namespace")
                    statement = []
                else:
                    self.end(level, statement)
                    inside.append("block")
            elif word == "}":
                closed = inside.pop() if inside else "block"
                # An initialiser, or a requires-expression, does not end what began before it.
                if closed != "block" or (at + 1 < len(words) and words[at + 1] not in ",;)&|"):
                    statement = []
                depth = angles = 0
            elif level == "block":
                continue
            elif word == "(":
                if depth == 0 and angles == 0:
                    statement.append("(")
                depth += 1
            elif word == ")":
                depth -= 1
            elif depth > 0:
                continue
            elif word == "<" and statement and statement[-1] != "operator":
                angles += 1
            elif word == ">" and angles > 0:
                angles -= 1
            elif angles > 0:
                continue
            elif word == ";":
                self.end(level, statement)
                statement = []
            else:
                statement.append(word)
        return self

    def end(self, level, statement):
        """Takes the name that a statement of a detail namespace declares."""
        if level != "detail":
            return
        words = statement
        for i, word in enumerate(words):
            if word in self.NAMED:
                names = [w for w in words[i + 1 :] if w not in ("class", "struct") and re.match(r"[A-Za-z_]", w)]
                self.names.update(names[:1])
                return
            if word == "(" and i > 0 and words[i - 1] not in self.NO_FUNCTION:
                self.names.add(words[i - 1])
                return
        if "=" in words:
            words = words[: words.index("=")]
        if len(words) > 1 and re.match(r"[A-Za-z_]", words[-1]):
            self.names.add(words[-1])


def check_namespaces(folder, code):
    """Namespaces below partita that are another folder's, as (position, sentence)."""
    inside = []
    for brace in re.finditer(r"\bnamespace\s+([\w:]+)\s*\{|[{}]", code):
        if brace[0] == "}":
            inside = inside[:-1]
            continue
        around = inside[-1] if inside else []
        names = around + brace[1].split("::") if brace[1] and around is not None else None
        if names and names[0] == "partita" and len(around) < 2 <= len(names):
            if names[1] not in NAMESPACES.get(folder, {folder}):
                yield brace.start(), f"{folder} opens partita::{names[1]}"
        inside.append(names)


def check_details(folder, code, declared):
    """Uses of detail:: that are declared in other folders only, as (position, sentence)."""
    for use in DETAIL.finditer(code):
        owners = sorted(other for other, names in declared.items() if use[2] in names)
        if owners and folder not in owners:
            yield use.start(), f"{folder} uses {use[1]}::{use[2]} of {' and '.join(owners)}"


def check_kernels(folder, code, with_includes, kernels):
    """Kernels above the highest floor that may call them, as (position, sentence)."""
    if FLOORS[folder] <= HIGHEST_KERNEL_FLOOR:
        return
    above = f"{folder} is above floor {HIGHEST_KERNEL_FLOOR}"
    for include in INCLUDE.finditer(with_includes):
        if include[2].startswith("partita/local/"):
            yield include.start(2), f"{above} and includes kernels: {include[2]}"
    if not kernels:
        return
    for use in re.finditer(r"\b(" + "|".join(sorted(kernels)) + ")" + QUEUE, code):
        yield use.start(), f"{above} and calls the kernel {use[1]}"


def check_roof(text):
    for number, line in enumerate(without_comments(text).splitlines(), 1):
        if line.strip() and line.strip() != "#pragma once" and not INCLUDE.match(line):
            yield number, "the roof holds nothing but includes"


def check_header(path, text, declared, kernels=frozenset()):
    """Violations of one header, `path` relative to partita/, as (rule, line, sentence); the rule is None where all folders
    keep it. `declared` are the names in detail of each folder."""
    code = without_comments(text)
    if not re.search(r"^#pragma once$", code, re.MULTILINE):
        yield None, 1, "there is no #pragma once"
    lines = text.count("\n")
    if lines > TOO_LONG:
        yield None, lines, f"{lines} lines are too many, at most {TOO_LONG}"
    if str(path) == ROOF:
        yield from ((None, *v) for v in check_roof(text))
        return
    if str(path) == VERSION:
        yield from ((None, code.count("\n", 0, i.start(2)) + 1, "the version includes nothing") for i in INCLUDE.finditer(code))
        return
    folder = path.parts[0]
    if len(path.parts) < 2 or folder not in FLOORS:
        yield None, 1, "the header is on no floor"
        return

    def line_of(position):
        return code.count("\n", 0, position) + 1

    for include in INCLUDE.finditer(code):
        sentence = check_include(folder, include[1], include[2], SYSTEM.match(path.as_posix()))
        if sentence:
            yield None, line_of(include.start(2)), sentence
    with_includes, code = code, without_strings(code)
    for position, sentence in check_namespaces(folder, code):
        yield None, line_of(position), sentence
    for position, sentence in check_details(folder, code, declared):
        yield "detail", line_of(position), sentence
    for position, sentence in check_kernels(folder, code, with_includes, kernels):
        yield "kernels", line_of(position), sentence
    if FLOORS[folder] > HIGHEST_FORK_FLOOR and path.as_posix() not in MAY_FORK:
        for fork in FORK.finditer(code):
            yield None, line_of(fork.start()), f"{folder} is above floor {HIGHEST_FORK_FLOOR} and asks {fork[1] or fork[2]}"
    if FLOORS[folder] > HIGHEST_LOCAL_FLOOR and folder != INSTANTIATES:
        for use in LOCAL.finditer(code):
            yield None, line_of(use.start()), f"{folder} is above floor {HIGHEST_LOCAL_FLOOR} and names local::{use[1]}"
    if FLOORS[folder] > HIGHEST_VENDOR_FLOOR and folder != INSTANTIATES:
        for place in PLACE.finditer(code):
            yield None, line_of(place.start()), f"{folder} is above floor {HIGHEST_VENDOR_FLOOR} and names the place {place[0]}"
    if path.as_posix() not in LINUX_HEADERS:
        for call in LINUX.finditer(with_includes):
            yield None, line_of(call.start()), f"Linux alone has {call[0]}: base/linux_system.hpp and base/processor.hpp ask for it"
    for word, sentence in FORBIDDEN:
        if "prints" in sentence and MAY_PRINT.match(path.as_posix()):
            continue
        if "read" in sentence and path.as_posix() in CASTS:
            continue
        for found in word.finditer(code):
            yield None, line_of(found.start()), f"{sentence}: {found[0].rstrip(' (')}"


def details_of(root):
    """The names that the headers of each folder declare in detail."""
    declared = {folder: detail_reader() for folder in FLOORS}
    for file in sorted(root.rglob("*.hpp")):
        folder = file.relative_to(root).parts[0]
        if folder in declared:
            declared[folder].read(without_strings(without_comments(file.read_text())))
    return {folder: reader.names for folder, reader in declared.items()}


def kernels_of(root):
    """The names of the host's kernels."""
    code = "".join(without_comments(f.read_text()) for f in sorted((root / "local/host").glob("*.hpp")))
    return {a or b for a, b in KERNEL.findall(code)}


def violations(include_dir, enforced=None, excused=None):
    """Lines of text. What a folder outside of `enforced` does against a rule goes to the list `excused`."""
    enforced = ENFORCED if enforced is None else enforced
    root = pathlib.Path(include_dir) / "partita"
    declared = details_of(root)
    kernels = kernels_of(root)
    for file in sorted(root.rglob("*")):
        if file.is_dir():
            continue
        path = file.relative_to(root)
        if file.suffix not in (".hpp", ".cuh"):
            yield f"partita/{path.as_posix()}:1: only headers belong here"
            continue
        for rule, line, sentence in check_header(path, file.read_text(), declared, kernels):
            violation = f"partita/{path.as_posix()}:{line}: {sentence}"
            if rule is None or path.parts[0] in enforced[rule]:
                yield violation
            elif excused is not None:
                excused.append(violation)


def main(include_dir):
    root = pathlib.Path(include_dir) / "partita"
    headers = sorted(root.rglob("*.hpp"))
    if not headers:
        sys.exit(f"{root}: there are no headers")
    for file in headers:
        lines = file.read_text().count("\n")
        if lines > LONG:
            print(f"partita/{file.relative_to(root).as_posix()}: {lines} lines, should be under about {LONG}")
    excused = []
    found = list(violations(include_dir, excused=excused))
    print("\n".join(found + [f"{len(headers)} headers, {len(found)} violations, {len(excused)} more not held against anybody"]))
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))

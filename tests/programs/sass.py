# SPDX-License-Identifier: Apache-2.0
"""Machine instructions of kernels for sm_90, of a cubin: counted without a disassembler.

An instruction has 16 bytes: the low 12 bits are the operation, bits 12 to 15 the predicate that guards it (7: always). A branch has
a second predicate in bits 87 to 90, and its distance in units of 4 bytes, from the instruction behind it: the low 8 bits of that are bits
16 to 23, the others begin at bit 34.
"""
import collections
import struct
import subprocess

BRANCH, EXIT, LOAD = 0x947, 0x94D, 0x981
MULTIPLY_ADD = {0x223, 0x423, 0x623, 0x823, 0xC23}  # FFMA, by where its operands are
ALWAYS = 7


def kernels(path):
    """The instructions of each kernel of a cubin, by its name in C++."""
    data = open(path, "rb").read()
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", data, table + i * size) for i in range(count)]
    names = data[sections[names_at][4]:]
    found = {}
    for at, _, _, _, offset, length in sections:
        name = names[at:names.index(b"\0", at)].decode()
        if name.startswith(".text."):
            code = data[offset:offset + length]
            found[name[6:]] = [int.from_bytes(code[i:i + 16], "little") for i in range(0, length, 16)]
    plain = subprocess.run(["c++filt"], input="\n".join(found), capture_output=True, text=True, check=True).stdout.splitlines()
    return dict(zip(plain, found.values()))


def following(code, i):
    """Where execution goes from instruction i."""
    word = code[i]
    operation, guarded = word & 0xFFF, (word >> 12 & 0xF) != ALWAYS
    if operation == EXIT and not guarded:
        return []
    if operation != BRANCH:
        return [i + 1]
    distance = word >> 34 & (1 << 48) - 1
    distance -= (distance >> 47) << 48
    to = i + 1 + ((distance << 10 | (word >> 16 & 0xFF) << 2) >> 4)
    return [to] if not guarded and (word >> 87 & 0xF) == ALWAYS else [i + 1, to]


def multiply_adds(code, begin, end):
    return sum(word & 0xFFF in MULTIPLY_ADD for word in code[begin:end])


def nested(code, least):
    """The lengths of the loops around one another, from the shortest, that have at least so many multiply-adds."""
    loops = [(to, i + 1) for i in range(len(code)) for to in following(code, i) if to < i]
    return sorted(end - begin for begin, end in loops if multiply_adds(code, begin, end) >= least)


def shortest_pass(code, sums, loads):
    """The fewest instructions of a way from the head of a loop back to it, with at least so many multiply-adds and loads on it."""
    heads = {to for i in range(len(code)) for to in following(code, i) if to < i}
    return min(filter(None, (_pass_from(code, head, (sums, loads)) for head in heads)))


def _pass_from(code, head, least):
    counted = [[operation in kind for kind in (MULTIPLY_ADD, {LOAD})] for operation in (word & 0xFFF for word in code)]
    start = head, (0, 0)
    steps, waiting = {start: 0}, collections.deque([start])
    while waiting:
        i, before = waiting.popleft()
        now = tuple(min(most, n + here) for most, n, here in zip(least, before, counted[i]))
        for to in following(code, i):
            if to == head and now == least:
                return steps[i, before] + 1
            if to < len(code) and (to, now) not in steps:
                steps[to, now] = steps[i, before] + 1
                waiting.append((to, now))
    return None

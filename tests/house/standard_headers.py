#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every header reaches the standard headers that it uses: standard_headers.py INCLUDE

The test that compiles every header alone has the standard library's headers precompiled, so it does not see when
one of those is missing. This does: by the names after std::, and by what is included, directly or by other headers
of this library. A name that stands in no line below is a violation too."""
import pathlib
import re
import sys

NAMES = {
    "algorithm": "all_of any_of clamp copy copy_n count count_if equal equal_range fill fill_n find find_if find_if_not inclusive_scan lower_bound max max_element min min_element none_of nth_element ranges remove_if "
                 "replace replace_if sort stable_partition stable_sort swap transform unique upper_bound",
    "array": "array", "atomic": "atomic atomic_ref atomic_signal_fence memory_order_acquire memory_order_relaxed memory_order_release", "bit": "bit_cast bit_ceil bit_floor bit_width countr_zero endian has_single_bit popcount", "charconv": "from_chars to_chars", "chrono": "chrono", "csignal": "sig_atomic_t", "ctime": "timespec",
    "cmath": "abs ceil cos exp expm1 floor fma frexp isfinite isinf isnan ldexp log log1p log2 pow round sin sqrt tanh", "condition_variable": "condition_variable", "concepts": "convertible_to derived_from floating_point integral invocable same_as", "cstddef": "byte ptrdiff_t size_t to_integer",
    "cstdint": "uint_least32_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uintmax_t intptr_t uintptr_t", "cstdio": "fflush fputs", "cstdlib": "atexit getenv", "cstring": "memcmp memcpy memmove strchr strncpy strrchr",
    "deque": "deque", "exception": "current_exception exception exception_ptr make_exception_ptr rethrow_exception terminate uncaught_exceptions",
    "filesystem": "filesystem", "initializer_list": "initializer_list", "iterator": "back_inserter begin default_sentinel_t distance end next prev random_access_iterator_tag forward_iterator_tag input_iterator_tag ssize", "fstream": "ifstream ios ofstream streamoff streamsize", "istream": "istream", "functional": "divides function identity invoke less minus multiplies plus", "limits": "numeric_limits",
    "list": "list", "map": "map", "memory": "allocator enable_shared_from_this make_shared make_unique make_unique_for_overwrite shared_ptr static_pointer_cast unique_ptr weak_ptr",
    "numbers": "numbers", "mutex": "lock_guard mutex scoped_lock unique_lock", "new": "align_val_t bad_alloc bad_array_new_length nothrow", "numeric": "accumulate adjacent_difference exclusive_scan iota transform_reduce", "optional": "nullopt optional", "source_location": "source_location",
    "set": "set", "span": "as_bytes data size span", "sstream": "istringstream ostringstream ws", "stdexcept": "length_error runtime_error", "string": "getline string to_string", "string_view": "string_view",
    "system_error": "errc error_code generic_category", "thread": "jthread this_thread thread", "tuple": "apply tie tuple", "typeindex": "type_index", "typeinfo": "type_info",
    "type_traits": "add_pointer_t conditional_t false_type integral_constant is_arithmetic_v is_const_v is_convertible_v is_empty_v is_enum_v is_floating_point_v is_integral_v is_invocable_v is_lvalue_reference_v is_reference_v is_same_v is_trivially_copyable_v remove_const_t remove_cv_t remove_cvref_t remove_reference_t true_type "
                   "remove_pointer_t type_identity type_identity_t",
    "utility": "index_sequence make_index_sequence as_const declval exchange forward in_place_type integer_sequence make_integer_sequence move pair", "variant": "get get_if variant visit", "vector": "erase_if vector",
}
# What comes with nearly every other header.
ALWAYS = {"cstddef", "type_traits", "utility"}
HEADERS = {name: header for header, names in NAMES.items() for name in names.split()}


def check(root):
    """One line for every name whose header is not reached."""
    texts = {str(p.relative_to(root)): re.sub(r"//.*", "", p.read_text()) for p in sorted(root.rglob("*.hpp"))}
    reached = {}

    def reach(file):
        if file not in reached:
            reached[file] = set()
            for system, own in re.findall(r'#include (?:<(\w+)>|"([\w/.]+)")', texts.get(file, "")):
                reached[file] |= {system} if system else reach(own)
        return reached[file]

    violations = []
    for file, text in texts.items():
        for name in sorted(set(re.findall(r"std::(\w+)", text))):
            header = HEADERS.get(name)
            if header is None:
                violations.append(f"{file}: no line of {pathlib.Path(__file__).name} says where std::{name} is from")
            elif header not in reach(file) and not (header in ALWAYS and reach(file)):
                violations.append(f"{file}: std::{name} without <{header}>")
    return violations


if __name__ == "__main__":
    found = check(pathlib.Path(sys.argv[1]))
    print("\n".join(found + [f"{len(found)} violations"]))
    sys.exit(1 if found else 0)

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How the programs end: what they say of an exception, and whether what they printed has arrived.

#include <exception>
#include <string>

/// What is wrong, in words of a person: of an error of the library its message, and a sentence in place of
/// what the standard library says about memory, threads and files.
std::string sentence_of(const std::exception& e);

/// `code`; where it is 0 and stdout could not be written, a sentence of `program` on stderr, and 1.
int checked_output(const char* program, int code);

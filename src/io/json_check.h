// SPDX-License-Identifier: Apache-2.0
// json_check.h: is a text one strict JSON value (RFC 8259)? The tokeniser that
// reads it afterwards forgives too much to be asked.

#ifndef ISTHMUS_IO_JSON_CHECK_H_
#define ISTHMUS_IO_JSON_CHECK_H_

#include <stddef.h>

// Deepest nesting allowed; the limit of the reference implementation's parser.
#define IST__JSON_DEPTH 128

// Reads the text in one pass: UTF-8, strings without control characters or
// half surrogates, numbers, nesting, nothing after the value but blanks. NULL,
// with the number of values and keys, or what is wrong: a static text that
// fits after "its header", and where.
const char *ist__json_check(const char *text, size_t size, size_t *out_tokens,
                            size_t *out_at);

// Writes the characters of a checked string's inner text to out, which has
// room for size bytes and never needs more; returns how many it wrote. A
// written NUL is an ordinary character.
size_t ist__json_decode(const char *inner, size_t size, char *out);

#endif  // ISTHMUS_IO_JSON_CHECK_H_

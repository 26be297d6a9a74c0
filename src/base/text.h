// SPDX-License-Identifier: Apache-2.0
// text.h: writing text into a buffer of fixed size without ever passing its
// end, and JSON strings. Not for parsing but of a number.

#ifndef ISTHMUS_BASE_TEXT_H_
#define ISTHMUS_BASE_TEXT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// length grows by all that was written, what did not fit included; the buffer
// always ends in a NUL when size > 0.
typedef struct ist__text {
  char *buffer;
  size_t size;
  size_t length;
} ist__text;

static inline ist__text ist__text_make(char *buffer, size_t size) {
  if (size > 0) buffer[0] = '\0';
  return (ist__text){.buffer = buffer, .size = size};
}

void ist__text_add(ist__text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// How many bytes the UTF-8 sequence at s has, of which left may be read; 0 when
// what is there is not valid (RFC 3629: no overlong form, no surrogate, nothing
// above U+10FFFF). Nothing is read after a byte that cannot go on, so that left
// may be SIZE_MAX for a string that ends in a NUL.
size_t ist__text_utf8_length(const void *s, size_t left);

// A JSON string with its quotes; NULL becomes null. Bytes that are not valid
// UTF-8 are written as U+FFFD.
void ist__text_add_json(ist__text *text, const char *string);

// The first line of message that says something: text up to a newline, without
// leading blanks, cut to size, its NUL included.
void ist__text_first_line(const char *message, size_t length, char *buffer,
                          size_t size);

// Reads text that is a decimal number from least to most and nothing else;
// false, and *out left alone, when it is not.
bool ist__text_number(const char *text, int32_t least, int32_t most,
                      int32_t *out);

#endif  // ISTHMUS_BASE_TEXT_H_

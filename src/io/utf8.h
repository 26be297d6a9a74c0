// SPDX-License-Identifier: Apache-2.0
// utf8.h: how long the UTF-8 sequence at an address is, for text that need not
// end in a NUL.

#ifndef ISTHMUS_IO_UTF8_H_
#define ISTHMUS_IO_UTF8_H_

#include <stddef.h>
#include <stdint.h>

// Bytes of the sequence at s, of which left may be read; 0 when it is not
// valid (RFC 3629: no overlong form, no surrogate, nothing above U+10FFFF).
static inline size_t ist__utf8_length(const unsigned char *s, size_t left) {
  if (left == 0) return 0;
  if (s[0] < 0x80) return 1;
  size_t length = s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
  if (length == 0 || s[0] > 0xF4 || left < length) return 0;
  for (size_t i = 1; i < length; i++) {
    if ((s[i] & 0xC0) != 0x80) return 0;
  }
  if (s[0] == 0xE0 && s[1] < 0xA0) return 0;
  if (s[0] == 0xED && s[1] > 0x9F) return 0;
  if (s[0] == 0xF0 && s[1] < 0x90) return 0;
  if (s[0] == 0xF4 && s[1] > 0x8F) return 0;
  return length;
}

#endif  // ISTHMUS_IO_UTF8_H_

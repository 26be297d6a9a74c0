// SPDX-License-Identifier: Apache-2.0
// errno_text.h: what a value of errno means, in words, in memory of the
// caller's: strerror may hand two threads the same buffer.

#ifndef ISTHMUS_BASE_ERRNO_TEXT_H_
#define ISTHMUS_BASE_ERRNO_TEXT_H_

typedef struct ist__errno_text {
  char text[96];
} ist__errno_text;

// Never empty; errno stays as it is.
ist__errno_text ist__errno_text_make(int reason);

#endif  // ISTHMUS_BASE_ERRNO_TEXT_H_

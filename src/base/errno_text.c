// SPDX-License-Identifier: Apache-2.0
// errno_text.c: strerror_r, the form of POSIX.

// GNU's strerror_r has the same name and another result.
#undef _GNU_SOURCE
#define _POSIX_C_SOURCE 200809L

#include "base/errno_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

ist__errno_text ist__errno_text_make(int reason) {
  ist__errno_text words = {{0}};
  int before = errno;
  // EINVAL for an unknown number, ERANGE for a long text: glibc then leaves
  // what fits, others may leave nothing.
  (void)strerror_r(reason, words.text, sizeof words.text);
  words.text[sizeof words.text - 1] = '\0';
  if (words.text[0] == '\0') {
    (void)snprintf(words.text, sizeof words.text, "errno %d", reason);
  }
  errno = before;
  return words;
}

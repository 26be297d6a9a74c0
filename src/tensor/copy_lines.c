// SPDX-License-Identifier: Apache-2.0
// copy_lines.c: many short lines of bytes, in plain C. A call of memcpy for
// each costs more than the bytes; a line is two moves of a fixed size, which
// may overlap within the line.

#include <string.h>

#include "tensor/copy_kernels.h"

// Longer lines are worth a call.
#define LONGEST 128

#define LINES(bits, type)                                  \
  static void lines_of_##bits(const ist__lines *l) {       \
    const char *from = l->from;                            \
    char *to = l->to;                                      \
    const int64_t last = l->bytes - (int64_t)sizeof(type); \
    for (int64_t n = 0; n < l->count; n++) {               \
      type head, tail;                                     \
      memcpy(&head, from, sizeof head);                    \
      memcpy(&tail, from + last, sizeof tail);             \
      memcpy(to, &head, sizeof head);                      \
      memcpy(to + last, &tail, sizeof tail);               \
      from += l->from_step;                                \
      to += l->to_step;                                    \
    }                                                      \
  }

typedef struct wide {
  uint64_t half[2];
} wide;

LINES(8, uint8_t)
LINES(16, uint16_t)
LINES(32, uint32_t)
LINES(64, uint64_t)
LINES(128, wide)

// 33 bytes and more.
static void lines_of_many(const ist__lines *l) {
  const int64_t last = l->bytes - (int64_t)sizeof(wide);
  for (int64_t n = 0; n < l->count; n++) {
    const char *from = l->from + n * l->from_step;
    char *to = l->to + n * l->to_step;
    for (int64_t at = 0; at < last; at += (int64_t)sizeof(wide)) {
      wide part;
      memcpy(&part, from + at, sizeof part);
      memcpy(to + at, &part, sizeof part);
    }
    wide tail;
    memcpy(&tail, from + last, sizeof tail);
    memcpy(to + last, &tail, sizeof tail);
  }
}

void ist__copy_lines(const ist__lines *l) {
  if (l->bytes > LONGEST) {
    for (int64_t n = 0; n < l->count; n++) {
      memcpy(l->to + n * l->to_step, l->from + n * l->from_step,
             (size_t)l->bytes);
    }
  } else if (l->bytes > 32) {
    lines_of_many(l);
  } else if (l->bytes >= 16) {
    lines_of_128(l);
  } else if (l->bytes >= 8) {
    lines_of_64(l);
  } else if (l->bytes >= 4) {
    lines_of_32(l);
  } else if (l->bytes >= 2) {
    lines_of_16(l);
  } else {
    lines_of_8(l);
  }
}

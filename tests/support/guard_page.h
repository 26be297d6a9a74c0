// SPDX-License-Identifier: Apache-2.0
// guard_page.h: memory between two pages that nobody may touch, so that one
// byte too far is a crash and not luck.

#ifndef ISTHMUS_TESTS_SUPPORT_GUARD_PAGE_H_
#define ISTHMUS_TESTS_SUPPORT_GUARD_PAGE_H_

#include <stddef.h>

typedef struct guarded {
  void *map;
  size_t map_size;
  size_t size;
  char *start;  // size bytes that begin right after the lower guard
  char *end;    // the end of size bytes that end right before the upper guard
} guarded;

// size bytes, zero, that touch both guards when size is a multiple of a page;
// else use start for the lower edge and end for the upper.
guarded guarded_make(size_t size);
void guarded_free(guarded *memory);

#endif  // ISTHMUS_TESTS_SUPPORT_GUARD_PAGE_H_

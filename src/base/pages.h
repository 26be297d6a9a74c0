// SPDX-License-Identifier: Apache-2.0
// pages.h: large pieces of memory in pages of their own, huge ones where the
// system gives them. Small things are ist__alloc's.

#ifndef ISTHMUS_BASE_PAGES_H_
#define ISTHMUS_BASE_PAGES_H_

#include "base/env.h"

// Bytes in front of the data that are the holder's own, in another page than
// the data; and the alignment that data has at least.
#define IST__PAGES_HEAD 4096

// From this size on huge pages are asked for: their size on x86-64 and, with
// pages of 4 KiB, on aarch64.
#define IST__PAGES_HUGE ((size_t)2 << 20)

typedef struct ist__pages {
  char *data;     // at a multiple of IST__PAGES_HEAD, or of IST__PAGES_HUGE
  void *base;     // what is freed
  size_t length;  // bytes from base on
  bool zeroed;    // the system gave it just now: all zeros, not touched
} ist__pages;

// size bytes and the head. Mapped where the context has the default allocator;
// an allocator of the caller's own is asked for them instead, and sees every
// byte. False when there is no memory.
bool ist__pages_make(const ist__env *env, size_t size, ist__pages *out);

void ist__pages_free(const ist__env *env, const ist__pages *pages);

#endif  // ISTHMUS_BASE_PAGES_H_

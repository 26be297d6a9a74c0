// SPDX-License-Identifier: Apache-2.0
// block_pool.h: blocks of elements that nobody uses just now, kept by a context
// for the next tensor of about their size: their pages are there already, which
// is most of what a large copy costs otherwise. Not for threads: base/pool.h.

#ifndef ISTHMUS_BACKEND_BLOCK_POOL_H_
#define ISTHMUS_BACKEND_BLOCK_POOL_H_

#include <pthread.h>

#include "base/pages.h"

// Smaller ones are ist__alloc's: an allocator has such at hand anyway.
#define IST__BLOCK_POOL_LEAST ((uint64_t)64 << 10)

// Steps between a power of two and the next, so that at most an eighth of a
// block is not asked for; and all the steps up to 2^60 bytes.
#define IST__BLOCK_POOL_STEPS 8
#define IST__BLOCK_POOL_CLASSES (45 * IST__BLOCK_POOL_STEPS)

// The head of the pages of a block, never in a page of the elements.
typedef struct ist__pooled {
  ist__pages pages;
  uint64_t room;                      // bytes for elements
  int32_t step;                       // its class
  struct ist__pooled *lower, *upper;  // idle ones of the class, newest on top
  struct ist__pooled *older, *newer;  // all idle ones
} ist__pooled;

typedef struct ist__block_pool {
  pthread_mutex_t lock;  // of all below; held over no call of an allocator
  uint64_t bound;        // most idle bytes
  ist__pooled *oldest, *newest;
  ist__pooled *tops[IST__BLOCK_POOL_CLASSES];
  ist_block_pool_info info;
} ist__block_pool;

// bytes: as in ist_context_options.
void ist__block_pool_open(ist__block_pool *pool, int64_t bytes);
// Frees what is idle; nothing is in use any more.
void ist__block_pool_close(ist__block_pool *pool, const ist__env *env);

// A block with room for size bytes, at least IST__BLOCK_POOL_LEAST, or NULL: an
// idle one, else a new one; idle ones are freed for want of memory.
ist__pooled *ist__block_pool_take(ist__block_pool *pool, const ist__env *env,
                                  uint64_t size);
// Takes a block back: keeps it, and frees the oldest beyond the bound.
void ist__block_pool_give(ist__block_pool *pool, const ist__env *env,
                          ist__pooled *block);

// Frees what is idle; returns its bytes.
uint64_t ist__block_pool_trim(ist__block_pool *pool, const ist__env *env);

// The bytes that text, which may be NULL, asks for, as ISTHMUS_POOL_BYTES says
// it to the command and to Python: a number, with K, M or G of 1024 after it;
// 0 keeps none. *out is as in ist_context_options. Fails: OPTION.
ist_code ist__block_pool_bytes(const char *text, int64_t *out, ist_error *err);

#endif  // ISTHMUS_BACKEND_BLOCK_POOL_H_

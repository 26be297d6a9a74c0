// SPDX-License-Identifier: Apache-2.0
// refcount.h: a count of holders that any thread may change.

#ifndef ISTHMUS_BASE_REFCOUNT_H_
#define ISTHMUS_BASE_REFCOUNT_H_

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct ist__refcount {
  _Atomic(uint32_t) holders;
} ist__refcount;

static inline void ist__refcount_init(ist__refcount *count) {
  atomic_init(&count->holders, 1);
}

static inline void ist__refcount_take(ist__refcount *count) {
  uint32_t before =
      atomic_fetch_add_explicit(&count->holders, 1, memory_order_relaxed);
  assert(before != 0 && before != UINT32_MAX);
  (void)before;
}

// True when the caller, who holds one count, is the only holder: nobody else
// can take a count then.
static inline bool ist__refcount_is_one(ist__refcount *count) {
  return atomic_load_explicit(&count->holders, memory_order_acquire) == 1;
}

// True when there are so many holders, all of them the caller's.
static inline bool ist__refcount_is(const ist__refcount *count,
                                    uint32_t holders) {
  return atomic_load_explicit(&count->holders, memory_order_acquire) == holders;
}

// True for the last holder, which then sees all that the others wrote. The only
// holder need not write: nobody else is there to count.
static inline bool ist__refcount_drop(ist__refcount *count) {
  if (ist__refcount_is_one(count)) return true;
  uint32_t before =
      atomic_fetch_sub_explicit(&count->holders, 1, memory_order_acq_rel);
  assert(before != 0);
  return before == 1;
}

#endif  // ISTHMUS_BASE_REFCOUNT_H_

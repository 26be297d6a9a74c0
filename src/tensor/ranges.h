// SPDX-License-Identifier: Apache-2.0
// ranges.h: long work over a line of items, done in ranges, so that a pool's
// threads share it, progress is told and a cancel is honoured. What an item is,
// is the caller's.

#ifndef ISTHMUS_TENSOR_RANGES_H_
#define ISTHMUS_TENSOR_RANGES_H_

#include "base/watch.h"
#include "tensor/copy_engine.h"

// Between two questions whether to go on, at most so many bytes are written, by
// all threads together.
#define IST__ROUND_BYTES ((uint64_t)1 << 20)

// Work of at least so many bytes goes to the pool. Below, waking threads costs
// more than they save: see docs/copies.md.
#define IST__POOL_BYTES ((uint64_t)1 << 20)

// Does the items from first to before end, on any thread; returns how many
// units of progress those were.
typedef uint64_t (*ist__range_fn)(void *work, uint64_t first, uint64_t end);

typedef struct ist__ranges {
  uint64_t count;      // items
  uint64_t step;       // items of a range, at least 1
  uint64_t units;      // of progress, all items together
  ist__range_fn task;  // called for ranges that begin at a multiple of step
  void *work;
  bool in_order;  // one range after the other, on the calling thread
} ist__ranges;

// Bytes that one range may write, for work of nbytes in all.
uint64_t ist__range_bytes(const ist__copy_engine *engine, uint64_t nbytes);

// How many items of item_bits fit a range, a multiple of 8 (so that a border
// between two of them splits no byte of packed ones), at least 8.
uint64_t ist__range_step(const ist__copy_engine *engine, uint64_t count,
                         uint64_t item_bits);

// Does all items, each once; the first units of progress are told as bytes of
// watch's hop. engine and watch may be NULL. False when watch cancelled: no
// range is under way any more, and those not begun are left out.
bool ist__ranges_run(const ist__copy_engine *engine, ist__watch *watch,
                     const ist__ranges *ranges);

// Where a pool's threads find the work that is under way: lives as long as the
// engine, so that a call that a pool makes too late finds nothing to do there
// and harms nothing. NULL when there is no memory.
struct ist__desk *ist__desks_make(const ist__env *env);
void ist__desks_free(const ist__env *env, struct ist__desk *desks);

#endif  // ISTHMUS_TENSOR_RANGES_H_

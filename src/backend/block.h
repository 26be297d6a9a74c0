// SPDX-License-Identifier: Apache-2.0
// block.h: memory of this process that holds a tensor's elements: aligned so
// that every backend here can view it, freed by an ist_release_fn. Large ones
// come from the context's pool of blocks.

#ifndef ISTHMUS_BACKEND_BLOCK_H_
#define ISTHMUS_BACKEND_BLOCK_H_

#include "backend/context.h"

// The alignment that every backend measured so far can view: the XLA CPU
// plugins want 64, also for empty arrays (their own words: "is not aligned to
// 64 bytes").
#define IST__BLOCK_ALIGNMENT 64

// size bytes at a multiple of alignment (a power of two; less than 64 counts
// as 64), or NULL. The block retains context until it is released.
void *ist__block_make(ist_context *context, uint64_t size, uint64_t alignment);

// The same, all zeros. Pages that the system gives are zeros already, and are
// not touched.
void *ist__block_make_zeroed(ist_context *context, uint64_t size,
                             uint64_t alignment);

// Frees a block by the address that make gave; an ist_release_fn.
void ist__block_release(void *data);

#endif  // ISTHMUS_BACKEND_BLOCK_H_

// SPDX-License-Identifier: Apache-2.0
// alloc.h: all memory of the library comes through here. The allocator of the
// context is the hook that can make it fail.

#ifndef ISTHMUS_BASE_ALLOC_H_
#define ISTHMUS_BASE_ALLOC_H_

#include "base/env.h"

// The default allocator: malloc, aligned_alloc and free.
ist_allocator ist__malloc_allocator(void);

// True for that one: memory then need not come through a hook of the caller's.
bool ist__alloc_is_system(const ist__env *env);

// size bytes at a multiple of alignment (a power of two), or NULL. A size of 0
// gives a unique address.
void *ist__alloc(const ist__env *env, size_t size, size_t alignment);

// The same, for a type of default alignment, zeroed.
void *ist__alloc_zero(const ist__env *env, size_t size);

// Frees what the two above gave; NULL is allowed.
void ist__free(const ist__env *env, void *pointer);

#endif  // ISTHMUS_BASE_ALLOC_H_

// SPDX-License-Identifier: Apache-2.0
// alloc.c: the only file that calls malloc.

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

static void *system_allocate(void *self, size_t size, size_t alignment) {
  (void)self;
  if (alignment <= _Alignof(max_align_t)) return malloc(size);
  // aligned_alloc wants a multiple of the alignment (C11 7.22.3.1).
  size_t rounded = size + (alignment - 1);
  if (rounded < size) return NULL;
  return aligned_alloc(alignment, rounded & ~(alignment - 1));
}

static void system_release(void *self, void *pointer) {
  (void)self;
  free(pointer);
}

ist_allocator ist__malloc_allocator(void) {
  return (ist_allocator){.allocate = system_allocate,
                         .release = system_release};
}

bool ist__alloc_is_system(const ist__env *env) {
  return env->allocator.allocate == system_allocate;
}

void *ist__alloc(const ist__env *env, size_t size, size_t alignment) {
  const ist_allocator *a = &env->allocator;
  // No object is larger (C11 7.20.3), and no allocator is asked for one.
  if (size > PTRDIFF_MAX) return NULL;
  return a->allocate(a->self, size != 0 ? size : 1, alignment);
}

void *ist__alloc_zero(const ist__env *env, size_t size) {
  void *pointer = ist__alloc(env, size, _Alignof(max_align_t));
  if (pointer != NULL) memset(pointer, 0, size);
  return pointer;
}

void ist__free(const ist__env *env, void *pointer) {
  const ist_allocator *a = &env->allocator;
  if (pointer != NULL) a->release(a->self, pointer);
}

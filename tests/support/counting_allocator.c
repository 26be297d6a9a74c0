// SPDX-License-Identifier: Apache-2.0
// counting_allocator.c: malloc with a count in front.

#include "support/counting_allocator.h"

#include <stdlib.h>
#include <string.h>

static void *allocate(void *self, size_t size, size_t alignment) {
  counting_allocator *counter = self;
  long number = atomic_fetch_add(&counter->requests, 1) + 1;
  if (number == atomic_load(&counter->fail_at)) {
    atomic_fetch_add(&counter->failed, 1);
    return NULL;
  }
  if (alignment < _Alignof(max_align_t)) alignment = _Alignof(max_align_t);
  size_t rounded = (size + alignment - 1) & ~(alignment - 1);
  if (rounded < size) return NULL;
  void *pointer = aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (pointer == NULL) return NULL;
  memset(pointer, 0xA5, size);
  atomic_fetch_add(&counter->live, 1);
  return pointer;
}

static void release(void *self, void *pointer) {
  counting_allocator *counter = self;
  atomic_fetch_sub(&counter->live, 1);
  free(pointer);
}

void counting_allocator_init(counting_allocator *counter) {
  atomic_init(&counter->requests, 0);
  atomic_init(&counter->live, 0);
  atomic_init(&counter->fail_at, 0);
  atomic_init(&counter->failed, 0);
}

void counting_allocator_arm(counting_allocator *counter, long fail_at) {
  atomic_store(&counter->requests, 0);
  atomic_store(&counter->failed, 0);
  atomic_store(&counter->fail_at, fail_at);
}

ist_allocator counting_allocator_hook(counting_allocator *counter) {
  return (ist_allocator){counter, allocate, release};
}

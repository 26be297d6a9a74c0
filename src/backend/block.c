// SPDX-License-Identifier: Apache-2.0
// block.c: a block is [gap][header][elements]; the header ends where the
// elements begin, so that the address alone is enough to free it.

#include "backend/block.h"

#include "base/alloc.h"
#include "base/checked.h"

typedef struct header {
  ist_context *context;
  void *base;  // what the allocator gave
} header;

void *ist__block_make(ist_context *context, uint64_t size, uint64_t alignment) {
  if (alignment < IST__BLOCK_ALIGNMENT) alignment = IST__BLOCK_ALIGNMENT;
  _Static_assert(sizeof(header) <= IST__BLOCK_ALIGNMENT, "header fits the gap");
  uint64_t total;
  if (!ist__add_u64(size, alignment, &total) || total > SIZE_MAX) return NULL;
  char *base = ist__alloc(&context->env, (size_t)total, (size_t)alignment);
  if (base == NULL) return NULL;
  char *data = base + alignment;
  ((header *)data)[-1] = (header){context, base};
  ist_context_retain(context);
  return data;
}

void ist__block_release(void *data) {
  header block = ((header *)data)[-1];
  ist__free(&block.context->env, block.base);
  ist_context_release(block.context);
}

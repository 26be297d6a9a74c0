// SPDX-License-Identifier: Apache-2.0
// block.c: a block is [gap][header][elements]; the header ends where the
// elements begin, so that the address alone is enough to free it.

#include "backend/block.h"

#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"

typedef struct header {
  ist_context *context;
  void *base;           // what the allocator gave
  ist__pooled *pooled;  // in place of base; NULL: not the pool's
} header;

static void write_header(char *data, ist_context *context, void *base,
                         ist__pooled *pooled) {
  ((header *)(void *)data)[-1] = (header){context, base, pooled};
  ist_context_retain(context);
}

static char *make_small(ist_context *context, uint64_t size,
                        uint64_t alignment) {
  _Static_assert(sizeof(header) <= IST__BLOCK_ALIGNMENT, "header fits the gap");
  uint64_t total;
  if (!ist__add_u64(size, alignment, &total) || total > SIZE_MAX) return NULL;
  char *base = ist__alloc(&context->env, (size_t)total, (size_t)alignment);
  if (base == NULL && ist_context_trim(context) != 0) {
    base = ist__alloc(&context->env, (size_t)total, (size_t)alignment);
  }
  if (base == NULL) return NULL;
  write_header(base + alignment, context, base, NULL);
  return base + alignment;
}

static char *make_pooled(ist_context *context, uint64_t size,
                         bool *out_zeroed) {
  ist__pooled *pooled =
      ist__block_pool_take(&context->block_pool, &context->env, size);
  if (pooled == NULL) return NULL;
  *out_zeroed = pooled->pages.zeroed;
  write_header(pooled->pages.data, context, NULL, pooled);
  return pooled->pages.data;
}

// Where nothing is kept, an allocator is better at what is no huge page.
static bool is_pooled(const ist_context *context, uint64_t size,
                      uint64_t alignment) {
  uint64_t least =
      context->block_pool.bound != 0 ? IST__BLOCK_POOL_LEAST : IST__PAGES_HUGE;
  return size >= least && alignment <= IST__PAGES_HEAD;
}

static char *make(ist_context *context, uint64_t size, uint64_t alignment,
                  bool *out_zeroed) {
  if (alignment < IST__BLOCK_ALIGNMENT) alignment = IST__BLOCK_ALIGNMENT;
  *out_zeroed = false;
  return is_pooled(context, size, alignment)
             ? make_pooled(context, size, out_zeroed)
             : make_small(context, size, alignment);
}

void *ist__block_make(ist_context *context, uint64_t size, uint64_t alignment) {
  bool zeroed;
  return make(context, size, alignment, &zeroed);
}

void *ist__block_make_zeroed(ist_context *context, uint64_t size,
                             uint64_t alignment) {
  bool zeroed;
  char *data = make(context, size, alignment, &zeroed);
  if (data != NULL && !zeroed) memset(data, 0, (size_t)size);
  return data;
}

void ist__block_release(void *data) {
  header block = ((header *)data)[-1];
  ist_context *context = block.context;
  if (block.pooled != NULL) {
    ist__block_pool_give(&context->block_pool, &context->env, block.pooled);
  } else {
    ist__free(&context->env, block.base);
  }
  ist_context_release(context);
}

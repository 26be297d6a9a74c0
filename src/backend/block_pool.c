// SPDX-License-Identifier: Apache-2.0
// block_pool.c: idle blocks by class and by age.

#include "backend/block_pool.h"

#include <assert.h>

#include "backend/context.h"
#include "base/error.h"
#include "base/poison.h"
#include "base/structs.h"

// Twice the largest copying import that the benches look at.
#define DEFAULT_BOUND ((uint64_t)512 << 20)

void ist__block_pool_open(ist__block_pool *pool, int64_t bytes) {
  pthread_mutex_init(&pool->lock, NULL);
  pool->bound = bytes > 0 ? (uint64_t)bytes : bytes == 0 ? DEFAULT_BOUND : 0;
  pool->info = (ist_block_pool_info){.struct_size = sizeof pool->info,
                                     .bound = pool->bound};
}

void ist__block_pool_close(ist__block_pool *pool, const ist__env *env) {
  assert(pool->info.in_use == 0);
  (void)ist__block_pool_trim(pool, env);
  pthread_mutex_destroy(&pool->lock);
}

// The class of a size, and the room that a block of it has.
static int32_t class_of(uint64_t size, uint64_t *out_room) {
  int32_t shift = 60 - __builtin_clzll(size);  // 8 to 16 steps make the size
  uint64_t steps = ((size - 1) >> shift) + 1;
  *out_room = steps << shift;
  int32_t least = 60 - __builtin_clzll(IST__BLOCK_POOL_LEAST);
  return (shift - least) * IST__BLOCK_POOL_STEPS + (int32_t)steps -
         IST__BLOCK_POOL_STEPS;
}

// ---- the lists of idle blocks, under the lock

static void put(ist__block_pool *pool, ist__pooled *block) {
  ist__pooled **top = &pool->tops[block->step];
  block->upper = NULL;
  block->lower = *top;
  if (*top != NULL) (*top)->upper = block;
  *top = block;
  block->newer = NULL;
  block->older = pool->newest;
  if (pool->newest != NULL) pool->newest->newer = block;
  pool->newest = block;
  if (pool->oldest == NULL) pool->oldest = block;
  pool->info.held += block->room;
}

static void remove_from(ist__block_pool *pool, ist__pooled *block) {
  if (block->upper != NULL) {
    block->upper->lower = block->lower;
  } else {
    pool->tops[block->step] = block->lower;
  }
  if (block->lower != NULL) block->lower->upper = block->upper;
  if (block->newer != NULL) {
    block->newer->older = block->older;
  } else {
    pool->newest = block->older;
  }
  if (block->older != NULL) {
    block->older->newer = block->newer;
  } else {
    pool->oldest = block->newer;
  }
  pool->info.held -= block->room;
}

// Takes the oldest out until so many bytes are left; they hang together by
// their field older.
static ist__pooled *take_oldest(ist__block_pool *pool, uint64_t left) {
  ist__pooled *list = NULL;
  while (pool->info.held > left) {
    ist__pooled *block = pool->oldest;
    remove_from(pool, block);
    block->older = list;
    list = block;
  }
  return list;
}

static void free_list(const ist__env *env, ist__pooled *list) {
  while (list != NULL) {
    ist__pooled *next = list->older;
    IST__UNPOISON(list->pages.data, list->room);
    ist__pages pages = list->pages;
    ist__pages_free(env, &pages);
    list = next;
  }
}

static void count_use(ist__block_pool *pool, uint64_t room) {
  ist_block_pool_info *info = &pool->info;
  info->in_use += room;
  uint64_t all = info->in_use + info->held;
  if (all > info->peak) info->peak = all;
}

// An idle block of the class or of the next one, or NULL.
static ist__pooled *take_idle(ist__block_pool *pool, int32_t step) {
  pthread_mutex_lock(&pool->lock);
  ist__pooled *block = pool->tops[step];
  if (block == NULL && step + 1 < IST__BLOCK_POOL_CLASSES) {
    block = pool->tops[step + 1];
  }
  if (block != NULL) {
    remove_from(pool, block);
    count_use(pool, block->room);
    pool->info.hits++;
  }
  pthread_mutex_unlock(&pool->lock);
  return block;
}

static ist__pooled *make_new(ist__block_pool *pool, const ist__env *env,
                             int32_t step, uint64_t room) {
  _Static_assert(sizeof(ist__pooled) <= IST__PAGES_HEAD / 2, "a head of both");
  ist__pages pages;
  bool made = ist__pages_make(env, (size_t)room, &pages);
  if (!made && ist__block_pool_trim(pool, env) != 0) {
    made = ist__pages_make(env, (size_t)room, &pages);
  }
  if (!made) return NULL;
  ist__pooled *block = pages.base;
  *block = (ist__pooled){.pages = pages, .room = room, .step = step};
  pthread_mutex_lock(&pool->lock);
  pool->info.misses++;
  count_use(pool, room);
  pthread_mutex_unlock(&pool->lock);
  return block;
}

ist__pooled *ist__block_pool_take(ist__block_pool *pool, const ist__env *env,
                                  uint64_t size) {
  assert(size >= IST__BLOCK_POOL_LEAST);
  uint64_t room;
  if (size > UINT64_C(1) << 60) return NULL;
  int32_t step = class_of(size, &room);
  if (room > SIZE_MAX) return NULL;
  ist__pooled *block = take_idle(pool, step);
  if (block != NULL) {
    block->pages.zeroed = false;
  } else {
    block = make_new(pool, env, step, room);
    if (block == NULL) return NULL;
  }
  IST__UNPOISON(block->pages.data, size);
  IST__POISON(block->pages.data + size, block->room - size);
  return block;
}

void ist__block_pool_give(ist__block_pool *pool, const ist__env *env,
                          ist__pooled *block) {
  IST__POISON(block->pages.data, block->room);
  pthread_mutex_lock(&pool->lock);
  pool->info.in_use -= block->room;
  put(pool, block);
  ist__pooled *list = take_oldest(pool, pool->bound);
  pthread_mutex_unlock(&pool->lock);
  free_list(env, list);
}

uint64_t ist__block_pool_trim(ist__block_pool *pool, const ist__env *env) {
  pthread_mutex_lock(&pool->lock);
  uint64_t held = pool->info.held;
  ist__pooled *list = take_oldest(pool, 0);
  pthread_mutex_unlock(&pool->lock);
  free_list(env, list);
  return held;
}

// Digits and a unit; false for what is none, or has more than 2^60 bytes.
static bool read_bytes(const char *text, int64_t *out) {
  const int64_t most = INT64_C(1) << 60;
  int64_t number = 0;
  const char *at = text;
  for (; *at >= '0' && *at <= '9' && number <= most / 16; at++) {
    number = number * 10 + (*at - '0');
  }
  if (at == text) return false;
  int unit = 0;
  if (*at == 'K') unit = 10;
  if (*at == 'M') unit = 20;
  if (*at == 'G') unit = 30;
  if (unit != 0) at++;
  if (*at != '\0' || number > most >> unit) return false;
  *out = number << unit;
  return true;
}

ist_code ist__block_pool_bytes(const char *text, int64_t *out, ist_error *err) {
  *out = 0;
  if (text == NULL || *text == '\0') return IST_OK;
  if (read_bytes(text, out)) {
    if (*out == 0) *out = -1;
    return IST_OK;
  }
  return ist_error_set(err, IST_ERR_OPTION,
                       "the environment: option ISTHMUS_POOL_BYTES cannot be "
                       "set: it is \"%.40s\"; needs a number of bytes, with K, "
                       "M or G after it or without, of at most 2^60",
                       text);
}

// ---- public

ist_code ist_context_block_pool(ist_context *context, ist_block_pool_info *out,
                                ist_error *err) {
  if (context == NULL || !ist__struct_ok(out)) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a pool of blocks could not be described: context or "
                         "out is NULL or has no struct_size; needs both");
  }
  ist__block_pool *pool = &context->block_pool;
  pthread_mutex_lock(&pool->lock);
  ist_block_pool_info info = pool->info;
  pthread_mutex_unlock(&pool->lock);
  ist__struct_write(out, &info, sizeof info);
  return IST_OK;
}

uint64_t ist_context_trim(ist_context *context) {
  if (context == NULL) return 0;
  return ist__block_pool_trim(&context->block_pool, &context->env);
}

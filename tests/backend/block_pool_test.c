// SPDX-License-Identifier: Apache-2.0
// block_pool_test.c: blocks come back warm, never above the bound, from any
// thread, and every byte of them through the allocator of the context.

#include "backend/block_pool.h"

#include <pthread.h>

#include "backend/block.h"
#include "support/producer.h"

#define MIB ((uint64_t)1 << 20)

static ist_context *open_context(int64_t bytes,
                                 const ist_allocator *allocator) {
  ist_context_options options = {.struct_size = sizeof options,
                                 .allocator = allocator,
                                 .block_pool_bytes = bytes};
  ist_context *context = NULL;
  ist_error err;
  assert_ok(ist_context_create(&options, &context, &err), err);
  return context;
}

static ist_block_pool_info info_of(ist_context *context) {
  ist_block_pool_info info = {.struct_size = sizeof info};
  ist_error err;
  assert_ok(ist_context_block_pool(context, &info, &err), err);
  return info;
}

static void pool__gives_the_same_block_again(void **state) {
  (void)state;
  ist_context *context = open_context(0, NULL);
  char *first = ist__block_make(context, 4 * MIB, 64);
  assert_non_null(first);
  first[4 * MIB - 1] = 17;
  assert_int_equal(info_of(context).in_use, 4 * MIB);
  ist__block_release(first);
  ist_block_pool_info idle = info_of(context);
  assert_int_equal(idle.held, 4 * MIB);
  assert_int_equal(idle.in_use, 0);
  assert_int_equal(idle.bound, 512 * MIB);
  char *second = ist__block_make(context, 4 * MIB - 5000, 4096);
  assert_ptr_equal(second, first);
  ist__block_release(second);
  ist_block_pool_info info = info_of(context);
  assert_int_equal(info.hits, 1);
  assert_int_equal(info.misses, 1);
  assert_int_equal(info.peak, 4 * MIB);
  ist_context_release(context);
}

static void pool__wastes_at_most_a_quarter(void **state) {
  (void)state;
  ist_context *context = open_context(0, NULL);
  for (uint64_t size = IST__BLOCK_POOL_LEAST; size < 8 * MIB;
       size += size / 7 + 1) {
    char *block = ist__block_make(context, size, 64);
    assert_non_null(block);
    uint64_t room = info_of(context).in_use;
    assert_true(room >= size);
    assert_true(room - size <= size / 4);
    ist__block_release(block);
  }
  ist_context_release(context);
}

static void pool__keeps_at_most_its_bound_and_frees_the_oldest(void **state) {
  (void)state;
  ist_context *context = open_context((int64_t)(5 * MIB), NULL);
  char *blocks[4];
  const uint64_t sizes[4] = {MIB, 2 * MIB, 3 * MIB, 8 * MIB};
  for (int i = 0; i < 4; i++) {
    blocks[i] = ist__block_make(context, sizes[i], 64);
    assert_non_null(blocks[i]);
  }
  for (int i = 0; i < 3; i++) ist__block_release(blocks[i]);
  assert_int_equal(info_of(context).held, 5 * MIB);
  char *kept = ist__block_make(context, 2 * MIB, 64);
  assert_ptr_equal(kept, blocks[1]);
  ist__block_release(kept);
  // A block above the bound leaves nothing that is older, and goes itself.
  ist__block_release(blocks[3]);
  assert_int_equal(info_of(context).held, 0);
  ist_context_release(context);
}

static void pool__that_is_off_keeps_nothing(void **state) {
  (void)state;
  counting_allocator counter;
  counting_allocator_init(&counter);
  ist_allocator hook = counting_allocator_hook(&counter);
  ist_context *context = open_context(-1, &hook);
  long before = counter.live;
  char *small = ist__block_make(context, 100000, 64);
  char *large = ist__block_make(context, 3 * MIB, 64);
  assert_int_equal(counter.live, before + 2);
  ist__block_release(small);
  ist__block_release(large);
  assert_int_equal(counter.live, before);
  assert_int_equal(info_of(context).bound, 0);
  ist_context_release(context);
  assert_int_equal(counter.live, 0);
}

static void pool__asks_an_allocator_of_the_callers_own(void **state) {
  (void)state;
  counting_allocator counter;
  counting_allocator_init(&counter);
  ist_allocator hook = counting_allocator_hook(&counter);
  ist_context *context = open_context(0, &hook);
  long before = counter.live;
  char *block = ist__block_make(context, 3 * MIB, 64);
  assert_int_equal((uintptr_t)block % 4096, 0);
  assert_int_equal(counter.live, before + 1);
  ist__block_release(block);
  assert_int_equal(counter.live, before + 1);
  assert_int_equal(ist_context_trim(context), 3 * MIB);
  assert_int_equal(ist_context_trim(context), 0);
  assert_int_equal(counter.live, before);
  block = ist__block_make(context, 3 * MIB, 64);
  ist__block_release(block);
  ist_context_release(context);
  assert_int_equal(counter.live, 0);
}

static void pool__is_given_up_before_memory_is_missing(void **state) {
  (void)state;
  counting_allocator counter;
  counting_allocator_init(&counter);
  ist_allocator hook = counting_allocator_hook(&counter);
  ist_context *context = open_context(0, &hook);
  const uint64_t wanted[] = {8 * MIB, 1000};  // of the pool, and not of it
  for (int i = 0; i < 2; i++) {
    ist__block_release(ist__block_make(context, MIB, 64));
    counting_allocator_arm(&counter, 1);
    char *block = ist__block_make(context, wanted[i], 64);
    assert_non_null(block);
    assert_int_equal(counter.failed, 1);
    assert_int_equal(info_of(context).held, 0);
    counting_allocator_arm(&counter, 0);
    ist__block_release(block);
    (void)ist_context_trim(context);
    counting_allocator_arm(&counter, 1);
    assert_null(ist__block_make(context, wanted[i], 64));
    counting_allocator_arm(&counter, 0);
  }
  ist_context_release(context);
  assert_int_equal(counter.live, 0);
}

static void pool__leaves_room_to_nobody_else(void **state) {
  (void)state;
  ist_context *context = open_context(0, NULL);
  char *blocks[16];
  for (size_t i = 0; i < COUNT_OF(blocks); i++) {
    blocks[i] = ist__block_make(context, 200000 + 9000 * i, 64);
    assert_non_null(blocks[i]);
    memset(blocks[i], (int)i, 200000 + 9000 * i);
  }
  for (size_t i = 0; i < COUNT_OF(blocks); i++) {
    for (size_t at = 0; at < 200000 + 9000 * i; at += 997) {
      assert_int_equal(blocks[i][at], i);
    }
    ist__block_release(blocks[i]);
  }
  ist_context_release(context);
}

static void empty__is_zero_in_a_block_that_was_used(void **state) {
  (void)state;
  ist_context *context = open_context(0, NULL);
  for (int turn = 0; turn < 2; turn++) {
    ist_spec spec = {.struct_size = sizeof spec,
                     .dtype = {kDLUInt, 8, 1},
                     .ndim = 1,
                     .shape = {(int64_t)(2 * MIB)}};
    ist_tensor *t = NULL;
    ist_error err;
    assert_ok(ist_tensor_empty(context, &spec, 0, &t, &err), err);
    char *data = ist_tensor_view(t)->data;
    for (size_t at = 0; at < 2 * MIB; at += 511) assert_int_equal(data[at], 0);
    memset(data, 0x5c, 2 * MIB);
    ist_tensor_release(t);
  }
  assert_int_equal(info_of(context).hits, 1);
  ist_context_release(context);
}

static void *make_and_release(void *self) {
  ist_context *context = self;
  uint64_t random = (uint64_t)(uintptr_t)&random | 1;
  char *held[8] = {NULL};
  for (int i = 0; i < 400; i++) {
    char **place = &held[random_below(&random, 8)];
    if (*place != NULL) {
      uint64_t size;
      memcpy(&size, *place, sizeof size);
      if ((*place)[size - 1] != (char)size) return "another's bytes";
      ist__block_release(*place);
      *place = NULL;
    } else {
      uint64_t size = 70000 + (uint64_t)random_below(&random, 200000);
      *place = ist__block_make(context, size, 64);
      if (*place == NULL) return "no memory";
      memcpy(*place, &size, sizeof size);
      (*place)[size - 1] = (char)size;
    }
    if (i % 64 == 0) (void)ist_context_trim(context);
  }
  for (int i = 0; i < 8; i++) {
    if (held[i] != NULL) ist__block_release(held[i]);
  }
  return NULL;
}

static void pool__serves_threads(void **state) {
  (void)state;
  ist_context *context = open_context((int64_t)MIB, NULL);
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) {
    assert_int_equal(
        pthread_create(&threads[i], NULL, make_and_release, context), 0);
  }
  for (int i = 0; i < 4; i++) {
    void *fault = NULL;
    pthread_join(threads[i], &fault);
    if (fault != NULL) fail_msg("%s", (const char *)fault);
  }
  assert_int_equal(info_of(context).in_use, 0);
  assert_true(info_of(context).held <= MIB);
  ist_context_release(context);
}

static void pool__is_described_only_with_a_place_for_it(void **state) {
  (void)state;
  ist_context *context = open_context(0, NULL);
  ist_block_pool_info none = {0};
  ist_error err;
  assert_refused(ist_context_block_pool(context, &none, &err), IST_ERR_ARGUMENT,
                 err, "struct_size");
  assert_refused(ist_context_block_pool(NULL, &none, &err), IST_ERR_ARGUMENT,
                 err, "context");
  assert_int_equal(ist_context_trim(NULL), 0);
  ist_context_release(context);
}

static void bytes__are_read_with_units_and_nothing_else(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int64_t bytes;
  } good[] = {{NULL, 0},         {"", 0},         {"0", -1},
              {"0M", -1},        {"4096", 4096},  {"64K", 65536},
              {"256M", 1 << 28}, {"1G", 1 << 30}, {"1073741824G", 1LL << 60}};
  for (size_t i = 0; i < COUNT_OF(good); i++) {
    int64_t bytes = 5;
    ist_error err;
    assert_ok(ist__block_pool_bytes(good[i].text, &bytes, &err), err);
    assert_int_equal(bytes, good[i].bytes);
  }
  static const char *const bad[] = {
      "-1",         "M", "1T", "1KK", " 1", "1 ", "x", "99999999999999999999",
      "1073741825G"};
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    int64_t bytes = 5;
    ist_error err;
    assert_refused(ist__block_pool_bytes(bad[i], &bytes, &err), IST_ERR_OPTION,
                   err, "ISTHMUS_POOL_BYTES");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pool__gives_the_same_block_again),
      cmocka_unit_test(pool__wastes_at_most_a_quarter),
      cmocka_unit_test(pool__keeps_at_most_its_bound_and_frees_the_oldest),
      cmocka_unit_test(pool__that_is_off_keeps_nothing),
      cmocka_unit_test(pool__asks_an_allocator_of_the_callers_own),
      cmocka_unit_test(pool__is_given_up_before_memory_is_missing),
      cmocka_unit_test(pool__leaves_room_to_nobody_else),
      cmocka_unit_test(empty__is_zero_in_a_block_that_was_used),
      cmocka_unit_test(pool__serves_threads),
      cmocka_unit_test(pool__is_described_only_with_a_place_for_it),
      cmocka_unit_test(bytes__are_read_with_units_and_nothing_else),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

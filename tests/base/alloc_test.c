// SPDX-License-Identifier: Apache-2.0
// alloc_test.c: the allocator of the context is the only way to memory.

#include "base/alloc.h"

#include "support/counting_allocator.h"
#include "support/testing.h"

static void alloc__default_gives_the_alignment_asked_for(void **state) {
  (void)state;
  ist__env env;
  ist__env_init(&env, NULL);
  for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
    for (size_t size = 0; size < 70; size += 23) {
      char *pointer = ist__alloc(&env, size, alignment);
      assert_non_null(pointer);
      assert_int_equal((uintptr_t)pointer % alignment, 0);
      memset(pointer, 1, size);
      ist__free(&env, pointer);
    }
  }
}

static void alloc__sizes_that_overflow_give_null(void **state) {
  (void)state;
  ist__env env;
  ist__env_init(&env, NULL);
  // Behind a volatile, so that no compiler argues about the size.
  volatile size_t huge = SIZE_MAX;
  assert_null(ist__alloc(&env, huge, 4096));
  assert_null(ist__alloc(&env, huge - 64, 64));
  assert_null(ist__alloc(&env, huge / 2 + 1, 8));
}

static void alloc__hook_sees_every_request(void **state) {
  (void)state;
  counting_allocator counter;
  counting_allocator_init(&counter);
  ist_allocator hook = counting_allocator_hook(&counter);
  ist_context_options options = {.struct_size = sizeof options,
                                 .allocator = &hook};
  ist__env env;
  ist__env_init(&env, &options);
  void *a = ist__alloc(&env, 10, 256);
  void *b = ist__alloc_zero(&env, 40);
  assert_int_equal((uintptr_t)a % 256, 0);
  assert_int_equal(counter.requests, 2);
  assert_int_equal(counter.live, 2);
  ist__free(&env, a);
  ist__free(&env, b);
  ist__free(&env, NULL);
  assert_int_equal(counter.live, 0);
}

static void alloc__zero_clears_what_the_hook_gave(void **state) {
  (void)state;
  counting_allocator counter;
  counting_allocator_init(&counter);
  ist__env env;
  ist__env_init(&env, NULL);
  env.allocator = counting_allocator_hook(&counter);
  unsigned char *bytes = ist__alloc_zero(&env, 33);
  for (int i = 0; i < 33; i++) assert_int_equal(bytes[i], 0);
  ist__free(&env, bytes);
}

static void alloc__hook_can_fail_the_nth_request(void **state) {
  (void)state;
  counting_allocator counter;
  counting_allocator_init(&counter);
  ist__env env;
  ist__env_init(&env, NULL);
  env.allocator = counting_allocator_hook(&counter);
  counting_allocator_arm(&counter, 2);
  void *first = ist__alloc(&env, 8, 8);
  assert_non_null(first);
  assert_null(ist__alloc_zero(&env, 8));
  assert_int_equal(counter.failed, 1);
  void *third = ist__alloc(&env, 8, 8);
  assert_non_null(third);
  ist__free(&env, first);
  ist__free(&env, third);
  assert_int_equal(counter.live, 0);
}

typedef struct heard {
  int lines;
  ist_log_level level;
  char text[2048];
} heard;

static void hear(void *self, ist_log_level level, const char *text) {
  heard *h = self;
  h->lines++;
  h->level = level;
  size_t length = strlen(text);
  assert_true(length < sizeof h->text);
  memcpy(h->text, text, length + 1);
}

static void log__goes_to_the_callback_or_nowhere(void **state) {
  (void)state;
  heard h = {0};
  ist_context_options options = {
      .struct_size = sizeof options, .log = hear, .log_self = &h};
  ist__env env;
  ist__env_init(&env, &options);
  ist__log(&env, IST_LOG_WARNING, "%s %d", "seen", 3);
  assert_string_equal(h.text, "seen 3");
  assert_int_equal(h.level, IST_LOG_WARNING);
  char longer[1500];
  memset(longer, 'x', sizeof longer - 1);
  longer[sizeof longer - 1] = '\0';
  ist__log_text(&env, IST_LOG_DEBUG, longer);
  assert_string_equal(h.text, longer);
  ist__log(&env, IST_LOG_DEBUG, "%s", longer);
  assert_int_equal(strlen(h.text), 1023);
  assert_int_equal(h.lines, 3);
  ist__env_init(&env, NULL);
  ist__log(&env, IST_LOG_WARNING, "nobody hears");
  ist__log_text(&env, IST_LOG_WARNING, "nobody hears");
}

static bool fail_copy(void *self, const char *slot) {
  (void)self;
  return strcmp(slot, "copy_in") == 0;
}

static void call_hook__is_asked_by_name(void **state) {
  (void)state;
  ist__env env;
  ist__env_init(&env, NULL);
  assert_false(ist__call_fails(&env, "copy_in"));
  env.call_hook = fail_copy;
  assert_true(ist__call_fails(&env, "copy_in"));
  assert_false(ist__call_fails(&env, "copy_out"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(alloc__default_gives_the_alignment_asked_for),
      cmocka_unit_test(alloc__sizes_that_overflow_give_null),
      cmocka_unit_test(alloc__hook_sees_every_request),
      cmocka_unit_test(alloc__zero_clears_what_the_hook_gave),
      cmocka_unit_test(alloc__hook_can_fail_the_nth_request),
      cmocka_unit_test(log__goes_to_the_callback_or_nowhere),
      cmocka_unit_test(call_hook__is_asked_by_name),
  };
  return cmocka_run_group_tests_name("alloc", tests, NULL, NULL);
}

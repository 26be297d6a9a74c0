// SPDX-License-Identifier: Apache-2.0
// pool_test.c: the library's own threads make each call once, and end.

#define _POSIX_C_SOURCE 200809L

#include "base/pool.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/testing.h"

enum {
  call_count = 500
};

typedef struct calls {
  atomic_int made[call_count];
  ist__pool *pool;
  atomic_int inner;
} calls;

static void call(void *work, size_t index) {
  calls *c = work;
  atomic_fetch_add(&c->made[index], 1);
}

static void pool__makes_each_call_once(void **state) {
  (void)state;
  ist__env env;
  ist__env_init(&env, NULL);
  for (int32_t threads = 1; threads <= 4; threads++) {
    ist__pool *pool = ist__pool_make(&env, threads);
    assert_non_null(pool);
    for (int round = 1; round <= 3; round++) {
      static calls c;
      memset(&c, 0, sizeof c);
      ist__pool_run(pool, call_count, call, &c);
      for (int i = 0; i < call_count; i++) assert_int_equal(c.made[i], 1);
    }
    ist__pool_free(&env, pool);
  }
}

static void count_inner(void *work, size_t index) {
  calls *c = work;
  (void)index;
  atomic_fetch_add(&c->inner, 1);
}

static void call_inside(void *work, size_t index) {
  calls *c = work;
  call(work, index);
  ist__pool_run(c->pool, 1, count_inner, c);
}

static void pool__that_is_busy_leaves_the_work_to_the_caller(void **state) {
  (void)state;
  ist__env env;
  ist__env_init(&env, NULL);
  static calls c;
  memset(&c, 0, sizeof c);
  c.pool = ist__pool_make(&env, 3);
  ist__pool_run(c.pool, call_count, call_inside, &c);
  assert_int_equal(c.inner, 0);
  for (int i = 0; i < call_count; i++) assert_int_equal(c.made[i], 1);
  ist__pool_free(&env, c.pool);
}

static void pool__without_a_run_starts_no_thread_and_ends(void **state) {
  (void)state;
  ist__env env;
  ist__env_init(&env, NULL);
  ist__pool_free(&env, ist__pool_make(&env, 8));
  ist__pool_free(&env, NULL);
}

// Threads do not come along into a child: it must neither wait for them nor
// join them (Python's multiprocessing forks).
static void pool__in_a_forked_child_neither_runs_nor_joins(void **state) {
  (void)state;
  ist__env env;
  ist__env_init(&env, NULL);
  static calls c;
  memset(&c, 0, sizeof c);
  ist__pool *pool = ist__pool_make(&env, 3);
  ist__pool_run(pool, call_count, call, &c);
  pid_t child = fork();
  if (child == 0) {
    ist__pool_run(pool, call_count, call, &c);
    ist__pool_free(&env, pool);
    _exit(c.made[0] == 1 ? 0 : 1);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  ist__pool_free(&env, pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pool__makes_each_call_once),
      cmocka_unit_test(pool__that_is_busy_leaves_the_work_to_the_caller),
      cmocka_unit_test(pool__without_a_run_starts_no_thread_and_ends),
      cmocka_unit_test(pool__in_a_forked_child_neither_runs_nor_joins),
  };
  return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}

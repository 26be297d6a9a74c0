// SPDX-License-Identifier: Apache-2.0
// ranges_test.c: long work is done once, whatever its pool does, is told of,
// and stops where it is cancelled.

#include "tensor/ranges.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "support/testing.h"

enum {
  item_count = 10007,
  range_items = 64
};

// How often each item was done, and what is under way.
typedef struct tally {
  atomic_int items[item_count];
  atomic_int active;
} tally;

static uint64_t count_items(void *work, uint64_t first, uint64_t end) {
  tally *t = work;
  assert_true(first % range_items == 0 && end <= item_count);
  atomic_fetch_add(&t->active, 1);
  for (uint64_t i = first; i < end; i++) atomic_fetch_add(&t->items[i], 1);
  atomic_fetch_sub(&t->active, 1);
  return end - first;
}

static ist__ranges ranges_of(tally *t) {
  return (ist__ranges){.count = item_count,
                       .step = range_items,
                       .units = item_count,
                       .task = count_items,
                       .work = t};
}

static int items_done(tally *t) {
  int sum = 0;
  for (int i = 0; i < item_count; i++) {
    assert_true(t->items[i] <= 1);
    sum += t->items[i];
  }
  return sum;
}

// Somebody who is told, and cancels when that many bytes are done.
typedef struct listener {
  tally *t;
  uint64_t cancel_at;
  uint64_t last;
  int calls;
} listener;

static bool listen(void *self, uint64_t done, uint64_t total) {
  listener *l = self;
  assert_true(done >= l->last && done <= total);
  assert_int_equal(l->t->active, 0);  // nothing is written meanwhile
  assert_int_equal(items_done(l->t) * 4, done);
  l->last = done;
  l->calls++;
  return done < l->cancel_at;
}

static ist__watch watch_of(listener *l) {
  ist_options options = {.progress = listen, .progress_self = l};
  ist__watch watch;
  assert_int_equal(ist__watch_begin(&watch, &options, item_count * 4, 1, NULL),
                   IST_OK);
  return watch;
}

// ---- pools that do not do what they should

typedef void (*task_fn)(void *work, size_t index);

static void run_in_order(void *self, size_t count, task_fn task, void *work) {
  (void)self;
  for (size_t i = 0; i < count; i++) task(work, i);
}

static void run_twice(void *self, size_t count, task_fn task, void *work) {
  run_in_order(self, count, task, work);
  run_in_order(self, count, task, work);
}

static void run_every_third(void *self, size_t count, task_fn task,
                            void *work) {
  (void)self;
  for (size_t i = 0; i < count; i += 3) task(work, i);
}

static void run_none(void *self, size_t count, task_fn task, void *work) {
  (void)self;
  (void)count;
  (void)task;
  (void)work;
}

static void run_wrong_numbers(void *self, size_t count, task_fn task,
                              void *work) {
  (void)self;
  for (size_t i = 0; i < count; i++) task(work, SIZE_MAX - i);
}

// Keeps the call for later.
typedef struct late_call {
  task_fn task;
  void *work;
} late_call;

static void run_later(void *self, size_t count, task_fn task, void *work) {
  (void)count;
  *(late_call *)self = (late_call){task, work};
}

static ist__copy_engine engine_of(const ist__env *env,
                                  const ist_context_options *options) {
  ist__copy_engine engine;
  ist_error error = {0};
  assert_ok(ist__copy_engine_open(&engine, env, options, &error), error);
  return engine;
}

static void ranges__do_each_item_once_whatever_the_pool_does(void **state) {
  (void)state;
  static void (*const runs[])(void *, size_t, task_fn, void *) = {
      run_in_order, run_twice, run_every_third, run_none, run_wrong_numbers};
  ist__env env;
  ist__env_init(&env, NULL);
  for (size_t i = 0; i < COUNT_OF(runs); i++) {
    ist_pool pool = {NULL, 3, runs[i]};
    ist_context_options options = {.pool = &pool};
    ist__copy_engine engine = engine_of(&env, &options);
    static tally t;
    memset(&t, 0, sizeof t);
    listener l = {&t, UINT64_MAX, 0, 0};
    ist__watch watch = watch_of(&l);
    ist__ranges ranges = ranges_of(&t);
    assert_true(ist__ranges_run(&engine, &watch, &ranges));
    assert_int_equal(items_done(&t), item_count);
    assert_int_equal(l.last, item_count * 4);
    ist__copy_engine_close(&engine, &env);
  }
}

static void ranges__ignore_a_call_that_comes_too_late(void **state) {
  (void)state;
  ist__env env;
  ist__env_init(&env, NULL);
  late_call late = {0};
  ist_pool pool = {&late, 2, run_later};
  ist_context_options options = {.pool = &pool};
  ist__copy_engine engine = engine_of(&env, &options);
  {
    tally t;
    memset(&t, 0, sizeof t);
    ist__ranges ranges = ranges_of(&t);
    assert_true(ist__ranges_run(&engine, NULL, &ranges));
    assert_int_equal(items_done(&t), item_count);
  }
  late.task(late.work, 0);
  ist__copy_engine_close(&engine, &env);
}

// A pool that returns while a call that it made on another thread still runs.
typedef struct early {
  task_fn task;
  void *work;
  pthread_t thread;
  bool started;
} early;

static void *call_task(void *self) {
  early *e = self;
  e->task(e->work, 0);
  return NULL;
}

static void run_early(void *self, size_t count, task_fn task, void *work) {
  early *e = self;
  (void)count;
  if (e->started) return;
  e->started = true;
  e->task = task;
  e->work = work;
  assert_int_equal(pthread_create(&e->thread, NULL, call_task, e), 0);
}

static void ranges__wait_for_calls_that_the_pool_left_behind(void **state) {
  (void)state;
  ist__env env;
  ist__env_init(&env, NULL);
  early e = {0};
  ist_pool pool = {&e, 2, run_early};
  ist_context_options options = {.pool = &pool};
  ist__copy_engine engine = engine_of(&env, &options);
  static tally t;
  memset(&t, 0, sizeof t);
  ist__ranges ranges = ranges_of(&t);
  assert_true(ist__ranges_run(&engine, NULL, &ranges));
  assert_int_equal(t.active, 0);
  assert_int_equal(items_done(&t), item_count);
  assert_int_equal(pthread_join(e.thread, NULL), 0);
  ist__copy_engine_close(&engine, &env);
}

static void check_cancel(const ist__copy_engine *engine, uint64_t round_items) {
  for (uint64_t at = 1; at < item_count * 4; at += 4001) {
    static tally t;
    memset(&t, 0, sizeof t);
    listener l = {&t, at, 0, 0};
    ist__watch watch = watch_of(&l);
    ist__ranges ranges = ranges_of(&t);
    assert_false(ist__ranges_run(engine, &watch, &ranges));
    assert_int_equal(items_done(&t) * 4, l.last);  // nothing after it
    assert_true(l.last < at + round_items * 4);
    ist_error error = {0};
    assert_int_equal(ist__watch_error(&watch, &error), IST_ERR_CANCELLED);
    assert_false(ist__watch_step(&watch, 1, 1));  // asked no more
  }
}

static void ranges__write_nothing_after_a_cancel(void **state) {
  (void)state;
  ist__env env;
  ist__env_init(&env, NULL);
  check_cancel(NULL, range_items);
  ist_context_options options = {.threads = 4};
  ist__copy_engine engine = engine_of(&env, &options);
  check_cancel(&engine, range_items * 4);
  ist__copy_engine_close(&engine, &env);
}

typedef struct user {
  const ist__copy_engine *engine;
  tally t;
  bool done;
} user;

static void *use(void *self) {
  user *u = self;
  ist__ranges ranges = ranges_of(&u->t);
  listener l = {&u->t, UINT64_MAX, 0, 0};
  ist_options options = {.progress = listen, .progress_self = &l};
  ist__watch watch;
  ist__watch_begin(&watch, &options, item_count * 4, 1, NULL);
  u->done =
      ist__ranges_run(u->engine, &watch, &ranges) && l.last == item_count * 4;
  return NULL;
}

static void ranges__of_many_threads_share_one_engine(void **state) {
  (void)state;
  enum {
    user_count = 20  // more than there are desks
  };
  static user users[user_count];
  pthread_t threads[user_count];
  ist__env env;
  ist__env_init(&env, NULL);
  ist_context_options options = {.threads = 3};
  ist__copy_engine engine = engine_of(&env, &options);
  for (int i = 0; i < user_count; i++) {
    memset(&users[i], 0, sizeof users[i]);
    users[i].engine = &engine;
    assert_int_equal(pthread_create(&threads[i], NULL, use, &users[i]), 0);
  }
  for (int i = 0; i < user_count; i++) {
    assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(users[i].done);
    assert_int_equal(items_done(&users[i].t), item_count);
  }
  ist__copy_engine_close(&engine, &env);
}

static void ranges__together_write_a_round_at_once(void **state) {
  (void)state;
  ist__env env;
  ist__env_init(&env, NULL);
  for (int32_t threads = 2; threads <= 256; threads *= 2) {
    ist_context_options options = {.threads = threads};
    ist__copy_engine engine = engine_of(&env, &options);
    uint64_t bytes = ist__range_bytes(&engine, UINT64_C(1) << 40);
    assert_true(bytes * (uint64_t)threads <= IST__ROUND_BYTES);
    assert_int_equal(ist__range_step(&engine, UINT64_C(1) << 40, 4) % 8, 0);
    ist__copy_engine_close(&engine, &env);
  }
}

static void engine__refuses_options_that_cannot_be(void **state) {
  (void)state;
  ist__env env;
  ist__env_init(&env, NULL);
  ist_pool good = {NULL, 2, run_in_order};
  ist_pool no_run = {NULL, 2, NULL};
  ist_pool no_threads = {NULL, 0, run_in_order};
  const ist_context_options wrong[] = {{.threads = -1},
                                       {.threads = 100000},
                                       {.pool = &no_run},
                                       {.pool = &no_threads},
                                       {.pool = &good, .threads = 2}};
  for (size_t i = 0; i < COUNT_OF(wrong); i++) {
    ist__copy_engine engine;
    assert_int_equal(ist__copy_engine_open(&engine, &env, &wrong[i], NULL),
                     IST_ERR_ARGUMENT);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranges__do_each_item_once_whatever_the_pool_does),
      cmocka_unit_test(ranges__ignore_a_call_that_comes_too_late),
      cmocka_unit_test(ranges__wait_for_calls_that_the_pool_left_behind),
      cmocka_unit_test(ranges__write_nothing_after_a_cancel),
      cmocka_unit_test(ranges__of_many_threads_share_one_engine),
      cmocka_unit_test(ranges__together_write_a_round_at_once),
      cmocka_unit_test(engine__refuses_options_that_cannot_be),
  };
  return cmocka_run_group_tests_name("ranges", tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// copy_ranges_test.c: a long copy in ranges, by one thread or several, writes
// each byte once and what a copy at once writes, and is told in small steps.

// fork is of POSIX.
#define _POSIX_C_SOURCE 200809L

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/testing.h"
#include "tensor/ranges.h"
#include "tensor/strided_copy.h"

enum {
  most_dims = 5
};

// A copy of more than a round. Strides in elements, of the first element's
// address; 0 everywhere: dense row-major.
typedef struct layout {
  const char *name;
  DLDataType dtype;
  int32_t ndim;
  int64_t shape[most_dims];
  int64_t from[most_dims];
  int64_t to[most_dims];
  bool from_padded, to_padded;
} layout;

#define F32 {kDLFloat, 32, 1}
#define U8 {kDLUInt, 8, 1}
#define C128 {kDLComplex, 128, 1}
#define INT4 {kDLInt, 4, 1}
#define FP6 {kDLFloat6_e2m3fn, 6, 1}

static const layout layouts[] = {
    {"a line", U8, 1, {5000011}, {0}, {0}, 0, 0},
    {"a transpose", F32, 2, {1030, 1301}, {1, 1030}, {0}, 0, 0},
    {"a wide transpose", F32, 2, {3, 500009}, {1, 3}, {0}, 0, 0},
    {"a high transpose", F32, 2, {500009, 3}, {1, 500009}, {0}, 0, 0},
    {"small transposes", U8, 3, {9001, 13, 17}, {221, 1, 13}, {0}, 0, 0},
    {"another order",
     F32,
     5,
     {11, 9, 17, 13, 19},
     {1, 11, 99, 1683, 21879},
     {0},
     0,
     0},
    {"every second item", F32, 1, {700001}, {2}, {0}, 0, 0},
    {"reversed rows", F32, 2, {900, 1001}, {1001, -1}, {0}, 0, 0},
    {"a reversed target", F32, 2, {900, 1001}, {1, 900}, {-1001, 1}, 0, 0},
    {"a transpose with gaps", F32, 2, {600, 700}, {2, 1300}, {0}, 0, 0},
    {"a broadcast", F32, 2, {999, 1001}, {0, 1}, {0}, 0, 0},
    {"a broadcast of columns", F32, 2, {999, 1001}, {1, 0}, {0}, 0, 0},
    {"a target with gaps", F32, 2, {999, 1001}, {0}, {1111, 1}, 0, 0},
    {"short lines", F32, 2, {300001, 3}, {4, 1}, {0}, 0, 0},
    {"swapped lines", U8, 3, {1001, 500, 5}, {5, 5005, 1}, {0}, 0, 0},
    {"long lines", F32, 3, {90, 70, 80}, {80, 7200, 1}, {0}, 0, 0},
    {"few lines of each", U8, 3, {99001, 2, 7}, {14, -7, 1}, {0}, 0, 0},
    {"a broadcast to three", F32, 2, {200001, 3}, {1, 0}, {0}, 0, 0},
    {"tiny transposes", F32, 3, {50001, 3, 3}, {9, 1, 3}, {0}, 0, 0},
    {"tiny planes in an order",
     U8,
     4,
     {31, 9001, 2, 3},
     {6, 186, 1, -2},
     {0},
     0,
     0},
    {"tiny planes with gaps",
     U8,
     4,
     {3, 2, 100003, 2},
     {1, 3, 13, 6},
     {0},
     0,
     0},
    {"tiny planes of wide items",
     C128,
     3,
     {2003, 2, 23},
     {46, 1, 2},
     {0},
     0,
     0},
    {"pairs", F32, 3, {700, 600, 2}, {2, 1400, 1}, {0}, 0, 0},
    {"unpacking", INT4, 1, {1300001}, {0}, {0}, 0, 1},
    {"packing", INT4, 1, {2200001}, {0}, {0}, 1, 0},
    {"a packed line", INT4, 1, {2500001}, {0}, {0}, 0, 0},
    {"a packed transpose", INT4, 2, {1401, 1603}, {1, 1401}, {0}, 0, 0},
    {"packing into an order", FP6, 2, {1501, 1203}, {0}, {1, 1501}, 1, 0},
    {"packing with gaps", INT4, 1, {1500001}, {0}, {2}, 1, 0},
};

static void make_view(const layout *l, bool target, ist__view *out) {
  bool padded = target ? l->to_padded : l->from_padded;
  const int64_t *strides = target ? l->to : l->from;
  bool dense = true;
  for (int32_t i = 0; i < l->ndim; i++) dense = dense && strides[i] == 0;
  DLTensor tensor = {(void *)(uintptr_t)(1 << 30),
                     {kDLCPU, 0},
                     l->ndim,
                     l->dtype,
                     (int64_t *)l->shape,
                     dense ? NULL : (int64_t *)strides,
                     0};
  ist_error error = {0};
  assert_ok(ist__view_check(&tensor, padded, true, out, &error), error);
}

static void place(ist__view *view, unsigned char *memory) {
  view->data = memory + view->lowest;
}

static size_t extent_of(const ist__view *view) {
  return (size_t)(view->lowest + view->highest);
}

// ---- inner loops that count: each byte of the target goes up by one, and the
// bytes written in all are counted

static atomic_ulong written;

static void count_item(char *to, int64_t item) {
  for (int64_t i = 0; i < item; i++) to[i]++;
}

static void count_bytes(int64_t bytes) {
  atomic_fetch_add(&written, (unsigned long)bytes);
}

#define COUNTING(item)                                       \
  static void count_run_##item(const ist__run *run) {        \
    for (int64_t i = 0; i < run->count; i++) {               \
      count_item(run->to + i * run->to_step, item);          \
    }                                                        \
    count_bytes(run->count *item);                           \
  }                                                          \
  static void count_plane_##item(const ist__transpose *t) {  \
    for (int64_t r = 0; r < t->rows; r++) {                  \
      for (int64_t c = 0; c < t->columns; c++) {             \
        count_item(t->to + r * t->to_step + c * item, item); \
      }                                                      \
    }                                                        \
    count_bytes(t->rows * t->columns * item);                \
  }
COUNTING(1)
COUNTING(2)
COUNTING(4)
COUNTING(8)
COUNTING(16)

static void count_lines(const ist__lines *l) {
  for (int64_t n = 0; n < l->count; n++) {
    count_item(l->to + n * l->to_step, l->bytes);
  }
  count_bytes(l->count * l->bytes);
}

static const ist__copy_kernels counting = {
    .name = "counting",
    .lines = count_lines,
    .run = {count_run_1, count_run_2, count_run_4, count_run_8, count_run_16},
    .transpose = {count_plane_1, count_plane_2, count_plane_4, count_plane_8,
                  count_plane_16}};

// Told in steps of at most a round, each when just that much is written.
typedef struct listener {
  uint64_t last;
  uint64_t cancel_at;
  bool counted;  // the inner loops count
} listener;

static bool listen(void *self, uint64_t done, uint64_t total) {
  listener *l = self;
  assert_true(done >= l->last && done <= total);
  assert_true(done - l->last <= IST__ROUND_BYTES);
  if (l->counted) assert_int_equal(written, done);
  l->last = done;
  return done < l->cancel_at;
}

// A pool of many threads in name: the calls come one after the other.
static void call_each(void *self, size_t count,
                      void (*task)(void *work, size_t index), void *work) {
  (void)self;
  for (size_t i = 0; i < count; i++) task(work, i);
}

static ist__copy_engine engine_make(const ist__env *env, int32_t threads) {
  const ist_pool many = {NULL, threads, call_each};
  ist_context_options options = {0};
  if (threads > 4) {
    options.pool = &many;
  } else {
    options.threads = threads;
  }
  ist__copy_engine engine;
  ist_error error = {0};
  assert_ok(ist__copy_engine_open(&engine, env, &options, &error), error);
  return engine;
}

static bool whole_bytes(const layout *l) {
  return l->dtype.bits >= 8;
}

// A copy with the loops that count, from and to zeros.
typedef struct counted {
  ist__env env;
  ist__copy_engine engine;
  ist__view from, to;
  unsigned char *source, *target;
  listener listener;
  ist_code code;
  ist_error error;
} counted;

static void copy_counted(const layout *l, int32_t threads, uint64_t cancel_at,
                         counted *c) {
  *c = (counted){.listener = {0, cancel_at, true}};
  ist__env_init(&c->env, NULL);
  make_view(l, false, &c->from);
  make_view(l, true, &c->to);
  c->source = calloc(extent_of(&c->from), 1);
  c->target = calloc(extent_of(&c->to), 1);
  place(&c->from, c->source);
  place(&c->to, c->target);
  c->engine = engine_make(&c->env, threads);
  c->engine.kernels = &counting;
  ist_options options = {.progress = listen, .progress_self = &c->listener};
  ist__watch watch;
  atomic_store(&written, 0);
  assert_ok(ist__watch_begin(&watch, &options, c->to.nbytes, 1, &c->error),
            c->error);
  c->code = ist__strided_copy_watched(&c->engine, &watch, &c->from, &c->to,
                                      &c->error);
}

static void end_counted(counted *c) {
  free(c->source);
  free(c->target);
  ist__copy_engine_close(&c->engine, &c->env);
}

static void check_counts(const layout *l, int32_t threads) {
  counted c;
  copy_counted(l, threads, UINT64_MAX, &c);
  assert_ok(c.code, c.error);
  assert_int_equal(c.listener.last, c.to.nbytes);
  size_t once = 0;
  for (size_t i = 0; i < extent_of(&c.to); i++) {
    if (c.target[i] > 1) fail_msg("%s: byte %zu is written twice", l->name, i);
    once += c.target[i];
  }
  if (once != c.to.nbytes) {
    fail_msg("%s: %zu bytes are written, not %llu", l->name, once,
             (unsigned long long)c.to.nbytes);
  }
  end_counted(&c);
}

static void ranges__write_each_byte_once(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(layouts); i++) {
    if (!whole_bytes(&layouts[i])) continue;
    check_counts(&layouts[i], 1);
    check_counts(&layouts[i], 3);
    check_counts(&layouts[i], 64);
    check_counts(&layouts[i], 256);
  }
}

// A copy by so many threads into a target full of other bytes.
static void copy_watched(const layout *l, int32_t threads,
                         const ist__view *from, const ist__view *to) {
  ist__env env;
  ist__env_init(&env, NULL);
  ist__copy_engine engine = engine_make(&env, threads);
  listener listen_to = {0, UINT64_MAX, false};
  ist_options options = {.progress = listen, .progress_self = &listen_to};
  ist__watch watch;
  ist_error error = {0};
  assert_ok(ist__watch_begin(&watch, &options, to->nbytes, 1, &error), error);
  assert_ok(ist__strided_copy_watched(&engine, &watch, from, to, &error),
            error);
  if (listen_to.last != to->nbytes) fail_msg("%s: not all was told", l->name);
  ist__copy_engine_close(&engine, &env);
}

static void copy_unwatched(int32_t threads, const ist__view *from,
                           const ist__view *to) {
  ist__env env;
  ist__env_init(&env, NULL);
  ist__copy_engine engine = engine_make(&env, threads);
  ist__strided_copy(&engine, from, to);
  ist__copy_engine_close(&engine, &env);
}

static void check_equal(const layout *l) {
  ist__view from, to;
  make_view(l, false, &from);
  make_view(l, true, &to);
  size_t size = extent_of(&to);
  unsigned char *source = malloc(extent_of(&from));
  unsigned char *target = malloc(size);
  unsigned char *expected = malloc(size);
  uint64_t seed = 11;
  for (size_t i = 0; i < extent_of(&from); i++) {
    source[i] = (unsigned char)next_random(&seed);
  }
  place(&from, source);
  place(&to, expected);
  memset(expected, 0x5A, size);
  ist__strided_copy(NULL, &from, &to);
  place(&to, target);
  // By one thread and many, watched, and by four and many unwatched.
  for (int way = 0; way < 4; way++) {
    memset(target, 0x5A, size);
    if (way < 2) {
      copy_watched(l, way == 0 ? 1 : 64, &from, &to);
    } else {
      copy_unwatched(way == 2 ? 4 : 256, &from, &to);
    }
    if (memcmp(target, expected, size) != 0) {
      fail_msg("%s differs, way %d", l->name, way);
    }
  }
  free(source);
  free(target);
  free(expected);
}

static void ranges__copy_what_a_copy_at_once_does(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(layouts); i++) {
    check_equal(&layouts[i]);
  }
}

static void check_cancel(const layout *l, int32_t threads, uint64_t at) {
  counted c;
  copy_counted(l, threads, at, &c);
  assert_refused(c.code, IST_ERR_CANCELLED, c.error, "cancelled it after");
  // Not a byte after it said no, and no more than a round before it could.
  assert_int_equal(written, c.listener.last);
  assert_true(written < at + IST__ROUND_BYTES);
  end_counted(&c);
}

static void ranges__write_no_more_after_a_cancel(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(layouts); i++) {
    if (!whole_bytes(&layouts[i])) continue;
    check_cancel(&layouts[i], 1, 1);
    check_cancel(&layouts[i], 3, IST__ROUND_BYTES + 1);
  }
}

typedef struct forking {
  ist__env env;
  ist__copy_engine engine;
  int calls;
  int status;  // of the child
} forking;

// In the child of a fork amid a round: another copy, without the pool, and the
// end.
static int end_child(forking *f) {
  unsigned char *bytes = calloc(2, 5000011);
  memset(bytes, 7, 5000011);
  ist__view from, to;
  make_view(&layouts[0], false, &from);
  make_view(&layouts[0], true, &to);
  place(&from, bytes);
  place(&to, bytes + 5000011);
  ist__strided_copy(&f->engine, &from, &to);
  bool same = memcmp(bytes, bytes + 5000011, 5000011) == 0;
  ist__copy_engine_close(&f->engine, &f->env);
  free(bytes);
  return same && f->calls == 1 ? 0 : 1;
}

// The run of a pool: forks while its caller's round lies on a desk.
static void fork_amid(void *self, size_t count,
                      void (*task)(void *work, size_t index), void *work) {
  (void)count, (void)task, (void)work;
  forking *f = self;
  if (f->calls++ > 0) return;
  pid_t child = fork();
  if (child == 0) _exit(end_child(f));
  assert_int_equal(waitpid(child, &f->status, 0), child);
}

static void ranges__are_safe_in_a_child_forked_amid_a_copy(void **state) {
  (void)state;
  forking f = {.status = -1};
  ist__env_init(&f.env, NULL);
  const ist_pool pool = {&f, 4, fork_amid};
  const ist_context_options options = {.pool = &pool};
  ist_error error = {0};
  assert_ok(ist__copy_engine_open(&f.engine, &f.env, &options, &error), error);
  unsigned char *bytes = calloc(2, 5000011);
  ist__view from, to;
  make_view(&layouts[0], false, &from);
  make_view(&layouts[0], true, &to);
  place(&from, bytes);
  place(&to, bytes + 5000011);
  ist__strided_copy(&f.engine, &from, &to);
  assert_int_equal(f.calls, 1);
  assert_int_equal(f.status, 0);
  free(bytes);
  ist__copy_engine_close(&f.engine, &f.env);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranges__write_each_byte_once),
      cmocka_unit_test(ranges__copy_what_a_copy_at_once_does),
      cmocka_unit_test(ranges__write_no_more_after_a_cancel),
      cmocka_unit_test(ranges__are_safe_in_a_child_forked_amid_a_copy),
  };
  return cmocka_run_group_tests_name("copy_ranges", tests, NULL, NULL);
}

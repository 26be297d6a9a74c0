// SPDX-License-Identifier: Apache-2.0
// thread_suite.c: what eight threads do at once. Threads count what is wrong;
// the test's own thread asserts, since a failure jumps out of a test.

#define _POSIX_C_SOURCE 200809L  // pthread_barrier_t under -std=c11

#include "support/thread_suite.h"

#include <pthread.h>

#include "support/conformance_world.h"

enum {
  thread_count = 8,
  rounds = 100
};

// What the threads share.
typedef struct crowd {
  world w;
  crossing c;
  ist_tensor *tensor;
  pthread_barrier_t start;
  atomic_int wrong;
  // A slot for a hand-over to the next thread.
  _Atomic(DLManagedTensorVersioned *) handed[thread_count];
} crowd;

typedef struct member {
  crowd *crowd;
  int number;
} member;

static void note(crowd *all, bool right) {
  if (!right) atomic_fetch_add(&all->wrong, 1);
}

static void crowd_open(crowd *all, const subject *under_test) {
  memset(all, 0, sizeof *all);
  open_world(&all->w, under_test);
  all->c.layout = SAMPLE_ROW_MAJOR;
  crossing_begin(&all->c, &all->w, 10, 0);  // float32, copy=auto
  pthread_barrier_init(&all->start, NULL, thread_count);
}

static void crowd_import(crowd *all) {
  ist_error error = {0};
  assert_ok(import_source(&all->c, &all->tensor, NULL, &error), error);
}

// Runs the threads to their end, and asserts that all was right.
static void crowd_run(crowd *all, void *(*work)(void *)) {
  pthread_t threads[thread_count];
  member members[thread_count];
  for (int i = 0; i < thread_count; i++) {
    members[i] = (member){all, i};
    assert_int_equal(pthread_create(&threads[i], NULL, work, &members[i]), 0);
  }
  for (int i = 0; i < thread_count; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&all->start);
  assert_int_equal(all->wrong, 0);
}

static void crowd_close(crowd *all) {
  ist_backend_release(all->w.backend);
  ist_context_release(all->w.context);
  await_live(&all->w, 0);
}

// A tensor's elements into memory of this thread's own, against the source.
static bool reads_right(crowd *all, ist_tensor *tensor) {
  unsigned char got[sample_room] = {0}, wanted[sample_room];
  DLTensor target = all->c.from.versioned.dl_tensor;
  target.data = got;
  target.byte_offset = 0;
  target.strides = NULL;
  if (ist_tensor_copy_into(tensor, &target, NULL, NULL, NULL) != IST_OK) {
    return false;
  }
  gather_bits(&all->c.from.versioned.dl_tensor, false, false, wanted);
  return memcmp(got, wanted, sample_room) == 0;
}

static bool export_reads_right(crowd *all,
                               const DLManagedTensorVersioned *made) {
  const DLTensor *t = &made->dl_tensor;
  if (t->device.device_type != kDLCPU) return true;  // not for this process
  unsigned char got[sample_room], wanted[sample_room];
  gather_bits(t, false, false, got);
  gather_bits(&all->c.from.versioned.dl_tensor, false, false, wanted);
  return memcmp(got, wanted, sample_room) == 0;
}

// --- one tensor ---

static void *use_one_tensor(void *self) {
  member *m = self;
  crowd *all = m->crowd;
  pthread_barrier_wait(&all->start);
  for (int i = 0; i < rounds; i++) {
    ist_tensor_retain(all->tensor);
    DLManagedTensorVersioned *made = NULL;
    note(all,
         ist_tensor_export(all->tensor, NULL, &made, NULL, NULL) == IST_OK);
    if (made != NULL) {
      note(all, export_reads_right(all, made));
      made->deleter(made);
    }
    note(all, ist_tensor_wait(all->tensor, NULL) == IST_OK);
    note(all, ist_tensor_view(all->tensor)->ndim == 3);
    if (i % 8 == m->number) note(all, reads_right(all, all->tensor));
    ist_tensor_release(all->tensor);
  }
  return NULL;
}

static void threads__share_one_tensor(void **state) {
  static crowd all;
  crowd_open(&all, *state);
  crowd_import(&all);
  crowd_run(&all, use_one_tensor);
  ist_tensor_release(all.tensor);
  assert_deleted(&all.c);
  crowd_close(&all);
}

// Nobody has asked for the address before: all threads ask at once.
static void *ask_first(void *self) {
  member *m = self;
  crowd *all = m->crowd;
  pthread_barrier_wait(&all->start);
  DLManagedTensorVersioned *made = NULL;
  note(all, ist_tensor_export(all->tensor, NULL, &made, NULL, NULL) == IST_OK);
  if (made == NULL) return NULL;
  note(all, export_reads_right(all, made));
  made->deleter(made);
  return NULL;
}

static void threads__ask_for_the_address_at_once(void **state) {
  static crowd all;
  crowd_open(&all, *state);
  all.c.copy = IST_COPY_ALWAYS;
  for (int i = 0; i < 20; i++) {
    crowd_import(&all);
    assert_deleted(&all.c);
    atomic_store(&all.c.from.deleted, 0);
    crowd_run(&all, ask_first);
    ist_tensor_release(all.tensor);
    pthread_barrier_init(&all.start, NULL, thread_count);
  }
  pthread_barrier_destroy(&all.start);
  crowd_close(&all);
}

// --- one device ---

static void *use_one_device(void *self) {
  member *m = self;
  crowd *all = m->crowd;
  crossing own = {.layout = SAMPLE_ROW_MAJOR};
  const ist_device *host = ist_context_host(all->w.context);
  pthread_barrier_wait(&all->start);
  for (int i = 0; i < rounds; i++) {
    crossing_begin(&own, &all->w, 10, i % 2 == 0 ? 0 : 2);
    memcpy(own.from.bytes, all->c.from.bytes, sample_room);
    ist_tensor *tensor = NULL, *moved = NULL;
    note(all, import_source(&own, &tensor, NULL, NULL) == IST_OK);
    note(all,
         ist_tensor_move(tensor, host, NULL, &moved, NULL, NULL) == IST_OK);
    if (i % 2 == 0) ist_tensor_release(tensor);
    note(all, reads_right(all, moved));
    ist_tensor_release(moved);
    if (i % 2 != 0) ist_tensor_release(tensor);
    while (all->w.subject->late_release && own.from.deleted == 0) continue;
    note(all, own.from.deleted == 1);
  }
  return NULL;
}

static void threads__share_one_device(void **state) {
  static crowd all;
  crowd_open(&all, *state);
  crowd_run(&all, use_one_device);
  crowd_close(&all);
}

// --- hand-over ---

// Each thread exports, and deletes what its neighbour exported.
static void *hand_over(void *self) {
  member *m = self;
  crowd *all = m->crowd;
  int next = (m->number + 1) % thread_count;
  pthread_barrier_wait(&all->start);
  for (int i = 0; i < rounds; i++) {
    DLManagedTensorVersioned *made = NULL;
    note(all,
         ist_tensor_export(all->tensor, NULL, &made, NULL, NULL) == IST_OK);
    made = atomic_exchange(&all->handed[next], made);
    if (made != NULL) made->deleter(made);
    made = atomic_exchange(&all->handed[m->number], NULL);
    if (made == NULL) continue;
    note(all, export_reads_right(all, made));
    made->deleter(made);
  }
  return NULL;
}

static void threads__delete_what_others_exported(void **state) {
  static crowd all;
  crowd_open(&all, *state);
  crowd_import(&all);
  crowd_run(&all, hand_over);
  ist_tensor_release(all.tensor);
  for (int i = 0; i < thread_count; i++) {
    DLManagedTensorVersioned *left = all.handed[i];
    if (left != NULL) left->deleter(left);
  }
  assert_deleted(&all.c);
  crowd_close(&all);
}

// --- the last holder ---

// Each holds an export; context, backend and tensor are gone already, and any
// of the threads may be the last.
static void *let_go(void *self) {
  member *m = self;
  crowd *all = m->crowd;
  pthread_barrier_wait(&all->start);
  note(all, export_reads_right(all, all->handed[m->number]));
  DLManagedTensorVersioned *mine = all->handed[m->number];
  mine->deleter(mine);
  return NULL;
}

static void threads__race_to_be_the_last_holder(void **state) {
  static crowd all;
  const subject *under_test = *state;
  int times = under_test->slow_to_open ? 2 : 20;
  for (int t = 0; t < times; t++) {
    crowd_open(&all, under_test);
    crowd_import(&all);
    for (int i = 0; i < thread_count; i++) {
      DLManagedTensorVersioned *made = NULL;
      ist_error error = {0};
      assert_ok(ist_tensor_export(all.tensor, NULL, &made, NULL, &error),
                error);
      atomic_store(&all.handed[i], made);
    }
    ist_context_release(all.w.context);
    ist_backend_release(all.w.backend);
    ist_tensor_release(all.tensor);
    crowd_run(&all, let_go);
    assert_deleted(&all.c);
    await_live(&all.w, 0);
  }
}

int threads_run(const subject *under_test) {
  void *state = (void *)(uintptr_t)under_test;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(threads__share_one_tensor, state),
      cmocka_unit_test_prestate(threads__ask_for_the_address_at_once, state),
      cmocka_unit_test_prestate(threads__share_one_device, state),
      cmocka_unit_test_prestate(threads__delete_what_others_exported, state),
      cmocka_unit_test_prestate(threads__race_to_be_the_last_holder, state),
  };
  return cmocka_run_group_tests_name(under_test->name, tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// fault_stage.c: the sweep itself; what is done under faults is in
// fault_scenarios.c.

#include "support/fault_stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <threads.h>

#include "backend/context.h"
#include "support/testing.h"

static bool count_call(void *self, const char *slot) {
  stage *s = self;
  long number = atomic_fetch_add(&s->calls, 1) + 1;
  if (number != atomic_load(&s->fail_call)) return false;
  atomic_fetch_add(&s->failed_calls, 1);
  s->failed_slot = slot;
  return true;
}

void stage_open(stage *s) {
  counting_allocator_init(&s->memory);
  ist_allocator allocator = counting_allocator_hook(&s->memory);
  ist_context_options options = {.struct_size = sizeof options,
                                 .allocator = &allocator};
  ist_error error = {0};
  assert_ok(ist_context_create(&options, &s->context, &error), error);
  ist__context_set_call_hook(s->context, count_call, s);
  assert_ok(s->open(s, &s->backend, &error), error);
  s->device = ist_backend_device(s->backend, 0);
}

// Bounded: what never comes is a failure and not a hang.
static void await_live(const stage *s, const char *what, long live) {
  int turns = s->late_release ? 20000000 : 0;
  while (atomic_load(&s->memory.live) > live && turns-- > 0) thrd_yield();
  if (s->memory.live > live) {
    fail_msg("%s: %s: %ld allocations are left over", s->name, what,
             s->memory.live - live);
  }
}

void stage_close(stage *s) {
  ist_backend_release(s->backend);
  ist_context_release(s->context);
  await_live(s, "closing", 0);
}

static void arm(stage *s, fault_kind kind, long number) {
  counting_allocator_arm(&s->memory, kind == FAULT_MEMORY ? number : 0);
  atomic_store(&s->calls, 0);
  atomic_store(&s->failed_calls, 0);
  s->failed_slot = "none";
  atomic_store(&s->fail_call, kind == FAULT_CALL ? number : 0);
}

// One turn's account.
typedef struct turn {
  long number;
  long used;   // allocations or calls that the act made
  long fired;  // of them, those that failed
  ist_code code;
  ist_error error;
} turn;

static void account(stage *s, fault_kind kind, turn *t) {
  bool memory = kind == FAULT_MEMORY;
  t->used = memory ? s->memory.requests : s->calls;
  t->fired = memory ? s->memory.failed : s->failed_calls;
  counting_allocator_arm(&s->memory, 0);
  atomic_store(&s->fail_call, 0);
}

#define assert_turn(s, what, t, claim)                                  \
  do {                                                                  \
    if (!(claim)) {                                                     \
      fail_msg("%s: %s, fault %ld (%s): not " #claim ": %s", (s)->name, \
               (what)->name, (t)->number, (s)->failed_slot,             \
               (t)->error.message);                                     \
    }                                                                   \
  } while (0)

// The producer's struct and memory are as they were, and still the caller's.
static void assert_inputs_untouched(const stage *s, const scenario *what,
                                    const turn *t) {
  assert_turn(s, what, t, s->from.deleted == 0);
  assert_turn(s, what, t,
              memcmp(&s->from.versioned, &s->before.versioned,
                     sizeof s->from.versioned) == 0);
  assert_turn(
      s, what, t,
      memcmp(&s->from.legacy, &s->before.legacy, sizeof s->from.legacy) == 0);
  assert_turn(s, what, t,
              memcmp(s->from.bytes, s->before.bytes, sample_room) == 0);
  assert_turn(
      s, what, t,
      memcmp(s->from.shape, s->before.shape, sizeof s->from.shape) == 0);
}

static void assert_outputs_null(const stage *s, const scenario *what,
                                const turn *t) {
  assert_turn(s, what, t, s->out_context == NULL && s->out_backend == NULL);
  assert_turn(s, what, t, s->out == NULL && s->exported == NULL);
  assert_turn(s, what, t, s->legacy == NULL && s->compiled == NULL);
  assert_turn(s, what, t, s->out_file == NULL && s->out_buffer == NULL);
  assert_turn(s, what, t, s->receipt.route == IST_ROUTE_REFUSE);
  assert_turn(s, what, t, s->receipt.bytes_moved == 0);
}

// Anything but NULL, so that a forgotten output shows.
static void soil_outputs(stage *s) {
  void *dirt = s;
  s->out_context = dirt;
  s->out_backend = dirt;
  s->out = dirt;
  s->exported = dirt;
  s->legacy = dirt;
  s->compiled = dirt;
  s->out_file = dirt;
  s->out_buffer = dirt;
  s->receipt = (ist_receipt){.struct_size = sizeof s->receipt,
                             .route = IST_ROUTE_COPY,
                             .bytes_moved = 99};
}

static void assert_failed(const stage *s, const scenario *what, fault_kind kind,
                          const turn *t) {
  bool memory = kind == FAULT_MEMORY;
  assert_turn(s, what, t, t->fired == 1);
  assert_turn(s, what, t, t->code != IST_OK);
  assert_turn(s, what, t, t->error.code == t->code);
  assert_turn(s, what, t,
              t->code == (memory ? IST_ERR_NO_ALLOCATION : IST_ERR_INTERNAL));
  assert_turn(s, what, t, strchr(t->error.message, '\n') == NULL);
  assert_outputs_null(s, what, t);
}

static void play(stage *s, const scenario *what, fault_kind kind, turn *t) {
  if (what->prepare != NULL) what->prepare(s);
  memcpy(&s->before, &s->from, sizeof s->from);
  long live = s->memory.live;
  soil_outputs(s);
  arm(s, kind, t->number);
  t->code = what->act(s, &t->error);
  account(s, kind, t);
  bool advisory =
      s->advisory != NULL && strcmp(s->failed_slot, s->advisory) == 0;
  bool survives = (what->probes && kind == FAULT_CALL) || advisory;
  if (t->fired != 0 && !(t->code == IST_OK && survives)) {
    assert_failed(s, what, kind, t);
    await_live(s, what->name, live);
    assert_inputs_untouched(s, what, t);
  } else {
    assert_turn(s, what, t, t->code == IST_OK);
    s->survived += t->fired;
    what->undo(s);
    await_live(s, what->name, live);
  }
  if (what->finish != NULL) what->finish(s);
}

// Every how many faults one is tried: a real plugin's client takes a while.
static long step_of(const stage *s, const scenario *what, fault_kind kind) {
  return what->probes && s->slow_to_open && kind == FAULT_CALL ? 23 : 1;
}

long stage_sweep(stage *s, const scenario *what, fault_kind kind) {
  turn clean = {0};
  play(s, what, kind, &clean);
  assert_int_equal(clean.fired, 0);
  s->survived = 0;
  long tried = 0, step = step_of(s, what, kind);
  for (long number = 1;; number += step) {
    turn t = {.number = number};
    play(s, what, kind, &t);
    if (t.fired == 0) {
      // The end: a run that made no more than the clean one did.
      assert_turn(s, what, &t, t.used == clean.used);
      assert_turn(s, what, &t, number > clean.used);
      break;
    }
    assert_turn(s, what, &t, number <= clean.used);
    tried++;
  }
  print_message("%s: %s: %ld of %ld faults of %s, %ld survived\n", s->name,
                what->name, tried, clean.used,
                kind == FAULT_MEMORY ? "memory" : "calls", s->survived);
  return tried;
}

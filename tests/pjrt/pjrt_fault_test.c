// SPDX-License-Identifier: Apache-2.0
// Everything that can fail on the way through a plugin is made to fail, one
// thing after the other: each allocation, each call of a slot. Afterwards
// nothing is lost, and what succeeded is right.

#include <stdio.h>

#include "backend/backend.h"
#include "support/pjrt_support.h"

// Counts calls of slots and fails one of them.
typedef struct fuse {
  long calls;
  long fail_at;  // 0: none
  bool fired;
} fuse;

static bool blow(void *self, const char *slot) {
  (void)slot;
  fuse *f = self;
  if (++f->calls != f->fail_at) return false;
  f->fired = true;
  return true;
}

typedef struct journey {
  pjrt_bench bench;
  fuse fuse;
  source_tensor source;
  _Alignas(64) float data[16];
  ist_tensor *views, *copies, *moved, *output;
  ist_program *program;
  DLManagedTensorVersioned *view;
} journey;

static const DLDataType f32 = {kDLFloat, 32, 1};

static bool add_one_came_out(journey *j, ist_tensor *tensor) {
  float got[6] = {0};
  DLTensor to = {got, {kDLCPU, 0}, 2, f32, (int64_t[]){2, 3}, NULL, 0};
  if (ist_tensor_copy_into(tensor, &to, NULL, NULL, &j->bench.err) != IST_OK)
    return false;
  for (int i = 0; i < 6; i++)
    if (got[i] != j->data[i] + 1) fail_msg("element %d is wrong", i);
  return true;
}

static ist_code run_program(journey *j) {
  static const char text[] = "lying.add_one_f32 11 2 3";
  ist_code code = ist_program_compile(
      bench_device(&j->bench, 0), text, sizeof text - 1,
      &(ist_program_options){.struct_size = sizeof(ist_program_options),
                             .name = "journey"},
      &j->program, &j->bench.err);
  if (code != IST_OK) return code;
  ist_run how = {.struct_size = sizeof how,
                 .inputs = &j->copies,
                 .input_count = 1,
                 .outputs = &j->output,
                 .output_count = 1};
  code = ist_program_run(j->program, &how, &j->bench.err);
  if (code != IST_OK) {
    assert_null(j->output);
    return code;
  }
  return add_one_came_out(j, j->output) ? IST_OK : j->bench.err.code;
}

// Open, import a view and a copy, move, export, compile, run, copy out.
static ist_code travel(journey *j) {
  ist_error *err = &j->bench.err;
  ist_backend_options how = {.struct_size = sizeof how,
                             .path = plugin_path("lying")};
  ist_options always = {.struct_size = sizeof always, .copy = IST_COPY_ALWAYS};
  ist_code code =
      ist_backend_open(j->bench.context, "pjrt", &how, &j->bench.backend, err);
  if (code != IST_OK) return code;
  const ist_device *device = bench_device(&j->bench, 0);
  source_make(&j->source, j->data, f32, 2, (int64_t[]){2, 3, 3, 1});
  code =
      ist_tensor_import(device, &j->source.managed, NULL, &j->views, NULL, err);
  if (code != IST_OK) {
    assert_null(j->views);
    assert_int_equal(atomic_load(&j->source.deleted), 0);
    return code;
  }
  code = ist_tensor_move(j->views, device, &always, &j->copies, NULL, err);
  if (code == IST_OK)
    code = ist_tensor_move(j->views, bench_device(&j->bench, 1), NULL,
                           &j->moved, NULL, err);
  if (code == IST_OK)
    code = ist_tensor_export(j->copies, NULL, &j->view, NULL, err);
  if (code == IST_OK) code = run_program(j);
  return code;
}

static void arrive(journey *j) {
  bool imported = j->views != NULL;
  ist_tensor_release(j->views);
  ist_tensor_release(j->copies);
  ist_tensor_release(j->moved);
  ist_tensor_release(j->output);
  ist_program_release(j->program);
  if (j->view != NULL) j->view->deleter(j->view);
  if (imported) source_assert_gone(&j->source);
  bench_close(&j->bench);
}

static void depart(journey *j, const char *rules, long fail_call,
                   long fail_allocation) {
  memset(j, 0, sizeof *j);
  for (int i = 0; i < 6; i++) j->data[i] = (float)i * 1.5f;
  bench_context(&j->bench, "lying", rules);
  j->fuse.fail_at = fail_call;
  ist__context_set_call_hook(j->bench.context, blow, &j->fuse);
  counting_allocator_arm(&j->bench.counts, fail_allocation);
}

static const char *const worlds[] = {"addressable=1", ""};

static void every_slot__may_fail(void **state) {
  (void)state;
  for (size_t w = 0; w < COUNT_OF(worlds); w++) {
    _Alignas(64) journey j;
    depart(&j, worlds[w], 0, 0);
    assert_int_equal(travel(&j), IST_OK);
    long calls = j.fuse.calls;
    arrive(&j);
    assert_true(calls > 100);
    for (long n = 1; n <= calls; n++) {
      depart(&j, worlds[w], n, 0);
      ist_code code = travel(&j);
      assert_true(j.fuse.fired);
      // A fault of the probe is a capability less, and no failure.
      if (code != IST_OK) assert_int_equal(j.bench.err.code, code);
      arrive(&j);
    }
  }
}

static void every_allocation__may_fail(void **state) {
  (void)state;
  for (size_t w = 0; w < COUNT_OF(worlds); w++) {
    _Alignas(64) journey j;
    depart(&j, worlds[w], 0, 0);
    assert_int_equal(travel(&j), IST_OK);
    long requests = atomic_load(&j.bench.counts.requests);
    arrive(&j);
    assert_true(requests > 20);
    for (long n = 1; n <= requests; n++) {
      depart(&j, worlds[w], 0, n);
      ist_code code = travel(&j);
      assert_int_equal(atomic_load(&j.bench.counts.failed), 1);
      if (code != IST_ERR_NO_ALLOCATION)
        fail_msg("allocation %ld: code %d, %s", n, code, j.bench.err.message);
      arrive(&j);
    }
  }
}

// The plugin's own failures, of every call that can fail.
static void every_call_of_the_plugin__may_fail(void **state) {
  (void)state;
  for (size_t w = 0; w < COUNT_OF(worlds); w++) {
    _Alignas(64) journey j;
    depart(&j, worlds[w], 0, 0);
    assert_int_equal(travel(&j), IST_OK);
    int calls = j.bench.lying.calls(NULL);
    arrive(&j);
    for (int n = 1; n <= calls; n++) {
      char rules[64];
      snprintf(rules, sizeof rules, "%s fail_any=%d", worlds[w], n);
      depart(&j, rules, 0, 0);
      ist_code code = travel(&j);
      assert_true(j.bench.lying.calls(NULL) >= n);
      if (code != IST_OK) assert_int_equal(j.bench.err.code, code);
      arrive(&j);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_slot__may_fail),
      cmocka_unit_test(every_allocation__may_fail),
      cmocka_unit_test(every_call_of_the_plugin__may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

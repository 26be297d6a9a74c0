// SPDX-License-Identifier: Apache-2.0
// What happens when: deleters that close, import and export, on threads of the
// program's and of the plugin's; buffers deleted under what was exported; what
// an export holds. One test for each row of the table in docs/ownership.md
// that no other file has.

#include <pthread.h>
#include <sched.h>

#include "backend/backend.h"
#include "backend/pjrt/buffer.h"
#include "backend/pjrt/pjrt_tensor.h"
#include "bridge/tensor.h"
#include "support/pjrt_support.h"

static const DLDataType f32 = {kDLFloat, 32, 1};

static const char real_text[] =
    "func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {\n"
    "  %0 = stablehlo.add %x, %x : tensor<6xf32>\n"
    "  return %0 : tensor<6xf32>\n}\n";

// A source whose deleter does what a test wants of it.
typedef struct stage {
  pjrt_bench bench;
  DLManagedTensorVersioned managed;
  int64_t shape[1];
  _Alignas(64) float data[16];
  ist_tensor *tensor;  // a view of data
  ist_program *program;
  void (*then)(struct stage *s);
  atomic_int deleted;
  pthread_t thread;  // on which it was deleted
  ist_code code;     // of what the deleter did
} stage;

static void source_gone(DLManagedTensorVersioned *managed) {
  stage *s = managed->manager_ctx;
  s->thread = pthread_self();
  if (s->then != NULL) s->then(s);
  atomic_fetch_add(&s->deleted, 1);
}

static void stage_open(stage *s, const char *key) {
  memset(s, 0, sizeof *s);
  bench_open(&s->bench, key, NULL);
  s->shape[0] = 6;
  for (int i = 0; i < 6; i++) s->data[i] = (float)i;
  s->managed.version = (DLPackVersion){1, 3};
  s->managed.manager_ctx = s;
  s->managed.deleter = source_gone;
  s->managed.dl_tensor =
      (DLTensor){s->data, {kDLCPU, 0}, 1, f32, s->shape, NULL, 0};
  ist_options never = {.struct_size = sizeof never, .copy = IST_COPY_NEVER};
  const ist_device *device = bench_device(&s->bench, 0);
  bench_ok(&s->bench, ist_tensor_import(device, &s->managed, &never, &s->tensor,
                                        NULL, &s->bench.err));
  const char *text =
      strcmp(key, "lying") == 0 ? "lying.identity 11 6" : real_text;
  bench_ok(&s->bench, ist_program_compile(device, text, strlen(text), NULL,
                                          &s->program, &s->bench.err));
}

static void await_deleter(const stage *s) {
  while (atomic_load(&s->deleted) == 0) sched_yield();
  assert_int_equal(atomic_load(&s->deleted), 1);
}

static void stage_close(stage *s) {
  ist_tensor_release(s->tensor);
  await_deleter(s);
  ist_program_release(s->program);
  bench_close(&s->bench);
}

static ist_tensor *run(stage *s) {
  ist_tensor *out = NULL;
  ist_run how = {.struct_size = sizeof how,
                 .inputs = &s->tensor,
                 .input_count = 1,
                 .outputs = &out,
                 .output_count = 1};
  bench_ok(&s->bench, ist_program_run(s->program, &how, &s->bench.err));
  return out;
}

// ---- deleters

static void close_everything(stage *s) {
  ist_program_release(s->program);
  ist_backend_release(s->bench.backend);
  ist_context_release(s->bench.context);
  s->program = NULL;
  s->bench.backend = NULL;
  s->bench.context = NULL;
}

static void deleter__may_close_the_client(void **state) {
  static stage s;
  stage_open(&s, *state);
  s.then = close_everything;
  stage_close(&s);
}

// A tensor in and out again, from within a deleter.
static void cross(stage *s) {
  const ist_device *device = ist_backend_device(s->bench.backend, 0);
  _Alignas(64) float data[16] = {1, 2, 3, 4, 5, 6};
  int64_t shape[1] = {6};
  DLTensor view = {data, {kDLCPU, 0}, 1, f32, shape, NULL, 0};
  ist_tensor *host = NULL, *there = NULL;
  DLManagedTensorVersioned *out = NULL;
  s->code = ist_tensor_wrap(s->bench.context, &view, NULL, NULL, &host, NULL);
  if (s->code == IST_OK) {
    s->code = ist_tensor_move(host, device, NULL, &there, NULL, NULL);
  }
  if (s->code == IST_OK) {
    s->code = ist_tensor_export(there, NULL, &out, NULL, NULL);
  }
  if (out != NULL) out->deleter(out);
  ist_tensor_release(there);
  ist_tensor_release(host);
}

static void deleter__may_import_and_export(void **state) {
  static stage s;
  stage_open(&s, *state);
  s.then = cross;
  s.code = IST_ERR_INTERNAL;
  stage_close(&s);
  assert_int_equal(s.code, IST_OK);
}

// On the plugin's thread: nothing that is made there is late.
static void cross_at_once(stage *s) {
  s->bench.lying.set_rules("addressable=1");
  cross(s);
}

static void *release_events(void *arg) {
  stage *s = arg;
  s->bench.lying.release_events();
  return NULL;
}

// The plugin still works on the view when its tensor goes: the memory is given
// back on the plugin's thread, where no lock of ours is held.
static void plugins_thread_runs(void (*then)(stage *s)) {
  static stage s;
  stage_open(&s, "lying");
  s.then = then;
  s.bench.lying.set_rules("addressable=1 delay_events=1");
  ist_tensor_release(run(&s));
  ist_tensor_release(s.tensor);
  s.tensor = NULL;
  assert_int_equal(atomic_load(&s.deleted), 0);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, release_events, &s), 0);
  await_deleter(&s);
  assert_true(pthread_equal(s.thread, thread));
  pthread_join(thread, NULL);
  assert_int_equal(s.code, IST_OK);
  stage_close(&s);
}

static void deleter_on_the_plugins_thread__may_import_and_export(void **state) {
  (void)state;
  plugins_thread_runs(cross_at_once);
}

static void deleter_on_the_plugins_thread__may_close_the_client(void **state) {
  (void)state;
  plugins_thread_runs(close_everything);
}

// ---- exports and their buffer

// An output lies in the plugin's memory: its exports share one reference.
static void exports__hold_one_reference_until_the_last(void **state) {
  (void)state;
  static stage s;
  stage_open(&s, "lying");
  ist_tensor *tensor = run(&s);
  DLManagedTensorVersioned *out[3];
  for (int i = 0; i < 3; i++) {
    bench_ok(&s.bench,
             ist_tensor_export(tensor, NULL, &out[i], NULL, &s.bench.err));
    assert_int_equal(s.bench.lying.live("externals"), 1);
  }
  ist_tensor_release(tensor);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(s.bench.lying.live("externals"), 1);
    out[i]->deleter(out[i]);
  }
  assert_int_equal(s.bench.lying.live("externals"), 0);
  stage_close(&s);
}

static const float *values(const DLManagedTensorVersioned *managed) {
  const DLTensor *t = &managed->dl_tensor;
  return (const float *)((const char *)t->data + t->byte_offset);
}

static void delete__is_refused_under_an_export(void **state) {
  static stage s;
  stage_open(&s, *state);
  ist_tensor *tensors[2] = {s.tensor, run(&s)};
  for (int i = 0; i < 2; i++) {
    DLManagedTensorVersioned *out = NULL;
    bench_ok(&s.bench,
             ist_tensor_export(tensors[i], NULL, &out, NULL, &s.bench.err));
    float last = values(out)[5];
    assert_refused(ist_tensor_delete(tensors[i], &s.bench.err),
                   IST_ERR_ARGUMENT, s.bench.err, "others hold it");
    assert_true(values(out)[5] == last);
    out->deleter(out);
    bench_ok(&s.bench, ist_tensor_delete(tensors[i], &s.bench.err));
  }
  ist_tensor_release(tensors[1]);
  stage_close(&s);
}

// A host program that shares the client deletes what was exported: the
// reference keeps its memory until the export goes.
static void memory__outlives_a_delete_by_the_host_program(void **state) {
  static stage s;
  stage_open(&s, *state);
  ist_tensor *tensor = run(&s);
  DLManagedTensorVersioned *out = NULL;
  bench_ok(&s.bench, ist_tensor_export(tensor, NULL, &out, NULL, &s.bench.err));
  float wanted[6];
  memcpy(wanted, values(out), sizeof wanted);
  const ist__pjrt_client *client = s.bench.backend->self;
  IST_PJRT_ARGS(PJRT_Buffer_Delete_Args, delete_it);
  delete_it.buffer = ((ist__pjrt_tensor *)tensor->buffer)->buffer;
  ist__pjrt_end(&client->plugin.pjrt, IST_SLOT_Buffer_Delete, &delete_it);
  assert_memory_equal(values(out), wanted, sizeof wanted);
  assert_refused(ist_tensor_wait(tensor, &s.bench.err), IST_ERR_DELETED,
                 s.bench.err, "deleted");
  ist_tensor *unmade = (void *)&s;
  ist_run how = {.struct_size = sizeof how,
                 .inputs = &tensor,
                 .input_count = 1,
                 .outputs = &unmade,
                 .output_count = 1};
  assert_refused(ist_program_run(s.program, &how, &s.bench.err),
                 IST_ERR_DELETED, s.bench.err, "deleted");
  assert_null(unmade);
  ist_tensor_release(tensor);
  assert_memory_equal(values(out), wanted, sizeof wanted);
  out->deleter(out);
  stage_close(&s);
}

// ---- events

static void *finish_events(void *arg) {
  stage *s = arg;
  while (s->bench.lying.calls("Event_Await") == 0) sched_yield();
  while (s->bench.lying.release_events() == 0) sched_yield();
  return NULL;
}

// What is waited for comes late, on another thread, and is an error.
static void late_error__reaches_who_waits(void **state) {
  (void)state;
  static stage s;
  stage_open(&s, "lying");
  s.bench.lying.set_rules("addressable=1 delay_events=1 event_error=1");
  ist_tensor *tensor = run(&s);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, finish_events, &s), 0);
  DLManagedTensorVersioned *out = (void *)&s;
  ist_code code = ist_tensor_export(tensor, NULL, &out, NULL, &s.bench.err);
  assert_refused(code, IST_ERR_BUFFER, s.bench.err, "with an error");
  assert_null(out);
  pthread_join(thread, NULL);
  assert_int_equal(s.bench.lying.live("externals"), 0);
  s.bench.lying.set_rules("addressable=1");
  ist_tensor_release(tensor);
  stage_close(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_EACH_PLUGIN(deleter__may_close_the_client),
      ON_EACH_PLUGIN(deleter__may_import_and_export),
      cmocka_unit_test(deleter_on_the_plugins_thread__may_import_and_export),
      cmocka_unit_test(deleter_on_the_plugins_thread__may_close_the_client),
      cmocka_unit_test(exports__hold_one_reference_until_the_last),
      ON_EACH_PLUGIN(delete__is_refused_under_an_export),
      ON_EACH_PLUGIN(memory__outlives_a_delete_by_the_host_program),
      cmocka_unit_test(late_error__reaches_who_waits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

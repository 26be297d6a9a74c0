// SPDX-License-Identifier: Apache-2.0
// What isthmus does when a plugin is slow, broken or different: memory that
// is not the host's, events that come late or with an error, programs whose
// description is garbage.

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "backend/backend.h"
#include "bridge/tensor.h"
#include "support/pjrt_support.h"

static const DLDataType f32 = {kDLFloat, 32, 1};

static ist_code compile(pjrt_bench *bench, const char *text,
                        ist_program **out) {
  return ist_program_compile(
      bench_device(bench, 0), text, strlen(text),
      &(ist_program_options){.struct_size = sizeof(ist_program_options),
                             .name = "lie"},
      out, &bench->err);
}

static ist_tensor *wrap_floats(pjrt_bench *bench, float *data, int64_t count) {
  DLTensor view = {data, {kDLCPU, 0}, 1, f32, &count, NULL, 0};
  ist_tensor *tensor = NULL;
  bench_ok(bench, ist_tensor_wrap(bench->context, &view, NULL, NULL, &tensor,
                                  &bench->err));
  return tensor;
}

static void own_memory__is_reached_by_copies_only(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_open(&bench, "lying", "");
  // The probe asked for it, and found that the host cannot read there.
  int asked = bench.lying.calls("Buffer_OpaqueDeviceMemoryDataPointer");
  _Alignas(64) float data[6] = {1, 2, 3, 4, 5, 6};
  source_tensor source;
  source_make(&source, data, f32, 2, (int64_t[]){2, 3, 1, 2});
  ist_tensor *tensor = NULL;
  ist_receipt receipt = {.struct_size = sizeof receipt};
  bench_ok(&bench, ist_tensor_import(bench_device(&bench, 0), &source.managed,
                                     NULL, &tensor, &receipt, &bench.err));
  source_assert_gone(&source);
  assert_true(receipt.bytes_moved >= sizeof data);
  assert_null(ist_tensor_view(tensor)->data);
  DLManagedTensorVersioned *out = NULL;
  bench_ok(&bench, ist_tensor_export(tensor, NULL, &out, &receipt, &bench.err));
  assert_int_equal(receipt.route, IST_ROUTE_COPY);
  const float *got = (const float *)((const char *)out->dl_tensor.data +
                                     out->dl_tensor.byte_offset);
  const float want[6] = {1, 3, 5, 2, 4, 6};
  assert_memory_equal(got, want, sizeof want);
  out->deleter(out);
  ist_tensor_release(tensor);
  assert_int_equal(bench.lying.calls("Buffer_OpaqueDeviceMemoryDataPointer"),
                   asked);
  bench_close(&bench);
}

static void never_copy__is_refused_for_own_memory(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_open(&bench, "lying", "");
  _Alignas(64) float data[6] = {0};
  source_tensor source;
  source_make(&source, data, f32, 1, (int64_t[]){6, 1});
  ist_options options = {.struct_size = sizeof options, .copy = IST_COPY_NEVER};
  ist_tensor *tensor = NULL;
  ist_code code = ist_tensor_import(bench_device(&bench, 0), &source.managed,
                                    &options, &tensor, NULL, &bench.err);
  assert_refused(code, IST_ERR_COPY_NEEDED, bench.err, "lying");
  assert_int_equal(atomic_load(&source.deleted), 0);
  bench_close(&bench);
}

static void program__runs_on_own_memory(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_open(&bench, "lying", "");
  ist_program *program = NULL;
  bench_ok(&bench, compile(&bench, "lying.add_one_f32 11 6", &program));
  float data[6] = {1, 2, 3, 4, 5, 6}, got[6];
  ist_tensor *in = wrap_floats(&bench, data, 6), *out = NULL;
  ist_run how = {.struct_size = sizeof how,
                 .inputs = &in,
                 .input_count = 1,
                 .outputs = &out,
                 .output_count = 1};
  bench_ok(&bench, ist_program_run(program, &how, &bench.err));
  DLTensor to = {got, {kDLCPU, 0}, 1, f32, (int64_t[]){6}, NULL, 0};
  bench_ok(&bench, ist_tensor_copy_into(out, &to, NULL, NULL, &bench.err));
  for (int i = 0; i < 6; i++) assert_true(got[i] == data[i] + 1);
  ist_tensor_release(in);
  ist_tensor_release(out);
  ist_program_release(program);
  bench_close(&bench);
}

static void unknowable_arguments__refuse_the_program(void **state) {
  (void)state;
  static const char *const rules[] = {
      "hlo=garbage", "hlo=none",
      "unimplemented=PJRT_Executable_OptimizedProgram"};
  for (size_t i = 0; i < COUNT_OF(rules); i++) {
    pjrt_bench bench;
    bench_open(&bench, "lying", "");
    bench.lying.set_rules(rules[i]);
    ist_program *program = NULL;
    assert_refused(compile(&bench, "lying.identity 11 6", &program),
                   IST_ERR_NO_PROGRAMS, bench.err, "OptimizedProgram");
    assert_null(program);
    bench_close(&bench);
  }
}

static void success_without_an_executable__is_the_plugins_fault(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_open(&bench, "lying", "");
  bench.lying.set_rules("executable=null");
  ist_program *program = NULL;
  assert_refused(compile(&bench, "lying.identity 11 6", &program),
                 IST_ERR_PLUGIN, bench.err, "needs a working plugin");
  assert_null(program);
  assert_int_equal(bench.lying.calls("Executable_NumOutputs"), 0);
  bench_close(&bench);
}

// A tile that cuts nothing leaves the values where they were.
static void trivially_tiled_program__runs(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_open(&bench, "lying", "");
  bench.lying.set_rules("hlo=tiled_by_one layout=tiled_by_one");
  ist_program *program = NULL;
  bench_ok(&bench, compile(&bench, "lying.identity 11 2 3", &program));
  ist_spec spec = {.struct_size = sizeof spec};
  bench_ok(&bench, ist_program_input(program, 0, &spec, &bench.err));
  assert_int_equal(spec.strides[0], 3);
  assert_int_equal(spec.strides[1], 1);
  float data[6] = {1, 2, 3, 4, 5, 6};
  int64_t shape[2] = {2, 3};
  DLTensor view = {data, {kDLCPU, 0}, 2, f32, shape, NULL, 0};
  ist_tensor *in = NULL, *out = NULL;
  bench_ok(&bench,
           ist_tensor_wrap(bench.context, &view, NULL, NULL, &in, &bench.err));
  ist_run how = {.struct_size = sizeof how,
                 .inputs = &in,
                 .input_count = 1,
                 .outputs = &out,
                 .output_count = 1};
  bench_ok(&bench, ist_program_run(program, &how, &bench.err));
  float got[6] = {0};
  view.data = got;
  bench_ok(&bench, ist_tensor_copy_into(out, &view, NULL, NULL, &bench.err));
  assert_memory_equal(got, data, sizeof data);
  ist_tensor_release(out);
  ist_tensor_release(in);
  ist_program_release(program);
  bench_close(&bench);
}

// Whether programs run is found by running one: a slot that is there may do
// nothing.
static void program_that_does_not_run__means_no_programs(void **state) {
  (void)state;
  static const char *const rules[] = {"drop=Client_Compile",
                                      "drop=LoadedExecutable_Execute",
                                      "drop=Executable_OptimizedProgram",
                                      "unimplemented=Client_Compile",
                                      "unimplemented=LoadedExecutable_Execute",
                                      "fail=LoadedExecutable_Execute:1",
                                      "program=wrong",
                                      "hlo=none",
                                      "hlo=garbage"};
  for (size_t i = 0; i < COUNT_OF(rules); i++) {
    pjrt_bench bench;
    bench_open(&bench, "lying", rules[i]);
    ist_backend_info info = {.struct_size = sizeof info};
    bench_ok(&bench, ist_backend_describe(bench.backend, &info, &bench.err));
    assert_false(info.runs_programs);
    ist_program *program = NULL;
    assert_refused(compile(&bench, "lying.identity 11 6", &program),
                   IST_ERR_NO_PROGRAMS, bench.err, "compiler");
    bench_close(&bench);
  }
}

static void failing_program__keeps_the_plugins_code(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_open(&bench, "lying", "");
  ist_program *program = NULL;
  bench_ok(&bench, compile(&bench, "lying.fail 11 6", &program));
  float data[6] = {0};
  ist_tensor *in = wrap_floats(&bench, data, 6), *out = NULL;
  ist_run how = {.struct_size = sizeof how,
                 .inputs = &in,
                 .input_count = 1,
                 .outputs = &out,
                 .output_count = 1};
  assert_refused(ist_program_run(program, &how, &bench.err),
                 IST_ERR_OUT_OF_DEVICE_MEMORY, bench.err, "out of memory");
  assert_int_equal(bench.err.native, 8);
  assert_null(out);
  ist_tensor_release(in);
  ist_program_release(program);
  bench_close(&bench);
}

static void plugins_story__is_folded_and_logged_whole(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_open(&bench, "lying", "");
  bench.log[0] = '\0';
  ist_program *program = NULL;
  assert_refused(compile(&bench, "no program", &program), IST_ERR_PROGRAM,
                 bench.err, "this is no program (code 3)");
  assert_non_null(strstr(bench.err.message, "StableHLO up to 1.2.3"));
  assert_non_null(strstr(bench.log, "this is no program"));
  assert_non_null(strstr(bench.log, "at line 1"));
  bench_close(&bench);
}

// What a plugin refuses while it is tried out is no news to a user: it would be
// taken for the reason of the next failure.
static void refusal_of_a_trial__warns_nobody(void **state) {
  (void)state;
  static const char *const rules[] = {
      "",
      "addressable=1 align=4096",
      "addressable=1 view=eager",
      "unimplemented=Client_PlatformVersion unimplemented=Memory_Kind",
      "unimplemented=Client_Compile",
      "event_error=1"};
  for (size_t i = 0; i < COUNT_OF(rules); i++) {
    pjrt_bench bench;
    bench_open(&bench, "lying", rules[i]);
    // At most one line of information, in our words.
    const char *end = strchr(bench.log, '|');
    if (end != NULL &&
        (end[1] != '\0' || strstr(bench.log, "runs no programs: ") == NULL)) {
      fail_msg("%s: %s", rules[i], bench.log);
    }
    bench_close(&bench);
  }
}

static void error_of_an_event__is_the_buffers(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_open(&bench, "lying", "addressable=1");
  ist_program *program = NULL;
  bench_ok(&bench, compile(&bench, "lying.identity 11 6", &program));
  _Alignas(64) float data[6] = {0};
  float got[6];
  ist_tensor *in = wrap_floats(&bench, data, 6), *out = NULL;
  ist_run how = {.struct_size = sizeof how,
                 .inputs = &in,
                 .input_count = 1,
                 .outputs = &out,
                 .output_count = 1};
  bench.lying.set_rules("addressable=1 event_error=1");
  bench_ok(&bench, ist_program_run(program, &how, &bench.err));
  ist_loan loan;
  assert_refused(ist_tensor_wait(out, &bench.err), IST_ERR_BUFFER, bench.err,
                 "this event completes with an error");
  // The address of such a buffer is told, and is never passed on.
  assert_refused(
      ist__backend_lend(bench.backend, out->buffer, &loan, &bench.err),
      IST_ERR_BUFFER, bench.err, "error");
  assert_null(loan.data);
  assert_refused(ist__backend_copy_out(bench.backend, out->buffer, got,
                                       sizeof got, &bench.err),
                 IST_ERR_BUFFER, bench.err, "error");
  assert_int_equal(bench.lying.live("externals"), 0);
  ist_tensor_release(in);
  ist_tensor_release(out);
  ist_program_release(program);
  bench_close(&bench);
}

typedef struct late {
  pjrt_bench *bench;
  void *buffer;
  float got[6];
  bool lends;
  ist_code code;
  atomic_bool done;
} late;

static void *read_late(void *arg) {
  late *l = arg;
  ist_loan loan = {.struct_size = sizeof loan};
  if (l->lends) {
    l->code = ist__backend_lend(l->bench->backend, l->buffer, &loan, NULL);
    if (l->code == IST_OK) memcpy(l->got, loan.data, sizeof l->got);
    ist__backend_reclaim(l->bench->backend, l->buffer);
  } else {
    l->code = ist__backend_copy_out(l->bench->backend, l->buffer, l->got,
                                    sizeof l->got, NULL);
  }
  atomic_store(&l->done, true);
  return NULL;
}

static void finish(late *l, pthread_t thread) {
  while (!atomic_load(&l->done)) {
    l->bench->lying.release_events();
    sched_yield();
  }
  pthread_join(thread, NULL);
}

// Values that are not there yet are waited for, by a copy and by a loan.
static void late_values__are_waited_for(void **state) {
  (void)state;
  for (int lends = 0; lends < 2; lends++) {
    pjrt_bench bench;
    bench_open(&bench, "lying", "addressable=1");
    ist_program *program = NULL;
    bench_ok(&bench, compile(&bench, "lying.add_one_f32 11 6", &program));
    _Alignas(64) float data[6] = {1, 2, 3, 4, 5, 6};
    ist_tensor *in = wrap_floats(&bench, data, 6), *out = NULL;
    ist_run how = {.struct_size = sizeof how,
                   .inputs = &in,
                   .input_count = 1,
                   .outputs = &out,
                   .output_count = 1};
    bench.lying.set_rules("addressable=1 delay_events=1");
    bench_ok(&bench, ist_program_run(program, &how, &bench.err));
    assert_true(bench.lying.pending_events() > 0);
    late l = {.bench = &bench, .buffer = out->buffer, .lends = lends != 0};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_late, &l), 0);
    while (bench.lying.calls("Event_Await") == 0) sched_yield();
    assert_false(atomic_load(&l.done));
    finish(&l, thread);
    assert_int_equal(l.code, IST_OK);
    for (int i = 0; i < 6; i++) assert_true(l.got[i] == data[i] + 1);
    assert_int_equal(bench.lying.calls("Event_Error"), 0);
    bench.lying.set_rules("addressable=1");
    ist_tensor_release(in);
    ist_tensor_release(out);
    ist_program_release(program);
    bench_close(&bench);
  }
}

// A view is destroyed while the plugin still works on it: the memory is given
// back when the work is done, and not before.
static void view_in_use__is_given_back_later(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_open(&bench, "lying", "addressable=1");
  ist_program *program = NULL;
  bench_ok(&bench, compile(&bench, "lying.identity 11 6", &program));
  _Alignas(64) float data[6] = {1, 2, 3, 4, 5, 6};
  source_tensor source;
  source_make(&source, data, f32, 1, (int64_t[]){6, 1});
  ist_tensor *in = NULL, *out = NULL;
  bench_ok(&bench, ist_tensor_import(bench_device(&bench, 0), &source.managed,
                                     NULL, &in, NULL, &bench.err));
  ist_run how = {.struct_size = sizeof how,
                 .inputs = &in,
                 .input_count = 1,
                 .outputs = &out,
                 .output_count = 1};
  bench.lying.set_rules("addressable=1 delay_events=1");
  bench_ok(&bench, ist_program_run(program, &how, &bench.err));
  ist_tensor_release(in);
  assert_int_equal(atomic_load(&source.deleted), 0);
  bench.lying.release_events();
  source_assert_gone(&source);
  ist_tensor_release(out);
  bench.lying.set_rules("addressable=1");
  ist_program_release(program);
  bench_close(&bench);
}

// The last that holds the backend goes when the plugin gives a view back on a
// thread of its own: destroyed there, a client would wait for that thread.
static void client__is_never_destroyed_by_its_own_thread(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_open(&bench, "lying", "addressable=1");
  ist_program *program = NULL;
  bench_ok(&bench, compile(&bench, "lying.add_one_f32 11 6", &program));
  _Alignas(64) float data[6] = {1, 2, 3, 4, 5, 6};
  const ist_device *host = ist_context_host(bench.context);
  ist_tensor *in = wrap_floats(&bench, data, 6), *first = NULL, *second = NULL;
  ist_tensor *between = NULL;
  ist_run how = {.struct_size = sizeof how,
                 .inputs = &in,
                 .input_count = 1,
                 .outputs = &first,
                 .output_count = 1};
  bench_ok(&bench, ist_program_run(program, &how, &bench.err));
  bench_ok(&bench,
           ist_tensor_move(first, host, NULL, &between, NULL, &bench.err));
  bench.lying.set_rules("addressable=1 delay_events=1");
  how.inputs = &between;
  how.outputs = &second;
  bench_ok(&bench, ist_program_run(program, &how, &bench.err));
  ist_program_release(program);
  ist_tensor_release(in);
  ist_tensor_release(first);
  ist_tensor_release(between);
  ist_tensor_release(second);
  ist_backend_release(bench.backend);
  bench.backend = NULL;
  assert_int_equal(bench.lying.live("clients"), 1);
  bench.lying.release_events();
  bench_close(&bench);
}

static void untrusted_output_layout__is_refused(void **state) {
  (void)state;
  static const char *const rules[] = {"layout=short", "layout=unsorted",
                                      "layout=tiled_untold"};
  for (size_t i = 0; i < COUNT_OF(rules); i++) {
    pjrt_bench bench;
    bench_open(&bench, "lying", "");
    ist_program *program = NULL;
    bench_ok(&bench, compile(&bench, "lying.identity 11 2 3", &program));
    float data[6] = {0};
    int64_t shape[2] = {2, 3};
    DLTensor view = {data, {kDLCPU, 0}, 2, f32, shape, NULL, 0};
    ist_tensor *in = NULL, *out = NULL;
    bench_ok(&bench, ist_tensor_wrap(bench.context, &view, NULL, NULL, &in,
                                     &bench.err));
    ist_run how = {.struct_size = sizeof how,
                   .inputs = &in,
                   .input_count = 1,
                   .outputs = &out,
                   .output_count = 1};
    bench.lying.set_rules(rules[i]);
    assert_refused(ist_program_run(program, &how, &bench.err),
                   IST_ERR_TARGET_LAYOUT, bench.err, "needs a dense order");
    assert_null(out);
    ist_tensor_release(in);
    ist_program_release(program);
    bench_close(&bench);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(own_memory__is_reached_by_copies_only),
      cmocka_unit_test(never_copy__is_refused_for_own_memory),
      cmocka_unit_test(program__runs_on_own_memory),
      cmocka_unit_test(unknowable_arguments__refuse_the_program),
      cmocka_unit_test(program_that_does_not_run__means_no_programs),
      cmocka_unit_test(success_without_an_executable__is_the_plugins_fault),
      cmocka_unit_test(trivially_tiled_program__runs),
      cmocka_unit_test(failing_program__keeps_the_plugins_code),
      cmocka_unit_test(plugins_story__is_folded_and_logged_whole),
      cmocka_unit_test(refusal_of_a_trial__warns_nobody),
      cmocka_unit_test(error_of_an_event__is_the_buffers),
      cmocka_unit_test(late_values__are_waited_for),
      cmocka_unit_test(view_in_use__is_given_back_later),
      cmocka_unit_test(client__is_never_destroyed_by_its_own_thread),
      cmocka_unit_test(untrusted_output_layout__is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

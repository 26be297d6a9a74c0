// SPDX-License-Identifier: Apache-2.0
// plugin_journey.c: see plugin_journey.h.

#include "support/plugin_journey.h"

#include <stdio.h>

#include "backend/backend.h"
#include "backend/pjrt/abi.h"

static const DLDataType f32 = {kDLFloat, 32, 1};

static bool blow(void *self, const char *slot) {
  (void)slot;
  fuse *f = self;
  if (++f->calls != f->fail_at) return false;
  f->fired = true;
  return true;
}

void journey_begin(journey *j, const char *rules, long fail_call,
                   long fail_allocation) {
  memset(j, 0, sizeof *j);
  for (int i = 0; i < 16; i++) j->data[i] = (float)i * 1.5f;
  bench_context(&j->bench, "lying", rules);
  snprintf(j->rules, sizeof j->rules, "%s", rules);
  j->wraps = strstr(rules, "wrap=") != NULL;
  j->fuse.fail_at = fail_call;
  ist__context_set_call_hook(j->bench.context, blow, &j->fuse);
  counting_allocator_arm(&j->bench.counts, fail_allocation);
}

// The values of a tensor of `count` floats are `times` those of the source.
static ist_code check_values(journey *j, ist_tensor *tensor, int64_t count,
                             float times) {
  float got[6] = {0};
  int64_t shape[2] = {2, 3};
  DLTensor to = {got, {kDLCPU, 0}, 2, f32, shape, NULL, 0};
  if (count != 6) {
    to.ndim = 1;
    shape[0] = count;
  }
  ist_error *err = &j->bench.err;
  ist_code code = ist_tensor_copy_into(tensor, &to, NULL, NULL, err);
  for (int64_t i = 0; i < count && code == IST_OK; i++)
    if (got[i] != j->data[i] * times)
      fail_msg("%s: element %d is %g", j->rules, (int)i, (double)got[i]);
  return code;
}

// ---- steps

static ist_code step_open(journey *j) {
  const ist_option one = {
      .name = "cpu_device_count", .kind = IST_OPTION_INT64, .int64 = 2};
  ist_backend_options how = {.struct_size = sizeof how,
                             .path = plugin_path("lying"),
                             .options = &one,
                             .option_count = j->wraps ? 0 : 1,
                             .trusted = true};
  ist_code code = ist_backend_open(j->bench.context, "pjrt", &how,
                                   &j->bench.backend, &j->bench.err);
  if (code == IST_OK && j->later != NULL) {
    j->bench.lying.set_rules(j->later);
    snprintf(j->rules, sizeof j->rules, "later: %s", j->later);
  }
  return code;
}

static ist_code step_import(journey *j) {
  source_make(&j->source, j->data, f32, 2, (int64_t[]){2, 3, 3, 1});
  ist_code code =
      ist_tensor_import(bench_device(&j->bench, 0), &j->source.managed, NULL,
                        &j->views, NULL, &j->bench.err);
  if (code == IST_OK) return check_values(j, j->views, 6, 1);
  assert_null(j->views);
  assert_int_equal(atomic_load(&j->source.deleted), 0);
  return code;
}

static ist_code step_move(journey *j) {
  ist_options always = {.struct_size = sizeof always, .copy = IST_COPY_ALWAYS};
  ist_error *err = &j->bench.err;
  ist_code code = ist_tensor_move(j->views, bench_device(&j->bench, 0), &always,
                                  &j->copies, NULL, err);
  if (code != IST_OK) assert_null(j->copies);
  if (code == IST_OK)
    code = ist_tensor_move(j->views, bench_device(&j->bench, 1), NULL,
                           &j->moved, NULL, err);
  if (code == IST_OK) code = check_values(j, j->moved, 6, 1);
  return code;
}

static ist_code step_export(journey *j) {
  ist_code code =
      ist_tensor_export(j->copies, NULL, &j->view, NULL, &j->bench.err);
  if (code != IST_OK) {
    assert_null(j->view);
    return code;
  }
  const DLTensor *t = &j->view->dl_tensor;
  assert_memory_equal((const char *)t->data + t->byte_offset, j->data,
                      6 * sizeof(float));
  return code;
}

static ist_code compile(journey *j, const char *text, ist_program **out) {
  ist_code code = ist_program_compile(bench_device(&j->bench, 0), text,
                                      strlen(text), NULL, out, &j->bench.err);
  if (code != IST_OK) assert_null(*out);
  return code;
}

static ist_code run(journey *j, ist_program *program, ist_tensor *in,
                    ist_tensor **out) {
  ist_run how = {.struct_size = sizeof how,
                 .inputs = &in,
                 .input_count = 1,
                 .outputs = out,
                 .output_count = 1};
  ist_code code = ist_program_run(program, &how, &j->bench.err);
  if (code != IST_OK) assert_null(*out);
  return code;
}

static ist_code step_run(journey *j) {
  static const char text[] =
      "func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {\n"
      "  %0 = stablehlo.add %x, %x : tensor<2x3xf32>\n"
      "  return %0 : tensor<2x3xf32>\n"
      "}\n";
  ist_code code = compile(j, text, &j->program);
  if (code == IST_OK) code = run(j, j->program, j->copies, &j->output);
  if (code == IST_OK) code = ist_tensor_wait(j->output, &j->bench.err);
  if (code == IST_OK) code = check_values(j, j->output, 6, 2);
  return code;
}

// The program saved, and loaded again.
static ist_code step_save(journey *j) {
  ist_tensor *saved = NULL;
  ist_program *loaded = NULL;
  ist_error *err = &j->bench.err;
  ist_code code = ist_program_serialize(j->program, &saved, err);
  if (code == IST_OK) {
    const DLTensor *bytes = ist_tensor_view(saved);
    code = ist_program_load(bench_device(&j->bench, 0), bytes->data,
                            (size_t)bytes->shape[0], NULL, &loaded, err);
  } else {
    assert_null(saved);
  }
  if (code != IST_OK) assert_null(loaded);
  ist_tensor_release(saved);
  ist_program_release(loaded);
  return code;
}

// A result that turns out to be shorter; the wrapped ones read no such words.
static ist_code step_dynamic(journey *j) {
  if (j->wraps) return IST_OK;
  int64_t shape[1] = {4};
  DLTensor view = {j->data, {kDLCPU, 0}, 1, f32, shape, NULL, 0};
  ist_tensor *in = NULL;
  ist_error *err = &j->bench.err;
  ist_code code = compile(j, "lying.dynamic 11 4", &j->dynamic);
  if (code == IST_OK)
    code = ist_tensor_wrap(j->bench.context, &view, NULL, NULL, &in, err);
  if (code == IST_OK) code = run(j, j->dynamic, in, &j->shorter);
  ist_tensor_release(in);
  if (code == IST_OK) code = check_values(j, j->shorter, 3, 1);
  return code;
}

static ist_code step_delete(journey *j) {
  return ist_tensor_delete(j->moved, &j->bench.err);
}

// A buffer becomes the host program's, and comes back.
static ist_code step_give(journey *j) {
  ist_pjrt_buffer_options how = {.struct_size = sizeof how,
                                 .ownership = IST_PJRT_TAKE};
  ist_code code = ist_pjrt_buffer_give(j->output, &j->given, &j->bench.err);
  if (code != IST_OK) {
    assert_null(j->given);
    return code;
  }
  j->output = NULL;
  code = ist_pjrt_buffer_adopt(j->bench.backend, j->given, &how, &j->back,
                               &j->bench.err);
  if (code != IST_OK) {
    assert_null(j->back);
    return code;
  }
  j->given = NULL;
  return check_values(j, j->back, 6, 2);
}

// All that can be found out, on every memory.
static ist_code step_memory(journey *j) {
  ist_pjrt_memory_use use = {.struct_size = sizeof use};
  ist_code code =
      ist_pjrt_memory_stats(bench_device(&j->bench, 0), &use, &j->bench.err);
  return code == IST_ERR_PLUGIN_SLOT ? IST_OK : code;  // most keep none
}

static ist_code step_report(journey *j) {
  ist_pjrt_report *report = NULL;
  ist_code code = ist_pjrt_report_create(bench_device(&j->bench, 0), &report,
                                         &j->bench.err);
  if (code != IST_OK) {
    assert_null(report);
    return code;
  }
  assert_true(ist_pjrt_report_count(report) > 20);
  ist_pjrt_report_release(report);
  return IST_OK;
}

ist_code journey_go(journey *j) {
  static ist_code (*const steps[])(journey *j) = {
      step_open,    step_import, step_move, step_export, step_run,   step_save,
      step_dynamic, step_delete, step_give, step_report, step_memory};
  ist_code code = IST_OK;
  for (size_t i = 0; i < COUNT_OF(steps) && code == IST_OK; i++)
    code = steps[i](j);
  // The source is as it was, whatever happened.
  for (int i = 0; i < 16; i++) assert_true(j->data[i] == (float)i * 1.5f);
  return code;
}

// What the host program has taken it frees itself.
static void destroy_given(journey *j) {
  const PJRT_Api *api = ist_pjrt_api(j->bench.backend);
  IST_PJRT_ARGS(PJRT_Buffer_Destroy_Args, destroy);
  destroy.buffer = j->given;
  api->slot[IST_SLOT_Buffer_Destroy](&destroy);
}

void journey_end(journey *j) {
  bool imported = j->views != NULL;
  if (j->given != NULL) destroy_given(j);
  ist_tensor_release(j->views);
  ist_tensor_release(j->copies);
  ist_tensor_release(j->moved);
  ist_tensor_release(j->output);
  ist_tensor_release(j->shorter);
  ist_tensor_release(j->back);
  ist_program_release(j->program);
  ist_program_release(j->dynamic);
  if (j->view != NULL) j->view->deleter(j->view);
  if (imported) source_assert_gone(&j->source);
  bench_close(&j->bench);
}

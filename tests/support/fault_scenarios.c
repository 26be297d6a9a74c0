// SPDX-License-Identifier: Apache-2.0
// fault_scenarios.c: what is done under faults: opening, import, export, move,
// copies, conversions, programs, files.

#define _DEFAULT_SOURCE  // mkstemps under -std=c11

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backend/backend.h"
#include "support/fault_stage.h"
#include "support/testing.h"

static const DLDataType float32 = {kDLFloat, 32, 1};

// Acts say which outputs are theirs; the others are NULL by definition.
static void claim_none(stage *s) {
  s->out_context = NULL;
  s->out_backend = NULL;
  s->out = NULL;
  s->exported = NULL;
  s->legacy = NULL;
  s->compiled = NULL;
  s->out_file = NULL;
  s->out_buffer = NULL;
}

#define ACT(s, output, call)  \
  do {                        \
    void *dirt = (s)->output; \
    claim_none(s);            \
    (s)->output = dirt;       \
    return (call);            \
  } while (0)

// --- the context and the backend ---

static ist_code act_context(stage *s, ist_error *err) {
  static ist_allocator allocator;
  allocator = counting_allocator_hook(&s->memory);
  ist_context_options options = {.struct_size = sizeof options,
                                 .allocator = &allocator};
  s->receipt = (ist_receipt){0};
  ACT(s, out_context, ist_context_create(&options, &s->out_context, err));
}

static void undo_context(stage *s) {
  ist_context_release(s->out_context);
}

static ist_code act_open(stage *s, ist_error *err) {
  s->receipt = (ist_receipt){0};
  ACT(s, out_backend, s->open(s, &s->out_backend, err));
}

static void undo_open(stage *s) {
  ist_backend_release(s->out_backend);
}

// --- import ---

static void prepare_dense(stage *s) {
  sample_make(&s->from, float32, SAMPLE_ROW_MAJOR, false, 3);
}

static void prepare_gaps(stage *s) {
  sample_make(&s->from, float32, SAMPLE_GAPS, false, 4);
}

static ist_code import_as(stage *s, ist_copy copy, ist_error *err) {
  ist_options options = {.struct_size = sizeof options, .copy = copy};
  ACT(s, out,
      ist_tensor_import(s->device, &s->from.versioned, &options, &s->out,
                        &s->receipt, err));
}

static ist_code act_import(stage *s, ist_error *err) {
  return import_as(s, IST_COPY_AUTO, err);
}

static ist_code act_import_copy(stage *s, ist_error *err) {
  return import_as(s, IST_COPY_ALWAYS, err);
}

static ist_code act_import_legacy(stage *s, ist_error *err) {
  ACT(s, out,
      ist_tensor_import_legacy(s->device, &s->from.legacy, NULL, &s->out,
                               &s->receipt, err));
}

static void await_deleted(stage *s) {
  // Bounded by the runner's guard against hangs where a plugin is late.
  while (s->late_release && s->from.deleted == 0) continue;
  assert_int_equal(s->from.deleted, 1);
}

static void undo_import(stage *s) {
  ist_tensor_release(s->out);
  await_deleted(s);
}

// --- export and move, of a tensor on the device ---

static void prepare_tensor(stage *s) {
  prepare_dense(s);
  ist_error error = {0};
  assert_ok(ist_tensor_import(s->device, &s->from.versioned, NULL, &s->input,
                              NULL, &error),
            error);
  // A copy is done with its source: give the check a fresh count.
  s->from.deleted = 0;
}

static void finish_tensor(stage *s) {
  ist_tensor_release(s->input);
}

static ist_code export_as(stage *s, ist_copy copy, ist_error *err) {
  ist_options options = {.struct_size = sizeof options, .copy = copy};
  ACT(s, exported,
      ist_tensor_export(s->input, &options, &s->exported, &s->receipt, err));
}

static ist_code act_export(stage *s, ist_error *err) {
  return export_as(s, IST_COPY_AUTO, err);
}

static ist_code act_export_copy(stage *s, ist_error *err) {
  return export_as(s, IST_COPY_ALWAYS, err);
}

static ist_code act_export_legacy(stage *s, ist_error *err) {
  ACT(s, legacy,
      ist_tensor_export_legacy(s->input, NULL, &s->legacy, &s->receipt, err));
}

static void undo_export(stage *s) {
  if (s->exported != NULL) s->exported->deleter(s->exported);
  if (s->legacy != NULL) s->legacy->deleter(s->legacy);
}

static ist_code move_as(stage *s, const ist_device *to, ist_copy copy,
                        ist_error *err) {
  ist_options options = {.struct_size = sizeof options, .copy = copy};
  ACT(s, out,
      ist_tensor_move(s->input, to, &options, &s->out, &s->receipt, err));
}

static ist_code act_move_to_host(stage *s, ist_error *err) {
  return move_as(s, ist_context_host(s->context), IST_COPY_AUTO, err);
}

static ist_code act_move_to_host_copy(stage *s, ist_error *err) {
  return move_as(s, ist_context_host(s->context), IST_COPY_ALWAYS, err);
}

static ist_code act_move_within(stage *s, ist_error *err) {
  return move_as(s, s->device, IST_COPY_ALWAYS, err);
}

static void undo_out(stage *s) {
  ist_tensor_release(s->out);
}

static ist_code act_copy_into(stage *s, ist_error *err) {
  static unsigned char room[sample_room];
  claim_none(s);
  DLTensor target = s->from.versioned.dl_tensor;
  target.data = room;
  target.byte_offset = 0;
  target.strides = NULL;
  return ist_tensor_copy_into(s->input, &target, NULL, &s->receipt, err);
}

static ist_code convert_to(stage *s, DLDataType dtype, ist_error *err) {
  ACT(s, out,
      ist_tensor_convert(s->input, dtype, NULL, &s->out, &s->receipt, err));
}

static ist_code act_convert(stage *s, ist_error *err) {
  return convert_to(s, (DLDataType){kDLBfloat, 16, 1}, err);
}

static ist_code act_convert_same(stage *s, ist_error *err) {
  return convert_to(s, float32, err);
}

static void undo_nothing(stage *s) {
  (void)s;
}

// --- tensors of the host ---

static ist_code act_wrap(stage *s, ist_error *err) {
  s->receipt = (ist_receipt){0};
  ACT(s, out,
      ist_tensor_wrap(s->context, &s->from.versioned.dl_tensor, NULL, NULL,
                      &s->out, err));
}

static ist_code act_empty(stage *s, ist_error *err) {
  ist_spec spec = {
      .struct_size = sizeof spec, .dtype = float32, .ndim = 2, .shape = {3, 4}};
  s->receipt = (ist_receipt){0};
  ACT(s, out, ist_tensor_empty(s->context, &spec, 0, &s->out, err));
}

// --- a slot that the bridge does not use on every backend ---

static ist_code act_copy_in(stage *s, ist_error *err) {
  ist_placement place = {.struct_size = sizeof place,
                         .view = &s->from.versioned.dl_tensor};
  s->receipt = (ist_receipt){0};
  ACT(s, out_buffer,
      ist__backend_copy_in(s->backend, &place, &s->out_buffer, err));
}

static void undo_copy_in(stage *s) {
  ist__backend_release_buffer(s->backend, s->out_buffer);
}

// --- programs ---

static ist_code compile(stage *s, ist_program **out, ist_error *err) {
  return ist_program_compile(s->device, s->program, strlen(s->program), NULL,
                             out, err);
}

static ist_code act_compile(stage *s, ist_error *err) {
  s->receipt = (ist_receipt){0};
  ACT(s, compiled, compile(s, &s->compiled, err));
}

static void undo_compile(stage *s) {
  ist_program_release(s->compiled);
}

// The program of a run, kept out of the outputs that are checked.
static ist_program *running;

// The first argument can be viewed as it lies, the second must be gathered.
static void prepare_run(stage *s) {
  prepare_dense(s);
  ist_error error = {0};
  assert_ok(compile(s, &running, &error), error);
  for (size_t i = 0; i < 2; i++) {
    int64_t shape = 4;
    int64_t stride = i == 0 ? 1 : 2;
    for (int k = 0; k < 16; k++) s->numbers[i][k] = (float)(k * 10);
    DLTensor view = {s->numbers[i], {kDLCPU, 0}, 1, float32,
                     &shape,        &stride,     0};
    assert_ok(ist_tensor_wrap(s->context, &view, NULL, NULL, &s->arguments[i],
                              &error),
              error);
  }
}

static ist_code act_run(stage *s, ist_error *err) {
  ist_receipt receipts[2] = {{.struct_size = sizeof(ist_receipt)},
                             {.struct_size = sizeof(ist_receipt)}};
  ist_tensor *dirt = s->out;
  claim_none(s);
  s->out = dirt;
  ist_run run = {.struct_size = sizeof run,
                 .inputs = s->arguments,
                 .input_count = s->input_count,
                 .outputs = &s->out,
                 .output_count = 1,
                 .receipts = receipts};
  ist_code code = ist_program_run(running, &run, err);
  s->receipt = (ist_receipt){0};
  for (int i = 0; i < 2 && code != IST_OK; i++) {
    assert_int_equal(receipts[i].route, IST_ROUTE_REFUSE);
    assert_int_equal(receipts[i].bytes_moved, 0);
  }
  return code;
}

static void finish_run(stage *s) {
  ist_program_release(running);
  for (size_t i = 0; i < 2; i++) ist_tensor_release(s->arguments[i]);
}

// --- files ---

static void prepare_file(stage *s) {
  prepare_tensor(s);
  snprintf(s->file, sizeof s->file, "%s/isthmus-fault-XXXXXX.npy",
           getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
  int handle = mkstemps(s->file, 4);
  assert_true(handle >= 0);
  close(handle);
  ist_error error = {0};
  assert_ok(ist_file_save(s->file, NULL, &s->input, 1, &error), error);
}

static void finish_file(stage *s) {
  unlink(s->file);
  ist_tensor_release(s->input);
}

static ist_code act_save(stage *s, ist_error *err) {
  claim_none(s);
  s->receipt = (ist_receipt){0};
  return ist_file_save(s->file, NULL, &s->input, 1, err);
}

static ist_code act_file_open(stage *s, ist_error *err) {
  s->receipt = (ist_receipt){0};
  ACT(s, out_file, ist_file_open(s->context, s->file, NULL, &s->out_file, err));
}

static void undo_file_open(stage *s) {
  ist_file_release(s->out_file);
}

static void prepare_file_tensor(stage *s) {
  prepare_file(s);
  ist_error error = {0};
  assert_ok(ist_file_open(s->context, s->file, NULL, &s->opened, &error),
            error);
}

static ist_code act_file_tensor(stage *s, ist_error *err) {
  s->receipt = (ist_receipt){0};
  ACT(s, out, ist_file_tensor(s->opened, NULL, &s->out, err));
}

static void finish_file_tensor(stage *s) {
  ist_file_release(s->opened);
  finish_file(s);
}

const scenario fault_scenarios[] = {
    {"context", prepare_dense, act_context, undo_context, NULL, false, false},
    {"open", prepare_dense, act_open, undo_open, NULL, false, true},
    {"import", prepare_dense, act_import, undo_import, NULL, false, false},
    {"import gaps", prepare_gaps, act_import, undo_import, NULL, false, false},
    {"import copy", prepare_dense, act_import_copy, undo_import, NULL, false,
     false},
    {"import legacy", prepare_dense, act_import_legacy, undo_import, NULL,
     false, false},
    {"export", prepare_tensor, act_export, undo_export, finish_tensor, false,
     false},
    {"export copy", prepare_tensor, act_export_copy, undo_export, finish_tensor,
     false, false},
    {"export legacy", prepare_tensor, act_export_legacy, undo_export,
     finish_tensor, false, false},
    {"move to host", prepare_tensor, act_move_to_host, undo_out, finish_tensor,
     false, false},
    {"move to host copy", prepare_tensor, act_move_to_host_copy, undo_out,
     finish_tensor, false, false},
    {"move within", prepare_tensor, act_move_within, undo_out, finish_tensor,
     false, false},
    {"copy into", prepare_tensor, act_copy_into, undo_nothing, finish_tensor,
     false, false},
    {"convert", prepare_tensor, act_convert, undo_out, finish_tensor, false,
     false},
    {"convert to the same", prepare_tensor, act_convert_same, undo_out,
     finish_tensor, false, false},
    {"copy in", prepare_dense, act_copy_in, undo_copy_in, NULL, false, false},
    {"wrap", prepare_dense, act_wrap, undo_out, NULL, false, false},
    {"empty", prepare_dense, act_empty, undo_out, NULL, false, false},
    {"compile", prepare_dense, act_compile, undo_compile, NULL, true, false},
    {"run", prepare_run, act_run, undo_out, finish_run, true, false},
    {"save", prepare_file, act_save, undo_nothing, finish_file, false, false},
    {"open file", prepare_file, act_file_open, undo_file_open, finish_file,
     false, false},
    {"tensor of file", prepare_file_tensor, act_file_tensor, undo_out,
     finish_file_tensor, false, false},
    {0},
};

// Opening a real plugin takes a hundred allocations and a thousand calls, and
// as many times a client: too long under valgrind (./dev sets the variable).
static bool is_too_long(const stage *s, const scenario *what) {
  if (!what->probes || !s->slow_to_open ||
      getenv("ISTHMUS_UNDER_VALGRIND") == NULL) {
    return false;
  }
  print_message("%s: %s: not swept under valgrind\n", s->name, what->name);
  return true;
}

static void sweep_all(stage *s, fault_kind kind) {
  stage_open(s);
  long fired = 0;
  for (const scenario *what = fault_scenarios; what->name != NULL; what++) {
    if (what->needs_program && s->program == NULL) continue;
    if (is_too_long(s, what)) continue;
    fired += stage_sweep(s, what, kind);
  }
  stage_close(s);
  // A sweep without faults would prove nothing.
  assert_true(fired >= 8);
}

static void allocation__each_failure_is_an_error_that_costs_nothing(
    void **state) {
  sweep_all(*state, FAULT_MEMORY);
}

static void call__each_failure_is_an_error_that_costs_nothing(void **state) {
  sweep_all(*state, FAULT_CALL);
}

int fault_run(stage *s) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(
          allocation__each_failure_is_an_error_that_costs_nothing, s),
      cmocka_unit_test_prestate(
          call__each_failure_is_an_error_that_costs_nothing, s),
  };
  return cmocka_run_group_tests_name(s->name, tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// run.c: runs a program on tensors: each input is moved to where the program
// reads it, checked against what it takes, donated where that was asked for,
// and the outputs become tensors.

#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "bridge/outputs.h"
#include "bridge/program_handle.h"
#include "tensor/dtype.h"

// One run: what was asked, and its lists; moved, buffers and results each lie
// device by device.
typedef struct session {
  ist_program *program;
  const ist_run *run;
  size_t inputs;   // of all devices together
  size_t outputs;  // likewise
  ist_tensor **moved;
  void **buffers;
  void **results;
  size_t *memories;  // that the results lie in
  bool *donate;      // NULL: nothing is
  bool *copied;      // by the backend, to lay it out as the program reads it
} session;

// Small runs, which are most, need no memory of the allocator's.
enum {
  FEW = 16
};

// ---- what was asked for

// Plugins compare byte sizes only, so dtype and shape are compared here: an
// int32 tensor would be taken for float32 without a word.
static ist_code check_input(const ist_program *p, size_t index,
                            const ist_tensor *tensor, ist_error *err) {
  const ist_spec *spec = &p->inputs[index].spec;
  const DLTensor *view = &tensor->view;
  const char *name = p->backend->facts.name;
  if (view->dtype.code != spec->dtype.code ||
      view->dtype.bits != spec->dtype.bits ||
      view->dtype.lanes != spec->dtype.lanes) {
    char has[32], needs[32];
    ist_dtype_name(view->dtype, has, sizeof has);
    ist_dtype_name(spec->dtype, needs, sizeof needs);
    return ist_error_set(err, IST_ERR_DTYPE_MISMATCH,
                         "%s: input %s could not be taken: it is of %s; "
                         "needs %s",
                         name, ist__program_label(p, true, index).text, has,
                         needs);
  }
  bool same = view->ndim == spec->ndim;
  for (int32_t d = 0; same && d < spec->ndim; d++) {
    same = view->shape[d] == spec->shape[d];
  }
  if (same) return IST_OK;
  char has[96], needs[96];
  ist__view_shape_text(view->ndim, view->shape, has, sizeof has);
  ist__view_shape_text(spec->ndim, spec->shape, needs, sizeof needs);
  return ist_error_set(err, IST_ERR_SHAPE_MISMATCH,
                       "%s: input %s could not be taken: its shape is %s; "
                       "needs %s",
                       name, ist__program_label(p, true, index).text, has,
                       needs);
}

static ist_code check_counts(const session *s, ist_error *err) {
  const ist_program *p = s->program;
  const ist_run *run = s->run;
  const char *name = p->backend->facts.name;
  if (run->input_count != s->inputs || run->output_count != s->outputs) {
    return ist_error_set(err, IST_ERR_ARITY,
                         "%s: a program could not be run: %zu inputs and room "
                         "for %zu outputs; needs %zu and %zu",
                         name, run->input_count, run->output_count, s->inputs,
                         s->outputs);
  }
  if ((run->inputs == NULL && run->input_count != 0) ||
      (run->outputs == NULL && run->output_count != 0)) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "%s: a program could not be run: inputs or outputs "
                         "is NULL; needs both",
                         name);
  }
  return IST_OK;
}

static ist_code check_device(const session *s, ist_error *err) {
  const ist_program *p = s->program;
  const ist_device *device = s->run->device;
  if (p->portable ? device != NULL && device->backend == p->backend
                  : device == NULL || device == p->devices[0]) {
    return IST_OK;
  }
  return ist_error_set(err, IST_ERR_ARGUMENT,
                       "%s: a program could not be run: %s; needs %s",
                       p->backend->facts.name,
                       p->portable ? "it is portable, and no device of its "
                                     "backend was named"
                                   : "it was compiled for another device than "
                                     "the one named",
                       p->portable ? "one in ist_run.device" : "none");
}

static ist_code check_run(const session *s, ist_error *err) {
  const ist_run *run = s->run;
  const char *name = s->program->backend->facts.name;
  ist_code code = check_counts(s, err);
  if (code == IST_OK) code = check_device(s, err);
  for (size_t i = 0; code == IST_OK && i < s->inputs; i++) {
    if (run->inputs[i] == NULL) {
      return ist_error_set(err, IST_ERR_ARGUMENT,
                           "%s: a program could not be run: input %zu is "
                           "NULL; needs a tensor",
                           name, i);
    }
    code = check_input(s->program, i % s->program->input_count, run->inputs[i],
                       err);
  }
  for (size_t i = 0; code == IST_OK && i < run->donate_count; i++) {
    if (run->donate == NULL || run->donate[i] >= s->inputs) {
      return ist_error_set(err, IST_ERR_ARGUMENT,
                           "%s: a program could not be run: input %zu was to "
                           "be donated; needs the number of one of its %zu",
                           name, run->donate == NULL ? 0 : run->donate[i],
                           s->inputs);
    }
  }
  return code;
}

// Receipt number index, or NULL: a caller's struct may be shorter than ours.
static ist_receipt *receipt_at(const ist_run *run, size_t index) {
  if (run->receipts == NULL) return NULL;
  char *first = (char *)run->receipts;
  return (ist_receipt *)(void *)(first + index * run->receipts->struct_size);
}

static void clear_run(const ist_run *run) {
  for (size_t i = 0; run->outputs != NULL && i < run->output_count; i++) {
    run->outputs[i] = NULL;
  }
  for (size_t i = 0; run->receipts != NULL && i < run->input_count; i++) {
    ist__outputs_clear(NULL, receipt_at(run, i));
  }
}

// ---- donation

static void because(const session *s, size_t input, int32_t reason) {
  ist_receipt *to = receipt_at(s->run, input);
  if (to == NULL) return;
  ist_receipt known;
  ist__struct_read(&known, sizeof known, to);
  if (known.reason_count >= IST_MAX_REASONS) return;
  known.reasons[known.reason_count++] = (ist_reason){.id = reason};
  ist__struct_write(to, &known, sizeof known);
}

// The tensor itself when it is there already and the caller's is the last
// handle; the copy that was made of it, which only we hold.
static void choose_donated(const session *s) {
  for (size_t k = 0; k < s->run->donate_count; k++) {
    size_t i = s->run->donate[k];
    ist_tensor *tensor = s->moved[i];
    bool itself = tensor == s->run->inputs[i];
    if (ist__tensor_is_spare(tensor, itself ? 2 : 1)) {
      ist__tensor_end_loan(tensor);
      s->donate[i] = true;
    } else if (!s->donate[i]) {
      because(s, i,
              tensor->borrowed_address || tensor->grant != IST_GRANT_WRITABLE
                  ? IST__REASON_NOT_DONATED_FOREIGN
                  : IST__REASON_NOT_DONATED_HELD);
    }
  }
}

// What the program took is gone; donate says now what that is.
static void end_donated(const session *s, const bool *asked) {
  for (size_t i = 0; i < s->inputs; i++) {
    if (!asked[i] || s->copied[i]) continue;
    because(
        s, i,
        s->donate[i] ? IST__REASON_DONATED : IST__REASON_NOT_DONATED_UNTAKEN);
    if (s->donate[i]) ist__tensor_gone(s->moved[i]);
  }
}

// ---- what lay otherwise than the program reads it

static bool has_reason(const ist_receipt *receipt, int32_t reason) {
  for (uint32_t i = 0; i < receipt->reason_count; i++) {
    if (receipt->reasons[i].id == reason) return true;
  }
  return false;
}

// The backend's copy through the host comes after what the route had decided;
// it was no view then.
static void tell_copied(const session *s) {
  for (size_t i = 0; i < s->inputs; i++) {
    ist_receipt *to = receipt_at(s->run, i), known;
    if (!s->copied[i] || to == NULL) continue;
    ist__struct_read(&known, sizeof known, to);
    if (known.route == IST_ROUTE_ALIAS) known.reason_count = 0;
    bool staged = has_reason(&known, IST__REASON_STAGED);
    known.route = IST_ROUTE_STAGE;
    known.hops += 2;
    known.bytes_moved += 2 * s->moved[i]->nbytes;
    ist__struct_write(to, &known, sizeof known);
    because(s, i, IST__REASON_TILED);
    if (!staged) because(s, i, IST__REASON_STAGED);
  }
}

// ---- outputs

static const ist_device *output_device(const session *s, size_t index) {
  const ist_program *p = s->program;
  return p->portable ? s->run->device : p->devices[index / p->output_count];
}

// A buffer that the program made becomes a tensor. The buffer stays with the
// caller on failure.
static ist_code wrap_output(const session *s, size_t index, bool as_told,
                            ist_tensor **out, ist_error *err) {
  const ist_program *p = s->program;
  const ist_device *device = output_device(s, index);
  const ist__argument *a = &p->outputs[index % p->output_count];
  ist_tensor *tensor;
  ist__tensor_facts facts = {.device = device,
                             .memory = s->memories[index],
                             .view = &a->view,
                             .grant = IST_GRANT_WRITABLE};
  if (facts.memory >= device->facts.memory_count) {
    return ist_error_set(err, IST_ERR_BACKEND_ABI,
                         "%s: output %zu could not be taken: it lies in memory "
                         "%zu; needs one of the device's %zu",
                         p->backend->facts.name, index, facts.memory,
                         device->facts.memory_count);
  }
  if (as_told) {
    tensor = ist__tensor_make(&facts, err);
  } else {
    ist_spec spec;
    ist__view view;
    ist_code code =
        ist__backend_inspect(p->backend, s->results[index], &spec, err);
    if (code != IST_OK) return code;
    DLTensor geometry = {.device = {kDLCPU, 0},
                         .ndim = spec.ndim,
                         .dtype = spec.dtype,
                         .shape = spec.shape,
                         .strides = spec.strides};
    code = ist__view_check(&geometry, false, false, &view, err);
    if (code != IST_OK) return code;
    facts.view = &view;
    tensor = ist__tensor_make(&facts, err);
  }
  if (tensor == NULL) return IST_ERR_NO_ALLOCATION;
  tensor->buffer = s->results[index];
  s->results[index] = NULL;
  *out = tensor;
  return IST_OK;
}

static ist_code wrap_outputs(const session *s, bool as_told, ist_error *err) {
  ist_code code = IST_OK;
  for (size_t i = 0; code == IST_OK && i < s->outputs; i++) {
    code = wrap_output(s, i, as_told, &s->run->outputs[i], err);
  }
  if (code == IST_OK) return IST_OK;
  for (size_t i = 0; i < s->outputs; i++) {
    ist_tensor_release(s->run->outputs[i]);
    s->run->outputs[i] = NULL;
    ist__backend_release_buffer(s->program->backend, s->results[i]);
  }
  return code;
}

// ---- the run

static ist_code move_inputs(const session *s, ist_error *err) {
  const ist_program *p = s->program;
  for (size_t i = 0; i < s->inputs; i++) {
    const ist_device *device =
        p->portable ? s->run->device : p->devices[i / p->input_count];
    ist_code code = ist__program_input(p, i % p->input_count, s->run->inputs[i],
                                       device, s->run->options, &s->moved[i],
                                       receipt_at(s->run, i), err);
    if (code != IST_OK) return code;
    s->buffers[i] = s->moved[i]->buffer;
  }
  return IST_OK;
}

static ist_code execute(const session *s, bool *asked, ist_error *err) {
  const ist_program *p = s->program;
  ist_code code = move_inputs(s, err);
  if (code != IST_OK) return code;
  if (s->donate != NULL) {
    choose_donated(s);
    memcpy(asked, s->donate, s->inputs);
  }
  bool as_told = false;
  ist_execution execution = {.struct_size = sizeof execution,
                             .program = p->program,
                             .inputs = s->buffers,
                             .input_count = p->input_count,
                             .outputs = s->results,
                             .output_count = p->output_count,
                             .device_count = p->device_count,
                             .donate = s->donate,
                             .as_told = &as_told,
                             .copied = s->copied,
                             .memories = s->memories};
  const ist_options *options = s->run->options;
  ist_options how = {.struct_size = sizeof how};
  if (options != NULL) ist__struct_read(&how, sizeof how, options);
  execution.never_copy = how.copy == IST_COPY_NEVER;
  for (size_t i = 0; i < s->outputs; i++) {
    s->memories[i] = output_device(s, i)->facts.default_memory;
  }
  if (p->portable) execution.device = s->run->device->index;
  code = ist__backend_execute(p->backend, &execution, err);
  if (code != IST_OK) return code;
  tell_copied(s);
  if (s->donate != NULL) end_donated(s, asked);
  return wrap_outputs(s, as_told, err);
}

static ist_code run_with(session *s, ist_error *err) {
  // [moved inputs][their buffers][results][their memories][donated now, and
  // asked for; copied]
  const ist__env *env = ist__program_env(s->program);
  void *few[3 * FEW];
  size_t few_memories[FEW];
  bool few_told[3 * FEW];
  void *memory = NULL;
  size_t pointers = 2 * s->inputs + s->outputs;
  void **lists = few;
  bool *told = few_told;
  s->memories = few_memories;
  if (s->inputs > FEW || s->outputs > FEW) {
    // Pointers to all of them exist already, so that no size overflows.
    size_t room =
        pointers * sizeof(void *) + s->outputs * sizeof(size_t) + 3 * s->inputs;
    memory = ist__alloc(env, room, sizeof(void *));
    if (memory == NULL) return ist__error_memory(err, "a run", room);
    lists = memory;
    s->memories = (size_t *)(void *)(lists + pointers);
    told = (bool *)(s->memories + s->outputs);
  }
  for (size_t i = 0; i < pointers; i++) lists[i] = NULL;
  s->moved = (ist_tensor **)(void *)lists;
  s->buffers = lists + s->inputs;
  s->results = lists + 2 * s->inputs;
  memset(told, 0, 3 * s->inputs);
  if (s->run->donate_count != 0) s->donate = told;
  s->copied = told + 2 * s->inputs;
  ist_code code = execute(s, told + s->inputs, err);
  for (size_t i = 0; i < s->inputs; i++) ist_tensor_release(s->moved[i]);
  ist__free(env, memory);
  return code;
}

ist_code ist_program_run(ist_program *program, const ist_run *run,
                         ist_error *err) {
  if (program == NULL || !ist__struct_ok(run)) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a program could not be run: program or run is NULL "
                         "or has no struct_size; needs both");
  }
  ist_run known;
  ist__struct_read(&known, sizeof known, run);
  // With no inputs there is room for no receipt.
  if (known.input_count == 0) known.receipts = NULL;
  ist_code code = ist__struct_check(known.receipts, "ist_receipt", err);
  if (code != IST_OK) return code;
  clear_run(&known);
  session s = {.program = program, .run = &known};
  uint64_t inputs, outputs;
  if (!ist__mul_u64(program->input_count, program->device_count, &inputs) ||
      !ist__mul_u64(program->output_count, program->device_count, &outputs)) {
    return ist__error_memory(err, "a run", UINT64_MAX);  // unreachable: memory
  }
  s.inputs = inputs;
  s.outputs = outputs;
  code = check_run(&s, err);
  if (code != IST_OK) return code;
  code = run_with(&s, err);
  if (code != IST_OK) clear_run(&known);
  return code;
}

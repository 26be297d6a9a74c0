// SPDX-License-Identifier: Apache-2.0
// run.c: programs on tensors: each input is moved to the program's device,
// checked against what the program takes, and the outputs become tensors.

#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "bridge/crossing.h"
#include "bridge/outputs.h"
#include "tensor/dtype.h"

struct ist_program {
  ist__refcount refs;
  const ist_device *device;
  void *program;
  size_t input_count;
  size_t output_count;
  ist_spec *inputs;  // both in one allocation
  ist_spec *outputs;
};

static const ist__env *program_env(const ist_program *program) {
  return ist__backend_env(program->device->backend);
}

static ist_code describe(ist_program *p, const ist_program_facts *facts,
                         ist_error *err) {
  ist_backend *backend = p->device->backend;
  // Counts come from a plugin: their product is checked like any other.
  uint64_t count, size;
  if (!ist__add_u64(facts->input_count, facts->output_count, &count) ||
      !ist__mul_u64(count, sizeof(ist_spec), &size)) {
    return ist_error_set(err, IST_ERR_BACKEND_ABI,
                         "%s: a program tells %zu inputs and %zu outputs; "
                         "needs numbers that fit in memory",
                         backend->facts.name, facts->input_count,
                         facts->output_count);
  }
  p->inputs = ist__alloc_zero(program_env(p), (size_t)size);
  if (p->inputs == NULL) return ist__error_memory(err, "a program", size);
  p->outputs = p->inputs + facts->input_count;
  p->input_count = facts->input_count;
  p->output_count = facts->output_count;
  ist_code code = IST_OK;
  for (size_t i = 0; code == IST_OK && i < p->input_count; i++) {
    code = ist__backend_describe_argument(backend, p->program, true, i,
                                          &p->inputs[i], err);
  }
  for (size_t i = 0; code == IST_OK && i < p->output_count; i++) {
    code = ist__backend_describe_argument(backend, p->program, false, i,
                                          &p->outputs[i], err);
  }
  return code;
}

static void program_free(ist_program *p) {
  ist_backend *backend = p->device->backend;
  ist__backend_release_program(backend, p->program);
  ist__free(program_env(p), p->inputs);
  ist__free(program_env(p), p);
  ist_backend_release(backend);
}

ist_code ist_program_compile(const ist_device *device, const void *code_text,
                             size_t size, const ist_program_options *options,
                             ist_program **out, ist_error *err) {
  if (out != NULL) *out = NULL;
  if (device == NULL || code_text == NULL || out == NULL) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a program could not be compiled: device, code or "
                         "out is NULL; needs all three");
  }
  ist_program_options known;
  ist_code fits = ist__options_read(&known, sizeof known, options,
                                    "ist_program_options", err);
  if (fits != IST_OK) return fits;
  ist_backend *backend = device->backend;
  const ist__env *env = ist__backend_env(backend);
  ist_program *p = ist__alloc_zero(env, sizeof *p);
  if (p == NULL) return ist__error_memory(err, "a program", sizeof *p);
  ist__refcount_init(&p->refs);
  p->device = device;
  ist_backend_retain(backend);
  ist_source source = {.struct_size = sizeof source,
                       .code = code_text,
                       .size = size,
                       .name = known.name != NULL ? known.name : "program",
                       .device = device->index};
  ist_code code = ist__backend_compile(backend, &source, &p->program, err);
  ist_program_facts facts;
  if (code == IST_OK) {
    code = ist__backend_describe_program(backend, p->program, &facts, err);
  }
  if (code == IST_OK) code = describe(p, &facts, err);
  if (code != IST_OK) {
    program_free(p);
    return code;
  }
  *out = p;
  return IST_OK;
}

void ist_program_retain(ist_program *program) {
  if (program != NULL) ist__refcount_take(&program->refs);
}

void ist_program_release(ist_program *program) {
  if (program != NULL && ist__refcount_drop(&program->refs)) {
    program_free(program);
  }
}

size_t ist_program_input_count(const ist_program *program) {
  return program == NULL ? 0 : program->input_count;
}

size_t ist_program_output_count(const ist_program *program) {
  return program == NULL ? 0 : program->output_count;
}

static ist_code argument(const ist_spec *specs, size_t count, size_t index,
                         ist_spec *out, ist_error *err) {
  if (!ist__struct_ok(out) || index >= count) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "an argument of a program could not be described: "
                         "number %zu of %zu, or out has no struct_size; needs "
                         "a smaller number and an ist_spec",
                         index, count);
  }
  ist__struct_write(out, &specs[index], sizeof specs[index]);
  return IST_OK;
}

ist_code ist_program_input(const ist_program *program, size_t index,
                           ist_spec *out, ist_error *err) {
  return argument(program != NULL ? program->inputs : NULL,
                  ist_program_input_count(program), index, out, err);
}

ist_code ist_program_output(const ist_program *program, size_t index,
                            ist_spec *out, ist_error *err) {
  return argument(program != NULL ? program->outputs : NULL,
                  ist_program_output_count(program), index, out, err);
}

// ------------------------------------------------------------------- runs --

// Plugins compare byte sizes only, so dtype and shape are compared here: an
// int32 tensor would be taken for float32 without a word.
static ist_code check_input(const ist_program *p, size_t index,
                            const ist_tensor *tensor, ist_error *err) {
  const ist_spec *spec = &p->inputs[index];
  const DLTensor *view = &tensor->view;
  const char *name = p->device->backend->facts.name;
  if (view->dtype.code != spec->dtype.code ||
      view->dtype.bits != spec->dtype.bits ||
      view->dtype.lanes != spec->dtype.lanes) {
    char has[32], needs[32];
    ist_dtype_name(view->dtype, has, sizeof has);
    ist_dtype_name(spec->dtype, needs, sizeof needs);
    return ist_error_set(err, IST_ERR_DTYPE_MISMATCH,
                         "%s: input %zu could not be taken: it is of %s; "
                         "needs %s",
                         name, index, has, needs);
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
                       "%s: input %zu could not be taken: its shape is %s; "
                       "needs %s",
                       name, index, has, needs);
}

static ist_code check_run(const ist_program *p, const ist_run *run,
                          ist_error *err) {
  const char *name = p->device->backend->facts.name;
  if (run->input_count != p->input_count ||
      run->output_count != p->output_count) {
    return ist_error_set(err, IST_ERR_ARITY,
                         "%s: a program could not be run: %zu inputs and room "
                         "for %zu outputs; needs %zu and %zu",
                         name, run->input_count, run->output_count,
                         p->input_count, p->output_count);
  }
  if ((run->inputs == NULL && run->input_count != 0) ||
      (run->outputs == NULL && run->output_count != 0)) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "%s: a program could not be run: inputs or outputs "
                         "is NULL; needs both",
                         name);
  }
  for (size_t i = 0; i < run->input_count; i++) {
    if (run->inputs[i] == NULL) {
      return ist_error_set(err, IST_ERR_ARGUMENT,
                           "%s: a program could not be run: input %zu is "
                           "NULL; needs a tensor",
                           name, i);
    }
    ist_code code = check_input(p, i, run->inputs[i], err);
    if (code != IST_OK) return code;
  }
  return IST_OK;
}

// Receipt number index, or NULL: a caller's struct may be shorter than ours.
static ist_receipt *receipt_at(const ist_run *run, size_t index) {
  if (run->receipts == NULL) return NULL;
  char *first = (char *)run->receipts;
  return (ist_receipt *)(void *)(first + index * run->receipts->struct_size);
}

// The program takes row-major memory (a transposed view would be read as if it
// were not), so the crossing is told that the device takes nothing else.
static ist_code move_input(const ist_program *p, const ist_run *run,
                           size_t index, ist_tensor **out, ist_error *err) {
  ist__target target;
  ist_code code = ist__target_make(p->device, run->options, &target, err);
  if (code != IST_OK) return code;
  ist_capability row_major = *target.capability;
  row_major.layouts = IST_LAYOUT_ROW_MAJOR;
  target.capability = &row_major;
  ist__cargo cargo;
  code = ist__cargo_of_tensor(run->inputs[index], target.options.copy, &cargo,
                              err);
  if (code != IST_OK) return code;
  return ist__cross(&cargo, &target, out, receipt_at(run, index), err);
}

// A buffer that the program made becomes a tensor. The buffer stays with the
// caller on failure.
static ist_code wrap_output(const ist_program *p, void *buffer,
                            ist_tensor **out, ist_error *err) {
  ist_backend *backend = p->device->backend;
  ist_spec spec;
  ist_code code = ist__backend_inspect(backend, buffer, &spec, err);
  if (code != IST_OK) return code;
  size_t memory = p->device->facts.default_memory;
  // Only the geometry is checked: its memory may have no DLPack code at all.
  DLTensor tensor = {.device = {kDLCPU, 0},
                     .ndim = spec.ndim,
                     .dtype = spec.dtype,
                     .shape = spec.shape,
                     .strides = spec.strides};
  ist__view view;
  code = ist__view_check(&tensor, false, false, &view, err);
  if (code != IST_OK) return code;
  ist__tensor_facts facts = {.device = p->device,
                             .memory = memory,
                             .view = &view,
                             .grant = IST_GRANT_WRITABLE};
  *out = ist__tensor_make(&facts, err);
  if (*out == NULL) return IST_ERR_NO_ALLOCATION;
  (*out)->buffer = buffer;
  return IST_OK;
}

static ist_code wrap_outputs(const ist_program *p, const ist_run *run,
                             void **buffers, ist_error *err) {
  ist_code code = IST_OK;
  for (size_t i = 0; code == IST_OK && i < run->output_count; i++) {
    code = wrap_output(p, buffers[i], &run->outputs[i], err);
    if (code == IST_OK) buffers[i] = NULL;
  }
  if (code == IST_OK) return IST_OK;
  for (size_t i = 0; i < run->output_count; i++) {
    ist_tensor_release(run->outputs[i]);
    run->outputs[i] = NULL;
    ist__backend_release_buffer(p->device->backend, buffers[i]);
  }
  return code;
}

static ist_code execute(const ist_program *p, const ist_run *run,
                        ist_tensor **moved, void **buffers, ist_error *err) {
  ist_code code = IST_OK;
  for (size_t i = 0; code == IST_OK && i < p->input_count; i++) {
    code = move_input(p, run, i, &moved[i], err);
    if (code == IST_OK) buffers[i] = moved[i]->buffer;
  }
  if (code != IST_OK) return code;
  ist_execution execution = {.struct_size = sizeof execution,
                             .program = p->program,
                             .inputs = buffers,
                             .input_count = p->input_count,
                             .outputs = buffers + p->input_count,
                             .output_count = p->output_count};
  code = ist__backend_execute(p->device->backend, &execution, err);
  if (code != IST_OK) return code;
  return wrap_outputs(p, run, execution.outputs, err);
}

static void clear_run(const ist_run *run) {
  for (size_t i = 0; run->outputs != NULL && i < run->output_count; i++) {
    run->outputs[i] = NULL;
  }
  for (size_t i = 0; run->receipts != NULL && i < run->input_count; i++) {
    ist__outputs_clear(NULL, receipt_at(run, i));
  }
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
  ist_code code = ist__struct_check(known.receipts, "ist_receipt", err);
  if (code != IST_OK) return code;
  clear_run(&known);
  code = check_run(program, &known, err);
  if (code != IST_OK) return code;
  // [moved inputs][their buffers][output buffers]
  const ist__env *env = program_env(program);
  size_t count = 2 * program->input_count + program->output_count;
  ist_tensor **moved = ist__alloc_zero(env, count * sizeof(void *));
  if (moved == NULL) {
    return ist__error_memory(err, "a run", count * sizeof(void *));
  }
  code = execute(program, &known, moved,
                 (void **)(moved + program->input_count), err);
  if (code != IST_OK) clear_run(&known);
  for (size_t i = 0; i < program->input_count; i++) {
    ist_tensor_release(moved[i]);
  }
  ist__free(env, moved);
  return code;
}

// SPDX-License-Identifier: Apache-2.0
// program_run.c: runs a program, only on what it takes, and wraps what it
// gives.

#include <string.h>

#include "backend/pjrt/buffer.h"
#include "backend/pjrt/program.h"
#include "backend/pjrt/program_tiles.h"
#include "base/alloc.h"
#include "base/checked.h"
#include "tensor/layout.h"
#include "tensor/view.h"

// ---- inputs

static ist_code wrong_shape(const char *name, size_t index,
                            ist__pjrt_tensor *tensor, const ist_spec *want,
                            ist_error *err) {
  char a[160], b[160];
  ist__view_shape_text(tensor->ndim, ist__pjrt_tensor_dims(tensor), a,
                       sizeof a);
  ist__view_shape_text(want->ndim, want->shape, b, sizeof b);
  return ist_error_set(err, IST_ERR_SHAPE_MISMATCH,
                       "%s: the program cannot run: input %zu has shape %s; "
                       "needs %s",
                       name, index, a, b);
}

// True when the tensor lies in the order that the program reads.
static bool same_order(const ist__pjrt_tensor *tensor, const ist_spec *want,
                       bool row_major) {
  if (tensor->count <= 1 || (row_major && !tensor->permuted)) return true;
  ist__pjrt_tensor *t = (ist__pjrt_tensor *)(uintptr_t)tensor;
  int64_t strides[IST_MAX_NDIM];
  if (!ist__layout_from_minor_to_major(t->ndim, ist__pjrt_tensor_dims(t),
                                       ist__pjrt_tensor_order(t), strides)) {
    return false;
  }
  for (int32_t i = 0; i < t->ndim; i++) {
    if (want->shape[i] > 1 && strides[i] != want->strides[i]) return false;
  }
  return true;
}

static ist_code check_input(const ist__pjrt_client *client,
                            const ist__pjrt_program *p, size_t device,
                            size_t index, ist__pjrt_tensor *tensor,
                            ist_error *err) {
  const char *name = client->plugin.pjrt.name;
  const ist_spec *want = &p->signature->specs[index];
  const ist__pjrt_argument *argument = &p->signature->arguments[index];
  if (tensor->memory->device != client->devices[device].device) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "%s: the program cannot run: input %zu is on another "
                         "device; needs device %zu",
                         name, index, device);
  }
  if (tensor->dynamic) {
    return ist_error_set(err, IST_ERR_DYNAMIC_SHAPE,
                         "%s: the program cannot run: input %zu has dynamic "
                         "dimensions, padded on the device; needs a dense copy "
                         "of it",
                         name, index);
  }
  if (tensor->dtype != argument->dtype) {
    return ist_error_set(err, IST_ERR_DTYPE_MISMATCH,
                         "%s: the program cannot run: input %zu is %s; needs "
                         "%s",
                         name, index, tensor->dtype->name,
                         argument->dtype->name);
  }
  if (tensor->ndim != want->ndim ||
      (want->ndim > 0 && memcmp(ist__pjrt_tensor_dims(tensor), want->shape,
                                (size_t)want->ndim * sizeof(int64_t)) != 0)) {
    return wrong_shape(name, index, tensor, want, err);
  }
  if (ist__pjrt_tiles_matter(tensor, argument) ||
      same_order(tensor, want, argument->row_major)) {
    return IST_OK;
  }
  return ist_error_set(err, IST_ERR_TARGET_LAYOUT,
                       "%s: the program cannot run: input %zu is laid out in "
                       "another order; needs the program's, row-major as a "
                       "rule",
                       name, index);
}

// ---- outputs

static const ist__pjrt_memory *memory_of(const ist__pjrt_client *client,
                                         size_t device, PJRT_Buffer *buffer) {
  const ist__pjrt_device *d = &client->devices[device];
  const ist__pjrt_memory *found =
      &d->memories[client->facts[device].default_memory];
  IST_PJRT_ARGS(PJRT_Buffer_Memory_Args, get);
  get.buffer = buffer;
  if (ist__pjrt_call(&client->plugin.pjrt, IST_SLOT_Buffer_Memory, &get,
                     NULL) != IST_OK) {
    return found;
  }
  for (size_t m = 0; m < d->memory_count; m++) {
    if (d->memories[m].memory == get.memory) found = &d->memories[m];
  }
  return found;
}

// One run, on the lists of a program.
typedef struct execution {
  ist__pjrt_client *client;
  const ist__pjrt_program *program;
  const ist_execution *asked;
  size_t lists;
  PJRT_Buffer **buffers;  // inputs of all lists, then outputs of all
  int64_t *kept;
  PJRT_Buffer *const **arguments;
  PJRT_Buffer ***results;
} execution;

// The device of the caller's list number i.
static size_t device_of(const execution *e, size_t list) {
  return e->program->portable ? e->asked->device : e->program->devices[list];
}

static ist_code no_output(const ist__pjrt *pjrt, size_t index, ist_error *err) {
  return ist_error_set(err, IST_ERR_PLUGIN,
                       "%s: the program ran but gave no output %zu; needs a "
                       "working plugin",
                       pjrt->name, index);
}

static ist_code untold_output(const execution *e, size_t index,
                              const char *what, ist_error *err) {
  return ist_error_set(err, IST_ERR_PLUGIN,
                       "%s: output %zu cannot be a tensor: its %s is not what "
                       "the program's signature tells; needs a working plugin",
                       e->client->plugin.pjrt.name, index, what);
}

// What decides how much memory is read is asked in every run. The order and the
// memory decide nothing before a loan, which asks for them.
static ist_code check_told(const execution *e, size_t index,
                           PJRT_Buffer *buffer, ist_error *err) {
  const ist__pjrt *pjrt = &e->client->plugin.pjrt;
  const ist__pjrt_signature *s = e->program->signature;
  const ist_spec *spec = &s->specs[s->input_count + index];
  IST_PJRT_ARGS(PJRT_Buffer_ElementType_Args, type);
  type.buffer = buffer;
  ist_code code = ist__pjrt_call(pjrt, IST_SLOT_Buffer_ElementType, &type, err);
  if (code != IST_OK) return code;
  if (type.type != s->arguments[s->input_count + index].dtype->pjrt) {
    return untold_output(e, index, "dtype", err);
  }
  IST_PJRT_ARGS(PJRT_Buffer_Dimensions_Args, dims);
  dims.buffer = buffer;
  code = ist__pjrt_call(pjrt, IST_SLOT_Buffer_Dimensions, &dims, err);
  if (code != IST_OK) return code;
  bool same = dims.num_dims == (size_t)spec->ndim &&
              (spec->ndim == 0 || dims.dims != NULL);
  for (int32_t i = 0; same && i < spec->ndim; i++) {
    same = dims.dims[i] == spec->shape[i];
  }
  return same ? IST_OK : untold_output(e, index, "shape", err);
}

// A buffer that was found to be as the signature tells in a run before.
static ist_code wrap_as_told(const execution *e, size_t index,
                             const ist__pjrt_memory *memory,
                             PJRT_Buffer *buffer, ist__pjrt_tensor **out,
                             ist_error *err) {
  const ist__pjrt_signature *s = e->program->signature;
  const ist_spec *spec = &s->specs[s->input_count + index];
  const ist__pjrt_argument *argument = &s->arguments[s->input_count + index];
  ist_code code = check_told(e, index, buffer, err);
  if (code != IST_OK) return code;
  ist__pjrt_tensor *tensor = ist__pjrt_tensor_make(e->client, spec->ndim, err);
  if (tensor == NULL) return IST_ERR_NO_ALLOCATION;
  int64_t *dims = ist__pjrt_tensor_dims(tensor);
  for (int32_t i = 0; i < spec->ndim; i++) dims[i] = spec->shape[i];
  int64_t *order = ist__pjrt_tensor_order(tensor);
  for (int32_t i = 0; i < spec->ndim; i++) order[i] = spec->ndim - 1 - i;
  if (!argument->row_major) {
    ist__layout_minor_to_major(spec->ndim, spec->shape, spec->strides, order);
  }
  ist__pjrt_tensor_count(tensor);
  tensor->memory = memory;
  tensor->dtype = argument->dtype;
  tensor->permuted = !argument->row_major;
  tensor->buffer = buffer;
  *out = tensor;
  return IST_OK;
}

static bool is_as_told(const ist__pjrt_signature *s, size_t index,
                       ist__pjrt_tensor *tensor) {
  const ist_spec *spec = &s->specs[s->input_count + index];
  const ist__pjrt_argument *argument = &s->arguments[s->input_count + index];
  bool same = !argument->dynamic && !tensor->dynamic && !tensor->tiled &&
              argument->layout.dense && tensor->dtype == argument->dtype &&
              tensor->ndim == spec->ndim &&
              tensor->permuted == !argument->row_major;
  for (int32_t i = 0; same && i < spec->ndim; i++) {
    same = ist__pjrt_tensor_dims(tensor)[i] == spec->shape[i];
  }
  return same && same_order(tensor, spec, argument->row_major);
}

// What contradicts the signature is no tensor, and the description is freed.
// A dimension that may be shorter has its most in the signature.
static ist_code check_signature(const execution *e, size_t index,
                                ist__pjrt_tensor **out, ist_error *err) {
  const ist__pjrt_signature *s = e->program->signature;
  const ist_spec *spec = &s->specs[s->input_count + index];
  const ist__pjrt_argument *argument = &s->arguments[s->input_count + index];
  ist__pjrt_tensor *tensor = *out;
  bool open = argument->dynamic || tensor->dynamic;
  bool same = tensor->ndim == spec->ndim;
  for (int32_t i = 0; same && i < spec->ndim; i++) {
    int64_t extent = ist__pjrt_tensor_dims(tensor)[i];
    same = extent == spec->shape[i] || (open && extent < spec->shape[i]);
  }
  if (same && tensor->dtype == argument->dtype) return IST_OK;
  const char *what = same ? "dtype" : "shape";
  *out = NULL;
  ist__free(e->client->env, tensor);
  return untold_output(e, index, what, err);
}

static ist_code wrap_output(const execution *e, size_t list, size_t index,
                            PJRT_Buffer *buffer, bool *as_told,
                            ist__pjrt_tensor **out, ist_error *err) {
  const ist__pjrt_signature *s = e->program->signature;
  size_t device = device_of(e, list);
  _Atomic(const ist__pjrt_memory *) *seen =
      &e->program->seen[list * s->output_count + index];
  const ist__pjrt_memory *memory =
      atomic_load_explicit(seen, memory_order_relaxed);
  if (memory != NULL && memory->device == e->client->devices[device].device) {
    return wrap_as_told(e, index, memory, buffer, out, err);
  }
  memory = memory_of(e->client, device, buffer);
  ist_code code = ist__pjrt_tensor_of(e->client, memory, buffer, out, err);
  if (code == IST_OK) code = check_signature(e, index, out, err);
  if (code != IST_OK) return code;
  if (is_as_told(s, index, *out)) {
    atomic_store_explicit(seen, memory, memory_order_relaxed);
  } else {
    *as_told = false;
  }
  return code;
}

// Wraps all buffers, or destroys all of them.
static ist_code wrap_outputs(const execution *e, PJRT_Buffer **buffers,
                             ist_error *err) {
  const ist__pjrt *pjrt = &e->client->plugin.pjrt;
  size_t each = e->program->signature->output_count;
  size_t all = each * e->lists;
  void **outputs = e->asked->outputs;
  ist_code code = IST_OK;
  bool as_told = true;
  for (size_t i = 0; i < all && code == IST_OK; i++) {
    ist__pjrt_tensor *tensor = NULL;
    code = buffers[i] == NULL ? no_output(pjrt, i % each, err)
                              : wrap_output(e, i / each, i % each, buffers[i],
                                            &as_told, &tensor, err);
    outputs[i] = tensor;
    if (code == IST_OK && e->asked->memories != NULL) {
      const ist__pjrt_device *d = &e->client->devices[device_of(e, i / each)];
      e->asked->memories[i] = (size_t)(tensor->memory - d->memories);
    }
  }
  for (size_t i = 0; i < all && code != IST_OK; i++) {
    if (outputs[i] != NULL) {
      ist__pjrt_release(e->client, outputs[i]);
    } else {
      ist__pjrt_destroy(pjrt, buffers[i]);
    }
    outputs[i] = NULL;
  }
  if (e->asked->as_told != NULL) *e->asked->as_told = as_told;
  return code;
}

// ---- the call

// A donated buffer is told by the plugin to be deleted; what it does not tell
// is not used again.
static void read_donated(const execution *e) {
  size_t all = e->program->signature->input_count * e->lists;
  for (size_t i = 0; e->asked->donate != NULL && i < all; i++) {
    if (!e->asked->donate[i]) continue;
    const ist__pjrt_tensor *tensor = e->asked->inputs[i];
    IST_PJRT_ARGS(PJRT_Buffer_IsDeleted_Args, ask);
    ask.buffer = tensor->buffer;
    ask.is_deleted = true;
    if (ist__pjrt_call(&e->client->plugin.pjrt, IST_SLOT_Buffer_IsDeleted, &ask,
                       NULL) != IST_OK) {
      ask.is_deleted = true;
    }
    e->asked->donate[i] = ask.is_deleted;
  }
}

// An argument may be donated when every list's may.
static size_t list_kept(const execution *e) {
  size_t inputs = e->program->signature->input_count, count = 0;
  for (size_t i = 0; i < inputs; i++) {
    bool keep = e->asked->donate == NULL;
    for (size_t l = 0; l < e->lists && !keep; l++) {
      const ist__pjrt_tensor *tensor = e->asked->inputs[l * inputs + i];
      keep = !e->asked->donate[l * inputs + i] || tensor->is_borrowed;
    }
    if (keep) e->kept[count++] = (int64_t)i;
  }
  for (size_t k = 0; e->asked->donate != NULL && k < count; k++) {
    for (size_t l = 0; l < e->lists; l++) {
      e->asked->donate[l * inputs + (size_t)e->kept[k]] = false;
    }
  }
  return count;
}

// A plugin refuses a deleted input in words of its own; it is told by its code.
static ist_code name_deleted(const execution *e, ist_code code,
                             ist_error *err) {
  const ist__pjrt *pjrt = &e->client->plugin.pjrt;
  size_t inputs = e->program->signature->input_count;
  for (size_t i = 0; code == IST_ERR_PLUGIN && i < inputs * e->lists; i++) {
    if (ist__pjrt_alive(pjrt, e->buffers[i], NULL) != IST_ERR_DELETED) continue;
    return ist_error_set(err, IST_ERR_DELETED,
                         "%s: the program cannot run: input %zu was deleted "
                         "or given away; needs one that lives",
                         pjrt->name, i % inputs);
  }
  return code;
}

// Lists the inputs' buffers, or copies of those that lie otherwise than the
// program reads them; what was copied is not given away.
static ist_code list_inputs(const execution *e, ist_error *err) {
  const ist__pjrt_signature *s = e->program->signature;
  const ist_execution *asked = e->asked;
  ist_code code = IST_OK;
  for (size_t i = 0; i < s->input_count * e->lists && code == IST_OK; i++) {
    size_t index = i % s->input_count;
    ist__pjrt_tensor *tensor = asked->inputs[i];
    PJRT_Buffer *copy = NULL;
    e->buffers[i] = tensor->buffer;
    if (!ist__pjrt_tiles_matter(tensor, &s->arguments[index])) continue;
    ist__tiled_input input = {e->client,
                              tensor,
                              &s->arguments[index],
                              device_of(e, i / s->input_count),
                              index,
                              !asked->never_copy};
    code = ist__pjrt_lay_out(&input, &copy, err);
    if (copy == NULL) continue;
    e->buffers[i] = copy;
    if (asked->copied != NULL) asked->copied[i] = true;
    if (asked->donate != NULL) asked->donate[i] = false;
  }
  return code;
}

// Ends the copies, which the plugin keeps for as long as it reads them.
static void end_copies(const execution *e) {
  size_t all = e->program->signature->input_count * e->lists;
  for (size_t i = 0; i < all; i++) {
    const ist__pjrt_tensor *tensor = e->asked->inputs[i];
    if (e->buffers[i] != NULL && e->buffers[i] != tensor->buffer) {
      ist__pjrt_destroy(&e->client->plugin.pjrt, e->buffers[i]);
    }
  }
}

static ist_code call(const execution *e, ist_error *err) {
  const ist__pjrt_program *p = e->program;
  size_t inputs = p->signature->input_count;
  size_t outputs = p->signature->output_count;
  PJRT_Buffer **results = e->buffers + inputs * e->lists;
  for (size_t i = 0; i < e->lists; i++) {
    size_t list = p->portable ? 0 : p->lists[i];
    e->arguments[i] = e->buffers + list * inputs;
    e->results[i] = results + list * outputs;
  }
  // Options may not be NULL. What is not to be donated is listed: isthmus's
  // tensors stay what they are, whatever aliasing the program asks for.
  PJRT_ExecuteOptions options = {.struct_size = PJRT_ExecuteOptions_SIZE};
  options.non_donatable_input_indices = e->kept;
  options.num_non_donatable_input_indices = list_kept(e);
  IST_PJRT_ARGS(PJRT_LoadedExecutable_Execute_Args, execute);
  execute.executable = p->executable;
  execute.options = &options;
  execute.argument_lists = e->arguments;
  execute.num_devices = e->lists;
  execute.num_args = inputs;
  execute.output_lists = e->results;
  if (p->portable) {
    execute.execute_device = e->client->devices[e->asked->device].device;
  }
  ist_code code =
      ist__pjrt_call(&e->client->plugin.pjrt, IST_SLOT_LoadedExecutable_Execute,
                     &execute, err);
  if (code != IST_OK) return name_deleted(e, code, err);
  read_donated(e);
  return wrap_outputs(e, results, err);
}

static ist_code check(const execution *e, ist_error *err) {
  const ist__pjrt_program *p = e->program;
  const ist_execution *asked = e->asked;
  const char *name = e->client->plugin.pjrt.name;
  size_t inputs = p->signature->input_count;
  if (asked->input_count != inputs ||
      asked->output_count != p->signature->output_count) {
    return ist_error_set(err, IST_ERR_ARITY,
                         "%s: the program cannot run: %zu inputs and %zu "
                         "outputs were given; needs %zu and %zu",
                         name, asked->input_count, asked->output_count, inputs,
                         p->signature->output_count);
  }
  if (e->lists != p->device_count ||
      (p->portable && asked->device >= e->client->device_count)) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "%s: the program cannot run: it was given inputs for "
                         "%zu devices, or a device that is not there; needs "
                         "%zu",
                         name, e->lists, p->device_count);
  }
  ist_code code = IST_OK;
  for (size_t i = 0; i < inputs * e->lists && code == IST_OK; i++) {
    code = check_input(e->client, p, device_of(e, i / inputs), i % inputs,
                       asked->inputs[i], err);
  }
  return code;
}

// Small runs, which are most, need no memory of the allocator's.
enum {
  FEW_BUFFERS = 24,
  FEW_LISTS = 4
};

ist_code ist__pjrt_execute(void *self, const ist_execution *asked,
                           ist_error *err) {
  ist__pjrt_client *client = self;
  const ist__pjrt_program *p = asked->program;
  execution e = {.client = client, .program = p, .asked = asked};
  e.lists = asked->device_count == 0 ? 1 : asked->device_count;
  ist_code code = check(&e, err);
  if (code != IST_OK) return code;
  PJRT_Buffer *few_buffers[FEW_BUFFERS];
  int64_t few_kept[FEW_BUFFERS];
  PJRT_Buffer *const *few_arguments[FEW_LISTS];
  PJRT_Buffer **few_results[FEW_LISTS];
  size_t inputs = p->signature->input_count;
  size_t buffers = (inputs + p->signature->output_count) * e.lists;
  void *memory = NULL;
  e.buffers = few_buffers;
  e.kept = few_kept;
  e.arguments = few_arguments;
  e.results = few_results;
  if (buffers > FEW_BUFFERS || e.lists > FEW_LISTS) {
    // Every pointer, and every number of an input, has its own place.
    uint64_t size;
    if (!ist__mul_u64(buffers + inputs + 2 * e.lists, 8, &size) ||
        (memory = ist__alloc(client->env, (size_t)size, 8)) == NULL) {
      return ist__error_memory(err, "a run's arguments", buffers);
    }
    e.buffers = memory;
    e.kept = (int64_t *)(void *)(e.buffers + buffers);
    e.arguments = (PJRT_Buffer *const **)(void *)(e.kept + inputs);
    e.results = (PJRT_Buffer ***)(void *)(e.arguments + e.lists);
  }
  memset(e.buffers, 0, buffers * sizeof(PJRT_Buffer *));
  code = list_inputs(&e, err);
  if (code == IST_OK) code = call(&e, err);
  end_copies(&e);
  ist__free(client->env, memory);
  return code;
}

// SPDX-License-Identifier: Apache-2.0
// program.c: compiles a StableHLO program for one device and runs it, only on
// what it takes.

#include "backend/pjrt/program.h"

#include <inttypes.h>
#include <string.h>

#include "backend/pjrt/buffer.h"
#include "backend/pjrt/pjrt_tensor.h"
#include "backend/pjrt/program_text.h"
#include "backend/pjrt/signature.h"
#include "base/alloc.h"
#include "tensor/view.h"

typedef struct program {
  PJRT_LoadedExecutable *executable;
  size_t device;
  ist__pjrt_signature *signature;
} program;

static void destroy_loaded(const ist__pjrt *pjrt,
                           PJRT_LoadedExecutable *executable) {
  if (executable == NULL) return;
  IST_PJRT_ARGS(PJRT_LoadedExecutable_Destroy_Args, destroy);
  destroy.executable = executable;
  ist__pjrt_end(pjrt, IST_SLOT_LoadedExecutable_Destroy, &destroy);
}

// ---- compiling

// The smallest CompileOptionsProto that plugins take and that names a device:
// executable_build_options (3) with num_replicas (4) and num_partitions (5) of
// 1 and a device_assignment (9) of replica_count (1), computation_count (2)
// and one computation_devices (3) with one replica_device_ids (1). The
// device_ordinal there is read by none of the plugins tried.
static size_t write_options(int64_t device_id, char *out) {
  char id[10];
  size_t n = 0;
  uint64_t rest = (uint64_t)device_id;
  do {
    id[n++] = (char)((rest & 127) | (rest > 127 ? 128 : 0));
    rest >>= 7;
  } while (rest != 0);
  const char head[] = {3 << 3 | 2, (char)(n + 13), 4 << 3, 1, 5 << 3, 1,
                       9 << 3 | 2, (char)(n + 7),  1 << 3, 1, 2 << 3, 1,
                       3 << 3 | 2, (char)(n + 1),  1 << 3};
  memcpy(out, head, sizeof head);
  memcpy(out + sizeof head, id, n);
  return sizeof head + n;
}

static ist_code compile_code(const ist__pjrt_client *client,
                             const ist_source *source,
                             PJRT_LoadedExecutable **out, ist_error *err) {
  static const char format[] = "mlir";
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  char options[32];
  PJRT_Program text = {.struct_size = PJRT_Program_SIZE};
  // The plugin reads the code only; the ABI has the pointer without const.
  text.code = (char *)(uintptr_t)source->code;
  text.code_size = source->size;
  text.format = format;
  text.format_size = sizeof format - 1;
  IST_PJRT_ARGS(PJRT_Client_Compile_Args, compile);
  compile.client = client->client;
  compile.program = &text;
  compile.compile_options = options;
  compile.compile_options_size =
      write_options(client->facts[source->device].id, options);
  ist_error cause;
  ist_code code = ist__pjrt_call_as(pjrt, IST_SLOT_Client_Compile, &compile,
                                    IST_ERR_PROGRAM, &cause);
  if (code == IST_OK && compile.executable == NULL) {
    return ist_error_set(err, IST_ERR_PLUGIN,
                         "%s: %s gave no executable and no error; needs a "
                         "working plugin",
                         pjrt->name,
                         ist__pjrt_slot_name(IST_SLOT_Client_Compile));
  }
  if (code != IST_OK) {
    const char *version = client->plugin.stablehlo;
    return ist__error_native(
        err, code, cause.native,
        "%s could not be compiled: %s; the plugin reads StableHLO up to %s; "
        "needs a program that it reads, as text for the portable form",
        source->name, cause.message,
        version[0] != '\0' ? version : "a version that it does not tell");
  }
  *out = compile.executable;
  return IST_OK;
}

// Compiled for one device, an all_reduce over two gives its own input.
static ist_code refuse_copies(const ist__pjrt *pjrt, const ist_source *source,
                              ist_error *err) {
  uint64_t copies = ist__program_text_copies(source->code, source->size);
  if (copies > 1) {
    return ist_error_set(err, IST_ERR_NOT_IN_VERSION,
                         "not in this version: %s on %s: it is written for "
                         "%" PRIu64
                         " replicas or partitions; needs a program for one "
                         "device",
                         source->name, pjrt->name, copies);
  }
  const char *name = ist__program_text_collective(source->code, source->size);
  if (name == NULL) return IST_OK;
  return ist_error_set(err, IST_ERR_NOT_IN_VERSION,
                       "not in this version: %s on %s: it has %s, which is "
                       "for several replicas or partitions; needs a program "
                       "for one device",
                       source->name, pjrt->name, name);
}

ist_code ist__pjrt_compile(void *self, const ist_source *source, void **out,
                           ist_error *err) {
  ist__pjrt_client *client = self;
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  if (source->size == 0) {
    return ist_error_set(err, IST_ERR_PROGRAM,
                         "%s could not be compiled for %s: it is empty; needs "
                         "StableHLO text or bytecode",
                         source->name, pjrt->name);
  }
  ist_code code = refuse_copies(pjrt, source, err);
  if (code != IST_OK) return code;
  program *p = ist__alloc_zero(client->env, sizeof *p);
  if (p == NULL) return ist__error_memory(err, "a program", sizeof *p);
  p->device = source->device;
  code = compile_code(client, source, &p->executable, err);
  if (code == IST_OK) {
    code = ist__pjrt_signature_read(client, p->executable, &p->signature, err);
  }
  if (code == IST_OK) {
    *out = p;
  } else {
    ist__pjrt_release_program(client, p);
  }
  return code;
}

void ist__pjrt_release_program(void *self, void *pointer) {
  ist__pjrt_client *client = self;
  program *p = pointer;
  destroy_loaded(&client->plugin.pjrt, p->executable);
  ist__free(client->env, p->signature);
  ist__free(client->env, p);
}

ist_code ist__pjrt_describe_program(void *self, void *pointer,
                                    ist_program_facts *out, ist_error *err) {
  (void)self;
  (void)err;
  const program *p = pointer;
  out->input_count = p->signature->input_count;
  out->output_count = p->signature->output_count;
  return IST_OK;
}

ist_code ist__pjrt_describe_input(void *self, void *pointer, size_t index,
                                  ist_spec *out, ist_error *err) {
  (void)self;
  const program *p = pointer;
  if (index >= p->signature->input_count) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "pjrt: the program has no input %zu; needs one of "
                         "its %zu",
                         index, p->signature->input_count);
  }
  *out = p->signature->specs[index];
  return IST_OK;
}

ist_code ist__pjrt_describe_output(void *self, void *pointer, size_t index,
                                   ist_spec *out, ist_error *err) {
  (void)self;
  const program *p = pointer;
  if (index >= p->signature->output_count) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "pjrt: the program has no output %zu; needs one of "
                         "its %zu",
                         index, p->signature->output_count);
  }
  *out = p->signature->specs[p->signature->input_count + index];
  return IST_OK;
}

// ---- running

static ist_code check_padding(const ist__pjrt_client *client, size_t index,
                              const ist__pjrt_tensor *tensor, ist_error *err) {
  if (!tensor->dynamic) return IST_OK;
  return ist_error_set(err, IST_ERR_DYNAMIC_SHAPE,
                       "%s: the program cannot run: input %zu has dynamic "
                       "dimensions, padded on the device; needs a copy of it "
                       "(copy=always)",
                       client->plugin.pjrt.name, index);
}

static ist_code check_input(const ist__pjrt_client *client, const program *p,
                            size_t index, ist__pjrt_tensor *tensor,
                            ist_error *err) {
  const char *name = client->plugin.pjrt.name;
  const ist_spec *want = &p->signature->specs[index];
  ist_spec have;
  ist__pjrt_inspect((void *)(uintptr_t)client, tensor, &have, err);
  if (tensor->memory->device != client->devices[p->device].device) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "%s: the program cannot run: input %zu is on another "
                         "device; needs the program's",
                         name, index);
  }
  if (have.dtype.code != want->dtype.code ||
      have.dtype.bits != want->dtype.bits) {
    return ist_error_set(err, IST_ERR_DTYPE_MISMATCH,
                         "%s: the program cannot run: input %zu is %s; needs "
                         "%s",
                         name, index, tensor->dtype->name,
                         ist__dtype_find(want->dtype)->name);
  }
  bool same = have.ndim == want->ndim;
  for (int32_t i = 0; same && i < have.ndim; i++) {
    same = have.shape[i] == want->shape[i];
  }
  if (!same) {
    char a[160], b[160];
    ist__view_shape_text(have.ndim, have.shape, a, sizeof a);
    ist__view_shape_text(want->ndim, want->shape, b, sizeof b);
    return ist_error_set(err, IST_ERR_SHAPE_MISMATCH,
                         "%s: the program cannot run: input %zu has shape %s; "
                         "needs %s",
                         name, index, a, b);
  }
  for (int32_t i = 0; same && i < have.ndim; i++) {
    same = have.shape[i] <= 1 || have.strides[i] == want->strides[i];
  }
  if (!same && tensor->count > 1) {
    return ist_error_set(err, IST_ERR_TARGET_LAYOUT,
                         "%s: the program cannot run: input %zu is laid out "
                         "in another order; needs the program's, row-major "
                         "as a rule",
                         name, index);
  }
  return IST_OK;
}

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

// Wraps all buffers, or destroys all of them.
static ist_code wrap_outputs(ist__pjrt_client *client, const program *p,
                             PJRT_Buffer **buffers, void **outputs,
                             ist_error *err) {
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  ist_code code = IST_OK;
  size_t done = 0;
  for (; done < p->signature->output_count && code == IST_OK; done++) {
    ist__pjrt_tensor *tensor = NULL;
    if (buffers[done] == NULL) {
      code = ist_error_set(err, IST_ERR_PLUGIN,
                           "%s: the program ran but gave no output %zu; needs "
                           "a working plugin",
                           pjrt->name, done);
    } else {
      code = ist__pjrt_tensor_of(client,
                                 memory_of(client, p->device, buffers[done]),
                                 buffers[done], &tensor, err);
    }
    outputs[done] = tensor;
  }
  if (code == IST_OK) return code;
  for (size_t i = 0; i < p->signature->output_count; i++) {
    if (outputs[i] != NULL) {
      ist__pjrt_release(client, outputs[i]);
    } else {
      ist__pjrt_destroy(pjrt, buffers[i]);
    }
    outputs[i] = NULL;
  }
  return code;
}

static ist_code run(ist__pjrt_client *client, const program *p,
                    PJRT_Buffer **inputs, int64_t *kept, PJRT_Buffer **outputs,
                    ist_error *err) {
  // Options may not be NULL. No input may be donated: isthmus's tensors stay
  // what they are, whatever aliasing the program asks for.
  PJRT_ExecuteOptions options = {.struct_size = PJRT_ExecuteOptions_SIZE};
  options.non_donatable_input_indices = kept;
  options.num_non_donatable_input_indices = p->signature->input_count;
  PJRT_Buffer *const *argument_lists[1] = {inputs};
  PJRT_Buffer **output_lists[1] = {outputs};
  IST_PJRT_ARGS(PJRT_LoadedExecutable_Execute_Args, execute);
  execute.executable = p->executable;
  execute.options = &options;
  execute.argument_lists = argument_lists;
  execute.num_devices = 1;
  execute.num_args = p->signature->input_count;
  execute.output_lists = output_lists;
  return ist__pjrt_call(&client->plugin.pjrt, IST_SLOT_LoadedExecutable_Execute,
                        &execute, err);
}

// A plugin refuses a deleted input in words of its own; it is told by its code.
static ist_code name_deleted(const ist__pjrt *pjrt, PJRT_Buffer *const *inputs,
                             size_t count, ist_code code, ist_error *err) {
  for (size_t i = 0; code == IST_ERR_PLUGIN && i < count; i++) {
    if (ist__pjrt_alive(pjrt, inputs[i], NULL) != IST_ERR_DELETED) continue;
    return ist_error_set(err, IST_ERR_DELETED,
                         "%s: the program cannot run: input %zu was deleted "
                         "or given away; needs one that lives",
                         pjrt->name, i);
  }
  return code;
}

ist_code ist__pjrt_execute(void *self, const ist_execution *execution,
                           ist_error *err) {
  ist__pjrt_client *client = self;
  const program *p = execution->program;
  const char *name = client->plugin.pjrt.name;
  if (execution->input_count != p->signature->input_count ||
      execution->output_count != p->signature->output_count) {
    return ist_error_set(err, IST_ERR_ARITY,
                         "%s: the program cannot run: %zu inputs and %zu "
                         "outputs were given; needs %zu and %zu",
                         name, execution->input_count, execution->output_count,
                         p->signature->input_count, p->signature->output_count);
  }
  ist_code code = IST_OK;
  for (size_t i = 0; i < p->signature->input_count && code == IST_OK; i++) {
    code = check_padding(client, i, execution->inputs[i], err);
    if (code != IST_OK) break;
    code = check_input(client, p, i, execution->inputs[i], err);
  }
  if (code != IST_OK) return code;
  size_t slots = p->signature->input_count + p->signature->output_count;
  size_t room = slots * sizeof(PJRT_Buffer *) +
                p->signature->input_count * sizeof(int64_t);
  PJRT_Buffer **buffers = ist__alloc_zero(client->env, room + 1);
  if (buffers == NULL) return ist__error_memory(err, "a run's arguments", room);
  int64_t *kept = (int64_t *)(void *)(buffers + slots);
  for (size_t i = 0; i < p->signature->input_count; i++) {
    buffers[i] = ((ist__pjrt_tensor *)execution->inputs[i])->buffer;
    kept[i] = (int64_t)i;
  }
  PJRT_Buffer **outputs = buffers + p->signature->input_count;
  code = run(client, p, buffers, kept, outputs, err);
  code = name_deleted(&client->plugin.pjrt, buffers, p->signature->input_count,
                      code, err);
  if (code == IST_OK) {
    code = wrap_outputs(client, p, outputs, execution->outputs, err);
  }
  ist__free(client->env, buffers);
  return code;
}

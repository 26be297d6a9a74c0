// SPDX-License-Identifier: Apache-2.0
// The lying plugin's programs: one line "lying.NAME TYPE DIM DIM ...", with one
// parameter and one result of that type (a number) and shape, executed for
// real. NAME is identity, add_one_f32, fail, donate (identity, in the memory of
// its input), pair (two results) or dynamic (the first dimension comes out one
// shorter than it is told). A little StableHLO is known, too: x + x, and x.

#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>

#include "lying.h"

static void program_drop(lying_program *p) {
  pthread_mutex_lock(&lying.lock);
  bool last = --p->uses == 0;
  pthread_mutex_unlock(&lying.lock);
  if (!last) return;
  lying_program_layouts_free(p);
  free(p);
}

PJRT_Error *lying_program_load(PJRT_Client *client, const char *code,
                               size_t size, size_t device,
                               PJRT_LoadedExecutable **out) {
  lying_program *p = calloc(1, sizeof *p);
  PJRT_LoadedExecutable *e = calloc(1, sizeof *e);
  if (p == NULL || e == NULL) abort();
  p->uses = 1;
  PJRT_Error *error = lying_program_parse(p, code, size);
  if (error != NULL) {
    free(p);
    free(e);
    return error;
  }
  p->device_number = device;
  if (device < client->device_count) p->device = client->devices[device];
  lying_program_write_hlo(p);
  e->magic = LYING_MAGIC_EXEC;
  e->program = p;
  atomic_fetch_add(&lying.executables, 1);
  *out = e;
  return NULL;
}

LYING_SLOT(Client_Compile) {
  PJRT_Client_Compile_Args *a = args;
  if (a->compile_options_size == 0) {
    lying_violate("Compile: options without replicas and partitions");
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT, "no options");
  }
  // The options end with the device's number where they name one.
  size_t device = 0;
  if (a->compile_options_size > 8)
    device = (size_t)a->compile_options[a->compile_options_size - 1];
  return lying_program_load(a->client, a->program->code, a->program->code_size,
                            device, &a->executable);
}

LYING_SLOT(LoadedExecutable_Destroy) {
  PJRT_LoadedExecutable_Destroy_Args *a = args;
  if (a->executable == NULL || a->executable->magic != LYING_MAGIC_EXEC) {
    lying_violate("LoadedExecutable_Destroy: not an executable");
    return NULL;
  }
  a->executable->magic = 0;
  program_drop(a->executable->program);
  free(a->executable);
  atomic_fetch_sub(&lying.executables, 1);
  return NULL;
}

LYING_SLOT(LoadedExecutable_GetExecutable) {
  PJRT_LoadedExecutable_GetExecutable_Args *a = args;
  if (LYING_IS(executable, "null")) return NULL;
  PJRT_Executable *e = calloc(1, sizeof *e);
  if (e == NULL) abort();
  e->magic = LYING_MAGIC_EXEC;
  e->program = a->loaded_executable->program;
  pthread_mutex_lock(&lying.lock);
  e->program->uses++;
  pthread_mutex_unlock(&lying.lock);
  atomic_fetch_add(&lying.executables, 1);
  a->executable = e;
  return NULL;
}

LYING_SLOT(LoadedExecutable_AddressableDevices) {
  PJRT_LoadedExecutable_AddressableDevices_Args *a = args;
  a->addressable_devices = &a->executable->program->device;
  a->num_addressable_devices = 1;
  return NULL;
}

LYING_SLOT(Executable_Destroy) {
  PJRT_Executable_Destroy_Args *a = args;
  if (a->executable == NULL || a->executable->magic != LYING_MAGIC_EXEC) {
    lying_violate("Executable_Destroy: not an executable");
    return NULL;
  }
  a->executable->magic = 0;
  program_drop(a->executable->program);
  free(a->executable);
  atomic_fetch_sub(&lying.executables, 1);
  return NULL;
}

LYING_SLOT(Executable_Name) {
  PJRT_Executable_Name_Args *a = args;
  a->executable_name =
      lying_text(a->executable->program->name, &a->executable_name_size);
  return NULL;
}

LYING_SLOT(Executable_NumOutputs) {
  PJRT_Executable_NumOutputs_Args *a = args;
  a->num_outputs = a->executable->program->outputs;
  return NULL;
}

LYING_SLOT(Executable_NumReplicas) {
  PJRT_Executable_NumReplicas_Args *a = args;
  a->num_replicas = 1;
  return NULL;
}

LYING_SLOT(Executable_NumPartitions) {
  PJRT_Executable_NumPartitions_Args *a = args;
  a->num_partitions = 1;
  return NULL;
}

LYING_SLOT(Executable_OutputElementTypes) {
  PJRT_Executable_OutputElementTypes_Args *a = args;
  a->output_types = a->executable->program->types;
  a->num_output_types = a->executable->program->outputs;
  return NULL;
}

LYING_SLOT(Executable_OutputDimensions) {
  PJRT_Executable_OutputDimensions_Args *a = args;
  a->num_outputs = a->executable->program->outputs;
  a->dims = a->executable->program->dims;
  a->dim_sizes = a->executable->program->ranks;
  return NULL;
}

LYING_SLOT(Executable_OptimizedProgram) {
  static const char format[] = "hlo_with_config";
  PJRT_Executable_OptimizedProgram_Args *a = args;
  const lying_program *p = a->executable->program;
  if (LYING_IS(hlo, "none"))
    return lying_error(PJRT_Error_Code_UNIMPLEMENTED,
                       "lying plugin: no optimized program");
  a->program->format = format;
  a->program->format_size = sizeof format - 1;
  size_t size = LYING_IS(hlo, "empty") ? 0 : p->hlo_size;
  if (a->program->code == NULL) {
    a->program->code_size = size;
    return NULL;
  }
  if (a->program->code_size < size)
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT, "too short");
  memcpy(a->program->code, p->hlo, size);
  if (LYING_IS(hlo, "garbage")) memset(a->program->code, 0xff, size);
  if (LYING_IS(hlo, "grows")) a->program->code_size = size + 1000;
  return NULL;
}

LYING_SLOT(LoadedExecutable_Delete) {
  (void)args;
  return NULL;
}

LYING_SLOT(LoadedExecutable_IsDeleted) {
  ((PJRT_LoadedExecutable_IsDeleted_Args *)args)->is_deleted = false;
  return NULL;
}

// ---- saving

static const char mark[] = "LYING EXECUTABLE ";

static void serialized_free(void *bytes) {
  free(bytes);
  atomic_fetch_sub(&lying.others, 1);
}

// "LYING EXECUTABLE version device text"
LYING_SLOT(Executable_Serialize) {
  PJRT_Executable_Serialize_Args *a = args;
  const lying_program *p = a->executable->program;
  char *bytes = calloc(1, sizeof *p + sizeof lying.rules.version);
  if (bytes == NULL) abort();
  atomic_fetch_add(&lying.others, 1);
  int size = sprintf(bytes, "%s%s %zu %.*s", mark, lying.rules.version,
                     p->device_number, (int)p->code_size, p->code);
  if (LYING_IS(serialize, "garbage")) memset(bytes, 0xff, (size_t)size);
  a->serialized_bytes = LYING_IS(serialize, "null") ? NULL : bytes;
  a->serialized_bytes_size = (size_t)size;
  if (LYING_IS(serialize, "huge")) a->serialized_bytes_size = SIZE_MAX / 2;
  a->serialized_executable = (PJRT_SerializedExecutable *)(void *)bytes;
  a->serialized_executable_deleter = serialized_free;
  return NULL;
}

LYING_SLOT(Executable_DeserializeAndLoad) {
  PJRT_Executable_DeserializeAndLoad_Args *a = args;
  char want[sizeof mark + sizeof lying.rules.version];
  size_t head = (size_t)sprintf(want, "%s%s ", mark, lying.rules.version);
  if (a->serialized_executable_size <= head ||
      memcmp(a->serialized_executable, want, head) != 0)
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT,
                       "lying plugin: no executable of version %s",
                       lying.rules.version);
  const char *rest = a->serialized_executable + head;
  size_t size = a->serialized_executable_size - head;
  size_t device = (size_t)(rest[0] - '0');
  return lying_program_load(a->client, rest + 2, size - 2, device,
                            &a->loaded_executable);
}

// ---- running

// What an output is computed by; holds its input.
typedef struct run {
  PJRT_Buffer *in, *out;
  int add, times;
} run;

// Another order of tiles, element by element; of four bytes each.
static void turn_values(const PJRT_Buffer *from, const PJRT_Buffer *to) {
  size_t count = lying_count(to->dims, to->rank), index[LYING_MAX_RANK];
  for (size_t i = 0; i < count; i++) {
    size_t rest = i;
    for (size_t d = to->rank; d-- > 0;) {
      index[d] = rest % (size_t)to->dims[d];
      rest /= (size_t)to->dims[d];
    }
    memcpy((char *)to->data + 4 * lying_tiled_place(to, index),
           (char *)from->data + 4 * lying_tiled_place(from, index), 4);
  }
}

static void compute(lying_work *self) {
  run *r = self->dst;
  PJRT_Buffer *out = r->out;
  if (r->in->error) self->failed = true;
  if (!self->failed) {
    // An input that was given away has its memory in the output.
    bool turned = out->tiled && LYING_IS(tiled, "turned");
    if (turned && r->in->data != NULL) turn_values(r->in, out);
    if (!turned && r->in->data != NULL && out->size != 0)
      memcpy(out->data, r->in->data, out->size);
    float *values = out->data;
    bool changes = r->add != 0 || r->times != 1;
    for (size_t i = 0; changes && i < out->size / sizeof(float); i++)
      values[i] = values[i] * (float)r->times + (float)r->add;
  }
  lying_buffer_drop(r->in);
  free(r);
}

// Gives the input's memory to the output, where both sides let it.
static bool donate(const lying_program *p, PJRT_Buffer *in, PJRT_Buffer *out,
                   const PJRT_ExecuteOptions *options) {
  if (!p->donates || in->foreign || in->external != 0 ||
      LYING_IS(donation, "ignored"))
    return false;
  for (size_t i = 0; i < options->num_non_donatable_input_indices; i++)
    if (options->non_donatable_input_indices[i] == 0 &&
        !LYING_IS(donation, "always"))
      return false;
  out->data = in->data;
  in->data = NULL;
  in->deleted = true;
  return true;
}

static PJRT_Error *execute_one(const lying_program *p, PJRT_Buffer *in,
                               PJRT_Device *device,
                               const PJRT_ExecuteOptions *options,
                               PJRT_Buffer **out) {
  PJRT_Buffer *result =
      lying_buffer_new(&device->memory[lying.rules.output_memory != 0], p->type,
                       p->dims, p->rank);
  if (result->tiled && LYING_IS(tiled, "turned"))
    lying_turn(result->minor_to_major, result->rank);
  lying_buffer_measure(result);
  // Real plugins compare byte sizes only; so does this one.
  PJRT_Error *error = NULL;
  if (in->size != result->size)
    error = lying_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "lying plugin: an argument of %zu bytes", in->size);
  if (error == NULL && !donate(p, in, result, options)) {
    result->data = lying_take(result->memory, result->size);
    if (result->data == NULL)
      error = lying_no_room(result->memory, result->size);
  }
  if (error != NULL) {
    lying_buffer_drop(result);
    return error;
  }
  result->dynamic = p->dynamic;
  if (p->dynamic && result->dims[0] > 0) result->true_dims[0]--;
  run *r = calloc(1, sizeof *r);
  if (r == NULL) abort();
  bool twice = strcmp(p->name, "twice") == 0 && !LYING_IS(program, "wrong");
  *r = (run){in, result, strcmp(p->name, "add_one_f32") == 0, twice ? 2 : 1};
  pthread_mutex_lock(&lying.lock);
  in->holders++;
  pthread_mutex_unlock(&lying.lock);
  lying_work work = {compute, r, NULL, 0, false, true, in};
  result->ready = lying_event_new(work, result);
  *out = result;
  return NULL;
}

static void destroy_outputs(PJRT_Buffer **list, size_t count) {
  for (size_t i = 0; i < count; i++) {
    IST_PJRT_ARGS(PJRT_Buffer_Destroy_Args, destroy);
    destroy.buffer = list[i];
    lying_Buffer_Destroy(&destroy);
    list[i] = NULL;
  }
}

static PJRT_Error *check_run(const PJRT_LoadedExecutable_Execute_Args *a) {
  if (a->options == NULL) {
    lying_violate("Execute: options are NULL");
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT, "no options");
  }
  if (strcmp(a->executable->program->name, "fail") == 0)
    return lying_error(PJRT_Error_Code_RESOURCE_EXHAUSTED,
                       "lying plugin: out of memory, so it says");
  if (a->num_devices != 1 || a->num_args != 1)
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT,
                       "lying plugin: %zu arguments on %zu devices",
                       a->num_args, a->num_devices);
  PJRT_Buffer *in = a->argument_lists[0][0];
  if (!lying_buffer_check(in, "Execute: an argument is not a buffer"))
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT, "not a buffer");
  return lying_buffer_deleted(in);
}

LYING_SLOT(LoadedExecutable_Execute) {
  PJRT_LoadedExecutable_Execute_Args *a = args;
  PJRT_Error *error = check_run(a);
  if (error != NULL) return error;
  const lying_program *p = a->executable->program;
  PJRT_Device *device = a->execute_device ? a->execute_device : p->device;
  PJRT_Buffer **out = (PJRT_Buffer **)a->output_lists[0];
  for (size_t i = 0; i < p->outputs && error == NULL; i++) {
    error =
        execute_one(p, a->argument_lists[0][0], device, a->options, &out[i]);
    if (error != NULL) destroy_outputs(out, i);
  }
  if (error == NULL && a->device_complete_events != NULL) {
    lying_work nothing = {0};
    a->device_complete_events[0] = lying_event_new(nothing, NULL);
  }
  return error;
}

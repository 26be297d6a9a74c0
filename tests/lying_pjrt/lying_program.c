// SPDX-License-Identifier: Apache-2.0
// The lying plugin's programs: one line "lying.NAME TYPE DIM DIM ...", with
// one parameter and one result of that type (a number) and shape, where NAME
// is identity, add_one_f32 or fail. They are executed for real.

#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lying.h"

typedef struct program {
  int uses;
  char name[32];
  int32_t type;
  size_t rank;
  int64_t dims[LYING_MAX_RANK];
  const char *code;
  char hlo[512];
  size_t hlo_size;
  int32_t output_type;
  size_t output_rank;
  PJRT_Device *device;
} program;

struct PJRT_LoadedExecutable {
  uint32_t magic;
  program *program;
};

struct PJRT_Executable {
  uint32_t magic;
  program *program;
};

static void program_drop(program *p) {
  pthread_mutex_lock(&lying.lock);
  bool last = --p->uses == 0;
  pthread_mutex_unlock(&lying.lock);
  if (last) free(p);
}

// ---- the few bytes of protobuf that OptimizedProgram answers

static size_t put_varint(char *to, uint64_t value) {
  size_t n = 0;
  do {
    to[n++] = (char)((value & 127) | (value > 127 ? 128 : 0));
    value >>= 7;
  } while (value != 0);
  return n;
}

static size_t put_bytes(char *to, int field, const char *bytes, size_t size) {
  size_t n = put_varint(to, (uint64_t)field << 3 | 2);
  n += put_varint(to + n, size);
  memcpy(to + n, bytes, size);
  return n + size;
}

// XLA numbers a few element types otherwise than PJRT does.
static uint64_t xla_type(int32_t type) {
  switch (type) {
    case 13:
      return 16;  // BF16
    case 14:
      return 15;  // C64
    case 15:
      return 18;  // C128
    default:
      return (uint64_t)type;
  }
}

static size_t put_shape(char *to, const program *p) {
  size_t n = put_varint(to, 2 << 3);
  n += put_varint(to + n, xla_type(p->type));
  char dims[160], layout[64], order[64];
  size_t dims_size = 0, order_size = 0;
  for (size_t i = 0; i < p->rank; i++) {
    dims_size += put_varint(dims + dims_size, (uint64_t)p->dims[i]);
    order_size += put_varint(order + order_size, p->rank - 1 - i);
  }
  n += put_bytes(to + n, 3, dims, dims_size);
  size_t layout_size = put_bytes(layout, 1, order, order_size);
  // One tile, of two by two.
  if (strcmp(lying.rules.hlo, "tiled") == 0)
    layout_size += put_bytes(layout + layout_size, 6, "\x0a\x02\x02\x02", 4);
  if (strcmp(lying.rules.hlo, "tiled_by_one") == 0)
    layout_size += put_bytes(layout + layout_size, 6, "\x0a\x02\x01\x01", 4);
  return n + put_bytes(to + n, 5, layout, layout_size);
}

static void write_hlo(program *p) {
  char shape[300], both[700], module[800];
  size_t shape_size = put_shape(shape, p);
  size_t both_size = put_bytes(both, 1, shape, shape_size);
  both_size += put_bytes(both + both_size, 2, shape, shape_size);
  size_t module_size = put_bytes(module, 4, both, both_size);
  char all[900];
  p->hlo_size = put_bytes(all, 1, module, module_size);
  if (p->hlo_size > sizeof p->hlo) abort();
  memcpy(p->hlo, all, p->hlo_size);
}

// ---- slots

static bool parse_twice(program *p, const char *text) {
  if (sscanf(text, "func.func @main(%%x: tensor<%" SCNd64 "xf32>", p->dims) !=
          1 ||
      strstr(text, " = stablehlo.add %x, %x :") == NULL)
    return false;
  snprintf(p->name, sizeof p->name, "twice");
  p->type = 11;
  p->rank = 1;
  return true;
}

static PJRT_Error *parse(program *p, const PJRT_Program *source) {
  char text[256];
  snprintf(text, sizeof text, "%.*s", (int)source->code_size, source->code);
  if (parse_twice(p, text)) return NULL;
  if (source->code_size >= sizeof text ||
      strncmp(source->code, "lying.", 6) != 0)
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT,
                       "\n\nlying plugin: this is no program\n  at line 1");
  memcpy(text, source->code, source->code_size);
  text[source->code_size] = 0;
  char *rest = NULL;
  char *word = strtok_r(text + 6, " \n", &rest);
  snprintf(p->name, sizeof p->name, "%s", word != NULL ? word : "");
  word = strtok_r(NULL, " \n", &rest);
  p->type = word != NULL ? atoi(word) : 0;
  if (lying_type_bits(p->type) == 0)
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT,
                       "lying plugin: a program without a type");
  while ((word = strtok_r(NULL, " \n", &rest)) != NULL &&
         p->rank < LYING_MAX_RANK)
    p->dims[p->rank++] = atoll(word);
  return NULL;
}

LYING_SLOT(Client_Compile) {
  PJRT_Client_Compile_Args *a = args;
  if (a->compile_options_size == 0) {
    lying_violate("Compile: options without replicas and partitions");
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT, "no options");
  }
  program *p = calloc(1, sizeof *p);
  PJRT_LoadedExecutable *e = calloc(1, sizeof *e);
  if (p == NULL || e == NULL) abort();
  p->uses = 1;
  PJRT_Error *error = parse(p, a->program);
  if (error != NULL) {
    free(p);
    free(e);
    return error;
  }
  p->output_type = p->type;
  p->output_rank = p->rank;
  // The options end with the device's number where they name one.
  size_t device = 0;
  if (a->compile_options_size > 8)
    device = (size_t)a->compile_options[a->compile_options_size - 1];
  if (device < a->client->device_count) p->device = a->client->devices[device];
  write_hlo(p);
  e->magic = LYING_MAGIC_EXEC;
  e->program = p;
  atomic_fetch_add(&lying.executables, 1);
  a->executable = e;
  return NULL;
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
  if (lying.rules.executable_null) return NULL;
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
  a->executable_name = a->executable->program->name;
  a->executable_name_size = strlen(a->executable_name);
  return NULL;
}

LYING_SLOT(Executable_NumOutputs) {
  PJRT_Executable_NumOutputs_Args *a = args;
  a->num_outputs = 1;
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
  a->output_types = &a->executable->program->output_type;
  a->num_output_types = 1;
  return NULL;
}

LYING_SLOT(Executable_OutputDimensions) {
  PJRT_Executable_OutputDimensions_Args *a = args;
  a->num_outputs = 1;
  a->dims = a->executable->program->dims;
  a->dim_sizes = &a->executable->program->output_rank;
  return NULL;
}

LYING_SLOT(Executable_OptimizedProgram) {
  static const char format[] = "hlo_with_config";
  PJRT_Executable_OptimizedProgram_Args *a = args;
  const program *p = a->executable->program;
  if (strcmp(lying.rules.hlo, "none") == 0)
    return lying_error(PJRT_Error_Code_UNIMPLEMENTED,
                       "lying plugin: no optimized program");
  a->program->format = format;
  a->program->format_size = sizeof format - 1;
  if (a->program->code == NULL) {
    a->program->code_size = p->hlo_size;
    return NULL;
  }
  if (a->program->code_size < p->hlo_size)
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT, "too short");
  memcpy(a->program->code, p->hlo, p->hlo_size);
  if (strcmp(lying.rules.hlo, "garbage") == 0)
    memset(a->program->code, 0xff, p->hlo_size);
  return NULL;
}

static void compute(lying_work *self) {
  const PJRT_Buffer *in = self->src;
  PJRT_Buffer *out = self->dst;
  if (!self->failed) {
    memcpy(out->data, in->data, out->size);
    float *values = out->data;
    for (size_t i = 0; i < out->size / sizeof(float) && self->size != 0; i++)
      values[i] = self->size == 1 ? values[i] + 1 : 2 * values[i];
  }
  lying_buffer_drop((PJRT_Buffer *)(uintptr_t)in);
}

static PJRT_Error *execute_one(const program *p, PJRT_Buffer *in,
                               PJRT_Device *device, PJRT_Buffer **out) {
  if (!lying_buffer_check(in, "Execute: an argument is not a buffer"))
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT, "not a buffer");
  PJRT_Buffer *result =
      lying_buffer_new(&device->memory[0], p->type, p->dims, p->rank);
  // Real plugins compare byte sizes only; so does this one.
  if (in->size != result->size) {
    lying_buffer_drop(result);
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT,
                       "lying plugin: an argument of %zu bytes", in->size);
  }
  result->data = lying_device_memory(result->size);
  pthread_mutex_lock(&lying.lock);
  in->holders++;
  pthread_mutex_unlock(&lying.lock);
  size_t what = 0;
  if (strcmp(p->name, "add_one_f32") == 0) what = 1;
  if (strcmp(p->name, "twice") == 0 && !lying.rules.program_wrong) what = 2;
  lying_work work = {compute, result, in, what, false};
  result->ready = lying_event_new(work, result);
  *out = result;
  return NULL;
}

LYING_SLOT(LoadedExecutable_Execute) {
  PJRT_LoadedExecutable_Execute_Args *a = args;
  if (a->options == NULL) {
    lying_violate("Execute: options are NULL");
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT, "no options");
  }
  const program *p = a->executable->program;
  if (strcmp(p->name, "fail") == 0)
    return lying_error(PJRT_Error_Code_RESOURCE_EXHAUSTED,
                       "lying plugin: out of memory, so it says");
  if (a->num_devices != 1 || a->num_args != 1)
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT,
                       "lying plugin: %zu arguments on %zu devices",
                       a->num_args, a->num_devices);
  PJRT_Device *device = a->execute_device ? a->execute_device : p->device;
  PJRT_Error *error = execute_one(p, a->argument_lists[0][0], device,
                                  (PJRT_Buffer **)&a->output_lists[0][0]);
  if (error == NULL && a->device_complete_events != NULL) {
    lying_work nothing = {0};
    a->device_complete_events[0] = lying_event_new(nothing, NULL);
  }
  return error;
}

// SPDX-License-Identifier: Apache-2.0
// program_handle.c: the program handle: what it is asked for, its life, what it
// takes and gives.

#include "bridge/program_handle.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/structs.h"
#include "bridge/compile_cache.h"
#include "bridge/outputs.h"

// ---- what is asked for

ist_code ist__program_wish_read(const ist_device *device,
                                const ist_program_options *options,
                                ist__program_wish *out, ist_error *err) {
  *out = (ist__program_wish){.device = device};
  ist_program_options *o = &out->options;
  ist_code code =
      ist__options_read(o, sizeof *o, options, "ist_program_options", err);
  if (code != IST_OK) return code;
  if (o->name == NULL) o->name = "program";
  const int32_t most = IST_MAX_PROGRAM_DEVICES;
  bool counts = o->replicas >= 0 && o->replicas <= most && o->partitions >= 0 &&
                o->partitions <= most && (unsigned)o->cache <= IST_CACHE_ON;
  bool listed = (o->devices != NULL) == (o->device_count != 0);
  bool one = o->replicas <= 1 && o->partitions <= 1 && o->devices == NULL;
  if (!counts || !listed || (o->portable && !one)) {
    return ist_error_set(
        err, IST_ERR_ARGUMENT,
        "%s could not be compiled: %d replicas, %d partitions "
        "and %zu devices%s; needs numbers from 0 to %d, a list "
        "of devices with its length, and neither where it is "
        "portable",
        o->name, (int)o->replicas, (int)o->partitions, o->device_count,
        o->portable ? ", portable" : "", (int)most);
  }
  out->replicas = o->replicas;
  out->partitions = o->partitions;
  return IST_OK;
}

static ist_code no_devices(const ist__program_wish *wish, size_t needs,
                           ist_error *err) {
  const ist_backend *backend = wish->device->backend;
  return ist_error_set(err, IST_ERR_ARGUMENT,
                       "%s could not be compiled for %s: it runs on %zu "
                       "devices, and %zu were named of the %zu there are; "
                       "needs that many different ones of one backend",
                       wish->options.name, backend->facts.name, needs,
                       wish->options.devices != NULL
                           ? wish->options.device_count
                           : backend->facts.device_count - wish->device->index,
                       backend->facts.device_count);
}

// The devices in the order of the lists of a run.
static ist_code resolve(const ist__program_wish *wish, ist_program *p,
                        ist_error *err) {
  ist_backend *backend = p->backend;
  const ist_program_options *o = &wish->options;
  if (p->portable) return IST_OK;
  if (o->devices == NULL) {
    if (p->device_count > backend->facts.device_count - wish->device->index) {
      return no_devices(wish, p->device_count, err);
    }
    for (size_t i = 0; i < p->device_count; i++) {
      p->devices[i] = &backend->devices[wish->device->index + i];
    }
    return IST_OK;
  }
  bool good = o->device_count == p->device_count;
  for (size_t i = 0; good && i < p->device_count; i++) {
    p->devices[i] = o->devices[i];
    good = o->devices[i] != NULL && o->devices[i]->backend == backend;
    for (size_t k = 0; good && k < i; k++) {
      good = p->devices[k] != p->devices[i];
    }
  }
  return good ? IST_OK : no_devices(wish, p->device_count, err);
}

// ---- making the handle

static ist_code read_argument(ist_program *p, bool is_input, size_t index,
                              ist_error *err) {
  ist__argument *a = is_input ? &p->inputs[index] : &p->outputs[index];
  ist_code code = ist__backend_describe_argument(
      p->backend, p->program, is_input, index, &a->spec, err);
  if (code != IST_OK) return code;
  // Only the geometry is checked: its memory may have no DLPack code at all.
  DLTensor tensor = {.device = {kDLCPU, 0},
                     .ndim = a->spec.ndim,
                     .dtype = a->spec.dtype,
                     .shape = a->spec.shape,
                     .strides = a->spec.strides};
  code = ist__view_check(&tensor, false, false, &a->view, err);
  const char *name =
      ist__backend_argument_name(p->backend, p->program, is_input, index);
  (void)snprintf(a->name, sizeof a->name, "%s", name);
  return code;
}

static ist_code describe(ist_program *p, const ist_program_facts *facts,
                         ist_error *err) {
  // Counts come from a plugin: their product is checked like any other.
  uint64_t count, size;
  if (!ist__add_u64(facts->input_count, facts->output_count, &count) ||
      !ist__mul_u64(count, sizeof(ist__argument), &size)) {
    return ist_error_set(err, IST_ERR_BACKEND_ABI,
                         "%s: a program tells %zu inputs and %zu outputs; "
                         "needs numbers that fit in memory",
                         p->backend->facts.name, facts->input_count,
                         facts->output_count);
  }
  p->inputs = ist__alloc_zero(ist__program_env(p), (size_t)size);
  if (p->inputs == NULL) return ist__error_memory(err, "a program", size);
  p->outputs = p->inputs + facts->input_count;
  p->input_count = facts->input_count;
  p->output_count = facts->output_count;
  ist_code code = IST_OK;
  for (size_t i = 0; code == IST_OK && i < p->input_count; i++) {
    code = read_argument(p, true, i, err);
  }
  for (size_t i = 0; code == IST_OK && i < p->output_count; i++) {
    code = read_argument(p, false, i, err);
  }
  return code;
}

static void program_free(ist_program *p) {
  ist_backend *backend = p->backend;
  ist__backend_release_program(backend, p->program);
  ist__free(ist__program_env(p), p->inputs);
  ist__free(ist__program_env(p), p);
  ist_backend_release(backend);
}

static ist_program *make_handle(const ist__program_wish *wish, ist_error *err) {
  ist_backend *backend = wish->device->backend;
  int32_t replicas = wish->replicas > 0 ? wish->replicas : 1;
  int32_t partitions = wish->partitions > 0 ? wish->partitions : 1;
  // Below IST_MAX_PROGRAM_DEVICES squared.
  size_t count = (size_t)replicas * (size_t)partitions;
  size_t room = sizeof(ist_program) + count * sizeof(ist_device *);
  ist_program *p = ist__alloc_zero(ist__backend_env(backend), room);
  if (p == NULL) {
    ist__error_memory(err, "a program", room);
    return NULL;
  }
  ist__refcount_init(&p->refs);
  p->backend = backend;
  p->replicas = replicas;
  p->partitions = partitions;
  p->portable = wish->options.portable;
  p->device_count = count;
  p->kind = wish->device;
  ist_backend_retain(backend);
  return p;
}

static ist_code make_program(const ist__program_wish *wish, ist_program *p,
                             const void *code_text, size_t size,
                             ist__program_maker maker, ist_error *err) {
  size_t room = (p->device_count + 1) * sizeof(size_t);
  size_t *numbers = ist__alloc_zero(ist__program_env(p), room);
  if (numbers == NULL) return ist__error_memory(err, "a program", room);
  for (size_t i = 0; !p->portable && i < p->device_count; i++) {
    numbers[i] = p->devices[i]->index;
  }
  ist_source source = {.struct_size = sizeof source,
                       .code = code_text,
                       .size = size,
                       .name = wish->options.name,
                       .device = p->portable ? wish->device->index : numbers[0],
                       .replicas = p->replicas,
                       .partitions = p->partitions,
                       .devices = numbers,
                       .device_count = p->portable ? 0 : p->device_count,
                       .portable = p->portable};
  ist_code code = maker(p->backend, &source, &p->program, err);
  ist__free(ist__program_env(p), numbers);
  ist_program_facts facts;
  if (code == IST_OK) {
    code = ist__backend_describe_program(p->backend, p->program, &facts, err);
  }
  if (code != IST_OK) return code;
  size_t told = facts.device_count == 0 ? 1 : facts.device_count;
  if (told != p->device_count || facts.portable != p->portable) {
    return ist_error_set(err, IST_ERR_NOT_IN_VERSION,
                         "not in this version: %s on %s: the backend compiled "
                         "it for %zu devices%s; needs a backend that compiles "
                         "it for %zu%s",
                         wish->options.name, p->backend->facts.name, told,
                         facts.portable ? ", portable" : "", p->device_count,
                         p->portable ? ", portable" : "");
  }
  return describe(p, &facts, err);
}

ist_code ist__program_make(const ist__program_wish *wish, const void *code_text,
                           size_t size, ist__program_maker maker,
                           ist_program **out, ist_error *err) {
  ist_program *p = make_handle(wish, err);
  if (p == NULL) return IST_ERR_NO_ALLOCATION;
  ist_code code = resolve(wish, p, err);
  if (code == IST_OK) {
    code = make_program(wish, p, code_text, size, maker, err);
  }
  if (code == IST_OK) {
    *out = p;
  } else {
    program_free(p);
  }
  return code;
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
  ist__program_wish wish;
  ist_code code = ist__program_wish_read(device, options, &wish, err);
  if (code != IST_OK) return code;
  if (wish.options.cache == IST_CACHE_ON) {
    return ist__compile_cached(&wish, code_text, size, out, err);
  }
  return ist__program_make(&wish, code_text, size, ist__backend_compile, out,
                           err);
}

void ist_program_retain(ist_program *program) {
  if (program != NULL) ist__refcount_take(&program->refs);
}

void ist_program_release(ist_program *program) {
  if (program != NULL && ist__refcount_drop(&program->refs)) {
    program_free(program);
  }
}

// ---- facts

ist_code ist_program_describe(const ist_program *program, ist_program_info *out,
                              ist_error *err) {
  if (program == NULL || !ist__struct_ok(out)) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a program could not be described: it is NULL or out "
                         "has no struct_size; needs both");
  }
  ist_program_info info = {.struct_size = sizeof info,
                           .input_count = program->input_count,
                           .output_count = program->output_count,
                           .replicas = program->replicas,
                           .partitions = program->partitions,
                           .device_count = program->device_count,
                           .portable = program->portable,
                           .from_cache = program->from_cache};
  ist__struct_write(out, &info, sizeof info);
  return IST_OK;
}

const ist_device *ist_program_device(const ist_program *program, size_t index) {
  if (program == NULL || program->portable || index >= program->device_count) {
    return NULL;
  }
  return program->devices[index];
}

size_t ist_program_input_count(const ist_program *program) {
  return program == NULL ? 0 : program->input_count;
}

size_t ist_program_output_count(const ist_program *program) {
  return program == NULL ? 0 : program->output_count;
}

static const ist__argument *argument(const ist_program *program, bool is_input,
                                     size_t index) {
  if (program == NULL) return NULL;
  if (is_input) {
    return index < program->input_count ? &program->inputs[index] : NULL;
  }
  return index < program->output_count ? &program->outputs[index] : NULL;
}

static ist_code write_spec(const ist_program *program, bool is_input,
                           size_t index, ist_spec *out, ist_error *err) {
  const ist__argument *a = argument(program, is_input, index);
  if (a == NULL || !ist__struct_ok(out)) {
    size_t count = is_input ? ist_program_input_count(program)
                            : ist_program_output_count(program);
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "an argument of a program could not be described: "
                         "number %zu of %zu, or out has no struct_size; needs "
                         "a smaller number and an ist_spec",
                         index, count);
  }
  ist__struct_write(out, &a->spec, sizeof a->spec);
  return IST_OK;
}

ist_code ist_program_input(const ist_program *program, size_t index,
                           ist_spec *out, ist_error *err) {
  return write_spec(program, true, index, out, err);
}

ist_code ist_program_output(const ist_program *program, size_t index,
                            ist_spec *out, ist_error *err) {
  return write_spec(program, false, index, out, err);
}

const char *ist_program_input_name(const ist_program *program, size_t index) {
  const ist__argument *a = argument(program, true, index);
  return a != NULL ? a->name : NULL;
}

const char *ist_program_output_name(const ist_program *program, size_t index) {
  const ist__argument *a = argument(program, false, index);
  return a != NULL ? a->name : NULL;
}

ist__argument_label ist__program_label(const ist_program *program,
                                       bool is_input, size_t index) {
  ist__argument_label label;
  const ist__argument *a = argument(program, is_input, index);
  if (a == NULL || a->name[0] == '\0') {
    (void)snprintf(label.text, sizeof label.text, "%zu", index);
  } else {
    (void)snprintf(label.text, sizeof label.text, "%zu (%s)", index, a->name);
  }
  return label;
}

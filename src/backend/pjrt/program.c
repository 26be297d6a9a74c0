// SPDX-License-Identifier: Apache-2.0
// program.c: compiles a StableHLO program for one device, for several or for
// any; saves it and loads it again. Running it is program_run.c.

#include "backend/pjrt/program.h"

#include <string.h>

#include "backend/pjrt/compile_options.h"
#include "backend/pjrt/program_refuse.h"
#include "base/alloc.h"

static void destroy_loaded(const ist__pjrt *pjrt,
                           PJRT_LoadedExecutable *executable) {
  if (executable == NULL) return;
  IST_PJRT_ARGS(PJRT_LoadedExecutable_Destroy_Args, destroy);
  destroy.executable = executable;
  ist__pjrt_end(pjrt, IST_SLOT_LoadedExecutable_Destroy, &destroy);
}

void ist__pjrt_release_program(void *self, void *pointer) {
  ist__pjrt_client *client = self;
  ist__pjrt_program *p = pointer;
  destroy_loaded(&client->plugin.pjrt, p->executable);
  ist__free(client->env, p->signature);
  ist__free(client->env, p->names);
  ist__free(client->env, p->seen);
  ist__free(client->env, p);
}

// ---- options

// A source that names one device only, as a probe does, in full.
static ist_source complete(const ist_source *source) {
  ist_source known = *source;
  if (known.replicas == 0) known.replicas = 1;
  if (known.partitions == 0) known.partitions = 1;
  if (!known.portable && known.devices == NULL) {
    known.devices = &source->device;
    known.device_count = 1;
  }
  return known;
}

// The devices of a source are checked like numbers from outside: a plugin that
// is given one device twice waits for itself for ever.
static ist_code check_source(const ist__pjrt_client *client,
                             const ist_source *source, ist_error *err) {
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  if (source->size == 0) {
    return ist_error_set(err, IST_ERR_PROGRAM,
                         "%s could not be compiled for %s: it is empty; needs "
                         "StableHLO text or bytecode",
                         source->name, pjrt->name);
  }
  size_t most = IST_MAX_PROGRAM_DEVICES;
  size_t replicas = (size_t)source->replicas;
  size_t partitions = (size_t)source->partitions;
  bool counts = source->replicas >= 1 && source->partitions >= 1 &&
                replicas <= most && partitions <= most / replicas;
  bool devices = source->device_count == replicas * partitions;
  if (source->portable) {
    devices = source->device_count == 0 && replicas * partitions == 1;
  }
  if (!counts || !devices) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "%s could not be compiled for %s: %d replicas of %d "
                         "partitions on %zu devices; needs a device for each, "
                         "at most %zu, and none for a portable program",
                         source->name, pjrt->name, (int)source->replicas,
                         (int)source->partitions, source->device_count, most);
  }
  for (size_t i = 0; i < source->device_count; i++) {
    bool known = source->devices[i] < client->device_count;
    for (size_t k = 0; k < i; k++) {
      known = known && source->devices[k] != source->devices[i];
    }
    if (!known) {
      return ist_error_set(err, IST_ERR_ARGUMENT,
                           "%s could not be compiled for %s: device %zu of its "
                           "list is number %zu; needs %zu different ones of "
                           "the %zu that there are",
                           source->name, pjrt->name, i, source->devices[i],
                           source->device_count, client->device_count);
    }
  }
  return IST_OK;
}

static ist_code write_options(const ist__pjrt_client *client,
                              const ist_source *source, char **out,
                              size_t *out_size, ist_error *err) {
  size_t room = (source->device_count + 1) * sizeof(int64_t);
  int64_t *ids = ist__alloc_zero(client->env, room);
  if (ids == NULL) return ist__error_memory(err, "a program's devices", room);
  for (size_t i = 0; i < source->device_count; i++) {
    ids[i] = client->facts[source->devices[i]].id;
  }
  ist__compile_options options = {source->replicas, source->partitions, ids,
                                  source->portable};
  *out = ist__compile_options_write(client->env, &options, out_size);
  ist__free(client->env, ids);
  if (*out == NULL) return ist__error_memory(err, "compile options", room);
  return IST_OK;
}

// ---- making the executable

static ist_code no_executable(const ist__pjrt *pjrt, int slot, ist_error *err) {
  return ist_error_set(err, IST_ERR_PLUGIN,
                       "%s: %s gave no executable and no error; needs a "
                       "working plugin",
                       pjrt->name, ist__pjrt_slot_name(slot));
}

static ist_code compile_code(const ist__pjrt_client *client,
                             const ist_source *source, char *options,
                             size_t options_size, PJRT_LoadedExecutable **out,
                             ist_error *err) {
  static const char format[] = "mlir";
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
  compile.compile_options_size = options_size;
  ist_error cause;
  ist_code code =
      ist__pjrt_call_as(&client->plugin.pjrt, IST_SLOT_Client_Compile, &compile,
                        IST_ERR_PROGRAM, &cause);
  if (code != IST_OK) {
    return ist__pjrt_explain_compile(&client->plugin, source, &cause, err);
  }
  if (compile.executable == NULL) {
    return no_executable(&client->plugin.pjrt, IST_SLOT_Client_Compile, err);
  }
  *out = compile.executable;
  return IST_OK;
}

static ist_code load_bytes(const ist__pjrt_client *client,
                           const ist_source *source, char *options,
                           size_t options_size, PJRT_LoadedExecutable **out,
                           ist_error *err) {
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  IST_PJRT_ARGS(PJRT_Executable_DeserializeAndLoad_Args, load);
  load.client = client->client;
  load.serialized_executable = source->code;
  load.serialized_executable_size = source->size;
  // Without them it would go to the devices that it was compiled for.
  load.overridden_serialized_compile_options = options;
  load.overridden_serialized_compile_options_size = options_size;
  ist_error cause;
  ist_code code =
      ist__pjrt_call_as(pjrt, IST_SLOT_Executable_DeserializeAndLoad, &load,
                        IST_ERR_PROGRAM, &cause);
  if (code == IST_ERR_PLUGIN_SLOT) {
    return ist__error_native(err, IST_ERR_NO_PROGRAMS, cause.native,
                             "%s could not be loaded: %s", source->name,
                             cause.message);
  }
  if (code != IST_OK) {
    return ist__error_native(err, code, cause.native,
                             "%s could not be loaded: %s; needs bytes that "
                             "this plugin saved",
                             source->name, cause.message);
  }
  if (load.loaded_executable == NULL) {
    return no_executable(pjrt, IST_SLOT_Executable_DeserializeAndLoad, err);
  }
  *out = load.loaded_executable;
  return IST_OK;
}

// ---- the program around it

static ist_code wrong_devices(const ist__pjrt *pjrt, const ist_source *source,
                              size_t count, ist_error *err) {
  return ist_error_set(err, IST_ERR_PLUGIN,
                       "%s: %s was made for %zu devices that were not asked "
                       "for; needs a plugin that obeys a device assignment",
                       pjrt->name, source->name, count);
}

// The plugin's lists of arguments are in the order of its own list of devices:
// which of ours each is for.
static ist_code order_lists(const ist__pjrt_client *client,
                            const ist_source *source, ist__pjrt_program *p,
                            ist_error *err) {
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  for (size_t i = 0; i < source->device_count; i++) {
    p->devices[i] = source->devices[i];
    p->lists[i] = i;
  }
  if (p->portable) return IST_OK;
  IST_PJRT_ARGS(PJRT_LoadedExecutable_AddressableDevices_Args, get);
  get.executable = p->executable;
  ist_code code = ist__pjrt_call(
      pjrt, IST_SLOT_LoadedExecutable_AddressableDevices, &get, err);
  // One that does not tell is believed.
  if (code == IST_ERR_PLUGIN_SLOT) return IST_OK;
  if (code != IST_OK) return code;
  if (get.num_addressable_devices != p->device_count ||
      get.addressable_devices == NULL) {
    return wrong_devices(pjrt, source, get.num_addressable_devices, err);
  }
  for (size_t i = 0; i < p->device_count; i++) {
    size_t k = 0;
    while (k < p->device_count && client->devices[p->devices[k]].device !=
                                      get.addressable_devices[i]) {
      k++;
    }
    if (k == p->device_count) return wrong_devices(pjrt, source, k, err);
    p->lists[i] = k;
  }
  return IST_OK;
}

static ist__pjrt_program *make_program(const ist__pjrt_client *client,
                                       const ist_source *source,
                                       ist_error *err) {
  size_t count = source->device_count;
  size_t room = sizeof(ist__pjrt_program) + 2 * count * sizeof(size_t);
  ist__pjrt_program *p = ist__alloc_zero(client->env, room);
  if (p == NULL) {
    ist__error_memory(err, "a program", room);
    return NULL;
  }
  p->lists = p->devices + count;
  p->portable = source->portable;
  p->device_count = source->portable ? 1 : count;
  return p;
}

static ist_code learn_program(const ist__pjrt_client *client,
                              const ist_source *source, ist__pjrt_program *p,
                              ist_error *err) {
  ist_code code = order_lists(client, source, p, err);
  if (code == IST_OK) {
    code = ist__pjrt_signature_read(client, p->executable, &p->signature, err);
  }
  if (code != IST_OK) return code;
  size_t room =
      (p->signature->output_count * p->device_count + 1) * sizeof p->seen[0];
  p->seen = ist__alloc_zero(client->env, room);
  return p->seen != NULL ? IST_OK
                         : ist__error_memory(err, "a program's outputs", room);
}

typedef ist_code (*make_executable)(const ist__pjrt_client *client,
                                    const ist_source *source, char *options,
                                    size_t options_size,
                                    PJRT_LoadedExecutable **out,
                                    ist_error *err);

static ist_code make(ist__pjrt_client *client, const ist_source *source,
                     make_executable how, ist__pjrt_program **out,
                     ist_error *err) {
  char *options = NULL;
  size_t options_size = 0;
  ist__pjrt_program *p = make_program(client, source, err);
  if (p == NULL) return IST_ERR_NO_ALLOCATION;
  ist_code code = write_options(client, source, &options, &options_size, err);
  if (code == IST_OK) {
    code = how(client, source, options, options_size, &p->executable, err);
  }
  if (code == IST_OK) code = learn_program(client, source, p, err);
  ist__free(client->env, options);
  if (code == IST_OK) {
    *out = p;
  } else {
    ist__pjrt_release_program(client, p);
  }
  return code;
}

ist_code ist__pjrt_compile(void *self, const ist_source *asked, void **out,
                           ist_error *err) {
  ist__pjrt_client *client = self;
  ist__pjrt_program *p = NULL;
  ist_source known = complete(asked);
  const ist_source *source = &known;
  ist_code code = check_source(client, source, err);
  if (code == IST_OK) {
    code = ist__pjrt_refuse_copies(&client->plugin.pjrt, source, err);
  }
  if (code == IST_OK) code = make(client, source, compile_code, &p, err);
  if (code != IST_OK) return code;
  p->names = ist__program_names_read(client->env, source->code, source->size);
  if (p->names == NULL) {
    ist__pjrt_release_program(client, p);
    return ist__error_memory(err, "a program's names", source->size);
  }
  *out = p;
  return IST_OK;
}

ist_code ist__pjrt_load(void *self, const ist_source *source, void **out,
                        ist_error *err) {
  ist__pjrt_client *client = self;
  ist__pjrt_program *p = NULL;
  ist_source known = complete(source);
  ist_code code = check_source(client, &known, err);
  if (code == IST_OK) code = make(client, &known, load_bytes, &p, err);
  *out = p;
  return code;
}

// ---- saving

// More bytes than this are no program.
#define MAX_SERIALIZED ((size_t)1 << 34)

static ist_code copy_bytes(const ist__pjrt_client *client,
                           const PJRT_Executable_Serialize_Args *from,
                           void **out, size_t *out_size, ist_error *err) {
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  if (from->serialized_bytes == NULL || from->serialized_bytes_size == 0 ||
      from->serialized_bytes_size > MAX_SERIALIZED) {
    return ist_error_set(err, IST_ERR_PLUGIN,
                         "%s: %s gave %s and no error; needs a working plugin",
                         pjrt->name,
                         ist__pjrt_slot_name(IST_SLOT_Executable_Serialize),
                         from->serialized_bytes == NULL ? "no bytes"
                                                        : "an odd number of "
                                                          "bytes");
  }
  void *bytes = ist__alloc(client->env, from->serialized_bytes_size, 64);
  if (bytes == NULL) {
    return ist__error_memory(err, "a program's bytes",
                             from->serialized_bytes_size);
  }
  memcpy(bytes, from->serialized_bytes, from->serialized_bytes_size);
  *out = bytes;
  *out_size = from->serialized_bytes_size;
  return IST_OK;
}

ist_code ist__pjrt_serialize(void *self, void *pointer, void **out,
                             size_t *out_size, ist_error *err) {
  const ist__pjrt_client *client = self;
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  const ist__pjrt_program *p = pointer;
  PJRT_Executable *executable = NULL;
  ist_code code =
      ist__pjrt_executable_of(client, p->executable, &executable, err);
  if (code != IST_OK) return code;
  IST_PJRT_ARGS(PJRT_Executable_Serialize_Args, serialize);
  serialize.executable = executable;
  ist_error cause;
  code =
      ist__pjrt_call(pjrt, IST_SLOT_Executable_Serialize, &serialize, &cause);
  if (code == IST_OK) {
    code = copy_bytes(client, &serialize, out, out_size, err);
    ist__pjrt_give_back(serialize.serialized_executable_deleter,
                        serialize.serialized_executable);
  } else if (code == IST_ERR_PLUGIN_SLOT) {
    code = ist__error_native(err, IST_ERR_NO_PROGRAMS, cause.native,
                             "%s: a program could not be saved: %s", pjrt->name,
                             cause.message);
  } else {
    code = ist__error_native(err, code, cause.native, "%s", cause.message);
  }
  ist__pjrt_executable_end(client, executable);
  return code;
}

// ---- facts

ist_code ist__pjrt_describe_program(void *self, void *pointer,
                                    ist_program_facts *out, ist_error *err) {
  (void)self;
  (void)err;
  const ist__pjrt_program *p = pointer;
  out->input_count = p->signature->input_count;
  out->output_count = p->signature->output_count;
  out->device_count = p->device_count;
  out->portable = p->portable;
  return IST_OK;
}

static ist_code describe_argument(const ist__pjrt_program *p, bool is_input,
                                  size_t index, ist_spec *out, ist_error *err) {
  const ist__pjrt_signature *s = p->signature;
  size_t count = is_input ? s->input_count : s->output_count;
  if (index >= count) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "pjrt: the program has no %s %zu; needs one of its "
                         "%zu",
                         is_input ? "input" : "output", index, count);
  }
  *out = s->specs[is_input ? index : s->input_count + index];
  return IST_OK;
}

ist_code ist__pjrt_describe_input(void *self, void *pointer, size_t index,
                                  ist_spec *out, ist_error *err) {
  (void)self;
  return describe_argument(pointer, true, index, out, err);
}

ist_code ist__pjrt_describe_output(void *self, void *pointer, size_t index,
                                   ist_spec *out, ist_error *err) {
  (void)self;
  return describe_argument(pointer, false, index, out, err);
}

const char *ist__pjrt_argument_name(void *self, void *pointer, bool is_input,
                                    size_t index) {
  (void)self;
  const ist__pjrt_program *p = pointer;
  return ist__program_names_at(p->names, !is_input, index);
}

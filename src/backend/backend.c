// SPDX-License-Identifier: Apache-2.0
// backend.c: the only caller of a backend's slots.

#include "backend/backend.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/structs.h"

// A place for the error of a slot when the caller gave none.
typedef struct report {
  ist_error local;
  ist_error *err;
} report;

// Begins a call: true when it must not be made.
static bool call_fails(ist_backend *backend, const char *slot, report *r,
                       ist_error *err) {
  r->err = err != NULL ? err : &r->local;
  ist__error_clear(r->err);
  if (!ist__call_fails(ist__backend_env(backend), slot)) return false;
  ist_error_set(r->err, IST_ERR_INTERNAL,
                "%s: %s was made to fail: a test's hook; needs no hook",
                backend->facts.name, slot);
  return true;
}

// Ends a call: a failure is one of isthmus' own codes with a line of text,
// whatever the slot left in err.
static ist_code told(const char *backend, const char *slot, ist_code code,
                     ist_error *err) {
  if (code == IST_OK) return IST_OK;
  if (ist_code_name(code) == NULL) {
    return ist_error_set(err, IST_ERR_BACKEND_ABI,
                         "%s: %s failed with %d, which is no ist_code; needs "
                         "one of isthmus/error.h",
                         backend, slot, (int)code);
  }
  ist__error_seal(err, code);
  if (err->message[0] != '\0') return code;
  return ist_error_set(err, code,
                       "%s: %s failed without a message; needs one from "
                       "ist_error_set",
                       backend, slot);
}

// Ends a call that must have made an object: a failure leaves none.
static ist_code made(ist_backend *backend, const char *slot, ist_code code,
                     void **out, ist_error *err) {
  if (code != IST_OK) {
    *out = NULL;
    return told(backend->facts.name, slot, code, err);
  }
  if (*out != NULL) return IST_OK;
  return ist_error_set(err, IST_ERR_BACKEND_ABI,
                       "%s: %s gave nothing: it answered success with a NULL "
                       "result; needs a result or an error",
                       backend->facts.name, slot);
}

static ist_code absent(ist_backend *backend, const char *slot, ist_error *err) {
  return ist_error_set(err, IST_ERR_BACKEND_ABI,
                       "%s: %s could not be called: the backend has no such "
                       "slot; needs a backend that offers it",
                       backend->facts.name, slot);
}

void ist__backend_release_buffer(ist_backend *backend, void *buffer) {
  if (buffer != NULL) backend->ops.release(backend->self, buffer);
}

ist_code ist__backend_copy_out(ist_backend *backend, void *buffer, void *target,
                               uint64_t nbytes, ist_error *err) {
  report r;
  if (call_fails(backend, "copy_out", &r, err)) return r.err->code;
  ist_code code =
      backend->ops.copy_out(backend->self, buffer, target, nbytes, r.err);
  return told(backend->facts.name, "copy_out", code, r.err);
}

ist_code ist__backend_copy_in(ist_backend *backend, const ist_placement *source,
                              void **out, ist_error *err) {
  report r;
  *out = NULL;
  if (call_fails(backend, "copy_in", &r, err)) return r.err->code;
  ist_code code = backend->ops.copy_in(backend->self, source, out, r.err);
  return made(backend, "copy_in", code, out, r.err);
}

ist_code ist__backend_lend(ist_backend *backend, void *buffer, ist_loan *out,
                           ist_error *err) {
  report r;
  *out = (ist_loan){.struct_size = sizeof *out};
  if (backend->ops.lend == NULL) return absent(backend, "lend", err);
  if (call_fails(backend, "lend", &r, err)) return r.err->code;
  ist_code code = backend->ops.lend(backend->self, buffer, out, r.err);
  if (code != IST_OK) *out = (ist_loan){.struct_size = sizeof *out};
  return told(backend->facts.name, "lend", code, r.err);
}

void ist__backend_reclaim(ist_backend *backend, void *buffer) {
  backend->ops.reclaim(backend->self, buffer);
}

ist_code ist__backend_adopt(ist_backend *backend, const ist_placement *source,
                            void **out, ist_error *err) {
  report r;
  *out = NULL;
  if (backend->ops.adopt == NULL) return absent(backend, "adopt", err);
  if (call_fails(backend, "adopt", &r, err)) return r.err->code;
  ist_code code = backend->ops.adopt(backend->self, source, out, r.err);
  return made(backend, "adopt", code, out, r.err);
}

ist_code ist__backend_copy_peer(ist_backend *backend, void *buffer,
                                const ist_placement *place, void **out,
                                ist_error *err) {
  report r;
  *out = NULL;
  if (backend->ops.copy_peer == NULL) return absent(backend, "copy_peer", err);
  if (call_fails(backend, "copy_peer", &r, err)) return r.err->code;
  ist_code code =
      backend->ops.copy_peer(backend->self, buffer, place, out, r.err);
  return made(backend, "copy_peer", code, out, r.err);
}

ist_code ist__backend_wait(ist_backend *backend, void *buffer, ist_error *err) {
  report r;
  if (backend->ops.wait == NULL) return IST_OK;
  if (call_fails(backend, "wait", &r, err)) return r.err->code;
  ist_code code = backend->ops.wait(backend->self, buffer, r.err);
  return told(backend->facts.name, "wait", code, r.err);
}

ist_code ist__backend_discard(ist_backend *backend, void **buffer,
                              ist_error *err) {
  report r;
  if (call_fails(backend, "discard", &r, err)) return r.err->code;
  ist_code code = IST_ERR_PLUGIN_SLOT;
  if (backend->ops.discard != NULL) {
    code = backend->ops.discard(backend->self, *buffer, r.err);
  }
  if (code == IST_ERR_PLUGIN_SLOT) {
    ist__error_clear(r.err);
    ist__backend_release_buffer(backend, *buffer);
    *buffer = NULL;
    return IST_OK;
  }
  return told(backend->facts.name, "discard", code, r.err);
}

// A geometry that a backend told is checked like one from outside.
static ist_code check_spec(ist_backend *backend, const char *slot,
                           const ist_spec *spec, ist_error *err) {
  if (spec->ndim >= 0 && spec->ndim <= IST_MAX_NDIM) return IST_OK;
  return ist_error_set(err, IST_ERR_BACKEND_ABI,
                       "%s: %s told a geometry that cannot be: %d dimensions; "
                       "needs 0 to %d",
                       backend->facts.name, slot, (int)spec->ndim,
                       IST_MAX_NDIM);
}

ist_code ist__backend_inspect(ist_backend *backend, void *buffer, ist_spec *out,
                              ist_error *err) {
  report r;
  *out = (ist_spec){.struct_size = sizeof *out};
  if (backend->ops.inspect == NULL) return absent(backend, "inspect", err);
  if (call_fails(backend, "inspect", &r, err)) return r.err->code;
  ist_code code = backend->ops.inspect(backend->self, buffer, out, r.err);
  if (code == IST_OK) return check_spec(backend, "inspect", out, r.err);
  return told(backend->facts.name, "inspect", code, r.err);
}

ist_code ist__backend_compile(ist_backend *backend, const ist_source *source,
                              void **out, ist_error *err) {
  report r;
  *out = NULL;
  if (backend->ops.compile == NULL) {
    return ist_error_set(err, IST_ERR_NO_PROGRAMS,
                         "%s could not be compiled for %s: the backend has no "
                         "compiler; needs a backend that runs programs",
                         source->name, backend->facts.name);
  }
  if (call_fails(backend, "compile", &r, err)) return r.err->code;
  ist_code code = backend->ops.compile(backend->self, source, out, r.err);
  return made(backend, "compile", code, out, r.err);
}

void ist__backend_release_program(ist_backend *backend, void *program) {
  if (program != NULL) backend->ops.release_program(backend->self, program);
}

ist_code ist__backend_describe_program(ist_backend *backend, void *program,
                                       ist_program_facts *out, ist_error *err) {
  report r;
  *out = (ist_program_facts){.struct_size = sizeof *out};
  if (call_fails(backend, "describe_program", &r, err)) return r.err->code;
  ist_code code =
      backend->ops.describe_program(backend->self, program, out, r.err);
  return told(backend->facts.name, "describe_program", code, r.err);
}

ist_code ist__backend_describe_argument(ist_backend *backend, void *program,
                                        bool is_input, size_t index,
                                        ist_spec *out, ist_error *err) {
  report r;
  const char *slot = is_input ? "describe_input" : "describe_output";
  *out = (ist_spec){.struct_size = sizeof *out};
  if (call_fails(backend, slot, &r, err)) return r.err->code;
  ist_code code = is_input ? backend->ops.describe_input(backend->self, program,
                                                         index, out, r.err)
                           : backend->ops.describe_output(
                                 backend->self, program, index, out, r.err);
  if (code == IST_OK) return check_spec(backend, slot, out, r.err);
  return told(backend->facts.name, slot, code, r.err);
}

const char *ist__backend_argument_name(ist_backend *backend, void *program,
                                       bool is_input, size_t index) {
  if (backend->ops.argument_name == NULL) return "";
  const char *name =
      backend->ops.argument_name(backend->self, program, is_input, index);
  return name != NULL ? name : "";
}

static ist_code saves_nothing(ist_backend *backend, ist_error *err) {
  return ist_error_set(err, IST_ERR_NO_PROGRAMS,
                       "%s: a program could not be saved or loaded: the "
                       "backend saves none; needs one that serializes programs",
                       backend->facts.name);
}

ist_code ist__backend_serialize(ist_backend *backend, void *program, void **out,
                                size_t *out_size, ist_error *err) {
  report r;
  *out = NULL;
  *out_size = 0;
  if (backend->ops.serialize == NULL || backend->facts.file == NULL) {
    return saves_nothing(backend, err);
  }
  if (call_fails(backend, "serialize", &r, err)) return r.err->code;
  ist_code code =
      backend->ops.serialize(backend->self, program, out, out_size, r.err);
  return made(backend, "serialize", code, out, r.err);
}

ist_code ist__backend_load(ist_backend *backend, const ist_source *source,
                           void **out, ist_error *err) {
  report r;
  *out = NULL;
  if (backend->ops.load == NULL || backend->ops.compile == NULL) {
    return saves_nothing(backend, err);
  }
  if (call_fails(backend, "load", &r, err)) return r.err->code;
  ist_code code = backend->ops.load(backend->self, source, out, r.err);
  return made(backend, "load", code, out, r.err);
}

// Devices of one backend may have different memories: a number is held against
// the one with the most, and by the caller against the output's own.
static bool memories_are_there(const ist_backend *backend,
                               const ist_execution *execution) {
  size_t devices = execution->device_count == 0 ? 1 : execution->device_count;
  size_t most = 0;
  for (size_t i = 0; i < backend->facts.device_count; i++) {
    size_t count = backend->devices[i].facts.memory_count;
    if (count > most) most = count;
  }
  for (size_t i = 0;
       execution->memories != NULL && i < execution->output_count * devices;
       i++) {
    if (execution->memories[i] >= most) return false;
  }
  return true;
}

ist_code ist__backend_execute(ist_backend *backend,
                              const ist_execution *execution, ist_error *err) {
  report r;
  size_t devices = execution->device_count == 0 ? 1 : execution->device_count;
  size_t outputs = execution->output_count * devices;
  for (size_t i = 0; i < outputs; i++) execution->outputs[i] = NULL;
  if (call_fails(backend, "execute", &r, err)) return r.err->code;
  ist_code code = backend->ops.execute(backend->self, execution, r.err);
  bool all = true;
  for (size_t i = 0; i < outputs; i++) {
    all = all && execution->outputs[i] != NULL;
  }
  bool placed = code != IST_OK || memories_are_there(backend, execution);
  if (code == IST_OK && all && placed) return IST_OK;
  for (size_t i = 0; i < outputs; i++) {
    // After a failure what is left there is nobody's buffer.
    if (code == IST_OK) {
      ist__backend_release_buffer(backend, execution->outputs[i]);
    }
    execution->outputs[i] = NULL;
  }
  if (code != IST_OK) {
    return told(backend->facts.name, "execute", code, r.err);
  }
  return ist_error_set(r.err, IST_ERR_BACKEND_ABI,
                       "%s: execute gave nothing: an output is NULL or in no "
                       "memory after success; needs all of them, in memories "
                       "of their devices",
                       backend->facts.name);
}

// --------------------------------------------------------- life and facts --

static ist_code abi_error(const char *name, const char *what, ist_error *err) {
  return ist_error_set(err, IST_ERR_BACKEND_ABI,
                       "backend %s could not be opened: %s; needs the table of "
                       "isthmus/backend.h %s, abi %d",
                       name, what, IST_VERSION_STRING, IST_BACKEND_ABI);
}

static ist_code check_ops(const ist_backend_ops *ops, ist_error *err) {
  const char *name = ops->name != NULL ? ops->name : "(no name)";
  if (ops->abi != IST_BACKEND_ABI) return abi_error(name, "another abi", err);
  if (ops->name == NULL || ops->close == NULL || ops->describe == NULL ||
      ops->release == NULL || ops->copy_out == NULL || ops->copy_in == NULL) {
    return abi_error(name, "a required slot is NULL", err);
  }
  if (ops->lend != NULL && ops->reclaim == NULL) {
    return abi_error(name, "lend without reclaim", err);
  }
  bool all = ops->release_program != NULL && ops->describe_program != NULL &&
             ops->describe_input != NULL && ops->describe_output != NULL &&
             ops->execute != NULL && ops->inspect != NULL;
  if (ops->compile != NULL && !all) {
    return abi_error(name, "compile without its other slots", err);
  }
  if (ops->serialize != NULL && ops->load == NULL) {
    return abi_error(name, "serialize without load", err);
  }
  return IST_OK;
}

static ist_code check_memory(const ist_backend_ops *ops,
                             const ist_memory_info *memory, ist_error *err) {
  const ist_capability *c = &memory->capability;
  if (memory->kind == NULL) {
    return abi_error(ops->name, "a memory without a kind", err);
  }
  if ((c->can & IST_CAN_LEND) != 0 && ops->lend == NULL) {
    return abi_error(ops->name, "a memory that lends without lend", err);
  }
  if ((c->can & IST_CAN_ADOPT) != 0 && ops->adopt == NULL) {
    return abi_error(ops->name, "a memory that adopts without adopt", err);
  }
  if ((c->can & IST_CAN_PEER) != 0 && ops->copy_peer == NULL) {
    return abi_error(ops->name, "a memory with peers without copy_peer", err);
  }
  if (c->alignment == 0 || (c->alignment & (c->alignment - 1)) != 0) {
    return abi_error(ops->name, "an alignment that is no power of two", err);
  }
  return IST_OK;
}

// Number index of an array whose author's struct may be shorter than ours.
static const void *element(const void *first, size_t index) {
  return (const char *)first + index * *(const size_t *)first;
}

static void read_memory(const void *from, ist_memory_info *out) {
  ist__struct_read(out, sizeof *out, from);
  ist_capability capability;
  ist__struct_read(&capability, sizeof capability, &out->capability);
  out->capability = capability;
}

static ist_code check_facts(const ist_backend_ops *ops,
                            const ist_backend_facts *facts, ist_error *err) {
  if (facts->name == NULL || facts->platform == NULL ||
      facts->version == NULL ||
      (facts->devices == NULL && facts->device_count != 0)) {
    return abi_error(ops->name, "describe left a fact NULL", err);
  }
  for (size_t d = 0; d < facts->device_count; d++) {
    ist_device_facts device;
    if (facts->devices->struct_size <= sizeof(size_t)) {
      return abi_error(ops->name, "a device without struct_size", err);
    }
    ist__struct_read(&device, sizeof device, element(facts->devices, d));
    if (device.name == NULL || device.kind == NULL || device.memories == NULL ||
        device.memory_count == 0 ||
        device.default_memory >= device.memory_count) {
      return abi_error(ops->name, "a device without name or memory", err);
    }
    for (size_t m = 0; m < device.memory_count; m++) {
      if (device.memories->struct_size <= sizeof(size_t)) {
        return abi_error(ops->name, "a memory without struct_size", err);
      }
      ist_memory_info memory;
      read_memory(element(device.memories, m), &memory);
      ist_code code = check_memory(ops, &memory, err);
      if (code != IST_OK) return code;
    }
  }
  return IST_OK;
}

// Facts that were checked become devices and memories of our own. A runtime
// cannot have so many that a size overflows: each has facts in memory already.
static ist_code build(ist_context *context, const ist_backend_ops *ops,
                      void *self, bool is_host, const ist_backend_facts *facts,
                      ist_backend **out, ist_error *err) {
  size_t memory_count = 0;
  for (size_t d = 0; d < facts->device_count; d++) {
    ist_device_facts device;
    ist__struct_read(&device, sizeof device, element(facts->devices, d));
    memory_count += device.memory_count;
  }
  size_t size = sizeof(ist_backend) + facts->device_count * sizeof(ist_device);
  size_t room = memory_count * sizeof(ist_memory_info);
  ist_backend *backend = ist__alloc_zero(&context->env, size);
  ist_memory_info *memories = ist__alloc_zero(&context->env, room);
  if (backend == NULL || memories == NULL) {
    ist__free(&context->env, backend);
    ist__free(&context->env, memories);
    return ist__error_memory(err, "a backend", size + room);
  }
  ist__refcount_init(&backend->refs);
  backend->is_host = is_host;
  backend->context = context;
  backend->ops = *ops;
  backend->self = self;
  backend->facts = *facts;
  backend->memories = memories;
  pthread_mutex_init(&backend->lend_lock, NULL);
  pthread_cond_init(&backend->lend_done, NULL);
  for (size_t d = 0; d < facts->device_count; d++) {
    ist_device *device = &backend->devices[d];
    *device = (ist_device){.backend = backend, .index = d};
    ist__struct_read(&device->facts, sizeof device->facts,
                     element(facts->devices, d));
    for (size_t m = 0; m < device->facts.memory_count; m++) {
      read_memory(element(device->facts.memories, m), &memories[m]);
    }
    device->facts.memories = memories;
    memories += device->facts.memory_count;
  }
  if (!is_host) ist_context_retain(context);
  *out = backend;
  return IST_OK;
}

ist_code ist__backend_open(ist_context *context, const ist_backend_ops *ops,
                           void *self, bool is_host, ist_backend **out,
                           ist_error *err) {
  *out = NULL;
  ist_error local;
  if (err == NULL) err = &local;
  ist_backend_ops known;
  ist__struct_read(&known, sizeof known, ops);
  ist_code code = check_ops(&known, err);
  if (code != IST_OK) return code;
  ist_backend_facts facts = {.struct_size = sizeof facts};
  if (ist__call_fails(&context->env, "describe")) {
    return ist_error_set(err, IST_ERR_INTERNAL,
                         "%s: describe was made to fail: a test's hook; needs "
                         "no hook",
                         known.name);
  }
  ist__error_clear(err);
  code = told(known.name, "describe", known.describe(self, &facts, err), err);
  if (code == IST_OK) code = check_facts(&known, &facts, err);
  if (code != IST_OK) return code;
  return build(context, &known, self, is_host, &facts, out, err);
}

void ist__backend_free(ist_backend *backend) {
  ist_context *context = backend->context;
  bool is_host = backend->is_host;
  backend->ops.close(backend->self);
  pthread_cond_destroy(&backend->lend_done);
  pthread_mutex_destroy(&backend->lend_lock);
  ist__free(&context->env, atomic_load(&backend->file_digest));
  ist__free(&context->env, backend->memories);
  ist__free(&context->env, backend);
  if (!is_host) ist_context_release(context);
}

ist_code ist_backend_create(ist_context *context, const ist_backend_ops *ops,
                            void *self, ist_backend **out, ist_error *err) {
  if (out != NULL) *out = NULL;
  if (context == NULL || !ist__struct_ok(ops) || out == NULL) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a backend could not be opened: context, ops or out "
                         "is NULL; needs all three");
  }
  return ist__backend_open(context, ops, self, false, out, err);
}

void ist_backend_retain(ist_backend *backend) {
  if (backend == NULL) return;
  if (backend->is_host) {
    ist_context_retain(backend->context);
  } else {
    ist__refcount_take(&backend->refs);
  }
}

void ist_backend_release(ist_backend *backend) {
  if (backend == NULL) return;
  if (backend->is_host) {
    ist_context_release(backend->context);
  } else if (ist__refcount_drop(&backend->refs)) {
    ist__backend_free(backend);
  }
}

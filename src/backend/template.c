// SPDX-License-Identifier: Apache-2.0
// template.c: a device runtime to copy and make your own: the five required
// functions first, then two optional ones. Its devices are memory of this
// process; with the option addressable=false their addresses are not, so that
// everything has to be copied in and out, as on a card of its own.
//
// To make a backend: replace what is inside the functions, keep their shape.

#include "backend/template.h"

#include <isthmus/backend.h>
#include <stdio.h>
#include <string.h>

#define MAX_DEVICES 64

// Added to an address to make a device address that this process cannot read:
// no user address on x86-64 or aarch64 has its top bits set.
#define DEVICE_ADDRESS ((uintptr_t)1 << 63)

typedef struct runtime {
  ist_context *context;
  bool addressable;
  uint64_t alignment;
  size_t device_count;
  ist_memory_info memories[MAX_DEVICES];
  ist_device_facts devices[MAX_DEVICES];
  char names[MAX_DEVICES][32];
} runtime;

// A buffer of the device: its memory, or what it views.
typedef struct buffer {
  uintptr_t address;  // a device address: never read through as it is
  uint64_t nbytes;
  void *own;  // what the runtime allocated, or NULL
  ist_release_fn release;
  void *release_self;
} buffer;

// The device's own way from its addresses to bytes: what a driver does.
static void *device_memory(const runtime *r, uintptr_t address) {
  return (void *)(r->addressable ? address : address - DEVICE_ADDRESS);
}

static uintptr_t device_address(const runtime *r, const void *memory) {
  uintptr_t address = (uintptr_t)memory;
  return r->addressable ? address : address + DEVICE_ADDRESS;
}

// --- required: close, describe, release, copy_out, copy_in ---

static void template_close(void *self) {
  runtime *r = self;
  ist_deallocate(r->context, r);
}

static ist_code template_describe(void *self, ist_backend_facts *out,
                                  ist_error *err) {
  (void)err;
  runtime *r = self;
  out->name = "template";
  out->platform = "template";
  out->version = IST_VERSION_STRING;
  out->devices = r->devices;
  out->device_count = r->device_count;
  return IST_OK;
}

static void template_release(void *self, void *pointer) {
  runtime *r = self;
  buffer *b = pointer;
  ist_release_fn release = b->release;
  void *release_self = b->release_self;
  ist_deallocate(r->context, b->own);
  ist_deallocate(r->context, b);
  if (release != NULL) release(release_self);
}

static ist_code template_copy_out(void *self, void *pointer, void *target,
                                  uint64_t nbytes, ist_error *err) {
  runtime *r = self;
  buffer *b = pointer;
  if (nbytes != b->nbytes) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "template: a buffer could not be copied out: room of "
                         "%llu bytes; needs %llu",
                         (unsigned long long)nbytes,
                         (unsigned long long)b->nbytes);
  }
  if (nbytes != 0) {
    memcpy(target, device_memory(r, b->address), (size_t)nbytes);
  }
  return IST_OK;
}

// Bytes of a dense view.
static uint64_t view_bytes(const ist_placement *source) {
  const DLTensor *view = source->view;
  uint64_t bits = source->padded ? 8 : view->dtype.bits;
  uint64_t count = 1;
  for (int32_t d = 0; d < view->ndim; d++) count *= (uint64_t)view->shape[d];
  return (count * bits * view->dtype.lanes + 7) / 8;
}

static buffer *buffer_make(runtime *r, ist_error *err) {
  buffer *b = ist_allocate(r->context, sizeof *b, _Alignof(buffer));
  if (b == NULL) {
    ist_error_set(err, IST_ERR_NO_ALLOCATION,
                  "template: a buffer could not be made: the allocator gave "
                  "none; needs %zu bytes",
                  sizeof *b);
    return NULL;
  }
  memset(b, 0, sizeof *b);
  return b;
}

static ist_code template_copy_in(void *self, const ist_placement *source,
                                 void **out, ist_error *err) {
  runtime *r = self;
  buffer *b = buffer_make(r, err);
  if (b == NULL) return IST_ERR_NO_ALLOCATION;
  b->nbytes = view_bytes(source);
  b->own = ist_allocate(r->context, (size_t)b->nbytes, (size_t)r->alignment);
  if (b->own == NULL) {
    ist_error_set(err, IST_ERR_NO_ALLOCATION,
                  "template: a buffer could not be made: the device is full; "
                  "needs %llu bytes",
                  (unsigned long long)b->nbytes);
    ist_deallocate(r->context, b);
    return IST_ERR_NO_ALLOCATION;
  }
  const DLTensor *view = source->view;
  if (b->nbytes != 0) {
    memcpy(b->own, (const char *)view->data + view->byte_offset,
           (size_t)b->nbytes);
  }
  b->address = device_address(r, b->own);
  *out = b;
  return IST_OK;
}

// --- optional: lend (with reclaim) and adopt ---

static ist_code template_lend(void *self, void *pointer, ist_loan *out,
                              ist_error *err) {
  (void)self;
  (void)err;
  buffer *b = pointer;
  out->data = (void *)b->address;
  return IST_OK;
}

static void template_reclaim(void *self, void *pointer) {
  (void)self;
  (void)pointer;
}

static ist_code template_adopt(void *self, const ist_placement *source,
                               void **out, ist_error *err) {
  runtime *r = self;
  buffer *b = buffer_make(r, err);
  if (b == NULL) return IST_ERR_NO_ALLOCATION;
  const DLTensor *view = source->view;
  b->address = (uintptr_t)view->data + (uintptr_t)view->byte_offset;
  b->nbytes = view_bytes(source);
  b->release = source->release;
  b->release_self = source->release_self;
  *out = b;
  return IST_OK;
}

static const ist_backend_ops template_ops = {
    .struct_size = sizeof(ist_backend_ops),
    .abi = IST_BACKEND_ABI,
    .name = "template",
    .close = template_close,
    .describe = template_describe,
    .release = template_release,
    .copy_out = template_copy_out,
    .copy_in = template_copy_in,
    .lend = template_lend,
    .reclaim = template_reclaim,
    .adopt = template_adopt,
};

// --- opening ---

static ist_code read_option(runtime *r, const ist_option *option,
                            ist_error *err) {
  const char *name = option->name != NULL ? option->name : "";
  int64_t n = option->int64;
  bool is_int = option->kind == IST_OPTION_INT64;
  if (strcmp(name, "addressable") == 0 && option->kind == IST_OPTION_BOOL) {
    r->addressable = option->boolean;
  } else if (strcmp(name, "alignment") == 0 && is_int && n > 0 &&
             n <= 1 << 20 && (n & (n - 1)) == 0) {
    r->alignment = (uint64_t)n;
  } else if (strcmp(name, "devices") == 0 && is_int && n > 0 &&
             n <= MAX_DEVICES) {
    r->device_count = (size_t)n;
  } else {
    return ist_error_set(err, IST_ERR_OPTION,
                         "template: option %s was not taken: no such name, "
                         "type or value; needs addressable (bool), alignment "
                         "(a power of two) or devices (1 to %d)",
                         name, MAX_DEVICES);
  }
  return IST_OK;
}

static void describe_devices(runtime *r, uint64_t dtypes) {
  uint32_t can = IST_CAN_COPY_IN | IST_CAN_COPY_OUT | IST_CAN_LEND |
                 IST_CAN_HONOUR_READ_ONLY;
  if (r->addressable) can |= IST_CAN_ADOPT | IST_CAN_HOST_ADDRESS;
  for (size_t d = 0; d < r->device_count; d++) {
    DLDevice where = {r->addressable ? kDLCPU : kDLExtDev, 0};
    if (!r->addressable) where.device_id = (int32_t)d;
    ist_memory_info *memory = &r->memories[d];
    *memory = (ist_memory_info){
        .struct_size = sizeof *memory,
        .kind = "device",
        .capability = {.struct_size = sizeof memory->capability,
                       .can = can,
                       .layouts = IST_LAYOUT_ROW_MAJOR,
                       .alignment = r->alignment,
                       .dtypes = dtypes,
                       .dl_device = where}};
    snprintf(r->names[d], sizeof r->names[d], "template:%zu", d);
    r->devices[d] = (ist_device_facts){.struct_size = sizeof r->devices[d],
                                       .name = r->names[d],
                                       .kind = "template",
                                       .id = (int64_t)d,
                                       .dl_device = where,
                                       .memories = memory,
                                       .memory_count = 1};
  }
}

ist_code ist__template_open(ist_context *context,
                            const ist_backend_options *options,
                            ist_backend **out, ist_error *err) {
  runtime *r = ist_allocate(context, sizeof *r, _Alignof(runtime));
  if (r == NULL) {
    return ist_error_set(err, IST_ERR_NO_ALLOCATION,
                         "template could not be opened: the allocator gave "
                         "none; needs %zu bytes",
                         sizeof *r);
  }
  memset(r, 0, sizeof *r);
  r->context = context;
  r->addressable = true;
  r->alignment = 64;
  r->device_count = 1;
  ist_code code = IST_OK;
  for (size_t i = 0; code == IST_OK && i < options->option_count; i++) {
    code = read_option(r, &options->options[i], err);
  }
  if (code == IST_OK) {
    ist_memory_info host = {.struct_size = sizeof host};
    code = ist_device_memory(ist_context_host(context), 0, &host, err);
    describe_devices(r, host.capability.dtypes);
  }
  if (code == IST_OK) {
    code = ist_backend_create(context, &template_ops, r, out, err);
  }
  if (code != IST_OK) ist_deallocate(context, r);
  return code;
}

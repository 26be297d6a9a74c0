// SPDX-License-Identifier: Apache-2.0
// subjects.c: backends that need no plugin: the host, the template in both
// modes, and the smallest backend that there can be.

#include "support/subjects.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "support/testing.h"
#include "tensor/dtype.h"

static ist_code open_host(const subject *self, ist_context *context,
                          ist_backend **out, ist_error *err) {
  return ist_backend_open(context, self->path, NULL, out, err);
}

static ist_code open_template(const subject *self, ist_context *context,
                              ist_backend **out, ist_error *err) {
  bool addressable = (self->never & IST_CAN_HOST_ADDRESS) == 0;
  const ist_option list[] = {
      {.name = "addressable", .kind = IST_OPTION_BOOL, .boolean = addressable},
      {.name = "devices", .kind = IST_OPTION_INT64, .int64 = 3},
      {.name = "alignment", .kind = IST_OPTION_INT64, .int64 = 128},
  };
  ist_backend_options options = {.struct_size = sizeof options,
                                 .options = list,
                                 .option_count = COUNT_OF(list)};
  return ist_backend_open(context, "template", &options, out, err);
}

// --- five functions: what backend.h promises to be enough ---

typedef struct minimal {
  ist_memory_info memory;
  ist_device_facts device;
  atomic_int buffers;
} minimal;

typedef struct block {
  size_t size;
  unsigned char bytes[];
} block;

static void minimal_close(void *self) {
  minimal *m = self;
  assert_int_equal(m->buffers, 0);
  free(m);
}

static ist_code minimal_describe(void *self, ist_backend_facts *out,
                                 ist_error *err) {
  (void)err;
  minimal *m = self;
  out->name = "minimal";
  out->platform = "minimal";
  out->version = "";
  out->devices = &m->device;
  out->device_count = 1;
  return IST_OK;
}

static void minimal_release(void *self, void *buffer) {
  atomic_fetch_sub(&((minimal *)self)->buffers, 1);
  free(buffer);
}

static ist_code minimal_copy_out(void *self, void *buffer, void *target,
                                 uint64_t nbytes, ist_error *err) {
  (void)self;
  block *b = buffer;
  if (nbytes != b->size) {
    return ist_error_set(err, IST_ERR_BUFFER,
                         "minimal: a buffer could not be copied out: room of "
                         "%llu bytes; needs %zu",
                         (unsigned long long)nbytes, b->size);
  }
  memcpy(target, b->bytes, b->size);
  return IST_OK;
}

static ist_code minimal_copy_in(void *self, const ist_placement *source,
                                void **out, ist_error *err) {
  (void)err;
  minimal *m = self;
  const DLTensor *view = source->view;
  assert_false(source->padded);
  uint64_t count = 1;
  int64_t dense = 1;
  for (int32_t d = view->ndim - 1; d >= 0; d--) {
    // Dense and row-major is promised.
    assert_int_equal(view->strides[d], dense);
    if (view->shape[d] > 1) dense *= view->shape[d];
    count *= (uint64_t)view->shape[d];
  }
  size_t size = (size_t)((count * view->dtype.bits + 7) / 8);
  block *b = malloc(sizeof *b + size);
  b->size = size;
  memcpy(b->bytes, (const char *)view->data + view->byte_offset, size);
  atomic_fetch_add(&m->buffers, 1);
  *out = b;
  return IST_OK;
}

static ist_code open_minimal(const subject *self, ist_context *context,
                             ist_backend **out, ist_error *err) {
  (void)self;
  static const ist_backend_ops ops = {.struct_size = sizeof ops,
                                      .abi = IST_BACKEND_ABI,
                                      .name = "minimal",
                                      .close = minimal_close,
                                      .describe = minimal_describe,
                                      .release = minimal_release,
                                      .copy_out = minimal_copy_out,
                                      .copy_in = minimal_copy_in};
  minimal *m = calloc(1, sizeof *m);
  // Without the last three dtypes, so that there is something to refuse.
  m->memory = (ist_memory_info){
      .struct_size = sizeof m->memory,
      .kind = "device",
      .capability = {.struct_size = sizeof m->memory.capability,
                     .can = IST_CAN_COPY_IN | IST_CAN_COPY_OUT,
                     .alignment = 1,
                     .dtypes = ist__dtype_all() >> 3}};
  m->device = (ist_device_facts){.struct_size = sizeof m->device,
                                 .name = "minimal",
                                 .kind = "minimal",
                                 .memories = &m->memory,
                                 .memory_count = 1};
  ist_code code = ist_backend_create(context, &ops, m, out, err);
  if (code != IST_OK) free(m);
  return code;
}

int subjects_run_builtin(int (*suite)(const subject *)) {
  const subject subjects[] = {
      {.name = "host",
       .open = open_host,
       .path = "host",
       .never = IST_CAN_PEER},
      {.name = "template",
       .open = open_template,
       .not_yet = IST_CAN_PEER | IST_CAN_PADDED},
      {.name = "template_card",
       .open = open_template,
       .never = IST_CAN_HOST_ADDRESS | IST_CAN_ADOPT,
       .not_yet = IST_CAN_PEER | IST_CAN_PADDED},
      {.name = "minimal",
       .open = open_minimal,
       .never = IST_CAN_ADOPT | IST_CAN_LEND | IST_CAN_HOST_ADDRESS |
                IST_CAN_HONOUR_READ_ONLY | IST_CAN_PEER | IST_CAN_PADDED},
  };
  int failed = 0;
  for (size_t i = 0; i < COUNT_OF(subjects); i++) {
    failed += suite(&subjects[i]);
  }
  return failed;
}

// SPDX-License-Identifier: Apache-2.0
// fake_backend.c: a small honest backend with lies to switch on.

#include "support/fake_backend.h"

#include <stdlib.h>
#include <string.h>

typedef struct buffer {
  char *data;
  char *own;
  ist_release_fn release;
  void *release_self;
} buffer;

static uint64_t bytes_of(const ist_placement *source) {
  const DLTensor *view = source->view;
  uint64_t count = 1;
  for (int d = 0; d < view->ndim; d++) count *= (uint64_t)view->shape[d];
  return source->padded ? count : (count * view->dtype.bits + 7) / 8;
}

static void fake_close(void *self) {
  ((fake_backend *)self)->closed++;
}

static ist_code fake_describe(void *self, ist_backend_facts *out,
                              ist_error *err) {
  (void)err;
  out->name = "fake";
  out->platform = "fake";
  out->version = "1";
  out->devices = &((fake_backend *)self)->device;
  out->device_count = 1;
  return IST_OK;
}

static void fake_release(void *self, void *pointer) {
  buffer *b = pointer;
  ((fake_backend *)self)->buffers--;
  if (b->release != NULL) b->release(b->release_self);
  free(b->own);
  free(b);
}

// Applies the lies that every maker of buffers can tell.
static ist_code answer(fake_backend *fake, buffer *b, void **out,
                       ist_error *err) {
  if (fake->gives_nothing) {
    b->release = NULL;
    fake->buffers++;
    fake_release(fake, b);
    return IST_OK;
  }
  *out = b;
  if (fake->fails_but_gives) {
    b->release = NULL;
    fake->buffers++;
    fake_release(fake, b);
    return ist_error_set(err, IST_ERR_BUFFER, "fake: failed; needs luck");
  }
  fake->buffers++;
  return IST_OK;
}

static ist_code fake_copy_out(void *self, void *pointer, void *target,
                              uint64_t nbytes, ist_error *err) {
  (void)self;
  (void)err;
  if (nbytes != 0) memcpy(target, ((buffer *)pointer)->data, nbytes);
  return IST_OK;
}

static buffer *own_buffer(uint64_t nbytes) {
  buffer *b = calloc(1, sizeof *b);
  b->own = aligned_alloc(64, (nbytes + 64) & ~(uint64_t)63);
  b->data = b->own;
  return b;
}

static ist_code fake_copy_in(void *self, const ist_placement *source,
                             void **out, ist_error *err) {
  uint64_t nbytes = bytes_of(source);
  buffer *b = own_buffer(nbytes);
  const char *from =
      (const char *)source->view->data + source->view->byte_offset;
  if (nbytes != 0) memcpy(b->data, from, nbytes);
  return answer(self, b, out, err);
}

static ist_code fake_adopt(void *self, const ist_placement *source, void **out,
                           ist_error *err) {
  buffer *b = calloc(1, sizeof *b);
  b->data = (char *)source->view->data + source->view->byte_offset;
  b->release = source->release;
  b->release_self = source->release_self;
  return answer(self, b, out, err);
}

static ist_code fake_lend(void *self, void *pointer, ist_loan *out,
                          ist_error *err) {
  (void)err;
  fake_backend *fake = self;
  fake->lends++;
  fake->loans++;
  if (!fake->lends_nothing) out->data = ((buffer *)pointer)->data;
  return IST_OK;
}

static void fake_reclaim(void *self, void *pointer) {
  (void)pointer;
  ((fake_backend *)self)->loans--;
}

static void spec_of_float4(ist_spec *out) {
  out->dtype = (DLDataType){kDLFloat, 32, 1};
  out->ndim = 1;
  out->shape[0] = 4;
  out->strides[0] = 1;
}

static ist_code fake_inspect(void *self, void *pointer, ist_spec *out,
                             ist_error *err) {
  (void)pointer;
  (void)err;
  spec_of_float4(out);
  if (((fake_backend *)self)->tells_ndim) out->ndim = 99;
  return IST_OK;
}

static ist_code fake_compile(void *self, const ist_source *source, void **out,
                             ist_error *err) {
  (void)source;
  (void)err;
  fake_backend *fake = self;
  if (fake->gives_nothing) return IST_OK;
  fake->programs++;
  *out = fake;
  return IST_OK;
}

static void fake_release_program(void *self, void *program) {
  (void)program;
  ((fake_backend *)self)->programs--;
}

static ist_code fake_describe_program(void *self, void *program,
                                      ist_program_facts *out, ist_error *err) {
  (void)self;
  (void)program;
  (void)err;
  out->input_count = 2;
  out->output_count = 1;
  return IST_OK;
}

static ist_code fake_describe_argument(void *self, void *program, size_t index,
                                       ist_spec *out, ist_error *err) {
  (void)self;
  (void)program;
  (void)index;
  (void)err;
  spec_of_float4(out);
  return IST_OK;
}

static ist_code fake_execute(void *self, const ist_execution *execution,
                             ist_error *err) {
  const buffer *a = execution->inputs[0];
  const buffer *b = execution->inputs[1];
  buffer *sum = own_buffer(4 * sizeof(float));
  for (int i = 0; i < 4; i++) {
    ((float *)(void *)sum->data)[i] =
        ((float *)(void *)a->data)[i] + ((float *)(void *)b->data)[i];
  }
  return answer(self, sum, &execution->outputs[0], err);
}

void fake_backend_init(fake_backend *fake, bool addressable) {
  *fake = (fake_backend){
      .ops = {.struct_size = sizeof fake->ops,
              .abi = IST_BACKEND_ABI,
              .name = "fake",
              .close = fake_close,
              .describe = fake_describe,
              .release = fake_release,
              .copy_out = fake_copy_out,
              .copy_in = fake_copy_in,
              .lend = fake_lend,
              .reclaim = fake_reclaim,
              .adopt = fake_adopt,
              .inspect = fake_inspect,
              .compile = fake_compile,
              .release_program = fake_release_program,
              .describe_program = fake_describe_program,
              .describe_input = fake_describe_argument,
              .describe_output = fake_describe_argument,
              .execute = fake_execute},
      .memory = {.struct_size = sizeof fake->memory,
                 .kind = "device",
                 .capability = {.struct_size = sizeof fake->memory.capability,
                                .can = IST_CAN_COPY_IN | IST_CAN_COPY_OUT |
                                       IST_CAN_HONOUR_READ_ONLY,
                                .layouts = IST_LAYOUT_PERMUTED,
                                .alignment = 64,
                                .dtypes = ~(uint64_t)0}},
      .device = {.struct_size = sizeof fake->device,
                 .name = "fake:0",
                 .kind = "fake",
                 .memory_count = 1}};
  if (addressable) {
    fake->memory.capability.can |=
        IST_CAN_ADOPT | IST_CAN_LEND | IST_CAN_HOST_ADDRESS;
    fake->memory.capability.dl_device.device_type = kDLCPU;
  }
  fake->device.memories = &fake->memory;
}

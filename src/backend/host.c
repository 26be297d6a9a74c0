// SPDX-License-Identifier: Apache-2.0
// host.c: the host backend. It views any memory of this process, in any
// layout, and never copies unless asked.

#include "backend/host.h"

#include <string.h>

#include "backend/backend.h"
#include "backend/block.h"
#include "base/alloc.h"
#include "tensor/dtype.h"
#include "tensor/strided_copy.h"

typedef struct host {
  ist_context *context;
  ist_memory_info memory;
  ist_device_facts device;
} host;

// A buffer: a view and what to call when it goes.
typedef struct buffer {
  ist_release_fn release;
  void *release_self;
  DLTensor view;
  bool padded;
  int64_t dims[];  // shape, then strides
} buffer;

static void host_close(void *self) {
  host *h = self;
  ist__free(&h->context->env, h);
}

static ist_code host_describe(void *self, ist_backend_facts *out,
                              ist_error *err) {
  (void)err;
  host *h = self;
  out->name = "host";
  out->platform = "host";
  out->version = IST_VERSION_STRING;
  out->devices = &h->device;
  out->device_count = 1;
  return IST_OK;
}

static void host_release(void *self, void *pointer) {
  host *h = self;
  buffer *b = pointer;
  ist_release_fn release = b->release;
  void *release_self = b->release_self;
  ist__free(&h->context->env, b);
  if (release != NULL) release(release_self);
}

static ist_code host_adopt(void *self, const ist_placement *source, void **out,
                           ist_error *err) {
  host *h = self;
  const DLTensor *view = source->view;
  size_t ndim = (size_t)view->ndim;
  size_t size = sizeof(buffer) + 2 * ndim * sizeof(int64_t);
  buffer *b = ist__alloc(&h->context->env, size, _Alignof(buffer));
  if (b == NULL) return ist__error_memory(err, "a host buffer", size);
  b->release = source->release;
  b->release_self = source->release_self;
  b->padded = source->padded;
  b->view = *view;
  b->view.shape = b->dims;
  b->view.strides = b->dims + ndim;
  memcpy(b->view.shape, view->shape, ndim * sizeof(int64_t));
  memcpy(b->view.strides, view->strides, ndim * sizeof(int64_t));
  *out = b;
  return IST_OK;
}

static ist_code host_copy_out(void *self, void *pointer, void *target,
                              uint64_t nbytes, ist_error *err) {
  host *h = self;
  buffer *b = pointer;
  ist__view from, to;
  ist_code code = ist__view_check(&b->view, b->padded, true, &from, err);
  if (code != IST_OK) return code;
  code = ist__view_dense(b->view.dtype, b->view.ndim, b->view.shape, b->padded,
                         &to, err);
  if (code != IST_OK) return code;
  if (to.nbytes != nbytes) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "host: a buffer could not be copied out: room of "
                         "%llu bytes; needs %llu",
                         (unsigned long long)nbytes,
                         (unsigned long long)to.nbytes);
  }
  to.data = target;
  ist__strided_copy(h->context->env.copy_engine, &from, &to);
  return IST_OK;
}

static ist_code host_copy_in(void *self, const ist_placement *source,
                             void **out, ist_error *err) {
  host *h = self;
  ist__view view;
  ist_code code =
      ist__view_check(source->view, source->padded, true, &view, err);
  if (code != IST_OK) return code;
  char *data = ist__block_make(h->context, view.nbytes, 0);
  if (data == NULL) return ist__error_memory(err, "a copy", view.nbytes);
  if (view.nbytes != 0) {
    memcpy(data, ist__view_address(&view), (size_t)view.nbytes);
  }
  DLTensor tensor = *source->view;
  tensor.data = data;
  tensor.byte_offset = 0;
  ist_placement own = *source;
  own.view = &tensor;
  own.release = ist__block_release;
  own.release_self = data;
  code = host_adopt(self, &own, out, err);
  if (code != IST_OK) ist__block_release(data);
  return code;
}

static ist_code host_lend(void *self, void *pointer, ist_loan *out,
                          ist_error *err) {
  (void)self;
  (void)err;
  buffer *b = pointer;
  out->data = b->view.data;
  out->byte_offset = b->view.byte_offset;
  return IST_OK;
}

static void host_reclaim(void *self, void *pointer) {
  (void)self;
  (void)pointer;
}

static const ist_backend_ops host_ops = {
    .struct_size = sizeof(ist_backend_ops),
    .abi = IST_BACKEND_ABI,
    .name = "host",
    .close = host_close,
    .describe = host_describe,
    .release = host_release,
    .copy_out = host_copy_out,
    .copy_in = host_copy_in,
    .lend = host_lend,
    .reclaim = host_reclaim,
    .adopt = host_adopt,
};

ist_code ist__host_open(ist_context *context, ist_backend **out,
                        ist_error *err) {
  host *h = ist__alloc_zero(&context->env, sizeof *h);
  if (h == NULL) return ist__error_memory(err, "the host", sizeof *h);
  h->context = context;
  h->memory = (ist_memory_info){
      .struct_size = sizeof h->memory,
      .kind = "host",
      .capability = {.struct_size = sizeof h->memory.capability,
                     .can = IST_CAN_COPY_IN | IST_CAN_COPY_OUT | IST_CAN_ADOPT |
                            IST_CAN_LEND | IST_CAN_HOST_ADDRESS |
                            IST_CAN_HONOUR_READ_ONLY | IST_CAN_PADDED,
                     .layouts = IST_LAYOUT_ANY,
                     .alignment = 1,
                     .dtypes = ist__dtype_all(),
                     .dl_device = {kDLCPU, 0}}};
  h->device = (ist_device_facts){.struct_size = sizeof h->device,
                                 .name = "host",
                                 .kind = "host",
                                 .dl_device = {kDLCPU, 0},
                                 .memories = &h->memory,
                                 .memory_count = 1};
  ist_code code = ist__backend_open(context, &host_ops, h, true, out, err);
  if (code != IST_OK) host_close(h);
  return code;
}

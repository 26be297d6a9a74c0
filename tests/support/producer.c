// SPDX-License-Identifier: Apache-2.0
// producer.c: a counting producer and a counted context.

#include "support/producer.h"

#include <stdlib.h>
#include <threads.h>

static void delete_versioned(DLManagedTensorVersioned *self) {
  atomic_fetch_add(&((producer *)self->manager_ctx)->deleted, 1);
}

static void delete_legacy(DLManagedTensor *self) {
  atomic_fetch_add(&((producer *)self->manager_ctx)->deleted, 1);
}

void producer_init(producer *s, int ndim, const int64_t *shape,
                   const int64_t *strides, int64_t first) {
  memset(s, 0, sizeof *s);
  s->memory = aligned_alloc(64, PRODUCER_COUNT * sizeof(float));
  for (int i = 0; i < PRODUCER_COUNT; i++) s->memory[i] = (float)i;
  for (int d = 0; d < ndim; d++) {
    s->shape[d] = shape[d];
    s->strides[d] = strides[d];
  }
  DLTensor tensor = {.data = s->memory + first,
                     .device = {kDLCPU, 0},
                     .ndim = ndim,
                     .dtype = {kDLFloat, 32, 1},
                     .shape = s->shape,
                     .strides = s->strides};
  s->versioned = (DLManagedTensorVersioned){.version = {1, 3},
                                            .manager_ctx = s,
                                            .deleter = delete_versioned,
                                            .dl_tensor = tensor};
  s->legacy = (DLManagedTensor){
      .dl_tensor = tensor, .manager_ctx = s, .deleter = delete_legacy};
}

void producer_init_dense(producer *s) {
  int64_t shape[] = {4, 6}, strides[] = {6, 1};
  producer_init(s, 2, shape, strides, 0);
}

void producer_free(producer *s) {
  free(s->memory);
}

float *producer_data(const producer *s) {
  return s->versioned.dl_tensor.data;
}

void counted_context_begin(counted_context *c) {
  counting_allocator_init(&c->counter);
  c->hook = counting_allocator_hook(&c->counter);
  ist_context_options options = {.struct_size = sizeof options,
                                 .allocator = &c->hook};
  ist_error err;
  assert_ok(ist_context_create(&options, &c->context, &err), err);
}

void counted_context_end(counted_context *c) {
  ist_context_release(c->context);
  // A plugin may give memory back on a thread of its own: bounded turns.
  for (long turns = 0; turns < 10000000; turns++) {
    if (atomic_load(&c->counter.live) == 0) break;
    thrd_yield();
  }
  assert_int_equal(atomic_load(&c->counter.live), 0);
}

static int64_t offset_of(const DLTensor *view, int64_t index) {
  int64_t offset = 0;
  for (int d = view->ndim - 1; d >= 0; d--) {
    offset += index % view->shape[d] * view->strides[d];
    index /= view->shape[d];
  }
  return offset;
}

void assert_values_of(const DLTensor *view, const producer *s) {
  const DLTensor *from = &s->versioned.dl_tensor;
  assert_non_null(view->data);
  assert_int_equal(view->ndim, from->ndim);
  int64_t count = 1;
  for (int d = 0; d < view->ndim; d++) {
    assert_int_equal(view->shape[d], from->shape[d]);
    count *= view->shape[d];
  }
  const float *a =
      (const float *)(const void *)((char *)view->data + view->byte_offset);
  const float *b = from->data;
  for (int64_t i = 0; i < count; i++) {
    assert_true(a[offset_of(view, i)] == b[offset_of(from, i)]);
  }
}
